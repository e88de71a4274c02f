"""A folder of files survives killed writers, and a torn file is reported and never overwritten."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from alma.errors import DamagedFileError
from alma.model.learning import Heuristic
from alma.storage.base import StorageBackend
from tests.faults.checks import Acknowledged, check_acknowledged, check_agreement, check_found, prepare
from tests.faults.processes import said_by_killed_writers, up_to
from tests.faults.records import EVERYWHERE, SHARED, a_heuristic, content_of, vector_of
from tests.faults.stores import files_address, opened

ROUNDS = 12
# On a slow machine a writer that lives so briefly may not get to every sort of write.
MOST_ROUNDS = 60
LONGEST_LIFE_SECONDS = 0.1
MEETINGS = 200
LONGEST_WAIT_SECONDS = 10.0

CALLS: dict[str, Callable[[StorageBackend], object]] = {
    "get": lambda store: store.get(Heuristic, "one", EVERYWHERE),
    "find": lambda store: store.find(Heuristic, EVERYWHERE),
    "search_text": lambda store: store.search_text(Heuristic, "happens", EVERYWHERE),
    "search_vector": lambda store: store.search_vector(Heuristic, vector_of("one", 0), EVERYWHERE),
    "save": lambda store: store.save(a_heuristic("another")),
    "save again": lambda store: store.save(a_heuristic("one")),
    "update": lambda store: store.update(Heuristic, "one", content_of("one", 1), EVERYWHERE),
    "increment": lambda store: store.increment(Heuristic, "one", {"occurrence_count": 1}, EVERYWHERE),
    "delete": lambda store: store.delete(Heuristic, ["one"], EVERYWHERE),
}


def test_killed_writers_lose_no_acknowledged_write_and_leave_no_half_one(files: str) -> None:
    lives = up_to(LONGEST_LIFE_SECONDS, seed=24)
    acknowledged = Acknowledged()
    with opened(files) as store:
        prepare(store, a_heuristic(SHARED))
    for i in range(MOST_ROUNDS):
        if i >= ROUNDS and acknowledged.varied:
            break
        acknowledged.add(said_by_killed_writers(files, (f"left{i}", f"right{i}"), lives))
        with opened(files) as store:
            check_acknowledged(store, acknowledged)
            check_agreement(store)
    with opened(files) as store:
        check_found(store)
    assert acknowledged.failures == []
    assert acknowledged.varied


def test_a_reader_and_a_writer_that_both_find_an_unfinished_commit_do_not_wait_for_each_other(tmp_path: Path) -> None:
    with opened(files_address(tmp_path)) as store:
        prepare(store, a_heuristic(SHARED))
        for _ in range(MEETINGS):
            # What a process leaves that is killed when its files are in place already.
            (tmp_path / "commit.json").write_text("[]")
            assert end_in_time(lambda: store.count(Heuristic, EVERYWHERE), lambda: store.save(a_heuristic(SHARED)))


@pytest.fixture(params=["heuristics", "embeddings", "memory_versions"])
def torn(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file that was cut off in the middle, in a folder that held two heuristics."""
    with opened(files_address(tmp_path)) as store:
        prepare(store, a_heuristic("one"), a_heuristic("two"))
    path = tmp_path / f"{request.param}.json"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return path


@pytest.mark.parametrize("call", CALLS)
def test_a_torn_file_is_named_with_its_backup_and_nothing_is_overwritten(torn: Path, call: str) -> None:
    before = contents(torn.parent)
    with pytest.raises(DamagedFileError) as caught, opened(files_address(torn.parent)) as store:
        CALLS[call](store)
    assert caught.value.path == torn
    assert caught.value.backup == torn.with_name(f"{torn.name}.bak")
    assert str(torn) in str(caught.value)
    assert str(caught.value.backup) in str(caught.value)
    assert contents(torn.parent) == before


@pytest.mark.parametrize("call", CALLS)
def test_a_file_that_is_torn_while_the_store_is_open_is_not_overwritten(tmp_path: Path, call: str) -> None:
    with opened(files_address(tmp_path)) as store:
        prepare(store, a_heuristic("one"), a_heuristic("two"))
        path = tmp_path / "heuristics.json"
        path.write_bytes(path.read_bytes()[:100])
        before = contents(tmp_path)
        with pytest.raises(DamagedFileError):
            CALLS[call](store)
        assert contents(tmp_path) == before


@pytest.mark.parametrize("left", [b"", b"\0" * 100, b"[" * 100_000, b'[{"id": "\xff"}]', b"{}"])
def test_a_file_without_sense_is_a_torn_file(tmp_path: Path, left: bytes) -> None:
    with opened(files_address(tmp_path)) as store:
        prepare(store, a_heuristic("one"))
        (tmp_path / "heuristics.json").write_bytes(left)
        with pytest.raises(DamagedFileError):
            store.save(a_heuristic("two"))
        assert (tmp_path / "heuristics.json").read_bytes() == left


@pytest.mark.parametrize("name", ["heuristics", "embeddings", "system_config"])
def test_a_file_that_is_gone_while_its_backup_is_there_is_a_torn_file(tmp_path: Path, name: str) -> None:
    with opened(files_address(tmp_path)) as store:
        prepare(store, a_heuristic("one"))
    gone, backup = tmp_path / f"{name}.json", tmp_path / f"{name}.json.bak"
    kept = backup.read_bytes()
    gone.unlink()
    with pytest.raises(DamagedFileError, match="it is missing") as caught, opened(files_address(tmp_path)) as store:
        store.save(a_heuristic("another"))
    assert (caught.value.path, caught.value.backup) == (gone, backup)
    assert backup.read_bytes() == kept
    gone.write_bytes(kept)
    with opened(files_address(tmp_path)) as store:
        assert store.count(Heuristic, EVERYWHERE) == 1


@pytest.mark.parametrize("left", ["{torn", "{}", "[1]"])
def test_an_unfinished_commit_that_no_one_can_read_is_named(tmp_path: Path, left: str) -> None:
    with opened(files_address(tmp_path)) as store:
        prepare(store, a_heuristic("one"))
        marker = tmp_path / "commit.json"
        marker.write_text(left)
        for call in CALLS.values():
            with pytest.raises(DamagedFileError, match=r"commit\.json is damaged"):
                call(store)
        assert marker.read_text() == left


def test_the_backup_of_a_torn_file_brings_everything_back(torn: Path) -> None:
    backup = torn.with_name(f"{torn.name}.bak")
    assert json.loads(backup.read_text())
    torn.write_bytes(backup.read_bytes())
    with opened(files_address(torn.parent)) as store:
        assert {record.id for record in store.find(Heuristic, EVERYWHERE)} == {"one", "two"}
        check_agreement(store)
        check_found(store)


def end_in_time(*calls: Callable[[], object]) -> bool:
    """Whether calls that are made at the same time, each in its thread, all come to an end."""
    at_once = threading.Barrier(len(calls))

    def make(call: Callable[[], object]) -> None:
        at_once.wait()
        call()

    # Threads that wait for ever must not keep the process from ending.
    threads = [threading.Thread(target=make, args=[call], daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONGEST_WAIT_SECONDS)
    return not any(thread.is_alive() for thread in threads)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, without the locks."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".lock"}
