"""BM25 from the postings of each word gives the ranking of FTS5."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from alma.model.memory import Memory
from alma.model.query import EVERYTHING, Compare, Has, Predicate
from alma.model.scope import Scope
from alma.storage.sqlite_local import SQLiteStorage
from alma.testing import builders as make

EVERYWHERE = Scope.everywhere()
WORDS = ["anchor", "birch", "candle", "drift", "ember", "falcon", "garnet", "harbor", "island", "jasper"]


def content(number: int) -> str:
    """Some of the words, the first ones far more often than the last, in texts of very different lengths."""
    source = random.Random(number)
    chosen = source.choices(WORDS, [2.0**-place for place in range(len(WORDS))], k=source.randint(1, 40))
    return " ".join(chosen) + " padding" * source.randint(0, 200)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStorage]:
    with SQLiteStorage(tmp_path / "alma.db", embedding_dim=4) as store:
        store.save_many(
            make.a_memory(id=f"m{n:04}", content=content(n), tags=("even",) if n % 2 == 0 else ()) for n in range(300)
        )
        yield store


def found(store: SQLiteStorage, query: str, where: Predicate, limit: int, *, exact: bool) -> list[tuple[str, float]]:
    return store.matching_ids(Memory, query, EVERYWHERE, where, limit, exact=exact)


@pytest.mark.parametrize("where", [EVERYTHING, Has("tags", "even"), Compare("id", "eq", "m0007")])
@pytest.mark.parametrize("query", ["jasper", "island jasper", "anchor jasper", " ".join(WORDS), "nowhere at all"])
def test_any_writer_finds_the_same_and_the_best_first(store: SQLiteStorage, query: str, where: Predicate) -> None:
    with store.transaction() as tx:
        theirs = [key for key, _ in tx.matching_ids(Memory, query, EVERYWHERE, where, 1000)]
    ours = [key for key, _ in found(store, query, where, 1000, exact=False)]
    assert set(ours) == set(theirs)
    assert ours[:1] == theirs[:1]


@pytest.mark.parametrize("limit", [1, 7, 1000])
def test_what_must_be_exact_is_scored_the_same(store: SQLiteStorage, limit: int) -> None:
    exactly = found(store, "anchor falcon jasper", EVERYTHING, limit, exact=True)
    assert found(store, "anchor falcon jasper", EVERYTHING, limit, exact=False) == exactly


def test_the_best_come_first_where_few_are_wanted(store: SQLiteStorage) -> None:
    theirs = found(store, "harbor island jasper", EVERYTHING, 10, exact=True)
    ours = found(store, "harbor island jasper", EVERYTHING, 10, exact=False)
    assert [key for key, _ in ours] == [key for key, _ in theirs]


def test_changed_and_deleted_records_leave_no_entries(store: SQLiteStorage) -> None:
    store.save(make.a_memory(id="m0001", content="jasper jasper"))
    store.save(make.a_memory(id="m0001", content="granite"))
    store.delete(Memory, ["m0002"], EVERYWHERE)
    keys = [key for key, _ in found(store, " ".join(WORDS), EVERYTHING, 1000, exact=False)]
    assert not {"m0001", "m0002"} & set(keys)
    assert [key for key, _ in found(store, "granite", EVERYTHING, 10, exact=False)] == ["m0001"]


def test_a_transaction_finds_what_it_wrote(store: SQLiteStorage) -> None:
    with store.transaction() as tx:
        tx.save(make.a_memory(id="new", content="granite"))
        assert [key for key, _ in tx.matching_ids(Memory, "granite", EVERYWHERE, exact=False)] == ["new"]
