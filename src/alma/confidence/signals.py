"""Signals: what speaks for a strategy, what against it, and what follows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from alma.learning.recommendation import Assessed


class RecommendationLevel(StrEnum):
    """What to do with a strategy, from the best to the worst."""

    STRONG_YES = "strong_yes"
    YES = "yes"
    NEUTRAL = "neutral"
    CAUTION = "caution"
    AVOID = "avoid"


@dataclass(frozen=True, slots=True)
class RiskSignal:
    """Something that speaks against a strategy: how much, why, and the memories that show it."""

    risk_type: str
    description: str
    severity: float
    evidence_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OpportunitySignal:
    """Something that speaks for a strategy: how much, why, and the memories that show it."""

    opportunity_type: str
    description: str
    strength: float
    evidence_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConfidenceSignal:
    """What to expect of a strategy in a context.

    `confidence_score` is the share of successes to be expected; `lower_bound` and `upper_bound` say how sure that is.
    """

    strategy: str
    context: str
    agent: str
    confidence_score: float
    recommendation: RecommendationLevel
    assessed: Assessed
    risks: tuple[RiskSignal, ...] = ()
    opportunities: tuple[OpportunitySignal, ...] = ()

    @property
    def lower_bound(self) -> float:
        return self.assessed.lower_bound

    @property
    def upper_bound(self) -> float:
        return self.assessed.upper_bound

    @property
    def risk_signals(self) -> tuple[RiskSignal, ...]:
        """The risks, by the name that users of alma-memory know."""
        return self.risks

    @property
    def opportunity_signals(self) -> tuple[OpportunitySignal, ...]:
        """The opportunities, by the name that users of alma-memory know."""
        return self.opportunities

    @property
    def occurrence_count(self) -> int:
        """How often it was tried."""
        return self.assessed.tried

    @property
    def historical_success_rate(self) -> float | None:
        """Which share of that succeeded; None where it was never tried."""
        return self.assessed.succeeded / self.assessed.tried if self.assessed.tried else None

    @property
    def reasoning(self) -> str:
        """Why the signal is what it is, in sentences."""
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
