"""A full disk refuses a write in one clear sentence, harms nothing, and is no longer full once there is room."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

from alma.errors import StorageFullError
from alma.model.learning import Heuristic
from alma.storage.base import StorageBackend
from alma.storage.sqlite_local import SQLiteStorage
from tests.faults.checks import (
    check_agreement,
    check_found,
    check_postgres_database,
    check_sqlite_file,
    prepare,
)
from tests.faults.records import EVERYWHERE, a_heuristic
from tests.faults.stores import files_address, opened, sqlite_address
from tests.support.postgres import PostgresServer
from tests.support.small_disk import small_disk

OLDER_STORE = Path(__file__).parent.parent / "migrations" / "data" / "alma_memory_0_4.db"
BLOCK_BYTES = 4096
RESERVE_BYTES = 1 << 20


def test_sqlite_on_a_full_disk_loses_nothing_and_goes_on_once_there_is_room() -> None:
    with small_disk(6) as disk, opened(address_on(disk, "sqlite")) as store:
        saved = saved_until_full(store, disk)
        check_sqlite_file(disk / "alma.db")
        check_that_everything_can_be_read(store, saved)
        make_room(disk)
        check_that_it_goes_on(store, saved)
        check_sqlite_file(disk / "alma.db")


def test_postgresql_on_a_full_disk_loses_nothing_and_goes_on_once_there_is_room(
    durable_postgres: PostgresServer,
) -> None:
    with small_disk(12) as disk, a_database_on(disk, durable_postgres) as dsn, opened(dsn) as store:
        saved = saved_until_full(store, disk)
        check_that_everything_can_be_read(store, saved)
        make_room(disk)
        check_that_it_goes_on(store, saved)
        check_postgres_database(dsn)


def test_files_on_a_full_disk_lose_nothing_and_go_on_once_there_is_room() -> None:
    with small_disk(2) as disk, opened(address_on(disk, "files")) as store:
        saved = saved_until_full(store, disk)
        check_that_everything_can_be_read(store, saved)
        make_room(disk)
        check_that_it_goes_on(store, saved)


@pytest.mark.parametrize("kind", ["sqlite", "files"])
def test_however_little_room_there_is_a_batch_is_stored_whole_or_not_at_all(kind: str) -> None:
    with small_disk(24) as disk, opened(address_on(disk, kind)) as store:
        prepare(store)
        saved: set[str] = set()
        for blocks in range(0, 100, 2):
            keys = [f"b{blocks}n{i}" for i in range(50)]
            with room_for(disk, blocks):
                try:
                    saved.update(store.save_many(a_heuristic(key, batch=keys) for key in keys))
                except StorageFullError:
                    assert keys_in(store) == saved
            saved.add(store.save(a_heuristic(f"after{blocks}")))
            assert keys_in(store) == saved
        check_agreement(store)


@pytest.mark.parametrize("blocks", [0, 1, 4, 10, 20, 80])
@pytest.mark.parametrize("kind", ["sqlite", "files"])
def test_a_store_that_is_made_on_a_full_disk_is_refused_and_can_be_made_later(kind: str, blocks: int) -> None:
    with small_disk(4) as disk:
        with room_for(disk, blocks), pytest.raises(StorageFullError), opened(address_on(disk, kind)) as store:
            store.save_many(a_heuristic(f"b{blocks}n{i}") for i in range(1000))
        with opened(address_on(disk, kind)) as store:
            prepare(store, a_heuristic("late"))
            check_agreement(store)
            check_found(store)


@pytest.mark.parametrize("blocks", [0, 1, 4, 7, 8])
@pytest.mark.parametrize("kind", ["sqlite", "files"])
def test_a_store_that_is_opened_on_a_full_disk_can_be_read_or_says_that_the_disk_is_full(
    kind: str, blocks: int
) -> None:
    with small_disk(4) as disk:
        with opened(address_on(disk, kind)) as store:
            prepare(store, a_heuristic("early"))
        with room_for(disk, blocks):
            try:
                with opened(address_on(disk, kind)) as store:
                    assert keys_in(store) == {"early"}
            except StorageFullError as error:
                check_sentence(error)
        with opened(address_on(disk, kind)) as store:
            check_agreement(store)


@pytest.mark.parametrize("blocks", [0, 12, 20, 40])
def test_without_room_for_its_backup_an_older_store_is_not_migrated_and_no_half_backup_stays(blocks: int) -> None:
    with small_disk(4) as disk:
        path = disk / "alma.db"
        shutil.copy(OLDER_STORE, path)
        with room_for(disk, blocks), pytest.raises(StorageFullError):
            SQLiteStorage(path, embedding_dim=8)
        with SQLiteStorage(path, embedding_dim=8) as store:
            assert store.count(Heuristic, EVERYWHERE) == 3
        for backup in disk.glob("*backup*"):
            with closing(sqlite3.connect(backup)) as kept:
                assert kept.execute("SELECT count(*) FROM heuristics").fetchone() == (3,)


def saved_until_full(store: StorageBackend, disk: Path) -> set[str]:
    """Save batches until one does not fit, then single heuristics until none does; returns what was acknowledged."""
    prepare(store)
    (disk / "reserve").write_bytes(bytes(RESERVE_BYTES))
    saved: set[str] = set()
    for size in (50, 1):
        with pytest.raises(StorageFullError) as caught:
            while True:
                batch = f"size{size}from{len(saved)}"
                keys = [f"{batch}n{i}" for i in range(size)]
                saved.update(store.save_many(a_heuristic(key, batch, keys) for key in keys))
        check_sentence(caught.value)
    assert len(saved) > 50
    return saved


def make_room(disk: Path) -> None:
    (disk / "reserve").unlink()


def check_that_everything_can_be_read(store: StorageBackend, saved: set[str]) -> None:
    """What was acknowledged is there, and nothing of what was refused."""
    assert keys_in(store) == saved
    check_agreement(store)
    check_found(store)


def check_that_it_goes_on(store: StorageBackend, saved: set[str]) -> None:
    """The store takes new records and keeps the old ones."""
    check_that_everything_can_be_read(store, saved | set(store.save_many(a_heuristic(f"later{i}") for i in range(20))))


def check_sentence(error: StorageFullError) -> None:
    """The error is one sentence that a person understands."""
    assert "disk" in str(error)
    assert "full" in str(error)
    assert "\n" not in str(error)


@contextmanager
def a_database_on(disk: Path, server: PostgresServer) -> Iterator[str]:
    """A database in a tablespace on this disk."""
    server.create_tablespace("small", disk)
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as administration:
        administration.execute("CREATE DATABASE cramped TABLESPACE small")
        # So that nothing of its making is left to be written when the disk is full.
        administration.execute("CHECKPOINT")
        try:
            yield server.dsn("cramped")
        finally:
            server.drop_database("cramped")
            administration.execute("DROP TABLESPACE small")


@contextmanager
def room_for(disk: Path, blocks: int) -> Iterator[None]:
    """Leave only so many blocks of a disk free for a while."""
    kept, ballast = disk / "kept", disk / "ballast"
    kept.write_bytes(bytes(blocks * BLOCK_BYTES))
    write_until_full(ballast)
    kept.unlink()
    try:
        yield
    finally:
        ballast.unlink()


def write_until_full(path: Path) -> None:
    """Write a file that takes all there is, in ever smaller pieces, as the free space a disk tells is not exact."""
    with path.open("wb", buffering=0) as file:
        for piece in (bytes(256 * BLOCK_BYTES), bytes(BLOCK_BYTES)):
            with suppress(OSError):
                while file.write(piece) == len(piece):
                    pass


def address_on(disk: Path, kind: str) -> str:
    return sqlite_address(disk / "alma.db") if kind == "sqlite" else files_address(disk / "alma")


def keys_in(store: StorageBackend) -> set[str]:
    return {record.id for record in store.find(Heuristic, EVERYWHERE)}
