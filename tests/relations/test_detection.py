"""Detection: relationships that memories show by what they say, with the evidence; the rules know no store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from alma.bootstrap import open_storage
from alma.embeddings.base import EmbeddingProvider
from alma.memory.fact_comparison import FactComparison
from alma.memory.relation_detection import cues
from alma.memory.relationships import Relationships, evidence_of
from alma.model.memory import Memory, MemoryRelationship
from alma.model.scope import Scope
from alma.storage.base import StorageBackend
from alma.testing import builders as make
from tests.support.judging import LabelledJudge

EVERYWHERE = Scope.everywhere()
SHOP = Scope(project_id="shop")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StorageBackend]:
    with open_storage(str(tmp_path / "alma.db")) as storage:
        yield storage


@pytest.fixture
def relationships(store: StorageBackend) -> Relationships:
    return Relationships(store)


def rows(store: StorageBackend) -> list[tuple[str, str, str]]:
    found = store.find(MemoryRelationship, EVERYWHERE)
    return sorted((edge.from_memory_id, edge.relationship_type, edge.to_memory_id) for edge in found)


def said(store: StorageBackend, key: str, content: str, **values: object) -> Memory:
    memory = make.a_memory(id=key, content=content, **values)
    store.save(memory)
    return memory


@pytest.mark.parametrize(
    ("earlier", "later", "relation"),
    [
        (
            {"content": "We keep invoices in MySQL"},
            "This replaces the decision that we keep invoices in MySQL: use Postgres",
            "supersedes",
        ),
        ({"content": "Login fails", "title": "#12 login fails on Safari"}, "Cookies are back, fixes #12", "resolves"),
        ({"content": "x", "external_id": "12"}, "The patch closes #12.", "resolves"),
        (
            {"content": "The cache makes every page faster"},
            "Contrary to the note that the cache makes every page faster, it slows search",
            "contradicts",
        ),
        (
            {"content": "minutes", "title": "API versioning meeting"},
            "As discussed in the API versioning meeting, v1 goes in May",
            "references",
        ),
        (
            {"content": "a retry helper with backoff"},
            "The uploader builds on the retry helper with backoff",
            "builds_on",
        ),
        ({"content": "which region do we deploy to"}, "In reply to: which region do we deploy to. Paris", "reply_to"),
        (
            {"content": "audit of the payment flow", "title": "Payment audit"},
            "Follow-up to the Payment audit: two findings are left",
            "follow_up",
        ),
        ({"content": "something quite other"}, "see 2f9c1d7a for the numbers", "references"),
        (
            {"content": "The orders are kept in the MySQL cluster"},
            "The MySQL cluster the orders are kept in was replaced by Postgres",
            "supersedes",
        ),
        (
            {"content": "Login loops on Safari", "memory_type": "error"},
            "The login that loops on Safari has been fixed by another cookie",
            "resolves",
        ),
        ({"content": "we use Postgres"}, "Superseded by 2f9c1d7a", "superseded_by"),
        ({"content": "we use Postgres"}, "This decision was replaced by 2f9c1d7a.", "superseded_by"),
    ],
)
def test_words_that_say_how_are_taken_at_their_word(
    store: StorageBackend, relationships: Relationships, earlier: dict[str, object], later: str, relation: str
) -> None:
    said(store, "2f9c1d7a", **{"content": "x", **earlier})  # type: ignore[arg-type]
    said(store, "other", "the office plants are watered on Fridays")
    said(store, "later", later)
    relationships.detect("later", SHOP)
    (found,) = relationships.of("later", SHOP)
    assert (found.relation, found.memory.id) == (relation, "2f9c1d7a")
    assert found.edge.auto_detected
    assert found.strength >= 0.5
    assert {each.kind for each in found.evidence} & {"explicit words", "id mentioned", "title mentioned"}


def test_a_solution_that_names_the_same_error_resolves_it(store: StorageBackend, relationships: Relationships) -> None:
    said(store, "e", "TimeoutError in src/pay/gateway.py when the bank is slow", memory_type="error")
    said(store, "s", "raise the limit in src/pay/gateway.py, TimeoutError is gone", memory_type="solution")
    relationships.detect("s", SHOP)
    (found,) = relationships.of("e", SHOP)
    assert (found.relation, found.memory.id) == ("resolved_by", "s")
    assert {(each.kind, each.detail) for each in found.evidence} == {
        ("shared error", "TimeoutError"),
        ("shared file", "src/pay/gateway.py"),
    }


def test_opposite_statements_contradict_each_other(store: StorageBackend, local: EmbeddingProvider) -> None:
    always, never = "Always restart the worker after a deploy", "Never restart the worker after a deploy"
    for key, text in (("a", always), ("b", never)):
        said(store, key, text, embedding=local.encode(text))
    facts = FactComparison(store, lambda: LabelledJudge({(never, always): "opposite"}))
    relationships = Relationships(store, judged=facts.detected)
    relationships.detect("b", SHOP)
    (found,) = [each for each in relationships.of("b", SHOP) if each.relation == "contradicts"]
    assert found.memory.id == "a"
    assert ("judge", "opposite, 0.90, by scripted") in {(each.kind, each.detail) for each in found.evidence}


def test_near_meanings_relate(store: StorageBackend, relationships: Relationships, local: EmbeddingProvider) -> None:
    for key, text in (
        ("a", "The database connection pool was exhausted during the sale"),
        ("b", "During the sale all database connections in the pool were used up"),
        ("c", "Ana prefers tea over coffee"),
    ):
        said(store, key, text, embedding=local.encode(text))
    relationships.detect("b", SHOP)
    (found,) = relationships.of("b", SHOP)
    assert (found.relation, found.memory.id) == ("relates_to", "a")
    assert found.evidence[0].kind == "similar meaning"


def test_detecting_again_changes_nothing(store: StorageBackend, relationships: Relationships) -> None:
    said(store, "a", "Login fails", title="#12 login fails")
    said(store, "b", "This fixes #12")
    first = relationships.detect("b", SHOP)
    before = store.find(MemoryRelationship, EVERYWHERE)
    assert relationships.detect("b", SHOP) == first
    assert store.find(MemoryRelationship, EVERYWHERE) == before


def test_detection_leaves_alone_how_strong_someone_said_it_is(
    store: StorageBackend, relationships: Relationships
) -> None:
    said(store, "a", "Login fails", title="#12 login fails")
    said(store, "b", "This fixes #12")
    relationships.relate("b", "a", "resolves", SHOP, strength=0.3)
    relationships.detect("b", SHOP)
    (edge,) = store.find(MemoryRelationship, EVERYWHERE)
    assert (edge.strength, edge.auto_detected) == (0.3, False)
    assert [each.kind for each in evidence_of(edge)] == ["explicit words"]


def test_detection_stays_inside_the_scope(store: StorageBackend, relationships: Relationships) -> None:
    said(store, "theirs", "Login fails", title="#12 login fails", project_id="bank")
    said(store, "private", "Login fails too", title="#12 login", is_private=True, user_id="bob")
    said(store, "b", "This fixes #12, see theirs1 and private")
    assert relationships.detect("b", SHOP) == []


def test_nothing_is_found_where_nothing_is(store: StorageBackend, relationships: Relationships) -> None:
    said(store, "a", "The build was moved to another host")
    said(store, "b", "Ana prefers tea")
    assert relationships.detect("b", SHOP) == []


@pytest.mark.parametrize(
    "text",
    [
        "We fixed the width of the cart page to the screen",
        "see the cart page of the shop, it is nice",
        "The cart closed the page of the shop",
        "The width of the cart page of the shop must be fixed",
    ],
)
def test_words_that_mean_something_else_relate_nothing(
    store: StorageBackend, relationships: Relationships, text: str
) -> None:
    said(store, "a", "the width of the cart page of the shop")
    said(store, "b", text)
    assert [each.relation for each in relationships.detect("b", SHOP)] == []


def test_a_solution_told_in_words_resolves_the_problem(store: StorageBackend, relationships: Relationships) -> None:
    said(store, "a", "the cart page flickers on phones", memory_type="error")
    said(store, "b", "a cache header fixes the flicker of the cart page on phones")
    relationships.detect("b", SHOP)
    assert rows(store) == [("b", "resolves", "a")]


def test_a_sentence_that_tells_of_itself_first_may_tell_of_another_then() -> None:
    found = cues("It was fixed by PAY-7, and the login that loops on Safari was fixed by another cookie.")
    assert [each.relation for each in found] == ["resolved_by", "resolves"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Replaces X and fixes Y.", [("supersedes", "X"), ("resolves", "Y")]),
        (
            "Fixes PAY-3, replaces the old cookie and closes PAY-4",
            [("resolves", "PAY-3"), ("supersedes", "the old cookie"), ("resolves", "PAY-4")],
        ),
        (
            "Replaces the cart, and the login that loops was fixed by it",
            [("supersedes", "the cart"), ("resolves", "the login that loops")],
        ),
        (
            "Fixes login and logout based on the audit",
            [("resolves", "login and logout"), ("builds_on", "the audit")],
        ),
        ("Fixes #12 and #13", [("resolves", "#12 and #13")]),
        ("Replaces the queue but does not touch the login", [("supersedes", "the queue")]),
        (
            "Unlike the cron job, this extends the scheduler",
            [("contradicts", "the cron job"), ("builds_on", "the scheduler")],
        ),
    ],
)
def test_what_is_spoken_of_ends_where_the_next_clause_begins(text: str, expected: list[tuple[str, str]]) -> None:
    assert [(str(each.relation), each.object) for each in cues(text)] == expected


def test_what_is_fixed_beside_is_not_superseded(store: StorageBackend, relationships: Relationships) -> None:
    said(store, "a", "Mails go through the SMTP queue", title="SMTP queue")
    said(store, "b", "The login form loops on Safari", title="login loop on Safari", memory_type="error")
    said(store, "c", "Replaces the SMTP queue and fixes the login loop on Safari")
    relationships.detect("c", SHOP)
    assert sorted(rows(store)) == [("c", "resolves", "b"), ("c", "supersedes", "a")]


def test_what_is_not_fixed_resolves_nothing(store: StorageBackend, relationships: Relationships) -> None:
    said(store, "a", "the cart page flickers on phones", memory_type="error")
    said(store, "b", "The cache header has not fixed the flicker of the cart page on phones")
    assert relationships.detect("b", SHOP) == []


def test_two_memories_with_a_relation_of_their_own_do_not_merely_relate_too(
    store: StorageBackend, relationships: Relationships
) -> None:
    said(store, "a", "Uploads over 2 GB end in BrokenPipeError", title="OPS-7", memory_type="error")
    said(store, "b", "BrokenPipeError of OPS-7 comes from the proxy, follow-up to OPS-7")
    relationships.detect("b", SHOP)
    assert rows(store) == [("b", "follow_up", "a")]
    assert relationships.detect("a", SHOP) == []
    assert rows(store) == [("b", "follow_up", "a")]


def test_a_dry_run_saves_nothing(store: StorageBackend, relationships: Relationships) -> None:
    said(store, "a", "Login fails", title="#12 login fails")
    said(store, "b", "This fixes #12")
    assert len(relationships.detect("b", SHOP, save=False)) == 1
    assert rows(store) == []


def test_detection_finds_the_same_on_every_database(database: StorageBackend) -> None:
    said(database, "e", "TimeoutError in src/pay/gateway.py when the bank is slow", memory_type="error")
    said(database, "12", "Login fails on Safari", title="#12 login fails")
    said(database, "s", "TimeoutError is gone since src/pay/gateway.py waits; fixes #12", memory_type="solution")
    Relationships(database).detect("s", SHOP)
    assert rows(database) == [("s", "resolves", "12"), ("s", "resolves", "e")]
