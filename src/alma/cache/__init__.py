"""Caches of retrieval results: the port and its implementations, each loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alma.lazy import loader

if TYPE_CHECKING:
    from alma.cache.base import CacheBackend as CacheBackend
    from alma.cache.base import CacheStats as CacheStats
    from alma.cache.base import NullCache as NullCache
    from alma.cache.local import RetrievalCache as RetrievalCache
    from alma.cache.redis import RedisCache as RedisCache

_HOME_OF = {
    "CacheBackend": "alma.cache.base",
    "CacheStats": "alma.cache.base",
    "NullCache": "alma.cache.base",
    "RetrievalCache": "alma.cache.local",
    "RedisCache": "alma.cache.redis",
    "create_cache": "alma.bootstrap",
}

__all__ = [*_HOME_OF]

__getattr__ = loader(__name__, _HOME_OF)
