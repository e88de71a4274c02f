"""Searches in a small scope of a large PostgreSQL table give the same result as a full scan."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from alma.model.learning import Heuristic
from alma.model.memory import Memory
from alma.model.query import Compare, matches
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.storage import ranking
from alma.storage.postgres import counts as postgres_counts
from alma.storage.postgres import vectors as postgres_vectors
from alma.storage.postgres import words as postgres_words
from alma.storage.postgresql import PostgreSQLStorage
from alma.testing import builders as make
from tests.conftest import fresh_database
from tests.support.postgres import PostgresServer

_RECORDS = 900
WANTED = Vector([1.0, 0.2, 0.0, -0.3])
SCOPES = {
    "a project": Scope(project_id="small"),
    "a user": Scope(user_id="ana"),
    "a user's project": Scope(project_id="small", user_id="ana"),
    "nobody": Scope(project_id="ana"),
}


@pytest.fixture(scope="module")
def memories() -> list[Memory]:
    source = random.Random(7)
    return [
        make.a_memory(
            id=f"m{i:05}",
            project_id="small" if i % 6 == 1 else "big",
            user_id="ana" if i % 12 in (1, 4) else "bob",
            title=f"number{i}",
            content="deploy" if i % 4 else "release often",
            memory_type="note" if i % 5 else "fact",
            embedding=Vector([source.gauss() for _ in range(4)]),
        )
        for i in range(_RECORDS)
    ]


@pytest.fixture(scope="module")
def filled(memories: list[Memory], postgres: PostgresServer) -> Iterator[PostgreSQLStorage]:
    with fresh_database(postgres) as dsn, PostgreSQLStorage.from_dsn(dsn, embedding_dim=4) as store:
        store.save_many(memories)
        agents = (f"agent {i % 9}" for i in range(_RECORDS))
        store.save_many(
            make.a_heuristic(id=f"h{i:05}", agent=agent, condition=f"number{i}", strategy="deploy" if i % 4 else "test")
            for i, agent in enumerate(agents)
        )
        yield store


@pytest.fixture(params=["few", "many"])
def store(
    request: pytest.FixtureRequest, filled: PostgreSQLStorage, monkeypatch: pytest.MonkeyPatch
) -> PostgreSQLStorage:
    """Owners have too many records to look at each, and few or many among all."""
    monkeypatch.setattr(ranking, "BUDGET", 20)
    monkeypatch.setattr(postgres_words, "_BUDGET", 60)
    monkeypatch.setattr(postgres_counts, "_ONE_IN", 4 if request.param == "few" else _RECORDS + 1)
    filled._cache.word_counts = ranking.CountCache(slack=0)
    # The server may have analysed the table by itself, and knows words of few records only about.
    filled._cache.term_shares.put("memories", ranking.minute(), {})
    return filled


@pytest.mark.parametrize("scope", SCOPES.values(), ids=SCOPES)
def test_the_best_by_words_are_the_owners(store: PostgreSQLStorage, memories: list[Memory], scope: Scope) -> None:
    owned = {memory.id: memory.title for memory in memories if matches(scope.predicate(Memory.spec), memory)}
    rare = [*owned.values()][3:6]
    query = " ".join(["release", "deploy", *rare, "number0"])
    found = [key for key, _ in store.matching_ids(Memory, query, scope, limit=20, exact=False)]
    assert {owned[key] for key in found[:3]} == set(rare)
    assert set(found) <= owned.keys()
    assert len(found) >= min(10, len(owned))


@pytest.mark.parametrize("scope", SCOPES.values(), ids=SCOPES)
def test_words_are_counted_among_the_owners(store: PostgreSQLStorage, memories: list[Memory], scope: Scope) -> None:
    owned = [memory.title for memory in memories if matches(scope.predicate(Memory.spec), memory)]
    counts = store.word_counts(Memory, ["number7", "number13", "number0"], scope)[1]
    assert counts == {name: owned.count(name) for name in counts}


def test_the_words_of_agents_are_theirs(store: PostgreSQLStorage) -> None:
    scope = Scope(project_id="shop", agent=("agent 3", "agent 4"))
    found = store.matching_ids(Heuristic, "deploy number3 number4 number5 number12", scope, limit=3, exact=False)
    assert {key for key, _ in found} == {"h00003", "h00004", "h00012"}


@pytest.mark.parametrize("scope", SCOPES.values(), ids=SCOPES)
@pytest.mark.parametrize("kind", ["note", "fact", "nothing"])
def test_the_nearest_fulfil_the_rest_of_the_condition(
    filled: PostgreSQLStorage, monkeypatch: pytest.MonkeyPatch, scope: Scope, kind: str
) -> None:
    """However many of the owner's records stand nearer and do not fulfil it."""
    monkeypatch.setattr(postgres_vectors, "_SPARE", 2)
    where = Compare("memory_type", "eq", kind)
    near = filled.nearest_ids(Memory, WANTED, scope, where, 5, exact=False)
    assert near == filled.nearest_ids(Memory, WANTED, scope, where, 5)
