"""The calls of alma-memory 0.4 on a retrieval engine: its cache and its weights."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from alma.cache.base import CacheBackend
from alma.retrieval.scoring import ScoringWeights

_FACTORS = {"similarity": "similarity", "recency": "recency", "success_rate": "success", "confidence": "confidence"}


class EarlierCalls:
    """The earlier names of an engine's methods."""

    cache: CacheBackend
    weights: ScoringWeights

    def invalidate_cache(self, agent: str | None = None, project_id: str | None = None) -> None:
        """Drop the cached results, whatever the agent or project: they are computed again when asked for."""
        self.cache.clear()

    def clear_cache(self) -> None:
        """Drop the cached results."""
        self.cache.clear()

    def get_cache_stats(self) -> dict[str, Any]:
        """Hits, misses and size of the cache, as `CacheStats.to_dict` of alma-memory gave them."""
        stats = self.cache.stats()
        looked = stats.hits + stats.misses
        rate = stats.hits / looked if looked else 0.0
        return {**asdict(stats), "hit_rate": f"{rate:.2%}", "current_size": stats.entries}

    def get_scorer_weights(self) -> dict[str, float]:
        """The weights of the factors of a score."""
        return {name: getattr(self.weights, field) for name, field in _FACTORS.items()}

    def update_scorer_weights(
        self,
        similarity: float | None = None,
        recency: float | None = None,
        success_rate: float | None = None,
        confidence: float | None = None,
    ) -> None:
        """Change weights of the factors; those that are not given stay."""
        given = {"similarity": similarity, "recency": recency, "success": success_rate, "confidence": confidence}
        self.weights = replace(self.weights, **{name: value for name, value in given.items() if value is not None})
        self.cache.clear()
