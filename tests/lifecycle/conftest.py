"""Stores of each kind, empty for every test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from alma.model.governance import Setting
from alma.model.scope import Scope
from alma.storage.base import StorageBackend
from alma.storage.file_based import FileBasedStorage
from alma.storage.postgresql import PostgreSQLStorage
from alma.storage.sqlite_local import SQLiteStorage
from tests.conftest import fresh_database
from tests.contracts.on_postgresql import emptied_afterwards
from tests.support.postgres import PostgresServer

DIMS = 4
Opener = Callable[..., StorageBackend]


@pytest.fixture(scope="session")
def shared_dsn(postgres: PostgresServer) -> Iterator[str]:
    """One database for all tests of this folder, which is emptied after each."""
    with fresh_database(postgres) as dsn:
        yield dsn


def emptied(dsn: str) -> Iterator[StorageBackend]:
    for storage in emptied_afterwards(dsn):
        yield storage
        noted = [each.key for each in storage.find(Setting, Scope.everywhere()) if each.key.startswith("cleanup.")]
        storage.delete(Setting, noted, Scope.everywhere())


@pytest.fixture(params=["sqlite", "postgresql"])
def opener(request: pytest.FixtureRequest, sqlite_path: Path) -> Iterator[Opener]:
    """What opens the same store again, as another process would."""
    if request.param == "sqlite":
        yield partial(SQLiteStorage, sqlite_path, embedding_dim=DIMS)
        return
    dsn = request.getfixturevalue("shared_dsn")
    for _ in emptied(dsn):
        yield partial(PostgreSQLStorage.from_dsn, dsn, embedding_dim=DIMS)


@pytest.fixture
def sqlite(sqlite_path: Path) -> Iterator[StorageBackend]:
    """For what does not depend on the store."""
    with SQLiteStorage(sqlite_path, embedding_dim=DIMS) as storage:
        yield storage


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest) -> Iterator[StorageBackend]:
    if request.param == "sqlite":
        yield request.getfixturevalue("sqlite")
    else:
        yield from emptied(request.getfixturevalue("shared_dsn"))


@pytest.fixture(params=["sqlite", "postgresql", "files"])
def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StorageBackend]:
    """A store of each kind, the folder of files included."""
    if request.param == "files":
        with FileBasedStorage(tmp_path / "files", embedding_dim=DIMS) as files:
            yield files
    elif request.param == "sqlite":
        yield request.getfixturevalue("sqlite")
    else:
        yield from emptied(request.getfixturevalue("shared_dsn"))
