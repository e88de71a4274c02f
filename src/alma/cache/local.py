"""An LRU cache of retrieval results inside the process."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from alma.cache.base import CacheStats
from alma.errors import ConfigurationError
from alma.model.slice import MemorySlice


class RetrievalCache:
    """An LRU cache of up to `max_entries` slices; callers get copies.

    It holds slices of one generation of the store, the latest.
    """

    def __init__(self, max_entries: int = 1000, *, clock: Callable[[], float] = time.monotonic) -> None:
        if isinstance(max_entries, bool) or not isinstance(max_entries, int) or max_entries < 1:
            raise ConfigurationError(f"max_cache_entries must be a whole number of at least 1, not {max_entries!r}")
        self._max_entries = max_entries
        self._clock = clock
        self._entries: OrderedDict[str, tuple[str, float, MemorySlice]] = OrderedDict()
        self._lock = threading.Lock()
        self._generation: str | None = None
        self._hits = self._misses = 0

    def get(self, key: str, generation: str) -> MemorySlice | None:
        with self._lock:
            known = self._entries.get(key)
            if known is None or known[0] != generation or known[1] <= self._clock():
                self._entries.pop(key, None)
                self._misses += 1
                return None
            self._entries.move_to_end(key)
            self._hits += 1
        return known[2].apart()

    def put(self, key: str, generation: str, found: MemorySlice, ttl_seconds: float) -> None:
        kept = found.apart()
        with self._lock:
            if generation != self._generation:
                # Slices of older generations are never returned again, and may be large.
                self._entries.clear()
                self._generation = generation
            self._entries[key] = (generation, self._clock() + ttl_seconds, kept)
            self._entries.move_to_end(key)
            while len(self._entries) > self._max_entries:
                self._entries.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()

    def stats(self) -> CacheStats:
        with self._lock:
            return CacheStats(self._hits, self._misses, len(self._entries))
