"""Vitals: for every kind of memory, when it was last seen to be alive and what it is worth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from alma.learning.decay import Decay
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.memory import Memory, ProjectPattern
from alma.model.query import And, Compare, Missing, Or, Predicate
from alma.model.record import Record
from alma.model.scope import Scope, checked_scope

PINNED = "pinned"
"""A tag of a general memory, or a key of a lesson's metadata that is true: it is never forgotten."""

INSTRUCTIONS = ("instruction", "standing_instruction")
USUAL_DECAY_RATE = 0.1
IMPORTANT = 0.9
_UNTESTED_WORTH = 0.5
_FEW_OCCURRENCES = 3
_SECONDS_PER_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Vitals:
    """Which fields of a kind tell when it was last seen and made, and what makes it worth keeping."""

    cls: type[Record]
    seen: str
    born: str
    worth: Callable[[Any], float]
    confidence: str | None = None

    def last_seen(self, record: Record) -> datetime | None:
        """When the memory last gave a sign of life: was validated, verified, used or made."""
        moments = (getattr(record, self.seen), getattr(record, self.born))
        return max((moment for moment in moments if moment is not None), default=None)

    def age_days(self, record: Record, now: datetime) -> float:
        """How long ago that was; of what tells no time, not at all."""
        seen = self.last_seen(record)
        return 0.0 if seen is None else max(0.0, (now - seen).total_seconds() / _SECONDS_PER_DAY)

    def not_seen_since(self, moment: datetime) -> Predicate:
        """What gave its last sign of life before then, as a question to a store."""
        born = And() if self.born == self.seen else Or(Missing(self.born), Compare(self.born, "lt", moment))
        unseen = And(Missing(self.seen), Compare(self.born, "lt", moment)) if self.born != self.seen else Or()
        return Or(And(Compare(self.seen, "lt", moment), born), unseen)

    def born_since(self, moment: datetime) -> Predicate:
        """What was made since then."""
        return Compare(self.born, "ge", moment)

    def strength(self, record: Record, decay: Decay, now: datetime) -> float:
        """What the memory is still worth: its own worth, less what time has taken."""
        age = self.age_days(record, now) * getattr(record, "decay_rate", USUAL_DECAY_RATE) / USUAL_DECAY_RATE
        return self.worth(record) * decay.strength(age)


def _heuristic_worth(record: Heuristic) -> float:
    return _UNTESTED_WORTH if is_untested(record) else record.confidence


def _anti_pattern_worth(record: AntiPattern) -> float:
    return 1.0 - 0.5 / (1 + record.occurrence_count)


VITALS: tuple[Vitals, ...] = (
    Vitals(Heuristic, "last_validated", "created_at", _heuristic_worth, "confidence"),
    Vitals(AntiPattern, "last_seen", "created_at", _anti_pattern_worth),
    Vitals(DomainKnowledge, "last_verified", "last_verified", lambda each: each.confidence, "confidence"),
    Vitals(UserPreference, "timestamp", "timestamp", lambda each: each.confidence, "confidence"),
    Vitals(Outcome, "timestamp", "timestamp", lambda _: 0.4),
    Vitals(Memory, "last_accessed_at", "created_at", lambda each: each.importance_score),
    Vitals(ProjectPattern, "last_used_at", "created_at", lambda each: each.success_rate),
)


def is_pinned(record: Any) -> bool:
    """Whether somebody wants this kept, whatever its age: pinned, an instruction, or of the highest importance."""
    if isinstance(record, Memory):
        standing = record.memory_type in INSTRUCTIONS or record.importance_score >= IMPORTANT
        return standing or PINNED in record.tags or record.context_json.get(PINNED) is True
    return getattr(record, "metadata", {}).get(PINNED) is True


def is_untested(record: Any) -> bool:
    """Whether a rule has hardly been tried yet, so that its confidence says nothing against it."""
    return isinstance(record, Heuristic) and record.occurrence_count < _FEW_OCCURRENCES


def is_young(record: Any, vitals: Vitals, now: datetime, grace: timedelta) -> bool:
    """Whether the memory was made within the time in which nothing is held against it."""
    born = getattr(record, vitals.born)
    return born is not None and born > now - grace


def fits(cls: type[Record], scope: Scope) -> bool:
    """Whether records of a kind can be told by what the scope names; where not, none of them lies inside."""
    checked_scope(cls.spec.kind, scope)
    names = ("user_id", "project_id", "session_id", "agent")
    return all(name in cls.spec.by_name for name in names if getattr(scope, name) is not None)
