"""Open stores by path or URL, choose their vector index, and migrate, re-embed, restore and partition them."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alma.closeable import Closeable
from alma.errors import ConfigurationError, shown
from alma.paths import expand_home

if TYPE_CHECKING:
    from alma.embeddings.base import EmbeddingProvider
    from alma.memory.updates import Screen
    from alma.model.secret import Secret
    from alma.storage.base import StorageBackend
    from alma.storage.migrations.base import Migrator
    from alma.storage.postgres.partitions import Partition
    from alma.storage.postgresql import PostgreSQLStorage
    from alma.sync.reembed import Progress
    from alma.vectors.base import VectorIndex


IN_MEMORY = "memory://"
FILE_SCHEME = "file://"
_POSTGRES_SCHEMES = ("postgresql://", "postgres://")
_SQLITE_SCHEME = "sqlite:///"
COSMOS_SCHEMES = {"azure": "https", "azure+http": "http"}
"""The schemes of Cosmos DB stores, and how their accounts are reached."""

_FORMS = (
    "a file (alma.db), sqlite:///path, file:///folder, postgresql://user:password@host/database, "
    "azure://account.documents.azure.com/database or memory://"
)


def open_storage(
    store: str | os.PathLike[str],
    embedding_dim: int = 384,
    *,
    embedding_model: str | None = None,
    durability: str | None = None,
    pool_size: int | None = None,
    schema: str | None = None,
    vector_index_above: int | None = None,
    read_url: str | None = None,
    key: str | Secret | None = None,
    create_if_not_exists: bool | None = None,
    lease_seconds: float | None = None,
    client_options: Mapping[str, Any] | None = None,
) -> StorageBackend:
    """Open a store by path or URL: an SQLite file, `file://` a directory of JSON, `postgresql://` a database,
    `azure://` a database of Azure Cosmos DB.

    `memory://` is a new store in memory, which lasts as long as the object. `durability` is for SQLite; `pool_size`,
    `schema`, `vector_index_above` and `read_url` for PostgreSQL; `key`, `create_if_not_exists`, `lease_seconds` and
    `client_options` for Cosmos DB.
    """
    given = {
        "embedding_model": embedding_model,
        "durability": durability,
        "pool_size": pool_size,
        "schema": schema,
        "vector_index_above": vector_index_above,
        "read_url": read_url,
        "key": key,
        "create_if_not_exists": create_if_not_exists,
        "lease_seconds": lease_seconds,
        "client_options": client_options,
    }
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if not isinstance(store, str):
        if not isinstance(store, os.PathLike):
            raise ConfigurationError(f"the store must be a path or URL, not {shown(store)}: {_FORMS}")
        store = os.fspath(store)
    if store == IN_MEMORY:
        from alma.storage.in_memory import InMemoryStorage

        return InMemoryStorage(embedding_dim=embedding_dim, **options)
    if is_postgres(store):
        from alma.storage.postgresql import PostgreSQLStorage

        return PostgreSQLStorage.from_dsn(store, embedding_dim=embedding_dim, **options)
    if is_cosmos(store):
        from alma.storage.azure_cosmos import AzureCosmosStorage

        return AzureCosmosStorage.from_url(store, embedding_dim=embedding_dim, **options)
    if store.startswith(FILE_SCHEME):
        from alma.storage.file_based import FileBasedStorage

        return FileBasedStorage(file_folder(store), embedding_dim=embedding_dim, **options)
    from alma.storage.sqlite_local import SQLiteStorage

    return SQLiteStorage(sqlite_path(store), embedding_dim=embedding_dim, **options)


class StoreUser(Closeable):
    """Base of classes that work on a given store, or open and close the default store of the folder."""

    def __init__(self, storage: StorageBackend | None, screen: Screen) -> None:
        from alma.bootstrap import open_default
        from alma.memory.updates import screen_with, without_secrets
        from alma.storage.base import checked_storage

        self._owns_storage = storage is None
        self._screen = screen
        if storage is None:
            storage, redactor = open_default()
            self._screen = screen_with(redactor) if screen is without_secrets else screen
        self._storage = checked_storage(type(self).__name__, storage)

    def close(self) -> None:
        """Close the store if it was opened here; a given store stays open."""
        if self._owns_storage:
            self._storage.close()


def open_for_own_model(store: str, schema: str = "public", new_model: tuple[str, int] | None = None) -> StorageBackend:
    """Open a store for the embedding model of most of its vectors; a store without vectors for `new_model`."""
    options = in_schema(store, schema)
    if is_cosmos(store) and new_model is not None:
        # The containers of a new store are made for vectors of one length.
        options = {"embedding_model": new_model[0], "embedding_dim": new_model[1]}
    storage = open_storage(store, **options)
    model = _main_model(storage) or new_model
    if model is None or model == (storage.embedding_model, storage.embedding_dim):
        return storage
    storage.close()
    return open_storage(store, **{**options, "embedding_model": model[0], "embedding_dim": model[1]})


def open_existing(store: str, schema: str = "public") -> StorageBackend:
    """Open an existing store for its own embedding model."""
    require_existing(store)
    return open_for_own_model(store, schema)


@contextmanager
def open_target(
    store: str, schema: str = "public", new_model: tuple[str, int] | None = None, *, dry_run: bool = False
) -> Iterator[StorageBackend]:
    """Open a store to import into, creating it if needed; a dry run uses a temporary store."""
    if not dry_run or store_exists(store):
        with open_for_own_model(store, schema, new_model) as storage:
            yield storage
        return
    with (
        tempfile.TemporaryDirectory(prefix="alma-dry-run-") as folder,
        open_for_own_model(str(Path(folder) / "alma.db"), schema, new_model) as storage,
    ):
        yield storage


def _main_model(storage: StorageBackend) -> tuple[str, int] | None:
    models = storage.models()
    if len(models) < 2:
        return next(iter(models.items()), None)
    from alma.model.kinds import KINDS
    from alma.model.scope import Scope

    embedded = [cls for cls in KINDS if cls.spec.embeds]

    def lacking(model: str) -> int:
        return sum(storage.count_without_vector(cls, model, Scope.everywhere()) for cls in embedded)

    name = min(models, key=lambda model: (lacking(model), model))
    return name, models[name]


def open_vector_index(
    storage: StorageBackend,
    model: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    choice: str = "auto",
) -> VectorIndex:
    """A vector index of a store: mapped files beside an SQLite file, or native, which is the store's own.

    `auto` is the mapped one where the store allows it. A native index that is not the server's scans exactly.
    """
    from alma.storage.base import Capability

    path = getattr(storage, "path", None)
    if Capability.VECTOR_FEED in storage.capabilities and isinstance(path, Path) and choice != "native":
        from alma.vectors.mapped import MappedIndex

        return MappedIndex(storage, path.with_name(f"{path.name}.vectors"), model, progress=progress)
    if choice == "mapped":
        raise ConfigurationError("vectors is mapped, which needs an SQLite store; leave it out, or choose native")
    from alma.vectors.native import NativeIndex

    return NativeIndex(storage, model, exact=Capability.VECTOR_INDEX not in storage.capabilities)


def store_exists(store: str) -> bool:
    """Whether a store in files exists; for a server, True."""
    if is_postgres(store) or is_cosmos(store):
        return True
    return file_folder(store).is_dir() if store.startswith(FILE_SCHEME) else sqlite_path(store).is_file()


def require_existing(store: str) -> None:
    """Raise ConfigurationError if a store in files does not exist."""
    if not store_exists(store):
        place = file_folder(store) if store.startswith(FILE_SCHEME) else sqlite_path(store)
        raise ConfigurationError(f"there is no store at {place}")


def is_same_store(one: str, other: str) -> bool:
    """Whether two names mean the same store."""
    if any(is_postgres(store) or is_cosmos(store) for store in (one, other)):
        return one == other
    places = (Path(each.removeprefix(FILE_SCHEME).removeprefix(_SQLITE_SCHEME)).resolve() for each in (one, other))
    return len(set(places)) == 1


def is_sqlite(store: str | os.PathLike[str]) -> bool:
    """Whether a store is an SQLite file."""
    named = os.fspath(store) if isinstance(store, os.PathLike) else store
    return isinstance(named, str) and ("://" not in named or named.startswith(_SQLITE_SCHEME))


def is_postgres(store: str) -> bool:
    """Whether a store is a PostgreSQL database."""
    return store.startswith(_POSTGRES_SCHEMES)


def is_cosmos(store: str) -> bool:
    """Whether a store is a database of Azure Cosmos DB."""
    return store.partition("://")[0] in COSMOS_SCHEMES and "://" in store


def require_containers(store: str) -> None:
    """Raise an error if a Cosmos DB store does not exist, or cannot be opened."""
    from alma.storage.azure_cosmos import AzureCosmosStorage

    AzureCosmosStorage.from_url(store, create_if_not_exists=False).close()


def in_schema(store: str, schema: str) -> dict[str, Any]:
    """The schema as an option, for stores that have one."""
    return {"schema": schema} if is_postgres(store) else {}


def sqlite_path(store: str) -> Path:
    """The path of an SQLite store."""
    if "://" in store and not store.startswith(_SQLITE_SCHEME):
        raise ConfigurationError(f"unknown kind of store {store.partition('://')[0]!r}; give {_FORMS}")
    return _path_in(store, _SQLITE_SCHEME)


def file_folder(store: str) -> Path:
    """The directory of a store of JSON files."""
    return _path_in(store, FILE_SCHEME)


def _path_in(store: str, scheme: str) -> Path:
    path = store.removeprefix(scheme)
    if not path.strip():
        raise ConfigurationError(f"the store must not be empty: {_FORMS}")
    return expand_home(path)


def migrate_storage(store: str, schema: str = "public") -> None:
    """Migrate a store to the newest schema."""
    open_storage(store, **in_schema(store, schema)).close()


def reembed_storage(
    store: str,
    embedder: EmbeddingProvider,
    on_progress: Callable[[Progress], object] = lambda _: None,
    batch_size: int = 64,
    schema: str = "public",
) -> int:
    """Move an existing store to the embedder's model, or continue; returns the number of vectors created."""
    from alma.sync.reembed import reembed

    require_existing(store)
    # Migrate first with the old model, so that older vectors keep their model name.
    migrate_storage(store, schema)
    with open_storage(store, embedder.dimension, embedding_model=embedder.model, **in_schema(store, schema)) as storage:
        return reembed(storage, embedder, on_progress, batch_size)


def restore_storage(
    file: str,
    store: str,
    force: bool = False,
    on_progress: Callable[[int, int], object] = lambda done, total: None,
    schema: str = "public",
) -> None:
    """Replace the contents of a store with a backup; the store is created if needed."""
    from alma.storage.base import Capability
    from alma.storage.sqlite.copies import require_sound
    from alma.transfer import restore_store, verify_export
    from alma.transfer.importing import is_database

    path = Path(file)
    if not is_database(path):
        header = verify_export(path)
        with open_for_own_model(store, schema, (header.embedding_model, header.embedding_dim)) as storage:
            return restore_store(path, storage, force=force, on_progress=on_progress)
    require_sound(path)
    with open_for_own_model(store, schema) as storage:
        if Capability.COPY in storage.capabilities:
            return restore_store(path, storage, force=force, on_progress=on_progress)
    with _as_export(path) as exported:
        return restore_storage(str(exported), store, force, on_progress, schema)


@contextmanager
def _as_export(database: Path) -> Iterator[Path]:
    """A copy of an SQLite store as an export, which every store can import."""
    from alma.transfer import export_store

    with tempfile.TemporaryDirectory(prefix="alma-restore-") as folder:
        copy = Path(folder) / "copy.db"
        shutil.copyfile(database, copy)
        with open_for_own_model(str(copy)) as storage:
            export_store(storage, Path(folder) / "copy.jsonl")
        yield Path(folder) / "copy.jsonl"


def require_sound_store(store: str, *, quick: bool = False) -> None:
    """Check an SQLite file for damage; servers check their own.

    A quick check does not compare indexes with their tables.
    """
    if is_postgres(store) or is_cosmos(store):
        return
    from alma.storage.sqlite.copies import require_whole

    require_whole(sqlite_path(store), quick=quick)


@contextmanager
def open_migrator(store: str, schema: str = "public") -> Iterator[Migrator]:
    """The migrator of an existing store, which is not changed by opening it."""
    if is_postgres(store):
        with _postgres_migrator(store, schema) as migrator:
            yield migrator
        return
    if store.startswith(FILE_SCHEME):
        raise ConfigurationError("a directory of JSON files has no schema to migrate")
    if is_cosmos(store):
        raise ConfigurationError("the documents of a Cosmos DB store have no schema to migrate")
    require_existing(store)
    path = sqlite_path(store)
    from alma.storage.sqlite.connections import our_error
    from alma.storage.sqlite.migrations import SQLiteMigrator

    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode={_looking_mode(path)}", uri=True)) as connection:
        try:
            connection.execute("PRAGMA query_only = ON")
            yield SQLiteMigrator(path, connection)
        except sqlite3.Error as exc:
            raise our_error(path, exc) from exc


@contextmanager
def _postgres_migrator(store: str, schema: str) -> Iterator[Migrator]:
    from alma.storage.postgres.migrations import PostgresMigrator
    from alma.storage.postgresql import administration

    with administration(store, schema) as connection:
        yield PostgresMigrator(connection, schema)


def _looking_mode(path: Path) -> str:
    """The open mode that leaves the file unchanged.

    For reading, SQLite creates files that only a writer can remove; a log left by a crashed writer must stay for the
    next one.
    """
    has_log = path.with_name(f"{path.name}-wal").exists()
    return "ro" if has_log or not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)) else "rw"


def partition_tables(
    store: str,
    tables: Iterable[str] | None = None,
    interval: str = "month",
    ahead: int = 3,
    schema: str = "public",
    parts: int = 8,
    on_progress: Callable[[int, int], object] = lambda done, total: None,
) -> list[Partition]:
    """Partition tables of a PostgreSQL store by time, `vectors` by the hash of a record's id, or add partitions."""
    with open_postgres(store, schema) as storage, storage.administering() as connection:
        from alma.storage.postgres.partitions import PARTITIONED, partition
        from alma.storage.postgres.vector_partitions import partition_vectors

        made: list[Partition] = []
        for name in tables or PARTITIONED:
            if name == "vectors":
                made += partition_vectors(connection, parts, on_progress)
            else:
                made += partition(connection, name, interval, ahead)
        return made


def open_postgres(store: str, schema: str = "public") -> PostgreSQLStorage:
    """Open a PostgreSQL store for its administration."""
    if not is_postgres(store):
        raise ConfigurationError(f"this needs a PostgreSQL store, a URL like postgresql://…, not {store!r}")
    from alma.storage.postgresql import PostgreSQLStorage

    return PostgreSQLStorage.from_dsn(store, schema=schema, pool_size=2)
