"""Webhooks: events sent to other programs over HTTP, signed, tried again, and never in the writer's way."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from alma import clock
from alma.errors import ConfigurationError
from alma.events.background import Background
from alma.events.emitter import EventEmitter, Unsubscribe, get_emitter
from alma.events.event import MemoryEvent, MemoryEventType, checked_types
from alma.events.sending import Failure, send
from alma.events.signing import DELIVERY_HEADER, EVENT_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, sign
from alma.model.kinds import kind_named
from alma.model.secret import Secret

_log = logging.getLogger("alma.events")

_OUR_HEADERS = frozenset(
    name.lower() for name in (SIGNATURE_HEADER, TIMESTAMP_HEADER, EVENT_HEADER, DELIVERY_HEADER, "Content-Type")
)


@dataclass(frozen=True)
class WebhookConfig:
    """Where events are sent, which ones, and how.

    `events`, `memory_types` and `project_id` limit what is sent; left out, everything is. With a `secret` every request
    is signed. A request that fails in a way that may pass is tried `retry_count` times more, after `backoff_seconds`
    and then twice as long each time.
    """

    url: str
    events: Sequence[MemoryEventType | str] = ()
    secret: str | Secret | None = None
    memory_types: Sequence[str] = ()
    project_id: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout_seconds: float = 10.0
    retry_count: int = 3
    backoff_seconds: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", _checked_url(self.url))
        object.__setattr__(self, "events", checked_types(self.events))
        object.__setattr__(self, "memory_types", tuple(kind_named(kind).spec.kind for kind in self.memory_types))
        object.__setattr__(self, "secret", _checked_secret(self.secret))
        object.__setattr__(self, "headers", _checked_headers(self.headers))
        for name, least in (("timeout_seconds", 0.001), ("retry_count", 0), ("backoff_seconds", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= least:
                raise ConfigurationError(f"a webhook's {name} must be a number of at least {least}, not {value!r}")

    def wants(self, event: MemoryEvent) -> bool:
        """Whether this event is to be sent there."""
        return (
            (not self.events or event.event_type in self.events)
            and (not self.memory_types or event.memory_type in self.memory_types)
            and (self.project_id is None or event.project_id == self.project_id)
        )


@dataclass(frozen=True, slots=True)
class WebhookStats:
    """How many events were delivered, given up after the last try, and dropped because too many waited."""

    delivered: int = 0
    failed: int = 0
    dropped: int = 0


class WebhookManager:
    """Sends the events of an emitter to webhooks, each on a thread of its own, so that none waits for another.

    At most `queue_size` events wait for a webhook; further ones are dropped, which is logged and counted.
    """

    def __init__(self, emitter: EventEmitter | None = None, queue_size: int = 1_000) -> None:
        if isinstance(queue_size, bool) or not isinstance(queue_size, int) or queue_size < 1:
            raise ConfigurationError(f"queue_size must be a whole number of at least 1, not {queue_size!r}")
        self._emitter = get_emitter() if emitter is None else emitter
        self._queue_size = queue_size
        self._lock = threading.Lock()
        self._endpoints: tuple[_Endpoint, ...] = ()
        self._is_closed = False

    def add_webhook(self, config: WebhookConfig) -> None:
        """Send events there from now on."""
        if not isinstance(config, WebhookConfig):
            raise ConfigurationError(f"a webhook is described by a WebhookConfig, not by {config!r}")
        with self._lock:
            if self._is_closed:
                raise ConfigurationError("this WebhookManager was closed; make another one")
            endpoint = _Endpoint(config, self._queue_size, self._emitter.subscribe_all)
            self._endpoints = (*self._endpoints, endpoint)

    def remove_webhook(self, url: str, timeout_seconds: float = 10.0) -> bool:
        """Send what waits for this address and then nothing more there; False where it was not known."""
        with self._lock:
            ending = [each for each in self._endpoints if each.config.url == url]
            self._endpoints = tuple(each for each in self._endpoints if each.config.url != url)
        for endpoint in ending:
            endpoint.close(timeout_seconds)
        return bool(ending)

    @property
    def webhooks(self) -> tuple[WebhookConfig, ...]:
        """What events are sent to."""
        return tuple(endpoint.config for endpoint in self._endpoints)

    def get_stats(self) -> WebhookStats:
        """What became of the events so far, all webhooks together."""
        stats = [endpoint.stats for endpoint in self._endpoints]
        return WebhookStats(
            sum(each.delivered for each in stats),
            sum(each.failed for each in stats),
            sum(each.dropped for each in stats),
        )

    def drain(self, timeout_seconds: float = 10.0) -> bool:
        """Wait until every event so far was delivered or given up; False when that was not in time."""
        deadline = time.monotonic() + timeout_seconds
        return all(endpoint.drain(_until(deadline)) for endpoint in self._endpoints)

    def close(self, timeout_seconds: float = 10.0) -> None:
        """Send what waits, then stop; what is not sent in time is given up, which is logged."""
        with self._lock:
            self._is_closed = True
        deadline = time.monotonic() + timeout_seconds
        for endpoint in self._endpoints:
            endpoint.close(_until(deadline))

    def __enter__(self) -> WebhookManager:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Endpoint:
    """One webhook with its queue."""

    def __init__(
        self,
        config: WebhookConfig,
        queue_size: int,
        subscribe: Callable[[Callable[[MemoryEvent], object]], Unsubscribe],
    ) -> None:
        self.config = config
        self.stats = WebhookStats()
        self._counting = threading.Lock()
        self._background: Background[MemoryEvent] = Background("alma-webhook", self._deliver, queue_size)
        self._unsubscribe = subscribe(self._accept)

    def drain(self, timeout_seconds: float) -> bool:
        return self._background.drain(timeout_seconds)

    def close(self, timeout_seconds: float) -> None:
        self._unsubscribe()
        left = self._background.close(timeout_seconds)
        if left:
            _log.warning("events were not sent before the end", extra={**self._where(), "left": left})

    def _accept(self, event: MemoryEvent) -> None:
        if self.config.wants(event) and not self._background.put(event):
            self._count("dropped")
            _log.warning("an event was not sent: too many wait", extra={**self._where(), "event_id": event.id})

    def _deliver(self, event: MemoryEvent) -> None:
        body = json.dumps(event.to_dict(), separators=(",", ":")).encode()
        attempts = 0
        while True:
            attempts += 1
            failure = self._attempt(event, body)
            if failure is None:
                self._count("delivered")
                return
            wait = failure.wait_seconds(self.config.backoff_seconds, attempts)
            if not failure.may_pass or attempts > self.config.retry_count or not self._background.pause(wait):
                break
        self._count("failed")
        facts = {**self._where(), "event_id": event.id, "attempts": attempts, "error": failure.sentence}
        _log.warning("an event could not be delivered", extra=facts)

    def _attempt(self, event: MemoryEvent, body: bytes) -> Failure | None:
        # Signed anew at each try: a receiver refuses what was signed long ago.
        timestamp = int(clock.now().timestamp())
        headers = {
            **self.config.headers,
            "Content-Type": "application/json",
            EVENT_HEADER: str(event.event_type),
            DELIVERY_HEADER: event.id,
            TIMESTAMP_HEADER: str(timestamp),
        }
        if self.config.secret is not None:
            headers[SIGNATURE_HEADER] = sign(self.config.secret, timestamp, body)
        return send(self.config.url, body, headers, self.config.timeout_seconds)

    def _count(self, what: str) -> None:
        with self._counting:
            now = {"delivered": self.stats.delivered, "failed": self.stats.failed, "dropped": self.stats.dropped}
            self.stats = WebhookStats(**{**now, what: now[what] + 1})

    def _where(self) -> dict[str, str | None]:
        # The path of an address often is a password.
        return {"host": urlsplit(self.config.url).hostname}


def _until(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())


def _checked_url(url: str) -> str:
    parts = urlsplit(url) if isinstance(url, str) else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError("a webhook's url must begin with https:// or http:// and name a host")
    return url


def _checked_secret(secret: str | Secret | None) -> Secret | None:
    if secret is None:
        return None
    if not isinstance(secret, str | Secret) or not Secret(secret):
        raise ConfigurationError("a webhook's secret must be a text that is not empty; leave it out to send unsigned")
    return Secret(secret)


def _checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not isinstance(name, str) or not isinstance(value, str) or any(c in name + value for c in "\r\n"):
            raise ConfigurationError("a webhook's headers must be names and values, each on one line")
        if name.lower() in _OUR_HEADERS:
            raise ConfigurationError(f"the header {name} of a webhook is written by ALMA and cannot be given")
    return dict(headers)
