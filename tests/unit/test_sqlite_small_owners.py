"""Word searches in a small scope of a large SQLite table: same records, frequencies of the scope."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from alma.model.memory import Memory
from alma.model.query import EVERYTHING, Has, Predicate
from alma.model.scope import Scope
from alma.storage.sqlite import words as sqlite_words
from alma.storage.sqlite_local import SQLiteStorage
from alma.testing import builders as make

OWN = Scope(project_id="own")
WORDS = ["anchor", "birch", "candle", "drift", "ember", "falcon", "garnet", "harbor"]
OFTEN = [2.0**-place for place in range(len(WORDS))]


def sentence(number: int) -> str:
    """Some of the words, each once, the first ones far more often than the last."""
    source = random.Random(number)
    return " ".join(dict.fromkeys(source.choices(WORDS, OFTEN, k=source.randint(1, 6)))) + " said" * (number % 3)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SQLiteStorage]:
    """Eighty memories of one owner among six hundred of others, which count as many."""
    monkeypatch.setattr(sqlite_words, "_SMALL_TABLE", 100)
    with SQLiteStorage(tmp_path / "alma.db", embedding_dim=4) as store:
        store.save_many(
            make.a_memory(
                id=f"m{n:03}",
                project_id="own" if n % 8 == 0 else "other",
                content=sentence(n),
                tags=("even",) if n % 16 == 0 else (),
            )
            for n in range(640)
        )
        yield store


def keys(store: SQLiteStorage, query: str, where: Predicate = EVERYTHING, limit: int = 50) -> list[str]:
    return [key for key, _ in store.matching_ids(Memory, query, OWN, where, limit, exact=False)]


@pytest.fixture
def alone(store: SQLiteStorage, tmp_path: Path) -> Iterator[SQLiteStorage]:
    """A store that has nothing but what the owner has."""
    with SQLiteStorage(tmp_path / "alone.db", embedding_dim=4) as alone:
        alone.save_many(store.find(Memory, OWN))
        yield alone


@pytest.mark.parametrize("where", [EVERYTHING, Has("tags", "even")], ids=["all", "filtered"])
@pytest.mark.parametrize("query", ["harbor", "anchor harbor", "ember nowhere", "nowhere"])
def test_a_small_owner_finds_what_it_would_in_a_store_of_its_own(
    store: SQLiteStorage, alone: SQLiteStorage, query: str, where: Predicate
) -> None:
    assert set(keys(store, query, where, 1000)) == set(keys(alone, query, where, 1000))
    best, best_alone = (each.matching_ids(Memory, query, OWN, where, 20, exact=False) for each in (store, alone))
    assert [score for _, score in best] == pytest.approx([score for _, score in best_alone], rel=0.1)


def test_as_many_are_found_by_words_that_most_records_have(store: SQLiteStorage, alone: SQLiteStorage) -> None:
    everything = " ".join(WORDS)
    having = set(keys(alone, everything, limit=1000))
    for _ in range(2):
        found = keys(store, everything, limit=10)
        assert len(found) == 10
        assert having.issuperset(found)


def test_what_is_rare_elsewhere_and_common_here_weighs_little(store: SQLiteStorage) -> None:
    store.save_many(make.a_memory(id=f"own{n}", project_id="own", content=f"melanie felt {n}") for n in range(60))
    store.save(make.a_memory(id="wanted", project_id="own", content="after the accident she was calm"))
    store.save_many(make.a_memory(id=f"o{n}", project_id="other", content="an accident again") for n in range(90))
    assert keys(store, "melanie accident")[0] == "wanted"


def test_a_filter_that_leaves_few_is_looked_through_to_the_end(store: SQLiteStorage) -> None:
    store.save_many(make.a_memory(id=f"own{n:03}", project_id="own", content="anchor lamp") for n in range(70))
    store.save(make.a_memory(id="tagged", project_id="own", content="anchor " + "word " * 30, tags=("rare",)))
    assert keys(store, "anchor lamp", Has("tags", "rare"), 5) == ["tagged"]


def test_what_is_written_deleted_and_changed_is_seen_at_once(store: SQLiteStorage) -> None:
    assert keys(store, "quartz") == []
    store.save(make.a_memory(id="new", project_id="own", content="quartz"))
    assert keys(store, "quartz") == ["new"]
    store.save(make.a_memory(id="new", project_id="own", content="basalt"))
    assert (keys(store, "quartz"), keys(store, "basalt")) == ([], ["new"])
    store.delete(Memory, ["new"], OWN)
    assert keys(store, "basalt") == []


def test_in_long_texts_it_counts_how_often_a_word_stands_there(store: SQLiteStorage) -> None:
    filler = " ".join(f"padding{n}" for n in range(100))
    store.save_many(
        [
            make.a_memory(id="once", project_id="own", content=f"turbine {filler}"),
            make.a_memory(id="often", project_id="own", content=f"turbine turbine turbine {filler}"),
        ]
    )
    for _ in range(2):
        assert keys(store, "turbine") == ["often", "once"]


def test_any_writer_finds_the_same(store: SQLiteStorage) -> None:
    outside = keys(store, "falcon garnet", limit=1000)
    with store.transaction() as tx:
        inside = [key for key, _ in tx.matching_ids(Memory, "falcon garnet", OWN, EVERYTHING, 1000, exact=False)]
    assert set(inside) == set(outside)
