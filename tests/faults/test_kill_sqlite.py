"""Writers of an SQLite file that are killed at any moment lose nothing they acknowledged and leave no half writes."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.faults.checks import (
    Acknowledged,
    check_acknowledged,
    check_agreement,
    check_found,
    check_sqlite_file,
    prepare,
)
from tests.faults.processes import Worker, said_by_killed_writers, tell_to_go_on, up_to
from tests.faults.records import SHARED, a_heuristic
from tests.faults.stores import opened, sqlite_address

ROUNDS = 8
LONGEST_LIFE_SECONDS = 0.04
OPENINGS = 6
LONGEST_OPENING_SECONDS = 0.05


def test_killed_writers_lose_no_acknowledged_write_and_leave_no_half_one(tmp_path: Path) -> None:
    path = tmp_path / "alma.db"
    address = sqlite_address(path)
    lives = up_to(LONGEST_LIFE_SECONDS, seed=54)
    acknowledged = Acknowledged()
    with opened(address) as store:
        prepare(store, a_heuristic(SHARED))
    for i in range(ROUNDS):
        acknowledged.add(said_by_killed_writers(address, (f"left{i}", f"right{i}"), lives))
        check_what_they_left(path, tmp_path / "copy", acknowledged)
    with opened(address) as store:
        check_acknowledged(store, acknowledged)
        check_agreement(store)
        check_found(store)
    check_sqlite_file(path)
    assert acknowledged.failures == []
    assert acknowledged.varied


def test_a_store_whose_creation_was_killed_can_be_opened(tmp_path: Path) -> None:
    lives = up_to(LONGEST_OPENING_SECONDS, seed=12)
    for i in range(OPENINGS):
        path = tmp_path / f"{i}.db"
        with Worker("write-forever", sqlite_address(path), "early") as writer:
            tell_to_go_on([writer], when="ready")
            writer.kill_after(lives())
        with opened(sqlite_address(path)) as store:
            store.save(a_heuristic("late"))
            check_found(store)
        check_sqlite_file(path)


def check_what_they_left(path: Path, folder: Path, acknowledged: Acknowledged) -> None:
    """Check a copy of the files, so that it is the next writer who finds the original as the dead ones left it."""
    folder.mkdir()
    for file in (path, path.with_name(f"{path.name}-wal")):
        shutil.copy(file, folder)
    with opened(sqlite_address(folder / path.name)) as store:
        check_acknowledged(store, acknowledged)
    check_sqlite_file(folder / path.name)
    shutil.rmtree(folder)
