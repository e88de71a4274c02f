"""Process resources: fork-safe values, lazy values, scheduling of long jobs, and malloc trim."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from bisect import insort
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from itertools import count
from typing import Any, Generic, TypeVar

_ARENA_MAX = -8
_ARENAS = 2


def trim_malloc() -> None:
    """Return freed memory to the operating system (malloc_trim), for example after loading a model."""
    library = _library()
    if library is not None:
        library.malloc_trim(0)


def limit_malloc_arenas() -> None:
    """Limit the number of malloc arenas: with one arena per thread, most of their memory is unused."""
    library = _library()
    if library is not None:
        library.mallopt(_ARENA_MAX, _ARENAS)


@cache
def _library() -> Any:
    """The GNU C library, or None on other systems."""
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "malloc_trim") and hasattr(library, "mallopt") else None


T = TypeVar("T")


class PerProcess(Generic[T]):
    """A value that is created again after a fork: threads and lock owners do not exist in the child process."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._current = (os.getpid(), make())
        self._inherited: list[T] = []

    def get(self) -> T:
        """The value of the current process."""
        process, value = self._current
        if process != os.getpid():
            # The parent's value is kept: releasing it would wait for threads that do not exist in this process.
            self._inherited.append(value)
            value = self._make()
            self._current = (os.getpid(), value)
        return value


class LazyValue(Generic[T]):
    """A value created by the first thread that needs it, while other threads wait."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._made: list[T] = []

    def loaded(self) -> T:
        """The value; after an error, the next call tries again."""
        if not self._made:
            with self._lock:
                if not self._made:
                    self._made.append(self._make())
        return self._made[0]


class ShortestJobFirst:
    """Runs the `at_once` shortest jobs; longer jobs wait between two of their batches.

    A shorter job waits at most for one batch of a longer one. Jobs of equal size run in order of arrival.
    """

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._numbers = count()
        self._jobs: list[tuple[int, int]] = []
        self._changed = threading.Condition()

    @contextmanager
    def job(self, size: int) -> Iterator[Callable[[], object]]:
        """Register a job; call the returned function before each batch: it blocks until the job may run."""
        with self._changed:
            job = (size, next(self._numbers))
            insort(self._jobs, job)
        try:
            yield partial(self._wait, job)
        finally:
            with self._changed:
                self._jobs.remove(job)
                self._changed.notify_all()

    def _wait(self, job: tuple[int, int]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._jobs.index(job) < self._at_once)


def spare_cpus() -> int:
    """The number of CPUs this process may use, minus one, and at least one."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, usable - 1)
