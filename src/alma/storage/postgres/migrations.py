"""Migrating a PostgreSQL schema: an advisory lock, one transaction, and the vector column the server can hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
from psycopg import sql

from alma.storage.migrations.base import HISTORY_TABLE, Applied, Migration, Migrator, statements
from alma.storage.postgres import legacy
from alma.storage.postgres.fulltext import index_everything
from alma.storage.postgres.pools import SCHEMA_LOCK
from alma.storage.postgres.sql_writes import keep_sql_writes, keep_sql_writes_of_vectors

_CREATE_HISTORY = (
    f"CREATE TABLE IF NOT EXISTS {HISTORY_TABLE} (version INTEGER PRIMARY KEY, name TEXT NOT NULL, "
    "applied_at TIMESTAMPTZ NOT NULL DEFAULT now(), checksum TEXT NOT NULL)"
)
# Its document knows one vector for each memory and model, so passages are left out.
EMBEDDINGS_VIEW = """
CREATE OR REPLACE VIEW vector_embeddings AS
SELECT id AS embedding_id, memory_id, embedding, model AS embedding_model, created_at
FROM alma_embeddings WHERE memory_type = 'memory' AND part = 0
"""


class PostgresMigrator(Migrator):
    """Migrates the schema that a connection's search path leads to."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        schema: str,
        migrations: Sequence[Migration] | None = None,
        adopt: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__("postgresql", migrations)
        self._connection = connection
        self._schema = schema
        self._adopt = adopt
        # The schema of the tables that alma-memory made.
        self._older: str | None = None

    @property
    def target(self) -> str:
        return f"schema {self._schema} of database {self._connection.info.dbname}"

    def _applied(self) -> list[Applied]:
        if not self._has_table(HISTORY_TABLE):
            return []
        rows = self._connection.execute(
            f"SELECT version, name, applied_at, checksum FROM {HISTORY_TABLE} ORDER BY version"
        )
        return [Applied(*row) for row in rows]

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._connection.transaction():
            self._connection.execute("SELECT pg_advisory_xact_lock(%s)", [SCHEMA_LOCK])
            yield

    def _before_change(self) -> None:
        self._connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(self._schema)))
        if not self._has_table(HISTORY_TABLE):
            self._older = legacy.set_aside(self._connection, self._schema)
        self._connection.execute(_CREATE_HISTORY)

    def _apply(self, migration: Migration) -> None:
        for statement in statements(migration.sql):
            self._connection.execute(statement.encode())
        self._connection.execute(
            f"INSERT INTO {HISTORY_TABLE} (version, name, checksum) VALUES (%s, %s, %s)",
            (migration.version, migration.name, migration.checksum),
        )

    def _amend(self, statements: Iterator[str], version: int, checksum: str) -> None:
        for statement in statements:
            self._connection.execute(statement.encode())
        self._connection.execute(f"UPDATE {HISTORY_TABLE} SET checksum = %s WHERE version = %s", (checksum, version))

    def _steps(self) -> Mapping[str, Callable[[], None]]:
        return {
            "index_words": partial(index_everything, self._connection),
            "keep_sql_writes": partial(keep_sql_writes, self._connection),
        }

    def _after_change(self) -> None:
        if self._older is not None and self._adopt is not None:
            self._adopt(self._older)

    def _has_table(self, name: str) -> bool:
        found = self._connection.execute(
            "SELECT 1 FROM pg_tables WHERE schemaname = %s AND tablename = %s", (self._schema, name)
        )
        return found.fetchone() is not None


def prepare_vector_column(connection: psycopg.Connection[Any], schema: str) -> bool:
    """Make sure vectors have a column, of pgvector's type where the server has it; returns whether it has."""
    existing = _vector_column(connection, schema)
    if existing is not None and _has_embeddings_view(connection, schema):
        return existing == "vector"
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [SCHEMA_LOCK])
        if _vector_column(connection, schema) is None:
            column = "vector" if _has_pgvector(connection) else "bytea"
            connection.execute(f"ALTER TABLE alma_embeddings ADD COLUMN embedding {column} NOT NULL".encode())
        if not _has_embeddings_view(connection, schema):
            connection.execute(EMBEDDINGS_VIEW)
        keep_sql_writes_of_vectors(connection)
    return _vector_column(connection, schema) == "vector"


def _has_embeddings_view(connection: psycopg.Connection[Any], schema: str) -> bool:
    found = connection.execute(
        "SELECT 1 FROM pg_views WHERE schemaname = %s AND viewname = 'vector_embeddings'", (schema,)
    )
    return found.fetchone() is not None


def _vector_column(connection: psycopg.Connection[Any], schema: str) -> str | None:
    row = connection.execute(
        "SELECT udt_name FROM information_schema.columns "
        "WHERE table_schema = %s AND table_name = 'alma_embeddings' AND column_name = 'embedding'",
        (schema,),
    ).fetchone()
    return None if row is None else str(row[0])


def _has_pgvector(connection: psycopg.Connection[Any]) -> bool:
    """Whether the type is there, or could be made to be.

    In public, if possible: a database has an extension once, and it goes with the schema that it is in.
    """
    for place in (" SCHEMA public", ""):
        try:
            with connection.transaction():
                connection.execute(f"CREATE EXTENSION IF NOT EXISTS vector{place}".encode())
            return True
        except (psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile):
            return False
        except (psycopg.errors.InsufficientPrivilege, psycopg.errors.InvalidSchemaName):
            continue
    return False
