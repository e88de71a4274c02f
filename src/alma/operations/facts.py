"""Operations on facts: which fact supersedes, contradicts or repeats which, and corrections."""

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
from alma.model.facts import stated
from alma.model.governance import ArchiveCause
from alma.model.learning import DomainKnowledge, UserPreference
from alma.model.memory import Memory
from alma.model.query import EVERYTHING, And, In, Predicate
from alma.model.record import Record
from alma.model.scope import Scope, alive
from alma.operations.access import Caller, Right
from alma.operations.base import InProject, Name, Operation, Output, operation

_ID = "01a1e0a2b81e7fc49d0ec9b96de703e8"
_OTHER = "01a1e0a2b81f7fc49d0ec9b96de703e9"
FactKind = Literal["memory", "domain_knowledge", "user_preference"]
_KINDS: dict[str, type[Record]] = {each.spec.kind: each for each in (Memory, DomainKnowledge, UserPreference)}


class OfFact(InProject):
    memory_id: Name = Field(description="The id of a memory, a fact or a preference.")
    user_id: Name | None = Field(None, description="The user who asks, or whose preference it is.")


class RelationTold(Output):
    relation: str = Field(description="supersedes, superseded_by, contradicts, builds_on, distinct_from …")
    other_id: str
    other: str = Field(description="The text of the other fact.")
    probability: float
    detected: bool = Field(description="Whether the judge found the relation; otherwise a caller stated it.")
    evidence: Sequence[str] = Field((), description="Which judge found it, with its verdict and probability.")
    date: datetime | None = Field(None, description="The date of this fact.")
    other_date: datetime | None = None
    related_at: datetime


class Merged(Output):
    id: str = Field(description="Pass it as other_id to distinguish_memories if the texts differ in meaning.")
    text: str
    reason: str


class RelationsTold(Output):
    kind: str
    text: str
    relations: Sequence[RelationTold]
    merged: Sequence[Merged] = Field((), description="Near-duplicates that were merged into this fact.")


@dataclass(frozen=True, slots=True)
class Place:
    """A kind of fact and the scope in which to look for it."""

    cls: type[Record]
    scope: Scope
    where: Predicate = EVERYTHING


@operation("memories", Right.READ, example={"memory_id": _ID})
def memory_relations(caller: Caller, request: OfFact) -> RelationsTold:
    """Show what supersedes, contradicts or repeats a memory, fact or preference, with probability, judge and dates.

    Use distinguish_memories to correct a wrong relation.
    """
    place, fact = find_fact(caller, request, request.memory_id)
    found = caller.store.facts.of(place.cls, request.memory_id, place.scope, place.where)
    archived = caller.store.archive.find(place.scope, place.cls, ArchiveCause.MERGED, limit=None)
    merged = [each for each in archived if request.memory_id in (each.reason or "")]
    return RelationsTold(
        kind=place.cls.spec.kind,
        text=stated(fact),
        relations=[_relation_output(each, request.memory_id) for each in found],
        merged=[
            Merged(id=each.record_id, text=stated(caller.store.archive.record(each)), reason=each.reason or "")
            for each in merged
        ],
    )


class Distinguish(OfFact):
    other_id: Name = Field(description="The other fact, or the former id of one that was merged into the first.")
    distinct: bool = Field(True, description="false takes it back: what was removed relates them again.")


class Distinguished(Output):
    removed: Sequence[str] = Field(description="The relations that were removed.")
    related: Sequence[str] = Field(default=(), description="The removed relations that are there again.")
    restored: Sequence[str] = Field(default=(), description="The merged facts that are separate memories again.")


@operation("memories", Right.WRITE, idempotent=True, example={"memory_id": _ID, "other_id": _OTHER})
def distinguish_memories(caller: Caller, request: Distinguish) -> Distinguished:
    """State that two facts differ, and that neither supersedes or contradicts the other.

    The judge will not relate them again. To state that one supersedes the other, use relate_memories, or `supersedes`
    when adding the fact.
    """
    place, _ = find_fact(caller, request, request.memory_id)
    by = caller.by(user_id=request.user_id)
    if not request.distinct:
        related = caller.store.facts.unmark_distinct(
            place.cls, request.memory_id, request.other_id, place.scope, where=place.where, by=by
        )
        return Distinguished(removed=[], related=related)
    done = caller.store.distinguish(
        place.cls, request.memory_id, request.other_id, place.scope, by=by, where=place.where
    )
    return Distinguished(removed=done.removed, restored=done.restored)


class CompareFacts(InProject):
    kind: FactKind = "domain_knowledge"
    user_id: Name | None = Field(None, description="The user whose preferences are compared; required for them.")
    limit: int = Field(1_000, ge=1, le=20_000, description="The maximum number of facts, newest first.")


class FactsCompared(Output):
    compared: int
    related: int = Field(description="The number of relations found, including known ones.")


@operation("memories", Right.WRITE, takes_long=True, idempotent=True, example={"kind": "domain_knowledge"})
def compare_memories(caller: Caller, request: CompareFacts) -> FactsCompared:
    """Compare facts that were stored in bulk (by an import) with their nearest neighbours, and relate superseded ones.

    Facts that are added one by one are compared immediately.
    """
    by = caller.by(user_id=request.user_id)
    place = next((each for each in _places(caller, request) if each.cls is _KINDS[request.kind]), None)
    if place is None:
        raise PermissionDeniedError("preferences belong to one user: name it with user_id, or use a key for that user")
    done = caller.store.ingest.facts.compare_stored(place.cls, place.scope, request.limit, by)
    return FactsCompared(compared=done.facts, related=len(done.found))


def find_fact(caller: Caller, request: OfFact, fact_id: str) -> tuple[Place, Record]:
    """The fact with this id, if the caller may see it."""
    for place in _places(caller, request):
        named = And(place.where, In("id", [fact_id]))
        for fact in caller.store.storage.find(place.cls, place.scope, named, limit=1):
            return place, fact
    raise NotFoundError("memory", fact_id)


def _places(caller: Caller, request: OfFact | CompareFacts) -> Iterator[Place]:
    by, scope = caller.by(user_id=request.user_id), caller.scope(request.project_id)
    yield Place(Memory, scope, And(alive(now()), visible(scope, by)))
    if caller.grant.user_id is None or caller.grant.project_id is not None:
        yield Place(DomainKnowledge, caller.project_scope(request.project_id))
    if request.user_id is not None or not caller.grant.is_limited:
        user = caller.user(request.user_id)
        yield Place(UserPreference, Scope.everywhere() if user is None else Scope(user_id=user))


def _relation_output(related: FactRelation, fact_id: str) -> RelationTold:
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
