"""Connections to an SQLite file: lent to one user at a time and kept open."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from alma.clock import new_id
from alma.errors import StorageError
from alma.model.query import holds_at
from alma.paths import make_private
from alma.storage.sqlite.errors import BUSY_SECONDS, is_busy, translated
from alma.storage.sqlite.open_file import OpenFile

Durability = Literal["process", "power"]

_MOST_IDLE_CONNECTIONS = 8
PAGE_BYTES = 4096
# To write over what the log held before takes half the time of making it longer, so under steady writing it is kept.
_WAL_BYTES_KEPT = 64 << 20
_CHECKPOINT_AT_LATEST_PAGES = 16_000
_MAPPED_BYTES = 2 << 30


class Connections:
    """The connections of one store: lent to one user at a time, kept open in between."""

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
        """Changes with every commit, which a connection that never writes is told of by SQLite itself."""
        with self._lock, translated(self._path):
            if self._closed:
                raise StorageError(f"the store {self._path} was closed")
            if self._watching is None or self._watching[0] != os.getpid():
                # The number means something only to the connection that asks, so it gets a name of its own.
                self._watching = (os.getpid(), new_id(), self._connected())
            _, name, connection = self._watching
            return f"{name}:{connection.execute('PRAGMA data_version').fetchone()[0]}"

    def take(self) -> sqlite3.Connection:
        """A connection that is nobody else's until it is given back."""
        with self._lock:
            if self._closed:
                raise StorageError(f"the store {self._path} was closed")
            if self._process != os.getpid():
                # SQLite connections must not cross a fork: the parent's are left alone, this process opens its own.
                self._idle, self._process = [], os.getpid()
                self.file.forget()
            if self._idle:
                return self._idle.pop()
        with translated(self._path):
            return self._connected()

    def _connected(self) -> sqlite3.Connection:
        """A further connection; only to the file that the others have open."""
        self.file.require_in_place()
        connection = _connected(self._path, self._durability)
        self.file.note(connection)
        return connection

    def give_back(self, connection: sqlite3.Connection) -> None:
        """Let others have a connection."""
        with self._lock:
            if not self._closed and len(self._idle) < _MOST_IDLE_CONNECTIONS and self._process == os.getpid():
                self._idle.append(connection)
                return
        self._end(connection)


def _connected(path: Path, durability: Durability) -> sqlite3.Connection:
    with suppress(OSError):
        # SQLite gives its files the mode that the system likes; those beside the database get that of the database.
        make_private(path)
    connection = sqlite3.connect(
        path,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    try:
        # Only a new file takes it. Larger pages make a file an eighth smaller, and a single save a fifth slower.
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        _use_wal(connection)
        connection.execute(f"PRAGMA synchronous = {'FULL' if durability == 'power' else 'NORMAL'}")
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES_KEPT}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_AT_LATEST_PAGES}")
        connection.execute("PRAGMA cache_size = -32000")
        # Reads pages where the system holds them instead of copying each.
        connection.execute(f"PRAGMA mmap_size = {_MAPPED_BYTES}")
        connection.create_function("alma_holds_at", 2, _holds_at, deterministic=True)
    except BaseException:
        connection.close()
        raise
    return connection


def _holds_at(document: str, question: str) -> bool:
    """What a predicate about the inside of a JSON column means, by the one definition there is of it."""
    path, value, needles = _question(question)
    # A document without escapes has its texts as they are, and most do not have what is looked for.
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
    """A write transaction that is begun only if nobody else is in one; says whether it was."""
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
    """End a transaction with nothing done; a full disk makes SQLite end it by itself, and then none is left."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switching needs the file alone for a moment, and SQLite does not wait for that by itself."""
    if connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
        return
    deadline = _Deadline(BUSY_SECONDS)
    while True:
        try:
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            if mode == "wal":
                return
            raise StorageError(
                f"SQLite cannot keep a write-ahead log here (its journal mode stays {mode!r}), since the file system "
                f"has no locks or no shared memory: put the store on a local disk"
            )
        except sqlite3.OperationalError as exc:
            if not is_busy(exc):
                raise
        deadline.wait()


class _Deadline:
    """Short waits that add up to a limit."""

    def __init__(self, seconds: float) -> None:
        self._left = seconds

    def wait(self, seconds: float = 0.02) -> None:
        self._left -= seconds
        if self._left <= 0:
            raise StorageError("another process kept the database locked for too long")
        threading.Event().wait(seconds)
