"""Databases of PostgreSQL that tests use one after the other: emptying one takes a tenth of the time of making one."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import LiteralString

import psycopg
from psycopg import sql

from alma.storage.postgresql import PostgreSQLStorage
from tests.support.postgres import PostgresServer

_TEMPLATE = "migrated"
# Whatever defines tables, indexes, functions, rights or settings leaves another sum here.
_SCHEMA = " UNION ALL ".join(
    f"SELECT '{catalog}', count(*), sum(xmin::text::bigint * (oid::bigint % 1000003)) FROM {catalog} {where}"
    for catalog, where in (
        ("pg_class", "WHERE relpersistence = 'p'"),
        ("pg_proc", ""),
        ("pg_constraint", ""),
        ("pg_trigger", ""),
        ("pg_attrdef", ""),
        ("pg_type", ""),
        ("pg_namespace", ""),
        ("pg_extension", ""),
        ("pg_policy", ""),
        ("pg_statistic_ext", ""),
    )
)
_SETTINGS = "SELECT count(*) FROM pg_db_role_setting"
_WRITTEN = """
SELECT relname FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND pg_relation_size(oid) > 0
"""
_SEQUENCES = """
SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = 'public' AND last_value IS NOT NULL
"""


class EmptyDatabases:
    """The databases of one server that hold an empty store."""

    def __init__(self, server: PostgresServer) -> None:
        """Make the store whose copies are handed out."""
        self._server = server
        self._free: dict[str, object] = {}
        address = server.create_database(_TEMPLATE)
        PostgreSQLStorage.from_dsn(address).close()
        with psycopg.connect(address) as connection:
            self._rows = {name: _read(connection, name) for name in _written(connection)}
            self._numbers = connection.execute(_SEQUENCES).fetchall()

    @contextmanager
    def lend(self) -> Iterator[str]:
        """The address of a database that is empty, and emptied afterwards, or dropped if its tables were changed."""
        if self._free:
            name, schema = self._free.popitem()
        else:
            name = f"test_{uuid.uuid4().hex}"
            with psycopg.connect(self._server.create_database(name, _TEMPLATE)) as connection:
                schema = _schema(connection)
        try:
            yield self._server.dsn(name)
            self._take_back(name, schema)
        finally:
            if name not in self._free:
                self._server.drop_database(name)

    def _take_back(self, name: str, schema: object) -> None:
        with psycopg.connect(self._server.dsn(name)) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            if _schema(connection) != schema:
                return
            # The store's triggers would record what is deleted.
            connection.execute("SET session_replication_role = replica")
            if written := _written(connection):
                tables = sql.SQL(", ").join(map(sql.Identifier, written))
                connection.execute(sql.SQL("TRUNCATE {} RESTART IDENTITY CASCADE").format(tables))
            for table, rows in self._rows.items():
                with connection.cursor().copy(_copy("FROM STDIN", table)) as copy:
                    copy.write(rows)
            for sequence, last in self._numbers:
                connection.execute("SELECT setval(%s::regclass, %s)", (sequence, last))
            schema = _schema(connection)
        self._free[name] = schema


def _schema(connection: psycopg.Connection) -> object:
    return connection.execute(_SCHEMA).fetchall(), connection.execute(_SETTINGS).fetchone()


def _written(connection: psycopg.Connection) -> list[str]:
    return [name for (name,) in connection.execute(_WRITTEN)]


def _read(connection: psycopg.Connection, table: str) -> bytes:
    with connection.cursor().copy(_copy("TO STDOUT", table)) as copy:
        return b"".join(copy)


def _copy(direction: LiteralString, table: str) -> sql.Composed:
    return sql.SQL("COPY {} " + direction).format(sql.Identifier(table))
