"""Forgetting that learning triggers: the oldest outcomes go to the archive once there are too many."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from alma import ALMA, Outcome, clock
from alma.learning.pruning import ForgettingTrigger
from alma.memory.archive import Archive
from alma.model.scope import Scope
from alma.storage.sqlite_local import SQLiteStorage

SHOP = Scope(project_id="shop", agent="helena")


def an_outcome(n: int, **values: Any) -> Outcome:
    moment = clock.now() - timedelta(hours=n)
    return Outcome(
        id=f"outcome {n}", agent="helena", project_id="shop", task_description=f"task {n}", timestamp=moment, **values
    )


def test_the_oldest_outcomes_are_archived_once_there_are_too_many(tmp_path: Path) -> None:
    with SQLiteStorage(tmp_path / "alma.db") as storage:
        storage.save_many(an_outcome(n) for n in range(20))
        storage.save(an_outcome(99, metadata={"pinned": True}))
        trigger = ForgettingTrigger(storage, Archive(storage), most_outcomes=15)
        # One of the six that are too many is pinned.
        assert trigger.learned(SHOP) == 5
        assert not any(trigger.learned(SHOP) for _ in range(10))
        assert {each.id for each in storage.find(Outcome, SHOP)} == {f"outcome {n}" for n in (*range(15), 99)}
        archived = Archive(storage).find(SHOP)
        assert {each.reason for each in archived} == {"space: the oldest when there were too many"}


def test_nothing_is_forgotten_while_there_is_room(tmp_path: Path) -> None:
    with SQLiteStorage(tmp_path / "alma.db") as storage:
        storage.save_many(an_outcome(n) for n in range(20))
        trigger = ForgettingTrigger(storage, Archive(storage), most_outcomes=20)
        assert not any(trigger.learned(SHOP) for _ in range(1000))


def test_a_limit_holds_for_processes_that_learn_little(tmp_path: Path) -> None:
    for run in range(4):
        with ALMA.quickstart(
            tmp_path / "alma.db", "shop", embedding_provider="mock", learning={"max_outcomes_per_agent": 50}
        ) as alma:
            for n in range(40):
                alma.learn("helena", f"task {n % 7} alpha", "ok", f"strategy {'abcdefg'[n % 7]}x")
            held = alma.storage.count(Outcome, SHOP)
            assert held <= 50 + 50 // 8 + 1
            assert held + len(alma.archive.find(SHOP, limit=None)) == 40 * (run + 1)


def test_a_small_limit_holds_within_a_process(tmp_path: Path) -> None:
    with SQLiteStorage(tmp_path / "alma.db") as storage:
        trigger = ForgettingTrigger(storage, Archive(storage), most_outcomes=10)
        for n in range(40):
            storage.save(an_outcome(n))
            trigger.learned(SHOP)
        assert storage.count(Outcome, SHOP) <= 11
