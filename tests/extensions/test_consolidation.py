"""Memories that say the same become one, with all that was known, and can be taken apart again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alma.bootstrap import open_storage
from alma.consolidation import ConsolidationEngine, ConsolidationResult
from alma.consolidation.merging import kind_of, merged_values, unmerged_values
from alma.embeddings.base import EmbeddingProvider
from alma.errors import NotFoundError, ValidationError
from alma.events import EventEmitter, MemoryEvent
from alma.learning.heuristics import HeuristicExtractor
from alma.memory.archive import Archive
from alma.memory.history import History
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.memory import ChangeType
from alma.model.scope import Scope
from alma.retrieval.writing import MemoryWriter
from alma.storage.base import StorageBackend
from alma.testing import builders as make
from tests.extensions.conftest import on_each_database
from tests.support.together import together

SHOP = Scope(project_id="shop")
EARLY, LATE = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 5, 1, tzinfo=UTC)
Remember = Callable[..., None]


@pytest.fixture
def remember(store: StorageBackend, embedder: EmbeddingProvider) -> Remember:
    writer = MemoryWriter(store, embedder)
    return lambda *records: (writer.save_many(records), None)[1]


@pytest.fixture
def emitter() -> Iterator[EventEmitter]:
    with EventEmitter() as made:
        yield made


@pytest.fixture
def engine(store: StorageBackend, emitter: EventEmitter) -> ConsolidationEngine:
    return ConsolidationEngine(store, emitter=emitter)


def a_rule(record_id: str, strategy: str = "validate it field by field", **values: Any) -> Heuristic:
    return make.a_heuristic(id=record_id, condition="testing a long form", strategy=strategy, **values)


def groups(result: ConsolidationResult) -> list[tuple[str, tuple[str, ...]]]:
    return [(group.kept_id, tuple(sorted(group.merged_ids))) for group in result.groups]


# ---------------------------------------------------------------------- merging


@on_each_database
def test_counts_and_evidence_of_equal_rules_add_up(
    store: StorageBackend, engine: ConsolidationEngine, remember: Remember
) -> None:
    remember(
        a_rule(
            "a",
            occurrence_count=5,
            success_count=4,
            weight_for=4.0,
            weight_against=1.0,
            confidence=5 / 7,
            outcomes_for=["o1", "o2"],
            outcomes_against=["o3"],
            last_validated=LATE,
            created_at=LATE,
        ),
        a_rule(
            "b",
            "Validate it  field by field.",
            occurrence_count=3,
            success_count=3,
            weight_for=3.0,
            weight_against=0.0,
            confidence=0.8,
            outcomes_for=["o4", "o2"],
            last_validated=LATE,
            created_at=EARLY,
        ),
        a_rule("c", "fill in everything at once"),
    )
    result = engine.consolidate("helena", "shop", "heuristic")
    assert groups(result) == [("a", ("b",))]
    assert (result.merged_count, result.groups_found, result.memories_processed) == (1, 1, 3)
    kept = store.require(Heuristic, "a", SHOP)
    # o2 speaks for both and counts once.
    assert (kept.occurrence_count, kept.success_count) == (7, 6)
    assert set(kept.outcomes_for) == {"o1", "o2", "o4"}
    assert kept.outcomes_against == ("o3",)
    assert (kept.weight_for, kept.weight_against) == (7.0, 1.0)
    assert kept.confidence == pytest.approx(0.8)
    assert kept.created_at == EARLY
    assert {rule.id for rule in store.find(Heuristic, SHOP)} == {"a", "c"}


@on_each_database
def test_a_merged_memory_is_in_the_archive_and_not_found_any_more(
    store: StorageBackend, engine: ConsolidationEngine, remember: Remember, embedder: EmbeddingProvider
) -> None:
    remember(a_rule("a", occurrence_count=2), a_rule("b"))
    engine.consolidate(project_id="shop")
    (archived,) = Archive(store).find(SHOP, Heuristic, cause="merged")
    assert (archived.record_id, archived.reason) == ("b", "merged into a")
    found = store.search_vector(Heuristic, embedder.encode("testing a long form"), SHOP)
    assert [hit.record.id for hit in found] == ["a"]


def test_a_dry_run_shows_groups_and_why_and_changes_nothing(
    store: StorageBackend, engine: ConsolidationEngine, remember: Remember
) -> None:
    remember(a_rule("a", occurrence_count=2), a_rule("b"), a_rule("c", "Validate it field by field!"))
    before = store.find(Heuristic, SHOP)
    result = engine.consolidate(project_id="shop", dry_run=True)
    assert groups(result) == [("a", ("b", "c"))]
    assert "the same words" in str(result.groups[0])
    assert str(result) == "2 of 3 memories would be merged into 1 other"
    assert store.find(Heuristic, SHOP) == before
    assert groups(engine.consolidate(project_id="shop")) == groups(result)


def test_opposites_numbers_and_names_stay_apart(
    store: StorageBackend, engine: ConsolidationEngine, remember: Remember
) -> None:
    remember(
        a_rule("1", "always retry the request"),
        a_rule("2", "never retry the request"),
        a_rule("3", "retry the request 3 times"),
        a_rule("4", "retry the request 5 times"),
        make.some_knowledge(id="5", fact="Alice owns the checkout service"),
        make.some_knowledge(id="6", fact="Bob owns the checkout service"),
    )
    assert engine.consolidate(project_id="shop", similarity_threshold=0.5).groups == ()
    assert store.count(Heuristic, SHOP) == 4


def test_nothing_is_merged_across_agents_projects_domains_or_users(
    store: StorageBackend, engine: ConsolidationEngine, remember: Remember
) -> None:
    remember(
        a_rule("1"),
        a_rule("2", agent="victor"),
        a_rule("3", project_id="bank"),
        make.some_knowledge(id="4", domain="auth"),
        make.some_knowledge(id="5", domain="billing"),
        make.a_preference(id="6", user_id="ana"),
        make.a_preference(id="7", user_id="ben"),
    )
    assert engine.consolidate(project_id="shop", user_id="ana").groups == ()


@on_each_database
def test_facts_preferences_and_anti_patterns_merge_too(
    store: StorageBackend, engine: ConsolidationEngine, remember: Remember
) -> None:
    remember(
        make.some_knowledge(id="f1", fact="Tokens expire after a day", confidence=0.6, source=None),
        make.some_knowledge(id="f2", fact="tokens expire after a day", confidence=0.9, source="docs"),
        make.a_preference(id="p1", preference="wants short answers", confidence=0.5),
        make.a_preference(id="p2", preference="Wants short answers!", confidence=0.7),
        make.an_anti_pattern(id="a1", pattern="sleeping instead of waiting", occurrence_count=3, why_bad="flaky"),
        make.an_anti_pattern(
            id="a2", pattern="Sleeping instead of waiting", occurrence_count=2, better_alternative="wait for it"
        ),
    )
    result = engine.consolidate(project_id="shop", user_id="ana")
    assert sorted(groups(result)) == [("a1", ("a2",)), ("f2", ("f1",)), ("p2", ("p1",))]
    warning = store.require(AntiPattern, "a1", SHOP)
    assert (warning.occurrence_count, warning.why_bad, warning.better_alternative) == (5, "flaky", "wait for it")
    assert store.require(DomainKnowledge, "f2", SHOP).source == "docs"
    assert store.count(UserPreference, Scope(user_id="ana")) == 1


def test_memories_without_vectors_merge_by_their_words(store: StorageBackend, engine: ConsolidationEngine) -> None:
    store.save_many([a_rule("a", occurrence_count=1), a_rule("b", "Validate it field by field")])
    assert groups(engine.consolidate(project_id="shop")) == [("a", ("b",))]


def test_a_hundred_copies_become_one(store: StorageBackend, engine: ConsolidationEngine, remember: Remember) -> None:
    remember(*(a_rule(f"h{number:03}", occurrence_count=1, success_count=1) for number in range(100)))
    assert engine.consolidate(project_id="shop").merged_count == 99
    (kept,) = store.find(Heuristic, SHOP)
    assert (kept.occurrence_count, kept.success_count) == (100, 100)


@on_each_database
def test_two_who_consolidate_at_once_lose_and_double_nothing(
    store: StorageBackend, place: str, remember: Remember
) -> None:
    remember(*(a_rule(f"h{number:02}", occurrence_count=1, success_count=1) for number in range(40)))
    with open_storage(place) as another:
        engines = [ConsolidationEngine(each) for each in (store, another)]
        assert together(*(partial(engine.consolidate, project_id="shop") for engine in engines)) == []
    left = store.find(Heuristic, SHOP)
    assert sum(rule.occurrence_count for rule in left) == 40
    ConsolidationEngine(store).consolidate(project_id="shop")
    (kept,) = store.find(Heuristic, SHOP)
    assert (kept.occurrence_count, Archive(store).count(SHOP, Heuristic, "merged")) == (40, 39)


def test_consolidating_again_finds_nothing(engine: ConsolidationEngine, remember: Remember) -> None:
    remember(a_rule("a"), a_rule("b"), a_rule("c"))
    engine.consolidate(project_id="shop")
    assert engine.consolidate(project_id="shop").groups == ()


def test_outcomes_of_a_merged_rule_speak_for_the_one_that_stays(
    store: StorageBackend, engine: ConsolidationEngine, remember: Remember
) -> None:
    remember(a_rule("a", occurrence_count=2), a_rule("b"), make.an_outcome(id="o1", lesson_id="b"))
    engine.consolidate(project_id="shop")
    assert store.require(Outcome, "o1", SHOP).lesson_id == "a"


def test_a_merge_is_told(engine: ConsolidationEngine, emitter: EventEmitter, remember: Remember) -> None:
    told: list[MemoryEvent] = []
    emitter.subscribe("consolidated", told.append)
    remember(a_rule("a", occurrence_count=2), a_rule("b"))
    engine.consolidate(project_id="shop", dry_run=True)
    assert told == []
    engine.consolidate(project_id="shop")
    assert [(event.memory_id, event.payload["merged_ids"], event.agent) for event in told] == [("a", ["b"], "helena")]


# ---------------------------------------------------------------------- taking apart


@on_each_database
def test_a_merge_can_be_undone_as_if_it_had_not_been(
    store: StorageBackend, engine: ConsolidationEngine, remember: Remember
) -> None:
    evidence: dict[str, Any] = {"weight_for": 4.0, "weight_against": 1.0, "confidence": 5 / 7, "last_validated": LATE}
    remember(
        a_rule("a", occurrence_count=5, success_count=4, outcomes_for=["o1"], created_at=LATE, **evidence),
        a_rule("b", occurrence_count=3, success_count=3, outcomes_for=["o2"], created_at=EARLY),
        make.an_outcome(id="o1", lesson_id="a"),
        make.an_outcome(id="o2", lesson_id="b"),
    )
    before = store.find(Heuristic, SHOP), store.find(Outcome, SHOP)
    engine.consolidate(project_id="shop")
    assert engine.undo("a", "heuristic", "shop") == ["b"]
    assert (store.find(Heuristic, SHOP), store.find(Outcome, SHOP)) == before


def test_the_history_tells_why_memories_were_merged_and_taken_apart(
    store: StorageBackend, engine: ConsolidationEngine, remember: Remember
) -> None:
    remember(
        a_rule("a", occurrence_count=5, success_count=4, created_at=LATE),
        a_rule("b", occurrence_count=3, success_count=3, created_at=EARLY),
    )
    engine.consolidate(project_id="shop")
    engine.undo("a", "heuristic", "shop")
    history = History(store)
    assert [(v.change, v.reason) for v in history.versions(Heuristic, "a", SHOP)] == [
        (ChangeType.CREATED, None),
        (ChangeType.MERGED, "merged what says the same into a"),
        (ChangeType.UPDATED, "the merge into a was undone"),
    ]
    told = [v.change for v in history.versions(Heuristic, "b", SHOP)]
    assert told == [ChangeType.CREATED, ChangeType.DELETED, ChangeType.RESTORED]


def test_what_was_learned_after_a_merge_stays_when_it_is_undone(
    store: StorageBackend, engine: ConsolidationEngine, remember: Remember
) -> None:
    remember(a_rule("a", occurrence_count=5, success_count=4), a_rule("b", occurrence_count=3, success_count=3))
    engine.consolidate(project_id="shop")
    store.increment_heuristic_occurrence("a", success=True)
    engine.undo("a", project_id="shop")
    kept = store.require(Heuristic, "a", SHOP)
    assert (kept.occurrence_count, kept.success_count) == (6, 5)


def test_every_kind_comes_back_as_it_was(
    store: StorageBackend, engine: ConsolidationEngine, remember: Remember
) -> None:
    remember(
        make.some_knowledge(id="f1", confidence=0.6, last_verified=EARLY),
        make.some_knowledge(id="f2", confidence=0.9, last_verified=None),
    )
    before = store.find(DomainKnowledge, SHOP)
    engine.consolidate(project_id="shop")
    assert engine.undo("f2", "domain_knowledge", "shop") == ["f1"]
    assert store.find(DomainKnowledge, SHOP) == before


def test_the_kind_of_what_was_merged_need_not_be_named(
    store: StorageBackend, engine: ConsolidationEngine, remember: Remember
) -> None:
    remember(make.some_knowledge(id="f1"), make.some_knowledge(id="f2"))
    (group,) = engine.consolidate(project_id="shop").groups
    assert engine.undo(group.kept_id, project_id="shop") == list(group.merged)
    assert store.count(DomainKnowledge, SHOP) == 2


def test_what_a_consolidation_did_is_undone_as_a_whole(
    store: StorageBackend, engine: ConsolidationEngine, remember: Remember
) -> None:
    remember(make.some_knowledge(id="f1"), make.some_knowledge(id="f2"), a_rule("a"), a_rule("b"))
    shown = engine.consolidate(project_id="shop", dry_run=True)
    result = engine.consolidate(project_id="shop")
    assert sorted(engine.undo(result, project_id="shop")) == sorted(m for group in result.groups for m in group.merged)
    assert (store.count(DomainKnowledge, SHOP), store.count(Heuristic, SHOP)) == (2, 2)
    with pytest.raises(ValidationError, match="was a dry run"):
        engine.undo(shown, project_id="shop")


def test_undoing_what_was_not_merged_is_refused(engine: ConsolidationEngine, remember: Remember) -> None:
    remember(a_rule("a"))
    with pytest.raises(ValidationError, match="has nothing merged into it"):
        engine.undo("a", project_id="shop")
    with pytest.raises(NotFoundError):
        engine.undo("nobody", project_id="shop")


counts = st.integers(0, 1_000)
shares = st.floats(0, 1)
weights = st.none() | st.floats(0, 1_000)
moments = st.none() | st.sampled_from([EARLY, LATE, datetime(2024, 2, 29, 12, 30, 15, 123456, tzinfo=UTC)])
evidence = st.lists(st.sampled_from("abcdefgh"), unique=True)


@st.composite
def rules(draw: st.DrawFn) -> Heuristic:
    occurred = draw(counts)
    return make.a_heuristic(
        confidence=draw(shares),
        occurrence_count=occurred,
        success_count=draw(st.integers(0, occurred)),
        weight_for=(weight := draw(weights)),
        weight_against=None if weight is None else draw(st.floats(0, 1_000)),
        outcomes_for=draw(evidence),
        outcomes_against=draw(evidence),
        last_validated=draw(moments),
        created_at=draw(moments),
        metadata=draw(st.dictionaries(st.sampled_from("xyz"), counts)),
    )


@given(rules(), st.lists(rules(), min_size=1, max_size=3))
def test_whatever_is_merged_can_be_taken_apart(kept: Heuristic, others: list[Heuristic]) -> None:
    merged = kept.replace(**merged_values(kind_of("heuristic"), kept, others, HeuristicExtractor()))
    assert set(merged.outcomes_for) == {each for rule in (kept, *others) for each in rule.outcomes_for}
    ids, changes = unmerged_values(merged)
    again = merged.replace(**changes)
    assert ids == [other.id for other in others]
    for name in ("weight_for", "weight_against"):
        assert getattr(again, name) == pytest.approx(getattr(kept, name), abs=1e-6)
    same = {"weight_for": None, "weight_against": None, "confidence": 0.0}
    assert again.replace(**same) == kept.replace(**same)


# ---------------------------------------------------------------------- questions that make no sense


def test_a_wrong_call_is_one_sentence(engine: ConsolidationEngine) -> None:
    with pytest.raises(ValidationError, match="must say which project is meant"):
        engine.consolidate("helena")
    with pytest.raises(ValidationError, match="must say whose preferences are meant"):
        engine.consolidate(project_id="shop", memory_type="preferences")
    with pytest.raises(ValidationError, match="must be one of heuristic, anti_pattern"):
        engine.consolidate(project_id="shop", memory_type="outcome")
    with pytest.raises(ValidationError, match="must be one of heuristic, anti_pattern"):
        engine.consolidate(project_id="shop", memory_type=int)  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="similarity_threshold must be a number above 0"):
        engine.consolidate(project_id="shop", similarity_threshold=7)
