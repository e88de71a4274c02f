"""The cache port: remembers answers for as long as nothing was written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from alma.model.slice import Dropped, MemorySlice


@dataclass(frozen=True, slots=True)
class CacheStats:
    """How a cache did since it was made."""

    hits: int
    misses: int
    entries: int


def not_kept(record_id: str) -> Dropped:
    """What a slice without its reasons answers to `why_not`."""
    return Dropped("cache", "this slice was kept outside of the process, without what was dropped; bypass the cache")


@runtime_checkable
class CacheBackend(Protocol):
    """Keeps slices under a key together with the generation of the store they were read from.

    What a cache promises: a slice is given back only for the generation it was put under and only until it is older
    than its time to live; whatever a caller does with a slice, others get what was put; threads may share it; losing
    entries is always allowed. What it does not do: find out the generation. The store's generation changes with every
    commit of any process, so no write can make an answer stale.
    A cache outside of the process need not keep what a slice knows of memories that are not in it: it says `not_kept`.
    """

    def get(self, key: str, generation: str) -> MemorySlice | None:
        """The slice of this generation, if it is still there."""
        ...

    def put(self, key: str, generation: str, found: MemorySlice, ttl_seconds: float) -> None:
        """Remember a slice for at most so long."""
        ...

    def clear(self) -> None:
        """Forget everything."""
        ...

    def stats(self) -> CacheStats: ...


class NullCache:
    """Remembers nothing."""

    def __init__(self) -> None:
        self._misses = 0

    def get(self, key: str, generation: str) -> MemorySlice | None:
        self._misses += 1
        return None

    def put(self, key: str, generation: str, found: MemorySlice, ttl_seconds: float) -> None: ...

    def clear(self) -> None: ...

    def stats(self) -> CacheStats:
        return CacheStats(0, self._misses, 0)
