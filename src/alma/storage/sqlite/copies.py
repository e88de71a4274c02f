"""Whole copies of an SQLite store: made while it is in use, checked before they are put back."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from alma.errors import DamagedFileError, MigrationError
from alma.paths import make_private
from alma.storage.migrations.base import HISTORY_TABLE

OnPages = Callable[[int, int], object]

_PAGES_AT_ONCE = 4096


def copy(source: Path, target: Path, on_pages: OnPages) -> None:
    """Copy one committed state into a new file, which is complete by itself; writers need not wait."""
    make_private(target)
    with closing(sqlite3.connect(source, isolation_level=None)) as read, closing(sqlite3.connect(target)) as written:
        # A snapshot that is held open: what others commit meanwhile would make the copy start again and again.
        read.execute("BEGIN")
        read.execute("SELECT count(*) FROM sqlite_master").fetchone()
        read.backup(written, pages=_PAGES_AT_ONCE, progress=lambda _, left, total: on_pages(total - left, total))
        read.execute("ROLLBACK")
        written.execute("PRAGMA journal_mode = DELETE")


def put_back(source: Path, target: Path) -> None:
    """Replace all that a store holds by a copy, in one transaction that others see as a whole."""
    with closing(sqlite3.connect(source)) as read, closing(sqlite3.connect(target)) as written:
        _continue_numbers(read, written)
        _match_pages(read, written)
        read.backup(written)


def _match_pages(read: sqlite3.Connection, written: sqlite3.Connection) -> None:
    """Rewrite the copy where its pages are of another size: those of a store that is in use cannot change."""
    mine, theirs = (each.execute("PRAGMA page_size").fetchone()[0] for each in (written, read))
    if mine != theirs:
        # Pages keep their size while there is a write-ahead log.
        read.execute("PRAGMA journal_mode = DELETE")
        read.execute(f"PRAGMA page_size = {mine}")
        read.execute("VACUUM")


def require_sound(path: Path) -> None:
    """Refuse a file that is damaged, or no store of ours."""
    with _looked_into(path) as connection:
        _require_whole(path, connection, "integrity_check")
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (HISTORY_TABLE,)).fetchone() is None:
            raise MigrationError(f"{path} is an SQLite file, but no store of ALMA")


def require_whole(path: Path, *, quick: bool) -> None:
    """Refuse a file that is damaged; a quick look does not compare indexes with their tables."""
    with _looked_into(path) as connection:
        _require_whole(path, connection, "quick_check" if quick else "integrity_check")


@contextmanager
def _looked_into(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            yield connection
    except sqlite3.DatabaseError as exc:
        raise DamagedFileError(path, None, str(exc)) from exc


def _require_whole(path: Path, connection: sqlite3.Connection, check: str) -> None:
    found = [row[0] for row in connection.execute(f"PRAGMA {check}(3)")]
    if found != ["ok"]:
        raise DamagedFileError(path, None, found[0])


def _continue_numbers(read: sqlite3.Connection, written: sqlite3.Connection) -> None:
    """Vectors that are stored from now on get numbers that the replaced store never gave: indexes rely on that."""
    last = written.execute("SELECT max(seq) FROM sqlite_sequence WHERE name = 'embeddings'").fetchone()[0]
    if last is None:
        return
    changed = read.execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'embeddings'", (last,))
    if not changed.rowcount:
        read.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('embeddings', ?)", (last,))
    read.commit()
