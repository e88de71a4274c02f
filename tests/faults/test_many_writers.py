"""Many processes that write to one store at the same time lose nothing and count exactly."""

from __future__ import annotations

from pathlib import Path

from alma.model.learning import Heuristic
from alma.storage.base import StorageBackend
from tests.faults.checks import check_agreement, check_postgres_database, check_sqlite_file
from tests.faults.processes import write_together
from tests.faults.records import EVERYWHERE, SHARED
from tests.faults.stores import opened, sqlite_address


def test_eight_processes_on_one_sqlite_file_lose_nothing_and_count_exactly(tmp_path: Path) -> None:
    path = tmp_path / "alma.db"
    write_together(sqlite_address(path), processes=8, writes=500)
    with opened(sqlite_address(path)) as store:
        check_nothing_is_lost(store, 8 * 500)
    check_sqlite_file(path)


def test_four_processes_on_one_postgresql_database_lose_nothing_and_count_exactly(postgresql: str) -> None:
    write_together(postgresql, processes=4, writes=200)
    with opened(postgresql) as store:
        check_nothing_is_lost(store, 4 * 200)
    check_postgres_database(postgresql)


def test_three_processes_on_one_folder_of_files_lose_nothing_and_count_exactly(files: str) -> None:
    write_together(files, processes=3, writes=60)
    with opened(files) as store:
        check_nothing_is_lost(store, 3 * 60)


def check_nothing_is_lost(store: StorageBackend, writes: int) -> None:
    """Half of the writes saved a heuristic of their own, the other half incremented the shared one."""
    assert store.count(Heuristic, EVERYWHERE) == writes // 2 + 1
    assert store.require(Heuristic, SHARED, EVERYWHERE).occurrence_count == writes // 2
    check_agreement(store)
