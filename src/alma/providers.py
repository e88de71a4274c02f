"""Wiring: which class keeps which graph, and which asks which language model."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from alma.bootstrap.makers import azure_account, openai_account
from alma.bootstrap.stores import open_storage
from alma.errors import ConfigurationError, shown
from alma.fitting import made

if TYPE_CHECKING:
    from alma.graph.base import GraphStore
    from alma.llm.base import LanguageModel
    from alma.storage.base import StorageBackend

Made = TypeVar("Made")
Maker = Callable[[str, Mapping[str, Any]], Made]


def create_graph_store(backend: str = "memory", **options: Any) -> GraphStore:
    """The graph with this name: memory, neo4j, or one in a store of memories.

    * `memory`: in this process, for as long as it lives.
    * `neo4j`: `uri`, `username`, `password`, and `database`, if it is not the default one.
    * `storage`: in an open store (`storage=alma.storage`).
    * `sqlite` (`path`), `postgres` (`dsn`, or `host`, `database` …), `file` (`path`): in a store that is opened for it
      and closed with it.

    All but `memory` take `project_id`, because those of other projects are not seen, and `redact`, which takes secrets
    out of every text before it is stored, as the door does unless something else is given.
    """
    return _chosen(_GRAPHS, backend, "graph store", options)


def create_language_model(provider: str, **options: Any) -> LanguageModel:
    """The language model of this provider: openai, azure, anthropic or ollama; `options` are its constructor's.

    Keys and the Azure endpoint that are not given come from the environment.
    """
    return _chosen(_MODELS, provider, "provider of language models", options)


def _chosen(makers: Mapping[str, Maker[Made]], name: str, what: str, options: Mapping[str, Any]) -> Made:
    make = makers.get(name.strip().lower()) if isinstance(name, str) else None
    if make is None:
        raise ConfigurationError(f"{shown(name)} is no {what}; choose {', '.join(makers)}")
    return make(f"the {what} {name!r}", options)


def _memory_graph(what: str, options: Mapping[str, Any]) -> GraphStore:
    from alma.graph.memory import InMemoryGraph

    return made(InMemoryGraph, what, options)


def _neo4j_graph(what: str, options: Mapping[str, Any]) -> GraphStore:
    from alma.graph.neo4j import Neo4jGraph

    return made(Neo4jGraph, what, options)


def _graph_in_storage(what: str, options: Mapping[str, Any]) -> GraphStore:
    from alma.graph.relational import StorageGraph

    return made(StorageGraph, what, options)


def _graph_at(option: str, other: str, address: Callable[[str], str] = str) -> Maker[GraphStore]:
    """Makes graphs in stores of their own, found by one option, which may have another name."""

    def make(what: str, options: Mapping[str, Any]) -> GraphStore:
        place = options.get(option) or options.get(other)
        if not place:
            raise ConfigurationError(f"this graph store needs {option}=…, the place where it is kept")
        rest = {name: value for name, value in options.items() if name not in (option, other)}
        return _graph_of_its_own(
            lambda more: made(open_storage, what, {"store": address(str(place)), **more}), what, rest
        )

    return make


def _graph_in_postgres(what: str, options: Mapping[str, Any]) -> GraphStore:
    if "host" not in options:
        return _graph_at("dsn", "url")(what, options)
    from alma.storage.postgresql import PostgreSQLStorage

    return _graph_of_its_own(lambda place: made(PostgreSQLStorage, what, place), what, options)


def _graph_of_its_own(
    opened: Callable[[Mapping[str, Any]], StorageBackend], what: str, options: Mapping[str, Any]
) -> GraphStore:
    """A graph whose store is closed with it; what is no option of the graph is one of the store."""
    from alma.graph.relational import StorageGraph

    own = {name: options[name] for name in ("project_id", "by", "redact") if name in options}
    place = {name: value for name, value in options.items() if name not in own}
    return made(StorageGraph, what, {"storage": opened(place), **own, "close_storage": True})


_GRAPHS: dict[str, Maker[GraphStore]] = {
    "memory": _memory_graph,
    "neo4j": _neo4j_graph,
    "storage": _graph_in_storage,
    "sqlite": _graph_at("path", "db_path"),
    "postgres": _graph_in_postgres,
    "postgresql": _graph_in_postgres,
    "file": _graph_at("path", "storage_dir", lambda place: f"file://{place}"),
}


def _openai_model(what: str, options: Mapping[str, Any]) -> LanguageModel:
    from alma.llm.openai import OpenAIModel

    return made(OpenAIModel, what, {**openai_account(), **options})


def _azure_model(what: str, options: Mapping[str, Any]) -> LanguageModel:
    from alma.llm.azure import AzureOpenAIModel

    return made(AzureOpenAIModel, what, {**azure_account(), **options})


def _anthropic_model(what: str, options: Mapping[str, Any]) -> LanguageModel:
    from alma.llm.anthropic import AnthropicModel

    return made(AnthropicModel, what, {"api_key": os.environ.get("ANTHROPIC_API_KEY", ""), **options})


def _ollama_model(what: str, options: Mapping[str, Any]) -> LanguageModel:
    from alma.llm.ollama import OllamaModel

    return made(OllamaModel, what, options)


_MODELS: dict[str, Maker[LanguageModel]] = {
    "openai": _openai_model,
    "azure": _azure_model,
    "anthropic": _anthropic_model,
    "ollama": _ollama_model,
}
