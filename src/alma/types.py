"""The documented import path of the memory types."""

from enum import StrEnum

from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.memory import Memory
from alma.model.scope import MemoryScope
from alma.model.slice import MemorySlice


class MemoryType(StrEnum):
    """The five kinds of memory that agents learn."""

    HEURISTIC = "heuristic"
    OUTCOME = "outcome"
    USER_PREFERENCE = "user_preference"
    DOMAIN_KNOWLEDGE = "domain_knowledge"
    ANTI_PATTERN = "anti_pattern"


__all__ = [
    "AntiPattern",
    "DomainKnowledge",
    "Heuristic",
    "Memory",
    "MemoryScope",
    "MemorySlice",
    "MemoryType",
    "Outcome",
    "UserPreference",
]
