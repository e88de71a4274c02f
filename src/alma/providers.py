"""Wiring of what has a name in a call: graphs, and language models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from alma.bootstrap.models import Maker, chosen
from alma.bootstrap.models import create_language_model as create_language_model
from alma.bootstrap.stores import open_storage
from alma.errors import ConfigurationError
from alma.fitting import made

if TYPE_CHECKING:
    from alma.graph.base import GraphStore
    from alma.storage.base import StorageBackend


def create_graph_store(backend: str = "memory", **options: Any) -> GraphStore:
    """The graph with this name: memory, neo4j, or one in a store of memories.

    * `memory`: in this process, for as long as it lives.
    * `neo4j`: `uri`, `username`, `password`, and `database`, if it is not the default one.
    * `storage`: in an open store (`storage=alma.storage`).
    * `sqlite` (`path`), `postgres` (`dsn`, or `host`, `database` …), `file` (`path`): in a store that is opened for it
      and closed with it.

    All but `memory` take `project_id`, because those of other projects are not seen, and `redact`, which takes secrets
    out of every text before it is stored, as ingest does unless something else is given.
    """
    return chosen(_GRAPHS, backend, "graph store", options)


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
