"""What a strategy's success is estimated from: risks, opportunities, and the signal that sums them up."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from alma.arguments import earlier, renamed
from alma.clock import new_id, now
from alma.confidence.earlier_calls import EarlierReason, EarlierSignal
from alma.learning.recommendation import Assessed

STRONG, GOOD, DOUBTFUL, BAD = 0.8, 0.6, 0.4, 0.25
"""The scores from which on a strategy is strongly recommended, recommended, neither, or only with caution."""
# The expectation without evidence, and how much the strongest reason adds to it.
_UNKNOWN, _MOST_ADDED = 0.5, 0.3


class RecommendationLevel(StrEnum):
    """How strongly a strategy is recommended, from the best to the worst."""

    STRONG_YES = "strong_yes"
    YES = "yes"
    NEUTRAL = "neutral"
    CAUTION = "caution"
    AVOID = "avoid"


@earlier(renamed({"signal_type": "risk_type", "related_memories": "evidence_ids"}))
@dataclass(frozen=True, slots=True)
class RiskSignal(EarlierReason):
    """A reason against a strategy: its severity, explanation and evidence."""

    risk_type: str
    description: str = ""
    severity: float = 0.0
    evidence_ids: tuple[str, ...] = ()

    @property
    def signal_type(self) -> str:
        """Its type, under the name of alma-memory."""
        return self.risk_type


@earlier(renamed({"signal_type": "opportunity_type", "related_memories": "evidence_ids"}))
@dataclass(frozen=True, slots=True)
class OpportunitySignal(EarlierReason):
    """A reason for a strategy: its strength, explanation and evidence."""

    opportunity_type: str
    description: str = ""
    strength: float = 0.0
    evidence_ids: tuple[str, ...] = ()

    @property
    def signal_type(self) -> str:
        """Its type, under the name of alma-memory."""
        return self.opportunity_type


@dataclass(frozen=True, slots=True)
class ConfidenceSignal(EarlierSignal):
    """The estimated success of a strategy in a context.

    `confidence_score` is the expected success rate, and `lower_bound` and `upper_bound` are its interval.
    """

    strategy: str
    context: str
    agent: str
    confidence_score: float
    recommendation: RecommendationLevel
    assessed: Assessed
    risks: tuple[RiskSignal, ...] = ()
    opportunities: tuple[OpportunitySignal, ...] = ()
    id: str = field(default_factory=new_id, compare=False)
    assessed_at: datetime = field(default_factory=now, compare=False)

    @classmethod
    def create(cls, strategy: str, context: str, agent: str, heuristic_id: str | None = None) -> SignalDraft:
        """A signal to fill in, without evidence."""
        nothing = Assessed(strategy, _UNKNOWN, 0.0, 1.0, 0, 0)
        draft = SignalDraft(strategy, context, agent, _UNKNOWN, RecommendationLevel.NEUTRAL, nothing)
        draft.heuristic_id = heuristic_id
        return draft

    @property
    def lower_bound(self) -> float:
        return self.assessed.lower_bound

    @property
    def upper_bound(self) -> float:
        return self.assessed.upper_bound

    @property
    def occurrence_count(self) -> int:
        """How often it was tried."""
        return self.assessed.tried

    @property
    def historical_success_rate(self) -> float | None:
        """The success rate; None if it was never tried."""
        return self.assessed.succeeded / self.assessed.tried if self.assessed.tried else None

    @property
    def reasoning(self) -> str:
        """The reasons for the signal, in sentences."""
        tried = self.assessed
        limits = f"between {tried.lower_bound:.0%} and {tried.upper_bound:.0%}"
        known = (
            f"Tried {_times(tried.tried)}, succeeded {_times(tried.succeeded)}; "
            f"{self.confidence_score:.0%} is expected here, {limits}."
            if tried.tried
            else f"Never tried; {self.confidence_score:.0%} is what other strategies suggest."
        )
        said = [risk.description for risk in self.risks] + [chance.description for chance in self.opportunities]
        return " ".join([known, *(f"{sentence}." for sentence in said)])


def _times(number: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(number, f"{number} times")


class SignalDraft(ConfidenceSignal):
    """A signal whose fields may be assigned, and whose score follows from them."""

    confidence_score: float
    recommendation: RecommendationLevel
    risks: tuple[RiskSignal, ...]
    opportunities: tuple[OpportunitySignal, ...]
    # Plain values instead of what the evidence says.
    heuristic_id: str | None = None
    historical_success_rate: float = 0.0
    occurrence_count: int = 0
    predicted_success: float = 0.5
    context_similarity: float = 0.0
    uncertainty: float = 0.5
    reasoning: str = ""

    __setattr__ = object.__setattr__
    __hash__ = None  # type: ignore[assignment]

    def add_risk(self, signal_type: str, description: str, severity: float, source: str = "") -> RiskSignal:
        """Add a risk, and return it."""
        self.risks = (*self.risks, RiskSignal(signal_type, description, severity, source=source))
        self._recalculate_scores()
        return self.risks[-1]

    def add_opportunity(
        self, signal_type: str, description: str, strength: float, source: str = ""
    ) -> OpportunitySignal:
        """Add an opportunity, and return it."""
        self.opportunities = (*self.opportunities, OpportunitySignal(signal_type, description, strength, source=source))
        self._recalculate_scores()
        return self.opportunities[-1]

    def _recalculate_scores(self) -> None:
        known = [self.predicted_success, *([self.historical_success_rate] if self.historical_success_rate else [])]
        expected = _UNKNOWN + (sum(known) / len(known) - _UNKNOWN) * (1 - self.uncertainty / 2)
        expected += _MOST_ADDED * (self.total_opportunity_score - self.total_risk_score)
        self.confidence_score = min(1.0, max(0.0, expected))
        self.recommendation = self._level()

    def _level(self) -> RecommendationLevel:
        if self.total_risk_score >= STRONG or self.confidence_score < BAD:
            return RecommendationLevel.AVOID
        if self.confidence_score < DOUBTFUL:
            return RecommendationLevel.CAUTION
        if self.confidence_score < GOOD:
            return RecommendationLevel.NEUTRAL
        return RecommendationLevel.STRONG_YES if self.confidence_score >= STRONG else RecommendationLevel.YES
