"""Connections to an SQLite file: a pool, a guard against replaced files, and SQLite's errors as ours."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from alma.clock import new_id
from alma.errors import ConflictError, FullTextMissingError, StorageError, StorageFullError, StoreReplacedError
from alma.lazy import lazy_regex
from alma.model.query import holds_at
from alma.paths import make_private

_Identity = tuple[int, int]


class OpenFile:
    """The database and write-ahead log that a process has open; detects that their paths lead to other files.

    The operating system lets a process write to a deleted or replaced file. Such writes are lost with the process, or
    end in a log that SQLite applies to the replacement.
    """

    def __init__(self, path: Path) -> None:
        self._path = os.fspath(path)
        self._log = f"{self._path}-wal"
        self._file: _Identity | None = None
        self._log_file: _Identity | None = None

    def note(self, connection: sqlite3.Connection) -> None:
        """Record the identity of the files, after the first connection opened them."""
        if self._file is None:
            # SQLite opens the log at the first read; after that no other process deletes it.
            connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
            self._file = _identity(self._path)
            self._log_file = _identity(self._log)

    def forget(self) -> None:
        """Reset, in a process that has no file open yet."""
        self._file = self._log_file = None

    def problem(self) -> str | None:
        """How the files changed (moved, deleted, replaced), or None if they are in place; costs two calls of `stat`."""
        if self._file is None:
            return None
        now = _identity(self._path)
        if now != self._file:
            what = "deleted or moved away" if now is None else "replaced by another file"
            return f"{self._path} was {what} while this process had it open"
        if _identity(self._log) != self._log_file:
            return f"{self._log}, the log of the store, was deleted or replaced while this process had it open"
        return None

    def require_in_place(self) -> None:
        """Raise StoreReplacedError if the files are no longer the store."""
        problem = self.problem()
        if problem is not None:
            raise StoreReplacedError(
                f"{problem}: writes are refused; stop this process, put the file back or restore a backup "
                f"with  alma restore FILE --force, and start it again"
            )

    def abandon(self, connections: Iterable[sqlite3.Connection]) -> None:
        """Abandon connections to replaced files without damaging the replacements.

        SQLite would apply the frames of an existing log to the replacement, so the log is truncated. Closing the last
        connection deletes the log by name, which may belong to another store by now, so connections are leaked instead.
        """
        is_own_log = self._log_file is not None and _identity(self._log) == self._log_file
        for connection in connections:
            if is_own_log:
                with suppress(sqlite3.Error):
                    connection.execute("PRAGMA busy_timeout = 0")
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def _identity(path: str) -> _Identity | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - before every write, and a Path takes three times as long
    except OSError:
        return None
    return found.st_dev, found.st_ino


# How long a connection waits for a lock that another process holds.
BUSY_SECONDS = 60.0
_LEAST_ROOM_BYTES = 64 << 10
# "SQL logic error" is the whole message of SQLite if a shadow table of FTS5 is missing.
_NO_WORDS = lazy_regex(
    r"(?:no such table: (?:main\.)?|vtable constructor failed: )(?P<table>\w+_fts)(?:_\w+)?$|^SQL logic error$"
)


class translated:  # noqa: N801 - used like a function; on a hot path, so not a generator
    """Translate errors of SQLite."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, exc: BaseException | None, trace: object) -> None:
        if isinstance(exc, sqlite3.Error):
            raise our_error(self._path, exc) from exc


def our_error(path: Path, exc: sqlite3.Error) -> StorageError:
    """The error of SQLite as one that names the file and the fix."""
    if isinstance(exc, sqlite3.IntegrityError):
        return ConflictError(f"{path}: {exc}")
    if _is_full(path, exc):
        return StorageFullError(f"the disk of {path} is full: nothing of this transaction was stored")
    if is_busy(exc):
        return ConflictError(f"another process kept {path} locked for over {BUSY_SECONDS:.0f} seconds")
    missing = _NO_WORDS.search(str(exc))
    if missing is not None:
        index = f"the full-text index {missing['table']}" if missing["table"] else "a full-text index"
        return FullTextMissingError(index, str(path))
    if _primary_code(exc) in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return StorageError(
            f"{path} is not an SQLite database, or it is damaged ({exc}): name another file, or restore a backup"
        )
    if _primary_code(exc) in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return StorageError(
            f"{path} cannot be opened or written ({exc}): the file and its folder must exist and be writable for this "
            f"user"
        )
    return StorageError(f"{path}: {exc}")


def _primary_code(exc: sqlite3.Error) -> int | None:
    code = getattr(exc, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def is_busy(exc: sqlite3.Error) -> bool:
    """Whether another connection held the lock."""
    return _primary_code(exc) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _is_full(path: Path, exc: sqlite3.Error) -> bool:
    """Whether the disk is full; for log and temporary files SQLite only reports that it cannot write or open them."""
    if _primary_code(exc) == sqlite3.SQLITE_FULL:
        return True
    for_want_of_room = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
    return _primary_code(exc) in for_want_of_room and shutil.disk_usage(path.parent).free < _LEAST_ROOM_BYTES


Durability = Literal["process", "power"]

_MOST_IDLE_CONNECTIONS = 8
PAGE_BYTES = 8192
# Overwriting the log takes half the time of extending it, so it is not truncated under steady writes.
_WAL_BYTES_KEPT = 64 << 20
_CHECKPOINT_AT_LATEST_PAGES = 8_000
_MAPPED_BYTES = 2 << 30


class Connections:
    """A connection pool: each connection has one user at a time."""

    def __init__(self, path: Path, durability: Durability) -> None:
        self._path = path
        self._durability = durability
        self._idle: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._closed = False
        self._watching: tuple[int, str, sqlite3.Connection] | None = None
        self.file = OpenFile(path)

    @contextmanager
    def lent(self) -> Iterator[sqlite3.Connection]:
        connection = self.take()
        try:
            yield connection
        finally:
            self.give_back(connection)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            mine = [] if self._watching is None or self._watching[0] != os.getpid() else [self._watching[2]]
            self._end(*self._idle, *mine)
            self._idle, self._watching = [], None

    def _end(self, *connections: sqlite3.Connection) -> None:
        if self.file.problem() is not None:
            self.file.abandon(connections)
            return
        for connection in connections:
            connection.close()

    def generation(self) -> str:
        """Changes with every commit: the data version of a connection that never writes."""
        with self._lock, translated(self._path):
            if self._closed:
                raise StorageError(f"the store {self._path} was closed")
            if self._watching is None or self._watching[0] != os.getpid():
                # The number is specific to the connection, so it gets a unique prefix.
                self._watching = (os.getpid(), new_id(), self._connected())
            _, name, connection = self._watching
            return f"{name}:{connection.execute('PRAGMA data_version').fetchone()[0]}"

    def take(self) -> sqlite3.Connection:
        """A connection for exclusive use until it is given back."""
        with self._lock:
            if self._closed:
                raise StorageError(f"the store {self._path} was closed")
            if self._process != os.getpid():
                # SQLite connections must not cross a fork: leave the parent's, and open new ones.
                self._idle, self._process = [], os.getpid()
                self.file.forget()
            if self._idle:
                return self._idle.pop()
        with translated(self._path):
            return self._connected()

    def _connected(self) -> sqlite3.Connection:
        """Open another connection, to the same file as the others."""
        self.file.require_in_place()
        connection = _connected(self._path, self._durability)
        self.file.note(connection)
        return connection

    def give_back(self, connection: sqlite3.Connection) -> None:
        """Return a connection to the pool."""
        with self._lock:
            if not self._closed and len(self._idle) < _MOST_IDLE_CONNECTIONS and self._process == os.getpid():
                self._idle.append(connection)
                return
        self._end(connection)


def _connected(path: Path, durability: Durability) -> sqlite3.Connection:
    with suppress(OSError):
        # SQLite creates files with the default mode; log and index files get the mode of the database.
        make_private(path)
    connection = sqlite3.connect(
        path,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    try:
        # Effective in new files only. Larger pages make files an eighth smaller and single saves a fifth slower.
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        _use_wal(connection)
        connection.execute(f"PRAGMA synchronous = {'FULL' if durability == 'power' else 'NORMAL'}")
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES_KEPT}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_AT_LATEST_PAGES}")
        connection.execute("PRAGMA cache_size = -32000")
        # Read pages from the page cache without copying them.
        connection.execute(f"PRAGMA mmap_size = {_MAPPED_BYTES}")
        connection.create_function("alma_holds_at", 2, _holds_at, deterministic=True)
    except BaseException:
        connection.close()
        raise
    return connection


def _holds_at(document: str, question: str) -> bool:
    """Evaluate a predicate on a JSON column, with the one definition in the model."""
    path, value, needles = _question(question)
    # A document without escapes contains its strings literally, and most do not contain the needle.
    if "\\" not in document and not all(needle in document for needle in needles):
        return False
    return holds_at(json.loads(document), path, value)


@lru_cache(maxsize=256)
def _question(question: str) -> tuple[tuple[str, ...], Any, tuple[str, ...]]:
    path, value = json.loads(question)
    texts = (*path, value) if isinstance(value, str) else path
    return tuple(path), value, tuple(f'"{text}"' for text in texts)


@contextmanager
def without_waiting(connection: sqlite3.Connection) -> Iterator[bool]:
    """Begin a write transaction only if no other is open; yields whether it began."""
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as exc:
        if not is_busy(exc):
            raise
        yield False
        return
    finally:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000:.0f}")
    try:
        yield True
        connection.execute("COMMIT")
    except BaseException:
        roll_back(connection)
        raise


def roll_back(connection: sqlite3.Connection) -> None:
    """Roll back, unless SQLite already did, as it does when the disk is full."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL, which needs exclusive access for a moment; SQLite does not wait for that."""
    if connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
        return
    deadline = _Deadline(BUSY_SECONDS)
    while True:
        try:
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            if mode == "wal":
                return
            raise StorageError(
                f"SQLite cannot use a write-ahead log here (its journal mode stays {mode!r}), because the file system "
                f"has no locks or no shared memory: put the store on a local disk"
            )
        except sqlite3.OperationalError as exc:
            if not is_busy(exc):
                raise
        deadline.wait()


class _Deadline:
    """Waits in short steps up to a limit."""

    def __init__(self, seconds: float) -> None:
        self._left = seconds

    def wait(self, seconds: float = 0.02) -> None:
        self._left -= seconds
        if self._left <= 0:
            raise StorageError("another process kept the database locked for too long")
        threading.Event().wait(seconds)
