"""Scoring: the score of a memory is a sum of named terms, each a feature with its weight."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from alma.arguments import earlier
from alma.errors import ValidationError
from alma.lazy import loader
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
from alma.model.slice import Explanation, Strength
from alma.retrieval.query_text import answer_features, asks_advice, asks_for_earlier_answer, asks_when
from alma.retrieval.relevance import Match, concision
from alma.retrieval.router import SearchRequest
from alma.retrieval.tuning import SCORE
from alma.text.timeexpr import TimeWindow

MOMENTS: Mapping[type[Record], tuple[str, ...]] = {
    Heuristic: ("last_validated", "created_at"),
    AntiPattern: ("last_seen", "created_at"),
    UserPreference: ("timestamp",),
    DomainKnowledge: ("last_verified",),
    Outcome: ("timestamp",),
    Memory: ("event_time", "created_at"),
}
"""The fields with the time when a record was true or last confirmed, in the order of preference."""

UNKNOWN = 0.5
"""The value of a factor that a kind does not have."""


def _of_four(given: dict[str, Any]) -> dict[str, Any]:
    """Weights in the form of alma-memory, with `success_rate`: the four are scaled so that they add up to 1."""
    if "success_rate" not in given:
        return given
    four = {"similarity": 0.4, "recency": 0.3, "confidence": 0.1, **given}
    four["success"] = four.pop("success_rate")
    total = sum(four.values())
    return {name: value / total for name, value in four.items()} if abs(total - 1) > _NEARLY else four


_NEARLY = 0.01


@earlier(_of_four)
@dataclass(frozen=True, slots=True)
class ScoringWeights:
    """How much each factor counts; each is a number of at least 0, and they need not add up to 1."""

    similarity: float = 0.4
    recency: float = 0.3
    success: float = 0.2
    confidence: float = 0.1
    importance: float = 0.0

    @property
    def success_rate(self) -> float:
        """The earlier name of `success`."""
        return self.success

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
                raise ValidationError("scoring_weights", item.name, value, "must be a number of at least 0")


MEMORY_WEIGHTS = ScoringWeights(similarity=0.9, recency=0.02, success=0.0, confidence=0.0, importance=0.08)
"""For general memories, whose age hardly matters (decision 0013)."""


@dataclass(slots=True)
class ScoredRecord:
    """A record that was read, with the terms of its score.

    For memories that are always included, `relevance` is None and the strength is strong. `words` are the terms of its
    text.
    """

    record: Record
    terms: dict[str, float]
    found_by: tuple[str, ...]
    words: frozenset[str] = frozenset()
    similarity: float | None = None
    relevance: float | None = None
    strength: Strength = "strong"
    notes: tuple[str, ...] = ()
    key: str = field(init=False)

    def __post_init__(self) -> None:
        self.key = str(self.record.key)

    @property
    def score(self) -> float:
        return sum(self.terms.values())

    def explanation(self) -> Explanation:
        """The terms of the score, and notes about the memory."""
        return Explanation(
            self.record.spec.kind,
            self.key,
            self.score,
            self.terms,
            self.found_by,
            self.notes,
            self.similarity,
            self.relevance,
            self.strength,
        )


@dataclass(frozen=True, slots=True)
class Scorer:
    """Scores records for one request; with a time range in the query, recency of lessons is relative to that range."""

    request: SearchRequest
    weights: ScoringWeights
    memory_weights: ScoringWeights
    half_life_days: float
    evidence_half_life_days: float = EVIDENCE_HALF_LIFE_DAYS
    window: TimeWindow | None = None

    def match(self, match: Match, strength: Strength) -> ScoredRecord:
        """The score of a candidate that was read."""
        terms = match.candidate.terms
        if isinstance(match.record, Memory):
            query = self.request.query
            features = answer_features(match.record.content, match.terms, terms, wants_time=asks_when(query))
            if not asks_advice(query) and not asks_for_earlier_answer(query):
                features["passage"] = (1.0 - concision(len(match.record.text()))) * match.in_passage
            terms |= {name: SCORE[name] * value for name, value in features.items()}
        scored = self.record(match.record, terms, match.candidate.found_by)
        scored.words, scored.similarity = match.terms, match.candidate.cosine
        scored.relevance, scored.strength = match.relevance, strength
        return scored

    def record(self, record: Record, similarity: Mapping[str, float], found_by: Iterable[str]) -> ScoredRecord:
        """The score of a record with these terms of similarity."""
        weights = self.memory_weights if isinstance(record, Memory) else self.weights
        terms = {name: worth for name, value in similarity.items() if (worth := weights.similarity * value)}
        success, confidence, importance = evidence_factors(record, self.request.now, self.evidence_half_life_days)
        since = recency(record, self.request.now, self.half_life_days, self.window)
        known = (
            ("recency", weights.recency * since),
            ("success", weights.success * success),
            ("confidence", weights.confidence * confidence),
            ("importance", weights.importance * importance),
        )
        terms.update((name, value) for name, value in known if getattr(weights, name))
        return ScoredRecord(record, terms, tuple(found_by))


def recency(record: Record, now: datetime, half_life_days: float, window: TimeWindow | None = None) -> float:
    """1 for a record of now, 0.5 after one half-life and so on; UNKNOWN for a record without a time.

    With a past time range in the query, how near a lesson is to that range.
    """
    known = moments_of(record)
    if not known:
        return UNKNOWN
    if window is None or isinstance(record, Memory) or max(end for _, end in window.spans) > now:
        days = max(0.0, (now - known[0]).total_seconds() / 86_400)
    elif any(map(window.holds, known)):
        days = 0.0
    else:
        nearest = min(max(start - moment, moment - end) for moment in known for start, end in window.spans)
        days = nearest.total_seconds() / 86_400
    return float(0.5 ** (days / half_life_days))


def moment_of(record: Record) -> datetime | None:
    """When a record was true or last confirmed."""
    for name in MOMENTS.get(type(record), ()):
        moment: datetime | None = getattr(record, name)
        if moment is not None:
            return moment
    return None


def moments_of(record: Record) -> list[datetime]:
    """When a record was true or last confirmed, and when it was made."""
    known = (getattr(record, name) for name in MOMENTS.get(type(record), ()))
    return [moment for moment in known if moment is not None]


def evidence_factors(record: Any, now: datetime, half_life_days: float) -> tuple[float, float, float]:
    """Success, confidence and importance of a record, each between 0 and 1, as far as its kind has them."""
    match record:
        case Heuristic():
            seen = record.occurrence_count
            success = min(1.0, record.success_count / seen) if seen else UNKNOWN
            belief = belief_today(record, now, half_life_days)
            # Three of three may be luck, or old: use the lower bound of today.
            return success, record.confidence if belief is None else belief.lower_bound, UNKNOWN
        case Outcome():
            return float(record.success), UNKNOWN, UNKNOWN
        case AntiPattern():
            # More occurrences of a mistake are more evidence.
            return UNKNOWN, record.occurrence_count / (record.occurrence_count + 1), UNKNOWN
        case UserPreference() | DomainKnowledge():
            return UNKNOWN, record.confidence, UNKNOWN
        case Memory():
            return UNKNOWN, UNKNOWN, record.importance_score
        case _:
            return UNKNOWN, UNKNOWN, UNKNOWN


_FROM_BEFORE = ("MemoryScorer", "ScoredItem", "compute_composite_score")
__getattr__ = loader(__name__, dict.fromkeys(_FROM_BEFORE, "alma.compat.scoring"))
