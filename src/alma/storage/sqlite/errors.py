"""SQLite's errors as ours, in one place."""

from __future__ import annotations

import re
import shutil
import sqlite3
from pathlib import Path

from alma.errors import ConflictError, FullTextMissingError, StorageError, StorageFullError

# How long a connection waits for a lock that another process holds.
BUSY_SECONDS = 60.0
_LEAST_ROOM_BYTES = 64 << 10
# The last is all that SQLite says where FTS5 lacks one of its inner tables.
_NO_WORDS = re.compile(
    r"(?:no such table: (?:main\.)?|vtable constructor failed: )(?P<table>\w+_fts)(?:_\w+)?$|^SQL logic error$"
)


class translated:  # noqa: N801 - it is used like a function, and often, so it is no generator
    """SQLite's errors as ours, in one place."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, exc: BaseException | None, trace: object) -> None:
        if isinstance(exc, sqlite3.Error):
            raise our_error(self._path, exc) from exc


def our_error(path: Path, exc: sqlite3.Error) -> StorageError:
    """What SQLite says, as an error that names the file and what can be done."""
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
            f"{path} is no SQLite database, or a damaged one ({exc}): name another file, or bring back a backup of it"
        )
    if _primary_code(exc) in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return StorageError(
            f"{path} cannot be opened or written ({exc}): the file and its folder must be there, and this user must be "
            f"allowed to write both"
        )
    return StorageError(f"{path}: {exc}")


def _primary_code(exc: sqlite3.Error) -> int | None:
    code = getattr(exc, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def is_busy(exc: sqlite3.Error) -> bool:
    """Whether somebody else held the lock."""
    return _primary_code(exc) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _is_full(path: Path, exc: sqlite3.Error) -> bool:
    """Without room for the files beside the database, SQLite only says that it could not write or open one."""
    if _primary_code(exc) == sqlite3.SQLITE_FULL:
        return True
    for_want_of_room = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
    return _primary_code(exc) in for_want_of_room and shutil.disk_usage(path.parent).free < _LEAST_ROOM_BYTES
