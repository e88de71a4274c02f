"""Create the engines beside the store that a configuration names: their projections, and the vector index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from alma.bootstrap.providers import construct
from alma.bootstrap.stores import open_vector_index
from alma.errors import ConfigurationError, MissingDependencyError

if TYPE_CHECKING:
    from alma.config.settings import Settings
    from alma.embeddings.base import EmbeddingProvider
    from alma.graph.walks import MemoryGraph
    from alma.storage.base import StorageBackend
    from alma.sync.projection import Projection
    from alma.vectors.base import VectorIndex


_READ_SECONDS = 2.0


class _Engine(NamedTuple):
    """A projection class (module:name), and its constructor options; None where the engine is not configured."""

    target: str
    options: Callable[[Settings, StorageBackend, EmbeddingProvider], Mapping[str, Any] | None]


def _qdrant_options(settings: Settings, storage: StorageBackend, embedder: EmbeddingProvider) -> dict[str, Any] | None:
    if settings.qdrant is None:
        return None
    space = {"model": storage.embedding_model, "dims": storage.embedding_dim}
    return {**settings.qdrant.model_dump(exclude_none=True), **space}


def _neo4j_options(settings: Settings, storage: StorageBackend, embedder: EmbeddingProvider) -> dict[str, Any] | None:
    return None if settings.neo4j is None else settings.neo4j.model_dump(exclude_none=True)


def _redis_options(settings: Settings, storage: StorageBackend, embedder: EmbeddingProvider) -> dict[str, Any] | None:
    chosen = settings.redis
    if chosen is None or not chosen.projection:
        return None
    ttls = {"query_results": settings.retrieval.cache_ttl_seconds, **chosen.ttl_seconds}
    return {"url": chosen.url, "prefix": chosen.prefix, "ttl_seconds": ttls}


_ENGINES = {
    "qdrant": _Engine("alma.vectors.qdrant:QdrantProjection", _qdrant_options),
    "neo4j": _Engine("alma.graph.neo4j_projection:Neo4jProjection", _neo4j_options),
    "redis": _Engine("alma.cache.redis_patterns:RedisProjection", _redis_options),
}


def open_projections(settings: Settings, storage: StorageBackend, embedder: EmbeddingProvider) -> list[Projection]:
    """The projections of the configured engines.

    Nothing is connected here: an engine that is down makes its projection lag, and the store works without it.
    """
    with ExitStack() as opened:
        projections = [
            opened.enter_context(_created(name, engine.target, options))
            for name, engine in _ENGINES.items()
            if (options := engine.options(settings, storage, embedder)) is not None
        ]
        opened.pop_all()
    return projections


def _created(name: str, target: str, options: Mapping[str, Any]) -> Projection:
    module, _, cls = target.partition(":")
    with required_by(name):
        made: Projection = construct(getattr(import_module(module), cls), f"the {name} projection", options)
    return made


@contextmanager
def required_by(name: str) -> Iterator[None]:
    """An error about a missing package names the server that needs it, and the extra."""
    try:
        yield
    except MissingDependencyError as exc:
        raise ConfigurationError(f"the {name} server is configured, but {exc}; or leave {name} out") from exc


def vector_index_of(settings: Settings, storage: StorageBackend, embedder: EmbeddingProvider) -> VectorIndex:
    """The configured vector index."""
    if settings.vectors != "qdrant":
        return open_vector_index(storage, choice=settings.vectors)
    if settings.qdrant is None:
        raise ConfigurationError("vectors is qdrant, but qdrant.url is missing; add it")
    options = settings.qdrant.model_dump(exclude_none=True, exclude={"replication_factor"})
    with required_by("qdrant"):
        cls = import_module("alma.vectors.qdrant").QdrantIndex
    made: VectorIndex = construct(cls, "the qdrant index", {"storage": storage, **options})
    return made


def memory_graph_of(settings: Settings) -> MemoryGraph | None:
    """The server on which relationships are walked, if that is not the store; nothing is connected here."""
    if settings.graph != "neo4j":
        return None
    if settings.neo4j is None:
        raise ConfigurationError("graph is neo4j, but neo4j.uri is missing; add it")
    options = settings.neo4j.model_dump(exclude_none=True)
    # A reader does not wait for as long as the relay does.
    options["timeout_seconds"] = min(options["timeout_seconds"], _READ_SECONDS)
    cls = import_module("alma.graph.neo4j_walks").Neo4jWalks
    with required_by("neo4j"):
        made: MemoryGraph = construct(cls, "the neo4j graph", options)
    return made
