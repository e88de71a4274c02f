"""Returning memory: what is no longer used goes back to the system, where a C library would keep it."""

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


def return_unused_memory() -> None:
    """Hand freed memory back: loading a model, for example, frees as much as it keeps."""
    library = _library()
    if library is not None:
        library.malloc_trim(0)


def share_heaps() -> None:
    """Let all threads share a few heaps: with one for each of them, most of what they hold is empty."""
    library = _library()
    if library is not None:
        library.mallopt(_ARENA_MAX, _ARENAS)


@cache
def _library() -> Any:
    """The C library, where it is the one that has these calls."""
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "malloc_trim") and hasattr(library, "mallopt") else None


T = TypeVar("T")


class PerProcess(Generic[T]):
    """A value of this process; a forked child makes its own, as threads and the holders of locks stay behind."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._held = (os.getpid(), make())
        self._left_behind: list[T] = []

    def get(self) -> T:
        """The value of the process that asks."""
        process, value = self._held
        if process != os.getpid():
            # The parent's is kept: releasing it here would wait for threads that this process does not have.
            self._left_behind.append(value)
            value = self._make()
            self._held = (os.getpid(), value)
        return value


class Lazily(Generic[T]):
    """A value made by the first thread that needs it, while the others wait."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._made: list[T] = []

    def loaded(self) -> T:
        """The value; what making it raises is raised again at the next call, which tries anew."""
        if not self._made:
            with self._lock:
                if not self._made:
                    self._made.append(self._make())
        return self._made[0]


class Turns:
    """Lets the `at_once` shortest jobs go on while the longer ones wait between two of their batches.

    A shorter job never waits for a longer one, as that one stops at its next batch. Among equals the first goes first.
    """

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._numbers = count()
        self._jobs: list[tuple[int, int]] = []
        self._changed = threading.Condition()

    @contextmanager
    def job(self, size: int) -> Iterator[Callable[[], object]]:
        """Announce a job of some size; what is given is called before each of its batches and waits for its turn."""
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


def spare_processors() -> int:
    """How many processors this process may use beside one, and at least one."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, usable - 1)
