"""The documented import path of the memory types."""

from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.memory import Memory

__all__ = ["AntiPattern", "DomainKnowledge", "Heuristic", "Memory", "Outcome", "UserPreference"]
