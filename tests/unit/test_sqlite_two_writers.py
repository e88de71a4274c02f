"""Two stores on one SQLite file: positions, versions, projections and chains continue where the other one wrote."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from alma import clock
from alma.memory.audit import AuditTrail
from alma.model.learning import Heuristic, Outcome
from alma.model.query import And, Compare, Order
from alma.model.scope import Scope
from alma.storage.backend import Query
from alma.storage.sql.statements import Dialect
from alma.storage.sqlite_local import SQLiteStorage
from alma.testing import builders as make

EVERYWHERE = Scope.everywhere()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStorage]:
    with SQLiteStorage(tmp_path / "alma.db", embedding_dim=4) as store:
        store.save(make.a_heuristic())
        yield store


def test_what_a_transaction_knows_of_the_store_is_right_after_others_wrote(store: SQLiteStorage) -> None:
    vector = [1.0, 0.0, 0.0, 0.0]
    with SQLiteStorage(store.path, embedding_dim=4) as other:
        for writer in (store, store, other, store, other, other, store):
            writer.save(make.a_heuristic(embedding=vector))
        with store.transaction() as tx:
            assert tx.vector_position() == 7
        assert AuditTrail(store).verify().ok


def test_a_change_follows_the_newest_version_of_any_writer(store: SQLiteStorage) -> None:
    rule = make.a_heuristic(id="rule", confidence=0.0)
    store.save(rule)

    def change(writer: SQLiteStorage, confidence: float) -> None:
        writer.update(Heuristic, "rule", {"confidence": confidence}, EVERYWHERE)

    with SQLiteStorage(store.path, embedding_dim=4) as other:
        for i, writer in enumerate((store, store, other, store, other, other, store), start=1):
            change(writer, i / 10)
        with pytest.raises(RuntimeError), store.transaction() as tx:
            tx.update(Heuristic, "rule", {"confidence": 0.99}, EVERYWHERE)
            raise RuntimeError
        # Its deletion has the number that the change would have had.
        other.delete(Heuristic, ["rule"], EVERYWHERE)
        other.save(rule)
        change(store, 0.8)
        change(other, 0.9)
    history = store.history(Heuristic, "rule", EVERYWHERE)
    assert [version.version_number for version in history] == list(range(1, 13))
    assert [(version.record_json or {}).get("confidence") for version in history] == [
        *(i / 10 for i in range(8)),
        None,
        0.0,
        0.8,
        0.9,
    ]


def test_a_projection_registered_by_another_process_hears_of_what_follows(store: SQLiteStorage) -> None:
    store.save(make.a_heuristic())
    with SQLiteStorage(store.path, embedding_dim=4) as other, other.transaction() as tx:
        tx.register_projection("index", ["heuristic"])
    later = make.a_heuristic()
    store.save(later)
    with store.snapshot() as tx:
        assert [mark.record_id for mark in tx.pending("index")] == [later.id]


def test_the_newest_outcomes_of_a_lesson_are_read_from_an_index_in_its_order(store: SQLiteStorage) -> None:
    names, order = ("success", "timestamp"), (Order("timestamp", "desc"),)
    scope = Scope(project_id="shop", agent="helena")
    where = And(scope.predicate(Outcome.spec), Compare("lesson_id", "eq", "a"))
    sql, values = Dialect("sqlite").kind(Outcome.spec).select_values(Query(Outcome.spec, where, order, 100), names)
    with store._connections.lent() as connection:
        plan = connection.execute(f"EXPLAIN QUERY PLAN {sql}", values).fetchall()
    assert [row[3] for row in plan] == [
        "SEARCH outcomes USING COVERING INDEX idx_outcomes_project_agent (project_id=? AND agent=? AND lesson_id=?)"
    ]


def test_outcomes_without_a_moment_come_last_among_those_of_a_lesson(store: SQLiteStorage) -> None:
    first, second, timeless = (
        make.an_outcome(lesson_id="l", timestamp=None if i == 2 else clock.now()) for i in range(3)
    )
    store.save_many([timeless, first, second])
    of_lesson, newest = Compare("lesson_id", "eq", "l"), (Order("timestamp", "desc"),)
    found = store.values(Outcome, ("id",), Scope(project_id=first.project_id), of_lesson, newest, 10)
    assert [key for (key,) in found] == [second.id, first.id, timeless.id]
