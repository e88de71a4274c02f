"""The relay: every committed change reaches the engine, whatever fails on the way."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from alma import clock
from alma.bootstrap import open_storage
from alma.model.learning import Heuristic
from alma.model.memory import Memory
from alma.storage.base import StorageBackend
from alma.sync import Change, DataSyncManager, Relay, RelayOptions
from alma.sync.relay import EngineDownError, pause_seconds
from alma.testing import builders as make
from alma.testing.builders import EVERYWHERE
from tests.support.second_store import FAILING, REFUSED, SecondStore
from tests.sync.conftest import require_equal

ROOT = Path(__file__).parents[2]
SMALL = RelayOptions(batch_size=5)


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


# ---------------------------------------------------------------------- many relays


def test_many_relays_share_the_work(storage: StorageBackend, second: SecondStore) -> None:
    Relay(storage, second).run()
    storage.save_many(make.a_memory() for _ in range(120))
    engines = [SecondStore(second.path) for _ in range(4)]
    done = [0] * 4

    def work(number: int) -> None:
        done[number] = Relay(storage, engines[number], SMALL).run().applied

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Each record was applied once: no two relays held the same mark.
    assert sum(done) == sum(map(sum, (engine.batches for engine in engines))) == 120
    require_equal(storage, second)


def test_a_change_during_a_batch_is_carried_by_the_next(storage: StorageBackend, second: SecondStore) -> None:
    memory = make.a_memory(title="first")
    Relay(storage, second).run()
    storage.save(memory)

    def change(changes: Sequence[Change]) -> None:
        if changes[0].record is not None and storage.require(Memory, memory.id, EVERYWHERE).title == "first":
            storage.update(Memory, memory.id, {"title": "second"}, EVERYWHERE)

    assert Relay(storage, SecondStore(second.path, change)).run().applied == 2
    require_equal(storage, second)


@pytest.mark.parametrize("lease_seconds", [0.5, 3600.0])
def test_what_a_killed_relay_held_is_taken_over_when_its_lease_ends(
    place: str, second: SecondStore, lease_seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = second.path.parent
    (folder / "stop").touch()
    with open_storage(place, 4) as storage:
        Relay(storage, second).run()
        storage.save_many(make.a_memory() for _ in range(25))
        command = [sys.executable, "-m", "tests.sync.relay_process", place, str(second.path), str(lease_seconds)]
        with subprocess.Popen(command, cwd=ROOT) as process:
            while not (folder / "claimed").exists():
                assert process.poll() is None
                time.sleep(0.02)
            process.kill()
        (folder / "stop").unlink()
        manager = DataSyncManager(storage, [second], RelayOptions(batch_size=10))
        if lease_seconds > 60:
            (ran,) = manager.run()
            assert (ran.applied, ran.pending) == (15, 10)
            later = clock.now() + timedelta(seconds=lease_seconds + 1)
            monkeypatch.setattr(clock, "now", lambda: later)
        (ran,) = manager.run(wait_seconds=30)
        assert ran.pending == 0
        require_equal(storage, second)


def test_a_relay_whose_lease_ended_overwrites_nothing(lite: StorageBackend, second: SecondStore) -> None:
    """A suspended relay applies an old state; the relay that took over is told to read the record again."""
    memory = make.a_memory(title="old")
    Relay(lite, second).run()
    lite.save(memory)
    resume, claimed = threading.Event(), threading.Event()

    def wait(_: Sequence[Change]) -> None:
        claimed.set()
        assert resume.wait(30)

    slow = threading.Thread(
        target=Relay(lite, SecondStore(second.path, wait), RelayOptions(lease_seconds=0.2)).run, daemon=True
    )
    slow.start()
    assert claimed.wait(30)
    lite.update(Memory, memory.id, {"title": "new"}, EVERYWHERE)
    assert DataSyncManager(lite, [second]).run(wait_seconds=30)[0].applied == 1
    resume.set()
    slow.join()
    Relay(lite, second).run()
    require_equal(lite, second)


# ---------------------------------------------------------------------- failures


def test_a_refused_record_is_parked_alone_with_its_error(
    storage: StorageBackend, second: SecondStore, caplog: pytest.LogCaptureFixture
) -> None:
    Relay(storage, second).run()
    refused = make.a_memory(content=f"please {REFUSED}")
    storage.save_many([refused, *(make.a_memory() for _ in range(11))])
    manager = DataSyncManager(storage, [second])
    with caplog.at_level(logging.WARNING, "alma.sync"):
        (ran,) = manager.run()
    assert (ran.applied, ran.failed, ran.pending, ran.parked) == (11, 1, 0, 1)
    assert [(r.getMessage(), r.__dict__["id"]) for r in caplog.records] == [("a record was parked", refused.id)]
    (status,) = manager.status()
    assert (status.state, status.parked, status.lag_seconds) == ("parked", 1, 0.0)
    assert status.parked_error is not None
    assert "is refused" in status.parked_error
    report = manager.validate_data_integrity()
    assert [(each.record_id, each.difference) for each in report.issues] == [(refused.id, "missing")]

    assert manager.run()[0].failed == 0
    assert manager.retry_parked() == 1
    assert manager.run()[0].failed == 1
    storage.update(Memory, refused.id, {"content": "fine"}, EVERYWHERE)
    assert manager.run()[0].applied == 1
    require_equal(storage, second)


def test_a_record_that_fails_is_tried_again_with_growing_pauses_and_then_parked(
    lite: StorageBackend, second: SecondStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = RelayOptions(park_after=3)
    Relay(lite, second).run()
    lite.save_many([make.a_memory(content=f"please {FAILING}"), make.a_memory()])
    moment, pauses = clock.now(), []
    monkeypatch.setattr(clock, "now", lambda: moment)
    for _ in range(2):
        Relay(lite, second, options).run()
        assert Relay(lite, second, options).step() is None
        (mark,) = lite.pending("second")
        assert mark.leased_until is not None
        pauses.append((mark.leased_until - moment).total_seconds())
        moment = mark.leased_until + timedelta(milliseconds=1)
    Relay(lite, second, options).run()
    assert pauses == sorted(pauses)
    (mark,) = lite.pending("second")
    assert (mark.parked, mark.attempts, mark.error) == (True, 3, "out of order")


def test_pauses_grow_to_a_minute() -> None:
    assert all(0.25 <= pause_seconds(0) <= 0.5 and 30 <= pause_seconds(40) <= 60 for _ in range(50))


def test_an_engine_that_is_down_costs_no_attempts(lite: StorageBackend, second: SecondStore) -> None:
    Relay(lite, second).run()
    lite.save(make.a_memory())
    away = second.path.parent.rename(second.path.parent.with_name("away"))
    manager = DataSyncManager(lite, [second])
    with pytest.raises(EngineDownError):
        Relay(lite, second).run()
    (ran,) = manager.run()
    assert (ran.applied, ran.pending) == (0, 1)
    assert ran.problem == f"the second store at {second.path} does not answer"
    (status,) = manager.status()
    assert (status.state, status.pending) == ("degraded", 1)
    assert [(mark.attempts, mark.parked, mark.leased_until) for mark in lite.pending("second")] == [(0, False, None)]
    assert str(second.path) in str(manager.validate_data_integrity().engines[0].problem)
    away.rename(second.path.parent)
    assert manager.run()[0].applied == 1
    require_equal(lite, second)


def test_an_engine_that_lost_its_tables_gets_them_again(lite: StorageBackend, second: SecondStore) -> None:
    relay = Relay(lite, second)
    relay.run()
    lite.save_many(memories := [make.a_memory() for _ in range(3)])
    relay.run()
    second.change("DROP TABLE entries")
    lite.update(Memory, memories[0].id, {"title": "changed"}, EVERYWHERE)
    relay.run()
    manager = DataSyncManager(lite, [second])
    manager.run(wait_seconds=30)
    assert sorted(manager.repair().repaired, key=lambda each: each.record_id)
    require_equal(lite, second)


# ---------------------------------------------------------------------- in the background


def test_relays_of_a_service_carry_what_any_process_commits(place: str, second: SecondStore) -> None:
    with open_storage(place, 4) as storage, open_storage(place, 4) as other:
        second.prepare()
        with DataSyncManager(storage, [second], RelayOptions(poll_seconds=0.1)) as manager:
            manager.start()
            storage.save_many(make.a_memory() for _ in range(3))
            other.save_many(make.a_memory() for _ in range(3))
            _await(lambda: second.count(Memory) == 6)
            away = second.path.parent.rename(second.path.parent.with_name("away"))
            other.save(make.a_memory())
            _await(lambda: manager.status(ping=False)[0].state == "degraded")
            away.rename(second.path.parent)
            _await(lambda: second.count(Memory) == 7)
            _await(lambda: manager.status(ping=False)[0].state == "ok")
        storage.save(make.a_memory())
        assert storage.backlog("second").pending == 1
        Relay(storage, second).run()
        require_equal(storage, second)


def _await(is_true: object, seconds: float = 60.0) -> None:
    assert callable(is_true)
    ended = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < ended
        time.sleep(0.05)
