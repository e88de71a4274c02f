"""Webhooks: deliver events over HTTP, signed and with retries, without delaying writers."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Protocol
from urllib.parse import urlsplit

from alma import clock
from alma.closeable import Closeable
from alma.errors import ALMAError, ConfigurationError
from alma.events.delivery import (
    DELIVERY_HEADER,
    EVENT_HEADER,
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    WebhookConfig,
    WebhookStats,
    send,
    sign,
)
from alma.events.emitter import (
    BackgroundQueue,
    EventEmitter,
    Handler,
    MemoryEvent,
    MemoryEventType,
    Unsubscribe,
    checked_emitter,
    get_emitter,
)
from alma.model.kinds import KINDS, kind_named
from alma.model.memory import ChangeType, MemoryVersion
from alma.model.query import And, Compare, Order
from alma.model.record import Record
from alma.model.scope import Scope
from alma.retry import LONGEST_WAIT_SECONDS, Failure
from alma.storage.base import StorageBackend, checked_storage
from alma.storage.history import record_of
from alma.storage.outbox import Mark


class WebhookManager(Closeable):
    """Sends events to webhooks, each on its own thread.

    At most `queue_size` events wait for a webhook; further ones are dropped, logged and counted. With `storage`, events
    wait in the outbox of that store instead: none is dropped, changes of other processes are included (polled every
    `poll_seconds`), and what is not sent when the process ends is sent by the next one.
    """

    def __init__(
        self,
        emitter: EventEmitter | None = None,
        queue_size: int = 1_000,
        storage: StorageBackend | None = None,
        poll_seconds: float = 5.0,
    ) -> None:
        if isinstance(queue_size, bool) or not isinstance(queue_size, int) or queue_size < 1:
            raise ConfigurationError(f"queue_size must be a whole number of at least 1, not {queue_size!r}")
        if not poll_seconds > 0:
            raise ConfigurationError(f"poll_seconds must be a number above 0, not {poll_seconds!r}")
        self._emitter = get_emitter() if emitter is None else checked_emitter("webhooks", emitter)
        self._storage = None if storage is None else checked_storage("webhooks", storage)
        self._poll_seconds = poll_seconds
        self._queue_size = queue_size
        self._lock = threading.Lock()
        self._endpoints: tuple[Endpoint, ...] = ()
        self._is_closed = False

    def add_webhook(self, config: WebhookConfig) -> None:
        """Send events to this webhook from now on."""
        if not isinstance(config, WebhookConfig):
            raise ConfigurationError(f"a webhook is described by a WebhookConfig, not by {config!r}")
        with self._lock:
            if self._is_closed:
                raise ConfigurationError("this WebhookManager is closed; create another one")
            self._endpoints = (*self._endpoints, self._endpoint(config))

    def _endpoint(self, config: WebhookConfig) -> Endpoint:
        if self._storage is None:
            return QueuedEndpoint(config, self._queue_size, self._emitter.subscribe_all)
        if any((each.config.url, each.config.name) == (config.url, config.name) for each in self._endpoints):
            raise ConfigurationError("this address has a webhook already; give each a name to have several")
        return StoredEndpoint(config, self._storage, self._poll_seconds)

    def follow(self, configs: Sequence[WebhookConfig]) -> None:
        """Send events to exactly these webhooks from now on; what waits for others stays where it is."""
        # The first of those with one name, under which their changes wait.
        wanted = list({each.projection: each for each in reversed(configs)}.values())
        with self._lock:
            if self._is_closed:
                return
            ending = [each for each in self._endpoints if each.config not in wanted]
            self._endpoints = tuple(each for each in self._endpoints if each.config in wanted)
            known = [each.config for each in self._endpoints]
        for endpoint in ending:
            endpoint.close(0)
        for config in wanted:
            if config not in known:
                self.add_webhook(config)

    def remove_webhook(self, url: str, timeout_seconds: float = 10.0) -> bool:
        """Deliver what is queued for this address and remove it; False if it is unknown.

        Events in a store that are not delivered in time are dropped.
        """
        with self._lock:
            ending = [each for each in self._endpoints if each.config.url == url]
            self._endpoints = tuple(each for each in self._endpoints if each.config.url != url)
        for endpoint in ending:
            endpoint.close(timeout_seconds)
            if isinstance(endpoint, StoredEndpoint) and self._storage is not None:
                self._storage.drop_projection(endpoint.projection)
        return bool(ending)

    @property
    def webhooks(self) -> tuple[WebhookConfig, ...]:
        """The registered webhooks."""
        return tuple(endpoint.config for endpoint in self._endpoints)

    def get_stats(self) -> WebhookStats:
        """The statistics of all webhooks together."""
        total = WebhookStats()
        for endpoint in self._endpoints:
            total = total.plus(endpoint.stats.delivered, endpoint.stats.failed, endpoint.stats.dropped)
        return total

    def drain(self, timeout_seconds: float = 10.0) -> bool:
        """Wait until every event so far was delivered or given up; False on timeout."""
        deadline = time.monotonic() + timeout_seconds
        return all(endpoint.drain(_until(deadline)) for endpoint in self._endpoints)

    def close(self, timeout_seconds: float = 10.0) -> None:
        """Deliver what is queued, then stop; after the timeout the rest is dropped, or stays in the store."""
        with self._lock:
            self._is_closed = True
        deadline = time.monotonic() + timeout_seconds
        for endpoint in self._endpoints:
            endpoint.close(_until(deadline))


def kinds_for(config: WebhookConfig) -> list[type[Record]]:
    """The kinds of records whose changes a webhook gets."""
    return [kind_named(kind) for kind in config.memory_types] or [cls for cls in KINDS if cls.spec.audited]


def _until(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())


_log = logging.getLogger("alma.events")

_EVERYWHERE = Scope.everywhere()
_PARKED_AFTER = 20
_SHORTEST_PAUSE_SECONDS = 0.05

Subscribe = Callable[[Handler], Unsubscribe]


class Endpoint(Protocol):
    """Delivers the events of one webhook."""

    config: WebhookConfig
    stats: WebhookStats

    def drain(self, timeout_seconds: float) -> bool: ...

    def close(self, timeout_seconds: float) -> None: ...


class QueuedEndpoint:
    """Events wait in a bounded queue in memory."""

    def __init__(self, config: WebhookConfig, queue_size: int, subscribe: Subscribe) -> None:
        self.config = config
        self.stats = WebhookStats()
        self._counting = threading.Lock()
        self._background: BackgroundQueue[MemoryEvent] = BackgroundQueue("alma-webhook", self._work, queue_size)
        self._unsubscribe = subscribe(self._accept)

    def drain(self, timeout_seconds: float) -> bool:
        return self._background.drain(timeout_seconds)

    def close(self, timeout_seconds: float) -> None:
        self._unsubscribe()
        left = self._background.close(timeout_seconds)
        if left:
            _log.warning("events were not delivered before the end", extra={**_where(self.config), "left": left})

    def _accept(self, event: MemoryEvent) -> None:
        if self.config.wants(event) and not self._background.put(event):
            self._count(dropped=1)
            _log.warning("an event was dropped: the queue is full", extra={**_where(self.config), "event_id": event.id})

    def _work(self, event: MemoryEvent) -> None:
        failure = delivered(self.config, event, self._background.pause)
        self._count(delivered=1) if failure is None else self._count(failed=1)

    def _count(self, delivered: int = 0, failed: int = 0, dropped: int = 0) -> None:
        with self._counting:
            self.stats = self.stats.plus(delivered, failed, dropped)


class StoredEndpoint:
    """Changes wait in the outbox of a store until they are delivered.

    Several processes may deliver for one webhook; each change is leased to one of them. Waiting changes of one memory
    are delivered as one event. Changes that the receiver refuses are parked in the outbox with the error.
    """

    def __init__(self, config: WebhookConfig, storage: StorageBackend, poll_seconds: float) -> None:
        self.config = config
        self.stats = WebhookStats()
        self.projection = config.projection
        self._storage = storage
        self._poll_seconds = poll_seconds
        storage.register_projection(self.projection, kinds_for(config))
        self._ended = threading.Event()
        self._changed = threading.Condition()
        self._looks = self._empty_look = self._settled_look = self._wakes = self._drains = 0
        self._unsubscribe = storage.subscribe(lambda _: self._wake())
        self._thread = threading.Thread(target=self._run, name="alma-webhook", daemon=True)
        self._thread.start()

    def drain(self, timeout_seconds: float) -> bool:
        """Wait until nothing is left to deliver, by this process or another."""
        with self._changed:
            self._drains += 1
        try:
            return self._wait_for_look(lambda: self._settled_look, timeout_seconds)
        finally:
            with self._changed:
                self._drains -= 1

    def _wait_for_look(self, last: Callable[[], int], timeout_seconds: float) -> bool:
        """Wait for a poll that starts after this call and has the given result."""
        with self._changed:
            # A poll in progress may miss recent commits.
            wanted = self._looks + 1
            self._wake()
            self._changed.wait_for(lambda: last() >= wanted or self._ended.is_set(), timeout_seconds)
            return last() >= wanted

    def close(self, timeout_seconds: float) -> None:
        deadline = time.monotonic() + timeout_seconds
        if self._ended.is_set():
            return
        # Changes leased by other processes are theirs to deliver.
        if timeout_seconds > 0 and not self._wait_for_look(lambda: self._empty_look, timeout_seconds):
            _log.warning("events stay in the outbox for the next process", extra=_where(self.config))
        self._unsubscribe()
        self._ended.set()
        self._wake()
        self._thread.join(max(0.1, deadline - time.monotonic()))

    # ------------------------------------------------------------------ delivery threads

    def _wake(self) -> None:
        with self._changed:
            self._wakes += 1
            self._changed.notify_all()

    def _run(self) -> None:
        while not self._ended.is_set():
            with self._changed:
                self._looks += 1
                look, wakes = self._looks, self._wakes
            pause = self._poll_seconds
            try:
                pause = self._work_on_next(look)
            except ALMAError as exc:
                _log.warning("the outbox of a webhook cannot be read", extra={**_where(self.config), "error": str(exc)})
            except Exception:  # noqa: BLE001 - one event must not end the sending of those behind it
                _log.exception("an event could not be sent", extra=_where(self.config))
            with self._changed:
                self._changed.wait_for(lambda seen=wakes: self._wakes > seen, pause)  # type: ignore[misc]

    def _work_on_next(self, look: int) -> float:
        """Deliver the oldest change; returns the seconds to wait before the next poll."""
        tries = self.config.retry_count + 1
        lease_seconds = tries * (self.config.timeout_seconds + LONGEST_WAIT_SECONDS)
        marks = self._storage.claim(self.projection, 1, lease_seconds)
        if not marks:
            return self._note_empty(look)
        return 0.0 if self._settled(marks[0]) else self._poll_seconds

    def _note_empty(self, look: int) -> float:
        """Signal waiting threads that the outbox is empty; returns the seconds to wait before the next poll."""
        # Parked changes may be many, and are only read if a thread waits.
        asked = self._drains > 0
        taken = [mark for mark in self._storage.pending(self.projection) if not mark.parked] if asked else []
        with self._changed:
            self._empty_look = look
            if asked and not taken:
                self._settled_look = look
            self._changed.notify_all()
        ends = [0.0 if mark.leased_until is None else _seconds_until(mark.leased_until) for mark in taken]
        return max(_SHORTEST_PAUSE_SECONDS, min([self._poll_seconds, *ends]))

    def _settled(self, mark: Mark) -> bool:
        event = _event_of(self._storage, mark)
        if not self.config.wants(event):
            self._storage.acknowledge([mark], again=False)
            return True
        failure = delivered(self.config, event, lambda seconds: not self._ended.wait(seconds))
        if failure is None:
            self.stats = self.stats.plus(delivered=1)
            self._storage.acknowledge([mark], again=False)
            return True
        self.stats = self.stats.plus(failed=1)
        self._storage.fail(mark, failure.message, _PARKED_AFTER if failure.transient else 1, again=False)
        return not failure.transient


def _seconds_until(moment: datetime) -> float:
    return (moment - clock.now()).total_seconds()


def delivered(config: WebhookConfig, event: MemoryEvent, pause: Callable[[float], bool]) -> Failure | None:
    """Deliver an event with retries until `pause` returns False; None on success."""
    body = json.dumps(event.to_dict(), separators=(",", ":"), default=str).encode()
    attempts = 0
    while True:
        attempts += 1
        failure = _attempt(config, event, body)
        if failure is None:
            return None
        wait = min(LONGEST_WAIT_SECONDS, failure.wait_seconds(config.backoff_seconds, attempts))
        if not failure.transient or attempts > config.retry_count or not pause(wait):
            break
    facts = {**_where(config), "event_id": event.id, "attempts": attempts, "error": failure.message}
    _log.warning("an event could not be delivered", extra=facts)
    return failure


def _attempt(config: WebhookConfig, event: MemoryEvent, body: bytes) -> Failure | None:
    # Sign every attempt anew: receivers refuse old timestamps.
    timestamp = int(clock.now().timestamp())
    headers = {
        **config.headers,
        "Content-Type": "application/json",
        EVENT_HEADER: str(event.event_type),
        DELIVERY_HEADER: event.id,
        TIMESTAMP_HEADER: str(timestamp),
    }
    if config.secret is not None:
        headers[SIGNATURE_HEADER] = sign(config.secret, timestamp, body)
    return send(config.url, body, headers, config.timeout_seconds, allow_link_local=config.allow_link_local)


def _where(config: WebhookConfig) -> dict[str, str | None]:
    # The path of a webhook URL often contains a password.
    return {"host": urlsplit(config.url).hostname}


# ---------------------------------------------------------------------- events of outbox marks

_TYPE_OF = {
    ChangeType.CREATED: MemoryEventType.CREATED,
    ChangeType.DELETED: MemoryEventType.DELETED,
    ChangeType.ARCHIVED: MemoryEventType.ARCHIVED,
    ChangeType.RESTORED: MemoryEventType.RESTORED,
}


def _event_of(storage: StorageBackend, mark: Mark) -> MemoryEvent:
    """The event of the last change of a marked record; the same in every process."""
    cls = kind_named(mark.kind)
    record = storage.get(cls, mark.record_id, _EVERYWHERE)
    last = _last_version(storage, mark) if cls.spec.versioned else None
    owner = record or _last_known(storage, cls, mark)
    made = MemoryEvent(
        MemoryEventType.DELETED if record is None else MemoryEventType.UPDATED,
        mark.kind,
        mark.record_id,
        project_id=getattr(owner, "project_id", None),
        agent=getattr(owner, "agent", None),
        user_id=getattr(owner, "user_id", None),
        session_id=getattr(owner, "session_id", None),
        timestamp=mark.marked_at,
        id=_id_of(mark),
    )
    if last is None:
        return made
    event_type = _TYPE_OF.get(last.change_type, made.event_type)
    return replace(made, event_type=event_type, author=last.created_by, reason=last.change_reason)


def _id_of(mark: Mark) -> str:
    """An id that is the same for every attempt to deliver this change."""
    facts = (mark.projection, mark.kind, mark.record_id, mark.generation, mark.marked_at.isoformat())
    return hashlib.sha256("\x1f".join(map(str, facts)).encode()).hexdigest()[:32]


def _last_version(storage: StorageBackend, mark: Mark) -> MemoryVersion | None:
    of_record = And(Compare("kind", "eq", mark.kind), Compare("memory_id", "eq", mark.record_id))
    newest = storage.find(MemoryVersion, _EVERYWHERE, of_record, (Order("version_number", "desc"),), 1)
    return newest[0] if newest else None


def _last_known(storage: StorageBackend, cls: type[Record], mark: Mark) -> Record | None:
    """The last known version of a deleted record."""
    if not cls.spec.versioned:
        return None
    kept = [version for version in storage.history(cls, mark.record_id, _EVERYWHERE) if version.record_json is not None]
    return record_of(kept[-1], cls, None) if kept else None
