"""Backup and restore: while others write, checked first, and all at once."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from alma.bootstrap import open_storage, open_vector_index, restore_storage
from alma.errors import ConfigurationError, ConflictError, DamagedFileError, MigrationError, TransferError
from alma.model.memory import Memory
from alma.model.scope import Scope
from alma.storage.base import StorageBackend
from alma.testing import builders as make
from alma.transfer import backup_store, restore_store
from tests.transfer.conftest import DIMS, OpenStore
from tests.transfer.test_export import contents, fill

EVERYWHERE = Scope.everywhere()


@pytest.fixture(params=["sqlite", "files", "postgresql"])
def store(request: pytest.FixtureRequest, new_store: OpenStore) -> StorageBackend:
    made = new_store(request.param)
    fill(made)
    return made


def test_a_backup_gives_back_what_the_store_held(store: StorageBackend, tmp_path: Path) -> None:
    before = contents(store)
    backup_store(store, tmp_path / "backup")
    store.save(make.a_memory(id="later"))
    store.delete(Memory, ["m1"], EVERYWHERE)
    with pytest.raises(ConflictError, match="not empty"):
        restore_store(tmp_path / "backup", store)
    assert store.get(Memory, "later", EVERYWHERE) is not None
    restore_store(tmp_path / "backup", store, force=True)
    assert contents(store) == before
    assert store.search_text(Memory, "build moved back", EVERYWHERE)[0].record.id == "m1"
    store.save(make.a_memory(id="new", embedding=[0, 0, 1]))
    assert store.count(Memory, EVERYWHERE) == 3


@pytest.mark.parametrize(("source", "target"), [("sqlite", "files"), ("files", "sqlite"), ("sqlite", "postgresql")])
def test_a_backup_can_be_restored_into_another_kind_of_store(
    source: str, target: str, new_store: OpenStore, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    old = new_store(source)
    fill(old)
    backup_store(old, tmp_path / "backup")
    places = {"sqlite": str(tmp_path / "other.db"), "files": f"file://{tmp_path / 'other'}"}
    place = places[target] if target in places else request.getfixturevalue("postgres_dsn")
    restore_storage(str(tmp_path / "backup"), place)
    with open_storage(place, DIMS) as new:
        assert contents(new) == contents(old)


def test_an_sqlite_store_is_backed_up_while_others_write(new_store: OpenStore, tmp_path: Path) -> None:
    store = new_store("sqlite")
    store.save_many([make.a_memory(id=f"a{n:04}", content="x" * 3000) for n in range(2000)])
    stop = threading.Event()
    saved: list[int] = []

    def write() -> None:
        while not stop.is_set():
            number = len(saved)
            store.save_many([make.a_memory(id=f"p{number}"), make.a_memory(id=f"q{number}")])
            saved.append(number)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(3):
            backup_store(store, tmp_path / f"backup{number}.db")
    finally:
        stop.set()
        writer.join()
    assert saved
    for number in range(3):
        with open_storage(str(tmp_path / f"backup{number}.db"), DIMS) as copy:
            ids = {memory.id for memory in copy.find(Memory, EVERYWHERE)}
            assert len(ids) >= 2000
            # What was stored together is there together.
            assert {each[1:] for each in ids if each[0] == "p"} == {each[1:] for each in ids if each[0] == "q"}


def test_an_open_store_and_its_index_follow_a_restore(new_store: OpenStore, tmp_path: Path) -> None:
    store = new_store("sqlite")
    store.save(make.a_memory(id="m", embedding=[1, 0, 0]))
    index = open_vector_index(store)
    backup_store(store, tmp_path / "backup.db")
    store.save(make.a_memory(id="n", embedding=[0, 1, 0]))
    assert [hit.record_id for hit in index.search(Memory, [0, 1, 0], EVERYWHERE)] == ["n", "m"]
    restore_store(tmp_path / "backup.db", store, force=True)
    store.save(make.a_memory(id="o", embedding=[0, 0, 1]))
    assert [hit.record_id for hit in index.search(Memory, [0, 0, 1], EVERYWHERE)] == ["o", "m"]
    index.close()


def test_a_backup_with_pages_of_another_size_is_restored(new_store: OpenStore, tmp_path: Path) -> None:
    store = new_store("sqlite")
    fill(store)
    before = contents(store)
    backup_store(store, tmp_path / "backup.db")
    with closing(sqlite3.connect(tmp_path / "backup.db", isolation_level=None)) as backup:
        # As files were made once, and as other programs make them.
        backup.execute("PRAGMA page_size = 4096")
        backup.execute("VACUUM")
    store.delete(Memory, ["m1"], EVERYWHERE)
    restore_store(tmp_path / "backup.db", store, force=True)
    assert contents(store) == before
    assert store.search_text(Memory, "build moved back", EVERYWHERE)[0].record.id == "m1"


def test_a_damaged_backup_is_refused_and_the_store_stays(new_store: OpenStore, tmp_path: Path) -> None:
    store = new_store("sqlite")
    fill(store)
    backup_store(store, tmp_path / "backup.db")
    whole = (tmp_path / "backup.db").read_bytes()
    (tmp_path / "damaged.db").write_bytes(whole[:8192] + bytes(4096) + whole[12288:])
    (tmp_path / "torn.db").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.jsonl").write_text("hello\n")
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE t (x)")
    before = contents(store)
    for name, error in (
        ("damaged.db", DamagedFileError),
        ("torn.db", DamagedFileError),
        ("other.db", MigrationError),
        ("text.jsonl", TransferError),
        ("nothing", ConfigurationError),
    ):
        with pytest.raises(error):
            restore_store(tmp_path / name, store, force=True)
    assert contents(store) == before


def test_a_restore_that_fails_half_way_leaves_the_store_as_it_was(new_store: OpenStore, tmp_path: Path) -> None:
    store, other = new_store("files"), new_store("files")
    fill(store)
    other.save(make.a_memory(id="m"))
    backup_store(other, tmp_path / "backup.jsonl")
    before = contents(store)

    def fail(done: int, total: int) -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        restore_store(tmp_path / "backup.jsonl", store, force=True, on_progress=fail)
    assert contents(store) == before


def test_a_backup_does_not_overwrite_another_unless_told_to(store: StorageBackend, tmp_path: Path) -> None:
    backup_store(store, tmp_path / "backup")
    with pytest.raises(ConflictError, match="exists already"):
        backup_store(store, tmp_path / "backup")
    backup_store(store, tmp_path / "backup", force=True)
