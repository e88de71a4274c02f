"""Scoring: what a memory is worth for a task, as a sum of terms that are all kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from functools import lru_cache
from typing import Any

from alma.errors import ValidationError
from alma.model.learning import (
    EVIDENCE_HALF_LIFE_DAYS,
    AntiPattern,
    DomainKnowledge,
    Heuristic,
    Outcome,
    UserPreference,
    belief_today,
)
from alma.model.memory import Memory
from alma.model.record import Record
from alma.text.timeexpr import TimeWindow

MOMENTS: Mapping[type[Record], tuple[str, ...]] = {
    Heuristic: ("last_validated", "created_at"),
    AntiPattern: ("last_seen", "created_at"),
    UserPreference: ("timestamp",),
    DomainKnowledge: ("last_verified",),
    Outcome: ("timestamp",),
    Memory: ("event_time", "created_at"),
}
"""Where a memory says when it was true or last seen to be, and where it says so instead."""

UNKNOWN = 0.5
"""A factor that a memory cannot tell: neither for nor against it."""


@dataclass(frozen=True, slots=True)
class ScoringWeights:
    """How much each factor counts; each is a number of at least 0, and they need not add up to 1."""

    similarity: float = 0.4
    recency: float = 0.3
    success: float = 0.2
    confidence: float = 0.1
    importance: float = 0.0

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
                raise ValidationError("scoring_weights", item.name, value, "must be a number of at least 0")


MEMORY_WEIGHTS = ScoringWeights(similarity=0.9, recency=0.02, success=0.0, confidence=0.0, importance=0.08)
"""For general memories: what was said last year answers a question about last year as well as it ever did."""


@dataclass(frozen=True, slots=True)
class Factors:
    """What a record says of itself, each between 0 and 1."""

    recency: float
    success: float
    confidence: float
    importance: float


def recency(moment: datetime | None, now: datetime, half_life_days: float) -> float:
    """1 for now, a half after one half-life, and so on; unknown where there is no moment."""
    if moment is None:
        return UNKNOWN
    days = max(0.0, (now - moment).total_seconds() / 86_400)
    return float(0.5 ** (days / half_life_days))


def recency_at(record: Record, window: TimeWindow, now: datetime, half_life_days: float) -> float:
    """What recency is where a time is asked for that is over: how near a lesson is to that time, and not to now."""
    known = moments_of(record)
    if not known or max(end for _, end in window.spans) > now:
        return recency(moment_of(record), now, half_life_days)
    if any(map(window.holds, known)):
        return 1.0
    nearest = min(max(start - moment, moment - end) for moment in known for start, end in window.spans)
    return float(0.5 ** (nearest.total_seconds() / 86_400 / half_life_days))


def factors(
    record: Record,
    now: datetime,
    half_life_days: float,
    window: TimeWindow | None = None,
    *,
    evidence_half_life_days: float = EVIDENCE_HALF_LIFE_DAYS,
) -> Factors:
    """The factors of a record of any kind; of a lesson, for the time that is asked for."""
    success, confidence, importance = _standing(record, now, evidence_half_life_days)
    if window is None or isinstance(record, Memory):
        since = recency(moment_of(record), now, half_life_days)
    else:
        since = recency_at(record, window, now, half_life_days)
    return Factors(since, success, confidence, importance)


def moment_of(record: Record) -> datetime | None:
    """When a memory was true, or last seen to be."""
    for name in MOMENTS.get(type(record), ()):
        moment: datetime | None = getattr(record, name)
        if moment is not None:
            return moment
    return None


def moments_of(record: Record) -> list[datetime]:
    """When a memory was true, or last seen to be, and when it was first seen."""
    told = (getattr(record, name) for name in MOMENTS.get(type(record), ()))
    return [moment for moment in told if moment is not None]


def _standing(record: Any, now: datetime, evidence_half_life_days: float) -> tuple[float, float, float]:
    """Success, confidence and importance of a record, as far as its kind knows them."""
    match record:
        case Heuristic():
            seen = record.occurrence_count
            # Both are counted apart, by whoever counts.
            success = min(1.0, record.success_count / seen) if seen else UNKNOWN
            belief = belief_today(record, now, evidence_half_life_days)
            # Three of three may be luck, and long ago: what was learned counts by what it is worth at least today.
            return success, record.confidence if belief is None else belief.lower_bound, UNKNOWN
        case Outcome():
            return float(record.success), UNKNOWN, UNKNOWN
        case AntiPattern():
            # The more often a mistake was made, the better it is known to be one.
            return UNKNOWN, record.occurrence_count / (record.occurrence_count + 1), UNKNOWN
        case UserPreference() | DomainKnowledge():
            return UNKNOWN, record.confidence, UNKNOWN
        case Memory():
            return UNKNOWN, UNKNOWN, record.importance_score
        case _:
            return UNKNOWN, UNKNOWN, UNKNOWN


def score_terms(relevance: Mapping[str, float], known: Factors, weights: ScoringWeights) -> dict[str, float]:
    """The terms of a score: each kind of relevance by the weight of similarity, each factor by its own."""
    similarity = weights.similarity
    terms = {name: worth for name, value in relevance.items() if (worth := similarity * value)}
    for name, weight in _weights_of_factors(weights):
        terms[name] = weight * getattr(known, name)
    return terms


@lru_cache(maxsize=16)
def _weights_of_factors(weights: ScoringWeights) -> list[tuple[str, float]]:
    """The factors that count, and how much."""
    named = ((name, getattr(weights, name)) for name in ("recency", "success", "confidence", "importance"))
    return [(name, weight) for name, weight in named if weight]
