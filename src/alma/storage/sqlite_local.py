"""SQLite: the default store, one file that any number of threads and processes share."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Self

from alma.errors import ConfigurationError, shown
from alma.paths import expand_home, make_directory
from alma.storage.base import DEFAULT_MODEL, Capability, StorageBackend
from alma.storage.records import USUAL_DIMENSIONS, described
from alma.storage.sql.statements import Dialect, StoreCache
from alma.storage.sqlite import copies as sqlite_copies
from alma.storage.sqlite import fulltext as sqlite_fulltext
from alma.storage.sqlite import legacy
from alma.storage.sqlite.backend import SQLiteBackend
from alma.storage.sqlite.checkpoints import Checkpoints, empty_log
from alma.storage.sqlite.connections import Connections, Durability, roll_back, translated
from alma.storage.sqlite.fulltext import make_missing
from alma.storage.sqlite.migrations import SQLiteMigrator, clear_unfinished_backups
from alma.text.tokens import prepare_to_cut


class SQLiteStorage(StorageBackend):
    """A store in one SQLite file, in WAL mode: readers never wait, writers queue.

    With `durability="process"`, the default, an acknowledged write survives the death of any process; with `"power"`
    it also survives the death of the machine, at the price of one disk flush per transaction.
    """

    storage_type = "sqlite"

    def __init__(
        self,
        db_path: str | os.PathLike[str],
        embedding_dim: int = 384,
        embedding_model: str = DEFAULT_MODEL,
        durability: Durability = "process",
    ) -> None:
        super().__init__(embedding_dim, embedding_model)
        if durability not in ("process", "power"):
            raise ConfigurationError(f"durability must be 'process' or 'power', not {durability!r}")
        self.path = _checked_path(db_path)
        self._connections = Connections(self.path, durability)
        self._dialect = Dialect("sqlite")
        self._cache = StoreCache("sqlite")
        self._writer = threading.Lock()
        self._checkpoints = Checkpoints(self.path, self._writer, self._connections.file)
        with self._connections.lent() as connection, translated(self.path):
            SQLiteMigrator(self.path, connection, adopt=self._adopt).migrate()
            clear_unfinished_backups(self.path, connection)
            make_missing(connection, self._dialect.names)
            sqlite_fulltext.tune(connection)
        prepare_to_cut()

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """The store that a configuration's `storage_dir`, `db_name` and `embedding_dim` describe."""
        settings = described(config)
        path = expand_home(settings.storage_dir) / settings.db_name
        return cls(path, embedding_dim=settings.embedding_dim or USUAL_DIMENSIONS)

    def _adopt(self, connection: sqlite3.Connection) -> None:
        legacy.adopt(self._backend_on(connection, write=True))

    def _backend_on(self, connection: sqlite3.Connection, *, write: bool) -> SQLiteBackend:
        return SQLiteBackend(
            connection,
            self.path,
            self._dialect,
            self._cache,
            self.embedding_dim,
            self.embedding_model,
            writable=write,
        )

    @contextmanager
    def _begin(self, *, write: bool) -> Iterator[SQLiteBackend]:
        connection = self._connections.take()
        before = connection.total_changes
        try:
            # Threads of one process wait for each other at the lock, which is fairer than SQLite's polling.
            with self._writer if write else nullcontext(), translated(self.path):
                if write:
                    self._connections.file.require_in_place()
                connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                backend = self._backend_on(connection, write=write)
                try:
                    yield backend
                    if write:
                        self._connections.file.require_in_place()
                    connection.execute("COMMIT")
                except BaseException:
                    roll_back(connection)
                    raise
                finally:
                    backend.close()
                written = connection.total_changes - before
        finally:
            self._connections.give_back(connection)
        if write:
            self._checkpoints.wrote(written)

    @property
    def capabilities(self) -> frozenset[Capability]:
        return frozenset({Capability.VECTOR_FEED, Capability.COPY})

    def require_in_place(self) -> None:
        self._connections.file.require_in_place()

    def copy_to(self, path: Path, on_progress: Callable[[int, int], object] = lambda done, total: None) -> None:
        self.require_in_place()
        with translated(path):
            sqlite_copies.copy(self.path, path, on_progress)

    def copy_from(self, path: Path) -> None:
        sqlite_copies.require_sound(path)
        # A copy of the copy is migrated first, so that no reader sees an older schema.
        with tempfile.TemporaryDirectory(prefix=f".{self.path.name}.", dir=self.path.parent) as folder:
            ready = Path(folder) / self.path.name
            shutil.copyfile(path, ready)
            SQLiteStorage(ready, self.embedding_dim, self.embedding_model).close()
            with self._writer, translated(self.path):
                self.require_in_place()
                sqlite_copies.put_back(ready, self.path)
        self._cache = StoreCache("sqlite")

    def _generation(self) -> str:
        return self._connections.generation()

    def _scrub(self) -> None:
        """Rewrite the file: SQLite leaves what was deleted in free pages, and full text leaves its words in old pieces.

        Readers go on meanwhile; writers wait. A reader that holds an old snapshot keeps the log from being emptied
        until the next checkpoint.
        """
        self._checkpoints.finish()
        with self._connections.lent() as connection, self._writer, translated(self.path):
            self.require_in_place()
            sqlite_fulltext.rewrite(connection)
            connection.execute("VACUUM")
            empty_log(connection)

    def close(self) -> None:
        self._checkpoints.finish()
        self._connections.close()


def _checked_path(db_path: str | os.PathLike[str]) -> Path:
    if not isinstance(db_path, str | os.PathLike):
        raise ConfigurationError(f"db_path must be the path of a file, not {db_path!r}")
    text = os.fspath(db_path)
    if text in ("", ":memory:") or text.startswith("file:"):
        raise ConfigurationError(
            f"db_path must be the path of a file, not {text!r}: several connections share the store, "
            f"which a database of SQLite in memory cannot do; open memory:// (InMemoryStorage) or a file instead"
        )
    path = Path(text)
    try:
        if "\x00" in text:
            raise ValueError("it contains the NUL character")
        if not _is_file_name(text):
            raise ValueError("it contains half of a character")
        if path.is_dir():
            raise ConfigurationError(f"db_path {text!r} is a folder; name a file in it, for example {path / 'alma.db'}")
        make_directory(path.parent)
    except (OSError, ValueError) as exc:
        reason = getattr(exc, "strerror", None) or exc
        raise ConfigurationError(f"there can be no store at {shown(text)} ({reason}): name another db_path") from exc
    return path


def _is_file_name(text: str) -> bool:
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True
