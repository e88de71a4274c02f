"""Create embedders, caches, language models, judges and graph stores from a name and options."""

from __future__ import annotations

import inspect
import os
import re
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from alma.bootstrap.stores import open_storage
from alma.errors import ConfigurationError, shown
from alma.graph.base import masked
from alma.lazy import lazy_regex
from alma.model.secret import Secret

if TYPE_CHECKING:
    from alma.cache.base import CacheBackend
    from alma.config.settings import Settings
    from alma.embeddings.base import EmbeddingProvider
    from alma.graph.base import GraphStore, Redact
    from alma.judge.base import Judge
    from alma.llm.base import LanguageModel
    from alma.model.governance import Attribution
    from alma.redaction.redactor import Redactor
    from alma.storage.base import RecordStore, StorageBackend


T = TypeVar("T")
Options = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Provider:
    """A class (module:name), imported when it is needed, and the environment variables of options not given."""

    target: str
    environment: Mapping[str, str] | None = None

    def create(self, what: str, options: Options) -> Any:
        module, _, name = self.target.partition(":")
        defaults = {option: os.environ.get(name, "") for option, name in (self.environment or {}).items()}
        return construct(getattr(import_module(module), name), what, {**defaults, **options})


_OPENAI = {"api_key": "OPENAI_API_KEY"}
_AZURE_OPENAI = {"endpoint": "AZURE_OPENAI_ENDPOINT", "api_key": "AZURE_OPENAI_API_KEY"}
_GROQ = {"api_key": "GROQ_API_KEY"}
_ANTHROPIC = {"api_key": "ANTHROPIC_API_KEY"}

_EMBEDDERS = {
    "local": _Provider("alma.embeddings.local:LocalEmbedder"),
    "openai": _Provider("alma.embeddings.openai:OpenAIEmbedder", _OPENAI),
    "azure": _Provider("alma.embeddings.azure:AzureEmbedder", _AZURE_OPENAI),
    "mock": _Provider("alma.embeddings.mock:MockEmbedder"),
}
_CACHES = {
    "memory": _Provider("alma.cache.local:RetrievalCache"),
    "redis": _Provider("alma.cache.redis:RedisCache"),
    "null": _Provider("alma.cache.base:NullCache"),
}
_LANGUAGE_MODELS = {
    "openai": _Provider("alma.llm.openai:OpenAIModel", _OPENAI),
    "azure": _Provider("alma.llm.openai:AzureOpenAIModel", _AZURE_OPENAI),
    "anthropic": _Provider("alma.llm.anthropic:AnthropicModel", _ANTHROPIC),
    "groq": _Provider("alma.llm.openai:GroqModel", _GROQ),
    "ollama": _Provider("alma.llm.ollama:OllamaModel"),
}


def create_embedder(
    provider: str,
    cache_size: int | None = None,
    shared: Callable[[EmbeddingProvider], EmbeddingProvider] | None = None,
    *,
    model: str | None = None,
    dimensions: int | None = None,
    api_key: str | Secret | None = None,
    base_url: str | None = None,
    endpoint: str | None = None,
    deployment: str | None = None,
    api_version: str | None = None,
    timeout_seconds: float | None = None,
    attempts: int | None = None,
    backoff_seconds: float | None = None,
    batch_size: int | None = None,
    model_name: str | None = None,
    folder: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    window: int | None = None,
    dimension: int | None = None,
) -> EmbeddingProvider:
    """The embedding provider with this name; what is not given has the provider's default.

    * `local`: `model_name`, `folder`, `threads`, `window`.
    * `openai`: `model`, `dimensions`, `api_key`, `base_url`, `timeout_seconds`, `attempts`, `backoff_seconds`,
      `batch_size`.
    * `azure`: the same with `endpoint`, `deployment` and `api_version` instead of `base_url`.
    * `mock`: `dimension`.

    API keys and the Azure endpoint default to environment variables. An LRU cache keeps the vectors of the last
    10,000 texts unless `cache_size` says otherwise; 0 turns it off. `shared` adds a cache of several processes to it.
    """
    options = _given(locals())
    embedder: EmbeddingProvider = _create(_EMBEDDERS, provider, "embedding provider", f"{provider} embeddings", options)
    if shared is not None:
        embedder = shared(embedder)
    if cache_size == 0:
        return embedder
    from alma.embeddings.cached import DEFAULT_CACHE_SIZE, CachedEmbedder

    return CachedEmbedder(embedder, DEFAULT_CACHE_SIZE if cache_size is None else cache_size)


def create_cache(
    backend: str = "memory",
    *,
    max_entries: int | None = None,
    url: str | Secret | None = None,
    prefix: str | None = None,
    ttl_seconds: Mapping[str, float] | None = None,
    timeout_seconds: float | None = None,
    retry_after_seconds: float | None = None,
    clock: Callable[[], float] | None = None,
    mask: Callable[[str], str] | None = None,
) -> CacheBackend:
    """The cache of retrieval results with this name; what is not given has its default.

    * `memory`: `max_entries`, `clock`.
    * `redis`: `url`, `prefix`, `ttl_seconds`, `timeout_seconds`, `retry_after_seconds`, `clock`, `mask`.
    * `null`: keeps nothing.
    """
    cache: CacheBackend = _create(_CACHES, backend, "cache", f"the {backend} cache", _given(locals()))
    return cache


def create_language_model(
    provider: str,
    *,
    model: str | None = None,
    api_key: str | Secret | None = None,
    base_url: str | None = None,
    endpoint: str | None = None,
    deployment: str | None = None,
    api_version: str | None = None,
    host: str | None = None,
    timeout_seconds: float | None = None,
    attempts: int | None = None,
    backoff_seconds: float | None = None,
) -> LanguageModel:
    """The language model of this provider; what is not given has the provider's default.

    * `openai`, `anthropic`, `groq`: `model`, `api_key`, `base_url`.
    * `azure`: `deployment`, `endpoint`, `api_key`, `api_version`.
    * `ollama`: `model`, `host`.

    All take `timeout_seconds`, `attempts` and `backoff_seconds`. API keys and the Azure endpoint default to environment
    variables.
    """
    what, options = "language model provider", _given(locals())
    made: LanguageModel = _create(_LANGUAGE_MODELS, _folded(provider), what, f"the {what} {provider!r}", options)
    return made


def local_model() -> tuple[str, int]:
    """Name and vector length of the default embedding model."""
    embedder = create_embedder("local", cache_size=0)
    return embedder.model, embedder.dimension


def language_model_of(settings: Settings) -> LanguageModel | None:
    """The language model that a configuration describes, or None."""
    if settings.llm is None:
        return None
    options = settings.llm.model_dump(exclude={"provider"}, exclude_none=True)
    try:
        return create_language_model(settings.llm.provider, **options)
    except ConfigurationError as exc:
        raise ConfigurationError(f"llm.provider is {settings.llm.provider}: {exc}") from exc


def judge_of(settings: Settings, llm: LanguageModel | None, redactor: Redactor | None) -> Judge:
    """The judge that a configuration describes; texts with secrets are never sent to the language model."""
    from alma.judge import LLMJudge, StrictJudge, default_judge

    match settings.judge:
        case "strict":
            return StrictJudge()
        case "local":
            return default_judge()
        case "llm" if llm is not None:
            return LLMJudge(llm, redactor=redactor)
        case _:
            raise ConfigurationError("judge is llm, but llm.provider is missing; add it, or choose local or strict")


def _given(arguments: Options) -> dict[str, Any]:
    """The options among the arguments of a function that have a value."""
    return {name: value for name, value in arguments.items() if value is not None and name not in _NO_OPTIONS}


_NO_OPTIONS = ("provider", "backend", "cache_size", "shared", "redact")


def _create(providers: Mapping[str, _Provider], name: str, kind: str, what: str, options: Options) -> Any:
    return _known(providers, name, kind).create(what, options)


def _known(table: Mapping[str, T], name: str, kind: str) -> T:
    if not isinstance(name, str) or name not in table:
        raise ConfigurationError(f"unknown {kind} {shown(name)}: choose {', '.join(table)}")
    return table[name]


def _folded(name: str) -> str:
    return name.strip().lower() if isinstance(name, str) else name


# ---------------------------------------------------------------------- graph stores


def create_graph_store(
    backend: str = "memory",
    *,
    project_id: str | None = None,
    redact: Redact | None = masked,
    by: Attribution | None = None,
    storage: RecordStore | None = None,
    close_storage: bool | None = None,
    uri: str | None = None,
    username: str | None = None,
    password: str | Secret | None = None,
    database: str | None = None,
    timeout_seconds: float | None = None,
    path: str | os.PathLike[str] | None = None,
    db_path: str | os.PathLike[str] | None = None,
    storage_dir: str | os.PathLike[str] | None = None,
    dsn: str | None = None,
    url: str | None = None,
    host: str | None = None,
    port: int | None = None,
    user: str | None = None,
    ssl_mode: str | None = None,
    schema: str | None = None,
    pool_size: int | None = None,
    read_url: str | None = None,
    vector_index_above: int | None = None,
    durability: str | None = None,
    embedding_model: str | None = None,
    embedding_dim: int | None = None,
) -> GraphStore:
    """The graph store with this name; what is not given has its default.

    * `memory`: in this process, for as long as it lives.
    * `neo4j`: `uri`, `username`, `password`, `timeout_seconds`, and `database` if it is not the default one.
    * `storage`: in an open store (`storage=alma.storage`).
    * `sqlite` and `file` (`path`, or `db_path` and `storage_dir`), `postgres` (`dsn` or `url`, or `host`, `port`,
      `database`, `user`, `password`, `ssl_mode`): in a store that is opened and closed with the graph; the other
      options are those of `open_storage`.

    All but `memory` take `project_id`, the project whose graph is read and written, and `redact`, which removes secrets
    from every text before it is stored (by default the redactor of ingest, with None nothing).
    """
    options = _given(locals())
    if redact is not masked:
        options["redact"] = redact
    create = _known(_GRAPHS, _folded(backend), "graph store")
    return create(f"the graph store {backend!r}", options)


def _graph_at(option: str, alias: str, address: Callable[[str], str] = str) -> Callable[[str, Options], GraphStore]:
    """Creates graphs in a store at the path or URL given by an option or its alias."""

    def create(what: str, options: Options) -> GraphStore:
        place = options.get(option) or options.get(alias)
        if not place:
            raise ConfigurationError(f"this graph store needs {option}=…, the path or address of its store")
        rest = {name: value for name, value in options.items() if name not in (option, alias)}
        return _graph_in_new_store(
            lambda more: construct(open_storage, what, {"store": address(str(place)), **more}), what, rest
        )

    return create


def _graph_in_postgres(what: str, options: Options) -> GraphStore:
    if "host" not in options:
        return _graph_at("dsn", "url")(what, options)
    from alma.storage.postgresql import PostgreSQLStorage

    return _graph_in_new_store(lambda place: construct(PostgreSQLStorage, what, place), what, options)


def _graph_in_new_store(open_store: Callable[[Options], StorageBackend], what: str, options: Options) -> GraphStore:
    """A graph that closes its store; options that are not the graph's are the store's."""
    from alma.graph.relational import StorageGraph

    own = {name: options[name] for name in ("project_id", "by", "redact") if name in options}
    place = {name: value for name, value in options.items() if name not in own}
    return construct(StorageGraph, what, {"storage": open_store(place), **own, "close_storage": True})


_GRAPHS: dict[str, Callable[[str, Options], GraphStore]] = {
    "memory": _Provider("alma.graph.memory:InMemoryGraph").create,
    "neo4j": _Provider("alma.graph.neo4j:Neo4jGraph").create,
    "storage": _Provider("alma.graph.relational:StorageGraph").create,
    "sqlite": _graph_at("path", "db_path"),
    "postgres": _graph_in_postgres,
    "postgresql": _graph_in_postgres,
    "file": _graph_at("path", "storage_dir", lambda place: f"file://{place}"),
}


# ---------------------------------------------------------------------- options from a configuration

_CONFIG_KEYS: dict[str, dict[str, tuple[str, ...]]] = {
    "azure": {
        "endpoint": ("azure.openai_endpoint", "azure.endpoint"),
        "api_key": ("azure.openai_key", "azure.key"),
        "deployment": ("azure.openai_deployment",),
        "model": ("azure.openai_model",),
        "api_version": ("azure.openai_api_version",),
        "dimensions": ("embedding_dim",),
    },
    "openai": {
        "api_key": ("openai.api_key",),
        "model": ("openai.model",),
        "base_url": ("openai.base_url",),
        "dimensions": ("embedding_dim",),
    },
    "local": {
        "folder": ("local.folder",),
        "model_name": ("local.model_name",),
        "window": ("local.window",),
        "threads": ("local.threads",),
    },
    "mock": {"dimension": ("embedding_dim",)},
}


def embedding_options(settings: Settings, provider: str) -> dict[str, Any]:
    """The constructor options of an embedding provider; embedding_dim applies to the configured provider only."""
    options = {
        option: next(filter(None, (_value(settings, key) for key in keys)), None)
        for option, keys in _CONFIG_KEYS.get(provider, {}).items()
    }
    if provider != settings.embedding_provider:
        options = {option: value for option, value in options.items() if not option.startswith("dimension")}
    return {option: value for option, value in options.items() if value}


def with_config_keys(problem: ConfigurationError, provider: str) -> ConfigurationError:
    """An error about constructor options, with the configuration keys in place of the options."""
    keys = _CONFIG_KEYS.get(provider, {})
    options = re.compile(rf"(?<![\w.])({'|'.join(keys)})(?:=…|(?= (?:is|must)\b))")
    sentence = options.sub(lambda option: keys[option[1]][0], str(problem))
    return ConfigurationError(f"embedding_provider is {provider}: {sentence}")


def _value(settings: Settings, key: str) -> Any:
    value: Any = settings
    for step in key.split("."):
        value = getattr(value, step)
    return value


_TYPE_NAMES: dict[Any, tuple[tuple[type, ...], str]] = {
    bool: ((bool,), "True or False"),
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    str: ((str,), "text"),
    Secret: ((str, Secret), "text"),
    os.PathLike: ((str, os.PathLike), "a path"),
    types.NoneType: ((types.NoneType,), "None"),
}
_UNEXPECTED = lazy_regex(r"unexpected keyword argument '(\w+)'")


def construct(cls: Callable[..., T], what: str, options: Mapping[str, Any]) -> T:
    """Call the class with the options; error messages call it `what`."""
    parameters = inspect.signature(cls).parameters
    known = [name for name, each in parameters.items() if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    takes_others = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    unknown = next((name for name in options if name not in known), None)
    if unknown is not None and not takes_others:
        raise _unknown_option(unknown, what, known)
    missing = [name for name in known if parameters[name].default is inspect.Parameter.empty and name not in options]
    if missing:
        raise ConfigurationError(f"{what} cannot be made without {missing[0]}: give {missing[0]}=…")
    _check_types(cls, what, options)
    try:
        return cls(**options)
    except TypeError as exc:
        # A store opened inside the constructor may take fewer options than the constructor itself.
        if (found := _UNEXPECTED.search(str(exc))) is not None:
            raise _unknown_option(found[1], what, known) from exc
        raise ConfigurationError(f"the options of {what} are invalid: {exc}") from exc


def _unknown_option(name: str, what: str, known: list[str]) -> ConfigurationError:
    others = f", or choose {', '.join(known)}" if known else ""
    return ConfigurationError(f"unknown option {name!r} of {what}: leave it out{others}")


def _check_types(cls: Callable[..., Any], what: str, options: Mapping[str, Any]) -> None:
    try:
        typed = inspect.signature(cls, eval_str=True).parameters
    except NameError:
        return
    for name, value in options.items():
        expected = _expected_types(typed[name].annotation) if name in typed else None
        if expected is not None and not _matches(value, expected):
            names = " or ".join(dict.fromkeys(name for _, name in expected))
            raise ConfigurationError(f"{name} of {what} must be {names}, not {type(value).__name__}")


def _matches(value: object, expected: list[tuple[tuple[type, ...], str]]) -> bool:
    kinds = {kind for some, _ in expected for kind in some}
    # bool is a subclass of int, but True is not a number to a user.
    return isinstance(value, tuple(kinds)) and (not isinstance(value, bool) or bool in kinds)


def _expected_types(hint: Any) -> list[tuple[tuple[type, ...], str]] | None:
    """The types that an annotation accepts, with their names; None if one of them is not checked."""
    parts = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    found = [_TYPE_NAMES.get(typing.get_origin(part) or part) for part in parts]
    return None if None in found else [each for each in found if each is not None]
