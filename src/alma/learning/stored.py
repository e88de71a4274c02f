"""What is stored of an agent's lessons: read once, and then known for as long as nobody else writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from datetime import datetime
from typing import Generic, NamedTuple, TypeVar

from alma.model.fields import JsonObject
from alma.model.learning import AntiPattern, Heuristic, Outcome, anti_pattern_id
from alma.model.query import Order
from alma.model.scope import Scope
from alma.storage.transaction import Transaction

EVIDENCE_READ = 100
_MOST_COUNTED = 10_000
NEWEST_FIRST = Order("timestamp", "desc")
SAME_STRATEGY = "same_strategy"
"""Under this name an outcome's metadata keeps how likely it is that its strategy is that of its lesson."""
NOT_THE_SAME = "not_the_same"
"""Under this name a rule's metadata keeps the strategies of which somebody said that they are not its own."""
RELATED = "related"
"""Under this name a rule's metadata keeps which older rules say more, less or the opposite, and how likely that is."""
_MOST_LESSONS, _MOST_WARNINGS, _MOST_AGENTS = 1_024, 8_192, 16

T = TypeVar("T", Heuristic, AntiPattern)


class Seen(NamedTuple):
    """What counts of an outcome when it is compared with others."""

    id: str
    lesson_id: str | None
    task_type: str | None
    task_description: str
    strategy_used: str | None
    success: bool
    error_message: str | None
    timestamp: datetime | None
    metadata: JsonObject

    @classmethod
    def of(cls, outcome: Outcome) -> Seen:
        return cls._make(getattr(outcome, name) for name in cls._fields)


class Tried(NamedTuple):
    """What counts of an outcome as long as nothing is made of it."""

    success: bool
    timestamp: datetime | None
    task_description: str
    metadata: JsonObject

    @classmethod
    def of(cls, outcome: Outcome) -> Tried:
        return cls._make(getattr(outcome, name) for name in cls._fields)


class Counted(NamedTuple):
    """What counts of an outcome when something is made of its lesson."""

    id: str
    success: bool
    timestamp: datetime | None
    task_description: str
    metadata: JsonObject

    @classmethod
    def of(cls, outcome: Outcome) -> Counted:
        return cls._make(getattr(outcome, name) for name in cls._fields)


def probability_of(counted: Seen | Tried | Counted | Outcome) -> float:
    """How likely it is that an outcome is of the strategy of its lesson; 1 where the words are the same."""
    known = counted.metadata.get(SAME_STRATEGY) if counted.metadata else None
    return float(known) if isinstance(known, float) and 0 <= known <= 1 else 1.0


class _Held(NamedTuple, Generic[T]):
    """A record, or that there is none. Whoever was given it may have changed the inside of its metadata."""

    record: T | None
    metadata: JsonObject | None

    @property
    def is_as_stored(self) -> bool:
        return self.record is None or self.record.metadata == self.metadata


class _Known:
    """What is known of the lessons of one agent in one project."""

    def __init__(self) -> None:
        self.rules: dict[str, _Held[Heuristic]] = {}
        self.warnings: dict[str, _Held[AntiPattern]] = {}
        self.tried: dict[str, list[Tried]] = {}
        # The warnings that name an alternative, or are none.
        self.aware: set[str] = set()

    def forget_much(self) -> None:
        """Begin again with what has become too much to keep."""
        for known in (self.rules, self.warnings, self.tried):
            if len(known) > _MOST_LESSONS:
                known.clear()
        if len(self.aware) > _MOST_WARNINGS:
            self.aware.clear()


class _Left(dict[Scope, _Known]):
    """What one outcome leaves for the next."""


class StoredLessons:
    """The lessons of an agent inside a transaction: what is read of them and what is written.

    `alone` says that the transaction is the outcome's own. Then what the last one left holds still, unless somebody
    else wrote since, and so will what this one leaves.
    """

    def __init__(self, tx: Transaction, scope: Scope, *, alone: bool) -> None:
        self.tx = tx
        self.scope = scope
        self._left = tx.found_behind if alone and isinstance(tx.found_behind, _Left) else _Left()
        self._known = self._left.setdefault(scope, _Known())
        self._alone = alone

    # ------------------------------------------------------------------ reading

    def rule(self, lesson_id: str) -> Heuristic | None:
        """The rule that a lesson has become, held against other writers.

        So is a lesson that is none yet: whoever makes it one would not know of outcomes that are being stored.
        """
        if lesson_id not in self._known.rules:
            self.tx.hold(f"lesson {lesson_id}")
        return self._held(Heuristic, self._known.rules, lesson_id)

    def warning(self, lesson_id: str) -> AntiPattern | None:
        """The warning of a lesson, held as well."""
        return self._held(AntiPattern, self._known.warnings, anti_pattern_id(lesson_id))

    def _held(self, cls: type[T], known: dict[str, _Held[T]], key: str) -> T | None:
        held = known.get(key)
        if held is None or not held.is_as_stored:
            held = known[key] = _held(next(iter(self.tx.lock(cls, [key], self.scope)), None))
        return held.record

    def warnings(self, lessons: Iterable[str]) -> list[AntiPattern]:
        """The warnings of these lessons, held."""
        return self.tx.lock(AntiPattern, list(map(anti_pattern_id, lessons)), self.scope)

    def unaware(self, lessons: Iterable[str]) -> list[AntiPattern]:
        """The warnings of these lessons that name no alternative."""
        known = self._known
        asked = [key for key in map(anti_pattern_id, lessons) if key not in known.aware]
        lacking = self.tx.lacking(AntiPattern, "better_alternative", asked, self.scope) if asked else ()
        known.aware.update(asked)
        known.aware.difference_update(lacking)
        return self.tx.lock(AntiPattern, lacking, self.scope) if lacking else []

    def tried(self, lesson_id: str) -> Sequence[Tried]:
        """How the newest outcomes of a lesson went, newest first, as many as count."""
        known = self._known.tried.get(lesson_id)
        if known is None:
            found = self.tx.values_of(
                Outcome, Tried._fields, self.scope, "lesson_id", lesson_id, NEWEST_FIRST, EVIDENCE_READ
            )
            known = self._known.tried[lesson_id] = list(map(Tried._make, found))
        return known

    def newest(self, lesson_id: str) -> list[Seen]:
        """The newest outcomes of a lesson, newest first, as many as count."""
        rows = self.tx.values_of(Outcome, Seen._fields, self.scope, "lesson_id", lesson_id, NEWEST_FIRST, EVIDENCE_READ)
        return list(map(Seen._make, rows))

    def all_of(self, lesson_id: str) -> list[Counted]:
        """All outcomes of a lesson, newest first; of a very long one, the newest thousands."""
        rows = self.tx.values_of(
            Outcome, Counted._fields, self.scope, "lesson_id", lesson_id, NEWEST_FIRST, _MOST_COUNTED
        )
        return list(map(Counted._make, rows))

    # ------------------------------------------------------------------ writing

    def add(self, outcome: Outcome) -> None:
        """Store an outcome of a lesson, whose id was made just now."""
        self.tx.add(outcome)
        lesson_id = outcome.lesson_id or ""
        known = self._known.tried.pop(lesson_id, None)
        # Where the clock was put back, the store tells which is the newest.
        if known is not None and (not known or _is_later(outcome.timestamp, known[0].timestamp)):
            new = Tried(outcome.success, outcome.timestamp, outcome.task_description, outcome.metadata)
            self._known.tried[lesson_id] = [new, *known][:EVIDENCE_READ]

    def add_made(self, made: Heuristic | AntiPattern) -> None:
        """Store what was made of a lesson, and what nobody has: it was looked for already.

        What was there once is a conflict that is tried again. A transaction that somebody else began is not, so there
        it is looked for as well; and so are warnings, which come and go.
        """
        is_first = isinstance(made, Heuristic) and self._alone
        (self.tx.add if is_first else self.tx.insert)(made)
        self._put(made)

    def revise(self, held: T, made: T) -> None:
        """Replace a rule or a warning."""
        self.tx.revise(held, made)
        self._put(made)

    def withdraw(self, warning: AntiPattern) -> None:
        """Delete a warning."""
        self.tx.delete(AntiPattern, [warning.id], self.scope)
        self._known.warnings[warning.id] = _held(None)
        self._known.aware.add(warning.id)

    def _put(self, made: Heuristic | AntiPattern) -> None:
        known = self._known
        if isinstance(made, Heuristic):
            known.rules[made.id] = _held(made)
            return
        known.warnings[made.id] = _held(made)
        (known.aware.discard if made.better_alternative is None else known.aware.add)(made.id)

    def leave(self) -> None:
        """Leave what is known to the next outcome."""
        if self._alone:
            self._known.forget_much()
            self.tx.leave_behind(self._left if len(self._left) <= _MOST_AGENTS else None)


def _held(record: T | None) -> _Held[T]:
    return _Held(record, None if record is None else deepcopy(record.metadata) if record.metadata else {})


def _is_later(moment: datetime | None, before: datetime | None) -> bool:
    return moment is not None and before is not None and moment > before
