"""One suite, every cache."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from alma.cache.base import CacheBackend, NullCache
from alma.cache.local import RetrievalCache
from alma.cache.redis import RedisCache
from alma.model.slice import MemorySlice
from alma.testing.cache_contract import CacheContract, ForgetfulCacheContract


class TestMemory(CacheContract):
    @pytest.fixture
    def cache(self) -> CacheBackend:
        return RetrievalCache()

    def test_slices_of_an_earlier_generation_leave_the_memory(self, cache: CacheBackend) -> None:
        for n in range(3):
            cache.put(f"query {n}", "1", MemorySlice(), 60)
        cache.put("query", "2", MemorySlice(), 60)
        assert cache.stats().entries == 1


class TestMemoryWithRoomForOne(ForgetfulCacheContract):
    @pytest.fixture
    def cache(self) -> CacheBackend:
        return RetrievalCache(max_entries=1)


class TestNull(ForgetfulCacheContract):
    @pytest.fixture
    def cache(self) -> CacheBackend:
        return NullCache()


class TestRedis(CacheContract):
    @pytest.fixture
    def cache(self, redis_url: str) -> Iterator[CacheBackend]:
        # A server on a busy machine may take its time; that this is a miss is tested elsewhere.
        with RedisCache(redis_url, prefix="te*st[1]", timeout_seconds=30) as cache:
            yield cache
            cache.clear()


class TestRedisThatIsDown(ForgetfulCacheContract):
    @pytest.fixture
    def cache(self) -> Iterator[CacheBackend]:
        with RedisCache("redis://127.0.0.1:1/0") as cache:
            yield cache
