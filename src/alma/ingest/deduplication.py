"""Deduplicate records: find the stored one that says the same, and count the repetition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from alma import clock
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.memory import Memory, ProjectPattern
from alma.model.query import And, Compare, Missing, Predicate
from alma.model.record import Record
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.storage.base import Transaction
from alma.storage.tombstones import CONVERSATIONS, with_conversations
from alma.text.canonical import differ_by_typo, fingerprint, ordered_words
from alma.text.prose import signs_and_tense

COUNT = "occurrence_count"
"""The counter in the metadata of kinds without a field for it."""

EVENTS: tuple[type[Record], ...] = (Outcome,)
"""Kinds that record events, which are never duplicates: the same event can happen twice."""

_OWNERS = ("user_id", "project_id", "session_id", "agent")
_CANDIDATES = 8
_MIN_SIMILARITY = 0.9

# Memories that differ in one of these fields are not duplicates.
_TELLING: dict[type[Record], tuple[str, ...]] = {
    Memory: ("memory_type", "category", "content_json", "event_time", "is_private", "is_active", "is_archived"),
    ProjectPattern: ("pattern_type",),
}


# The category is left out, as it is assigned by rules that read the wording.
_APART: dict[type[Record], tuple[str, ...]] = {
    Memory: (*(name for name in _TELLING[Memory] if name != "category"), "valid_from", "valid_until")
}


def canonical_text(record: Record) -> str:
    """One text for records that say the same: the canonical words of each text field."""
    return "\x1f".join(" ".join(ordered_words(getattr(record, name) or "")) for name in record.spec.text)


def duplicate_key(record: Record) -> str:
    """A key that is equal for duplicates, to lock while they are stored."""
    owners = [getattr(record, name, None) for name in (*_OWNERS, "source_agent")]
    return fingerprint(record.spec.kind, owners, canonical_text(record))


def known_duplicate(tx: Transaction, record: Record) -> Record | None:
    """The stored record of the same kind and scope with the same canonical text."""
    if isinstance(record, EVENTS) or not record.text().strip():
        return None
    wanted = canonical_text(record)
    hits = tx.search_text(type(record), record.text(), _scope(record), _same_owners(record), _CANDIDATES)
    for hit in hits:
        if hit.record.key != record.key and _is_same(hit.record, record, wanted):
            return hit.record
    return None


def is_alike(known: Record, record: Record) -> bool:
    """Whether two facts differ in wording only, so that one can be merged into the other."""
    names = _APART.get(type(record), ())
    if any(getattr(known, name) != getattr(record, name) for name in names):
        return False
    return signs_and_tense(known.text()) == signs_and_tense(record.text())


def merge(tx: Transaction, known: Record, heard: Record, *, counted: bool) -> None:
    """Count a repetition for the stored record; an echo is merged without being counted."""
    if not counted:
        return
    (held,) = tx.lock(type(known), [known.key], Scope.everywhere()) or (known,)
    changes = _MERGED.get(type(held), _counted_in("metadata"))(held, heard)
    tx.update(type(held), held.key, changes, Scope.everywhere())


def uncount(tx: Transaction, known: Record) -> None:
    """Take back a counted repetition that turned out to be another fact."""
    name = "context_json" if isinstance(known, Memory) else "metadata"
    noted = dict(getattr(known, name))
    if _number(noted.get(COUNT)) > 1:
        tx.update(type(known), known.key, {name: {**noted, COUNT: noted[COUNT] - 1}}, Scope.everywhere())


def _is_same(known: Record, record: Record, wanted: str) -> bool:
    telling = _TELLING.get(type(record), ())
    if any(getattr(known, name) != getattr(record, name) for name in telling):
        return False
    theirs = canonical_text(known)
    return theirs == wanted or (differ_by_typo(theirs, wanted) and _vectors_agree(known, record))


def _vectors_agree(one: Record, other: Record) -> bool:
    """Whether the vectors agree; a typo is only accepted when both have one."""
    name = one.spec.vector_field or ""
    ours, theirs = getattr(one, name, None), getattr(other, name, None)
    return ours is not None and theirs is not None and _cosine(ours, theirs) >= _MIN_SIMILARITY


def _cosine(one: Vector, other: Vector) -> float:
    dot = sum(a * b for a, b in zip(one, other, strict=False))
    lengths = sum(a * a for a in one) * sum(b * b for b in other)
    return float(dot / lengths**0.5) if lengths else 0.0


def _scope(record: Record) -> Scope:
    owners = {name: value for name in _OWNERS if (value := getattr(record, name, None)) is not None}
    return Scope(**owners) if owners else Scope.everywhere()


def _same_owners(record: Record) -> Predicate:
    parts: list[Predicate] = [
        Missing(name) for name in _OWNERS if name in record.spec.by_name and getattr(record, name) is None
    ]
    if isinstance(record, Memory):
        agent = record.source_agent
        parts.append(Compare("memory_type", "eq", record.memory_type))
        parts.append(Missing("source_agent") if agent is None else Compare("source_agent", "eq", agent))
    return And(*parts)


# ---------------------------------------------------------------------- how each kind counts

Changes = dict[str, Any]


def _counted_in(name: str) -> Callable[[Any, Any], Changes]:
    def count(known: Any, heard: Any) -> Changes:
        noted = dict(getattr(known, name))
        noted[COUNT] = _number(noted.get(COUNT)) + _number(getattr(heard, name).get(COUNT))
        if marks := getattr(heard, name).get(CONVERSATIONS):
            noted = with_conversations(noted, marks)
        return {name: noted}

    return count


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 1


def _heuristic(known: Any, heard: Any) -> Changes:
    """Counts add up; stating a rule again confirms it but is not evidence."""
    if not heard.occurrence_count and getattr(known, "weight_for", None) is not None:
        return _counted_in("metadata")(known, heard)
    seen, worked = (heard.occurrence_count, heard.success_count) if heard.occurrence_count else (1, 1)
    counts = {"occurrence_count": known.occurrence_count + seen, "success_count": known.success_count + worked}
    return {**counts, **_weights(known, heard)}


def _weights(known: Any, heard: Any) -> Changes:
    names = ("weight_for", "weight_against")
    given = {name: weight for name in names if (weight := getattr(heard, name, None)) is not None}
    return {name: (getattr(known, name) or 0.0) + weight for name, weight in given.items()}


def _anti_pattern(known: Any, heard: Any) -> Changes:
    return {"occurrence_count": known.occurrence_count + max(1, heard.occurrence_count), "last_seen": clock.now()}


def _pattern(known: Any, heard: Any) -> Changes:
    moment = clock.now()
    count = known.usage_count + max(1, heard.usage_count)
    return {"usage_count": count, "updated_at": moment, "last_used_at": moment}


def _knowledge(known: Any, heard: Any) -> Changes:
    surer = max(known.confidence, heard.confidence)
    return {**_counted_in("metadata")(known, heard), "confidence": surer, "last_verified": clock.now()}


def _preference(known: Any, heard: Any) -> Changes:
    surer = max(known.confidence, heard.confidence)
    return {**_counted_in("metadata")(known, heard), "confidence": surer, "timestamp": clock.now()}


def _memory(known: Any, heard: Any) -> Changes:
    """The later expiry, the higher importance and the tags of both."""
    ends = (known.expires_at, heard.expires_at)
    return {
        **_counted_in("context_json")(known, heard),
        "tags": sorted({*known.tags, *heard.tags}),
        "importance_score": max(known.importance_score, heard.importance_score),
        "expires_at": None if None in ends else max(ends),
        "updated_at": clock.now(),
    }


_MERGED: dict[type[Record], Callable[[Any, Any], Changes]] = {
    Heuristic: _heuristic,
    AntiPattern: _anti_pattern,
    ProjectPattern: _pattern,
    DomainKnowledge: _knowledge,
    UserPreference: _preference,
    Memory: _memory,
}
