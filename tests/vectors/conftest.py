"""A store in a file, and a Qdrant server beside it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from qdrant_client import QdrantClient

from alma.bootstrap import open_storage
from alma.storage.base import StorageBackend
from alma.vectors.qdrant import QdrantProjection
from tests.support.qdrant import QdrantNode


@pytest.fixture
def storage(sqlite_path: Path) -> Iterator[StorageBackend]:
    """A store in an SQLite file."""
    with open_storage(sqlite_path, 4) as store:
        yield store


@pytest.fixture
def prefix() -> str:
    """The start of the names of the collections of one test."""
    return uuid.uuid4().hex


@pytest.fixture
def projection(storage: StorageBackend, qdrant: QdrantNode, prefix: str) -> Iterator[QdrantProjection]:
    """The projection of the store; collections are made with their first points."""
    with QdrantProjection(qdrant.url, prefix=prefix) as made:
        yield made
        made.clear()


@pytest.fixture
def client(qdrant: QdrantNode) -> Iterator[QdrantClient]:
    """What another program uses."""
    client = QdrantClient(qdrant.url, check_compatibility=False)
    yield client
    client.close()
