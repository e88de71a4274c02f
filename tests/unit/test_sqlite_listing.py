"""The cache of filtered lists is invalidated by every write."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from alma.model.memory import Memory
from alma.model.query import At, Compare, Has, Predicate
from alma.model.scope import Scope
from alma.storage.base import Reads
from alma.storage.sqlite_local import SQLiteStorage
from alma.testing import builders as make
from alma.vectors.mapped import MappedIndex
from alma.vectors.mapped.state import Tuning

DIMS = 8
SHOP = Scope(project_id="shop")
EAGER = Tuning(exact_rows=20, coarse_rows=200, flush_rows=50, inline_rows=1000)
FILTERS: dict[str, Predicate] = {
    "a tag": Has("tags", "rare"),
    "no index knows it": Compare("title", "eq", "seven"),
    "inside of JSON": At("content_json", "colour", "red"),
}


def vector(seed: object) -> list[float]:
    source = random.Random(repr(seed))
    return [source.gauss() for _ in range(DIMS)]


def a_memory(n: int, *, chosen: bool) -> Memory:
    return make.a_memory(
        id=f"m{n:04}",
        title="seven" if chosen else "",
        content=f"number {n} of the harbor",
        content_json={"colour": "red" if chosen else "blue"},
        tags=["rare"] if chosen else [],
        embedding=vector(n),
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "alma.db"


@pytest.fixture
def store(path: Path) -> Iterator[SQLiteStorage]:
    with SQLiteStorage(path, embedding_dim=DIMS) as store:
        store.save_many(a_memory(n, chosen=n % 60 == 1) for n in range(600))
        yield store


Look = Callable[[Predicate], set[str]]


@pytest.fixture
def look(store: SQLiteStorage, tmp_path: Path) -> Iterator[Look]:
    """Asks the index twice, so that the second answer comes from what was remembered, and then by words."""
    with closing(MappedIndex(store, tmp_path / "vectors", tuning=EAGER)) as index:
        assert index.settle(30)

        def found(where: Predicate) -> set[str]:
            wanted = vector("wanted")
            answers = [index.search(Memory, wanted, SHOP, where, limit=40) for _ in range(2)]
            assert answers[0] == answers[1]
            assert [tuple(each) for each in answers[0]] == store.nearest_ids(Memory, wanted, SHOP, where, limit=40)
            by_words = store.matching_ids(Memory, "harbor number", SHOP, where, limit=40, exact=False)
            assert {key for key, _ in by_words} == {each.record_id for each in answers[0]}
            return {each.record_id for each in answers[0]}

        yield found


CHOSEN = {f"m{n:04}" for n in range(1, 600, 60)}


@pytest.mark.parametrize("name", FILTERS)
def test_what_another_process_changes_is_seen_at_once(store: SQLiteStorage, path: Path, look: Look, name: str) -> None:
    where = FILTERS[name]
    assert look(where) == CHOSEN
    with SQLiteStorage(path, embedding_dim=DIMS) as other:
        other.save(a_memory(2, chosen=True))
        assert look(where) == CHOSEN | {"m0002"}
        other.save(a_memory(1, chosen=False))
        assert look(where) == (CHOSEN | {"m0002"}) - {"m0001"}
        other.delete(Memory, ["m0061"], SHOP)
        other.save(a_memory(700, chosen=True))
        assert look(where) == (CHOSEN | {"m0002", "m0700"}) - {"m0001", "m0061"}


def test_a_store_that_was_put_back_is_looked_at_anew(store: SQLiteStorage, path: Path, look: Look) -> None:
    where = FILTERS["no index knows it"]
    copy = path.with_name("copy.db")
    store.copy_to(copy)
    with SQLiteStorage(path, embedding_dim=DIMS) as other:
        other.save(a_memory(2, chosen=True))
        assert look(where) == CHOSEN | {"m0002"}
        other.copy_from(copy)
        other.save(a_memory(3, chosen=True))
        assert look(where) == CHOSEN | {"m0003"}


def test_what_changes_with_every_read_is_not_remembered(store: SQLiteStorage, path: Path, look: Look) -> None:
    often = Compare("access_count", "ge", 1)
    assert look(often) == set()
    read = Reads(1, store.require(Memory, "m0005", SHOP).created_at)
    with SQLiteStorage(path, embedding_dim=DIMS) as other:
        other.count_reads(Memory, {"m0005": read})
    assert look(often) == {"m0005"}
