"""What a search finds: through every filter, inside the scope, however much lies around it, and why."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from alma.clock import now
from alma.embeddings.base import EmbeddingProvider
from alma.embeddings.mock import MockEmbedder
from alma.errors import EmbeddingError, ValidationError
from alma.memory.filters import MemoryFilter
from alma.memory.history import History
from alma.memory.journal import Journal
from alma.memory.settings import SystemSettings
from alma.model.governance import Attribution
from alma.model.memory import Layer, Memory, priority_of
from alma.model.query import matches
from alma.model.scope import Scope
from alma.retrieval.engine import RetrievalEngine
from alma.retrieval.simple_search import Mode
from alma.retrieval.writing import MemoryWriter
from alma.storage.base import StorageBackend

SHOP = Scope(project_id="shop")
DAY = datetime(2025, 3, 4, tzinfo=UTC)
MODES: tuple[Mode, ...] = ("semantic", "keyword", "hybrid")


def note(journal: Journal, content: str = "the deploy was slow", **fields: Any) -> Memory:
    return journal.create(content, **{"project_id": "shop", "user_id": "ana", **fields})


FILTERS: list[tuple[dict[str, Any], MemoryFilter]] = [
    ({"memory_type": "decision"}, MemoryFilter(types=["decision", "error"])),
    ({"category": "ops"}, MemoryFilter(categories=["ops"])),
    ({"tags": ["a", "b"]}, MemoryFilter(tags=["a", "b"])),
    ({"tags": ["b"]}, MemoryFilter(any_tags=["z", "b"])),
    ({"layers": ["global"]}, MemoryFilter(layers=["global"])),
    ({"session_id": "s1"}, MemoryFilter(session_id="s1")),
    ({"source_agent": "helena"}, MemoryFilter(source_agent="helena")),
    ({"event_time": DAY}, MemoryFilter(event_since=DAY, event_until=DAY + timedelta(days=1))),
    ({"created_at": DAY}, MemoryFilter(created_until=DAY + timedelta(seconds=1))),
    ({"importance_score": 0.9}, MemoryFilter(min_importance=0.85)),
    ({"priority": 9}, MemoryFilter(min_priority=9)),
    ({"content_json": {"deploy": {"region": "eu"}}}, MemoryFilter(content={"deploy.region": "eu"})),
    ({"content_json": {"sizes": [1, 2]}}, MemoryFilter(content={("sizes",): 2.0})),
    (
        {"content_json": {"deploy": {"region": "eu", "sizes": [1, 2]}}},
        MemoryFilter(content={"deploy": {"region": "eu", "sizes": [2]}}),
    ),
    ({"content_json": {"done": False}}, MemoryFilter(content={"done": False})),
    ({"content_json": {"items": [{"sku": "x", "n": 1}, 2]}}, MemoryFilter(content={"items": [{"sku": "x"}, 2]})),
    ({"content_json": {"items": [{"sku": "x", "n": 1}]}}, MemoryFilter(content={"items": {"sku": "x", "n": 1}})),
    ({"is_private": True}, MemoryFilter(private=True)),
    ({"is_archived": True}, MemoryFilter(include_archived=True, types=["note"], min_importance=0.0)),
    ({"user_id": "ben", "is_private": False}, MemoryFilter(user_id="ben")),
]
OTHERS: dict[str, Any] = {
    "memory_type": "note",
    "importance_score": 0.1,
    "layers": ["project"],
    "category": "other",
    "content_json": {"deploy": {"region": "us"}, "sizes": [3, [2]], "done": 0},
}


def _with(fields: dict[str, Any]) -> dict[str, Any]:
    """Like the others but for these fields; a priority says what an importance would."""
    usual = {name: value for name, value in OTHERS.items() if name != "importance_score" or "priority" not in fields}
    return {**usual, **fields}


@pytest.mark.parametrize("mode", MODES)
def test_every_filter_works_inside_the_search(journal: Journal, mode: Mode) -> None:
    """Forty better matches stand around each memory, and none of them keeps it from being found."""
    for _ in range(8):
        note(journal, **{**OTHERS, "is_archived": False})
    mine = [note(journal, **_with(fields)) for fields, _ in FILTERS]
    by = Attribution(user_id="ana")
    for made, (_, where) in zip(mine, FILTERS, strict=True):
        found = journal.search("the deploy was slow", SHOP, by=by, mode=mode, where=where, limit=100)
        assert made.id in {hit.memory.id for hit in found}, where
        assert all(matches(where.predicate(now()), hit.memory) for hit in found), where
        if not where.include_archived:
            assert len(found) < len(mine), where


def test_priority_and_importance_agree(journal: Journal) -> None:
    made = [note(journal, importance_score=score / 18) for score in range(19)]
    for priority in range(1, 11):
        found = journal.batch_read(SHOP, where=MemoryFilter(min_priority=priority), limit=100).memories
        meant = {memory.id for memory in made if priority_of(memory.importance_score) >= priority}
        assert {memory.id for memory in found} == meant, priority


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"limit": 101}, "must be a whole number from 1 to 100"),
        ({"limit": 0}, "must be a whole number from 1 to 100"),
        ({"mode": "magic"}, "must be 'semantic', 'keyword' or 'hybrid'"),
        ({"min_similarity": 2}, "must be a number from -1 to 1"),
    ],
)
def test_a_wrong_search_is_refused_in_a_sentence(light: Journal, arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        light.search("x", SHOP, **arguments)


@pytest.mark.parametrize(
    "wrong",
    [
        {"types": "note"},
        {"layers": ["attic"]},
        {"trust": "high"},
        {"event_since": datetime(2025, 1, 1)},  # noqa: DTZ001 - that is what is wrong
        {"content": ["x"]},
    ],
)
def test_a_wrong_filter_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        MemoryFilter(**wrong)


@pytest.mark.parametrize("wrong", [{"min_importance": 7}, {"min_priority": 0}, {"content": {"a": {}}}])
def test_a_filter_with_a_wrong_value_is_refused_when_it_is_used(light: Journal, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        light.search("x", SHOP, where=MemoryFilter(**wrong))


# ---------------------------------------------------------------------- meaning and words


def test_each_mode_finds_in_its_own_way(telling: Journal) -> None:
    meant = note(telling, "Customers pay with cards through Stripe")
    named = note(telling, "The invoice template lives in the billing folder")
    question = "Which payment provider handles billing?"
    assert telling.search(question, SHOP, mode="semantic", limit=1).memories == (meant,)
    assert telling.search(question, SHOP, mode="keyword").memories == (named,)
    assert set(telling.search(question, SHOP).memories) == {meant, named}


def test_the_terms_of_a_hit_add_up_to_its_score(telling: Journal) -> None:
    note(telling, "Customers pay with cards through Stripe")
    for mode in MODES:
        found = telling.search("pay with Stripe", SHOP, mode=mode)
        (hit,) = found.hits
        assert hit.score == pytest.approx(sum(hit.explanation.terms.values()))
        assert hit.memory.id in hit.explain()
        assert [each.id for each in found.explain()] == [hit.memory.id]


def test_a_least_similarity_leaves_out_what_is_less_similar(telling: Journal) -> None:
    near = note(telling, "The payment gateway timed out")
    note(telling, "The payment of the rent is due on Friday")
    for mode in ("semantic", "hybrid"):
        hits = telling.search("the payment gateway times out", SHOP, mode=mode, min_similarity=0.7).hits
        assert [hit.memory.id for hit in hits] == [near.id]
        assert hits[0].similarity is not None
        assert hits[0].similarity >= 0.7


def test_the_threshold_that_someone_chose_holds_for_searches_by_meaning(
    telling: Journal, store: StorageBackend
) -> None:
    near = note(telling, "The payment gateway timed out")
    far = note(telling, "The payment of the rent is due on Friday")
    asked, settings = "the payment gateway times out", SystemSettings(store)
    assert set(telling.search(asked, SHOP, mode="semantic").memories) == {near, far}
    settings.set("semantic_search_threshold", 0.7, user_id="ana")
    ana = Attribution(user_id="ana")
    assert telling.search(asked, SHOP, mode="semantic", by=ana).memories == (near,)
    assert len(telling.search(asked, SHOP, mode="semantic", by=ana, min_similarity=0.0)) == 2
    assert len(telling.search(asked, SHOP, mode="semantic")) == 2
    why = telling.search(asked, SHOP, mode="semantic", by=ana).why_not(far.id)
    assert why is not None
    assert "its cosine is below 0.7" in why.reason


def test_the_threshold_holds_for_searches_of_the_past(
    telling: Journal, store: StorageBackend, local: EmbeddingProvider
) -> None:
    near = note(telling, "The payment gateway timed out")
    note(telling, "The payment of the rent is due on Friday")
    asked, past = "the payment gateway times out", History(store, local)

    def found(**options: Any) -> list[str]:
        return [hit.record.id for hit in past.search(Memory, asked, SHOP, mode="semantic", known_at=now(), **options)]

    assert len(found()) == 2
    assert found(min_similarity=0.7) == [near.id]
    SystemSettings(store).set("semantic_search_threshold", 0.7)
    assert found() == [near.id]
    assert len(found(min_similarity=0.0)) == 2


def test_an_instruction_is_found_like_any_other_memory(telling: Journal) -> None:
    made = note(telling, "Always deploy on Tuesdays", memory_type="instruction")
    assert telling.search("when do we deploy", SHOP).memories == (made,)


def test_nothing_of_another_project_is_found(telling: Journal) -> None:
    note(telling, "The payment gateway timed out", project_id="bank")
    for mode in MODES:
        assert not telling.search("payment gateway timeout", SHOP, mode=mode).hits


def test_a_user_carries_what_is_global_into_a_project(telling: Journal) -> None:
    carried = note(telling, "Prefers tabs over spaces", project_id="home", memory_type="user_preference")
    assert carried.layer_global
    for mode in MODES:
        assert telling.search("tabs or spaces", SHOP, by=Attribution(user_id="ana"), mode=mode).memories == (carried,)
        assert not telling.search("tabs or spaces", SHOP, by=Attribution(user_id="ben"), mode=mode).hits
        narrowed = MemoryFilter(project_id="shop")
        assert not telling.search("tabs or spaces", SHOP, by=Attribution(user_id="ana"), mode=mode, where=narrowed).hits


class Broken(MockEmbedder):
    """A provider that is down when it is asked for a question's vector."""

    def encode(self, text: str) -> Any:
        raise EmbeddingError("no connection")


def test_without_an_embedder_words_are_searched_and_it_says_so(store: StorageBackend) -> None:
    broken = Broken()
    engine = RetrievalEngine(store, broken)
    with Journal(store, MemoryWriter(store, broken), engine) as journal:
        made = note(journal)
        for mode in ("semantic", "hybrid"):
            found = journal.search("slow deploy", SHOP, mode=mode)
            assert found.memories == (made,)
            assert "no connection" in found.degraded
    engine.close()


# ---------------------------------------------------------------------- sessions and layers


def test_in_a_session_other_sessions_keep_their_memories(journal: Journal) -> None:
    theirs = note(journal, session_id="s1", layers=["session"])
    risen = note(journal, session_id="s1", layers=["session", "project"])
    own = note(journal, session_id="s2", layers=["session"])
    here = Attribution(session_id="s2")
    for found in (
        journal.search("the deploy was slow", SHOP, by=here, mode="keyword").memories,
        journal.batch_read(SHOP, by=here).memories,
    ):
        assert {memory.id for memory in found} == {risen.id, own.id}
    assert {memory.id for memory in journal.batch_read(SHOP).memories} == {theirs.id, risen.id, own.id}
    for scope, where in ((SHOP, MemoryFilter(session_id="s1")), (Scope(session_id="s1"), MemoryFilter())):
        # A query that names a session is limited to it.
        found = journal.batch_read(scope, by=here, where=where).memories
        assert {memory.id for memory in found} == {theirs.id, risen.id}


def test_the_question_chooses_the_layers(journal: Journal) -> None:
    carried = note(journal, "deploys happen in the morning", layers=["global"])
    note(journal, "deploys happen in the evening", layers=["session"], session_id="s2")
    by = Attribution(user_id="ana", session_id="s2")
    found = journal.search("how do I usually deploy in general", SHOP, by=by, mode="keyword", routed=True)
    assert found.plan is not None
    assert set(found.plan.layers) == {Layer.GLOBAL, Layer.PROJECT}
    assert "'usually' asks for what holds everywhere" in str(found.plan)
    assert found.memories == (carried,)
