"""Operations on facts: what replaces, denies or repeats what, and saying that this is not so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from alma.clock import now
from alma.errors import NotFoundError, PermissionDeniedError
from alma.memory.fact_relations import FactRelation
from alma.memory.filters import visible
from alma.model.governance import ArchiveCause
from alma.model.learning import DomainKnowledge, UserPreference
from alma.model.memory import Memory
from alma.model.query import EVERYTHING, And, In, Predicate
from alma.model.record import Record
from alma.model.scope import Scope, alive
from alma.operations.access import Caller, Right
from alma.operations.base import InProject, Name, Operation, Output, operation
from alma.retrieval.supersession import stated

_ID = "01a1e0a2b81e7fc49d0ec9b96de703e8"
_OTHER = "01a1e0a2b81f7fc49d0ec9b96de703e9"
FactKind = Literal["memory", "domain_knowledge", "user_preference"]
_KINDS: dict[str, type[Record]] = {each.spec.kind: each for each in (Memory, DomainKnowledge, UserPreference)}


class OfFact(InProject):
    memory_id: Name = Field(description="The id of a general memory, a fact or a preference.")
    user_id: Name | None = Field(None, description="Who asks, or whose preference it is.")


class RelationTold(Output):
    relation: str = Field(description="supersedes, superseded_by, contradicts, builds_on, distinct_from …")
    other_id: str
    other: str = Field(description="What the other one states.")
    probability: float
    detected: bool = Field(description="Whether the judge found it; otherwise somebody said so.")
    evidence: Sequence[str] = Field((), description="Which judge found it, as what and how surely.")
    date: datetime | None = Field(None, description="Of when this one is.")
    other_date: datetime | None = None
    related_at: datetime


class Merged(Output):
    id: str = Field(description="Give it as other_id to distinguish_memories if it does not say the same.")
    text: str
    reason: str


class RelationsTold(Output):
    kind: str
    text: str
    relations: Sequence[RelationTold]
    merged: Sequence[Merged] = Field((), description="Other wordings that were counted as saying the same.")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where facts of a kind are looked for."""

    cls: type[Record]
    scope: Scope
    where: Predicate = EVERYTHING


@operation("memories", Right.READ, example={"memory_id": _ID})
def memory_relations(caller: Caller, asked: OfFact) -> RelationsTold:
    """Say what replaces, denies or repeats a fact, a preference or a general memory: how surely, by which judge, when.

    What is not so is taken back by distinguish_memories.
    """
    place, fact = _fact(caller, asked, asked.memory_id)
    found = caller.store.facts.of(place.cls, asked.memory_id, place.scope, place.where)
    archived = caller.store.archive.find(place.scope, place.cls, ArchiveCause.MERGED, limit=None)
    merged = [each for each in archived if asked.memory_id in (each.reason or "")]
    return RelationsTold(
        kind=place.cls.spec.kind,
        text=stated(fact),
        relations=[_told(each, asked.memory_id) for each in found],
        merged=[
            Merged(id=each.record_id, text=stated(caller.store.archive.record(each)), reason=each.reason or "")
            for each in merged
        ],
    )


class Distinguish(OfFact):
    other_id: Name = Field(description="The other fact; also one that was merged into the first, by the id it had.")


class Distinguished(Output):
    removed: Sequence[str] = Field(description="The relations that were taken back.")
    restored: Sequence[str] = Field((), description="What had been merged and is a memory of its own again.")


@operation("memories", Right.WRITE, idempotent=True, example={"memory_id": _ID, "other_id": _OTHER})
def distinguish_memories(caller: Caller, asked: Distinguish) -> Distinguished:
    """Say that two facts are not the same, and that neither replaces or denies the other.

    It is remembered: the judge does not relate them again. To say that one does replace the other, use relate_memories,
    or `supersedes` where it is added.
    """
    place, _ = _fact(caller, asked, asked.memory_id)
    by = caller.by(user_id=asked.user_id)
    done = caller.store.distinguish(place.cls, asked.memory_id, asked.other_id, place.scope, by=by, where=place.where)
    return Distinguished(removed=done.removed, restored=done.restored)


class CompareFacts(InProject):
    kind: FactKind = "domain_knowledge"
    user_id: Name | None = Field(None, description="Whose preferences; needed for them.")
    limit: int = Field(1_000, ge=1, le=20_000, description="At most so many, the newest first.")


class FactsCompared(Output):
    compared: int
    related: int = Field(description="How many relations were found, known ones included.")


@operation("memories", Right.WRITE, takes_long=True, idempotent=True, example={"kind": "domain_knowledge"})
def compare_memories(caller: Caller, asked: CompareFacts) -> FactsCompared:
    """Compare facts that were stored in bulk, as by an import, with the nearest others, and relate what replaces what.

    What is added one by one is compared at once.
    """
    by = caller.by(user_id=asked.user_id)
    place = next((each for each in _places(caller, asked) if each.cls is _KINDS[asked.kind]), None)
    if place is None:
        raise PermissionDeniedError("preferences belong to one user: name it with user_id, or use a key for that user")
    done = caller.store.ingest.facts.compare_stored(place.cls, place.scope, asked.limit, by)
    return FactsCompared(compared=done.facts, related=len(done.found))


def _fact(caller: Caller, asked: OfFact, fact_id: str) -> tuple[_Place, Record]:
    """The fact with this id among those that the caller may see."""
    for place in _places(caller, asked):
        named = And(place.where, In("id", [fact_id]))
        for fact in caller.store.storage.find(place.cls, place.scope, named, limit=1):
            return place, fact
    raise NotFoundError("memory", fact_id)


def _places(caller: Caller, asked: OfFact | CompareFacts) -> Iterator[_Place]:
    by, scope = caller.by(user_id=asked.user_id), caller.scope(asked.project_id)
    yield _Place(Memory, scope, And(alive(now()), visible(scope, by)))
    if caller.grant.user_id is None or caller.grant.project_id is not None:
        yield _Place(DomainKnowledge, caller.project_scope(asked.project_id))
    if asked.user_id is not None or not caller.grant.is_limited:
        user = caller.user(asked.user_id)
        yield _Place(UserPreference, Scope.everywhere() if user is None else Scope(user_id=user))


def _told(related: FactRelation, fact_id: str) -> RelationTold:
    dates = related.edge.metadata.get("dates", {})
    other_id = str(related.other.key)
    return RelationTold(
        relation=related.relation,
        other_id=other_id,
        other=stated(related.other),
        probability=related.edge.strength,
        detected=related.edge.auto_detected,
        evidence=[f"{each.kind}: {each.detail}" for each in related.evidence],
        date=dates.get(fact_id),
        other_date=dates.get(other_id),
        related_at=related.edge.created_at,
    )


FACTS: tuple[Operation[Any, Any], ...] = (memory_relations, distinguish_memories, compare_memories)
