"""The full-text tables of an SQLite file: how they are made, and made anew where somebody dropped one."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Container, Iterator

from alma.model.kinds import KINDS
from alma.model.record import RecordSpec
from alma.storage.sql.names import Names
from alma.storage.sqlite.connections import roll_back
from alma.storage.sqlite.word_entries import OWNER_COLUMN, index_all_of

_log = logging.getLogger("alma.storage")

_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE '%_fts%'"
# FTS5 keeps an index in tables of its own, and reads none of it without every one of them.
_INNER = ("_data", "_idx", "_docsize", "_config")


def creating(spec: RecordSpec, names: Names) -> Iterator[str]:
    """Contentless: the words are ours already, and the text itself stands in the record."""
    name, columns = names.fts_table(spec), ", ".join((*spec.text, OWNER_COLUMN))
    yield f"CREATE VIRTUAL TABLE {name} USING fts5({columns}, content='', tokenize='ascii');"
    # Four times what FTS5 gathers by default before it writes: a large batch has fewer pieces to merge.
    yield f"INSERT INTO {name} ({name}, rank) VALUES ('hashsize', 4000000);"


def make_missing(connection: sqlite3.Connection, names: Names) -> None:
    """Make the indexes anew that are not there, or not whole, from the records: words are a projection of these."""
    if not _missing(connection, names):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Somebody else may have made them meanwhile.
        missing = _missing(connection, names)
        for spec in missing:
            _remove_rest(connection, names.fts_table(spec))
            for statement in creating(spec, names):
                connection.execute(statement)
        index_all_of(connection, missing)
        connection.execute("COMMIT")
    except BaseException:
        roll_back(connection)
        raise
    _log.warning("full-text tables were missing and made anew", extra={"kinds": [spec.kind for spec in missing]})


def _missing(connection: sqlite3.Connection, names: Names) -> list[RecordSpec]:
    there = {name for (name,) in connection.execute(_TABLES)}
    return [cls.spec for cls in KINDS if cls.spec.text and not _is_whole(connection, names.fts_table(cls.spec), there)]


def _is_whole(connection: sqlite3.Connection, fts: str, there: Container[str]) -> bool:
    """Whether an index has all its tables, and in these what FTS5 asks for first: its format and its structure."""
    if any(f"{fts}{part}" not in there for part in ("", *_INNER)):
        return False
    sql = f"SELECT (SELECT 1 FROM {fts}_config WHERE k = 'version') + (SELECT 1 FROM {fts}_data WHERE id = 10)"
    (found,) = connection.execute(sql).fetchone()
    return found is not None


def _remove_rest(connection: sqlite3.Connection, fts: str) -> None:
    """Remove what is left of an index."""
    try:
        connection.execute(f"DROP TABLE IF EXISTS {fts}")
    except sqlite3.DatabaseError:
        # FTS5 must read an index to drop it, and cannot read this one any more.
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("DELETE FROM sqlite_master WHERE type = 'table' AND name = ?", (fts,))
        connection.execute("PRAGMA writable_schema = RESET")
    for part in _INNER:
        connection.execute(f"DROP TABLE IF EXISTS {fts}{part}")
