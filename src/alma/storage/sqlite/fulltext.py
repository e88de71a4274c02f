"""How SQLite's full-text indexes merge: small pieces with small ones, big ones when a big batch is written."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from alma.storage.sqlite.connections import without_waiting

# Every write leaves a piece and a search looks into each, so FTS5 merges them as they gather: left alone, a share of
# whatever is there in every 64th write, which makes the next save after a big batch rewrite the batch. Told so, it only
# merges sixteen of a size at once, which rewrites a word less often; what big batches leave we merge with each other.
_SETTINGS = {"automerge": 0, "crisismerge": 16, "usermerge": 2}
_ALL = 1 << 30

MANY = 1000


def tune(connection: sqlite3.Connection) -> None:
    """Give every full-text index of the file these settings, which it keeps; nearly always it has them already.

    They only decide how fast it is, so while somebody else writes this is left to whoever opens the file next.
    """
    missing = {table: settings for table in _tables(connection) if (settings := _missing(connection, table))}
    if missing:
        with without_waiting(connection) as mine:
            for table, settings in missing.items() if mine else ():
                for name, value in settings.items():
                    _tell(connection, table, name, value)


def merge(connection: sqlite3.Connection, table: str) -> None:
    """Merge the pieces of like size after a big batch, so that later small writes need not rewrite it with theirs."""
    flush(connection)
    _tell(connection, table, "merge", _ALL)


def flush(connection: sqlite3.Connection) -> None:
    """Make a piece of what was indexed in this transaction; FTS5 writes it when it meets a savepoint."""
    connection.execute("SAVEPOINT words")
    connection.execute("RELEASE words")


def rewrite(connection: sqlite3.Connection) -> None:
    """Merge every index into one piece: the words of deleted entries stay in the old pieces until then."""
    for table in _tables(connection):
        connection.execute(f'INSERT INTO "{table}" ("{table}") VALUES (\'optimize\')')


def clear(connection: sqlite3.Connection) -> None:
    """Forget all words of every full-text index."""
    for table in _tables(connection):
        connection.execute(f'INSERT INTO "{table}" ("{table}") VALUES (\'delete-all\')')


def _tables(connection: sqlite3.Connection) -> list[str]:
    found = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL TABLE % USING fts5%'"
    return [name for (name,) in connection.execute(found)]


def _missing(connection: sqlite3.Connection, table: str) -> Mapping[str, int]:
    known = dict(connection.execute(f'SELECT k, v FROM "{table}_config"'))
    return {name: value for name, value in _SETTINGS.items() if known.get(name) != value}


def _tell(connection: sqlite3.Connection, table: str, what: str, value: int) -> None:
    connection.execute(f'INSERT INTO "{table}" ("{table}", rank) VALUES (?, ?)', (what, value))
