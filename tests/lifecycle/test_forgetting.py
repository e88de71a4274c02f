"""Forgetting: by one policy for every kind, shown before it is done, and undone when asked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from alma.errors import ScopeViolationError, ValidationError
from alma.learning.confidence_decay import ConfidenceDecayer
from alma.learning.decay import ExponentialDecay, LinearDecay
from alma.learning.pruning import ForgettingEngine, PrunePolicy, PruneReason
from alma.memory.archive import Archive
from alma.model.governance import ArchiveCause, ArchivedRecord
from alma.model.learning import DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.memory import Memory
from alma.model.record import Record
from alma.model.scope import Scope
from alma.model.workspace import Session
from alma.storage.base import StorageBackend
from alma.storage.sqlite_local import SQLiteStorage
from alma.testing.builders import (
    a_heuristic,
    a_memory,
    a_pattern,
    a_preference,
    an_anti_pattern,
    an_outcome,
    some_knowledge,
)

EVERYWHERE = Scope.everywhere()
SHOP = Scope(project_id="shop")
NOTHING: dict[str, Any] = {"stale_after_days": {}, "min_confidence": {}, "expired": False}


def ago(days: float) -> datetime:
    return datetime.now(UTC) - timedelta(days=days)


def forgotten(store: StorageBackend, scope: Scope = EVERYWHERE, **policy: Any) -> dict[str, PruneReason]:
    """What a policy forgets, by id; the dry run must have said the same and changed nothing."""
    engine = ForgettingEngine(store, PrunePolicy(**{**NOTHING, **policy}))
    before = store.count(ArchivedRecord, EVERYWHERE)
    planned = engine.prune(scope, dry_run=True)
    assert store.count(ArchivedRecord, EVERYWHERE) == before
    done = engine.prune(scope)
    assert (planned.items, planned.by_kind, planned.by_reason) == (done.items, done.by_kind, done.by_reason)
    assert (planned.dry_run, done.dry_run) == (True, False)
    assert done.total == int(done) == len(done.items)
    return {item.id: item.reason for item in done.items}


# ---------------------------------------------------------------------- the rules


def test_old_outcomes_are_forgotten_and_young_ones_stay(store: StorageBackend) -> None:
    store.save_many([an_outcome(id="old", timestamp=ago(91)), an_outcome(id="young", timestamp=ago(89))])
    assert forgotten(store, stale_after_days={Outcome: 90}) == {"old": PruneReason.OLD}
    assert [each.id for each in store.find(Outcome, SHOP)] == ["young"]


@pytest.mark.parametrize(
    ("stale", "fresh"),
    [
        (
            a_heuristic(id="x", last_validated=ago(400), created_at=ago(500)),
            a_heuristic(id="y", last_validated=ago(10), created_at=ago(500)),
        ),
        (
            a_heuristic(id="x", last_validated=None, created_at=ago(500)),
            a_heuristic(id="y", last_validated=None, created_at=ago(10)),
        ),
        (some_knowledge(id="x", last_verified=ago(400)), some_knowledge(id="y", last_verified=ago(10))),
        (
            an_anti_pattern(id="x", last_seen=ago(400), created_at=ago(500)),
            an_anti_pattern(id="y", last_seen=ago(10), created_at=ago(500)),
        ),
        (
            a_memory(id="x", last_accessed_at=ago(400), created_at=ago(500)),
            a_memory(id="y", last_accessed_at=ago(10), created_at=ago(500)),
        ),
        (
            a_pattern(id="x", pattern_name="p", last_used_at=ago(400), created_at=ago(500)),
            a_pattern(id="y", pattern_name="q", last_used_at=ago(10), created_at=ago(500)),
        ),
    ],
    ids=["heuristic", "unvalidated heuristic", "knowledge", "anti-pattern", "memory", "pattern"],
)
def test_what_no_one_has_seen_for_long_is_stale(store: StorageBackend, stale: Record, fresh: Record) -> None:
    store.save_many([stale, fresh])
    assert forgotten(store, stale_after_days=PrunePolicy().stale_after_days) == {"x": PruneReason.STALE}


@pytest.mark.parametrize(
    ("old", "young"),
    [
        (a_heuristic(id="x", last_validated=ago(1), created_at=ago(40)), a_heuristic(id="y", created_at=ago(20))),
        (an_outcome(id="x", timestamp=ago(40)), an_outcome(id="y", timestamp=ago(20))),
        (a_preference(id="x", timestamp=ago(40)), a_preference(id="y", timestamp=ago(20))),
        (some_knowledge(id="x", last_verified=ago(40)), some_knowledge(id="y", last_verified=ago(20))),
        (an_anti_pattern(id="x", last_seen=ago(1), created_at=ago(40)), an_anti_pattern(id="y", created_at=ago(20))),
        (a_memory(id="x", last_accessed_at=ago(1), created_at=ago(40)), a_memory(id="y", created_at=ago(20))),
        (
            a_pattern(id="x", pattern_name="p", last_used_at=ago(1), created_at=ago(40)),
            a_pattern(id="y", pattern_name="q", created_at=ago(20)),
        ),
    ],
    ids=lambda record: f"{record.spec.kind} {record.id}",
)
def test_every_kind_can_have_a_time_to_live(store: StorageBackend, old: Record, young: Record) -> None:
    store.save_many([old, young])
    assert forgotten(store, ttl_days={type(old): 30}) == {"x": PruneReason.EXPIRED}


def test_what_does_not_tell_its_age_is_not_stale(store: StorageBackend) -> None:
    store.save_many([a_heuristic(last_validated=None, created_at=None), an_outcome(timestamp=None)])
    assert forgotten(store, stale_after_days=PrunePolicy().stale_after_days) == {}


def test_preferences_do_not_grow_stale_by_themselves(store: StorageBackend) -> None:
    store.save(a_preference(timestamp=ago(5000)))
    assert ForgettingEngine(store).prune(EVERYWHERE).total == 0
    assert len(forgotten(store, stale_after_days={UserPreference: 365})) == 1


def test_what_is_hardly_trusted_is_forgotten(store: StorageBackend) -> None:
    store.save_many(
        [
            a_heuristic(id="weak", confidence=0.29, occurrence_count=10),
            a_heuristic(id="strong", confidence=0.3, occurrence_count=10),
            some_knowledge(id="doubtful", confidence=0.1, last_verified=ago(3)),
        ]
    )
    assert forgotten(store, min_confidence={"heuristic": 0.3}) == {"weak": PruneReason.LOW_CONFIDENCE}
    assert forgotten(store, min_confidence={DomainKnowledge: 0.2}) == {"doubtful": PruneReason.LOW_CONFIDENCE}


def test_a_rule_that_was_just_made_and_hardly_tried_stays(store: StorageBackend) -> None:
    store.save_many(
        [
            a_heuristic(id="new", confidence=0.0),
            a_heuristic(id="tried", confidence=0.1, occurrence_count=5, success_count=0),
            a_heuristic(id="never tried", confidence=0.0, created_at=ago(2)),
        ]
    )
    assert set(forgotten(store, min_confidence={"heuristic": 0.3})) == {"tried", "never tried"}


def test_what_has_expired_is_forgotten_even_if_it_is_important(store: StorageBackend) -> None:
    store.save_many(
        [
            a_memory(id="over", expires_at=ago(0.001), priority=10),
            a_memory(id="alive", expires_at=ago(-1)),
            a_memory(id="endless"),
        ]
    )
    assert forgotten(store, expired=True) == {"over": PruneReason.EXPIRED}


def test_what_decay_leaves_nothing_of_is_forgotten(store: StorageBackend) -> None:
    store.save_many(
        [
            a_memory(id="faint", importance_score=0.2, last_accessed_at=ago(60), created_at=ago(60)),
            a_memory(id="strong", importance_score=0.8, last_accessed_at=ago(60), created_at=ago(60)),
            a_memory(id="lasting", importance_score=0.2, last_accessed_at=ago(60), created_at=ago(60), decay_rate=0),
            a_memory(id="fleeting", importance_score=0.8, last_accessed_at=ago(60), created_at=ago(60), decay_rate=1),
            a_memory(id="new", importance_score=0.0),
        ]
    )
    gone = forgotten(store, decay=ExponentialDecay(30), min_strength=0.1)
    assert gone == {"faint": PruneReason.DECAYED, "fleeting": PruneReason.DECAYED}


@pytest.mark.parametrize(
    "pinned",
    [
        a_memory(tags=["pinned"]),
        a_memory(context_json={"pinned": True}),
        a_memory(memory_type="instruction"),
        a_memory(priority=10),
        a_heuristic(metadata={"pinned": True}),
        some_knowledge(metadata={"pinned": True}),
    ],
    ids=["tag", "context", "instruction", "priority", "heuristic", "knowledge"],
)
def test_what_is_pinned_or_most_important_stays(store: StorageBackend, pinned: Record) -> None:
    long_ago = {name: ago(999) for name in ("last_accessed_at", "created_at", "last_validated", "last_verified")}
    store.save(pinned.replace(**{k: v for k, v in long_ago.items() if k in pinned.spec.by_name}))
    always = dict.fromkeys((Memory, Heuristic, DomainKnowledge), 1.0)
    assert (
        forgotten(
            store,
            stale_after_days=always,
            min_confidence={Heuristic: 1.0, DomainKnowledge: 1.0},
            min_strength=1.0,
            max_memories=0,
        )
        == {}
    )


def test_when_there_is_no_room_what_is_worth_least_goes_first(store: StorageBackend) -> None:
    memories = [a_memory(id=f"m{i}", importance_score=i / 10) for i in range(9)]
    store.save_many([*memories, a_memory(id="pinned", importance_score=0, tags=["pinned"])])
    gone = forgotten(store, max_memories=6)
    assert gone == dict.fromkeys(("m0", "m1", "m2", "m3"), PruneReason.SPACE)
    assert store.count(Memory, EVERYWHERE) == 6


def test_the_limit_holds_for_all_kinds_together_and_age_counts(store: StorageBackend) -> None:
    old = ago(300)
    store.save_many(
        [
            a_heuristic(id="good", confidence=0.9, occurrence_count=9),
            a_heuristic(id="was good", confidence=0.9, occurrence_count=9, created_at=old, last_validated=old),
            an_outcome(id="yesterday", timestamp=ago(1)),
            a_memory(id="note", importance_score=0.6),
        ]
    )
    assert set(forgotten(store, max_memories=3)) == {"was good"}
    assert set(forgotten(store, max_memories=2)) == {"yesterday"}


def test_a_limit_in_bytes_holds(store: StorageBackend) -> None:
    store.save_many([a_memory(id=f"m{i}", content="x" * 1000, importance_score=i / 10) for i in range(8)])
    assert len(forgotten(store, max_bytes=5000)) == 3
    assert store.count(Memory, EVERYWHERE) == 5


def test_what_another_rule_forgets_makes_room_as_well(store: StorageBackend) -> None:
    store.save_many([an_outcome(id="old", timestamp=ago(91)), an_outcome(id="a"), an_outcome(id="b")])
    assert forgotten(store, stale_after_days={Outcome: 90}, max_memories=2) == {"old": PruneReason.OLD}


# ---------------------------------------------------------------------- doing and undoing


def test_what_is_forgotten_is_archived_with_the_reason_and_comes_back(store: StorageBackend) -> None:
    record = an_outcome(timestamp=ago(100), embedding=[1, 0, 0, 0])
    store.save(record)
    engine = ForgettingEngine(store)
    engine.prune(SHOP)
    (archived,) = Archive(store).find(SHOP)
    assert (archived.cause, archived.reason) == (ArchiveCause.FORGOTTEN, "old: older than 90 days")
    Archive(store).restore(record.id, SHOP)
    assert store.require(Outcome, record.id, SHOP) == record


def test_only_a_purge_past_the_retention_deletes(store: StorageBackend) -> None:
    store.save_many([an_outcome(id="forgotten", timestamp=ago(100)), an_outcome(id="put away", timestamp=ago(1))])
    engine = ForgettingEngine(store)
    engine.prune(SHOP)
    Archive(store).put(Outcome, "put away", SHOP)
    assert engine.purge(timedelta(days=30), SHOP) == 0
    assert engine.purge(timedelta(0), SHOP) == 1
    assert [each.record_id for each in Archive(store).find(SHOP)] == ["put away"]


def test_forgetting_stays_inside_its_scope(store: StorageBackend) -> None:
    old = ago(100)
    store.save_many(
        [
            an_outcome(id="mine", timestamp=old),
            an_outcome(id="victor's", agent="victor", timestamp=old),
            an_outcome(id="elsewhere", project_id="blog", timestamp=old),
            a_memory(id="of the project", expires_at=old),
            a_preference(id="ana's", timestamp=old),
        ]
    )
    helena = Scope(project_id="shop", agent="helena")
    policy = {"stale_after_days": {Outcome: 90, UserPreference: 90}, "expired": True}
    assert set(forgotten(store, helena, **policy)) == {"mine"}
    assert set(forgotten(store, SHOP, **policy)) == {"victor's", "of the project"}
    assert set(forgotten(store, Scope(user_id="ana"), **policy)) == {"ana's"}


def test_forget_does_what_is_documented(store: StorageBackend) -> None:
    store.save_many(
        [
            an_outcome(timestamp=ago(100)),
            an_outcome(timestamp=ago(10)),
            a_heuristic(confidence=0.1, occurrence_count=5),
            a_heuristic(confidence=0.9, occurrence_count=5, created_at=ago(900), last_validated=ago(900)),
            an_anti_pattern(created_at=ago(900), last_seen=ago(900)),
            a_memory(expires_at=ago(1)),
        ]
    )
    engine = ForgettingEngine(store)
    assert engine.forget(Scope(project_id="shop", agent="victor")) == 0
    assert engine.forget(SHOP) == 2
    assert engine.forget(SHOP) == 0
    assert engine.forget(SHOP, older_than_days=5, below_confidence=0.95) == 2


def test_progress_is_told_and_pages_are_small(store: StorageBackend) -> None:
    store.save_many([an_outcome(timestamp=ago(100)) for _ in range(450)])
    steps: list[tuple[int, int]] = []
    summary = ForgettingEngine(store).prune(SHOP, progress=lambda done, total: steps.append((done, total)))
    assert (summary.total, steps) == (450, [(200, 450), (400, 450), (450, 450)])
    assert summary.by_kind == {"outcome": 450}
    assert summary.by_reason == {PruneReason.OLD: 450}
    assert str(summary.items[0]).endswith(": old, older than 90 days")


def test_some_kinds_can_be_chosen(store: StorageBackend) -> None:
    store.save_many([an_outcome(timestamp=ago(999)), some_knowledge(last_verified=ago(999))])
    assert ForgettingEngine(store).prune(SHOP, kinds=[DomainKnowledge]).by_kind == {"domain_knowledge": 1}


def test_what_was_validated_in_the_meantime_is_left_alone(store: StorageBackend) -> None:
    store.save_many([an_outcome(id=str(i), timestamp=ago(100)) for i in range(3)])

    class Meddling(Archive):
        def put(self, *args: Any, **kwargs: Any) -> list[str]:
            store.update(Outcome, "1", {"timestamp": ago(0)}, EVERYWHERE)
            return super().put(*args, **kwargs)

    summary = ForgettingEngine(store, archive=Meddling(store)).prune(SHOP)
    assert sorted(item.id for item in summary.items) == ["0", "2"]
    assert [each.id for each in store.find(Outcome, SHOP)] == ["1"]


# ---------------------------------------------------------------------- fading confidence


def test_confidence_fades_with_time_and_fading_again_changes_nothing(store: StorageBackend) -> None:
    then = ago(30)
    store.save_many(
        [
            a_heuristic(id="old", confidence=0.8, last_validated=then, created_at=then),
            a_heuristic(id="new", confidence=0.8),
            a_heuristic(id="low", confidence=0.05, last_validated=then, created_at=then),
        ]
    )
    decayer = ConfidenceDecayer(store, LinearDecay(60), floor=0.1)
    planned = decayer.apply(SHOP, dry_run=True)
    assert store.require(Heuristic, "old", SHOP).confidence == 0.8
    done = decayer.apply(SHOP)
    assert [(each.id, each.before) for each in done.items] == [("old", 0.8)]
    assert (planned.total, done.total) == (1, 1)
    assert store.require(Heuristic, "old", SHOP).confidence == pytest.approx(0.4, abs=0.01)
    assert decayer.apply(SHOP).total == 0
    assert store.require(Heuristic, "low", SHOP).confidence == 0.05


def test_a_lesson_that_is_validated_again_is_trusted_as_before(store: StorageBackend) -> None:
    store.save(a_heuristic(id="h", confidence=0.8, last_validated=ago(300), created_at=ago(300)))
    decayer = ConfidenceDecayer(store, LinearDecay(60))
    decayer.apply(SHOP)
    assert store.require(Heuristic, "h", SHOP).confidence == pytest.approx(0.1)
    store.update(Heuristic, "h", {"last_validated": ago(0)}, SHOP)
    decayer.apply(SHOP)
    assert store.require(Heuristic, "h", SHOP).confidence == pytest.approx(0.8, abs=0.01)


def test_a_confidence_that_someone_set_is_what_fades_next(store: StorageBackend) -> None:
    store.save(a_heuristic(id="h", confidence=0.8, last_validated=ago(30), created_at=ago(30)))
    decayer = ConfidenceDecayer(store, LinearDecay(60))
    decayer.apply(SHOP)
    store.update_heuristic_confidence("h", 0.6)
    decayer.apply(SHOP)
    assert store.require(Heuristic, "h", SHOP).confidence == pytest.approx(0.3, abs=0.01)


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"stale_after_days": {"nonsense": 3}}, "must be one of"),
        ({"stale_after_days": {"outcome": -1}}, "at least 0"),
        ({"stale_after_days": {"outcome": "old"}}, "must be a number"),
        ({"stale_after_days": 90}, "for each kind"),
        ({"stale_after_days": {str: 3}}, "record class"),
        ({"min_confidence": {"heuristic": 1.5}}, "from 0 to 1"),
        ({"min_confidence": {"heuristic": float("nan")}}, "from 0 to 1"),
        ({"min_strength": 2}, "from 0 to 1"),
        ({"max_memories": -1}, "at least 0"),
        ({"max_bytes": 1.5}, "whole number"),
        ({"decay": 0.5}, "must be a Decay"),
        ({"grace_days": None}, "must be a number"),
    ],
)
def test_a_policy_that_makes_no_sense_is_an_error_that_names_it(values: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        PrunePolicy(**values)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda engine: engine.prune(None), ScopeViolationError),
        (lambda engine: engine.prune(SHOP, policy="strict"), ValidationError),
        (lambda engine: engine.prune(SHOP, kinds=[Session]), ValidationError),
        (lambda engine: engine.prune(SHOP, kinds=Session), ValidationError),
        (lambda engine: engine.prune(SHOP, kinds=5), ValidationError),
        (lambda engine: engine.forget(SHOP, older_than_days=-1), ValidationError),
        (lambda engine: engine.forget(SHOP, below_confidence=7), ValidationError),
        (lambda engine: engine.purge(timedelta(days=-1), SHOP), ValidationError),
    ],
)
def test_bad_calls_are_errors(tmp_path: Path, call: Any, error: type[Exception]) -> None:
    with SQLiteStorage(tmp_path / "alma.db", embedding_dim=4) as store, pytest.raises(error):
        call(ForgettingEngine(store))


def test_an_age_from_before_all_time_forgets_nothing(store: StorageBackend) -> None:
    store.save(an_outcome(timestamp=ago(5000)))
    assert forgotten(store, stale_after_days={Outcome: 10**7}) == {}
