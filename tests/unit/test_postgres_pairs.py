"""Searches for frequent words on PostgreSQL intersect postings before they read records."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from alma.model.memory import Memory
from alma.model.scope import Scope
from alma.storage import ranking
from alma.storage.postgres import words as postgres_words
from alma.storage.postgresql import PostgreSQLStorage
from alma.testing import builders as make
from tests.conftest import fresh_database
from tests.support.postgres import PostgresServer

_RECORDS = 1_200
COMMON = ("deploy", "release", "cluster", "invoice", "payment", "queue")
SHOP = Scope(project_id="shop")
EVERY_WORD = "Which deploy release cluster invoice payment queue of the harbour?"


@pytest.fixture(scope="module")
def filled(postgres: PostgresServer) -> Iterator[PostgreSQLStorage]:
    """Each common word is in one of six records, a rare one in twenty, and two records have most of the common ones."""
    source = random.Random(11)
    contents = {f"m{i:05}": f"number{i} {source.choice(COMMON)}" for i in range(_RECORDS)}
    contents |= {f"m{i:05}": f"the harbour has number{i}" for i in range(0, 400, 20)}
    contents["every"] = "number deploy of a release to the cluster: invoice, payment and queue"
    contents["other"] = contents["every"]
    contents["apart"] = f"deploy {'wagon ' * 14} queue"
    with fresh_database(postgres) as dsn, PostgreSQLStorage.from_dsn(dsn, embedding_dim=4) as store:
        store.save_many(
            make.a_memory(id=key, project_id="yard" if key == "other" else "shop", title="", content=content)
            for key, content in contents.items()
        )
        yield store


@pytest.fixture
def store(filled: PostgreSQLStorage, monkeypatch: pytest.MonkeyPatch) -> PostgreSQLStorage:
    """One rare word at most may be looked up alone."""
    monkeypatch.setattr(ranking, "BUDGET", 30)
    monkeypatch.setattr(postgres_words, "_BUDGET", 30)
    monkeypatch.setattr(postgres_words, "_FEWEST_RESCORED", 5)
    monkeypatch.setattr(postgres_words, "_SPARE", 0)
    filled._cache.word_counts = ranking.CountCache(slack=0)
    filled._cache.term_shares.put("memories", ranking.minute(), {})
    return filled


@pytest.mark.parametrize("query", [EVERY_WORD, " ".join(COMMON)], ids=["with a rare word", "common words only"])
def test_who_has_most_of_the_words_is_found_first(store: PostgreSQLStorage, query: str) -> None:
    found = store.matching_ids(Memory, query, SHOP, limit=5, exact=False)
    assert found[0][0] == "every"
    assert "other" not in dict(found)


def test_two_words_that_stand_far_apart_are_found_together(store: PostgreSQLStorage) -> None:
    found = store.matching_ids(Memory, "deploy queue release", SHOP, limit=_RECORDS, exact=False)
    assert "apart" in dict(found)


def test_the_score_is_that_of_all_words(store: PostgreSQLStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    found = dict(store.matching_ids(Memory, EVERY_WORD, SHOP, limit=5, exact=False))
    monkeypatch.setattr(ranking, "BUDGET", 10 * _RECORDS)
    exact = dict(store.matching_ids(Memory, EVERY_WORD, SHOP, limit=_RECORDS))
    assert found == pytest.approx({key: exact[key] for key in found}, rel=0.02)
    assert next(iter(exact)) == "every"


def test_without_looking_for_two_words_it_would_not_be_found(
    store: PostgreSQLStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_words, "_BUDGET_OF_PAIRS", 0)
    assert "every" not in dict(store.matching_ids(Memory, EVERY_WORD, SHOP, limit=5, exact=False))


def test_where_hardly_any_has_two_of_the_words_one_is_enough(store: PostgreSQLStorage) -> None:
    found = store.matching_ids(Memory, "deploy number17", SHOP, limit=8, exact=False)
    assert len(found) == 8
    assert found[0][0] == "m00017"
    apart = store.matching_ids(Memory, "number deploy harbour", SHOP, limit=8, exact=False)
    assert len(apart) == 8
