"""What a PostgreSQL transaction was told beforehand saves questions, and changes no answer."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from alma.model.memory import Memory
from alma.model.query import And, Compare, In, Predicate
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.storage import ranking
from alma.storage.base import TEXT_LENGTH
from alma.storage.postgres import vectors as postgres_vectors
from alma.storage.postgres import words as postgres_words
from alma.storage.postgresql import PostgreSQLStorage
from alma.testing import builders as make
from tests.conftest import fresh_database
from tests.support.postgres import PostgresServer

_RECORDS = 900
NAMES = ("id", "session_id", "title", TEXT_LENGTH, "created_at")
WANTED = Vector([1.0, 0.2, 0.0, -0.3])
WHERE = Compare("is_active", "eq", True)
SMALL, BIG, NOBODY = Scope(project_id="small"), Scope(project_id="big"), Scope(project_id="nobody")


@pytest.fixture(scope="module")
def filled(postgres: PostgresServer) -> Iterator[PostgreSQLStorage]:
    source = random.Random(7)
    with fresh_database(postgres) as dsn, PostgreSQLStorage.from_dsn(dsn, embedding_dim=4) as store:
        store.save_many(
            make.a_memory(
                id=f"m{i:05}",
                project_id="small" if i % 6 == 1 else "big",
                title=f"number{i}",
                content="deploy" if i % 4 else "release often",
                memory_type="it's 100% odd" if i == 7 else "note",
                embedding=Vector([source.gauss() for _ in range(4)]),
            )
            for i in range(_RECORDS)
        )
        store.prepare_vector_index(Memory)
        yield store


@pytest.fixture(params=["all words", "rare words"])
def store(
    request: pytest.FixtureRequest, filled: PostgreSQLStorage, monkeypatch: pytest.MonkeyPatch
) -> PostgreSQLStorage:
    """Small enough to look at each record for all words, or so large that only the rarest are looked up."""
    if request.param == "rare words":
        monkeypatch.setattr(ranking, "BUDGET", 20)
        monkeypatch.setattr(postgres_words, "_BUDGET", 60)
    filled._dialect.word_counts = ranking.Remembered(slack=0)
    return filled


@pytest.mark.parametrize("scope", [SMALL, BIG], ids=["small", "big"])
@pytest.mark.parametrize("few", [4, 4_000], ids=["by the index", "by each"])
def test_what_is_foreseen_is_what_would_be_read(
    store: PostgreSQLStorage, monkeypatch: pytest.MonkeyPatch, scope: Scope, few: int
) -> None:
    monkeypatch.setattr(postgres_vectors, "_FEW_RECORDS", few)
    monkeypatch.setattr(postgres_vectors, "_SENT", few)
    store._dialect.large_scopes = ranking.Remembered(slack=0)
    with store.snapshot() as tx:
        tx.foresee(Memory, NAMES)
        near = tx.nearest_ids(Memory, WANTED, scope, WHERE, 30, exact=False)
        matching = tx.matching_ids(Memory, "deploy number7 number13 often", scope, WHERE, 20, exact=False)
        ids = [key for key, _ in (*near, *matching)]
        foreseen = tx.values(Memory, NAMES, scope, In("id", [*ids, "m00001", "unknown"]))
    assert len(near) == 30
    assert len(matching) == 20
    assert foreseen == store.values(Memory, NAMES, scope, In("id", [*ids, "m00001", "unknown"]))
    assert [key for key, _ in near] == [key for key, _ in store.nearest_ids(Memory, WANTED, scope, WHERE, 30)]


@pytest.mark.parametrize(
    ("where", "found"),
    [
        (In("memory_type", ["note", "fact"]), 149),
        (In("memory_type", ["it's 100% odd"]), 1),
        (And(WHERE, In("memory_type", ["it's 100%% odd", "x"])), 0),
        (And(Compare("is_archived", "eq", True), In("memory_type", ["note"])), 0),
        (WHERE, 150),
    ],
    ids=["many", "one", "none", "none of many", "all"],
)
def test_what_is_expected_is_found_wherever_there_is_any(
    store: PostgreSQLStorage, where: Predicate, found: int
) -> None:
    with store.snapshot() as tx:
        tx.expect(Memory, SMALL, where)
        tx.expect(Memory, NOBODY, where)
        assert tx.size(Memory, SMALL) == 150
        assert len(tx.find(Memory, SMALL, where)) == found
        assert tx.find(Memory, NOBODY, where) == []
