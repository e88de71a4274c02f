"""Streams: tells callers of changes as they are committed, whichever process made them, as server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from alma.errors import PermissionDeniedError
from alma.model.learning import UserPreference
from alma.model.memory import Memory
from alma.model.query import matches
from alma.model.record import Record
from alma.model.scope import Scope
from alma.operations.access import ANYONE, Caller, Right
from alma.rest.answers import ArgumentError, HttpError
from alma.rest.feed import Cursor, Feed, May, Told
from alma.rest.metrics import Metrics
from alma.rest.options import ServiceOptions
from alma.storage.base import StorageBackend

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
