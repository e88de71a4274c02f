"""The columns that words are looked up in on PostgreSQL, made anew where somebody dropped them."""

from __future__ import annotations

import logging
from typing import Any

import psycopg

from alma.model.kinds import KINDS
from alma.model.record import RecordSpec
from alma.storage.postgres.migrations import LOCK
from alma.storage.postgres.word_entries import COLUMNS, index_all_of
from alma.storage.sql.names import Names

_log = logging.getLogger("alma.storage")

# Of the catalogue: the standard's views hide what a role may not read, which is not missing.
_THERE = """
    SELECT relname, attname FROM pg_attribute
    JOIN pg_class ON pg_class.oid = attrelid JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname = %s AND attname = ANY(%s) AND NOT attisdropped
"""
_NAMES = Names("postgresql")


def make_missing(connection: psycopg.Connection[Any], schema: str) -> None:
    """Make the columns anew that are not there, and fill them from the records: words are a projection of these."""
    if not _missing(connection, schema):
        return
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        # Somebody else may have made them meanwhile.
        missing = _missing(connection, schema)
        for spec in missing:
            for statement in _making(spec):
                connection.execute(statement.encode())
            index_all_of(connection, spec)
    _log.warning("full-text columns were missing and made anew", extra={"kinds": [spec.kind for spec in missing]})


def _missing(connection: psycopg.Connection[Any], schema: str) -> list[RecordSpec]:
    there = set(connection.execute(_THERE, (schema, list(COLUMNS))))
    every = (cls.spec for cls in KINDS if cls.spec.text)
    return [spec for spec in every if not there.issuperset((_NAMES.table(spec), column) for column in COLUMNS)]


def _making(spec: RecordSpec) -> tuple[str, ...]:
    """As the migrations do; the server drops an index with a column that is in it."""
    table, (terms, length) = _NAMES.table(spec), COLUMNS
    return (
        f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {terms} TSVECTOR",
        f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {length} INTEGER DEFAULT 0 NOT NULL",
        f"CREATE INDEX IF NOT EXISTS idx_{spec.table}_content_fts ON {table} "
        f"USING gin ({terms}, ({_NAMES.owners(spec)}))",
    )
