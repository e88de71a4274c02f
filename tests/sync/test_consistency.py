"""Verify finds everything that differs, repair leaves nothing, and a rebuild makes an engine anew."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

import pytest

from alma.bootstrap import open_storage
from alma.errors import ConfigurationError, ValidationError
from alma.model.learning import Heuristic
from alma.model.memory import Memory
from alma.storage.base import StorageBackend
from alma.sync import ConsistencyIssue, DataSyncManager, Difference, Relay, RelayOptions
from alma.sync.rebuilding import Progress
from alma.testing import builders as make
from alma.testing.builders import EVERYWHERE
from alma.transfer import backup_store, restore_store
from tests.support.second_store import SecondStore
from tests.sync.conftest import require_equal


def filled(storage: StorageBackend, second: SecondStore, number: int = 8) -> tuple[DataSyncManager, list[Memory]]:
    """An engine that holds these memories."""
    memories = sorted((make.a_memory() for _ in range(number)), key=lambda each: each.id)
    storage.save_many(memories)
    manager = DataSyncManager(storage, [second], RelayOptions(batch_size=10 if number < 100 else 500))
    manager.run()
    return manager, memories


def test_every_difference_is_found_and_repaired(storage: StorageBackend, second: SecondStore) -> None:
    manager, memories = filled(storage, second)
    storage.save(rule := make.a_heuristic(embedding=[1, 0, 0, 0]))
    manager.run()
    missing, stale, corrupted = (each.id for each in memories[:3])
    second.change("DELETE FROM entries WHERE id = ?", missing)
    second.change("UPDATE entries SET content = 'x' WHERE id = ?", corrupted)
    second.change(
        "UPDATE entries SET (content, hash) = (SELECT content, hash FROM entries WHERE id = ?) WHERE id = ?",
        memories[4].id,
        stale,
    )
    second.change("INSERT INTO entries VALUES ('memory', 'ghost', '', '')")
    second.change("INSERT INTO entries VALUES ('heuristic', '00', '', '')")
    second.change("DELETE FROM entries WHERE id = ?", rule.id)
    checked: list[int] = []
    report = manager.validate_data_integrity(on_page=checked.append)
    assert {(each.kind, each.record_id, each.difference) for each in report.issues} == {
        ("memory", missing, Difference.MISSING),
        ("memory", stale, Difference.STALE),
        ("memory", corrupted, Difference.CORRUPTED),
        ("memory", "ghost", Difference.ORPHANED),
        ("heuristic", "00", Difference.ORPHANED),
        ("heuristic", rule.id, Difference.MISSING),
    }
    assert sum(checked) == 9
    assert [(each.kind, each.stored, each.held) for each in report.engines[0].counts] == [
        ("memory", 8, 8),
        ("heuristic", 1, 1),
    ]
    (status,) = manager.status()
    assert status.verified is not None
    assert (status.verified.issues, status.verified.is_consistent) == (6, False)

    repaired = manager.repair_inconsistencies(report.issues)
    assert repaired.success
    assert set(repaired.repaired) == set(report.issues)
    require_equal(storage, second)


def test_what_waits_is_not_an_issue(lite: StorageBackend, second: SecondStore) -> None:
    manager, memories = filled(lite, second)
    lite.save(make.a_memory())
    lite.update(Memory, memories[0].id, {"title": "another"}, EVERYWHERE)
    lite.delete(Memory, [memories[1].id], EVERYWHERE)
    (engine,) = manager.validate_data_integrity().engines
    assert (engine.issues, engine.behind, engine.is_consistent) == ((), 3, True)


def test_a_damage_beyond_one_page_is_found(lite: StorageBackend, second: SecondStore) -> None:
    manager, _ = filled(lite, second, 1_200)
    second.change("DELETE FROM entries WHERE rowid % 3 = 0")
    second.change(
        "INSERT INTO entries WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600) "
        "SELECT 'memory', 'ghost ' || i, '', '' FROM n"
    )
    report = manager.validate_data_integrity()
    assert Counter(each.difference for each in report.issues) == {Difference.MISSING: 400, Difference.ORPHANED: 600}
    assert manager.repair().success
    require_equal(lite, second)


def test_repair_leaves_what_the_engine_does_not_take(lite: StorageBackend, second: SecondStore) -> None:
    manager, memories = filled(lite, second, 2)
    away = second.path.parent.rename(second.path.parent.with_name("away"))
    issue = ConsistencyIssue("second", "memory", memories[0].id, Difference.MISSING)
    result = manager.repair_inconsistencies([issue])
    assert (result.success, result.remaining) == (False, (issue,))
    assert "does not answer" in result.problems["second"]
    away.rename(second.path.parent)
    with pytest.raises(ValidationError, match="must be one of the configured engines: second"):
        manager.repair_inconsistencies([ConsistencyIssue("third", "memory", "x", Difference.STALE)])
    with pytest.raises(ValidationError, match="must be issues, as validate_data_integrity reports them"):
        manager.repair_inconsistencies("x")  # type: ignore[arg-type]


def test_one_record_is_brought_to_the_engines_at_once(storage: StorageBackend, second: SecondStore) -> None:
    manager, memories = filled(storage, second)
    storage.save_many(make.a_memory() for _ in range(3))
    storage.update(Memory, memories[0].id, {"title": "another"}, EVERYWHERE)
    result = manager.sync_memory_across_storages(memories[0].id)
    assert (result.success, result.exists, result.kind) == (True, True, "memory")
    assert [(each.engine, each.synced) for each in result.engines] == [("second", True)]
    assert storage.backlog("second").pending == 3
    storage.delete(Memory, [memories[1].id], EVERYWHERE)
    gone = manager.sync_memory_across_storages(memories[1].id)
    assert (gone.success, gone.exists) == (True, False)
    assert memories[1].id not in second.held(Memory, None, 100)
    manager.run()
    require_equal(storage, second)


# ---------------------------------------------------------------------- rebuilding


def test_a_rebuild_while_others_write_leaves_the_engine_equal(place: str, second: SecondStore) -> None:
    with open_storage(place, 4) as storage:
        manager, memories = filled(storage, second, 60)
        second.change("INSERT INTO entries VALUES ('memory', 'ghost', '', '')")
        ended = threading.Event()

        def write() -> None:
            for number, memory in enumerate(memories):
                storage.save(make.a_memory())
                storage.update(Memory, memory.id, {"title": f"title {number}"}, EVERYWHERE)
                if number % 3 == 0:
                    storage.delete(Memory, [memory.id], EVERYWHERE)
            ended.set()

        writer = threading.Thread(target=write)
        writer.start()
        seen: list[Progress] = []
        ran = manager.rebuild("second", seen.append)
        writer.join()
        assert ended.is_set()
        assert ran.problem is None
        assert seen[0].done < seen[-1].done <= seen[-1].total
        manager.run()
        require_equal(storage, second)


def test_an_interrupted_rebuild_is_continued_by_the_next_run(storage: StorageBackend, second: SecondStore) -> None:
    manager, _ = filled(storage, second, 30)
    Relay(storage, second).clear()
    assert second.count(Memory) == 0
    relay = Relay(storage, second, RelayOptions(batch_size=7))
    for _ in range(3):
        relay.step()
    (status,) = manager.status()
    assert (status.state, status.rebuilding) == ("rebuilding", (7, 30))
    manager.run()
    require_equal(storage, second)


def test_a_dropped_engine_is_marked_for_no_more_and_filled_anew(lite: StorageBackend, second: SecondStore) -> None:
    manager, _ = filled(lite, second)
    manager.drop("second")
    lite.save(make.a_memory())
    assert lite.backlog("second").pending == 0
    with pytest.raises(ValidationError, match="must be one of the engines that this store marks changes for: none"):
        manager.drop("second")
    manager.run()
    require_equal(lite, second)


def test_after_a_restore_the_engines_are_made_anew(lite: StorageBackend, second: SecondStore, tmp_path: Path) -> None:
    manager, memories = filled(lite, second)
    backup_store(lite, tmp_path / "copy.db")
    lite.save(make.a_memory())
    lite.update(Memory, memories[0].id, {"title": "after the backup"}, EVERYWHERE)
    manager.run()
    restore_store(tmp_path / "copy.db", lite, force=True)
    manager.run()
    assert second.count(Memory) == 8
    require_equal(lite, second)


def test_an_engine_that_is_no_longer_configured_is_shown(lite: StorageBackend, second: SecondStore) -> None:
    filled(lite, second)
    lite.save(make.a_memory())
    without = DataSyncManager(lite)
    (status,) = without.status()
    assert (status.engine, status.state, status.pending) == ("second", "unused", 1)
    with pytest.raises(ConfigurationError, match="no engine is configured beside the store"):
        without.require_engines()
    without.drop("second")
    assert without.status() == []


def test_generations_tell_one_change_from_the_next(lite: StorageBackend, second: SecondStore) -> None:
    """A record that is deleted and made again under its id is not taken for the old one."""
    manager, memories = filled(lite, second, 1)
    lite.delete(Memory, [memories[0].id], EVERYWHERE)
    lite.save(memories[0].replace(title="again"))
    lite.save(make.a_heuristic(embedding=[0, 1, 0, 0]))
    assert manager.run()[0].applied == 2
    assert second.count(Heuristic) == 1
    require_equal(lite, second)
