"""The cache of alma-memory 0.4: results by query, agent and project, each for its time to live.

The engine keeps its results in `alma.cache`, where a result is dropped with the next commit of the store; a cache from
here is for programs that keep results themselves.
"""

from __future__ import annotations

import hashlib
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from alma.cache.base import CacheBackend as Results
from alma.cache.local import RetrievalCache as LocalResults
from alma.model.slice import MemorySlice

_GENERATION = "alma"
_PARTS = 3
_HASH_LENGTH = 64


@dataclass
class CacheEntry:
    """A result that was kept, and until when."""

    result: MemorySlice
    created_at: float
    expires_at: float
    hit_count: int = 0
    query_hash: str = ""
    agent: str = ""
    project_id: str = ""
    user_id: str = ""


@dataclass
class CacheStats:
    """The hits, misses and times of a cache."""

    hits: int = 0
    misses: int = 0
    evictions: int = 0
    current_size: int = 0
    max_size: int = 0
    avg_get_time_ms: float = 0.0
    avg_set_time_ms: float = 0.0
    p95_get_time_ms: float = 0.0
    p95_set_time_ms: float = 0.0
    total_get_calls: int = 0
    total_set_calls: int = 0

    @property
    def hit_rate(self) -> float:
        """The share of lookups that found something."""
        asked = self.hits + self.misses
        return self.hits / asked if asked else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The numbers as JSON can hold them, the hit rate in per cent."""
        return {**vars(self), "hit_rate": f"{self.hit_rate:.2%}"}


@dataclass
class PerformanceMetrics:
    """The latest times of lookups and writes."""

    get_times: list[float] = field(default_factory=list)
    set_times: list[float] = field(default_factory=list)
    max_samples: int = 1000

    def record_get(self, duration_ms: float) -> None:
        """Add the time of a lookup."""
        self.get_times = [*self.get_times, duration_ms][-self.max_samples :]

    def record_set(self, duration_ms: float) -> None:
        """Add the time of a write."""
        self.set_times = [*self.set_times, duration_ms][-self.max_samples :]

    def get_percentile(self, times: list[float], percentile: float) -> float:
        """The time that this many per cent do not exceed; 0 without times."""
        ranked = sorted(times)
        return ranked[min(int(len(ranked) * percentile / 100), len(ranked) - 1)] if ranked else 0.0

    def get_avg(self, times: list[float]) -> float:
        """The mean time; 0 without times."""
        return sum(times) / len(times) if times else 0.0


class CacheKeyGenerator:
    """Keys `namespace:version:hash` that differ whenever what they stand for differs."""

    VERSION = "v1"

    def __init__(self, namespace: str | None = None) -> None:
        self.namespace = namespace or "alma"

    def generate(
        self,
        query: str,
        agent: str,
        project_id: str,
        user_id: str | None = None,
        top_k: int = 5,
        extra_context: Mapping[str, str] | None = None,
    ) -> str:
        """The key of a request; case and spaces of the query do not count."""
        parts = [
            self._normalize_query(query),
            agent,
            project_id,
            user_id or "",
            top_k,
            sorted((extra_context or {}).items()),
        ]
        digest = hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()
        return f"{self.namespace}:{self.VERSION}:{digest}"

    def _normalize_query(self, query: str) -> str:
        return " ".join(query.casefold().split())

    def generate_pattern(self, agent: str | None = None, project_id: str | None = None) -> str:
        """The pattern of all keys of the namespace."""
        return f"{self.namespace}:{self.VERSION}:*"

    def parse_key(self, key: str) -> tuple[str, str, str]:
        """Namespace, version and hash of a key."""
        parts = key.split(":")
        if len(parts) != _PARTS:
            raise ValueError(f"{key!r} is not a key: it needs a namespace, a version and a hash with : between them")
        return parts[0], parts[1], parts[2]

    def is_valid_key(self, key: str) -> bool:
        """Whether it is a key of this namespace and version."""
        try:
            namespace, version, digest = self.parse_key(key)
        except ValueError:
            return False
        return (namespace, version) == (self.namespace, self.VERSION) and len(digest) == _HASH_LENGTH


class CacheBackend(ABC):
    """Keeps results by query, agent, project and user."""

    @abstractmethod
    def get(
        self, query: str, agent: str, project_id: str, user_id: str | None = None, top_k: int = 5
    ) -> MemorySlice | None:
        """The result that is kept, or None."""

    @abstractmethod
    def set(
        self,
        query: str,
        agent: str,
        project_id: str,
        result: MemorySlice,
        user_id: str | None = None,
        top_k: int = 5,
        ttl_override: int | None = None,
    ) -> None:
        """Keep a result."""

    @abstractmethod
    def invalidate(self, agent: str | None = None, project_id: str | None = None) -> int:
        """Drop results, of an agent or project or all; returns how many."""

    @abstractmethod
    def get_stats(self) -> CacheStats:
        """Hits, misses and times."""

    @abstractmethod
    def clear(self) -> None:
        """Drop all results and count from 0 again."""


class _Kept(CacheBackend):
    """Results in one of the caches of `alma.cache`."""

    def __init__(
        self, results: Results, ttl_seconds: float, max_entries: int, namespace: str | None, enable_metrics: bool
    ) -> None:
        self.ttl = ttl_seconds
        self.max_entries = max_entries
        self.enable_metrics = enable_metrics
        self._results = results
        self._keys = CacheKeyGenerator(namespace)
        self._of: dict[str, tuple[str, str]] = {}
        self._on_hit: Callable[[str, float], None] | None = None
        self._on_miss: Callable[[str], None] | None = None
        self._on_eviction: Callable[[int], None] | None = None
        self._start()

    @property
    def namespace(self) -> str:
        """The first part of the keys."""
        return self._keys.namespace

    def _start(self) -> None:
        self._metrics = PerformanceMetrics()
        self._stats = CacheStats(max_size=self.max_entries)

    def set_hooks(
        self,
        on_hit: Callable[[str, float], None] | None = None,
        on_miss: Callable[[str], None] | None = None,
        on_eviction: Callable[[int], None] | None = None,
    ) -> None:
        """Functions to call with each hit, miss and eviction."""
        self._on_hit, self._on_miss, self._on_eviction = on_hit, on_miss, on_eviction

    def _generate_key(self, query: str, agent: str, project_id: str, user_id: str | None = None, top_k: int = 5) -> str:
        return self._keys.generate(query, agent, project_id, user_id, top_k)

    def get(
        self, query: str, agent: str, project_id: str, user_id: str | None = None, top_k: int = 5
    ) -> MemorySlice | None:
        key, started = self._generate_key(query, agent, project_id, user_id, top_k), time.perf_counter()
        found = self._results.get(key, _GENERATION)
        took = (time.perf_counter() - started) * 1000
        if self.enable_metrics:
            self._stats.total_get_calls += 1
            self._metrics.record_get(took)
        if found is None:
            self._stats.misses += 1
            self._of.pop(key, None)
        else:
            self._stats.hits += 1
        self._tell(key, took, is_hit=found is not None)
        return found

    def _tell(self, key: str, took: float, is_hit: bool) -> None:
        if is_hit and self._on_hit is not None:
            self._on_hit(key, took)
        if not is_hit and self._on_miss is not None:
            self._on_miss(key)

    def set(
        self,
        query: str,
        agent: str,
        project_id: str,
        result: MemorySlice,
        user_id: str | None = None,
        top_k: int = 5,
        ttl_override: int | None = None,
    ) -> None:
        key, started = self._generate_key(query, agent, project_id, user_id, top_k), time.perf_counter()
        before = self._results.stats().entries + (key not in self._of)
        self._results.put(key, _GENERATION, result, ttl_override or self.ttl)
        self._of[key] = (agent, project_id)
        self._evicted(max(0, before - self._results.stats().entries))
        if self.enable_metrics:
            self._stats.total_set_calls += 1
            self._metrics.record_set((time.perf_counter() - started) * 1000)

    def _evicted(self, count: int) -> None:
        self._stats.evictions += count
        if count and self._on_eviction is not None:
            self._on_eviction(count)

    def invalidate(self, agent: str | None = None, project_id: str | None = None) -> int:
        gone = [
            key
            for key, (of_agent, of_project) in list(self._of.items())
            if agent in (None, of_agent) and project_id in (None, of_project)
        ]
        held = [key for key in gone if self._results.get(key, _GENERATION) is not None]
        for key in gone:
            # A time to live of 0 is over at once.
            self._results.put(key, _GENERATION, MemorySlice(), 0)
            self._results.get(key, _GENERATION)
            self._of.pop(key, None)
        self._evicted(len(held))
        return len(held)

    def get_stats(self) -> CacheStats:
        stats, metrics = self._stats, self._metrics
        stats.current_size = self._results.stats().entries
        if self.enable_metrics:
            stats.avg_get_time_ms = metrics.get_avg(metrics.get_times)
            stats.avg_set_time_ms = metrics.get_avg(metrics.set_times)
            stats.p95_get_time_ms = metrics.get_percentile(metrics.get_times, 95)
            stats.p95_set_time_ms = metrics.get_percentile(metrics.set_times, 95)
        return stats

    def clear(self) -> None:
        self._results.clear()
        self._of.clear()
        self._start()


class RetrievalCache(_Kept):
    """Results inside the process; the least recently used one goes first."""

    def __init__(
        self,
        ttl_seconds: int = 300,
        max_entries: int = 1000,
        cleanup_interval: int = 60,
        enable_metrics: bool = True,
        namespace: str | None = None,
    ) -> None:
        self.cleanup_interval = cleanup_interval
        super().__init__(LocalResults(max_entries), ttl_seconds, max_entries, namespace, enable_metrics)


class RedisCache(_Kept):
    """Results on a Redis server, which all processes with the same prefix share."""

    def __init__(
        self,
        host: str = "localhost",
        port: int = 6379,
        db: int = 0,
        password: str | None = None,
        ttl_seconds: int = 300,
        key_prefix: str = "alma",
        connection_pool_size: int = 10,
        enable_metrics: bool = True,
        namespace: str | None = None,
    ) -> None:
        from urllib.parse import quote

        from alma.cache.redis import RedisCache as RedisResults

        secret = f":{quote(password, safe='')}@" if password else ""
        prefix = key_prefix.strip(":").replace(":", "_") or "alma"
        results = RedisResults(f"redis://{secret}{host}:{port}/{db}", prefix)
        super().__init__(results, ttl_seconds, 0, namespace, enable_metrics)


class NullCache(CacheBackend):
    """Keeps nothing; every lookup is a miss."""

    def __init__(self) -> None:
        self._stats = CacheStats()

    def get(
        self, query: str, agent: str, project_id: str, user_id: str | None = None, top_k: int = 5
    ) -> MemorySlice | None:
        self._stats.misses += 1
        return None

    def set(
        self,
        query: str,
        agent: str,
        project_id: str,
        result: MemorySlice,
        user_id: str | None = None,
        top_k: int = 5,
        ttl_override: int | None = None,
    ) -> None: ...

    def invalidate(self, agent: str | None = None, project_id: str | None = None) -> int:
        return 0

    def get_stats(self) -> CacheStats:
        return self._stats

    def clear(self) -> None: ...


def create_cache(
    backend: str = "memory",
    ttl_seconds: int = 300,
    max_entries: int = 1000,
    redis_host: str = "localhost",
    redis_port: int = 6379,
    redis_password: str | None = None,
    redis_db: int = 0,
    enable_metrics: bool = True,
    namespace: str | None = None,
) -> CacheBackend:
    """The cache of this name: redis, null, or else memory."""
    if backend == "redis":
        return RedisCache(
            redis_host,
            redis_port,
            redis_db,
            redis_password,
            ttl_seconds,
            enable_metrics=enable_metrics,
            namespace=namespace,
        )
    if backend == "null":
        return NullCache()
    return RetrievalCache(ttl_seconds, max_entries, enable_metrics=enable_metrics, namespace=namespace)
