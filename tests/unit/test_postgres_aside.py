"""Vectors that PostgreSQL looks for on another connection while it looks for words: found as if it had been asked."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator

import psycopg
import pytest

from alma.embeddings.mock import MockEmbedder
from alma.model.memory import Memory
from alma.model.query import EVERYTHING
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.retrieval.engine import RetrievalEngine
from alma.storage.base import Transaction
from alma.storage.postgres import connection as postgres_connection
from alma.storage.postgres import vectors as postgres_vectors
from alma.storage.postgres.aside import Aside
from alma.storage.postgres.wire import literal
from alma.storage.postgresql import PostgreSQLStorage
from alma.testing import builders as make
from alma.vectors.native import NativeIndex
from tests.conftest import fresh_database
from tests.support.postgres import PostgresServer, wait_until

_RECORDS = 600
SHOP = Scope(project_id="shop")
WANTED = Vector([1.0, 0.2, 0.0, -0.3])
WORDS = ("deploy", "release", "login", "form", "cluster", "node", "invoice", "payment", "queue", "retry")
# What the other connection was asked last, and what it does now.
_ASIDE = """
    SELECT pid, state FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'SELECT 1 - (%recovery%'
"""
# It changes nothing, but wants the table for itself as every change of a table does.
_CHANGE = "ALTER TABLE memories DISABLE ROW LEVEL SECURITY"


@pytest.fixture(scope="module")
def dsn(postgres: PostgresServer) -> Iterator[str]:
    source = random.Random(7)
    with fresh_database(postgres) as dsn, PostgreSQLStorage.from_dsn(dsn, embedding_dim=4) as store:
        store.save_many(
            make.a_memory(
                id=f"m{i:05}",
                project_id="other" if i % 50 == 0 else "shop",
                session_id=None,
                title=f"number{i}",
                content=" ".join(source.choices(WORDS, k=6)),
                embedding=Vector([source.gauss() for _ in range(4)]),
            )
            for i in range(_RECORDS)
        )
        store.prepare_vector_index(Memory)
        with store.connection() as connection:
            connection.execute("ANALYZE")
        yield dsn


@pytest.fixture(autouse=True)
def _owners_have_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the index is asked."""
    monkeypatch.setattr(postgres_vectors, "_FEW_RECORDS", 50)


@pytest.fixture
def store(dsn: str) -> Iterator[PostgreSQLStorage]:
    """With its other connection made."""
    with PostgreSQLStorage.from_dsn(dsn, embedding_dim=4) as store:
        wait_until(lambda: bool(nearest(store)) and bool(aside(store)))
        yield store


@pytest.fixture
def alone(dsn: str) -> Iterator[PostgreSQLStorage]:
    """The same with one connection for everything."""
    with PostgreSQLStorage.from_dsn(dsn, embedding_dim=4, pool_size=1) as store:
        yield store


def aside(store: PostgreSQLStorage) -> list[tuple[int, str]]:
    with store.connection() as connection:
        return connection.execute(_ASIDE).fetchall()


def last_asked(store: PostgreSQLStorage) -> str:
    with store.connection() as connection:
        return str(connection.execute(_ASIDE.replace("pid, state", "query")).fetchall()[0][0])


def ask(tx: Transaction, vector: Vector = WANTED, limit: int = 5) -> None:
    tx.expect_nearest(tx.vector_question(Memory, vector, SHOP, EVERYTHING, limit))


def answer(tx: Transaction, vector: Vector = WANTED, limit: int = 5) -> list[tuple[str, float]]:
    return tx.nearest_ids(Memory, vector, SHOP, limit=limit, exact=False)


def nearest(store: PostgreSQLStorage, vector: Vector = WANTED, limit: int = 5) -> list[tuple[str, float]]:
    """As a retrieval asks: something else is asked for before the answer is taken."""
    with store.snapshot() as tx:
        ask(tx, vector, limit)
        tx.matching_ids(Memory, "deploy the cluster", SHOP, exact=False)
        return answer(tx, vector, limit)


@pytest.mark.parametrize("limit", [1, 5, 120])
def test_the_same_is_found_as_on_one_connection(store: PostgreSQLStorage, alone: PostgreSQLStorage, limit: int) -> None:
    source = random.Random(limit)
    for _ in range(30):
        vector = Vector([source.gauss() for _ in range(4)])
        found = nearest(store, vector, limit)
        assert found == nearest(alone, vector, limit)
        assert len(found) == limit
    assert [state for _, state in aside(store)] == ["idle"]


def test_more_statements_than_the_server_is_to_keep_are_answered(
    store: PostgreSQLStorage, alone: PostgreSQLStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_connection, "_MOST_PLANNED", 2)
    for limit in (1, 2, 3, 1, 4, 2, 2):
        assert nearest(store, limit=limit) == nearest(alone, limit=limit)
    assert [state for _, state in aside(store)] == ["idle"]


@pytest.mark.parametrize("name", ["50% off", "100%", "%(wanted)s", "%s", "it's $1"])
def test_whoever_owns_them_by_whatever_name(store: PostgreSQLStorage, name: str) -> None:
    source, scope = random.Random(name), Scope(project_id=name)
    ids = [f"{name}{i}" for i in range(200)]
    store.save_many(
        make.a_memory(id=each, project_id=name, embedding=Vector([source.gauss() for _ in range(4)])) for each in ids
    )
    expected = store.nearest_ids(Memory, WANTED, scope, limit=5)
    with store.snapshot() as tx:
        tx.expect_nearest(tx.vector_question(Memory, WANTED, scope, EVERYTHING, 5))
        assert literal(name).replace("%%", "%") in last_asked(store)
        assert [key for key, _ in tx.nearest_ids(Memory, WANTED, scope, limit=5, exact=False)] == [
            key for key, _ in expected
        ]
    assert [state for _, state in aside(store)] == ["idle"]
    store.delete(Memory, ids, scope)


def test_who_allows_one_connection_gets_one(alone: PostgreSQLStorage) -> None:
    for _ in range(5):
        assert len(nearest(alone)) == 5
    with alone.connection() as connection:
        connected = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        # This one, and that of the store that was filled.
        assert connection.execute(connected).fetchall() == [(2,)]


@pytest.mark.parametrize("top_k", [5, 20])
def test_a_retrieval_gives_the_same_for_the_same_reasons(
    store: PostgreSQLStorage, alone: PostgreSQLStorage, top_k: int
) -> None:
    engines = [RetrievalEngine(each, MockEmbedder(dimension=4), min_score_threshold=0.0) for each in (store, alone)]
    source, moment = random.Random(top_k), make.a_memory().created_at
    for _ in range(20):
        question = " ".join([*source.choices(WORDS, k=3), f"number{source.randrange(_RECORDS)}"])
        answers = [e.retrieve(question, "helena", "shop", top_k=top_k, bypass_cache=True, now=moment) for e in engines]
        assert answers[0].memories
        assert answers[0].explanations == answers[1].explanations
        assert [memory.id for memory in answers[0].memories] == [memory.id for memory in answers[1].memories]


def test_what_is_written_after_the_snapshot_is_not_seen(store: PostgreSQLStorage, alone: PostgreSQLStorage) -> None:
    before = nearest(alone)
    with store.snapshot() as tx:
        alone.save(make.a_memory(id="new", project_id="shop", session_id=None, embedding=WANTED))
        alone.delete(Memory, [before[1][0]], SHOP)
        ask(tx)
        assert answer(tx) == before
    assert [key for key, _ in nearest(store)][:2] == ["new", before[0][0]]
    alone.delete(Memory, ["new"], SHOP)


def test_what_is_written_before_the_snapshot_is_seen(store: PostgreSQLStorage, alone: PostgreSQLStorage) -> None:
    for i in range(20):
        alone.save(make.a_memory(id=f"new{i}", project_id="shop", session_id=None, embedding=WANTED))
        assert f"new{i}" in dict(nearest(store, limit=30))
        alone.delete(Memory, [f"new{i}"], SHOP)
        assert f"new{i}" not in dict(nearest(store, limit=30))


def test_who_finds_the_connection_busy_goes_on_without_it(store: PostgreSQLStorage, alone: PostgreSQLStorage) -> None:
    found: list[object] = []
    with store.snapshot() as tx:
        ask(tx)
        other = threading.Thread(target=lambda: found.append(nearest(store)))
        other.start()
        other.join(30)
        assert found == [answer(tx)] == [nearest(alone)]
    assert len(aside(store)) == 1


def test_a_connection_that_is_killed_while_it_answers_is_done_without(
    store: PostgreSQLStorage, alone: PostgreSQLStorage
) -> None:
    [(pid, _)] = aside(store)
    with store.snapshot() as tx:
        ask(tx)
        end(alone, pid)
        assert answer(tx) == nearest(alone)
    # Another one is made in the background.
    wait_until(lambda: bool(nearest(store)) and [other for other, _ in aside(store)] not in ([], [pid]))
    assert nearest(store) == nearest(alone)


def test_a_connection_that_was_killed_while_it_was_idle_is_done_without(
    store: PostgreSQLStorage, alone: PostgreSQLStorage
) -> None:
    [(pid, _)] = aside(store)
    end(alone, pid)
    assert nearest(store) == nearest(alone)
    wait_until(lambda: bool(nearest(store)) and [other for other, _ in aside(store)] not in ([], [pid]))


def end(store: PostgreSQLStorage, pid: int) -> None:
    with store.connection() as connection:
        connection.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])


def test_nothing_is_left_under_way_when_nobody_takes_the_answer(
    store: PostgreSQLStorage, alone: PostgreSQLStorage
) -> None:
    with pytest.raises(ZeroDivisionError), store.snapshot() as tx:
        ask(tx)
        raise ZeroDivisionError
    with store.snapshot() as tx:
        ask(tx)
    wait_until(lambda: bool(nearest(store)) and [state for _, state in aside(store)] == ["idle"])
    assert nearest(store) == nearest(alone)


def test_another_question_than_the_expected_one_is_answered(store: PostgreSQLStorage, alone: PostgreSQLStorage) -> None:
    with store.snapshot() as tx:
        ask(tx, WANTED, 5)
        assert answer(tx, Vector([0.0, 1.0, 0.0, 0.0]), 5) == nearest(alone, Vector([0.0, 1.0, 0.0, 0.0]), 5)
        assert answer(tx, WANTED, 6) == nearest(alone, WANTED, 6)
        assert answer(tx, WANTED, 5) == nearest(alone, WANTED, 5)


def test_who_wants_to_change_a_table_does_not_make_both_wait_for_ever(dsn: str, store: PostgreSQLStorage) -> None:
    with psycopg.connect(dsn, autocommit=True) as changing, store.snapshot() as tx:
        before = answer(tx)
        locking = threading.Thread(target=lambda: changing.execute(_CHANGE))
        locking.start()
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        with psycopg.connect(dsn, autocommit=True) as watching:
            wait_until(lambda: bool(watching.execute(waiting).fetchall()[0][0]))
        # Whoever asks anew now stands behind the one who waits for this transaction.
        ask(tx)
        assert answer(tx) == before
    locking.join(30)
    assert not locking.is_alive()


def test_what_a_transaction_wrote_is_never_looked_for_aside(store: PostgreSQLStorage) -> None:
    with store.transaction() as tx:
        tx.save(make.a_memory(id="mine", project_id="shop", session_id=None, embedding=WANTED))
        ask(tx)
        assert answer(tx)[0][0] == "mine"
        tx.delete(Memory, ["mine"], SHOP)


def test_an_exact_search_is_not_begun(alone: PostgreSQLStorage, store: PostgreSQLStorage) -> None:
    index = NativeIndex(store, exact=True)
    with store.snapshot() as tx:
        index.expect(Memory, WANTED, SHOP, EVERYTHING, 5)
        assert [state for _, state in aside(alone)] == ["idle"]
        assert answer(tx) == nearest(alone)


def test_where_others_write_all_the_time_it_is_asked_more_and_more_rarely() -> None:
    def no_pool() -> None:
        raise AssertionError

    tries = 0
    rarely = Aside(no_pool)  # type: ignore[arg-type]
    for _ in range(200):
        try:
            rarely.ask(100, "SELECT 1", {})
        except AssertionError:
            tries += 1
            rarely.tell(in_time=False)
    assert tries < 10
    rarely.tell(in_time=True)
    with pytest.raises(AssertionError):
        rarely.ask(100, "SELECT 1", {})
