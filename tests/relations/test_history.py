"""History: versions with their reasons, bringing one back, and the past on both clocks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from alma import clock
from alma.embeddings.base import EmbeddingProvider
from alma.errors import ConfigurationError, NotFoundError, ValidationError
from alma.memory.history import FieldChange, History
from alma.memory.relationships import Relationships
from alma.model.governance import Attribution
from alma.model.learning import DomainKnowledge, Heuristic
from alma.model.memory import ChangeType, Memory, MemoryRelationship
from alma.model.query import Compare, Order
from alma.model.scope import Scope
from alma.storage.base import Hit, StorageBackend
from alma.testing import builders as make

SHOP = Scope(project_id="shop")
EVERYWHERE = Scope.everywhere()
ANA = Attribution(user_id="ana", reason="a typo")


def day(month: int, date: int = 1, year: int = 2024) -> datetime:
    return datetime(year, month, date, tzinfo=UTC)


def ids(hits: Sequence[Hit[Any]]) -> list[str]:
    return [hit.record.id for hit in hits]


# ---------------------------------------------------------------------- versions


def test_every_change_is_a_version_with_its_difference_and_reason(store: StorageBackend) -> None:
    store.save(make.a_memory(id="m", content="one\ntwo"), Attribution(user_id="bob"))
    store.update(Memory, "m", {"content": "one\nthree", "tags": ["x"]}, SHOP, ANA)
    store.delete(Memory, ["m"], SHOP)
    first, second, last = History(store).versions(Memory, "m", SHOP)
    assert (first.number, first.change, first.author, first.changes) == (1, ChangeType.CREATED, "bob", ())
    assert (second.change, second.author, second.reason) == (ChangeType.UPDATED, "ana", "a typo")
    assert second.changes == (FieldChange("content", "one\ntwo", "one\nthree"), FieldChange("tags", None, ["x"]))
    assert second.changes[0].lines() == ["@@ -1,2 +1,2 @@", " one", "-two", "+three"]
    assert (last.change, last.record) == (ChangeType.DELETED, None)


def test_any_two_versions_can_be_compared(store: StorageBackend) -> None:
    store.save(make.a_memory(id="m", content="one"))
    for content in ("two", "three"):
        store.update(Memory, "m", {"content": content}, SHOP)
    history = History(store)
    assert history.compare(Memory, "m", 1, 3, SHOP) == [FieldChange("content", "one", "three")]
    assert history.compare(Memory, "m", 3, 1, SHOP) == [FieldChange("content", "three", "one")]
    with pytest.raises(NotFoundError, match="version 9 of the memory"):
        history.compare(Memory, "m", 1, 9, SHOP)


def test_a_version_comes_back_as_a_new_version_with_its_reason(store: StorageBackend, local: EmbeddingProvider) -> None:
    history, vector = History(store, local), local.encode("the first text")
    store.save(make.a_memory(id="m", content="the first text", access_count=1, embedding=vector))
    store.update(Memory, "m", {"content": "another", "embedding": local.encode("another"), "access_count": 7}, SHOP)
    restored = history.restore(Memory, "m", 1, SHOP, "the first was right", Attribution(user_id="ana"))
    assert (restored.content, restored.access_count) == ("the first text", 7)
    assert store.get(Memory, "m", SHOP) == restored
    newest = history.versions(Memory, "m", SHOP)[-1]
    assert (newest.number, newest.change, newest.reason) == (3, ChangeType.RESTORED, "the first was right")
    assert newest.author == "ana"
    (hit,) = store.search_vector(Memory, vector, SHOP)
    assert hit.score == pytest.approx(1.0)


def test_a_deleted_record_comes_back(store: StorageBackend) -> None:
    store.save(make.a_memory(id="m", content="kept", tags=["x"]))
    store.delete(Memory, ["m"], SHOP)
    history = History(store)
    history.restore(Memory, "m", 1, SHOP, "deleted by mistake")
    found = store.get(Memory, "m", SHOP)
    assert found is not None
    assert (found.content, found.tags) == ("kept", ("x",))
    with pytest.raises(NotFoundError, match="content in version 2"):
        history.restore(Memory, "m", 2, SHOP, "there is nothing to come back")


def test_history_stays_inside_the_scope(store: StorageBackend) -> None:
    store.save(make.a_memory(id="theirs", project_id="bank"))
    store.save(make.a_memory(id="private", is_private=True, user_id="bob"))
    history = History(store)
    for key in ("theirs", "private", "nowhere"):
        assert history.versions(Memory, key, SHOP) == []
        assert history.get(Memory, key, SHOP, known_at=clock.now()) is None
        with pytest.raises(NotFoundError):
            history.restore(Memory, key, 1, SHOP, "mine")
    assert len(history.versions(Memory, "private", Scope(user_id="bob"))) == 1


def test_relationships_have_a_past_too(store: StorageBackend) -> None:
    store.save_many([make.a_memory(id="a"), make.a_memory(id="b")])
    edge = Relationships(store).relate("a", "b", "references", SHOP)
    then = clock.now()
    store.delete(Memory, ["b"], SHOP)
    assert store.find(MemoryRelationship, EVERYWHERE, as_of=then) == [edge]
    assert store.find(MemoryRelationship, EVERYWHERE, as_of=clock.now()) == []


# ---------------------------------------------------------------------- what we knew then


def test_the_past_is_found_as_it_was_known(store: StorageBackend) -> None:
    store.save_many([make.a_memory(id="a", content="tea"), make.a_memory(id="b", content="milk")])
    then = clock.now()
    store.update(Memory, "a", {"content": "coffee"}, SHOP)
    store.delete(Memory, ["b"], SHOP)
    store.save(make.a_memory(id="c", content="tea and coffee"))
    history = History(store)
    assert [m.content for m in history.find(Memory, SHOP, order=[Order("id")], known_at=then)] == ["tea", "milk"]
    assert [m.id for m in history.find(Memory, SHOP, Compare("content", "eq", "tea"), known_at=then)] == ["a"]
    known = history.get(Memory, "b", SHOP, known_at=then)
    assert known is not None
    assert known.content == "milk"
    assert history.get(Memory, "c", SHOP, known_at=then) is None


def test_words_are_searched_in_the_past(store: StorageBackend) -> None:
    store.save_many(
        [
            make.a_memory(id="changed", content="the invoices are in MySQL"),
            make.a_memory(id="deleted", content="invoices are printed on Fridays"),
            make.a_memory(id="same", content="old invoices are archived"),
            make.a_memory(id="theirs", content="invoices of the bank", project_id="bank"),
            make.a_memory(id="other", content="the cart shows taxes"),
        ]
    )
    then = clock.now()
    store.update(Memory, "changed", {"content": "the payments are in Postgres"}, SHOP)
    store.delete(Memory, ["deleted", "theirs"], EVERYWHERE)
    store.save(make.a_memory(id="later", content="invoices, invoices, invoices"))
    history = History(store)
    assert set(ids(history.search(Memory, "invoices", SHOP, known_at=then))) == {"changed", "deleted", "same"}
    assert ids(history.search(Memory, "invoices MySQL", SHOP, known_at=then))[0] == "changed"
    assert ids(history.search(Memory, "Postgres", SHOP, known_at=then)) == []
    assert set(ids(history.search(Memory, "invoices", SHOP))) == {"same", "later"}


def test_later_memories_do_not_crowd_out_the_past(store: StorageBackend) -> None:
    store.save(make.a_memory(id="old", content="the invoices of this shop are kept in MySQL"))
    then = clock.now()
    store.save_many([make.a_memory(content="invoices") for _ in range(60)])
    assert ids(History(store).search(Memory, "invoices", SHOP, limit=2, known_at=then)) == ["old"]


@pytest.mark.parametrize("mode", ["semantic", "hybrid"])
def test_meaning_is_searched_in_the_past(store: StorageBackend, local: EmbeddingProvider, mode: Any) -> None:
    history = History(store, local)

    def saved(key: str, content: str, **values: object) -> None:
        store.save(make.a_memory(id=key, content=content, embedding=local.encode(content), **values))

    saved("changed", "The database connection pool was exhausted")
    saved("retitled", "All connections to the database were in use")
    saved("deleted", "No more database connections were available")
    saved("other", "Ana prefers tea over coffee")
    then = clock.now()
    saved("changed", "The cart shows taxes")
    store.update(Memory, "retitled", {"importance_score": 0.9}, SHOP)
    store.delete(Memory, ["deleted"], SHOP)
    saved("later", "database connections ran out")
    found = history.search(
        Memory,
        "we ran out of database connections",
        SHOP,
        limit=3,
        mode=mode,
        known_at=then,
    )
    assert set(ids(found)) == {"changed", "retitled", "deleted"}


def test_a_search_by_meaning_needs_an_embedder(store: StorageBackend) -> None:
    with pytest.raises(ConfigurationError, match="needs an embedder"):
        History(store).search(Memory, "x", SHOP, mode="semantic", known_at=clock.now())


def test_lessons_have_a_past_too(store: StorageBackend) -> None:
    store.save(make.a_heuristic(id="h", strategy="sleep a while"))
    then = clock.now()
    store.update(Heuristic, "h", {"strategy": "wait for the element"}, SHOP)
    assert ids(History(store).search(Heuristic, "sleep", SHOP, known_at=then)) == ["h"]
    assert ids(History(store).search(Heuristic, "sleep", SHOP)) == []


# ---------------------------------------------------------------------- what was true then


def test_what_was_true_then_is_told_from_what_is_true_now(store: StorageBackend) -> None:
    store.save_many(
        [
            make.a_memory(id="berlin", content="the office is in Berlin", event_time=day(1), valid_until=day(6)),
            make.a_memory(id="paris", content="the office is in Paris", event_time=day(2), valid_from=day(6)),
            make.a_memory(id="always", content="the office has a kitchen", event_time=day(1, year=2020)),
        ]
    )
    history = History(store)

    def true_at(moment: datetime) -> set[str]:
        return {memory.id for memory in history.find(Memory, SHOP, true_at=moment)}

    assert true_at(day(3)) == {"berlin", "always"}
    assert true_at(day(7)) == {"paris", "always"}
    assert true_at(day(6)) == {"paris", "always"}
    assert true_at(day(1, year=2021)) == {"always"}
    assert history.get(Memory, "berlin", SHOP, true_at=day(7)) is None


def test_what_superseded_a_memory_ends_its_truth(store: StorageBackend) -> None:
    store.save_many(
        [
            make.a_memory(id="mysql", content="invoices are in MySQL", event_time=day(1)),
            make.a_memory(id="postgres", content="invoices are in Postgres", event_time=day(6)),
        ]
    )
    Relationships(store).relate("postgres", "mysql", "supersedes", SHOP)
    history = History(store)
    assert ids(history.search(Memory, "invoices", SHOP, true_at=day(3))) == ["mysql"]
    assert ids(history.search(Memory, "invoices", SHOP, true_at=day(7))) == ["postgres"]
    assert [m.id for m in history.find(Memory, SHOP, limit=1, true_at=day(7))] == ["postgres"]


def test_superseded_memories_do_not_use_up_a_limit(store: StorageBackend) -> None:
    old = [make.a_memory(id=f"a{n:03d}", event_time=day(1)) for n in range(60)]
    new = make.a_memory(id="new", event_time=day(2))
    kept = [make.a_memory(id=f"b{n}", event_time=day(1)) for n in range(3)]
    edges = [make.a_relationship(new, each, relationship_type="supersedes") for each in old]
    store.save_many([*old, new, *kept, *edges])
    found = History(store).find(Memory, SHOP, order=[Order("id")], limit=2, true_at=day(3))
    assert [memory.id for memory in found] == ["b0", "b1"]


def test_both_clocks_can_be_asked_at_once(store: StorageBackend) -> None:
    store.save(make.a_memory(id="mysql", content="invoices are in MySQL", event_time=day(1)))
    before_we_knew = clock.now()
    store.save(make.a_memory(id="postgres", content="invoices are in Postgres", event_time=day(6)))
    Relationships(store).relate("postgres", "mysql", "supersedes", SHOP)
    history = History(store)
    # In July it was Postgres, but at first we did not know.
    assert ids(history.search(Memory, "invoices", SHOP, true_at=day(7), known_at=before_we_knew)) == ["mysql"]
    assert ids(history.search(Memory, "invoices", SHOP, true_at=day(7), known_at=clock.now())) == ["postgres"]
    store.delete(Memory, ["postgres"], SHOP)
    assert ids(history.search(Memory, "invoices", SHOP, true_at=day(7))) == ["mysql"]


def test_kinds_that_tell_no_time_hold_always(store: StorageBackend) -> None:
    store.save(make.some_knowledge(id="k"))
    assert [fact.id for fact in History(store).find(DomainKnowledge, SHOP, true_at=day(1))] == ["k"]


def test_a_moment_needs_a_time_zone(store: StorageBackend) -> None:
    for clock_ in ("known_at", "true_at"):
        with pytest.raises(ValidationError, match=f"history.{clock_} must be a datetime with a time zone"):
            History(store).find(Memory, SHOP, **{clock_: datetime(2026, 1, 1)})  # type: ignore[arg-type]  # noqa: DTZ001


def test_private_and_deleted_memories_of_the_past_stay_unseen(store: StorageBackend) -> None:
    store.save(make.a_memory(id="private", content="the diary of bob", user_id="bob", is_private=True))
    store.save(make.a_memory(id="gone", content="a diary in the bin", is_active=False))
    store.save(make.a_memory(id="expired", content="a diary of today", expires_at=clock.now() - timedelta(days=1)))
    then = clock.now()
    store.delete(Memory, ["private", "gone", "expired"], EVERYWHERE)
    assert ids(History(store).search(Memory, "diary", SHOP, known_at=then)) == []
    assert ids(History(store).search(Memory, "diary", Scope(user_id="bob"), known_at=then)) == ["private"]
