"""Layers: which of them a question is answered from, and how memories rise and come back."""

from __future__ import annotations

from typing import Any

import pytest

from alma.errors import NotFoundError, ValidationError
from alma.memory.journal import Journal
from alma.memory.layers import PROMOTIONS, PromotionRules, route_layers
from alma.model.governance import Attribution, AuditEvent
from alma.model.memory import Layer, Memory
from alma.model.query import Compare
from alma.model.scope import Scope
from alma.storage.base import StorageBackend
from alma.testing import builders as make
from tests.support.together import together

SHOP = Scope(project_id="shop")
PLACE = {"user_id": "ana", "project_id": "shop", "session_id": "s1"}


@pytest.mark.parametrize(
    ("question", "place", "layers"),
    [
        ("where were we?", PLACE, {Layer.SESSION, Layer.PROJECT}),
        ("what do I usually do in other projects", PLACE, {Layer.GLOBAL, Layer.PROJECT}),
        ("what was decided last week", PLACE, set(Layer)),
        ("how has the schema changed", PLACE, set(Layer)),
        ("what was decided last week in this session", PLACE, {Layer.TEMPORAL, Layer.SESSION, Layer.PROJECT}),
        ("what was decided last week", {"project_id": "shop"}, {Layer.TEMPORAL, Layer.PROJECT}),
        ("which database is used", PLACE, {Layer.SESSION, Layer.PROJECT, Layer.GLOBAL}),
        ("which database is used", {"project_id": "shop"}, {Layer.PROJECT}),
        ("where were we?", {"project_id": "shop"}, {Layer.PROJECT}),
        ("what do I prefer", {"user_id": "ana"}, {Layer.GLOBAL}),
        ("which database is used", {}, set(Layer)),
        ("", PLACE, {Layer.SESSION, Layer.PROJECT, Layer.GLOBAL}),
    ],
)
def test_words_and_place_choose_the_layers(question: str, place: dict[str, str], layers: set[Layer]) -> None:
    plan = route_layers(question, **place)  # type: ignore[arg-type]
    assert set(plan.layers) == layers
    assert all(plan.reasons.values())


# ---------------------------------------------------------------------- promotion


def session_note(journal: Journal, **fields: Any) -> Memory:
    return journal.create("the cart test needs a clean cookie", **{**PLACE, "layers": ["session"], **fields})


def read_by(journal: Journal, memory: Memory, *sessions: str) -> None:
    for session in sessions:
        journal.get(memory.id, SHOP, by=Attribution(session_id=session))


def test_nothing_rises_without_a_reason(journal: Journal) -> None:
    made = session_note(journal)
    read_by(journal, made, "s1", "s1", "s2", "s2")
    assert journal.promotions(SHOP) == []
    assert journal.promote(SHOP) == []


def test_what_other_sessions_read_becomes_the_projects(journal: Journal, store: StorageBackend) -> None:
    made = session_note(journal)
    read_by(journal, made, "s2", "s3", "s1")
    (planned,) = journal.promote(SHOP, dry_run=True)
    assert (planned.before, planned.after) == ((Layer.SESSION,), (Layer.SESSION, Layer.PROJECT))
    assert planned.reason == "2 other sessions read it"
    assert not store.require(Memory, made.id, SHOP).layer_project
    assert journal.promote(SHOP, by=Attribution(user_id="ana")) == [planned]
    risen = store.require(Memory, made.id, SHOP)
    assert risen.layers == {Layer.SESSION, Layer.PROJECT}
    assert risen.context_json[PROMOTIONS][0]["reason"] == planned.reason
    assert journal.promote(SHOP) == []
    version = store.history(Memory, made.id, SHOP)[-1]
    assert (version.change_reason, version.created_by) == ("promoted to project: 2 other sessions read it", "ana")
    log = store.find(AuditEvent, Scope.everywhere(), Compare("resource_id", "eq", made.id))
    assert [event.action for event in log] == ["create", "update"]


def test_a_demoted_memory_is_exactly_what_it_was(journal: Journal, store: StorageBackend) -> None:
    made = session_note(journal, context_json={"files": ["cart.py"]})
    read_by(journal, made, "s2", "s3")
    journal.flush()
    before = store.require(Memory, made.id, SHOP)
    journal.promote(SHOP)
    assert journal.demote(made.id, SHOP, reason="too early") == before
    assert store.require(Memory, made.id, SHOP) == before
    assert [each.change_reason for each in store.history(Memory, made.id, SHOP)][-1] == "too early"
    assert journal.promote(SHOP) == []
    with pytest.raises(ValidationError, match="was never promoted"):
        journal.demote(made.id, SHOP)
    with pytest.raises(NotFoundError):
        journal.demote(made.id, Scope(project_id="bank"))


@pytest.mark.parametrize("evidence", ["helpful", "references", "importance"])
def test_other_evidence_counts_as_well(journal: Journal, store: StorageBackend, evidence: str) -> None:
    made = session_note(journal, importance_score=0.9 if evidence == "importance" else 0.4)
    if evidence == "helpful":
        journal.mark_helpful(made.id, SHOP, by=Attribution(session_id="s2"))
    if evidence == "references":
        others = [session_note(journal, importance_score=0.1) for _ in range(3)]
        kinds = ("builds_on", "references", "contradicts")
        store.save_many(
            make.a_relationship(other, made, relationship_type=kind) for other, kind in zip(others, kinds, strict=True)
        )
    (found,) = journal.promotions(SHOP)
    assert (found.memory_id, found.to) == (made.id, Layer.PROJECT)
    assert found.reason


def test_what_did_not_help_stays_where_it_is(journal: Journal) -> None:
    made = session_note(journal)
    read_by(journal, made, "s2", "s3")
    journal.mark_helpful(made.id, SHOP, helpful=False)
    assert journal.promotions(SHOP) == []


def test_what_helps_again_and_again_goes_everywhere_and_comes_back_step_by_step(
    journal: Journal, store: StorageBackend
) -> None:
    made = session_note(journal)
    for session in ("s2", "s3", "s4"):
        journal.mark_helpful(made.id, SHOP, by=Attribution(session_id=session))
    assert [each.to for each in journal.promote(SHOP)] == [Layer.PROJECT]
    assert [each.to for each in journal.promote(SHOP)] == [Layer.GLOBAL]
    assert journal.promote(SHOP) == []
    assert store.require(Memory, made.id, SHOP).layers == {Layer.SESSION, Layer.PROJECT, Layer.GLOBAL}
    assert journal.demote(made.id, SHOP).layers == {Layer.SESSION, Layer.PROJECT}
    assert journal.demote(made.id, SHOP).layers == {Layer.SESSION}


def test_a_memory_without_a_project_or_a_user_has_nowhere_to_rise(journal: Journal) -> None:
    lost = journal.create("x", session_id="s9", layers=["session"], importance_score=1.0)
    nobodys = journal.create("x", project_id="shop", layers=["project"], importance_score=1.0)
    journal.mark_helpful(lost.id, Scope.everywhere())
    for session in ("s1", "s2", "s3"):
        journal.mark_helpful(nobodys.id, SHOP, by=Attribution(session_id=session))
    assert journal.promotions(Scope.everywhere()) == []


def test_only_what_is_named_or_visible_rises(journal: Journal) -> None:
    one, two = (session_note(journal, importance_score=0.9) for _ in range(2))
    hidden = session_note(journal, importance_score=0.9, is_private=True, user_id="ben")
    assert {each.memory_id for each in journal.promotions(SHOP)} == {one.id, two.id}
    assert [each.memory_id for each in journal.promote(SHOP, memory_ids=[two.id, hidden.id])] == [two.id]


def test_two_promoters_promote_once(journal: Journal, store: StorageBackend) -> None:
    made = session_note(journal, importance_score=0.9)
    assert not together(lambda: journal.promote(SHOP), lambda: journal.promote(SHOP), lambda: journal.promote(SHOP))
    assert len(store.require(Memory, made.id, SHOP).context_json[PROMOTIONS]) == 1
    assert len(store.history(Memory, made.id, SHOP)) == 2


def test_wrong_rules_are_refused() -> None:
    with pytest.raises(ValidationError, match="must be a number above 0"):
        PromotionRules(project_after_sessions=0)
