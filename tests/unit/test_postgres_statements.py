"""The statement runner: the same rows as with a cursor, and repeated statements are prepared."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from psycopg import sql

from alma.model.memory import Memory
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.storage.postgres import connection as postgres_connection
from alma.storage.postgres.connection import Connection
from alma.storage.postgres.types import listed, register_values
from alma.storage.postgresql import PostgreSQLStorage
from alma.testing import builders as make
from tests.support.postgres import PostgresServer

_PREPARED = "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'alma%'"
SHOP = Scope(project_id="shop")
VALUES = {
    "text": "it's 100% \\ ü",
    "number": 7,
    "share": 0.1,
    "truth": True,
    "nothing": None,
    "texts": ["a", 'b"', ""],
    "moment": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
}


@pytest.fixture
def connection(postgres_dsn: str) -> Iterator[Connection]:
    with Connection.connect(postgres_dsn, autocommit=True) as connection:
        register_values(connection)
        yield connection


def prepared(connection: Connection) -> int:
    [(count,)] = connection.execute(_PREPARED).fetchall()
    return int(count)


def test_what_is_answered_is_what_a_cursor_finds(connection: Connection) -> None:
    question = (
        "SELECT %(text)s::text, %(number)s::int + n, %(share)s::float8, %(truth)s, %(nothing)s::text, "
        "%(texts)s::text[], %(moment)s::timestamptz, '{\"a\": [1]}'::jsonb, %(text)s::text || '%%' "
        "FROM generate_series(1, 3) AS n"
    )
    with connection.cursor(binary=True) as cursor:
        expected = cursor.execute(question, listed(VALUES)).fetchall()
    assert len(expected) == 3
    # The first time, when it is prepared, and from then on.
    for _ in range(4):
        assert connection.runner.fetch(question, VALUES) == expected


def test_nothing_found_is_no_rows(connection: Connection) -> None:
    assert [connection.runner.fetch("SELECT 1 WHERE %(truth)s", {"truth": False}) for _ in range(3)] == [[], [], []]


def test_what_is_asked_again_is_prepared(connection: Connection) -> None:
    for asked, expected in enumerate((0, 1, 1)):
        assert connection.runner.fetch("SELECT %(n)s::int", {"n": asked}) == [(asked,)]
        assert prepared(connection) == expected


def test_values_of_other_types_are_another_question(connection: Connection) -> None:
    for value, text in ((1, "1"), ("one", "one"), (None, None), (2.5, "2.5"), (70_000, "70000")) * 3:
        assert connection.runner.fetch("SELECT %(v)s::text", {"v": value}) == [(text,)]


def test_a_server_keeps_no_more_than_it_should(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_connection, "_MOST_PLANNED", 3)
    for _ in range(3):
        for number in (1, 1, 2, 3, 3, 4, 5, 5):
            assert connection.runner.fetch(f"SELECT {number} + %(n)s::int", {"n": 1}) == [(number + 1,)]
            assert prepared(connection) <= 3


@pytest.mark.parametrize("asked_before", [0, 1, 2])
def test_an_error_is_the_drivers_own_and_the_next_question_is_answered(
    connection: Connection, asked_before: int
) -> None:
    question = "SELECT 1 / %(n)s::int"
    for _ in range(asked_before):
        connection.runner.fetch(question, {"n": 1})
    with pytest.raises(psycopg.errors.DivisionByZero, match="division by zero"):
        connection.runner.fetch(question, {"n": 0})
    assert connection.runner.fetch(question, {"n": 1}) == [(1,)]


def test_of_several_statements_the_last_one_tells_and_the_first_error_counts(connection: Connection) -> None:
    assert connection.runner.execute(b"BEGIN READ ONLY; SELECT 'seen'") == "seen"
    assert connection.runner.execute(b"COMMIT") is None
    with pytest.raises(psycopg.errors.UndefinedTable):
        connection.runner.execute(b"SELECT 1 FROM nowhere; SELECT 2")


def test_a_statement_says_what_it_says_in_the_encoding_of_the_database(postgres: PostgresServer) -> None:
    created = sql.SQL("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    with psycopg.connect(postgres.dsn("postgres"), autocommit=True) as administration:
        administration.execute(created)
    try:
        with Connection.connect(postgres.dsn("latin"), autocommit=True) as connection:
            for _ in range(3):
                asked = "SELECT 'ü' || %(text)s::text, length('ü')"
                assert connection.runner.fetch(asked, {"text": "é"}) == [("üé", 1)]
    finally:
        postgres.drop_database("latin")


def test_a_round_that_was_set_in_what_was_rolled_back_is_set_again(postgres_dsn: str) -> None:
    with PostgreSQLStorage.from_dsn(postgres_dsn, embedding_dim=4, pool_size=1) as store:
        with pytest.raises(ZeroDivisionError), store.snapshot() as tx:
            tx.backend.set_ef_search(123)  # type: ignore[attr-defined]
            raise ZeroDivisionError
        with store.snapshot() as tx:
            tx.backend.set_ef_search(123)  # type: ignore[attr-defined]
            assert tx.backend.rows("SHOW hnsw.ef_search", {}) == [("123",)]  # type: ignore[attr-defined]


def test_a_snapshot_that_was_searched_leaves_nothing_to_be_collected(postgres_dsn: str) -> None:
    with PostgreSQLStorage.from_dsn(postgres_dsn, embedding_dim=4) as store:
        store.save(make.a_memory(project_id="shop", embedding=Vector([1.0, 0.0, 0.0, 0.0])))
        gc.disable()
        try:
            searched: Any = searched_snapshot(store)
            assert searched() is None
        finally:
            gc.enable()


def searched_snapshot(store: PostgreSQLStorage) -> Any:
    with store.snapshot() as tx:
        assert tx.nearest_ids(Memory, Vector([1.0, 0.0, 0.0, 0.0]), SHOP, exact=False)
        tx.matching_ids(Memory, "deploy the release", SHOP, exact=False)
        return weakref.ref(tx)


def test_questions_are_answered_after_the_driver_had_all_statements_forgotten(connection: Connection) -> None:
    question = "SELECT %(number)s::int"
    for _ in range(3):
        assert connection.runner.fetch(question, {"number": 5}) == [(5,)]
    # What the driver prepared for itself it takes back with the first thing that is undone.
    connection.execute("SELECT 1", prepare=True)
    connection.execute("BEGIN")
    connection.execute("ROLLBACK")
    assert prepared(connection) == 0
    for _ in range(2):
        assert connection.runner.fetch(question, {"number": 6}) == [(6,)]
    assert prepared(connection) == 1


def test_what_was_planned_for_few_records_is_planned_anew_once_there_are_many(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_connection, "_LOOKS_EVERY_SECONDS", 0)
    question = "SELECT count(*) FROM alma_embeddings WHERE owner = %(owner)s::int"
    connection.execute("DROP TABLE IF EXISTS alma_embeddings CASCADE")
    connection.execute("CREATE TABLE alma_embeddings (owner int, text text) WITH (autovacuum_enabled = off)")
    connection.execute("CREATE INDEX ON alma_embeddings (owner)")
    connection.execute("INSERT INTO alma_embeddings SELECT n, repeat('a', 300) FROM generate_series(1, 10) AS n")
    connection.execute("ANALYZE alma_embeddings")
    for _ in range(10):
        assert connection.runner.fetch(question, {"owner": 1}) == [(1,)]
    assert "Seq Scan" in plan_of(connection)
    connection.execute("INSERT INTO alma_embeddings SELECT n, repeat('a', 300) FROM generate_series(11, 20000) AS n")
    assert connection.runner.fetch(question, {"owner": 15_000}) == [(1,)]
    assert "Seq Scan" not in plan_of(connection)


def plan_of(connection: Connection) -> str:
    """How the server goes about the first question that was prepared."""
    return "\n".join(line for (line,) in connection.execute("EXPLAIN EXECUTE alma_1(1)").fetchall())
