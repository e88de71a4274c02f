"""Stores on PostgreSQL for the suites: a database for each class of tests, emptied after each test."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from alma.storage.base import StorageBackend
from alma.storage.postgresql import PostgreSQLStorage
from alma.testing.storage_contract import DIMS
from tests.conftest import fresh_database
from tests.support.postgres import PostgresServer


class OnPostgreSQL:
    @pytest.fixture(scope="class")
    @classmethod
    def dsn(cls, postgres: PostgresServer) -> Iterator[str]:
        with fresh_database(postgres) as dsn:
            yield dsn

    @pytest.fixture
    def storage(self, dsn: str) -> Iterator[StorageBackend]:
        yield from emptied_afterwards(dsn)


class OnPostgreSQLWithoutPgvector(OnPostgreSQL):
    @pytest.fixture(scope="class")
    @classmethod
    def dsn(cls, plain_postgres: PostgresServer) -> Iterator[str]:
        with fresh_database(plain_postgres) as dsn:
            yield dsn


def emptied_afterwards(dsn: str, schema: str = "public") -> Iterator[StorageBackend]:
    """A store on a database that the next test finds empty again: much faster than a database each."""
    with PostgreSQLStorage.from_dsn(dsn, embedding_dim=DIMS, pool_size=6, schema=schema) as store:
        yield store
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SET alma.writer = 'on'")
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)).fetchall()
        for (table,) in tables:
            if table not in ("schema_migrations", "system_config"):
                connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(schema, table)))
