"""Which file an open store is: told by device and inode, so that one deleted or replaced under it is noticed."""

from __future__ import annotations

import ctypes
import os
import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from alma.errors import StoreReplacedError

_Identity = tuple[int, int]


class OpenFile:
    """The database and the write-ahead log that a process has open, and whether their paths still lead to them.

    The system lets a process write into a file that was deleted or replaced: what it stores then is gone with the
    process, or ends in a log that SQLite takes for the replacement's.
    """

    def __init__(self, path: Path) -> None:
        self._path = os.fspath(path)
        self._log = f"{self._path}-wal"
        self._file: _Identity | None = None
        self._log_file: _Identity | None = None

    def note(self, connection: sqlite3.Connection) -> None:
        """Remember which files are open, now that the first connection is."""
        if self._file is None:
            # SQLite opens the log with the first read, and from then on no other process deletes it.
            connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
            self._file = _identity(self._path)
            self._log_file = _identity(self._log)

    def forget(self) -> None:
        """Begin anew, in a process that has nothing open yet."""
        self._file = self._log_file = None

    def problem(self) -> str | None:
        """What happened to the files, or None while they are in place; two calls of `stat`."""
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
        """Refuse to go on with files that are not the store any more."""
        problem = self.problem()
        if problem is not None:
            raise StoreReplacedError(
                f"{problem}: nothing is stored any more; stop this process, put the file back or bring back a backup "
                f"with  alma restore FILE --force, and start it again"
            )

    def abandon(self, connections: Iterable[sqlite3.Connection]) -> None:
        """Let go of connections to files that are not in place, in such a way that the files in their place stay whole.

        SQLite would take the frames of a log that is still there for the replacement's, so they are moved out of it.
        Closing the last connection deletes the log by its name, which may be another's by now: so none is closed.
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
