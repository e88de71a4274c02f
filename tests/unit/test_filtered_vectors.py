"""Vector searches with a selective filter find every matching record, nearest first."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from alma.model.memory import Memory
from alma.model.query import And, Compare, Has, In, Or, Predicate
from alma.model.scope import Scope
from alma.storage.sqlite.backend import SQLiteBackend
from alma.storage.sqlite.filters import narrowest
from alma.storage.sqlite_local import SQLiteStorage
from alma.testing import builders as make
from alma.vectors.mapped import MappedIndex
from alma.vectors.mapped.state import Tuning

DIMS = 8
SHOP = Scope(project_id="shop")
START = datetime(2026, 1, 1, tzinfo=UTC)
EAGER = Tuning(exact_rows=20, coarse_rows=200, flush_rows=50, inline_rows=1000)
RARE = Has("tags", "rare")
LATE = Compare("created_at", "ge", START + timedelta(hours=590))
FILTERS: dict[str, Predicate] = {
    "a tag": RARE,
    "one of two tags": Or(RARE, Has("tags", "rarer")),
    "a type": Compare("memory_type", "eq", "decision"),
    "types": In("memory_type", ["decision", "unheard"]),
    "a time": LATE,
    "a tag and a time": And(RARE, LATE),
    "nothing has it": Has("tags", "unheard"),
    "most have it": Has("tags", "common"),
    "no index knows it": Compare("title", "eq", "seven"),
}


def vector(seed: object) -> list[float]:
    source = random.Random(repr(seed))
    return [source.gauss() for _ in range(DIMS)]


def a_memory(n: int) -> Memory:
    tags = ["common", *(["rare"] if n % 50 == 0 else []), *(["rarer"] if n % 170 == 0 else [])]
    return make.a_memory(
        id=f"m{n:04}",
        title="seven" if n % 77 == 7 else "",
        content=f"number {n}",
        tags=tags,
        memory_type="decision" if n % 60 == 1 else "note",
        created_at=START + timedelta(hours=n),
        project_id="shop" if n % 10 else "yard",
        embedding=vector(n) if n % 3 else None,
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStorage]:
    with SQLiteStorage(tmp_path / "alma.db", embedding_dim=DIMS) as store:
        store.save_many(map(a_memory, range(600)))
        yield store


@pytest.mark.parametrize("name", FILTERS)
def test_the_index_finds_what_the_store_finds(store: SQLiteStorage, tmp_path: Path, name: str) -> None:
    with closing(MappedIndex(store, tmp_path / "vectors", tuning=EAGER)) as index:
        assert index.settle(30)
        for scope in (SHOP, Scope.everywhere()):
            for seed in range(3):
                wanted = vector(("wanted", seed))
                ours = index.search(Memory, wanted, scope, FILTERS[name], limit=5)
                assert ours == store.nearest_ids(Memory, wanted, scope, FILTERS[name], limit=5)


def test_a_deleted_record_is_not_found_through_a_filter(store: SQLiteStorage, tmp_path: Path) -> None:
    with closing(MappedIndex(store, tmp_path / "vectors", tuning=EAGER)) as index:
        assert index.settle(30)
        [best, *_] = index.search(Memory, vector("wanted"), SHOP, LATE, limit=3)
        store.delete(Memory, [best.record_id], SHOP)
        left = index.search(Memory, vector("wanted"), SHOP, LATE, limit=3)
        assert left == store.nearest_ids(Memory, vector("wanted"), SHOP, LATE, limit=3)


def lead(store: SQLiteStorage, where: Predicate, most: int) -> str | None:
    with store.snapshot() as tx:
        assert isinstance(tx.backend, SQLiteBackend)
        found = narrowest(tx.backend, Memory.spec, where, most)
        return None if found is None else found.sql


def test_the_part_that_fewest_records_fulfil_leads(store: SQLiteStorage) -> None:
    common_and_late = lead(store, And(Has("tags", "common"), LATE), 1000)
    rare_and_many = lead(store, And(RARE, Compare("created_at", "ge", START)), 1000)
    assert common_and_late is not None
    assert "created_at" in common_and_late
    assert rare_and_many is not None
    assert "memory_tags" in rare_and_many


def test_nothing_leads_where_too_many_fulfil_every_part(store: SQLiteStorage) -> None:
    assert lead(store, Has("tags", "common"), 100) is None
    assert lead(store, Compare("title", "eq", "seven"), 100) is None
