"""The relay: every committed change reaches the engine, whatever fails on the way."""

from __future__ import annotations

from alma.model.learning import Heuristic
from alma.model.memory import Memory
from alma.storage.base import StorageBackend
from alma.sync import DataSyncManager, Relay, RelayOptions
from alma.testing import builders as make
from alma.testing.builders import EVERYWHERE
from tests.support.second_store import SecondStore


def require_equal(storage: StorageBackend, second: SecondStore) -> None:
    """Nothing waits, and the engine holds what the store holds."""
    report = DataSyncManager(storage, [second]).validate_data_integrity()
    assert report.is_consistent, report
    assert all(each.stored == each.held for engine in report.engines for each in engine.counts)
    assert storage.backlog("second").pending == 0


def test_changes_and_deletions_reach_the_engine(storage: StorageBackend, second: SecondStore) -> None:
    relay = Relay(storage, second)
    relay.run()
    kept, gone = make.a_memory(), make.a_heuristic(embedding=[1, 0, 0, 0])
    storage.save_many([kept, gone, *(make.a_memory() for _ in range(5))])
    assert relay.run().applied == 7
    storage.update(Memory, kept.id, {"title": "another"}, EVERYWHERE)
    storage.delete(Heuristic, [gone.id], EVERYWHERE)
    assert relay.run().applied == 2
    assert second.held(Heuristic, None, 10) == []
    require_equal(storage, second)


def test_what_was_stored_before_the_first_run_is_projected(storage: StorageBackend, second: SecondStore) -> None:
    memories = [make.a_memory() for _ in range(25)]
    storage.save_many(memories)
    second.prepare()
    second.change("INSERT INTO entries VALUES ('memory', 'left over', '', '')")
    Relay(storage, second, RelayOptions(batch_size=10)).run()
    assert second.held(Memory, None, 100) == sorted(each.id for each in memories)
    require_equal(storage, second)
    assert max(second.batches) == 10
