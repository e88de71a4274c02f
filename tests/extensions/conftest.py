"""Real stores of each database for what stands on top of the core."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from alma.bootstrap import create_embedder, open_storage
from alma.embeddings.base import EmbeddingProvider
from alma.storage.base import StorageBackend
from tests.conftest import empty_store


@pytest.fixture(scope="session")
def embedder() -> EmbeddingProvider:
    """The local model, loaded once for all tests."""
    return create_embedder("local")


on_each_database = pytest.mark.parametrize("database", ["sqlite", "postgresql"])
"""For tests in which the database could make a difference."""


@pytest.fixture
def database() -> str:
    """What a test runs on that does not ask for each database."""
    return "sqlite"


@pytest.fixture
def place(request: pytest.FixtureRequest, database: str) -> str:
    """The address of an empty store."""
    return empty_store(request, database)


@pytest.fixture
def store(place: str) -> Iterator[StorageBackend]:
    with open_storage(place) as storage:
        yield storage
