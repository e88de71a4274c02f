"""Locks that cannot be had are told from locks that others hold; leftovers of killed migrations are cleared away."""

from __future__ import annotations

import errno
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from alma.errors import StorageError
from alma.storage.file_based import _translated
from alma.storage.sqlite import connections as sqlite_connections
from alma.storage.sqlite_local import SQLiteStorage


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "alma.db"
    SQLiteStorage(path).close()
    return path


def test_a_file_system_without_locks_is_named(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    # What SQLite has where files cannot be locked, nor shared in memory.
    with (
        closing(sqlite3.connect(f"{path.as_uri()}?vfs=unix-none", uri=True, isolation_level=None)) as connection,
        pytest.raises(StorageError, match="the file system has no locks or no shared memory: put the store on a local"),
    ):
        sqlite_connections._use_wal(connection)


def test_a_lock_of_another_process_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        other.execute("BEGIN EXCLUSIVE")
        monkeypatch.setattr(sqlite_connections, "BUSY_SECONDS", 0.1)
        with pytest.raises(StorageError, match="another process kept"):
            SQLiteStorage(path)


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOTSUP])
def test_a_folder_without_locks_is_named(tmp_path: Path, code: int) -> None:
    with pytest.raises(StorageError, match="cannot lock files"), _translated(tmp_path):
        raise OSError(code, os.strerror(code))


def test_unfinished_backups_are_cleared_away_when_no_other_process_writes(path: Path) -> None:
    complete = path.with_name("alma.db.backup-20260101T000000000000Z")
    unfinished = path.with_name("alma.db.backup-20260102T000000000000Z.unfinished")
    journal = path.with_name(f"{unfinished.name}-journal")
    others = path.with_name("other.db.backup-20260102T000000000000Z.unfinished")
    for each in (complete, unfinished, journal, others):
        each.write_bytes(b"half")
    with closing(sqlite3.connect(path, isolation_level=None)) as migrating:
        migrating.execute("BEGIN IMMEDIATE")
        SQLiteStorage(path).close()
        assert unfinished.exists()
        migrating.execute("ROLLBACK")
    SQLiteStorage(path).close()
    assert [each.exists() for each in (complete, unfinished, journal, others)] == [True, False, False, True]
