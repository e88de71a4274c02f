"""Operations on history and the archive: versions, the past, the audit log; forget, restore, purge, consolidate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field

from alma.consolidation.engine import ConsolidationEngine
from alma.learning.policy import PrunePolicy
from alma.learning.pruning import Pruned
from alma.memory.audit_chain import Finding
from alma.memory.history import FieldChange
from alma.model.governance import ArchiveCause, AuditEvent
from alma.model.kinds import kind_named
from alma.model.learning import UserPreference
from alma.model.memory import Memory
from alma.model.record import Record
from alma.model.scope import Scope
from alma.operations.access import Caller, Right
from alma.operations.base import (
    ASKING_USER,
    Hinted,
    InProject,
    Input,
    Limit,
    Name,
    Operation,
    Output,
    Prose,
    Share,
    Text,
    operation,
)
from alma.operations.learning import LearnedId, LearnedKind
from alma.operations.memories import MIN_SIMILARITY, Cosine

_ID = "01a1e0a2b81e7fc49d0ec9b96de703e8"
VersionedKind = Literal["memory", "heuristic", "outcome", "domain_knowledge", "anti_pattern"]


class OfRecord(InProject):
    id: Name
    kind: VersionedKind = "memory"
    user_id: Name | None = ASKING_USER


class VersionShown(Output):
    number: int
    change: str
    reason: str | None = None
    author: str | None = None
    recorded_at: datetime
    changes: Sequence[FieldChange]


class Versions(Output):
    versions: Sequence[VersionShown]


@operation("history", Right.READ, example={"id": _ID})
def list_versions(caller: Caller, request: OfRecord) -> Versions:
    """List every version of a memory: what changed, by whom, when and why."""
    cls, scope = _place(caller, request)
    found = caller.store.history.versions(cls, request.id, scope)
    return Versions(versions=list(map(VersionShown.from_result, found)))


class Compare(OfRecord):
    first: int = Field(ge=1)
    second: int = Field(ge=1)


class Differences(Output):
    changes: Sequence[FieldChange]


@operation("history", Right.READ, example={"id": _ID, "first": 1, "second": 2})
def compare_versions(caller: Caller, request: Compare) -> Differences:
    """Show the differences between two versions of a memory."""
    cls, scope = _place(caller, request)
    return Differences(changes=caller.store.history.compare(cls, request.id, request.first, request.second, scope))


class RestoreVersion(OfRecord):
    number: int = Field(ge=1)
    reason: Text = Field(description="Why; kept in the history.")


class VersionRestored(Output):
    id: str
    kind: str
    text: str


@operation(
    "history", Right.WRITE, idempotent=True, example={"id": _ID, "number": 1, "reason": "the change was a mistake"}
)
def restore_version(caller: Caller, request: RestoreVersion) -> VersionRestored:
    """Restore an earlier version of a memory."""
    cls, scope = _place(caller, request)
    by = caller.by(user_id=request.user_id)
    back = caller.store.history.restore(cls, request.id, request.number, scope, request.reason, by)
    return VersionRestored(id=str(back.key), kind=request.kind, text=back.text())


class SearchPast(InProject):
    query: Text
    known_at: AwareDatetime | None = Field(None, description="Search what had been recorded by this time.")
    true_at: AwareDatetime | None = Field(None, description="Search what was true at this time.")
    mode: Literal["keyword", "semantic", "hybrid"] = "keyword"
    min_similarity: Cosine | None = MIN_SIMILARITY
    limit: Limit = 10
    user_id: Name | None = None


class PastHit(Output):
    memory: Memory
    score: float


class PastHits(Output):
    hits: Sequence[PastHit]


@operation("history", Right.READ, example={"query": "database", "known_at": "2026-01-31T00:00:00Z"})
def search_as_of(caller: Caller, request: SearchPast) -> PastHits:
    """Search what was known, or what was true, at a time."""
    user, least = caller.user(request.user_id), request.min_similarity
    if least is None and request.mode == "semantic":
        least = caller.store.settings.threshold(user)
    found = caller.store.history.search(
        Memory,
        request.query,
        caller.scope(request.project_id),
        limit=request.limit,
        mode=request.mode,
        min_similarity=least,
        known_at=request.known_at,
        true_at=request.true_at,
    )
    hits = [PastHit(memory=hit.record, score=hit.score) for hit in found if caller.may_see(hit.record, user)]
    return PastHits(hits=hits)


class ListAudit(Input):
    user_id: Name | None = None
    agent: Name | None = None
    action: Name | None = None
    resource_type: Name | None = None
    resource_id: Name | None = None
    success: bool | None = None
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None
    limit: Limit = 50
    before: int | None = Field(None, ge=1, description="next_before of the previous page.")


class AuditList(Output):
    events: Sequence[AuditEvent]
    next_before: int | None = None


@operation("audit", Right.ADMIN, example={"action": "delete", "limit": 20})
def list_audit(caller: Caller, request: ListAudit) -> AuditList:
    """List audit events: who did what, when and from where, newest first."""
    if caller.grant.project_id or caller.grant.agent:
        caller.require_unlimited("the audit log")
    user = caller.user(request.user_id)
    scope = Scope.everywhere() if user is None else Scope(user_id=user)
    page = caller.store.audit.find(scope, **request.model_dump(exclude={"user_id"}))
    return AuditList(events=page.events, next_before=page.next_before)


class VerifyAudit(Input):
    pass


class Verified(Output):
    ok: bool
    checked: int
    chains: int
    findings: Sequence[Finding]


@operation("audit", Right.ADMIN, takes_long=True, idempotent=True, example={})
def verify_audit(caller: Caller, request: VerifyAudit) -> Verified:
    """Verify the hash chains of the audit log: no event was changed, removed or inserted."""
    caller.require_unlimited("the audit log")
    return Verified.from_result(caller.store.audit.verify())


def _place(caller: Caller, request: OfRecord) -> tuple[type[Record], Scope]:
    """The record class and the scope of a record, after checking that the caller may see it."""
    if request.kind != "memory":
        return kind_named(request.kind), caller.project_scope(request.project_id)
    scope, by = caller.scope(request.project_id), caller.by(user_id=request.user_id)
    if caller.store.journal.get(request.id, scope, by=by, include_deleted=True) is None:
        caller.store.journal.require(request.id, scope, by=by)
    return Memory, scope


HISTORY: tuple[Operation[Any, Any], ...] = (
    list_versions,
    compare_versions,
    restore_version,
    search_as_of,
    list_audit,
    verify_audit,
)


_WITH_TEXT, _TEXT_LENGTH = 100, 200
Days = Annotated[float, Field(ge=0, le=365_000)]


class Reason(LearnedId):
    reason: Prose = Field("", description="Why it is forgotten; kept in the archive.")


class ToForget(Output):
    kind: str
    id: str
    reason: str
    rule: str
    text: str = Field(default="", description="The beginning of its text, for the first 100.")


class Forgotten(Hinted):
    forgotten: int = Field(description="The number of memories archived, or that would be with dry_run.")
    dry_run: bool = False
    items: Sequence[ToForget] | None = None


@operation(
    "learning",
    Right.DELETE,
    destructive=True,
    idempotent=True,
    example={"kind": "heuristic", "id": "01a1e0a2b81e7fc49d0ec9b96de703e8", "reason": "no longer true"},
)
def forget_learned(caller: Caller, request: Reason) -> Forgotten:
    """Archive one lesson, outcome or fact; it can be restored."""
    scope = caller.project_scope(request.project_id)
    cls, reason = kind_named(request.kind), request.reason or None
    put = caller.store.archive.put(cls, request.id, scope, ArchiveCause.FORGOTTEN, reason, caller.by(), deleted=True)
    return Forgotten(forgotten=len(put))


class Forget(InProject):
    agent: Name | None = Field(None, description="Only what this agent learned.")
    older_than_days: Days = Field(90, description="Archive outcomes older than this many days.")
    below_confidence: Share = Field(0.3, description="Archive heuristics with a lower confidence.")
    dry_run: bool = Field(False, description="Show what would be archived, and why, without changing anything.")


@operation(
    "learning", Right.DELETE, destructive=True, takes_long=True, example={"older_than_days": 180, "dry_run": True}
)
def forget(caller: Caller, request: Forget) -> Forgotten:
    """Archive old outcomes and heuristics with low confidence; they can be restored until they are purged."""
    scope = caller.project_scope(request.project_id, request.agent)
    policy = PrunePolicy.of_forget(request.older_than_days, request.below_confidence)
    summary = caller.store.forgetting.prune(
        scope, policy, request.dry_run, caller.by(agent=request.agent), progress=caller.progress
    )
    items = _with_texts(caller, scope, summary.items) if request.dry_run else None
    return Forgotten(forgotten=summary.total, dry_run=request.dry_run, items=items)


def _with_texts(caller: Caller, scope: Scope, items: Sequence[Pruned]) -> list[ToForget]:
    """What would be forgotten, the first of them with the beginning of their texts."""
    first = items[:_WITH_TEXT]
    texts: dict[tuple[str, str], str] = {}
    for kind in {each.kind for each in first}:
        ids = [each.id for each in first if each.kind == kind]
        for record in caller.store.storage.get_many(kind_named(kind), ids, scope):
            said = ": ".join(filter(None, record.spec.texts_of(record)))
            texts[kind, str(record.key)] = said[:_TEXT_LENGTH]
    return [
        ToForget(
            kind=each.kind, id=each.id, reason=each.reason, rule=each.rule, text=texts.get((each.kind, each.id), "")
        )
        for each in items
    ]


_OF_USER = "The user whose preferences are meant; preferences belong to no project."


def _put_away(caller: Caller, project_id: str | None, user_id: str | None) -> tuple[Scope, type[Record] | None]:
    """The part of the archive: of a project, or the preferences of a user."""
    if user_id is None:
        return caller.scope(project_id), None
    return Scope(user_id=caller.required_user(user_id)), UserPreference


class ListArchived(InProject):
    cause: ArchiveCause | None = Field(None, description="forgotten, archived, quarantined or merged")
    record_id: Name | None = Field(None, description="Only what became of the memory with this id.")
    preferences_of: Name | None = Field(None, description=_OF_USER)
    limit: Limit = 20
    user_id: Name | None = ASKING_USER


class Archived(Output):
    id: str
    kind: str
    record_id: str
    cause: str
    reason: str | None = None
    archived_at: str
    text: str = Field(description="The text; empty if it is private to another user.")


class ArchivedPage(Output):
    archived: Sequence[Archived]


@operation("learning", Right.READ, example={"cause": "forgotten"})
def list_archived(caller: Caller, request: ListArchived) -> ArchivedPage:
    """List memories in the archive: forgotten, archived, merged or quarantined ones, which can be restored."""
    archive, user_id = caller.store.archive, caller.user(request.user_id)
    scope, cls = _put_away(caller, request.project_id, request.preferences_of)
    ids = None if request.record_id is None else [request.record_id]
    found = archive.find(scope, cls, request.cause, ids, limit=request.limit)
    return ArchivedPage(
        archived=[
            Archived(
                id=row.id,
                kind=row.kind,
                record_id=row.record_id,
                cause=str(row.cause),
                reason=row.reason,
                archived_at=row.archived_at.isoformat(),
                text=_open_text(caller, archive.record(row), user_id),
            )
            for row in found
        ]
    )


def _open_text(caller: Caller, record: Record, user_id: str | None) -> str:
    """The text of a record, if the caller may see it."""
    is_secret = isinstance(record, Memory) and not caller.may_see(record, user_id)
    return "" if is_secret else record.text() or ""


class Restore(InProject):
    ids: Sequence[Name] = Field(min_length=1, max_length=1_000, description="Ids of memories or of archive rows.")
    preferences_of: Name | None = Field(None, description=_OF_USER)


class Restored(Output):
    restored: Sequence[str] = Field(description="The ids of the restored memories.")


@operation("learning", Right.WRITE, idempotent=True, example={"ids": ["01a1e0a2b81e7fc49d0ec9b96de703e8"]})
def restore(caller: Caller, request: Restore) -> Restored:
    """Restore memories that were forgotten, archived, merged or quarantined."""
    scope, cls = _put_away(caller, request.project_id, request.preferences_of)
    back = caller.store.archive.restore(request.ids, scope, caller.by(), cls)
    return Restored(restored=[str(record.key) for record in back])


class Purge(InProject):
    retention_days: Days = Field(30, description="Delete what was archived more than this many days ago.")
    preferences_of: Name | None = Field(None, description=_OF_USER)


class Purged(Output):
    purged: int


@operation("learning", Right.ADMIN, destructive=True, takes_long=True, example={"retention_days": 30})
def purge(caller: Caller, request: Purge) -> Purged:
    """Permanently delete what was archived or softly deleted longer ago than this, including history and vectors."""
    older_than = timedelta(days=request.retention_days)
    scope, cls = _put_away(caller, request.project_id, request.preferences_of)
    return Purged(purged=caller.store.archive.purge(older_than, scope, caller.by(), cls))


class Consolidate(InProject):
    agent: Name | None = None
    kind: LearnedKind = "heuristic"
    similarity_threshold: Share = 0.85
    dry_run: bool = Field(True, description="Show what would be merged without changing anything.")


class Merged(Output):
    kept_id: str
    kept_text: str
    merged: Mapping[str, str] = Field(description="The id of each merged memory, with the reason.")


class Consolidated(Output):
    groups: Sequence[Merged]
    memories_processed: int
    dry_run: bool


@operation("learning", Right.WRITE, takes_long=True, example={"kind": "heuristic", "dry_run": True})
def consolidate(caller: Caller, request: Consolidate) -> Consolidated:
    """Merge near-duplicate memories; merged ones can be restored."""
    scope = caller.project_scope(request.project_id, request.agent)
    agent = scope.agent if isinstance(scope.agent, str) else None
    result = ConsolidationEngine(caller.memory(request.project_id)).consolidate(
        agent, scope.project_id, request.kind, request.similarity_threshold, request.dry_run, by=caller.by()
    )
    groups = [Merged(kept_id=g.kept_id, kept_text=g.kept_text, merged=g.merged) for g in result.groups]
    return Consolidated(groups=groups, memories_processed=result.memories_processed, dry_run=result.dry_run)


FORGETTING: tuple[Operation[Any, Any], ...] = (
    forget_learned,
    forget,
    list_archived,
    restore,
    purge,
    consolidate,
)
