"""Wiring: the one place that knows which class keeps which store, makes the vectors or remembers answers."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from alma.errors import ConfigurationError

if TYPE_CHECKING:
    from alma.cache.base import CacheBackend
    from alma.embeddings.base import EmbeddingProvider
    from alma.storage.base import StorageBackend
    from alma.storage.sql.migrate import Migrator
    from alma.storage.sql.partitions import Partition
    from alma.sync.reembed import Progress
    from alma.vectors.base import VectorIndex

Made = TypeVar("Made")

_POSTGRES_SCHEMES = ("postgresql://", "postgres://")
_SQLITE_SCHEME = "sqlite:///"
_FILE_SCHEME = "file://"
_FORMS = "a file (alma.db), sqlite:///path, file:///folder or postgresql://user:password@host/database"


def open_storage(store: str, embedding_dim: int = 384, **options: Any) -> StorageBackend:
    """The store behind a path or URL: an SQLite file, `file://` a folder of JSON, `postgresql://` a database."""
    if _is_postgres(store):
        from alma.storage.postgresql import PostgreSQLStorage

        return PostgreSQLStorage.from_dsn(store, embedding_dim=embedding_dim, **options)
    if store.startswith(_FILE_SCHEME):
        from alma.storage.file_based import FileBasedStorage

        return FileBasedStorage(store.removeprefix(_FILE_SCHEME), embedding_dim=embedding_dim, **options)
    from alma.storage.sqlite_local import SQLiteStorage

    return SQLiteStorage(_sqlite_path(store), embedding_dim=embedding_dim, **options)


def open_existing_storage(store: str, schema: str = "public") -> StorageBackend:
    """The store behind a path or URL, for looking into it; a file that is not there is an error, not a new store."""
    if _is_postgres(store):
        return open_storage(store, schema=schema)
    if not store.startswith(_FILE_SCHEME):
        _existing(_sqlite_path(store))
    elif not Path(store.removeprefix(_FILE_SCHEME)).is_dir():
        raise ConfigurationError(f"there is no store at {store.removeprefix(_FILE_SCHEME)}")
    return open_storage(store)


def open_vector_index(
    storage: StorageBackend, model: str | None = None, progress: Callable[[int, int], None] | None = None
) -> VectorIndex:
    """The index that suits a store: mapped files beside an SQLite file, the server's own, or an exact scan."""
    from alma.storage.base import Capability

    path = getattr(storage, "path", None)
    if Capability.VECTOR_FEED in storage.capabilities and isinstance(path, Path):
        from alma.vectors.mapped import MappedIndex

        return MappedIndex(storage, path.with_name(f"{path.name}.vectors"), model, progress=progress)
    from alma.vectors.native import NativeIndex

    return NativeIndex(storage, model, exact=Capability.VECTOR_INDEX not in storage.capabilities)


def create_embedder(provider: str, cache_size: int | None = None, **options: Any) -> EmbeddingProvider:
    """The provider of embeddings with this name: local, openai, azure or mock; `options` are its constructor's.

    Keys and the Azure endpoint that are not given come from the environment. What was encoded last is remembered, for
    10,000 texts unless `cache_size` says otherwise; 0 remembers nothing.
    """
    make = _EMBEDDERS.get(provider)
    if make is None:
        raise ConfigurationError(f"{provider!r} is no provider of embeddings; choose {', '.join(_EMBEDDERS)}")
    embedder = _made(make, f"{provider} embeddings", options)
    if cache_size == 0:
        return embedder
    from alma.embeddings.cached import DEFAULT_CACHE_SIZE, CachedEmbedder

    return CachedEmbedder(embedder, DEFAULT_CACHE_SIZE if cache_size is None else cache_size)


def create_cache(backend: str = "memory", **options: Any) -> CacheBackend:
    """The cache of retrieval results with this name: memory, redis or null; `options` are its constructor's."""
    make = _CACHES.get(backend)
    if make is None:
        raise ConfigurationError(f"{backend!r} is no cache; choose {', '.join(_CACHES)}")
    return _made(make, f"the {backend} cache", options)


def reembed_storage(
    store: str,
    embedder: EmbeddingProvider,
    on_progress: Callable[[Progress], object] = lambda _: None,
    batch_size: int = 64,
    schema: str = "public",
) -> int:
    """Move an existing store to the embedder's model, or go on with that; returns how many vectors were made."""
    from alma.sync.reembed import reembed

    if not _is_postgres(store) and not store.startswith(_FILE_SCHEME):
        _existing(_sqlite_path(store))
    # First as it is: an older file that is taken over now holds vectors of the model it had, not of the new one.
    migrate_storage(store, schema)
    options: dict[str, Any] = {"schema": schema} if _is_postgres(store) else {}
    with open_storage(store, embedder.dimension, embedding_model=embedder.model, **options) as storage:
        return reembed(storage, embedder, on_progress, batch_size)


def migrate_storage(store: str, schema: str = "public") -> None:
    """Bring a store to the newest schema, which opening it does."""
    options: dict[str, Any] = {"schema": schema} if _is_postgres(store) else {}
    open_storage(store, **options).close()


@contextmanager
def open_migrator(store: str, schema: str = "public") -> Iterator[Migrator]:
    """What can tell and change the schema of an existing store, without changing anything by being opened."""
    if _is_postgres(store):
        with _postgres_migrator(store, schema) as migrator:
            yield migrator
        return
    if store.startswith(_FILE_SCHEME):
        raise ConfigurationError("a folder of JSON files has no schema to migrate")
    path = _existing(_sqlite_path(store))
    from alma.storage.sql.sqlite_migrations import SQLiteMigrator

    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        yield SQLiteMigrator(path, connection)


def partition_tables(
    store: str, tables: Iterable[str] | None = None, interval: str = "month", ahead: int = 3, schema: str = "public"
) -> list[Partition]:
    """Split tables of a PostgreSQL store by time, or prepare further partitions."""
    if not _is_postgres(store):
        raise ConfigurationError(f"this needs a PostgreSQL store, a URL like postgresql://…, not {store!r}")
    from alma.storage.postgresql import PostgreSQLStorage
    from alma.storage.sql.partitions import PARTITIONED, partition

    with PostgreSQLStorage.from_dsn(store, schema=schema, pool_size=1) as storage, storage.connection() as connection:
        chosen = tuple(tables or PARTITIONED)
        return [part for name in chosen for part in partition(connection, name, interval, ahead)]


def _made(make: Callable[[Mapping[str, Any]], Made], what: str, options: Mapping[str, Any]) -> Made:
    try:
        return make(options)
    except TypeError as exc:
        # What the constructor says about its arguments is what the caller got wrong.
        raise ConfigurationError(f"the options of {what} do not fit: {exc}") from exc


def _local_embedder(options: Mapping[str, Any]) -> EmbeddingProvider:
    from alma.embeddings.local import LocalEmbedder

    return LocalEmbedder(**options)


def _openai_embedder(options: Mapping[str, Any]) -> EmbeddingProvider:
    from alma.embeddings.openai import OpenAIEmbedder

    return OpenAIEmbedder(**{"api_key": os.environ.get("OPENAI_API_KEY", ""), **options})


def _azure_embedder(options: Mapping[str, Any]) -> EmbeddingProvider:
    from alma.embeddings.azure import AzureEmbedder

    known = {
        "endpoint": os.environ.get("AZURE_OPENAI_ENDPOINT", ""),
        "api_key": os.environ.get("AZURE_OPENAI_API_KEY", ""),
    }
    return AzureEmbedder(**{**known, **options})


def _mock_embedder(options: Mapping[str, Any]) -> EmbeddingProvider:
    from alma.embeddings.mock import MockEmbedder

    return MockEmbedder(**options)


_EMBEDDERS = {
    "local": _local_embedder,
    "openai": _openai_embedder,
    "azure": _azure_embedder,
    "mock": _mock_embedder,
}


def _memory_cache(options: Mapping[str, Any]) -> CacheBackend:
    from alma.cache.local import RetrievalCache

    return RetrievalCache(**options)


def _redis_cache(options: Mapping[str, Any]) -> CacheBackend:
    from alma.cache.redis import RedisCache

    return RedisCache(**options)


def _null_cache(options: Mapping[str, Any]) -> CacheBackend:
    from alma.cache.base import NullCache

    return NullCache(**options)


_CACHES = {"memory": _memory_cache, "redis": _redis_cache, "null": _null_cache}


@contextmanager
def _postgres_migrator(store: str, schema: str) -> Iterator[Migrator]:
    from alma.storage.postgresql import administration
    from alma.storage.sql.postgres_migrations import PostgresMigrator

    with administration(store, schema) as connection:
        yield PostgresMigrator(connection, schema)


def _is_postgres(store: str) -> bool:
    return store.startswith(_POSTGRES_SCHEMES)


def _sqlite_path(store: str) -> Path:
    if "://" in store and not store.startswith(_SQLITE_SCHEME):
        raise ConfigurationError(f"{store.partition('://')[0]!r} is no store that ALMA knows; give {_FORMS}")
    if not store.strip():
        raise ConfigurationError(f"the store must be named: {_FORMS}")
    return Path(store.removeprefix(_SQLITE_SCHEME))


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise ConfigurationError(f"there is no store at {path}")
    return path
