"""Events and their emitter: subscriptions, and callbacks whose errors never reach the writer."""

from __future__ import annotations

import atexit
import inspect
import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from alma.clock import new_id, now
from alma.closeable import Closeable
from alma.errors import ValidationError
from alma.model.common import checked_name, checked_part
from alma.model.fields import JsonObject
from alma.storage.records import RecordStore
from alma.storage.transactional import Change

if TYPE_CHECKING:
    import asyncio


class MemoryEventType(StrEnum):
    """The kind of change."""

    CREATED = "created"
    UPDATED = "updated"
    DELETED = "deleted"
    ARCHIVED = "archived"
    RESTORED = "restored"
    CONSOLIDATED = "consolidated"


TYPE_OF_ACTION = {
    "create": MemoryEventType.CREATED,
    "update": MemoryEventType.UPDATED,
    "delete": MemoryEventType.DELETED,
    "archive": MemoryEventType.ARCHIVED,
    "restore": MemoryEventType.RESTORED,
}


@dataclass(frozen=True, slots=True)
class MemoryEvent:
    """A change of one memory.

    `memory_type` is the kind of record ("heuristic", "outcome", …). The event does not contain the text of the memory;
    `author` and `reason` are those of the write, and `payload` has further facts of the event type.
    """

    event_type: MemoryEventType
    memory_type: str
    memory_id: str
    project_id: str | None = None
    agent: str | None = None
    user_id: str | None = None
    session_id: str | None = None
    author: str | None = None
    reason: str | None = None
    payload: JsonObject = field(default_factory=dict)
    timestamp: datetime = field(default_factory=now)
    id: str = field(default_factory=new_id)

    def __post_init__(self) -> None:
        object.__setattr__(self, "event_type", checked_type(self.event_type))
        for name in ("memory_type", "memory_id"):
            checked_name("event", name, getattr(self, name))

    @classmethod
    def of(cls, change: Change) -> MemoryEvent:
        """The event of a committed change; unknown actions count as updates."""
        return cls(
            event_type=TYPE_OF_ACTION.get(change.action, MemoryEventType.UPDATED),
            memory_type=change.kind,
            memory_id=change.id,
            project_id=change.project_id,
            agent=change.agent,
            user_id=change.user_id,
            session_id=change.session_id,
            author=change.by.author,
            reason=change.by.reason,
            timestamp=change.at,
        )

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> MemoryEvent:
        """The event in a webhook's body; missing fields get their defaults."""
        known = {each.name for each in fields(cls)}
        told = {name: value for name, value in document.items() if name in known and value is not None}
        for name in ("event_type", "memory_type", "memory_id"):
            if name not in told:
                raise ValidationError("event", name, None, "is missing")
        if "timestamp" in told:
            told["timestamp"] = _moment(told["timestamp"])
        return cls(**told)

    def to_dict(self) -> JsonObject:
        """The event as a JSON object, which is also the webhook's body."""
        return {
            "id": self.id,
            "event_type": str(self.event_type),
            "memory_type": self.memory_type,
            "memory_id": self.memory_id,
            "project_id": self.project_id,
            "agent": self.agent,
            "user_id": self.user_id,
            "session_id": self.session_id,
            "author": self.author,
            "reason": self.reason,
            "payload": dict(self.payload),
            "timestamp": self.timestamp.isoformat(),
        }


def _moment(value: Any) -> datetime:
    try:
        read = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValidationError("event", "timestamp", value, "must be an ISO 8601 time") from None
    return read if read.tzinfo is not None else read.replace(tzinfo=UTC)


def checked_type(value: Any) -> MemoryEventType:
    """The event type, or an error that lists the types."""
    try:
        return MemoryEventType(value)
    except ValueError:
        known = ", ".join(MemoryEventType)
        raise ValidationError("event", "event_type", value, f"must be one of {known}") from None


def checked_types(values: Any) -> tuple[MemoryEventType, ...]:
    """Event types, given as one or several; empty for all."""
    if values is None:
        return ()
    if isinstance(values, str) or not isinstance(values, Iterable):
        return (checked_type(values),)
    return tuple(dict.fromkeys(checked_type(value) for value in values))


_log = logging.getLogger("alma.events")

Handler = Callable[[MemoryEvent], object]
Unsubscribe = Callable[[], None]
Types = MemoryEventType | str | Iterable[MemoryEventType | str]

_LONGEST_COROUTINE_SECONDS = 60.0


@dataclass(frozen=True, eq=False)
class _Subscription:
    """A callback, its event types (empty for all), and where it runs."""

    types: tuple[MemoryEventType, ...]
    handler: Handler
    in_background: bool
    loop: asyncio.AbstractEventLoop | None

    def wants(self, event: MemoryEvent) -> bool:
        return not self.types or event.event_type in self.types


class EventEmitter(Closeable):
    """Calls subscribers with events, in the order of their subscription.

    A callback runs in the writing thread after the commit. With `background=True`, or if it is a coroutine function, it
    runs on the emitter's thread; a coroutine runs on the event loop in which it was subscribed, if there was one.
    Errors of callbacks are logged. When more than `queue_size` events wait for the background thread, further ones are
    dropped, logged and counted in `dropped`.
    """

    def __init__(self, queue_size: int = 10_000) -> None:
        if isinstance(queue_size, bool) or not isinstance(queue_size, int) or queue_size < 1:
            raise ValidationError("emitter", "queue_size", queue_size, "must be a whole number of at least 1")
        self.dropped = 0
        self._lock = threading.RLock()
        self._subscriptions: tuple[_Subscription, ...] = ()
        self._sources: weakref.WeakKeyDictionary[RecordStore, Unsubscribe | None] = weakref.WeakKeyDictionary()
        self._background: BackgroundQueue[tuple[_Subscription, MemoryEvent]] = BackgroundQueue(
            "alma-events", _call, queue_size
        )

    # ------------------------------------------------------------------ subscriptions

    def subscribe(self, event_type: Types, handler: Handler, *, background: bool = False) -> Unsubscribe:
        """Call the handler for events of these types; returns a function that unsubscribes it."""
        types = checked_types(event_type)
        if not types:
            raise ValidationError("event", "event_type", event_type, "must name a type; subscribe_all takes them all")
        return self._subscribe(types, handler, background)

    def subscribe_all(self, handler: Handler, *, background: bool = False) -> Unsubscribe:
        """Call the handler for all events; returns a function that unsubscribes it."""
        return self._subscribe((), handler, background)

    def unsubscribe(self, event_type: Types, handler: Handler) -> bool:
        """Remove the handler's subscription to exactly these types; False if there is none."""
        types = checked_types(event_type)
        return self._drop(lambda each: each.handler == handler and set(each.types) == set(types))

    def unsubscribe_all(self, handler: Handler) -> bool:
        """Remove all subscriptions of the handler; False if there are none."""
        return self._drop(lambda each: each.handler == handler)

    @property
    def has_subscribers(self) -> bool:
        """Whether there are subscribers."""
        return bool(self._subscriptions)

    def _subscribe(self, types: tuple[MemoryEventType, ...], handler: Handler, background: bool) -> Unsubscribe:
        if not callable(handler):
            raise ValidationError("event", "handler", handler, "must be a function that takes an event")
        is_coroutine = _makes_coroutines(handler)
        made = _Subscription(types, handler, background or is_coroutine, _loop_here() if is_coroutine else None)
        with self._lock:
            self._subscriptions = (*self._subscriptions, made)
            self._listen()
        return partial(self._end, made)

    def _end(self, subscription: _Subscription) -> None:
        self._drop(lambda each: each is subscription)

    def _drop(self, ends: Callable[[_Subscription], bool]) -> bool:
        with self._lock:
            before = len(self._subscriptions)
            self._subscriptions = tuple(each for each in self._subscriptions if not ends(each))
            self._listen()
            return len(self._subscriptions) < before

    # ------------------------------------------------------------------ sources of events

    def watch(self, storage: RecordStore) -> Unsubscribe:
        """Emit an event for every change committed through this store; returns a function that stops it.

        Watching a store twice has no further effect. The store has no listener while there are no subscribers.
        """
        with self._lock:
            self._sources.setdefault(storage, None)
            self._listen()
        return partial(self._unwatch, weakref.ref(storage))

    def _unwatch(self, source: weakref.ref[RecordStore]) -> None:
        storage = source()
        if storage is None:
            return
        with self._lock:
            end = self._sources.pop(storage, None)
        if end is not None:
            end()

    def _listen(self) -> None:
        """Listen to every watched store while there are subscribers."""
        for storage, end in list(self._sources.items()):
            if self._subscriptions and end is None:
                self._sources[storage] = storage.subscribe(self._publish)
            elif not self._subscriptions and end is not None:
                self._sources[storage] = None
                end()

    def _publish(self, changes: Sequence[Change]) -> None:
        for change in changes:
            self.emit(MemoryEvent.of(change))

    # ------------------------------------------------------------------ delivery

    def emit(self, event: MemoryEvent) -> None:
        """Call the subscribers of an event."""
        for subscription in self._subscriptions:
            if not subscription.wants(event):
                continue
            if not subscription.in_background:
                _call((subscription, event))
            elif not self._background.put((subscription, event)):
                self._count_dropped(event)

    def _count_dropped(self, event: MemoryEvent) -> None:
        with self._lock:
            self.dropped += 1
            dropped = self.dropped
        _log.warning("an event was dropped", extra={"event_id": event.id, "dropped": dropped})

    def drain(self, timeout_seconds: float = 10.0) -> bool:
        """Wait until the background thread has handled all events so far; False on timeout."""
        return self._background.drain(timeout_seconds)

    def close(self, timeout_seconds: float = 10.0) -> None:
        """Handle queued events, then remove all subscriptions."""
        self._drop(lambda _: True)
        left = self._background.close(timeout_seconds)
        if left:
            _log.warning("events were dropped when the emitter was closed", extra={"left": left})


def get_emitter() -> EventEmitter:
    """The emitter shared by this process."""
    return _EMITTER


def _call(item: tuple[_Subscription, MemoryEvent]) -> None:
    subscription, event = item
    try:
        result = subscription.handler(event)
        if inspect.iscoroutine(result):
            _finish(result, subscription.loop)
    except Exception:  # noqa: BLE001 - errors of a handler must not reach the writer
        _log.exception("a handler of events failed", extra={"event_id": event.id, "event_type": str(event.event_type)})


def _finish(coroutine: Coroutine[Any, Any, object], loop: asyncio.AbstractEventLoop | None) -> None:
    import asyncio

    if loop is None:
        asyncio.run(coroutine)
        return
    try:
        asyncio.run_coroutine_threadsafe(coroutine, loop).result(_LONGEST_COROUTINE_SECONDS)
    finally:
        # The event loop is closed, so the coroutine never started.
        if inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
            coroutine.close()


def _makes_coroutines(handler: Handler) -> bool:
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(type(handler).__call__)


def _loop_here() -> asyncio.AbstractEventLoop | None:
    import asyncio

    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def checked_emitter(owner: str, emitter: EventEmitter) -> EventEmitter:
    """The given emitter, checked."""
    return checked_part(owner, "emitter", emitter, EventEmitter, "an EventEmitter, as get_emitter() gives one")


Item = TypeVar("Item")
_SECONDS_AT_EXIT = 5.0


class BackgroundQueue(Generic[Item]):
    """Runs work items one after another on its own thread, which starts with the first item.

    An item is rejected when the queue is full. At process exit queued items get a few seconds.
    """

    def __init__(self, name: str, work: Callable[[Item], object], capacity: int) -> None:
        self._name = name
        self._work = work
        self._capacity = capacity
        self._closed = False
        self._reset()
        _running.add(self)

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._queue: deque[Item] = deque()
        self._thread: threading.Thread | None = None
        self._is_busy = False
        self._ended = threading.Event()

    def put(self, item: Item) -> bool:
        """Queue an item; False if the queue is full or closed."""
        if self._pid != os.getpid():
            # A forked process does not have the thread; its parent handles what was queued.
            self._reset()
        with self._changed:
            if self._closed or len(self._queue) >= self._capacity:
                return False
            self._queue.append(item)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._changed.notify_all()
            return True

    def pause(self, seconds: float) -> bool:
        """Wait between two attempts; False if the queue was closed in the meantime."""
        return not self._ended.wait(seconds)

    def drain(self, timeout_seconds: float) -> bool:
        """Wait until all queued items are done; False on timeout."""
        if threading.current_thread() is self._thread:
            return False
        with self._changed:
            return self._changed.wait_for(lambda: not self._queue and not self._is_busy, timeout_seconds)

    def close(self, timeout_seconds: float) -> int:
        """Accept nothing more and finish queued items until the timeout; returns the number of dropped items."""
        deadline = time.monotonic() + timeout_seconds
        with self._changed:
            self._closed = True
        self.drain(timeout_seconds)
        with self._changed:
            left = len(self._queue) + (self._is_busy and threading.current_thread() is not self._thread)
            self._queue.clear()
            self._ended.set()
            self._changed.notify_all()
        if self._thread is not None and threading.current_thread() is not self._thread:
            self._thread.join(max(0.1, deadline - time.monotonic()))
        return left

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._ended.is_set())
                if not self._queue:
                    return
                item = self._queue.popleft()
                self._is_busy = True
            try:
                self._work(item)
            except Exception:  # noqa: BLE001 - one piece of work must not end those behind it
                _log.exception("work in the background failed", extra={"thread_name": self._name})
            with self._changed:
                self._is_busy = False
                self._changed.notify_all()


_running: weakref.WeakSet[BackgroundQueue[Any]] = weakref.WeakSet()


@atexit.register
def _drain_all() -> None:
    deadline = time.monotonic() + _SECONDS_AT_EXIT
    for each in list(_running):
        left = each.close(max(0.0, deadline - time.monotonic()))
        if left:
            _log.warning("the process ended before all events were delivered", extra={"left": left})


_EMITTER = EventEmitter()
