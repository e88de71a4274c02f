"""Transactions by id: all of their steps are committed at once, or none."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path

import pytest

from alma import ALMA, clock
from alma.errors import NotFoundError, UniquenessError, ValidationError
from alma.model.governance import Attribution
from alma.model.memory import Memory, MemoryVersion
from alma.model.workspace import User
from alma.storage.base import StorageBackend
from alma.sync import Relay, TransactionCoordinator
from alma.testing import builders as make
from alma.testing.builders import EVERYWHERE
from tests.support.second_store import SecondStore
from tests.sync.conftest import require_equal


def test_nothing_is_seen_until_the_commit_and_the_outbox_carries_the_rest(
    storage: StorageBackend, second: SecondStore
) -> None:
    Relay(storage, second).run()
    old, new = make.a_memory(), make.a_memory(title="new")
    storage.save(old)
    Relay(storage, second).run()
    coordinator = TransactionCoordinator(storage)
    first, other = coordinator.begin(Attribution(user_id="ana")), coordinator.begin()
    coordinator.save(first, new)
    coordinator.delete(first, Memory, [old.id], EVERYWHERE)
    coordinator.add(first, lambda tx: tx.count(Memory, EVERYWHERE))
    coordinator.save(other, make.a_memory(title="never"))
    assert [each.id for each in storage.find(Memory, EVERYWHERE)] == [old.id]

    done = coordinator.commit_transaction(first)
    assert done.results == ([new.id], 1, 1)
    assert done.pending == {"second": 2}
    assert coordinator.rollback_transaction(other).discarded == 1
    assert [each.id for each in storage.find(Memory, EVERYWHERE)] == [new.id]
    assert storage.find(MemoryVersion, EVERYWHERE)[-1].created_by == "ana"
    Relay(storage, second).run()
    require_equal(storage, second)


def test_a_commit_that_fails_writes_nothing_and_may_be_repeated(lite: StorageBackend) -> None:
    coordinator = TransactionCoordinator(lite)
    lite.save(taken := User(username="ana"))
    begun = coordinator.begin()
    coordinator.save(begun, make.a_memory(), User(username="ana"))
    for _ in range(2):
        with pytest.raises(UniquenessError):
            coordinator.commit(begun)
        assert lite.count(Memory, EVERYWHERE) == 0
    lite.delete(User, [taken.id], EVERYWHERE)
    coordinator.commit(begun)
    assert lite.count(Memory, EVERYWHERE) == lite.count(User, EVERYWHERE) == 1


def test_an_id_is_of_one_open_transaction(lite: StorageBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    coordinator = TransactionCoordinator(lite, open_seconds=60)
    ended, forgotten = coordinator.begin(), coordinator.begin()
    coordinator.save(forgotten, make.a_memory())
    coordinator.commit(ended)
    later = clock.now() + timedelta(seconds=61)
    for call in (coordinator.commit, coordinator.rollback, coordinator.save):
        with pytest.raises(NotFoundError, match="there is no open transaction with id"):
            call(ended)
    monkeypatch.setattr(clock, "now", lambda: later)
    with pytest.raises(NotFoundError):
        coordinator.commit(forgotten)
    assert lite.count(Memory, EVERYWHERE) == 0


def test_an_invalid_step_is_refused(lite: StorageBackend) -> None:
    coordinator = TransactionCoordinator(lite)
    with pytest.raises(ValidationError, match="must be a function of a transaction"):
        coordinator.add(coordinator.begin(), "INSERT")  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match=r"must be records, as alma\.Memory"):
        coordinator.save(coordinator.begin(), "a text")  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="must be a number above 0"):
        TransactionCoordinator(lite, open_seconds=0)


def test_services_join_and_threads_may_share_an_id(tmp_path: Path) -> None:
    with ALMA.quickstart(tmp_path / "alma.db", embedding_provider="mock") as alma:
        begun = alma.transactions.begin()
        steps = [
            threading.Thread(
                target=alma.transactions.add,
                args=(begun, lambda _, n=number: alma.journal.create(f"fact {n}", project_id="shop")),
            )
            for number in range(8)
        ]
        for step in steps:
            step.start()
        for step in steps:
            step.join()
        assert alma.storage.count(Memory, EVERYWHERE) == 0
        assert len(alma.transactions.commit(begun).results) == 8
        assert alma.storage.count(Memory, EVERYWHERE) == 8
