"""Retrieval follows relationships: what superseded a memory stands before it, what contradicts it is flagged."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from alma.cache.document import from_json, to_json
from alma.clock import now
from alma.embeddings.base import EmbeddingProvider
from alma.memory.journal import Journal
from alma.memory.relationships import Relationships
from alma.model.memory import Memory
from alma.model.scope import Scope
from alma.model.slice import MemorySlice
from alma.retrieval.engine import RetrievalEngine
from alma.retrieval.simple_search import Mode
from alma.retrieval.writing import MemoryWriter
from alma.storage.base import StorageBackend
from alma.testing import builders as make

SHOP = Scope(project_id="shop")
ASKED = "which database do we use for invoices?"


class House:
    """A store, what writes into it and what retrieves from it."""

    def __init__(self, storage: StorageBackend, embedder: EmbeddingProvider) -> None:
        self.writer = MemoryWriter(storage, embedder)
        self.relationships = Relationships(storage)
        self.engine = RetrievalEngine(storage, embedder)

    def say(self, key: str, content: str, **values: object) -> None:
        self.writer.save(make.a_memory(id=key, content=content, **values))

    def relate(self, one: str, other: str, relation: str) -> None:
        self.relationships.relate(one, other, relation, Scope.everywhere())

    def ask(self, query: str = ASKED, **options: object) -> MemorySlice:
        return self.engine.retrieve(query, agent="helena", project_id="shop", **options)  # type: ignore[arg-type]


@pytest.fixture
def house(database: StorageBackend, local: EmbeddingProvider) -> Iterator[House]:
    made = House(database, local)
    yield made
    made.engine.close()


def ids(found: MemorySlice) -> list[str]:
    return [memory.id for memory in found.memories]


def some_others(house: House) -> None:
    for n, text in enumerate(("tests run on every push", "the cart shows taxes", "backups are kept for a month")):
        house.say(f"other{n}", text)


@pytest.mark.parametrize("mode", ["hybrid", "semantic", "keyword"])
def test_in_every_way_of_searching_it_stands_before_it(house: House, database: StorageBackend, mode: Mode) -> None:
    house.say("old", "The API rate limit is 100 requests per minute")
    house.say("new", "By now the limit of the API is 250")
    house.relate("new", "old", "supersedes")
    journal = Journal(database, house.writer, house.engine, count_reads=False)
    asked = "the API rate limit is 100 requests per minute"
    assert [hit.memory.id for hit in journal.search(asked, SHOP, mode=mode)][:2] == ["new", "old"]
    (best,) = journal.search(asked, SHOP, mode=mode, limit=1)
    assert best.memory.id == "new"
    assert sum(best.explanation.terms.values()) == pytest.approx(best.score)


def test_what_superseded_a_memory_stands_before_it(house: House) -> None:
    some_others(house)
    house.say("old", "The database we use for invoices is MySQL, all invoices are in that database")
    house.say("new", "Since May it is Postgres")
    house.relate("new", "old", "supersedes")
    found = house.ask()
    assert ids(found)[:2] == ["new", "old"]
    (note,) = found.explanation_of("old").notes
    assert note == f"superseded on {now():%Y-%m-%d} by new: Since May it is Postgres"
    assert sum(found.explanation_of("new").terms.values()) == pytest.approx(found.explanation_of("new").score)


def test_a_line_of_successors_stands_in_order(house: House) -> None:
    some_others(house)
    house.say("first", "The database we use for invoices is MySQL, all invoices are in that database")
    house.say("second", "invoices: use the Oracle database")
    house.say("third", "It is Postgres by now")
    house.relate("third", "second", "supersedes")
    house.relate("second", "first", "supersedes")
    assert ids(house.ask())[:3] == ["third", "second", "first"]


def test_a_successor_that_the_reader_may_not_see_is_not_told_of(house: House) -> None:
    some_others(house)
    house.say("old", "The database we use for invoices is MySQL, all invoices are in that database")
    house.say("theirs", "Since May it is Postgres", project_id="bank")
    house.say("private", "Since June it is Oracle", user_id="bob", is_private=True)
    house.relate("theirs", "old", "supersedes")
    house.relate("private", "old", "supersedes")
    found = house.ask()
    assert ids(found)[0] == "old"
    assert {"theirs", "private"}.isdisjoint(ids(found))
    assert found.explanation_of("old").notes == ()


def test_a_query_that_asks_how_it_was_then_gets_what_was_true_then(house: House) -> None:
    then, later = datetime(2024, 3, 5, tzinfo=UTC), datetime(2025, 6, 1, tzinfo=UTC)
    some_others(house)
    house.say("old", "The database we use for invoices is MySQL", event_time=then)
    house.say("new", "The database we use for invoices is Postgres", event_time=later)
    house.relate("new", "old", "supersedes")
    assert ids(house.ask("which database did we use for invoices in March 2024?"))[0] == "old"
    assert ids(house.ask())[0] == "new"


def test_what_holds_only_from_some_day_on_has_replaced_nothing_before(house: House) -> None:
    some_others(house)
    house.say("old", "The database we use for invoices is MySQL")
    house.say("new", "The database we use for invoices is Postgres", valid_from=now() + timedelta(days=9))
    house.relate("new", "old", "supersedes")
    assert house.ask().explanation_of("old").notes == ()
    assert house.ask(now=now() + timedelta(days=10)).explanation_of("old").notes != ()


def test_memories_that_contradict_each_other_are_flagged(house: House) -> None:
    some_others(house)
    house.say("a", "The database we use for invoices is MySQL")
    house.say("b", "Ana says that it is Postgres")
    house.relate("b", "a", "contradicts")
    found = house.ask()
    assert ids(found)[:2] == ["b", "a"]
    (note,) = found.explanation_of("a").notes
    assert note == f"contradicted on {now():%Y-%m-%d} by b: Ana says that it is Postgres"
    assert found.explanation_of("b").notes == ("contradicts a",)
    assert f"Note: {note.replace(' by b:', ' by:')}" in found.to_prompt()
    assert found.to_prompt().count("Note:") == 1


def test_a_prompt_says_what_was_superseded(house: House) -> None:
    house.say("old", "The database we use for invoices is MySQL")
    house.say("new", "The database we use for invoices is Postgres")
    house.relate("new", "old", "supersedes")
    prompt = house.ask().to_prompt()
    assert prompt.index("Postgres") < prompt.index("MySQL") < prompt.index(f"Note: superseded on {now():%Y-%m-%d} by: ")
    assert prompt.count("Note:") == 1


def test_notes_survive_a_cache(house: House) -> None:
    house.say("old", "The database we use for invoices is MySQL")
    house.say("new", "The database we use for invoices is Postgres")
    house.relate("new", "old", "supersedes")
    found = house.ask()
    kept = from_json(to_json(found, "1"), "1")
    assert kept is not None
    assert kept.explanations == found.explanations


def test_a_deleted_successor_does_not_count(house: House, database: StorageBackend) -> None:
    house.say("old", "The database we use for invoices is MySQL")
    house.say("new", "The database we use for invoices is Postgres")
    house.relate("new", "old", "supersedes")
    database.update(Memory, "new", {"is_active": False}, SHOP)
    found = house.ask()
    assert ids(found) == ["old"]
    assert found.explanation_of("old").notes == ()
