"""The documented import path of the memory types."""

from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.memory import Memory
from alma.model.scope import MemoryScope
from alma.model.slice import MemorySlice

__all__ = [
    "AntiPattern",
    "DomainKnowledge",
    "Heuristic",
    "Memory",
    "MemoryScope",
    "MemorySlice",
    "Outcome",
    "UserPreference",
]
