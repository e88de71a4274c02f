"""Relays in threads: one for each engine of a running service."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from functools import partial

from alma.closeable import Closeable
from alma.storage.base import StorageBackend, checked_storage
from alma.sync.options import RelayOptions
from alma.sync.projection import Projection
from alma.sync.relay import EngineDownError, Relay, pause_seconds

_log = logging.getLogger("alma.sync")

# Commits within this time are carried together.
_GATHER_SECONDS = 0.02
# How often an engine that has nothing to do is asked whether it is still there with its data.
_ASK_SECONDS = 10.0


class Relays(Closeable):
    """Keeps every engine equal to the store until it is closed.

    A commit of this process wakes the relays, those of others are found by polling. While an engine is down its marks
    wait, and the relay tries again with exponential back-off.
    """

    def __init__(
        self, storage: StorageBackend, projections: Sequence[Projection], options: RelayOptions | None = None
    ) -> None:
        self._storage = checked_storage("relays", storage)
        self._options = options or RelayOptions()
        # Why the last attempt at an engine failed.
        self.problems: dict[str, str] = {}
        self._ended = threading.Event()
        self._changed = {each.name: threading.Event() for each in projections}
        self._threads = [
            threading.Thread(target=partial(self._loop, each), name=f"alma-sync-{each.name}", daemon=True)
            for each in projections
        ]
        self._unsubscribe = storage.subscribe(lambda _: self._wake())

    def start(self) -> None:
        """Start a thread for each engine."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stop after the current batches."""
        self._unsubscribe()
        self._ended.set()
        self._wake()
        for thread in self._threads:
            if thread.ident is not None and thread is not threading.current_thread():
                thread.join()

    def _wake(self) -> None:
        for changed in self._changed.values():
            changed.set()

    def _loop(self, projection: Projection) -> None:
        relay, failures, asked = Relay(self._storage, projection, self._options), 0, 0.0
        while not self._ended.is_set():
            try:
                relay.run(until=self._ended.is_set)
                if time.monotonic() > asked + _ASK_SECONDS:
                    relay.require_engine()
                    asked = time.monotonic()
            except Exception as exc:  # noqa: BLE001 - whatever fails, the relay tries again
                self._report(projection, exc, failures)
                failures += 1
                self._ended.wait(pause_seconds(failures))
                continue
            if failures:
                _log.info("an engine answers again", extra={"engine": projection.name})
            failures = 0
            self.problems.pop(projection.name, None)
            self._wait(self._changed[projection.name])

    def _wait(self, changed: threading.Event) -> None:
        if changed.wait(self._options.poll_seconds):
            self._ended.wait(_GATHER_SECONDS)
        changed.clear()

    def _report(self, projection: Projection, exc: Exception, failures: int) -> None:
        problem = self.problems[projection.name] = self._storage.masked(str(exc))
        if failures == 0 or not isinstance(exc, EngineDownError):
            facts = {"engine": projection.name, "error": problem}
            _log.warning("an engine cannot be kept up to date", extra=facts)
