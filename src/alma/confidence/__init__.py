"""Confidence: what to expect of a strategy before it is tried."""

from alma.confidence.engine import ConfidenceEngine
from alma.confidence.signals import (
    ConfidenceSignal,
    OpportunitySignal,
    RecommendationLevel,
    RiskSignal,
)

__all__ = ["ConfidenceEngine", "ConfidenceSignal", "OpportunitySignal", "RecommendationLevel", "RiskSignal"]
