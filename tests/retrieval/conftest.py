"""An engine over a real store with the local model, and memories to find."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from alma.bootstrap import create_embedder, open_storage
from alma.embeddings.base import EmbeddingProvider
from alma.retrieval.engine import RetrievalEngine
from alma.retrieval.writing import MemoryWriter
from alma.storage.base import StorageBackend
from tests.conftest import empty_store


@pytest.fixture(scope="session")
def embedder() -> EmbeddingProvider:
    """The local model, loaded once for all tests."""
    return create_embedder("local")


@pytest.fixture
def dims() -> int:
    """How long the vectors of a store are."""
    return 384


@pytest.fixture
def store_kind() -> str:
    """The store that a test runs on unless its module says more."""
    return "sqlite"


@pytest.fixture
def store(request: pytest.FixtureRequest, store_kind: str, dims: int) -> Iterator[StorageBackend]:
    """A new store."""
    with open_storage(empty_store(request, store_kind), dims) as storage:
        yield storage


@pytest.fixture
def engine(store: StorageBackend, embedder: EmbeddingProvider) -> Iterator[RetrievalEngine]:
    made = RetrievalEngine(store, embedder)
    yield made
    made.close()


@pytest.fixture
def remember(store: StorageBackend, embedder: EmbeddingProvider) -> Callable[..., Any]:
    """Save records with the vectors of their text; gives back what was saved."""
    writer = MemoryWriter(store, embedder)

    def save(*records: Any) -> Any:
        writer.save_many(records)
        return records[0] if len(records) == 1 else records

    return save
