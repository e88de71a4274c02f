"""Operations on time: what came in and what changed, as a timeline, as counts, and between two moments."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

from pydantic import AwareDatetime, Field

from alma.clock import now
from alma.errors import ValidationError
from alma.memory.history import FieldChange, Version
from alma.model.governance import ArchiveCause, ArchivedRecord
from alma.model.learning import Outcome
from alma.model.memory import Memory, MemoryVersion
from alma.model.query import And, Compare, In, Order
from alma.model.scope import Scope
from alma.model.workspace import Session, SessionHandoff
from alma.operations.access import Caller, Right
from alma.operations.base import ASKING_USER, InProject, Limit, Name, Operation, Output, operation
from alma.operations.places import MemoryKind, Place, place_of, places
from alma.operations.rows import row_of

_EVERYWHERE = Scope.everywhere()
_MOST_BUCKETS = 400
# Their time of creation has an index: each bucket is counted by itself.
_INDEXED = (Memory, Outcome)
_LONGEST = 300
_COUNTED_EXACTLY = 20_000


class InRange(InProject):
    since: AwareDatetime | None = Field(None, description="From this time on.")
    until: AwareDatetime | None = Field(None, description="Before this time; default: now.")
    agent: Name | None = None


class CountOverTime(InRange):
    days: float = Field(30, gt=0, le=36_500, description="The length of the range, if since is not given.")
    buckets: int = Field(30, ge=1, le=_MOST_BUCKETS, description="The number of equal parts of the range.")


class TimeCounts(Output):
    starts: Sequence[datetime] = Field(description="The start of each part.")
    until: datetime
    counts: Mapping[str, Sequence[int]] = Field(
        description="For each kind, the number of records created in each part."
    )
    succeeded: Sequence[int] = Field(description="The outcomes that succeeded in each part.")
    archived: Mapping[str, Sequence[int]] = Field(
        description="For each cause (forgotten, quarantined, merged …), what was put into the archive in each part."
    )
    totals: Mapping[str, int] = Field(
        description="The number of records of each kind; with until, of those that were created before."
    )


@operation("history", Right.READ, example={"days": 30, "buckets": 30})
def count_over_time(caller: Caller, request: CountOverTime) -> TimeCounts:
    """Count what came in, what succeeded and what was archived, in equal parts of a time range."""
    until = request.until or now()
    since = request.since or until - timedelta(days=request.days)
    if since >= until:
        raise ValidationError("count_over_time", "since", since, "must be before until")
    edges = [since + (until - since) * i / request.buckets for i in range(request.buckets + 1)]
    counted = _Counter(caller, request, edges)
    found = places(caller, request.project_id)
    outcomes = place_of(caller, Outcome, request.project_id)
    return TimeCounts(
        starts=edges[:-1],
        until=until,
        counts={place.kind: counted.of(place) for place in found},
        succeeded=[0] * request.buckets if outcomes is None else counted.of(outcomes, Compare("success", "eq", True)),
        archived=counted.archived(),
        totals={place.kind: counted.total(place) for place in found},
    )


class _Counter:
    """Counts records in the parts of a range."""

    def __init__(self, caller: Caller, request: CountOverTime, edges: Sequence[datetime]) -> None:
        self._storage = caller.store.storage
        self._caller, self._request, self._edges = caller, request, edges

    def of(self, place: Place, *conditions: Any) -> list[int]:
        """The number of records created in each part."""
        mine = [*conditions, *([place.of_agent(self._request.agent)] if self._request.agent else [])]
        if place.cls in _INDEXED and self._request.agent is None:
            pairs = zip(self._edges, self._edges[1:], strict=False)
            # Counts cover private memories as well, as the statistics of a project do.
            parts = [And(*place.between(*pair), *conditions) for pair in pairs]
            return [self._storage.count(place.cls, place.scope, part) for part in parts]
        where = And(*place.between(self._edges[0], self._edges[-1]), *mine)
        return self._in_parts(
            moment for (moment,) in self._storage.values(place.cls, (place.created,), place.scope, where)
        )

    def total(self, place: Place) -> int:
        """The number of records that there are; of very many, the number that the store last counted."""
        agent, until = self._request.agent, self._request.until
        if agent is None and until is None:
            size = self._storage.size(place.cls, place.scope)
            return size if size > _COUNTED_EXACTLY else self._storage.count(place.cls, place.scope)
        chosen = [] if agent is None else [place.of_agent(agent)]
        return self._storage.count(place.cls, place.scope, And(*place.between(None, until), *chosen))

    def archived(self) -> dict[str, list[int]]:
        """The number of records put into the archive, for each cause."""
        scope = self._caller.scope(self._request.project_id, agent=self._request.agent)

        def within(cause: ArchiveCause, start: datetime, end: datetime) -> int:
            times = (Compare("archived_at", "ge", start), Compare("archived_at", "lt", end))
            return self._storage.count(ArchivedRecord, scope, And(Compare("cause", "eq", cause), *times))

        found = [cause for cause in ArchiveCause if within(cause, self._edges[0], self._edges[-1])]
        parts = list(zip(self._edges, self._edges[1:], strict=False))
        return {str(cause): [within(cause, *part) for part in parts] for cause in sorted(found)}

    def _in_parts(self, moments: Iterator[datetime | None]) -> list[int]:
        counts = [0] * (len(self._edges) - 1)
        for moment in moments:
            place = -1 if moment is None else bisect_right(self._edges, moment) - 1
            if 0 <= place < len(counts):
                counts[place] += 1
        return counts


# ---------------------------------------------------------------------- the timeline


class ReadTimeline(InRange):
    kinds: Sequence[MemoryKind] | None = Field(None, max_length=6, description="Only these kinds; default: all.")
    sessions: bool = Field(True, description="Also the starts and ends of sessions, and handoffs.")
    limit: Limit = 50
    user_id: Name | None = ASKING_USER


class TimelineEvent(Output):
    at: datetime
    event: str = Field(description="created, succeeded, failed, archived, session_started, session_ended or handoff")
    kind: str
    id: str
    agent: str | None = None
    title: str = ""
    text: str = ""
    session_id: str | None = None


class Timeline(Output):
    events: Sequence[TimelineEvent]
    next_until: datetime | None = Field(None, description="Pass it as until for the next page.")


@operation("history", Right.READ, example={"limit": 20})
def timeline(caller: Caller, request: ReadTimeline) -> Timeline:
    """List what happened, newest first: memories, outcomes, what was archived, sessions and handoffs."""
    found: list[TimelineEvent] = []
    for place in places(caller, request.project_id, request.kinds, request.user_id):
        found += _created(caller, place, request)
    found += _archived(caller, request)
    if request.sessions:
        found += _sessions(caller, request)
        found += _handoffs(caller, request)
    newest = sorted(found, key=lambda each: (each.at, each.id), reverse=True)
    page = newest[: request.limit]
    return Timeline(events=page, next_until=page[-1].at if len(newest) > request.limit else None)


def _created(caller: Caller, place: Place, request: ReadTimeline) -> Iterator[TimelineEvent]:
    where = place.within(
        *place.between(request.since, request.until), *([place.of_agent(request.agent)] if request.agent else [])
    )
    order = (Order(place.created, "desc"),)
    for record in caller.store.storage.find(place.cls, place.scope, where, order, request.limit + 1):
        row = row_of(record, _LONGEST)
        if row.created_at is None:
            continue
        event = "created" if row.success is None else "succeeded" if row.success else "failed"
        yield TimelineEvent(
            at=row.created_at,
            event=event,
            kind=row.kind,
            id=row.id,
            agent=row.agent,
            title=row.title,
            text=row.text,
            session_id=row.session_id,
        )


def _within(name: str, request: InRange) -> list[Compare]:
    limits = (("ge", request.since), ("lt", request.until))
    return [Compare(name, op, moment) for op, moment in limits if moment is not None]  # type: ignore[arg-type]


def _archived(caller: Caller, request: ReadTimeline) -> Iterator[TimelineEvent]:
    scope = caller.scope(request.project_id, agent=request.agent)
    chosen = [In("kind", list(request.kinds))] if request.kinds else []
    order = (Order("archived_at", "desc"),)
    rows: list[ArchivedRecord] = []
    # The archive is indexed by cause.
    for cause in ArchiveCause:
        where = And(Compare("cause", "eq", cause), *_within("archived_at", request), *chosen)
        rows += caller.store.storage.find(ArchivedRecord, scope, where, order, request.limit + 1)
    for row in rows:
        record = caller.store.archive.record(row)
        if isinstance(record, Memory) and not caller.may_see(record, request.user_id):
            continue
        shown = row_of(record, _LONGEST)
        yield TimelineEvent(
            at=row.archived_at,
            event=str(row.cause),
            kind=row.kind,
            id=row.record_id,
            agent=row.agent,
            title=row.reason or shown.title,
            text=shown.text,
        )


def _sessions(caller: Caller, request: ReadTimeline) -> Iterator[TimelineEvent]:
    scope = caller.scope(request.project_id, agent=request.agent)
    for name, event in (("created_at", "session_started"), ("ended_at", "session_ended")):
        where = And(*_within(name, request))
        for each in caller.store.storage.find(Session, scope, where, (Order(name, "desc"),), request.limit + 1):
            at = getattr(each, name)
            if at is not None:
                text = (each.summary if event == "session_ended" else each.goal) or ""
                yield TimelineEvent(
                    at=at,
                    event=event,
                    kind="session",
                    id=each.id,
                    agent=each.agent,
                    title=each.name or each.goal or "",
                    text=text[:_LONGEST],
                    session_id=each.id,
                )


def _handoffs(caller: Caller, request: ReadTimeline) -> Iterator[TimelineEvent]:
    place = place_of(caller, SessionHandoff, request.project_id)
    if place is None or caller.scope(request.project_id).user_id is not None:
        return
    where = And(*_within("created_at", request), *([place.of_agent(request.agent)] if request.agent else []))
    order = (Order("created_at", "desc"),)
    for each in caller.store.storage.find(SessionHandoff, place.scope, where, order, request.limit + 1):
        yield TimelineEvent(
            at=each.created_at,
            event="handoff",
            kind="session_handoff",
            id=each.id,
            agent=each.agent,
            title=each.last_action[:_LONGEST],
            text="; ".join(each.next_steps)[:_LONGEST],
            session_id=each.session_id,
        )


# ---------------------------------------------------------------------- between two moments


class Between(InProject):
    since: AwareDatetime = Field(description="The earlier moment.")
    until: AwareDatetime | None = Field(None, description="The later moment; default: now.")
    kinds: Sequence[MemoryKind] | None = Field(None, max_length=6, description="Only these kinds; default: all.")
    agent: Name | None = None
    limit: Limit = 50
    user_id: Name | None = ASKING_USER


class WhatChanged(Output):
    change: Literal["created", "changed", "removed"]
    kind: str
    id: str
    title: str = ""
    text: str = ""
    agent: str | None = None
    at: datetime
    author: str | None = None
    reason: str | None = None
    changes: Sequence[FieldChange] = Field(default=(), description="The fields that differ between the two moments.")


class ChangesBetween(Output):
    since: datetime
    until: datetime
    changes: Sequence[WhatChanged]
    more: bool = Field(description="Whether there are more changes than the limit.")


@operation("history", Right.READ, example={"since": "2026-01-01T00:00:00Z", "until": "2026-02-01T00:00:00Z"})
def changes_between(caller: Caller, request: Between) -> ChangesBetween:
    """Show what differs between two moments: what was created, changed and removed, newest first."""
    until = request.until or now()
    if request.since >= until:
        raise ValidationError("changes_between", "since", request.since, "must be before until")
    found = [
        each
        for place in places(caller, request.project_id, request.kinds, request.user_id)
        for each in (*_new(caller, place, request, until), *_changed(caller, place, request, until))
    ]
    newest = sorted(found, key=lambda each: (each.at, each.id), reverse=True)
    return ChangesBetween(
        since=request.since, until=until, changes=newest[: request.limit], more=len(newest) > request.limit
    )


def _of_agent(place: Place, agent: str | None) -> list[Any]:
    return [] if agent is None else [place.of_agent(agent)]


def _new(caller: Caller, place: Place, request: Between, until: datetime) -> Iterator[WhatChanged]:
    where = place.within(*place.between(request.since, until), *_of_agent(place, request.agent))
    order = (Order(place.created, "desc"),)
    for record in caller.store.storage.find(place.cls, place.scope, where, order, request.limit + 1):
        row = row_of(record, _LONGEST)
        yield WhatChanged(
            change="created",
            kind=row.kind,
            id=row.id,
            title=row.title,
            text=row.text,
            agent=row.agent,
            at=row.created_at or until,
        )


def _changed(caller: Caller, place: Place, request: Between, until: datetime) -> Iterator[WhatChanged]:
    """What existed at the first moment and is different, or gone, at the second one."""
    inside = And(
        Compare("kind", "eq", place.kind),
        Compare("version_number", "gt", 1),
        Compare("created_at", "ge", request.since),
        Compare("created_at", "lt", until),
    )
    rows = caller.store.storage.values(
        MemoryVersion, ("memory_id",), _EVERYWHERE, inside, (Order("created_at", "desc"),), 20 * request.limit
    )
    ids = _stored_before(caller, place, list(dict.fromkeys(record_id for (record_id,) in rows)), request.since)
    named = place.within(In(place.cls.spec.key, ids), *_of_agent(place, request.agent))
    here = {key for (key,) in caller.store.storage.values(place.cls, (place.cls.spec.key,), place.scope, named)}
    told = 0
    for record_id in ids:
        if told > request.limit:
            return
        each = _difference(caller, place, record_id, request, until, exists=record_id in here)
        if each is not None:
            told += 1
            yield each


def _stored_before(caller: Caller, place: Place, ids: Sequence[str], moment: datetime) -> list[str]:
    """Those of these records that had a version before a moment."""
    earlier = And(Compare("kind", "eq", place.kind), In("memory_id", ids), Compare("created_at", "lt", moment))
    known = {key for (key,) in caller.store.storage.values(MemoryVersion, ("memory_id",), _EVERYWHERE, earlier)}
    return [record_id for record_id in ids if record_id in known]


def _difference(
    caller: Caller, place: Place, record_id: str, request: Between, until: datetime, *, exists: bool
) -> WhatChanged | None:
    versions = caller.store.history.versions(place.cls, record_id, place.scope)
    before = [each for each in versions if each.recorded_at < request.since]
    during = [each for each in versions if request.since <= each.recorded_at < until]
    if not before or not during or before[-1].record is None:
        return None
    last: Version[Any] = during[-1]
    if last.record is not None and not exists and request.agent is None and place.cls is Memory:
        # Visible to its user alone.
        return None
    row = row_of(last.record or before[-1].record, _LONGEST)
    if request.agent is not None and row.agent != request.agent:
        return None
    changes = caller.store.history.compare(place.cls, record_id, before[-1].number, last.number, place.scope)
    return WhatChanged(
        change="removed" if last.record is None else "changed",
        kind=row.kind,
        id=row.id,
        title=row.title,
        text=row.text,
        agent=row.agent,
        at=last.recorded_at,
        author=last.author,
        reason=last.reason,
        changes=[] if last.record is None else changes,
    )


TIMELINE: tuple[Operation[Any, Any], ...] = (count_over_time, timeline, changes_between)
