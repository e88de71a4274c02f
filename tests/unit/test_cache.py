"""Caches in the process: TTL, capacity and LRU eviction."""

from __future__ import annotations

from typing import Any

import pytest

from alma.cache.base import CacheStats, NullCache
from alma.cache.local import RetrievalCache
from alma.errors import ConfigurationError
from alma.model.slice import MemorySlice
from alma.testing import builders as make
from tests.support.clock import Clock
from tests.support.together import together


def found(text: str = "x") -> MemorySlice:
    return MemorySlice(memories=[make.a_memory(content=text)])


def test_a_slice_is_given_back_until_its_time_is_over() -> None:
    clock = Clock()
    cache = RetrievalCache(clock=clock)
    kept = found()
    cache.put("q", "g", kept, ttl_seconds=60)
    clock.seconds += 59.9
    assert cache.get("q", "g") == kept
    clock.seconds += 0.1
    assert cache.get("q", "g") is None


def test_a_slice_that_is_put_again_lives_anew() -> None:
    clock = Clock()
    cache = RetrievalCache(clock=clock)
    cache.put("q", "g", found(), ttl_seconds=60)
    clock.seconds += 59
    cache.put("q", "g", found(), ttl_seconds=60)
    clock.seconds += 59
    assert cache.get("q", "g") is not None


def test_the_slice_that_was_not_asked_for_longest_is_forgotten_first() -> None:
    cache = RetrievalCache(max_entries=2)
    for key in ("a", "b"):
        cache.put(key, "g", found(), 60)
    cache.get("a", "g")
    cache.put("c", "g", found(), 60)
    assert [key for key in "abc" if cache.get(key, "g")] == ["a", "c"]


def test_a_slice_of_another_generation_makes_room_at_once() -> None:
    cache = RetrievalCache()
    cache.put("q", "old", found(), 60)
    assert cache.get("q", "new") is None
    assert cache.stats().entries == 0


def test_a_cache_counts_what_it_answers() -> None:
    cache = RetrievalCache()
    cache.put("q", "g", found(), 60)
    for key in ("q", "q", "other"):
        cache.get(key, "g")
    assert cache.stats() == CacheStats(hits=2, misses=1, entries=1)


def test_threads_that_share_a_cache_never_get_each_others_slices_mixed_up() -> None:
    cache = RetrievalCache(max_entries=8)
    slices = {str(number): found(str(number)) for number in range(16)}

    def use(start: int) -> None:
        for turn in range(500):
            key = str((start + turn) % 16)
            cache.put(key, "g", slices[key], 60)
            kept = cache.get(key, "g")
            assert kept is None or kept == slices[key]

    assert together(*[lambda start=number: use(start) for number in range(4)]) == []
    assert cache.stats().entries == 8


@pytest.mark.parametrize("size", [0, -1, True, 1.5, "many"])
def test_a_cache_must_have_room(size: Any) -> None:
    with pytest.raises(ConfigurationError, match="max_cache_entries must be a whole number of at least 1"):
        RetrievalCache(size)


def test_a_cache_that_remembers_nothing_counts_what_it_was_asked() -> None:
    cache = NullCache()
    cache.put("q", "g", found(), 60)
    assert cache.get("q", "g") is None
    assert cache.stats() == CacheStats(hits=0, misses=1, entries=0)
