"""Turns: long jobs take them one after the other, the shortest first, and leave a processor to the others."""

from __future__ import annotations

import os
import threading
from bisect import insort
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count


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
