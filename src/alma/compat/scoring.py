"""The scorer of alma-memory 0.4: four factors with their weights, for programs that score records themselves.

`RetrievalEngine` scores with more, as `slice.explain()` shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from alma.clock import now
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome
from alma.retrieval.scoring import ScoringWeights

_DAY_SECONDS = 86_400.0
_AFTER_FAILURE = 0.3
_WELL_KNOWN = 10


@dataclass
class ScoredItem:
    """A record with its score and the factors of it."""

    item: Any
    score: float
    similarity_score: float
    recency_score: float
    success_score: float
    confidence_score: float


class MemoryScorer:
    """Scores records by similarity, recency, success and confidence."""

    def __init__(self, weights: ScoringWeights | None = None, recency_half_life_days: float = 30.0) -> None:
        self.weights = weights or ScoringWeights()
        self.recency_half_life = recency_half_life_days

    def score_heuristics(
        self, heuristics: Sequence[Heuristic], similarities: Sequence[float] | None = None
    ) -> list[ScoredItem]:
        """The heuristics with their scores, best first."""
        return self._scored(
            heuristics, similarities, lambda each: (each.last_validated, each.success_rate, each.confidence)
        )

    def score_outcomes(
        self, outcomes: Sequence[Outcome], similarities: Sequence[float] | None = None
    ) -> list[ScoredItem]:
        """The outcomes with their scores, best first."""
        return self._scored(
            outcomes, similarities, lambda each: (each.timestamp, 1.0 if each.success else _AFTER_FAILURE, 1.0)
        )

    def score_domain_knowledge(
        self, knowledge: Sequence[DomainKnowledge], similarities: Sequence[float] | None = None
    ) -> list[ScoredItem]:
        """The facts with their scores, best first."""
        return self._scored(knowledge, similarities, lambda each: (each.last_verified, 1.0, each.confidence))

    def score_anti_patterns(
        self, anti_patterns: Sequence[AntiPattern], similarities: Sequence[float] | None = None
    ) -> list[ScoredItem]:
        """The anti-patterns with their scores, best first."""
        return self._scored(
            anti_patterns,
            similarities,
            lambda each: (each.last_seen, min(each.occurrence_count / _WELL_KNOWN, 1.0), 1.0),
        )

    def apply_score_threshold(self, scored_items: Sequence[ScoredItem], min_score: float = 0.2) -> list[ScoredItem]:
        """Those with at least this score."""
        return [each for each in scored_items if each.score >= min_score]

    def _scored(
        self,
        records: Sequence[Any],
        similarities: Sequence[float] | None,
        factors: Callable[[Any], tuple[Any, float, float]],
    ) -> list[ScoredItem]:
        scored = []
        for each, similarity in zip(records, similarities or [1.0] * len(records), strict=False):
            moment, success, confidence = factors(each)
            recency = self._compute_recency_score(moment)
            score = _sum(self.weights, similarity, recency, success, confidence)
            scored.append(ScoredItem(each, score, similarity, recency, success, confidence))
        return sorted(scored, key=lambda each: -each.score)

    def _compute_recency_score(self, timestamp: datetime | None) -> float:
        if timestamp is None:
            return 0.0
        moment = timestamp if timestamp.tzinfo is not None else timestamp.replace(tzinfo=UTC)
        return _recency((now() - moment).total_seconds() / _DAY_SECONDS, self.recency_half_life)


def compute_composite_score(
    similarity: float,
    recency_days: float,
    success_rate: float,
    confidence: float,
    weights: ScoringWeights | None = None,
    recency_half_life: float = 30.0,
) -> float:
    """The score of these factors."""
    recency = _recency(recency_days, recency_half_life)
    return _sum(weights or ScoringWeights(), similarity, recency, success_rate, confidence)


def _recency(days: float, half_life_days: float) -> float:
    return float(0.5 ** (days / half_life_days))


def _sum(weights: ScoringWeights, similarity: float, recency: float, success: float, confidence: float) -> float:
    factors = (
        (weights.similarity, similarity),
        (weights.recency, recency),
        (weights.success, success),
        (weights.confidence, confidence),
    )
    return sum(weight * factor for weight, factor in factors)
