"""Taking over a PostgreSQL schema that alma-memory 0.4 (or a later 0.x) made; its tables are kept in another schema."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
from psycopg import sql

from alma.errors import MigrationError
from alma.model.record import Record
from alma.model.vector import Vector
from alma.storage.sql.backend import SqlBackend
from alma.storage.sql.clauses import Names
from alma.storage.sql.legacy import ADOPTION, OLDER_KINDS, adopt_vectors, claim_usual_length, record_of, vector_of
from alma.storage.transaction import Transaction

_log = logging.getLogger("alma.storage.legacy")

_BATCH = 1_000
_LONGEST_SCHEMA = 63
_TABLES = {Names("postgresql").table(cls.spec): cls for cls in OLDER_KINDS}
_THERE = """
    SELECT table_name, array_agg(column_name::text) FROM information_schema.columns
    WHERE table_schema = %s AND table_name = ANY(%s) GROUP BY table_name
"""
_ALWAYS_THERE = {"alma_heuristics": {"id", "agent", "project_id", "condition", "strategy"}}


def set_aside(connection: psycopg.Connection[Any], schema: str) -> str | None:
    """Move the tables of alma-memory to another schema; returns its name, None where there are none."""
    there = dict(connection.execute(_THERE, (schema, list(_TABLES))).fetchall())
    if not there:
        return None
    for table, columns in _ALWAYS_THERE.items():
        if not columns <= set(there.get(table, ())):
            raise MigrationError(
                f"schema {schema} holds tables of another program ({', '.join(sorted(there))}): "
                f"give ALMA a schema of its own with schema='…'"
            )
    aside = f"legacy_{schema}"[:_LONGEST_SCHEMA]
    connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(aside)))
    for table in there:
        # Indexes and constraints, whose names ours need, move with it.
        command = sql.SQL("ALTER TABLE {}.{} SET SCHEMA {}")
        connection.execute(command.format(*map(sql.Identifier, (schema, table, aside))))
    return aside


def adopt(connection: psycopg.Connection[Any], backend: SqlBackend, aside: str) -> None:
    """Save every older memory as a record of today; the older tables stay as they are."""
    there = [table for table in _TABLES if _columns(connection, aside, table)]
    claim_usual_length(backend, [length for table in there for length in _lengths(connection, aside, table)])
    for table in there:
        left = sum(_adopt_rows(backend, _TABLES[table], rows) for rows in _batches(connection, aside, table))
        if left:
            _log.warning(
                "some older memories could not be read and stay in their table alone",
                extra={"table": f"{aside}.{table}", "rows": left},
            )


def _adopt_rows(backend: SqlBackend, cls: type[Record], rows: Sequence[dict[str, Any]]) -> int:
    """Save the records that the rows describe with their vectors; returns how many describe none."""
    found = {row["id"]: _vector(row.pop("embedding", None)) for row in rows}
    records = [record for row in rows if (record := record_of(cls, row)) is not None]
    Transaction(backend, ADOPTION).save(*records)
    vectors = {record.key: vector for record in records if (vector := found[record.key]) is not None}
    adopt_vectors(backend, cls, vectors)
    return len(rows) - len(records)


def _vector(said: Any) -> Vector | None:
    """The vector in a column of pgvector's type, which may come as text, or in one of bytes."""
    if isinstance(said, str):
        return Vector([float(number) for number in said.strip("[]").split(",")])
    return vector_of(bytes(said)) if isinstance(said, bytes | memoryview) else said


def _batches(connection: psycopg.Connection[Any], aside: str, table: str) -> Iterator[list[dict[str, Any]]]:
    names = _columns(connection, aside, table)
    with connection.cursor(name="alma_older") as reader:
        reader.execute(_all_of("SELECT * FROM {}.{}", aside, table))
        while batch := reader.fetchmany(_BATCH):
            yield [dict(zip(names, row, strict=True)) for row in batch]


def _columns(connection: psycopg.Connection[Any], aside: str, table: str) -> list[str]:
    rows = connection.execute(
        "SELECT column_name::text FROM information_schema.columns WHERE table_schema = %s AND table_name = %s "
        "ORDER BY ordinal_position",
        (aside, table),
    )
    return [name for (name,) in rows]


def _lengths(connection: psycopg.Connection[Any], aside: str, table: str) -> list[int]:
    """The length of each of some vectors."""
    if "embedding" not in _columns(connection, aside, table):
        return []
    rows = connection.execute(
        _all_of(f"SELECT embedding FROM {{}}.{{}} WHERE embedding IS NOT NULL LIMIT {_BATCH}", aside, table)
    )
    return [len(vector) for (said,) in rows if (vector := _vector(said)) is not None]


def _all_of(command: str, aside: str, table: str) -> sql.Composed:
    return sql.SQL(command).format(sql.Identifier(aside), sql.Identifier(table))
