"""Pages of memories: sorted, continued, and found by an index however far in."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from alma.clock import now
from alma.errors import ValidationError
from alma.memory.filters import ALIVE, MemoryFilter, visible
from alma.memory.journal import Journal
from alma.memory.layers import PROMOTABLE
from alma.model.governance import ANONYMOUS
from alma.model.memory import INSTRUCTION_TYPES, Memory
from alma.model.query import And, Compare, Cursor, In, Order, Predicate
from alma.model.record import Record
from alma.model.scope import Scope
from alma.storage.base import Query, StorageBackend
from alma.storage.queries import inside
from alma.storage.sql.backend import SqlBackend
from alma.storage.sqlite_local import SQLiteStorage

SHOP = Scope(project_id="shop")
START = datetime(2025, 1, 1, tzinfo=UTC)


def fill(store: StorageBackend, count: int = 25) -> list[Memory]:
    made = [
        Memory(
            id=f"m{i:02}",
            project_id="shop",
            content=f"entry {i}",
            # Every third moment is that of its neighbour, so that pages must break ties.
            created_at=START + timedelta(hours=i - i % 3),
            importance_score=(i * 7 % 10) / 10,
            memory_type="note" if i % 2 else "task",
            tags=["even"] if i % 2 == 0 else ["odd"],
        )
        for i in range(count)
    ]
    store.save_many(made)
    return made


@pytest.mark.parametrize("sort", [("-created_at",), ("created_at",), ("-priority", "created_at"), ("memory_type",), ()])
def test_pages_neither_repeat_nor_miss(journal: Journal, store: StorageBackend, sort: Sequence[str]) -> None:
    fill(store)
    everything = [memory.id for memory in journal.batch_read(SHOP, sort=sort, limit=100).memories]
    assert len(everything) == 25
    paged: list[str] = []
    cursor = None
    while True:
        page = journal.batch_read(SHOP, sort=sort, limit=7, cursor=cursor)
        paged.extend(memory.id for memory in page.memories)
        if (cursor := page.next_cursor) is None:
            break
    assert paged == everything
    offsets = [journal.batch_read(SHOP, sort=sort, limit=7, offset=at).memories for at in range(0, 28, 7)]
    assert [memory.id for page in offsets for memory in page] == everything


def test_a_page_through_a_filter_is_full(journal: Journal, store: StorageBackend) -> None:
    made = fill(store)
    where = MemoryFilter(types=["task"], tags=["even"], created_since=START + timedelta(hours=6))
    page = journal.batch_read(SHOP, where=where, sort=["created_at"], limit=5)
    assert [memory.id for memory in page.memories] == [f"m{i:02}" for i in (6, 8, 10, 12, 14)]
    assert page.next_cursor is not None
    assert made


def test_pages_of_several_types_are_in_one_order(journal: Journal, store: StorageBackend) -> None:
    fill(store, 9)
    store.save(Memory(id="other", project_id="shop", content="x", memory_type="error"))
    where = MemoryFilter(types=["task", "note", "task"])
    first = journal.batch_read(SHOP, where=where, sort=["created_at"], limit=5)
    second = journal.batch_read(SHOP, where=where, sort=["created_at"], limit=5, cursor=first.next_cursor)
    assert [memory.id for memory in (*first.memories, *second.memories)] == [f"m{i:02}" for i in range(9)]
    skipped = journal.batch_read(SHOP, where=where, sort=["created_at"], limit=5, offset=5)
    assert skipped.memories == second.memories


def test_ids_come_in_the_order_asked_for(journal: Journal, store: StorageBackend) -> None:
    fill(store)
    page = journal.batch_read(SHOP, ids=["m07", "nothing", "m03", "m07"])
    assert [memory.id for memory in page.memories] == ["m07", "m03"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"limit": 0},
        {"limit": 1001},
        {"offset": -1},
        {"sort": ["nonsense"]},
        {"sort": ["tags"]},
        {"sort": [1]},
        {"cursor": "nonsense"},
        {"cursor": ""},
        {"cursor": "W10="},
    ],
)
def test_a_wrong_page_is_refused(light: Journal, wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        light.batch_read(SHOP, **wrong)  # type: ignore[arg-type]


def test_a_cursor_of_another_order_is_refused(journal: Journal, store: StorageBackend) -> None:
    fill(store)
    token = journal.batch_read(SHOP, limit=3).next_cursor
    with pytest.raises(ValidationError, match="belongs to another sort order"):
        journal.batch_read(SHOP, limit=3, sort=["created_at"], cursor=token)
    with pytest.raises(ValidationError, match="cannot be given together with a cursor"):
        journal.batch_read(SHOP, limit=3, offset=3, cursor=token)


# ---------------------------------------------------------------------- how SQLite looks them up

NEWEST = (Order("created_at", "desc"),)
USUAL = And(visible(SHOP, ANONYMOUS), ALIVE.predicate(now()))


def plan(
    store: SQLiteStorage,
    scope: Scope,
    where: Predicate,
    order: tuple[Order, ...] = NEWEST,
    after: Cursor | None = None,
    cls: type[Record] = Memory,
) -> str:
    with store.snapshot() as tx:
        assert isinstance(tx.backend, SqlBackend)
        query = Query(cls.spec, inside(cls.spec, scope, where), order, 50, after)
        sql, values = tx.backend.dialect.kind(cls.spec).select(query, "model")
        return "\n".join(row[3] for row in tx.backend.rows(f"EXPLAIN QUERY PLAN {sql}", values))


@pytest.fixture
def sqlite(tmp_path: Path) -> SQLiteStorage:
    return SQLiteStorage(tmp_path / "alma.db")


AFTER = Cursor((START,), "m1")


@pytest.mark.parametrize(
    ("scope", "index"),
    [
        (SHOP, "idx_memories_project_created (project_id=? AND created_at<?)"),
        (Scope(user_id="ana"), "idx_memories_user_created (user_id=? AND created_at<?)"),
    ],
)
def test_a_page_begins_at_its_cursor_and_is_sorted_by_an_index(sqlite: SQLiteStorage, scope: Scope, index: str) -> None:
    with sqlite:
        found = plan(sqlite, scope, USUAL, after=AFTER)
    assert index in found
    assert "TEMP B-TREE" not in found


def test_a_page_of_one_type_is_found_by_project_and_type(sqlite: SQLiteStorage) -> None:
    with sqlite:
        found = plan(sqlite, SHOP, And(USUAL, Compare("memory_type", "eq", "task")), after=AFTER)
    assert "idx_memories_project_type (project_id=? AND memory_type=? AND created_at<?)" in found


def test_a_few_of_several_types_are_looked_up_and_not_searched_for(sqlite: SQLiteStorage) -> None:
    with sqlite:
        found = plan(sqlite, SHOP, And(USUAL, In("memory_type", INSTRUCTION_TYPES)))
    assert "idx_memories_project_type (project_id=? AND memory_type=?)" in found


def test_one_memory_is_found_by_its_id(sqlite: SQLiteStorage) -> None:
    with sqlite:
        found = plan(sqlite, SHOP, And(USUAL, Compare("id", "eq", "m1")), order=())
    assert "sqlite_autoindex_memories_1 (id=?)" in found


def test_a_session_is_found_by_its_index(sqlite: SQLiteStorage) -> None:
    with sqlite:
        assert "idx_memories_session (session_id=?)" in plan(sqlite, Scope(session_id="s"), USUAL)


def test_what_could_rise_is_paged_by_an_index(sqlite: SQLiteStorage) -> None:
    with sqlite:
        found = plan(sqlite, SHOP, And(USUAL, PROMOTABLE), after=AFTER)
    assert "idx_memories_project_created (project_id=? AND created_at<?)" in found
