"""Operations that people use on single memories: correct, supersede, pin, forget; and who read one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from alma.clock import new_id, now
from alma.errors import ValidationError
from alma.learning.policy import PINNED
from alma.model.governance import ArchiveCause, ServedText
from alma.model.kinds import kind_named
from alma.model.learning import Heuristic, UserPreference
from alma.model.memory import Memory, MemoryAccess
from alma.model.query import And, Compare, In, Missing, Or
from alma.model.record import Record
from alma.model.scope import Scope
from alma.model.workspace import Session, SessionMemory
from alma.operations.access import Caller, Right
from alma.operations.base import ASKING_USER, InProject, Name, Operation, Output, Prose, Share, Text, operation
from alma.operations.places import CREATED, MemoryKind, Place, place_of, required
from alma.operations.rows import Row, row_of, text_field

_ID = "01a1e0a2b81e7fc49d0ec9b96de703e8"
_EVERYWHERE = Scope.everywhere()
StatementKind = Literal["memory", "heuristic", "domain_knowledge", "anti_pattern", "user_preference"]
FactKind = Literal["memory", "domain_knowledge", "user_preference"]
_MOST_AGENTS = 50


class Chosen(InProject):
    """Memories of one kind."""

    kind: MemoryKind
    ids: Annotated[Sequence[Name], Field(min_length=1, max_length=1_000)]
    user_id: Name | None = ASKING_USER

    def visible_ids(self, caller: Caller) -> tuple[Place | None, list[str]]:
        """The place of the kind, and those of the ids that the caller sees there."""
        place = place_of(caller, kind_named(self.kind), self.project_id, self.user_id)
        if place is None:
            return None, []
        named = place.within(In(place.cls.spec.key, list(self.ids)))
        rows = caller.store.storage.values(place.cls, (place.cls.spec.key,), place.scope, named)
        return place, [str(key) for (key,) in rows]


class PutAway(Output):
    archive_ids: Sequence[str] = Field(description="Pass them to restore to undo it.")
    preferences_of: str | None = Field(default=None, description="Pass it to restore as well, for preferences.")


class ForgetRecords(Chosen):
    reason: Prose = Field("", description="Why; kept in the archive.")


@operation(
    "memories",
    Right.DELETE,
    destructive=True,
    idempotent=True,
    example={"kind": "memory", "ids": [_ID], "reason": "old"},
)
def forget_records(caller: Caller, request: ForgetRecords) -> PutAway:
    """Move memories of one kind to the archive; they can be restored."""
    return put_away(caller, request, ArchiveCause.FORGOTTEN, request.reason)


def put_away(caller: Caller, request: Chosen, cause: ArchiveCause, reason: str) -> PutAway:
    """Archive the chosen memories that the caller sees."""
    place, ids = request.visible_ids(caller)
    if place is None or not ids:
        return PutAway(archive_ids=[])
    user = _user_of_preferences(caller, place, ids, request)
    by = caller.by(user_id=request.user_id)
    deleted = cause is ArchiveCause.FORGOTTEN
    archived = caller.store.archive.put(place.cls, ids, place.scope, cause, reason or None, by, deleted=deleted)
    return PutAway(archive_ids=archived, preferences_of=user)


def _user_of_preferences(caller: Caller, place: Place, ids: Sequence[str], request: Chosen) -> str | None:
    if place.cls is not UserPreference:
        return None
    found = caller.store.storage.values(UserPreference, ("user_id",), place.scope, In("id", list(ids)))
    users = {user for (user,) in found}
    if len(users) > 1:
        raise ValidationError("forget_records", "ids", list(request.ids), "must be preferences of one user")
    return next(iter(users), None)


class Pin(Chosen):
    pinned: bool = Field(True, description="false takes the pin off.")


class PinnedRecords(Output):
    changed: Sequence[str]


@operation("memories", Right.WRITE, idempotent=True, example={"kind": "memory", "ids": [_ID]})
def pin_records(caller: Caller, request: Pin) -> PinnedRecords:
    """Pin memories, so that they are never forgotten by rule, or take the pin off."""
    place, ids = request.visible_ids(caller)
    if place is None:
        return PinnedRecords(changed=[])
    by = caller.by(user_id=request.user_id)

    def pin(tx: Any) -> list[str]:
        held = tx.lock(place.cls, ids, place.scope)
        changed = [pinned for record in held if (pinned := _with_pin(record, on=request.pinned)) != record]
        tx.save(*changed)
        return [str(record.key) for record in changed]

    return PinnedRecords(changed=caller.store.storage.write(pin, by))


def _with_pin(record: Any, *, on: bool) -> Any:
    if isinstance(record, Memory):
        tags = sorted({*record.tags, PINNED}) if on else [tag for tag in record.tags if tag != PINNED]
        return record if tuple(tags) == tuple(sorted(record.tags)) else record.replace(tags=tags, updated_at=now())
    metadata = {**record.metadata, PINNED: True} if on else {k: v for k, v in record.metadata.items() if k != PINNED}
    return record.replace(metadata=metadata)


# ---------------------------------------------------------------------- corrections


class Correct(InProject):
    kind: StatementKind
    id: Name
    text: Text | None = Field(None, description="The corrected text: content, strategy, fact, pattern or preference.")
    confidence: Share | None = Field(None, description="The corrected confidence of a heuristic, fact or preference.")
    reason: Prose = Field("", description="Why; kept in the history.")
    user_id: Name | None = ASKING_USER


class RecordKept(Output):
    row: Row


@operation(
    "memories",
    Right.WRITE,
    idempotent=True,
    example={"kind": "domain_knowledge", "id": _ID, "text": "The port is 8081."},
)
def correct_record(caller: Caller, request: Correct) -> RecordKept:
    """Correct the text or the confidence of a memory; the id stays, and the version before it stays in the history."""
    place, record = required(caller, request.kind, request.id, request.project_id, request.user_id)
    changes = _changes(place.cls, request)
    by = replace(caller.by(user_id=request.user_id), reason=request.reason or None)
    if place.cls is Memory:
        caller.store.journal.update(
            request.id, changes, place.scope, by=by, reason=request.reason or None, source="user"
        )
    else:
        caller.store.ingest.save(record.replace(embedding=None, **changes), by, "user")
    return RecordKept(row=row_of(caller.store.storage.require(place.cls, request.id, place.scope)))


def _changes(cls: type[Record], request: Correct) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if request.text is not None:
        changes[text_field(cls)] = request.text
    if request.confidence is not None:
        if "confidence" not in cls.spec.by_name:
            raise ValidationError(
                "correct_record", "confidence", request.confidence, f"is not a field of a {request.kind}"
            )
        changes["confidence"] = request.confidence
        if cls is Heuristic:
            # Stated by a person from now on; outcomes count on top of it.
            changes |= {"weight_for": None, "weight_against": None}
    if not changes:
        raise ValidationError("correct_record", "text", None, "is required, or confidence")
    return changes


class Supersede(InProject):
    kind: FactKind
    id: Name = Field(description="What no longer holds.")
    text: Text = Field(description="What holds now.")
    reason: Prose = ""
    user_id: Name | None = ASKING_USER


@operation(
    "memories",
    Right.WRITE,
    example={"kind": "domain_knowledge", "id": _ID, "text": "The login form uses passkeys since May."},
)
def supersede_record(caller: Caller, request: Supersede) -> RecordKept:
    """State what holds now instead of a memory, fact or preference; the old one is kept and marked as superseded."""
    place, record = required(caller, request.kind, request.id, request.project_id, request.user_id)
    fields: dict[str, Any] = {text_field(place.cls): request.text, CREATED[place.cls]: now(), "id": new_id()}
    if place.cls is Memory:
        fields |= {"summary": None, "content_json": None, "access_count": 0, "updated_at": now(), "valid_from": None}
    by = replace(caller.by(user_id=request.user_id), reason=request.reason or None)
    made = record.replace(embedding=None, **fields)
    written = caller.store.ingest.save(made, by, "user", supersedes=[request.id])
    return RecordKept(row=row_of(caller.store.storage.require(place.cls, written.id, place.scope)))


# ---------------------------------------------------------------------- who read it


class UsageOf(InProject):
    kind: MemoryKind
    id: Name
    user_id: Name | None = ASKING_USER


class ReadBy(Output):
    session_id: str | None = None
    session: str = Field("", description="The name of the session.")
    agent: str | None = None
    reads: int
    helpful: int
    unhelpful: int
    last_at: datetime


class HeldBy(Output):
    session_id: str
    session: str
    agent: str | None = None
    pinned: bool
    added_at: datetime


class Usage(Output):
    reads: int = Field(description="The number of reads, of all sessions.")
    by_session: Sequence[ReadBy]
    held_by: Sequence[HeldBy] = Field(description="The sessions whose working memory holds it.")
    handed_to: Sequence[str] = Field(description="The agents that were handed it within the last hour.")
    evidence: Mapping[str, Sequence[str]] = Field({}, description="The ids of outcomes for and against a lesson.")


@operation("memories", Right.READ, example={"kind": "memory", "id": _ID})
def memory_usage(caller: Caller, request: UsageOf) -> Usage:
    """Show which sessions read a memory, which hold it in their working memory, and which agents were handed it."""
    place, record = required(caller, request.kind, request.id, request.project_id, request.user_id)
    storage = caller.store.storage
    read: list[MemoryAccess] = []
    held: list[SessionMemory] = []
    if place.cls is Memory:
        caller.store.journal.flush()
        read = storage.find(MemoryAccess, _EVERYWHERE, Compare("memory_id", "eq", request.id))
        of_memory = And(Compare("memory_id", "eq", request.id), Compare("working_memory", "eq", True))
        held = storage.find(SessionMemory, _EVERYWHERE, of_memory)
    readers = [each.session_id for each in read] + [each.session_id for each in held]
    ids = {each for each in readers if each is not None}
    # Sessions outside of what the caller sees are not named.
    found = storage.find(Session, caller.scope(request.project_id), In("id", sorted(ids)))
    sessions = {each.id: each for each in found}
    return Usage(
        reads=sum(each.access_count for each in read) or getattr(record, "access_count", 0),
        by_session=[
            _read_by(each, sessions) for each in read if each.session_id is None or each.session_id in sessions
        ],
        held_by=[_held_by(each, sessions[each.session_id]) for each in held if each.session_id in sessions],
        handed_to=_handed_to(caller, record, request),
        evidence=_evidence(record),
    )


def _evidence(record: Record) -> dict[str, list[str]]:
    names = {"for": "outcomes_for", "against": "outcomes_against"}
    return {side: list(ids) for side, name in names.items() if (ids := getattr(record, name, ()))}


def _read_by(each: MemoryAccess, sessions: Mapping[str, Session]) -> ReadBy:
    session = sessions.get(each.session_id or "")
    return ReadBy(
        session_id=each.session_id,
        session="" if session is None else session.name or session.goal or session.id,
        agent=None if session is None else session.agent,
        reads=each.access_count,
        helpful=each.helpful_count,
        unhelpful=each.unhelpful_count,
        last_at=each.last_accessed_at,
    )


def _held_by(each: SessionMemory, session: Session) -> HeldBy:
    name = session.name or session.goal or session.id
    return HeldBy(session_id=session.id, session=name, agent=session.agent, pinned=each.pinned, added_at=each.added_at)


def _handed_to(caller: Caller, record: Record, request: UsageOf) -> list[str]:
    """The agents whose answers of the last hour contain what the record says, by their fingerprints."""
    project = caller.project(request.project_id)
    caller.store.ingest.flush()
    where = And(Compare("expires_at", "gt", now()), Or(Missing("project_id"), Compare("project_id", "eq", project)))
    by_agent: dict[str, int] = defaultdict(int)
    for (agent,) in caller.store.storage.values(ServedText, ("agent",), _EVERYWHERE, where, limit=1_000):
        by_agent[agent] += 1
    agents = sorted(each for each in by_agent if caller.grant.agent in (None, each))[:_MOST_AGENTS]
    text = getattr(record, text_field(type(record))) or ""
    return [agent for agent in agents if text and caller.store.ingest.echoes([text], agent, project)]


CARE: tuple[Operation[Any, Any], ...] = (
    forget_records,
    pin_records,
    correct_record,
    supersede_record,
    memory_usage,
)
