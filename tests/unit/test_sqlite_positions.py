"""Positions cached by an SQLite transaction stay correct while it writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from alma.memory.audit import AuditTrail
from alma.model.learning import Heuristic
from alma.model.scope import Scope
from alma.storage.sqlite_local import SQLiteStorage
from alma.testing import builders as make

EVERYWHERE = Scope.everywhere()
VECTOR = [1.0, 0.0, 0.0, 0.0]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStorage]:
    with SQLiteStorage(tmp_path / "alma.db", embedding_dim=4) as store:
        yield store


def stored_position(store: SQLiteStorage) -> int:
    with store.snapshot() as tx:
        return tx.vector_position()


def test_the_position_of_the_vectors_moves_with_every_way_to_write_one(store: SQLiteStorage) -> None:
    with store.transaction() as tx:
        known = make.a_heuristic(embedding=VECTOR)
        positions = [tx.vector_position()]
        tx.save(known)
        positions.append(tx.vector_position())
        tx.save(make.a_heuristic(embedding=VECTOR), make.a_heuristic(embedding=VECTOR))
        positions.append(tx.vector_position())
        tx.save(known.replace(embedding=[0.0, 1.0, 0.0, 0.0]))
        positions.append(tx.vector_position())
        tx.put_passages(Heuristic, {known.id: [VECTOR, VECTOR]})
        positions.append(tx.vector_position())
    assert positions == [0, 1, 3, 4, 6]
    assert stored_position(store) == 6


def test_two_stores_on_one_file_write_one_chain_of_events(store: SQLiteStorage) -> None:
    with SQLiteStorage(store.path, embedding_dim=4) as other:
        for number in range(6):
            (store, other)[number % 2].save(make.a_heuristic(embedding=VECTOR))
        with store.transaction() as tx:
            tx.vector_position()
            tx.save(make.a_heuristic())
            tx.save(make.a_heuristic())
        verified = AuditTrail(other).verify()
    assert verified.ok


def test_a_projection_that_is_registered_in_a_transaction_hears_of_what_follows(store: SQLiteStorage) -> None:
    store.save(make.a_heuristic())
    with store.transaction() as tx:
        tx.vector_position()
        tx.save(make.a_heuristic())
        tx.register_projection("index", ["heuristic"])
        later = make.a_heuristic()
        tx.save(later)
        assert [mark.record_id for mark in tx.pending("index")] == [later.id]
    with store.transaction() as tx:
        tx.drop_projection("index")
        tx.save(make.a_heuristic())
        assert tx.pending("index") == []


def test_a_store_that_was_erased_begins_a_chain_that_is_verified(store: SQLiteStorage) -> None:
    store.save(make.a_heuristic())
    with store.transaction() as tx:
        tx.vector_position()
        tx.erase()
        tx.save(make.a_heuristic())
    assert AuditTrail(store).verify().ok


def test_a_number_that_becomes_a_truth_value_in_json_is_a_change(store: SQLiteStorage) -> None:
    known = make.a_heuristic(metadata={"seen": 1})
    store.save(known)
    store.update(Heuristic, known.id, {"metadata": {"seen": True}}, EVERYWHERE)
    found = store.require(Heuristic, known.id, EVERYWHERE)
    assert found.metadata["seen"] is True
