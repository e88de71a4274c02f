"""The feed: the changes of memories that any process committed, in the order of the audit log, from any point on.

The numbers of audit events are given before they are committed, so one may turn up behind a higher one. Within a chain
they cannot: a reader therefore remembers how far it has read each chain.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from alma.errors import PermissionDeniedError
from alma.events.event import MemoryEvent, MemoryEventType
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
from alma.storage.versions import record_of

Valid = Callable[[], bool]
T = TypeVar("T")


class Streams:
    """The open streams of a service; a commit of this process wakes them, others are looked for now and then."""

    def __init__(self, storage: StorageBackend, options: ServiceOptions, metrics: Metrics) -> None:
        self._storage = storage
        self._feed = Feed(storage)
        self._options = options
        self._metrics = metrics
        self._bells: set[asyncio.Event] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing = False
        # Streams may be many, and must not keep other requests from a thread.
        self._threads = anyio.CapacityLimiter(2)
        self._unsubscribe = storage.subscribe(lambda _: self._ring())

    def close(self) -> None:
        """End every stream."""
        self._closing = True
        self._unsubscribe()
        self._ring()

    async def open(self, request: Request, caller: Caller, valid: Valid) -> Response:
        """The stream of what the caller may see."""
        caller.require(Right.READ)
        if len(self._bells) >= self._options.max_streams or self._closing:
            raise HttpError(
                503, "too many streams are open: try again later", "unavailable", headers={"Retry-After": "5"}
            )
        may = visible_to(caller, _one(request, "project_id"))
        since = request.headers.get("last-event-id") or _one(request, "last_event_id")
        cursor = await self._in_thread(self._feed.end) if since is None else Cursor.parsed(since)
        body = self._told(cursor, may, valid)
        return StreamingResponse(body, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    async def _told(self, cursor: Cursor, may: May, valid: Valid) -> AsyncIterator[str]:
        self._loop = asyncio.get_running_loop()
        bell = asyncio.Event()
        self._bells.add(bell)
        self._metrics.streams.inc()
        try:
            yield f"retry: 2000\nid: {cursor}\n: connected\n\n"
            async for told in self._batches(cursor, may, valid, bell):
                yield told
        finally:
            self._bells.discard(bell)
            self._metrics.streams.dec()

    async def _batches(self, cursor: Cursor, may: May, valid: Valid, bell: asyncio.Event) -> AsyncIterator[str]:
        generation: str | None = None
        silent = 0.0
        while not self._closing:
            bell.clear()
            seen = await self._in_thread(partial(self._look, cursor, may, valid, generation))
            if seen is None:
                return
            generation, told, cursor, more = seen
            if told:
                yield "".join(map(_line, told))
                silent = 0.0
            elif silent >= self._options.heartbeat_seconds:
                yield ": still here\n\n"
                silent = 0.0
            if not more and not self._closing:
                silent += await _rung(bell, self._options.poll_seconds)

    def _look(
        self, cursor: Cursor, may: May, valid: Valid, generation: str | None
    ) -> tuple[str, list[Told], Cursor, bool] | None:
        """What is new, if anything was committed since; None when the caller's key is no longer good."""
        if not valid():
            return None
        now = self._storage.generation()
        if now == generation:
            return now, [], cursor, False
        told, reached, more = self._feed.read(cursor, may)
        return ("" if more else now), told, reached, more

    def _ring(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._ring_here)

    def _ring_here(self) -> None:
        for bell in self._bells:
            bell.set()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(work, limiter=self._threads)


def visible_to(caller: Caller, project_id: str | None) -> May:
    """What tells whether a caller may hear of a record: what it could have read is what it is told of."""
    if project_id is None and not caller.grant.is_limited:
        return lambda record: not isinstance(record, Memory) or caller.may_see(record)
    memories = caller.scope(project_id)
    try:
        learned: Scope | None = caller.project_scope(project_id)
    except PermissionDeniedError:
        learned = None

    def may(record: Record) -> bool:
        match record:
            case Memory():
                return matches(memories.predicate(record.spec), record) and caller.may_see(record)
            case UserPreference():
                return not caller.grant.is_limited or caller.grant.user_id in (ANYONE, record.user_id)
        return learned is not None and matches(learned.predicate(record.spec), record)

    return may


async def _rung(bell: asyncio.Event, seconds: float) -> float:
    """Wait for the bell, no longer than this; returns the seconds waited."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    with suppress(TimeoutError):
        await asyncio.wait_for(bell.wait(), seconds)
    return loop.time() - begun


def _line(told: Told) -> str:
    data = json.dumps({k: v for k, v in told.event.to_dict().items() if v not in (None, {})}, ensure_ascii=False)
    return f"id: {told.cursor}\nevent: {told.event.event_type}\ndata: {data}\n\n"


def _one(request: Request, name: str) -> str | None:
    given = request.query_params.getlist(name)
    if len(given) > 1 or any("\0" in value or not value for value in given):
        raise ArgumentError("request", name, given, "must be given once")
    return given[0] if given else None


MEMORIES: tuple[type[Record], ...] = (Memory, Heuristic, Outcome, DomainKnowledge, AntiPattern, UserPreference)
_KINDS = frozenset(cls.spec.kind for cls in MEMORIES)
_EVERYWHERE = Scope.everywhere()
_PAGE = 200
# How far behind the newest number an event of a quiet chain is looked for before all of the log is.
_USUAL_LAG = 5_000
_PLACE = re.compile(r"(\d{1,9})\.(\d{1,18})\.(\d{1,18})")
_LONGEST_CURSOR = 8_000

_TYPES = {
    "create": MemoryEventType.CREATED,
    "update": MemoryEventType.UPDATED,
    "delete": MemoryEventType.DELETED,
    "archive": MemoryEventType.ARCHIVED,
    "restore": MemoryEventType.RESTORED,
}

May = Callable[[Record], bool]


class Place(NamedTuple):
    """How far a chain was read: how many of its events, and the number of the last."""

    position: int
    number: int


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far the log was read."""

    places: Mapping[int, Place]

    def __str__(self) -> str:
        return "-".join(f"{chain}.{at.position}.{at.number}" for chain, at in sorted(self.places.items())) or "0.0.0"

    @classmethod
    def parsed(cls, text: str) -> Cursor:
        """The cursor that a client was given."""
        parts = [_PLACE.fullmatch(part) for part in text.split("-")] if len(text) <= _LONGEST_CURSOR else [None]
        if None in parts:
            raise ArgumentError("request", "Last-Event-ID", text[:80], "must be the id of an event of this stream")
        return cls({int(p[1]): Place(int(p[2]), int(p[3])) for p in parts if p is not None})


class Told(NamedTuple):
    """An event, and the cursor that continues behind it."""

    event: MemoryEvent
    cursor: Cursor


class Feed:
    """Reads the log of a store for callers who may see part of it."""

    def __init__(self, storage: StorageBackend) -> None:
        self._storage = storage

    def end(self) -> Cursor:
        """Behind everything that has happened so far."""
        with self._storage.snapshot() as tx:
            floor = max(0, _newest(tx) - _USUAL_LAG)
            return Cursor({head.chain: Place(head.length, floor) for head in tx.audit_heads()})

    def read(self, cursor: Cursor, may: May) -> tuple[list[Told], Cursor, bool]:
        """Some events behind the cursor that the caller may see, how far that is, and whether there is more."""
        with self._storage.snapshot() as tx:
            heads = {head.chain: head.length for head in tx.audit_heads()}
            behind = {
                chain: cursor.places.get(chain, Place(0, 0))
                for chain, length in heads.items()
                if length > cursor.places.get(chain, Place(0, 0)).position
            }
            if not behind:
                return [], cursor, False
            newest = _newest(tx)
            rows = [row for chain, place in sorted(behind.items()) for row in _rows(tx, chain, place, newest)]
            rows.sort(key=lambda row: row.id or 0)
            told, reached = _told(tx, rows[:_PAGE], cursor, may)
            more = any(length > reached.places.get(chain, Place(0, 0)).position for chain, length in heads.items())
            return told, reached, more


def _rows(tx: Transaction, chain: int, place: Place, newest: int) -> list[AuditEvent]:
    """The next events of a chain, which nearly always are among the newest of the log."""
    recent = _rows_above(tx, chain, place, max(place.number, newest - _USUAL_LAG))
    if recent and recent[0].chain_position == place.position + 1:
        return recent
    return _rows_above(tx, chain, place, place.number)


def _rows_above(tx: Transaction, chain: int, place: Place, number: int) -> list[AuditEvent]:
    where = And(
        Compare("id", "gt", number), Compare("chain", "eq", chain), Compare("chain_position", "gt", place.position)
    )
    return tx.find(AuditEvent, _EVERYWHERE, where, (Order("id"),), _PAGE)


def _newest(tx: Transaction) -> int:
    found = tx.find(AuditEvent, _EVERYWHERE, order=(Order("id", "desc"),), limit=1)
    return found[0].id or 0 if found else 0


def _told(tx: Transaction, rows: Iterable[AuditEvent], cursor: Cursor, may: May) -> tuple[list[Told], Cursor]:
    told: list[Told] = []
    places = dict(cursor.places)
    for row in rows:
        if row.chain is not None and row.chain_position is not None:
            places[row.chain] = Place(row.chain_position, row.id or 0)
        reached = Cursor(dict(places))
        told.extend(Told(event, reached) for event in _events(tx, row, may))
    return told, Cursor(places)


def _events(tx: Transaction, row: AuditEvent, may: May) -> Iterator[MemoryEvent]:
    if row.resource_type not in _KINDS or row.action not in _TYPES or not row.success:
        return
    cls = kind_named(row.resource_type)
    ids = row.resource_ids or (row.resource_id,)
    found = {str(record.key): record for record in tx.find(cls, _EVERYWHERE, In(cls.spec.key, ids))}
    for key in ids:
        record = found.get(key) or _last_known(tx, cls, key)
        if record is not None and may(record):
            yield MemoryEvent(
                _TYPES[row.action],
                cls.spec.kind,
                key,
                project_id=getattr(record, "project_id", None),
                agent=getattr(record, "agent", None) or getattr(record, "source_agent", None),
                user_id=getattr(record, "user_id", None),
                session_id=getattr(record, "session_id", None),
                timestamp=row.created_at,
                id=f"{row.id}-{key}",
            )


def _last_known(tx: Transaction, cls: type[Record], key: str) -> Record | None:
    """What a record that is gone was, as far as its history says."""
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
