"""Stores of each kind, and ways past them for tests that tamper with what they hold."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing

import psycopg
import pytest

from alma.bootstrap import open_storage
from alma.embeddings.mock import MockEmbedder
from alma.retrieval.writing import MemoryWriter
from alma.storage.base import StorageBackend
from tests.conftest import empty_store

Tamper = Callable[[str], int]


@pytest.fixture
def database(place: str) -> Iterator[StorageBackend]:
    """A new store in a database."""
    with open_storage(place) as storage:
        yield storage


@pytest.fixture(params=["sqlite", "files", "postgresql"])
def store(request: pytest.FixtureRequest) -> Iterator[StorageBackend]:
    """A new store of each kind."""
    with open_storage(empty_store(request, request.param)) as storage:
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
