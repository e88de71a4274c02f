"""A journal over a real store, with vectors that mean nothing unless a test asks for meaning."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from alma.bootstrap import create_embedder, open_storage
from alma.embeddings.base import EmbeddingProvider
from alma.memory.journal import Journal
from alma.retrieval.engine import RetrievalEngine
from alma.retrieval.writing import MemoryWriter
from alma.storage.base import StorageBackend


@pytest.fixture
def store(place: str) -> Iterator[StorageBackend]:
    with open_storage(place) as storage:
        yield storage


@pytest.fixture
def journal(store: StorageBackend) -> Iterator[Journal]:
    yield from opened(store, create_embedder("mock"))


@pytest.fixture
def light(sqlite_path: Path) -> Iterator[Journal]:
    """A journal on SQLite alone, for what is decided before any store is asked."""
    with open_storage(str(sqlite_path)) as store:
        yield from opened(store, create_embedder("mock"))


@pytest.fixture
def telling(store: StorageBackend, local: EmbeddingProvider) -> Iterator[Journal]:
    """A journal whose vectors mean something."""
    yield from opened(store, local)


def opened(store: StorageBackend, embedder: EmbeddingProvider) -> Iterator[Journal]:
    engine = RetrievalEngine(store, embedder)
    with Journal(store, MemoryWriter(store, embedder), engine, flush_seconds=3600) as journal:
        yield journal
    engine.close()
