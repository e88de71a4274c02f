"""Fields that are read while records are found: always what the store would have given without that."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from alma.model.memory import Memory
from alma.model.query import In
from alma.model.scope import Scope
from alma.storage.base import TEXT_LENGTH
from alma.storage.sqlite_local import SQLiteStorage
from alma.testing import builders as make

SHOP, YARD = Scope(project_id="shop"), Scope(project_id="yard")
NAMES = ("id", "session_id", "title", TEXT_LENGTH, "created_at")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStorage]:
    with SQLiteStorage(tmp_path / "alma.db", embedding_dim=4) as store:
        store.save_many(
            make.a_memory(
                id=f"m{n:02}", title=f"Ana {n}", content="a red apple" if n % 2 else "a pear", project_id=project
            )
            for n, project in enumerate(["shop", "shop", "yard"] * 10)
        )
        yield store


def keys(scope: Scope, store: SQLiteStorage) -> list[str]:
    return [key for (key,) in store.values(Memory, ("id",), scope)]


def test_what_was_foreseen_is_what_the_store_has(store: SQLiteStorage) -> None:
    asked = In("id", [*keys(Scope.everywhere(), store), "m99"])
    plain = store.values(Memory, NAMES, SHOP, asked)
    with store.snapshot() as tx:
        tx.foresee(Memory, NAMES)
        assert len(tx.matching_ids(Memory, "red apples", SHOP, limit=3, exact=False)) == 3
        assert tx.values(Memory, NAMES, SHOP, asked) == plain
    assert len(plain) == 20


def test_what_was_found_in_one_scope_is_not_shown_in_another(store: SQLiteStorage) -> None:
    with store.snapshot() as tx:
        tx.foresee(Memory, NAMES)
        found = [key for key, _ in tx.matching_ids(Memory, "red apples", SHOP, limit=10, exact=False)]
        assert found
        assert tx.values(Memory, NAMES, YARD, In("id", found)) == []


def test_a_transaction_that_writes_sees_what_it_wrote(store: SQLiteStorage) -> None:
    with store.transaction() as tx:
        tx.foresee(Memory, NAMES)
        tx.matching_ids(Memory, "red apples", SHOP, limit=10, exact=False)
        tx.update(Memory, "m01", {"title": "Bea"}, SHOP)
        assert tx.values(Memory, ("title",), SHOP, In("id", ["m01"])) == [("Bea",)]


def test_a_finished_transaction_holds_nothing_that_was_found(store: SQLiteStorage) -> None:
    with store.snapshot() as tx:
        tx.foresee(Memory, NAMES)
        tx.matching_ids(Memory, "red apples", SHOP, limit=10, exact=False)
        assert isinstance(vars(tx)["_searches"], dict)
    assert not vars(tx)["_searches"]
    assert not vars(tx)["_foreseen"]
