"""A dropped full-text table or column: retrieval is degraded, and opening the store rebuilds it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from alma.bootstrap import open_storage
from alma.embeddings.base import EmbeddingProvider
from alma.errors import StorageError
from alma.model.learning import Heuristic
from alma.model.memory import Memory
from alma.model.query import EVERYTHING
from alma.model.scope import Scope
from alma.retrieval.engine import RetrievalEngine
from alma.retrieval.simple_search import Mode
from alma.retrieval.writing import MemoryWriter
from alma.storage.base import StorageBackend
from alma.storage.sqlite_local import SQLiteStorage
from alma.testing import builders as make

SHOP = Scope(project_id="shop")
QUESTION = "Who owns the checkout?"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StorageBackend]:
    with open_storage(str(tmp_path / "alma.db"), 384) as storage:
        yield storage


@pytest.fixture
def owner(store: StorageBackend, embedder: EmbeddingProvider, tmp_path: Path) -> Memory:
    """What a question asks for, among others, in a store that has lost the words of general memories."""
    contents = ("Anna owns the checkout service.", "We deploy on Fridays.", "The office is closed in August.")
    memories = [make.a_memory(content=content) for content in contents]
    MemoryWriter(store, embedder).save_many([*memories, make.a_heuristic(condition="testing a login form")])
    with closing(sqlite3.connect(tmp_path / "alma.db")) as connection:
        connection.execute("DROP TABLE memories_fts")
        connection.commit()
    return memories[0]


def ids(records: Any) -> list[str]:
    return [record.id for record in records]


def test_what_is_near_in_meaning_is_found_and_the_slice_says_how_to_mend_it(
    engine: RetrievalEngine, owner: Memory
) -> None:
    found = engine.retrieve(QUESTION, "helena", "shop")
    assert ids(found.memories) == [owner.id]
    assert "the full-text index memories_fts is missing" in found.degraded
    assert "open the store again" in found.degraded


@pytest.mark.parametrize("mode", ["hybrid", "keyword"])
def test_a_search_by_words_is_answered_by_meaning(engine: RetrievalEngine, owner: Memory, mode: Mode) -> None:
    found = engine.search(QUESTION, [(SHOP, EVERYTHING)], mode=mode)
    assert found.memories[0].id == owner.id
    assert "memories_fts is missing" in found.degraded


@pytest.mark.parametrize("question", ["What changed since the deploy?", "What was the last deploy on a Friday?"])
def test_what_else_asks_for_words_does_without_them(engine: RetrievalEngine, owner: Memory, question: str) -> None:
    assert "memories_fts is missing" in engine.retrieve(question, "helena", "shop").degraded


def test_kinds_that_have_their_words_are_found_by_them(engine: RetrievalEngine, owner: Memory) -> None:
    found = engine.retrieve("test the login form", "helena", "shop")
    assert "words" in found.explain()[0].found_by
    assert found.heuristics


def test_what_cannot_be_written_names_the_index_and_what_mends_it(store: StorageBackend, owner: Memory) -> None:
    with pytest.raises(StorageError, match=r"memories_fts is missing in .*: open the store again"):
        store.save(make.a_memory(content="one more"))


def test_opening_the_store_makes_the_words_anew(
    store: StorageBackend, embedder: EmbeddingProvider, owner: Memory, tmp_path: Path
) -> None:
    with open_storage(str(tmp_path / "alma.db"), 384) as opened:
        assert [key for key, _ in opened.matching_ids(Memory, "checkout", SHOP)] == [owner.id]
        assert len(opened.matching_ids(Heuristic, "login", Scope.everywhere())) == 1
        opened.save(make.a_memory(content="one more checkout"))
    engine = RetrievalEngine(store, embedder)
    # Who had it open all the time finds them, too.
    assert not engine.retrieve(QUESTION, "helena", "shop").degraded
    engine.close()


@pytest.fixture(params=["data", "idx", "docsize", "config"])
def without_a_part(request: pytest.FixtureRequest, store: StorageBackend, embedder: EmbeddingProvider) -> Memory:
    """What a question asks for, in a store whose words of general memories have lost one of FTS5's own tables."""
    asked_for = make.a_memory(content="Anna owns the checkout service.")
    MemoryWriter(store, embedder).save_many([asked_for, make.a_memory(content="We deploy on Fridays.")])
    assert isinstance(store, SQLiteStorage)
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute(f"DROP TABLE memories_fts_{request.param}")
        connection.commit()
    return asked_for


def test_without_an_inner_table_memories_are_found_by_meaning(engine: RetrievalEngine, without_a_part: Memory) -> None:
    found = engine.retrieve(QUESTION, "helena", "shop")
    assert ids(found.memories) == [without_a_part.id]
    assert "open the store again" in found.degraded


def test_what_cannot_be_written_without_an_inner_table_names_what_mends_it(
    store: StorageBackend, without_a_part: Memory
) -> None:
    with pytest.raises(StorageError, match=r"full-text index .*: open the store again"):
        store.save(make.a_memory(content="one more"))


def test_opening_the_store_makes_an_index_anew_that_lacks_an_inner_table(
    store: StorageBackend, engine: RetrievalEngine, without_a_part: Memory, tmp_path: Path
) -> None:
    with open_storage(str(tmp_path / "alma.db"), 384) as opened:
        opened.save(make.a_memory(content="one more checkout"))
        assert len(opened.matching_ids(Memory, "checkout", SHOP)) == 2
    assert not engine.retrieve(QUESTION, "helena", "shop").degraded
    with closing(sqlite3.connect(tmp_path / "alma.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize("part", ["data", "config"])
def test_opening_the_store_makes_an_index_anew_whose_inner_table_was_emptied(
    store: StorageBackend, owner: Memory, tmp_path: Path, part: str
) -> None:
    with closing(sqlite3.connect(tmp_path / "alma.db")) as connection:
        connection.execute(f"DELETE FROM heuristics_fts_{part}")
        connection.commit()
    with open_storage(str(tmp_path / "alma.db"), 384) as opened:
        assert len(opened.matching_ids(Heuristic, "login", Scope.everywhere())) == 1


@pytest.fixture(params=["search", "search_length"])
def without_a_column(
    request: pytest.FixtureRequest, postgres_dsn: str, embedder: EmbeddingProvider
) -> Iterator[StorageBackend]:
    """A store on PostgreSQL that has lost a column which the words of general memories are looked up in."""
    with open_storage(postgres_dsn, 384) as storage:
        contents = ("Anna owns the checkout service.", "We deploy on Fridays.")
        memories = [make.a_memory(content=content, tags=["shop"]) for content in contents]
        MemoryWriter(storage, embedder).save_many(memories)
        with psycopg.connect(postgres_dsn) as connection:
            connection.execute(f"ALTER TABLE memories DROP COLUMN {request.param}".encode())
        yield storage


def test_without_a_column_of_words_memories_are_found_by_meaning(
    without_a_column: StorageBackend, embedder: EmbeddingProvider
) -> None:
    engine = RetrievalEngine(without_a_column, embedder)
    for question in (QUESTION, "Who owned the checkout before the deploy?"):
        found = engine.retrieve(question, "helena", "shop")
        assert found.memories[0].content == "Anna owns the checkout service."
        assert "open the store again" in found.degraded
    engine.close()


def test_what_cannot_be_written_without_a_column_of_words_names_what_mends_it(without_a_column: StorageBackend) -> None:
    with pytest.raises(StorageError, match=r"full-text index of memories .*: open the store again"):
        without_a_column.save(make.a_memory(content="one more"))


def test_opening_the_store_makes_a_column_of_words_anew(
    without_a_column: StorageBackend, embedder: EmbeddingProvider, postgres_dsn: str
) -> None:
    with open_storage(postgres_dsn, 384) as opened:
        assert len(opened.matching_ids(Memory, "checkout", SHOP)) == 1
        opened.save(make.a_memory(content="one more checkout"))
    engine = RetrievalEngine(without_a_column, embedder)
    # Who had it open all the time finds them, too.
    found = engine.retrieve(QUESTION, "helena", "shop")
    assert not found.degraded
    assert "words" in found.explain()[0].found_by
    engine.close()
