"""Caches of results and the keys on a Redis server: the port and its implementations, each loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alma.lazy import loader

if TYPE_CHECKING:
    from alma.cache.base import CacheBackend as CacheBackend
    from alma.cache.base import CacheStats as CacheStats
    from alma.cache.base import NullCache as NullCache
    from alma.cache.keys import CACHE_TTL_CONFIG as CACHE_TTL_CONFIG
    from alma.cache.local import RetrievalCache as RetrievalCache
    from alma.cache.redis import RedisCache as RedisCache
    from alma.cache.redis_patterns import RedisProjection as RedisProjection

_HOME_OF = {
    "CacheBackend": "alma.cache.base",
    "CacheStats": "alma.cache.base",
    "NullCache": "alma.cache.base",
    "RetrievalCache": "alma.cache.local",
    "RedisCache": "alma.cache.redis",
    "RedisProjection": "alma.cache.redis_patterns",
    "CACHE_TTL_CONFIG": "alma.cache.keys",
    "create_cache": "alma.bootstrap",
}

__all__ = [*_HOME_OF]

__getattr__ = loader(__name__, _HOME_OF)
