"""The cache port: retrieval results, each valid until the next commit of the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from alma.model.memory import Memory
from alma.model.slice import Dropped, MemorySlice


@dataclass(frozen=True, slots=True)
class CacheStats:
    """Hits and misses of a cache since it was created, and its number of entries."""

    hits: int
    misses: int
    entries: int


def dropped_unknown(record_id: str) -> Dropped:
    """The answer of `why_not` for a slice that was cached without its dropped candidates."""
    return Dropped("cache", "an external cache does not store the dropped candidates of a slice; bypass the cache")


@runtime_checkable
class CacheBackend(Protocol):
    """Stores slices by key and by the generation of the store from which they were read.

    A slice is only returned for its generation and within its time to live. Changes that a caller makes to a slice
    do not affect the cache. Caches are thread-safe and may drop entries at any time. The caller passes the generation,
    which changes with every commit of any process, so cached slices are never stale.
    An external cache may leave out the dropped candidates of a slice, and then returns `dropped_unknown` for them.
    """

    def get(self, key: str, generation: str) -> MemorySlice | None:
        """The slice of this generation, or None."""
        ...

    def put(self, key: str, generation: str, found: MemorySlice, ttl_seconds: float) -> None:
        """Store a slice for at most `ttl_seconds`."""
        ...

    def clear(self) -> None:
        """Remove all entries."""
        ...

    def stats(self) -> CacheStats: ...


@dataclass(frozen=True, slots=True)
class Searched:
    """A search that was answered: by which call, of whom, and what it found in how many milliseconds.

    `key` names the request with all that its answer depends on; it is empty where the answer is not cached. `layers`
    are those that the router chose, each with its reason, and `scope` the ids it knew in addition to the query.
    """

    query: str
    call: str
    user_id: str | None
    found: Sequence[Memory]
    milliseconds: float
    key: str = ""
    layers: Mapping[str, str] | None = None
    scope: Sequence[str | None] = ()


class Activity:
    """Publishes searches and repositories for other programs; this one publishes nothing."""

    def searched(self, search: Searched) -> None:
        """Tell that a search was answered."""

    def saw_repository(self, project_id: str, status: Mapping[str, Any]) -> None:
        """Tell the Git status of a project's working directory."""


class NullCache:
    """Stores nothing; every lookup is a miss."""

    def __init__(self) -> None:
        self._misses = 0

    def get(self, key: str, generation: str) -> MemorySlice | None:
        self._misses += 1
        return None

    def put(self, key: str, generation: str, found: MemorySlice, ttl_seconds: float) -> None: ...

    def clear(self) -> None: ...

    def stats(self) -> CacheStats:
        return CacheStats(0, self._misses, 0)
