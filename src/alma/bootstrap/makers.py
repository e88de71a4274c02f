"""Wiring of providers: which class makes vectors, and which remembers answers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from alma.errors import ConfigurationError, shown
from alma.fitting import made

if TYPE_CHECKING:
    from alma.cache.base import CacheBackend
    from alma.embeddings.base import EmbeddingProvider


def create_embedder(provider: str, cache_size: int | None = None, **options: Any) -> EmbeddingProvider:
    """The provider of embeddings with this name: local, openai, azure or mock; `options` are its constructor's.

    Keys and the Azure endpoint that are not given come from the environment. What was encoded last is remembered, for
    10,000 texts unless `cache_size` says otherwise; 0 remembers nothing.
    """
    make = _EMBEDDERS.get(provider) if isinstance(provider, str) else None
    if make is None:
        raise ConfigurationError(f"{shown(provider)} is no provider of embeddings; choose {', '.join(_EMBEDDERS)}")
    embedder = make(f"{provider} embeddings", options)
    if cache_size == 0:
        return embedder
    from alma.embeddings.cached import DEFAULT_CACHE_SIZE, CachedEmbedder

    return CachedEmbedder(embedder, DEFAULT_CACHE_SIZE if cache_size is None else cache_size)


def create_cache(backend: str = "memory", **options: Any) -> CacheBackend:
    """The cache of retrieval results with this name: memory, redis or null; `options` are its constructor's."""
    make = _CACHES.get(backend) if isinstance(backend, str) else None
    if make is None:
        raise ConfigurationError(f"{shown(backend)} is no cache; choose {', '.join(_CACHES)}")
    return make(f"the {backend} cache", options)


def local_model() -> tuple[str, int]:
    """The name and length of the vectors that are made when nothing else is asked for."""
    embedder = create_embedder("local", cache_size=0)
    return embedder.model, embedder.dimension


def openai_account() -> dict[str, str]:
    """What the environment says about OpenAI."""
    return {"api_key": os.environ.get("OPENAI_API_KEY", "")}


def azure_account() -> dict[str, str]:
    """What the environment says about Azure OpenAI."""
    return {
        "endpoint": os.environ.get("AZURE_OPENAI_ENDPOINT", ""),
        "api_key": os.environ.get("AZURE_OPENAI_API_KEY", ""),
    }


def _local_embedder(what: str, options: Mapping[str, Any]) -> EmbeddingProvider:
    from alma.embeddings.local import LocalEmbedder

    return made(LocalEmbedder, what, options)


def _openai_embedder(what: str, options: Mapping[str, Any]) -> EmbeddingProvider:
    from alma.embeddings.openai import OpenAIEmbedder

    return made(OpenAIEmbedder, what, {**openai_account(), **options})


def _azure_embedder(what: str, options: Mapping[str, Any]) -> EmbeddingProvider:
    from alma.embeddings.azure import AzureEmbedder

    return made(AzureEmbedder, what, {**azure_account(), **options})


def _mock_embedder(what: str, options: Mapping[str, Any]) -> EmbeddingProvider:
    from alma.embeddings.mock import MockEmbedder

    return made(MockEmbedder, what, options)


_EMBEDDERS = {
    "local": _local_embedder,
    "openai": _openai_embedder,
    "azure": _azure_embedder,
    "mock": _mock_embedder,
}


def _memory_cache(what: str, options: Mapping[str, Any]) -> CacheBackend:
    from alma.cache.local import RetrievalCache

    return made(RetrievalCache, what, options)


def _redis_cache(what: str, options: Mapping[str, Any]) -> CacheBackend:
    from alma.cache.redis import RedisCache

    return made(RedisCache, what, options)


def _null_cache(what: str, options: Mapping[str, Any]) -> CacheBackend:
    from alma.cache.base import NullCache

    return made(NullCache, what, options)


_CACHES = {"memory": _memory_cache, "redis": _redis_cache, "null": _null_cache}
