"""Server-sent events: changes of memories as they are committed by any process, in the order of the audit log.

Audit events get their numbers before they commit, so an event may appear behind a higher number. Within one hash chain
the order is exact, so a cursor stores how far each chain was read.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from alma.errors import PermissionDeniedError
from alma.events.emitter import TYPE_OF_ACTION, MemoryEvent
from alma.lazy import lazy_regex
from alma.model.governance import AuditEvent
from alma.model.kinds import kind_named
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.memory import Memory, MemoryVersion
from alma.model.query import And, Compare, In, Order, matches
from alma.model.record import Record
from alma.model.scope import Scope
from alma.operations.access import ANYONE, Caller, Right
from alma.rest.metrics import Metrics
from alma.rest.options import ServiceOptions
from alma.rest.responses import ArgumentError, HttpError
from alma.storage.base import StorageBackend, Transaction
from alma.storage.history import record_of

Valid = Callable[[], bool]
T = TypeVar("T")

MEMORIES: tuple[type[Record], ...] = (Memory, Heuristic, Outcome, DomainKnowledge, AntiPattern, UserPreference)
_KINDS = frozenset(cls.spec.kind for cls in MEMORIES)
_EVERYWHERE = Scope.everywhere()
_PAGE = 200
# How far behind the newest number an event of a quiet chain is searched before the whole log is.
_USUAL_LAG = 5_000
_POSITION = lazy_regex(r"(\d{1,9})\.(\d{1,18})\.(\d{1,18})")
_LONGEST_CURSOR = 8_000

Visible = Callable[[Record], bool]


class EventStreams:
    """The open event streams of a service; commits of this process wake them, commits of others are polled."""

    def __init__(self, storage: StorageBackend, options: ServiceOptions, metrics: Metrics) -> None:
        self._storage = storage
        self._feed = ChangeFeed(storage)
        self._options = options
        self._metrics = metrics
        self._wakeups: set[asyncio.Event] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing = False
        # EventStreams have their own threads, so that they do not block other requests.
        self._threads = anyio.CapacityLimiter(2)
        self._unsubscribe = storage.subscribe(lambda _: self._wake())

    def close(self) -> None:
        """End every stream."""
        self._closing = True
        self._unsubscribe()
        self._wake()

    async def open(self, request: Request, caller: Caller, valid: Valid) -> Response:
        """A stream of the changes that the caller may see."""
        caller.require(Right.READ)
        if len(self._wakeups) >= self._options.max_streams or self._closing:
            raise HttpError(
                503, "too many streams are open: try again later", "unavailable", headers={"Retry-After": "5"}
            )
        visible = visible_to(caller, _single_parameter(request, "project_id"))
        since = request.headers.get("last-event-id") or _single_parameter(request, "last_event_id")
        cursor = await self._in_thread(self._feed.end) if since is None else Cursor.parsed(since)
        body = self._body(cursor, visible, valid)
        return StreamingResponse(body, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    async def _body(self, cursor: Cursor, visible: Visible, valid: Valid) -> AsyncIterator[str]:
        self._loop = asyncio.get_running_loop()
        wakeup = asyncio.Event()
        self._wakeups.add(wakeup)
        self._metrics.streams.inc()
        try:
            yield f"retry: 2000\nid: {cursor}\n: connected\n\n"
            async for events in self._batches(cursor, visible, valid, wakeup):
                yield events
        finally:
            self._wakeups.discard(wakeup)
            self._metrics.streams.dec()

    async def _batches(
        self, cursor: Cursor, visible: Visible, valid: Valid, wakeup: asyncio.Event
    ) -> AsyncIterator[str]:
        generation: str | None = None
        silent = 0.0
        while not self._closing:
            wakeup.clear()
            seen = await self._in_thread(partial(self._read, cursor, visible, valid, generation))
            if seen is None:
                return
            generation, events, cursor, more = seen
            if events:
                yield "".join(map(_line, events))
                silent = 0.0
            elif silent >= self._options.heartbeat_seconds:
                yield ": still here\n\n"
                silent = 0.0
            if not more and not self._closing:
                silent += await _woken(wakeup, self._options.poll_seconds)

    def _read(
        self, cursor: Cursor, visible: Visible, valid: Valid, generation: str | None
    ) -> tuple[str, list[StreamedEvent], Cursor, bool] | None:
        """New events, or None if the caller's key is no longer valid."""
        if not valid():
            return None
        now = self._storage.generation()
        if now == generation:
            return now, [], cursor, False
        events, reached, more = self._feed.read(cursor, visible)
        return ("" if more else now), events, reached, more

    def _wake(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake_streams)

    def _wake_streams(self) -> None:
        for wakeup in self._wakeups:
            wakeup.set()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(work, limiter=self._threads)


def visible_to(caller: Caller, project_id: str | None) -> Visible:
    """A predicate for records whose changes the caller may see: those that it could read."""
    if project_id is None and not caller.grant.is_limited:
        return lambda record: not isinstance(record, Memory) or caller.may_see(record)
    memories = caller.scope(project_id)
    try:
        learned: Scope | None = caller.project_scope(project_id)
    except PermissionDeniedError:
        learned = None

    def visible(record: Record) -> bool:
        match record:
            case Memory():
                return matches(memories.predicate(record.spec), record) and caller.may_see(record)
            case UserPreference():
                return not caller.grant.is_limited or caller.grant.user_id in (ANYONE, record.user_id)
        return learned is not None and matches(learned.predicate(record.spec), record)

    return visible


async def _woken(wakeup: asyncio.Event, seconds: float) -> float:
    """Wait for the event or the timeout; returns the seconds waited."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    with suppress(TimeoutError):
        await asyncio.wait_for(wakeup.wait(), seconds)
    return loop.time() - begun


def _line(events: StreamedEvent) -> str:
    data = json.dumps({k: v for k, v in events.event.to_dict().items() if v not in (None, {})}, ensure_ascii=False)
    return f"id: {events.cursor}\nevent: {events.event.event_type}\ndata: {data}\n\n"


def _single_parameter(request: Request, name: str) -> str | None:
    given = request.query_params.getlist(name)
    if len(given) > 1 or any("\0" in value or not value for value in given):
        raise ArgumentError("request", name, given, "must be given once")
    return given[0] if given else None


class ChainPosition(NamedTuple):
    """How far a hash chain was read: the number of its events, and the id of the last one."""

    position: int
    number: int


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far the audit log was read, by hash chain."""

    places: Mapping[int, ChainPosition]

    def __str__(self) -> str:
        return "-".join(f"{chain}.{at.position}.{at.number}" for chain, at in sorted(self.places.items())) or "0.0.0"

    @classmethod
    def parsed(cls, text: str) -> Cursor:
        """The cursor in a Last-Event-ID header."""
        parts = [_POSITION.fullmatch(part) for part in text.split("-")] if len(text) <= _LONGEST_CURSOR else [None]
        if None in parts:
            raise ArgumentError("request", "Last-Event-ID", text[:80], "must be the id of an event of this stream")
        return cls({int(p[1]): ChainPosition(int(p[2]), int(p[3])) for p in parts if p is not None})


class StreamedEvent(NamedTuple):
    """An event and the cursor behind it."""

    event: MemoryEvent
    cursor: Cursor


class ChangeFeed:
    """Reads changes from the audit log, filtered by what the caller may see."""

    def __init__(self, storage: StorageBackend) -> None:
        self._storage = storage

    def end(self) -> Cursor:
        """The cursor behind everything committed so far."""
        with self._storage.snapshot() as tx:
            floor = max(0, _newest(tx) - _USUAL_LAG)
            return Cursor({head.chain: ChainPosition(head.length, floor) for head in tx.audit_heads()})

    def read(self, cursor: Cursor, visible: Visible) -> tuple[list[StreamedEvent], Cursor, bool]:
        """Some events behind the cursor, the cursor behind them, and whether there are more."""
        with self._storage.snapshot() as tx:
            heads = {head.chain: head.length for head in tx.audit_heads()}
            behind = {
                chain: cursor.places.get(chain, ChainPosition(0, 0))
                for chain, length in heads.items()
                if length > cursor.places.get(chain, ChainPosition(0, 0)).position
            }
            if not behind:
                return [], cursor, False
            newest = _newest(tx)
            rows = [row for chain, place in sorted(behind.items()) for row in _rows(tx, chain, place, newest)]
            rows.sort(key=lambda row: row.id or 0)
            events, reached = _stream_events(tx, rows[:_PAGE], cursor, visible)
            more = any(
                length > reached.places.get(chain, ChainPosition(0, 0)).position for chain, length in heads.items()
            )
            return events, reached, more


def _rows(tx: Transaction, chain: int, place: ChainPosition, newest: int) -> list[AuditEvent]:
    """The next events of a chain, which are nearly always among the newest of the log."""
    recent = _rows_above(tx, chain, place, max(place.number, newest - _USUAL_LAG))
    if recent and recent[0].chain_position == place.position + 1:
        return recent
    return _rows_above(tx, chain, place, place.number)


def _rows_above(tx: Transaction, chain: int, place: ChainPosition, number: int) -> list[AuditEvent]:
    where = And(
        Compare("id", "gt", number), Compare("chain", "eq", chain), Compare("chain_position", "gt", place.position)
    )
    return tx.find(AuditEvent, _EVERYWHERE, where, (Order("id"),), _PAGE)


def _newest(tx: Transaction) -> int:
    found = tx.find(AuditEvent, _EVERYWHERE, order=(Order("id", "desc"),), limit=1)
    return found[0].id or 0 if found else 0


def _stream_events(
    tx: Transaction, rows: Iterable[AuditEvent], cursor: Cursor, visible: Visible
) -> tuple[list[StreamedEvent], Cursor]:
    events: list[StreamedEvent] = []
    places = dict(cursor.places)
    for row in rows:
        if row.chain is not None and row.chain_position is not None:
            places[row.chain] = ChainPosition(row.chain_position, row.id or 0)
        reached = Cursor(dict(places))
        events.extend(StreamedEvent(event, reached) for event in _events(tx, row, visible))
    return events, Cursor(places)


def _events(tx: Transaction, row: AuditEvent, visible: Visible) -> Iterator[MemoryEvent]:
    if row.resource_type not in _KINDS or row.action not in TYPE_OF_ACTION or not row.success:
        return
    cls = kind_named(row.resource_type)
    ids = row.resource_ids or (row.resource_id,)
    found = {str(record.key): record for record in tx.find(cls, _EVERYWHERE, In(cls.spec.key, ids))}
    for key in ids:
        record = found.get(key) or _last_version(tx, cls, key)
        if record is not None and visible(record):
            yield MemoryEvent(
                TYPE_OF_ACTION[row.action],
                cls.spec.kind,
                key,
                project_id=getattr(record, "project_id", None),
                agent=getattr(record, "agent", None) or getattr(record, "source_agent", None),
                user_id=getattr(record, "user_id", None),
                session_id=getattr(record, "session_id", None),
                timestamp=row.created_at,
                id=f"{row.id}-{key}",
            )


def _last_version(tx: Transaction, cls: type[Record], key: str) -> Record | None:
    """The last version of a deleted record, if its history has one."""
    if not cls.spec.versioned:
        return None
    rows = tx.find(
        MemoryVersion,
        _EVERYWHERE,
        And(Compare("kind", "eq", cls.spec.kind), Compare("memory_id", "eq", key)),
        (Order("version_number", "desc"),),
        5,
    )
    kept = next((row for row in rows if row.record_json is not None), None)
    return None if kept is None else record_of(kept, cls, None)
