"""Values that are made when they are needed, and that a forked process must make anew."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

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
