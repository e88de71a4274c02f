"""Wiring: the one place that knows which class keeps which store."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alma.errors import ConfigurationError

if TYPE_CHECKING:
    from alma.storage.base import StorageBackend
    from alma.storage.sql.migrate import Migrator
    from alma.storage.sql.partitions import Partition
    from alma.vectors.base import VectorIndex

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
