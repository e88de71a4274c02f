"""A store and an engine beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from alma.bootstrap import open_storage
from alma.storage.base import StorageBackend
from alma.sync import DataSyncManager
from tests.conftest import empty_store
from tests.support.second_store import SecondStore

pytest.register_assert_rewrite(__name__)


def require_equal(storage: StorageBackend, second: SecondStore) -> None:
    """Nothing waits, and the engine holds what the store holds."""
    report = DataSyncManager(storage, [second]).validate_data_integrity()
    assert report.is_consistent, report
    assert all(each.stored == each.held for engine in report.engines for each in engine.counts)
    assert storage.backlog("second").pending == 0


@pytest.fixture(params=["sqlite", "postgresql"])
def storage(request: pytest.FixtureRequest) -> Iterator[StorageBackend]:
    """A store of each database."""
    with open_storage(empty_store(request, request.param), 4) as store:
        yield store


@pytest.fixture
def lite(sqlite_path: Path) -> Iterator[StorageBackend]:
    """A store in an SQLite file."""
    with open_storage(sqlite_path, 4) as store:
        yield store


@pytest.fixture
def second(tmp_path: Path) -> SecondStore:
    """An engine in a folder of its own."""
    folder = tmp_path / "engine"
    folder.mkdir()
    return SecondStore(folder / "second.db")
