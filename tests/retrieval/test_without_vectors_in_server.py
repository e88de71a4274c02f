"""A vector search that fails inside the server ends its transaction there: found by words all the same, and said so."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from alma.bootstrap import open_storage
from alma.embeddings.base import EmbeddingProvider
from alma.errors import StorageError
from alma.model.memory import Memory
from alma.model.query import EVERYTHING
from alma.model.scope import Scope
from alma.retrieval.engine import RetrievalEngine
from alma.retrieval.simple_search import Mode
from alma.retrieval.writing import MemoryWriter
from alma.storage.base import StorageBackend
from alma.testing import builders as make

QUESTION = "Who owns the checkout?"
# What pgvector needs to compare two vectors.
_OUT_OF_ORDER = """
CREATE OR REPLACE FUNCTION vector_norm(vector) RETURNS float8 LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$ BEGIN RAISE EXCEPTION 'out of order'; END $$
"""


@pytest.fixture
def store(postgres_dsn: str) -> Iterator[StorageBackend]:
    with open_storage(postgres_dsn, 384) as storage:
        yield storage


@pytest.fixture
def owner(store: StorageBackend, embedder: EmbeddingProvider, postgres_dsn: str) -> Memory:
    """What a question asks for, in a database that can no longer compare vectors."""
    contents = ("Anna owns the checkout service.", "We deploy on Fridays.", "The office is closed in August.")
    memories = [make.a_memory(content=content) for content in contents]
    MemoryWriter(store, embedder).save_many(memories)
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        connection.execute(_OUT_OF_ORDER)
    return memories[0]


def test_it_is_found_by_words(engine: RetrievalEngine, owner: Memory) -> None:
    found = engine.retrieve(QUESTION, "helena", "shop")
    assert [memory.id for memory in found.memories] == [owner.id]
    assert "the vector index is down" in found.degraded


@pytest.mark.parametrize("mode", ["semantic", "hybrid"])
def test_searches_find_it_by_words_as_well(engine: RetrievalEngine, owner: Memory, mode: Mode) -> None:
    found = engine.search(QUESTION, [(Scope(project_id="shop"), EVERYTHING)], mode=mode)
    assert [memory.id for memory in found.memories] == [owner.id]
    assert "the vector index is down" in found.degraded


def test_a_server_that_is_gone_is_not_an_index_that_is_down(
    engine: RetrievalEngine, owner: Memory, store: StorageBackend
) -> None:
    store.close()
    with pytest.raises(StorageError):
        engine.retrieve(QUESTION, "helena", "shop")
