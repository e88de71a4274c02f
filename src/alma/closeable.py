"""Base class of objects with `close()` that are also context managers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self


class Closeable(ABC):
    """Has a `close()` method, which leaving a with block calls."""

    @abstractmethod
    def close(self) -> None:
        """Release resources; closing twice has no effect."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
