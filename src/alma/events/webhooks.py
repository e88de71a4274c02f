"""Webhooks: events sent to other programs over HTTP, signed, tried again, and never in the writer's way."""

from __future__ import annotations

import threading
import time

from alma.closing import Closing
from alma.errors import ConfigurationError
from alma.events.config import WebhookConfig, WebhookStats
from alma.events.emitter import EventEmitter, checked_emitter, get_emitter
from alma.events.endpoints import Endpoint, QueuedEndpoint, StoredEndpoint
from alma.storage.base import StorageBackend, checked_storage


class WebhookManager(Closing):
    """Sends the events of an emitter to webhooks, each on a thread of its own, so that none waits for another.

    At most `queue_size` events wait for a webhook; further ones are dropped, which is logged and counted. With
    `storage` they wait in the outbox of that store instead: nothing is dropped, what other processes write is sent too
    (looked for every `poll_seconds`), and what is not sent when the process ends is sent by the next one.
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
        """Send events there from now on."""
        if not isinstance(config, WebhookConfig):
            raise ConfigurationError(f"a webhook is described by a WebhookConfig, not by {config!r}")
        with self._lock:
            if self._is_closed:
                raise ConfigurationError("this WebhookManager was closed; make another one")
            self._endpoints = (*self._endpoints, self._endpoint(config))

    def _endpoint(self, config: WebhookConfig) -> Endpoint:
        if self._storage is None:
            return QueuedEndpoint(config, self._queue_size, self._emitter.subscribe_all)
        if any((each.config.url, each.config.name) == (config.url, config.name) for each in self._endpoints):
            raise ConfigurationError("this address has a webhook already; give each a name to have several")
        return StoredEndpoint(config, self._storage, self._poll_seconds)

    def remove_webhook(self, url: str, timeout_seconds: float = 10.0) -> bool:
        """Send what waits for this address and then nothing more there; False where it was not known.

        What waits in a store and could not be sent in time is dropped.
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
        """What events are sent to."""
        return tuple(endpoint.config for endpoint in self._endpoints)

    def get_stats(self) -> WebhookStats:
        """What became of the events so far, all webhooks together."""
        total = WebhookStats()
        for endpoint in self._endpoints:
            total = total.plus(endpoint.stats.delivered, endpoint.stats.failed, endpoint.stats.dropped)
        return total

    def drain(self, timeout_seconds: float = 10.0) -> bool:
        """Wait until every event so far was delivered or given up; False when that was not in time."""
        deadline = time.monotonic() + timeout_seconds
        return all(endpoint.drain(_until(deadline)) for endpoint in self._endpoints)

    def close(self, timeout_seconds: float = 10.0) -> None:
        """Send what waits, then stop; what is not sent in time is given up, which is logged, or stays in the store."""
        with self._lock:
            self._is_closed = True
        deadline = time.monotonic() + timeout_seconds
        for endpoint in self._endpoints:
            endpoint.close(_until(deadline))


def _until(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())
