"""What is stored of an agent's lessons: read once in a transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from copy import deepcopy
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar

from alma import clock
from alma.errors import NotFoundError, ValidationError
from alma.learning.heuristics import EVIDENCE_READ, SAME_STRATEGY, Counted, HeuristicExtractor, Seen, Tried
from alma.learning.strategies import strategy_key
from alma.model.fields import JsonObject
from alma.model.governance import Attribution
from alma.model.learning import AntiPattern, Heuristic, Outcome, anti_pattern_id
from alma.model.query import And, Compare, Cursor, In, Missing, Order
from alma.model.scope import Scope
from alma.storage.base import StorageBackend
from alma.storage.transaction import Transaction

_MOST_COUNTED = 10_000
NEWEST_FIRST = Order("timestamp", "desc")
NOT_THE_SAME = "not_the_same"
"""Under this name a rule's metadata keeps the strategies of which somebody said that they are not its own."""
RELATED = "related"
"""Under this name a rule's metadata keeps which older rules say more, less or the opposite, and how likely that is."""

T = TypeVar("T", Heuristic, AntiPattern)


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


class StoredLessons:
    """The lessons of an agent inside a transaction: what is read of them and what is written.

    `alone` says that the transaction is the outcome's own.
    """

    def __init__(self, tx: Transaction, scope: Scope, *, alone: bool) -> None:
        self.tx = tx
        self.scope = scope
        self._known = _Known()
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
        without = And(In("id", asked), Missing("better_alternative"))
        lacking = [key for (key,) in self.tx.values(AntiPattern, ("id",), self.scope, without)] if asked else []
        known.aware.update(asked)
        known.aware.difference_update(lacking)
        return self.tx.lock(AntiPattern, lacking, self.scope) if lacking else []

    def tried(self, lesson_id: str) -> Sequence[Tried]:
        """How the newest outcomes of a lesson went, newest first, as many as count."""
        known = self._known.tried.get(lesson_id)
        if known is None:
            known = self._known.tried[lesson_id] = list(map(Tried._make, self._outcomes(Tried, lesson_id)))
        return known

    def newest(self, lesson_id: str) -> list[Seen]:
        """The newest outcomes of a lesson, newest first, as many as count."""
        return list(map(Seen._make, self._outcomes(Seen, lesson_id)))

    def all_of(self, lesson_id: str) -> list[Counted]:
        """All outcomes of a lesson, newest first; of a very long one, the newest thousands."""
        return list(map(Counted._make, self._outcomes(Counted, lesson_id, _MOST_COUNTED)))

    def _outcomes(
        self, form: type[Tried | Seen | Counted], lesson_id: str, limit: int = EVIDENCE_READ
    ) -> list[tuple[Any, ...]]:
        """The fields that a form has of the newest outcomes of a lesson."""
        of_lesson = Compare("lesson_id", "eq", lesson_id)
        return self.tx.values(Outcome, form._fields, self.scope, of_lesson, (NEWEST_FIRST,), limit)

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


def _held(record: T | None) -> _Held[T]:
    return _Held(record, None if record is None else deepcopy(record.metadata) if record.metadata else {})


def _is_later(moment: datetime | None, before: datetime | None) -> bool:
    return moment is not None and before is not None and moment > before


_AT_ONCE = 200


def separate(
    storage: StorageBackend,
    extractor: HeuristicExtractor,
    heuristic_id: str,
    strategy: str,
    scope: Scope,
    by: Attribution,
) -> list[str]:
    """Make the outcomes of a rule that tried this strategy a lesson of their own, and remember that they are not it.

    The rule counts what is left. Returns the ids of the outcomes that were taken out.
    """
    key = strategy_key(strategy)

    def take_out(tx: Transaction) -> list[str]:
        held = tx.lock(Heuristic, [heuristic_id], scope)
        if not held:
            raise NotFoundError(Heuristic.spec.kind, heuristic_id)
        every = _outcomes_of(tx, heuristic_id, scope)
        theirs = [each for each in every if strategy_key(each.strategy_used or "") == key]
        if not theirs:
            raise ValidationError("not_the_same", "strategy", strategy, "is not among the strategies of this rule")
        left = [each for each in every if each not in theirs]
        if not left:
            raise ValidationError("not_the_same", "strategy", strategy, "is the only strategy of this rule")
        lesson = hashlib.sha256(f"{heuristic_id}\x1f{key}".encode(errors="surrogatepass")).hexdigest()[:32]
        tx.save(*(_moved(each, lesson) for each in theirs))
        tx.save(_without(held[0], theirs, left, key, extractor))
        return [each.id for each in theirs]

    return storage.write(take_out, by)


def _outcomes_of(tx: Transaction, lesson: str, scope: Scope) -> list[Outcome]:
    found: list[Outcome] = []
    after: Cursor | None = None
    while page := tx.find(Outcome, scope, Compare("lesson_id", "eq", lesson), limit=_AT_ONCE, after=after):
        found += page
        after = Cursor.after(page[-1], ())
    return found


def _moved(outcome: Outcome, lesson: str) -> Outcome:
    metadata = {name: value for name, value in outcome.metadata.items() if name != SAME_STRATEGY}
    return outcome.replace(lesson_id=lesson, metadata=metadata)


def _without(
    rule: Heuristic, gone: Sequence[Outcome], left: Sequence[Outcome], key: str, extractor: HeuristicExtractor
) -> Heuristic:
    """The rule without these outcomes; what it counted beyond those that are stored stays."""
    ids, now = {each.id for each in gone}, clock.now()
    before, after = extractor.belief([*left, *gone], now), extractor.belief(left, now)
    belief = extractor.current_belief(rule, now).changed(before, after)
    worked = sum(each.success for each in gone)
    known = [*rule.metadata.get(NOT_THE_SAME, ()), key]
    own = {strategy_key(each.strategy_used or ""): each.strategy_used or "" for each in left}
    return rule.replace(
        strategy=rule.strategy if strategy_key(rule.strategy) != key else next(reversed(own.values())),
        occurrence_count=max(0, rule.occurrence_count - len(gone)),
        success_count=max(0, rule.success_count - worked),
        outcomes_for=tuple(each for each in rule.outcomes_for if each not in ids),
        outcomes_against=tuple(each for each in rule.outcomes_against if each not in ids),
        confidence=belief.mean,
        weight_for=belief.weight_for,
        weight_against=belief.weight_against,
        last_validated=now,
        metadata={**rule.metadata, NOT_THE_SAME: list(dict.fromkeys(known))},
    )


_OLDEST_FIRST = (Order("timestamp"), Order("id"))


class Grounds(NamedTuple):
    """The ids of the outcomes that a heuristic rests on, oldest first; forgotten ones are not among them."""

    outcomes_for: tuple[str, ...]
    outcomes_against: tuple[str, ...]


def grounds_of(storage: StorageBackend, heuristic_id: str, scope: Scope) -> Grounds:
    """What speaks for a heuristic of this scope and against it."""
    with storage.snapshot():
        rule = storage.require(Heuristic, heuristic_id, scope)
        its_own = Scope(project_id=rule.project_id, agent=rule.agent)
        lesson = Compare("lesson_id", "eq", rule.id)
        rows = storage.values(Outcome, ("id", "success"), its_own, lesson, _OLDEST_FIRST)
    return Grounds(
        tuple(str(key) for key, success in rows if success), tuple(str(key) for key, success in rows if not success)
    )
