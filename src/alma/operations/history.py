"""Operations on history: versions, what was known or true at a time, and the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from pydantic import AwareDatetime, Field

from alma.memory.audit_chain import Finding
from alma.memory.history import FieldChange
from alma.model.governance import AuditEvent
from alma.model.kinds import kind_named
from alma.model.memory import Memory
from alma.model.record import Record
from alma.model.scope import Scope
from alma.operations.access import Caller, Right
from alma.operations.base import ASKING_USER, InProject, Input, Limit, Name, Operation, Output, Text, operation

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
    user = caller.user(request.user_id)
    found = caller.store.history.search(
        Memory,
        request.query,
        caller.scope(request.project_id),
        limit=request.limit,
        mode=request.mode,
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
