"""Repeated statements on PostgreSQL are planned once, for scopes with any name."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from alma.model.memory import Memory
from alma.model.query import And, Compare, In, Or, Order
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.storage import ranking
from alma.storage.postgres import counts as postgres_counts
from alma.storage.postgres import counts as postgres_owned
from alma.storage.postgres import vectors as postgres_vectors
from alma.storage.postgres import words as postgres_words
from alma.storage.postgresql import PostgreSQLStorage
from alma.testing import builders as make
from tests.conftest import fresh_database
from tests.support.postgres import PostgresServer

_RECORDS, _ASKED = 700, 16
ODD = """it's 100% "odd" \\ {}"""
SCOPES = {"the owner of nearly all": Scope(project_id=ODD), "an owner of few": Scope(project_id="small")}
_PLANS = "SELECT generic_plans FROM pg_prepared_statements WHERE statement LIKE %s"


@pytest.fixture(scope="module")
def filled(postgres: PostgresServer) -> Iterator[PostgreSQLStorage]:
    source = random.Random(7)
    with fresh_database(postgres) as dsn, PostgreSQLStorage.from_dsn(dsn, embedding_dim=4, pool_size=1) as store:
        store.save_many(
            make.a_memory(
                id=f"m{i:05}",
                project_id="small" if i % 20 == 0 else ODD,
                session_id=f"session {i // 20}",
                title=f"number{i}",
                content="deploy" if i % 4 else "release often",
                is_archived=i % 7 == 0,
                embedding=Vector([source.gauss() for _ in range(4)]),
            )
            for i in range(_RECORDS)
        )
        store.prepare_vector_index(Memory)
        with store.connection() as connection:
            connection.execute("ANALYZE")
        yield store


@pytest.fixture
def store(filled: PostgreSQLStorage, monkeypatch: pytest.MonkeyPatch) -> PostgreSQLStorage:
    """An owner with more than a few records counts as a large one."""
    monkeypatch.setattr(postgres_vectors, "_SCANNED_RECORDS", 20)
    monkeypatch.setattr(ranking, "BUDGET", 20)
    monkeypatch.setattr(postgres_words, "_BUDGET", 200)
    filled._cache.word_counts = ranking.CountCache(slack=0)
    filled._cache.large_scopes = ranking.CountCache(slack=0)
    # The server knows all words of so few records, and is not to be asked what it knows again at the next minute.
    for asking in (postgres_counts, postgres_owned, postgres_words):
        monkeypatch.setattr(asking, "minute", lambda: 1)
    filled._cache.term_shares = ranking.CountCache(slack=0)
    filled._cache.term_shares.put("memories", 1, {"deploy": 0.7, "releas": 0.2})
    return filled


def planned_once(store: PostgreSQLStorage, beginning: str) -> bool:
    with store.connection() as connection:
        plans = connection.execute(_PLANS, [f"{beginning}%"]).fetchall()
    return bool(plans) and any(count > 0 for (count,) in plans)


def test_the_index_of_vectors_is_asked_by_one_plan(store: PostgreSQLStorage) -> None:
    source = random.Random(1)
    where, scope = Compare("is_archived", "eq", False), Scope(project_id=ODD)
    for _ in range(_ASKED):
        wanted = Vector([source.gauss() for _ in range(4)])
        found = store.nearest_ids(Memory, wanted, scope, where, 5, exact=False)
        assert [key for key, _ in found] == [key for key, _ in store.nearest_ids(Memory, wanted, scope, where, 5)]
    assert planned_once(store, "SELECT 1 - (alma_embeddings")


def test_words_are_counted_and_scored_by_one_plan(store: PostgreSQLStorage) -> None:
    for i in range(_ASKED):
        [best, *_] = store.matching_ids(Memory, f"deploy number{21 + i}", Scope(project_id=ODD), limit=5, exact=False)
        assert best[0] == f"m{21 + i:05}"
    assert planned_once(store, "SELECT few.count")
    assert planned_once(store, "SELECT best.score")


@pytest.mark.parametrize("scope", SCOPES.values(), ids=SCOPES)
def test_conversations_and_records_are_read_by_one_plan(store: PostgreSQLStorage, scope: Scope) -> None:
    kept = Compare("is_archived", "eq", False)
    everything = {memory.id: memory for memory in store.find(Memory, scope, kept)}
    for i in range(1, _ASKED):
        sessions = [f"session {n}" for n in range(i)]
        where = And(kept, In("session_id", sessions))
        said = store.values(Memory, ("session_id", "id"), scope, where, (Order("session_id"),), 5_000)
        assert {key for _, key in said} == {key for key, each in everything.items() if each.session_id in sessions}
        wanted = [*everything][:i]
        assert store.find(Memory, scope, And(kept, In("id", [*wanted, "nobody"]))) == [everything[k] for k in wanted]
    assert planned_once(store, 'SELECT "memories"."session_id", "memories"."id"')
    assert planned_once(store, 'SELECT "memories"."id", "memories"."user_id"')


def test_truth_values_are_told_apart_in_statements_of_one_shape(store: PostgreSQLStorage) -> None:
    for archived in (True, False, True):
        found = store.find(Memory, Scope(project_id=ODD), Compare("is_archived", "eq", archived))
        assert found
        assert {memory.is_archived for memory in found} == {archived}


def test_ids_in_one_of_several_conditions_are_found(store: PostgreSQLStorage) -> None:
    either = Or(In("id", ["m00001", "m00020"]), Compare("title", "eq", "number3"))
    assert [memory.id for memory in store.find(Memory, Scope(project_id=ODD), either)] == ["m00001", "m00003"]


def test_agents_are_listed_whatever_they_are_called(store: PostgreSQLStorage) -> None:
    """With many records each, so that they stand in the statement itself."""
    names = [ODD, "%s", "%(p0)s"]
    store.save_many(
        make.a_memory(id=f"a{i:04}", project_id="agents", source_agent="x", user_id=names[i % 3], title=f"only{i}")
        for i in range(90)
    )
    for i, name in enumerate(names):
        scope = Scope(project_id="agents", user_id=name)
        assert [key for key, _ in store.matching_ids(Memory, f"only{i}", scope, exact=False)] == [f"a{i:04}"]
        assert store.word_counts(Memory, [f"only{i}", f"only{i + 1}"], scope)[1] == {f"only{i}": 1, f"only{i + 1}": 0}
