"""A background thread with a bounded queue, so that writers never wait."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

_log = logging.getLogger("alma.events")

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
def _finish() -> None:
    deadline = time.monotonic() + _SECONDS_AT_EXIT
    for each in list(_running):
        left = each.close(max(0.0, deadline - time.monotonic()))
        if left:
            _log.warning("the process ended before all events were delivered", extra={"left": left})
