"""Maintenance of SQLite files: WAL checkpoints and merges of full-text indexes."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from alma.model.learning import Heuristic
from alma.model.scope import Scope
from alma.storage import sqlite_local
from alma.storage.sqlite import fulltext as sqlite_fulltext
from alma.storage.sqlite_local import SQLiteStorage
from alma.testing import builders as make

EVERYWHERE = Scope.everywhere()
SETTINGS = {"automerge": 0, "crisismerge": 16, "usermerge": 2}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "alma.db"


@pytest.fixture
def store(path: Path) -> Iterator[SQLiteStorage]:
    with SQLiteStorage(path, embedding_dim=4) as store:
        yield store


def settings(path: Path, table: str) -> dict[str, int | None]:
    with closing(sqlite3.connect(path)) as connection:
        known = dict(connection.execute(f"SELECT k, v FROM {table}_config"))
    return {name: known.get(name) for name in SETTINGS}


def pieces(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT count(DISTINCT segid) FROM heuristics_fts_idx").fetchone()[0])


def as_before(connection: sqlite3.Connection) -> None:
    """Give a full-text index the settings of a store that was made before there were ours."""
    connection.execute("INSERT INTO memories_fts (memories_fts, rank) VALUES ('automerge', 4)")


def heuristics(count: int) -> list[Heuristic]:
    return [make.a_heuristic(condition=f"happens {number}") for number in range(count)]


def log_bytes(path: Path) -> int:
    return path.with_name(f"{path.name}-wal").stat().st_size


def log_start(path: Path) -> bytes:
    """What the log's header says about how often it has started again."""
    with path.with_name(f"{path.name}-wal").open("rb") as log:
        return log.read(32)[12:16]


# ---------------------------------------------------------------------- full text


def test_every_full_text_index_of_a_new_store_has_our_settings(path: Path, store: SQLiteStorage) -> None:
    for kind in ("heuristics", "outcomes", "preferences", "domain_knowledge", "anti_patterns", "memories"):
        assert settings(path, f"{kind}_fts") == SETTINGS


def test_a_store_made_before_gets_them_when_it_is_opened(path: Path) -> None:
    SQLiteStorage(path).close()
    with closing(sqlite3.connect(path)) as connection, connection:
        as_before(connection)
    SQLiteStorage(path).close()
    assert settings(path, "memories_fts") == SETTINGS


def test_opening_a_store_made_before_does_not_wait_for_a_writer(path: Path) -> None:
    SQLiteStorage(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        as_before(writer)
        writer.execute("BEGIN IMMEDIATE")
        begin = time.monotonic()
        SQLiteStorage(path).close()
        assert time.monotonic() - begin < 10
        writer.execute("ROLLBACK")
    assert settings(path, "memories_fts") != SETTINGS
    SQLiteStorage(path).close()
    assert settings(path, "memories_fts") == SETTINGS


def test_big_batches_are_merged_with_each_other(
    path: Path, store: SQLiteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_fulltext, "MANY", 50)
    for _ in range(12):
        store.save_many(heuristics(50))
    assert pieces(path) <= 4
    assert len(store.search_text(Heuristic, "happens", EVERYWHERE, limit=1000)) == 600


def test_single_saves_leave_few_pieces_and_are_all_found(path: Path, store: SQLiteStorage) -> None:
    for record in heuristics(100):
        store.save(record)
    assert pieces(path) < 32
    assert len(store.search_text(Heuristic, "happens", EVERYWHERE, limit=500)) == 100


# ---------------------------------------------------------------------- the log


def test_the_log_of_a_big_batch_is_emptied(path: Path, store: SQLiteStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_local, "_CHECKPOINT_BYTES", 1 << 16)
    monkeypatch.setattr(sqlite_local, "_MOST_BYTES_LEFT", 1 << 16)
    store.save_many(heuristics(500))
    store._checkpoints.finish()
    assert log_bytes(path) == 0


def test_the_log_starts_again_under_steady_writing(
    path: Path, store: SQLiteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_local, "_CHECKPOINT_BYTES", 1 << 18)
    monkeypatch.setattr(sqlite_local, "_CHECKPOINT_ROWS", 500)
    monkeypatch.setattr(sqlite_local, "_MOST_BYTES_WHILE_WRITING", 1 << 19)
    starts = set()
    for record in heuristics(300):
        store.save(record)
        starts.add(log_start(path))
    assert len(starts) > 2
    assert log_bytes(path) < 16 << 20


def test_a_log_that_starts_again_keeps_its_room(
    path: Path, store: SQLiteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_local, "_CHECKPOINT_ROWS", 1 << 30)
    store.save_many(heuristics(500))
    store._checkpoints.finish()
    room, before = log_bytes(path), log_start(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(RESTART)")
    store.save(make.a_heuristic())
    assert log_start(path) != before
    assert log_bytes(path) == room


def test_a_log_is_cut_off_where_no_one_writes_and_written_over_where_someone_does(
    path: Path, store: SQLiteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_local, "_MOST_BYTES_LEFT", 0)
    store.save(make.a_heuristic())
    store._checkpoints.finish()
    last_written = path.with_name(f"{path.name}-wal").stat().st_mtime_ns
    most = sqlite_local._MOST_BYTES_WHILE_WRITING
    assert store._checkpoints._starting_again(most, last_written) == "TRUNCATE"
    assert store._checkpoints._starting_again(most + 1, last_written - 1) == "RESTART"
    assert store._checkpoints._starting_again(most, last_written - 1) is None


def test_a_small_log_is_copied_without_stopping_the_writers(
    store: SQLiteStorage,
) -> None:
    store.save_many(heuristics(10))
    with store._writer:
        checkpoint = threading.Thread(target=store._checkpoints._checkpoint, daemon=True)
        checkpoint.start()
        checkpoint.join(30)
        assert not checkpoint.is_alive()
