"""The full-text tables of an SQLite file: how they are made, and made anew where somebody dropped one."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator

from alma.model.kinds import KINDS
from alma.model.record import RecordSpec
from alma.storage.sql.names import Names
from alma.storage.sql.sqlite_connections import roll_back
from alma.storage.sql.sqlite_entries import OWNER_COLUMN, index_all_of

_log = logging.getLogger("alma.storage")

_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE '%_fts'"


def creating(spec: RecordSpec, names: Names) -> Iterator[str]:
    """Contentless: the words are ours already, and the text itself stands in the record."""
    name, columns = names.fts_table(spec), ", ".join((*spec.text, OWNER_COLUMN))
    yield f"CREATE VIRTUAL TABLE {name} USING fts5({columns}, content='', tokenize='ascii');"
    # Four times what FTS5 gathers by default before it writes: a large batch has fewer pieces to merge.
    yield f"INSERT INTO {name} ({name}, rank) VALUES ('hashsize', 4000000);"


def make_missing(connection: sqlite3.Connection, names: Names) -> None:
    """Make the tables anew that are not there, and fill them from the records: words are a projection of these."""
    if not _missing(connection, names):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Somebody else may have made them meanwhile.
        missing = _missing(connection, names)
        for spec in missing:
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
    return [cls.spec for cls in KINDS if cls.spec.text and names.fts_table(cls.spec) not in there]
