"""Retrieval: find the few memories worth knowing before a task, and explain their scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alma.lazy import loader

if TYPE_CHECKING:
    from alma.retrieval.engine import RetrievalEngine as RetrievalEngine
    from alma.retrieval.scoring import ScoringWeights as ScoringWeights
    from alma.retrieval.writing import MemoryWriter as MemoryWriter

_HOME_OF = {
    "RetrievalEngine": "alma.retrieval.engine",
    "ScoringWeights": "alma.retrieval.scoring",
    "MemoryWriter": "alma.retrieval.writing",
    # The import path of caches and embedders in alma-memory; the caches of the engine are in `alma.cache`.
    **dict.fromkeys(
        (
            "CacheBackend",
            "CacheEntry",
            "CacheStats",
            "NullCache",
            "PerformanceMetrics",
            "RedisCache",
            "RetrievalCache",
            "create_cache",
        ),
        "alma.compat.cache",
    ),
    **dict.fromkeys(("MemoryScorer", "ScoredItem", "compute_composite_score"), "alma.compat.scoring"),
    "AzureEmbedder": "alma.embeddings",
    "EmbeddingProvider": "alma.embeddings",
    "LocalEmbedder": "alma.embeddings",
    "MockEmbedder": "alma.embeddings",
}

__all__ = [*_HOME_OF]

__getattr__ = loader(__name__, _HOME_OF)
