"""Stores of each kind, and ways past them for tests that tamper with what they hold."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from alma.bootstrap import open_storage
from alma.embeddings.mock import MockEmbedder
from alma.retrieval.writing import MemoryWriter
from alma.storage.base import StorageBackend
from tests.support.postgres import PostgresServer

Tamper = Callable[[str], int]


@pytest.fixture(scope="session")
def furnished(postgres: PostgresServer) -> str:
    """The name of a database with the schema in it: copying one is much quicker than migrating one."""
    open_storage(postgres.create_database("furnished")).close()
    return "furnished"


@pytest.fixture
def postgres_dsn(postgres: PostgresServer, furnished: str) -> Iterator[str]:
    """A database of one's own with the schema in it."""
    name = f"test_{uuid.uuid4().hex}"
    yield postgres.create_database(name, furnished)
    postgres.drop_database(name)


@pytest.fixture
def database(place: str) -> Iterator[StorageBackend]:
    """A new store in a database."""
    with open_storage(place) as storage:
        yield storage


@pytest.fixture(params=["sqlite", "files", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StorageBackend]:
    """A new store of each kind."""
    places = {"sqlite": str(tmp_path / "alma.db"), "files": f"file://{tmp_path / 'files'}"}
    with open_storage(places.get(request.param) or request.getfixturevalue("postgres_dsn")) as storage:
        yield storage


@pytest.fixture
def writer(store: StorageBackend) -> MemoryWriter:
    """Saves with vectors that mean nothing."""
    return MemoryWriter(store, MockEmbedder())


@pytest.fixture
def tamper(place: str) -> Tamper:
    """Runs a statement past the store; gives how many rows it touched."""

    def run(statement: str) -> int:
        if place.startswith("postgres"):
            with psycopg.connect(place, autocommit=True) as connection:
                return connection.execute(statement.encode()).rowcount
        with closing(sqlite3.connect(place, isolation_level=None)) as lite:
            return lite.execute(statement).rowcount

    return run
