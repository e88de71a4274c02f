"""Operations of the review inbox: what needs a decision, and the decisions that are not offered elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from alma.benefit.report import LESSONS, MemoryBenefit, numbers_of
from alma.model.governance import ArchiveCause, ArchivedRecord
from alma.model.learning import DEMOTED, IS_DEMOTED, DomainKnowledge, UserPreference, demotion_of
from alma.model.memory import FactRelationship, Memory, MemoryRelationship
from alma.model.query import And, At, Compare, In, Or, Order
from alma.model.record import Record
from alma.model.relations import Relation
from alma.model.scope import Scope
from alma.operations.access import Caller, Right
from alma.operations.base import ASKING_USER, InProject, Limit, Name, Operation, Output, Prose, Share, operation
from alma.operations.care import Chosen, PutAway, put_away
from alma.operations.places import Place, place_of, places, required
from alma.operations.rows import Row, row_of
from alma.storage.base import Transaction
from alma.storage.tombstones import Because, lift_tombstones, note_tombstones, set_cause, tombstone_of

_ID = "01a1e0a2b81e7fc49d0ec9b96de703e8"
_EVERYWHERE = Scope.everywhere()
_COMPARED: tuple[type[Record], ...] = (Memory, DomainKnowledge)
_NEWEST_COMPARED = 60
_LONGEST = 4_000
Category = Literal["quarantined", "contradiction", "duplicate", "doubtful", "harmful"]


class Inbox(InProject):
    categories: Annotated[Sequence[Category], Field(max_length=5)] = (
        "quarantined",
        "contradiction",
        "duplicate",
        "doubtful",
        "harmful",
    )
    below_confidence: Share = Field(0.6, description="Facts and preferences with less confidence are doubtful.")
    min_similarity: Share = Field(0.93, description="The least cosine of near-duplicates.")
    limit: Limit = 50
    user_id: Name | None = ASKING_USER


class InboxItem(Output):
    category: Category
    row: Row
    other: Row | None = Field(default=None, description="What it contradicts or repeats.")
    reason: str = ""
    is_demoted: bool | None = Field(default=None, description="Of a harmful memory: whether prompts lack it already.")
    archive_id: str | None = Field(default=None, description="Of a quarantined text: pass it to restore to accept it.")


class InboxPage(Output):
    items: Sequence[InboxItem]


@operation("review", Right.READ, example={"limit": 20})
def review_inbox(caller: Caller, request: Inbox) -> InboxPage:
    """List what needs a decision: quarantined texts, contradictions, near-duplicates, doubtful extractions, harm.

    Harmful are the lessons and facts with which tasks are measured to succeed less often, and those demoted for it.
    """
    found: list[InboxItem] = []
    for category in dict.fromkeys(request.categories):
        found += list(_SOURCES[category](caller, request))[: request.limit]
    return InboxPage(items=found[: request.limit])


def _quarantined(caller: Caller, request: Inbox) -> Iterator[InboxItem]:
    where = Compare("cause", "eq", ArchiveCause.QUARANTINED)
    newest = (Order("archived_at", "desc"),)
    scope = caller.scope(request.project_id)
    for row in caller.store.storage.find(ArchivedRecord, scope, where, newest, request.limit):
        record = caller.store.archive.record(row)
        if isinstance(record, Memory) and not caller.may_see(record, request.user_id):
            continue
        shown = row_of(record, _LONGEST).model_copy(update={"state": "quarantined"})
        yield InboxItem(category="quarantined", row=shown, reason=row.reason or "", archive_id=row.id)


def _contradictions(caller: Caller, request: Inbox) -> Iterator[InboxItem]:
    of_type = Compare("relationship_type", "eq", str(Relation.CONTRADICTS))
    newest = (Order("created_at", "desc"),)
    storage = caller.store.storage
    for place in places(caller, request.project_id, ["memory"], request.user_id):
        edges = storage.find(MemoryRelationship, _EVERYWHERE, of_type, newest, 10 * request.limit)
        yield from _pairs(caller, place, [(each.from_memory_id, each.to_memory_id, each.context) for each in edges])
    for place in places(caller, request.project_id, ["domain_knowledge", "user_preference"], request.user_id):
        of_kind = And(of_type, Compare("kind", "eq", place.kind))
        facts = storage.find(FactRelationship, _EVERYWHERE, of_kind, newest, 10 * request.limit)
        yield from _pairs(caller, place, [(each.from_memory_id, each.to_memory_id, each.context) for each in facts])


def _pairs(caller: Caller, place: Place, edges: Sequence[tuple[str, str, str | None]]) -> Iterator[InboxItem]:
    """The related pairs of which the caller sees both."""
    key = place.cls.spec.key
    ids = sorted({each for one, other, _ in edges for each in (one, other)})
    found = caller.store.storage.find(place.cls, place.scope, place.within(In(key, ids))) if ids else []
    records = {str(record.key): record for record in found}
    for one, other, context in edges:
        if one in records and other in records:
            yield InboxItem(
                category="contradiction",
                row=row_of(records[one], _LONGEST),
                other=row_of(records[other], _LONGEST),
                reason=context or "",
            )


def _duplicates(caller: Caller, request: Inbox) -> Iterator[InboxItem]:
    """Pairs of the newest records with a very near neighbour that was not judged to be distinct."""
    for cls in _COMPARED:
        place = place_of(caller, cls, request.project_id, request.user_id)
        if place is not None:
            yield from _near(caller, place, request)


def _near(caller: Caller, place: Place, request: Inbox) -> Iterator[InboxItem]:
    storage, key = caller.store.storage, place.cls.spec.key
    newest = storage.find(place.cls, place.scope, place.where, (Order(place.created, "desc"),), _NEWEST_COMPARED)
    with storage.snapshot() as tx:
        vectors = {
            each.record_id: each.vector
            for each in tx.vectors_of(place.cls, [str(record.key) for record in newest])
            if each.part == 0 and each.model == tx.embedding_model
        }
    told: set[frozenset[str]] = set()
    for record in newest:
        vector = vectors.get(str(record.key))
        near = (
            [] if vector is None else storage.nearest_ids(place.cls, vector, place.scope, place.where, 3, exact=False)
        )
        for other, cosine in near:
            pair = frozenset((str(record.key), other))
            if (
                len(pair) == 2
                and cosine >= request.min_similarity
                and pair not in told
                and not _distinct(caller, place, pair)
            ):
                told.add(pair)
                for known in storage.find(place.cls, place.scope, place.within(In(key, [other])), limit=1):
                    reason = f"their vectors are near: a cosine of {cosine:.2f}"
                    yield InboxItem(
                        category="duplicate", row=row_of(record, _LONGEST), other=row_of(known, _LONGEST), reason=reason
                    )


_APART = (Relation.DISTINCT_FROM, Relation.CONTRADICTS, Relation.SUPERSEDES)


def _distinct(caller: Caller, place: Place, pair: frozenset[str]) -> bool:
    """Whether the relation of two records is known already."""
    cls: type[Any] = MemoryRelationship if place.cls is Memory else FactRelationship
    ids = sorted(pair)
    both = And(
        In("from_memory_id", ids), In("to_memory_id", ids), In("relationship_type", [str(each) for each in _APART])
    )
    return bool(caller.store.storage.count(cls, _EVERYWHERE, both))


def _doubtful(caller: Caller, request: Inbox) -> Iterator[InboxItem]:
    doubted: tuple[type[Any], ...] = (DomainKnowledge, UserPreference)
    for cls in doubted:
        place = place_of(caller, cls, request.project_id, request.user_id)
        if place is None:
            continue
        where = place.within(Compare("confidence", "lt", request.below_confidence))
        newest = (Order(place.created, "desc"),)
        for record in caller.store.storage.find(cls, place.scope, where, newest, request.limit):
            reason = f"extracted with a confidence of {record.confidence:.0%}" + (
                f" from {record.source}" if record.source else ""
            )
            yield InboxItem(category="doubtful", row=row_of(record, _LONGEST), reason=reason)


def _harmful(caller: Caller, request: Inbox) -> Iterator[InboxItem]:
    """Memories that were demoted, and those that are measured to harm and are not demoted yet."""
    harms: dict[str, MemoryBenefit] | None = None
    demoted = At("metadata", (DEMOTED, IS_DEMOTED), value=True)
    for place in places(caller, request.project_id, list(LESSONS)):
        if harms is None:
            harms = {each.memory_id: each for each in caller.store.benefit.harmful(place.scope)}
        where = place.within(Or(demoted, In(place.cls.spec.key, list(harms))))
        newest = (Order(place.created, "desc"),)
        for record in caller.store.storage.find(place.cls, place.scope, where, newest, request.limit):
            numbers = demotion_of(record)
            reason = numbers_of(harms[str(record.key)].uplift) if numbers is None else str(numbers.get("said", ""))
            row = row_of(record, _LONGEST)
            yield InboxItem(category="harmful", row=row, reason=reason, is_demoted=numbers is not None)


_SOURCES: dict[str, Any] = {
    "quarantined": _quarantined,
    "contradiction": _contradictions,
    "duplicate": _duplicates,
    "doubtful": _doubtful,
    "harmful": _harmful,
}


# ---------------------------------------------------------------------- decisions


class Reject(Chosen):
    archive_ids: Annotated[Sequence[Name], Field(max_length=1_000)] = Field(
        (), description="Also these rows of the archive, such as quarantined texts."
    )
    ids: Annotated[Sequence[Name], Field(max_length=1_000)] = ()
    reason: Prose = ""


@operation(
    "review",
    Right.DELETE,
    destructive=True,
    idempotent=True,
    example={"kind": "memory", "ids": [_ID], "reason": "wrong"},
)
def reject_records(caller: Caller, request: Reject) -> PutAway:
    """Archive memories and refuse their texts from now on: what was rejected is not stored again in this project."""
    put = put_away(caller, request, ArchiveCause.REJECTED, request.reason)
    scope = caller.scope(request.project_id)

    def reject(tx: Transaction) -> list[str]:
        waiting = tx.lock(ArchivedRecord, list(request.archive_ids), scope)
        rows = [*waiting, *tx.get_many(ArchivedRecord, put.archive_ids, _EVERYWHERE)]
        for row in rows:
            before = row.cause if row in waiting and row.cause is not ArchiveCause.REJECTED else None
            note_tombstones(tx, [caller.store.archive.record(row)], Because.REJECTED, before)
            set_cause(tx, row, ArchiveCause.REJECTED)
        return [row.id for row in rows]

    return put.model_copy(
        update={"archive_ids": caller.store.storage.write(reject, caller.by(user_id=request.user_id))}
    )


class Allow(InProject):
    archive_ids: Annotated[Sequence[Name], Field(min_length=1, max_length=1_000)]
    preferences_of: Name | None = Field(None, description="The user whose preferences were rejected.")


class Allowed(Output):
    restored: Sequence[str] = Field(description="The ids of the memories that are in use again.")
    waiting: Sequence[str] = Field(description="The archive ids of texts that wait in the inbox again.")


@operation("review", Right.WRITE, idempotent=True, example={"archive_ids": [_ID]})
def allow_records(caller: Caller, request: Allow) -> Allowed:
    """Undo a rejection: the memories are in use again, quarantined texts wait again, and the texts may be stored."""
    user = request.preferences_of
    scope = caller.scope(request.project_id) if user is None else Scope(user_id=caller.required_user(user))
    by = caller.by()

    def allow(tx: Transaction) -> tuple[list[str], list[str]]:
        rows = tx.lock(ArchivedRecord, list(request.archive_ids), scope)
        back: list[str] = []
        waiting: list[str] = []
        for row in (each for each in rows if each.cause is ArchiveCause.REJECTED):
            record = caller.store.archive.record(row)
            noted = tombstone_of(tx, record)
            before = None if noted is None else noted.before
            lift_tombstones(tx, [record])
            if before is None:
                back.append(row.id)
            else:
                set_cause(tx, row, before)
                waiting.append(row.id)
        return back, waiting

    back, waiting = caller.store.storage.write(allow, by)
    restored = caller.store.archive.restore(back, scope, by) if back else []
    return Allowed(restored=[str(record.key) for record in restored], waiting=waiting)


class Quarantine(Chosen):
    reason: Prose = Field("", description="Why it is put aside.")


@operation(
    "review",
    Right.DELETE,
    destructive=True,
    idempotent=True,
    example={"kind": "memory", "ids": [_ID], "reason": "doubtful"},
)
def quarantine_records(caller: Caller, request: Quarantine) -> PutAway:
    """Put memories aside for review: no search finds them until they are accepted."""
    return put_away(caller, request, ArchiveCause.QUARANTINED, request.reason)


class MergeRecords(InProject):
    kind: Literal["memory", "heuristic", "domain_knowledge", "user_preference"]
    keep_id: Name = Field(description="The one that stays.")
    merge_ids: Annotated[Sequence[Name], Field(min_length=1, max_length=100)]
    user_id: Name | None = ASKING_USER


@operation(
    "review",
    Right.DELETE,
    destructive=True,
    idempotent=True,
    example={"kind": "memory", "keep_id": _ID, "merge_ids": ["other"]},
)
def merge_records(caller: Caller, request: MergeRecords) -> PutAway:
    """Keep one of several memories that say the same, and archive the others as merged into it."""
    required(caller, request.kind, request.keep_id, request.project_id, request.user_id)
    others = [each for each in request.merge_ids if each != request.keep_id]
    if not others:
        return PutAway(archive_ids=[])
    chosen = Chosen(kind=request.kind, ids=others, project_id=request.project_id, user_id=request.user_id)
    return put_away(caller, chosen, ArchiveCause.MERGED, f"merged into {request.keep_id}")


REVIEW: tuple[Operation[Any, Any], ...] = (
    review_inbox,
    reject_records,
    allow_records,
    quarantine_records,
    merge_records,
)
