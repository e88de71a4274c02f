"""SQLite: the default store, one file that any number of threads and processes share."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Literal, Self

from alma.errors import ConfigurationError, shown
from alma.paths import expand_home, make_directory
from alma.storage.base import DEFAULT_MODEL, Capability, StorageBackend
from alma.storage.records import USUAL_DIMENSIONS, described
from alma.storage.sql.statements import Dialect, StoreCache
from alma.storage.sqlite import copies as sqlite_copies
from alma.storage.sqlite import fulltext as sqlite_fulltext
from alma.storage.sqlite import legacy
from alma.storage.sqlite.backend import SQLiteBackend
from alma.storage.sqlite.connections import (
    BUSY_SECONDS,
    PAGE_BYTES,
    Connections,
    Durability,
    OpenFile,
    roll_back,
    translated,
)
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
        self.path = self.db_path = _checked_path(db_path)
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


_FRAME_BYTES = PAGE_BYTES + 24
_LOOK_AFTER_ROWS = 100
_CHECKPOINT_ROWS = 4_000
_CHECKPOINT_BYTES = 16 << 20
_MOST_BYTES_LEFT = 16 << 20
_MOST_BYTES_WHILE_WRITING = 48 << 20
_CHECKPOINT_PATIENCE_MS = 50
_READER_PATIENCE_MS = 2_000


class Checkpoints:
    """Moves what has gathered in the write-ahead log into the database, beside the writers instead of in their way."""

    def __init__(self, path: Path, writer: threading.Lock, file: OpenFile) -> None:
        self._path = path
        self._log = path.with_name(path.name + "-wal")
        self._writer = writer
        self._file = file
        self._running: threading.Thread | None = None
        self._tried_at_bytes = 0
        self._rows = 0
        self._look_at_rows = 0

    def wrote(self, rows: int) -> None:
        """Count what was committed; begin a checkpoint when enough has gathered since the last.

        How long the log is says nothing about how much is in it once it has started again, so the rows count as well.
        """
        self._rows += rows
        if self._rows >= self._look_at_rows:
            self._look_at_rows = self._rows + _LOOK_AFTER_ROWS
            self._start_if_due()

    def _start_if_due(self) -> None:
        if self._running is not None and self._running.is_alive():
            return
        try:
            gathered = self._log.stat().st_size
        except FileNotFoundError:
            return
        if gathered < self._tried_at_bytes:
            self._tried_at_bytes = 0
        # A log that a reader holds grows on, and is not tried again at once.
        if self._rows >= _CHECKPOINT_ROWS or gathered >= self._tried_at_bytes + _CHECKPOINT_BYTES:
            self._tried_at_bytes = gathered
            self._rows = self._look_at_rows = 0
            self._running = threading.Thread(target=self._checkpoint, name="alma-checkpoint", daemon=True)
            self._running.start()

    def finish(self) -> None:
        if self._running is not None:
            self._running.join()

    def _checkpoint(self) -> None:
        # Nothing is lost when it fails: the log keeps everything, and a later writer tries again.
        if self._file.problem() is not None:
            return
        with (
            suppress(sqlite3.Error, OSError),
            closing(sqlite3.connect(self._path, timeout=BUSY_SECONDS)) as connection,
        ):
            last_written = self._log.stat().st_mtime_ns
            (_, frames, _) = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            again = self._starting_again(frames * _FRAME_BYTES, last_written)
            if again is not None:
                # What was written meanwhile is moved before the writers have to wait, and most of it is on disk then.
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
                connection.execute(f"PRAGMA busy_timeout = {_CHECKPOINT_PATIENCE_MS}")
                with self._writer:
                    connection.execute(f"PRAGMA wal_checkpoint({again})")

    def _starting_again(self, gathered: int, last_written: int) -> Literal["TRUNCATE", "RESTART"] | None:
        """How to make the writers wait for the rest, if at all, so that the log can start again from its beginning.

        It does so by itself after a checkpoint without concurrent writes, but never under steady writing.
        """
        log = self._log.stat()
        if log.st_mtime_ns == last_written:
            return "TRUNCATE" if log.st_size > _MOST_BYTES_LEFT else None
        return "RESTART" if gathered > _MOST_BYTES_WHILE_WRITING else None


def empty_log(connection: sqlite3.Connection) -> None:
    """Move all of the write-ahead log into the database and cut it off, unless a reader keeps holding on to it."""
    connection.execute(f"PRAGMA busy_timeout = {_READER_PATIENCE_MS}")
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000:.0f}")
