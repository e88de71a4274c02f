"""Wiring of what is done to a whole store: migrations, another model, backups that come back, partitions."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from alma.bootstrap.stores import (
    FILE_SCHEME,
    in_schema,
    is_postgres,
    open_as_it_is,
    open_storage,
    require_existing,
    sqlite_path,
)
from alma.errors import ConfigurationError

if TYPE_CHECKING:
    from alma.embeddings.base import EmbeddingProvider
    from alma.storage.migrations.base import Migrator
    from alma.storage.postgres.partitions import Partition
    from alma.sync.reembed import Progress


def migrate_storage(store: str, schema: str = "public") -> None:
    """Bring a store to the newest schema, which opening it does."""
    open_storage(store, **in_schema(store, schema)).close()


def reembed_storage(
    store: str,
    embedder: EmbeddingProvider,
    on_progress: Callable[[Progress], object] = lambda _: None,
    batch_size: int = 64,
    schema: str = "public",
) -> int:
    """Move an existing store to the embedder's model, or go on with that; returns how many vectors were made."""
    from alma.sync.reembed import reembed

    require_existing(store)
    # First as it is: an older file that is taken over now holds vectors of the model it had, not of the new one.
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
    """Make a store of any kind, which need not exist yet, what a backup of any kind holds."""
    from alma.storage.base import Capability
    from alma.storage.sqlite.copies import require_sound
    from alma.transfer import restore_store, verify_export
    from alma.transfer.backup import is_database

    path = Path(file)
    if not is_database(path):
        header = verify_export(path)
        with open_as_it_is(store, schema, (header.embedding_model, header.embedding_dim)) as storage:
            return restore_store(path, storage, force=force, on_progress=on_progress)
    require_sound(path)
    with open_as_it_is(store, schema) as storage:
        if Capability.COPY in storage.capabilities:
            return restore_store(path, storage, force=force, on_progress=on_progress)
    with _as_export(path) as exported:
        return restore_storage(str(exported), store, force, on_progress, schema)


@contextmanager
def _as_export(database: Path) -> Iterator[Path]:
    """A copy of an SQLite store as an export, which any store takes."""
    from alma.transfer import export_store

    with tempfile.TemporaryDirectory(prefix="alma-restore-") as folder:
        copy = Path(folder) / "copy.db"
        shutil.copyfile(database, copy)
        with open_as_it_is(str(copy)) as storage:
            export_store(storage, Path(folder) / "copy.jsonl")
        yield Path(folder) / "copy.jsonl"


def require_sound_store(store: str, *, quick: bool = False) -> None:
    """Refuse an SQLite file that is damaged, after reading all of it; a server looks after its own.

    A quick look does not compare indexes with their tables.
    """
    if is_postgres(store):
        return
    from alma.storage.sqlite.copies import require_whole

    require_whole(sqlite_path(store), quick=quick)


@contextmanager
def open_migrator(store: str, schema: str = "public") -> Iterator[Migrator]:
    """What can tell and change the schema of an existing store, without changing anything by being opened."""
    if is_postgres(store):
        with _postgres_migrator(store, schema) as migrator:
            yield migrator
        return
    if store.startswith(FILE_SCHEME):
        raise ConfigurationError("a folder of JSON files has no schema to migrate")
    require_existing(store)
    path = sqlite_path(store)
    from alma.storage.sqlite.errors import our_error
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
    """How a file is opened that is to be as it was afterwards.

    To read, SQLite makes files beside it, and only whoever may write clears them away again; what a writer that died
    has left there stays for the next one.
    """
    has_log = path.with_name(f"{path.name}-wal").exists()
    return "ro" if has_log or not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)) else "rw"


def partition_tables(
    store: str, tables: Iterable[str] | None = None, interval: str = "month", ahead: int = 3, schema: str = "public"
) -> list[Partition]:
    """Split tables of a PostgreSQL store by time, or prepare further partitions."""
    if not is_postgres(store):
        raise ConfigurationError(f"this needs a PostgreSQL store, a URL like postgresql://…, not {store!r}")
    from alma.storage.postgres.partitions import PARTITIONED, partition
    from alma.storage.postgresql import PostgreSQLStorage

    with PostgreSQLStorage.from_dsn(store, schema=schema, pool_size=1) as storage, storage.connection() as connection:
        chosen = tuple(tables or PARTITIONED)
        return [part for name in chosen for part in partition(connection, name, interval, ahead)]
