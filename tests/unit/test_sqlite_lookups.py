"""SQLite looks up records by id, without a scan of their owner's records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from alma.model.learning import Heuristic
from alma.model.memory import Memory
from alma.model.query import And, Compare, In, Or, Predicate
from alma.model.record import Record
from alma.model.scope import Scope
from alma.storage.sql.backend import SqlBackend
from alma.storage.sqlite_local import SQLiteStorage
from alma.testing import builders as make


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStorage]:
    with SQLiteStorage(tmp_path / "alma.db", embedding_dim=4) as store:
        yield store


def plan(store: SQLiteStorage, cls: type[Record], where: Predicate) -> str:
    with store.snapshot() as tx:
        assert isinstance(tx.backend, SqlBackend)
        sql, values = tx.backend.dialect.kind(cls.spec).count(where)
        return "\n".join(row[3] for row in tx.backend.rows(f"EXPLAIN QUERY PLAN {sql}", values))


OWNED = And(Compare("project_id", "eq", "p"), In("agent", ["a"]))


@pytest.mark.parametrize("named", [In("id", ["x", "y"]), Compare("id", "eq", "x")])
def test_records_named_by_key_are_looked_up_by_it(store: SQLiteStorage, named: Predicate) -> None:
    assert "sqlite_autoindex_heuristics_1 (id=?)" in plan(store, Heuristic, And(OWNED, And(named)))


def test_the_turns_of_a_conversation_are_looked_up_by_it(store: SQLiteStorage) -> None:
    where = And(Compare("project_id", "eq", "p"), In("session_id", ["s"]))
    assert "idx_memories_session" in plan(store, Memory, where)


def test_without_names_records_are_looked_up_by_owner(store: SQLiteStorage) -> None:
    assert "idx_heuristics_project_agent" in plan(store, Heuristic, OWNED)
    either = And(OWNED, Or(In("id", ["x"]), Compare("confidence", "gt", 0.5)))
    assert "idx_heuristics_project_agent" in plan(store, Heuristic, either)


def test_words_find_the_best_inside_the_scope_however_many_outside_are_better(store: SQLiteStorage) -> None:
    store.save_many(
        [make.a_heuristic(id=f"other{n:03}", agent="other", condition="red apples", strategy="eat") for n in range(90)]
    )
    store.save_many(
        [make.a_heuristic(id=f"own{n}", agent="own", condition="red and many more", strategy="eat") for n in range(4)]
    )
    scope = Scope(agent="own")
    found = store.matching_ids(Heuristic, "red apples", scope, limit=3)
    assert [key for key, _ in found] == ["own0", "own1", "own2"]


@pytest.mark.parametrize(
    ("where", "found"),
    [
        (In("id", []), []),
        (In("id", ["b"]), ["b"]),
        (In("id", ["a", "c"]), ["a", "c"]),
        (In("confidence", [0.1]), ["a"]),
        (In("confidence", [0.1, 0.3]), ["a", "c"]),
        (Compare("confidence", "ge", 0.2), ["b", "c"]),
        (Or(Compare("id", "eq", "a"), Compare("id", "eq", "b")), ["a", "b"]),
        (And(Compare("confidence", "lt", 0.3), In("id", ["b", "c"])), ["b"]),
    ],
)
def test_a_question_that_was_asked_before_with_other_values_is_answered_anew(
    store: SQLiteStorage, where: Predicate, found: list[str]
) -> None:
    store.save_many([make.a_heuristic(id=key, confidence=n / 10) for n, key in enumerate("abc", start=1)])
    scope = Scope.everywhere()
    others: list[Predicate] = [
        In("id", ["x"]),
        In("id", ["x", "y"]),
        In("confidence", [0.5]),
        Compare("confidence", "ge", 0.9),
    ]
    for each in (*others, where, *others, where):
        expected = found if each is where else []
        assert [record.id for record in store.find(Heuristic, scope, each)] == expected
        assert store.values(Heuristic, ["id"], scope, each, limit=2) == [(key,) for key in expected][:2]
        assert store.values(Heuristic, ["id"], scope, each) == [(key,) for key in expected]


def test_a_change_that_only_its_type_tells_is_stored(store: SQLiteStorage) -> None:
    store.save(make.a_heuristic(id="a", metadata={"done": 1}))
    store.save(make.a_heuristic(id="a", metadata={"done": True}))
    assert store.require(Heuristic, "a", Scope.everywhere()).metadata["done"] is True


def test_what_something_else_wrote_without_words_is_there(store: SQLiteStorage) -> None:
    kept = make.a_heuristic()
    store.save(kept)
    with store.transaction() as tx:
        assert isinstance(tx.backend, SqlBackend)
        tx.backend.rows("INSERT INTO heuristics_fts(heuristics_fts) VALUES ('delete-all')", {})
    with store.snapshot() as tx:
        assert tx.find(Heuristic, Scope.everywhere()) == [kept]
