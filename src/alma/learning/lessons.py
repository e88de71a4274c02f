"""Lessons: one strategy on similar tasks, as the store holds it.

The outcomes of a lesson share a `lesson_id`, which is also the id of the heuristic that the lesson becomes, so that
there is never a second one; the id of its warning is derived from it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from alma import clock
from alma.errors import NotFoundError, ValidationError
from alma.learning.heuristics import (
    EVIDENCE_READ,
    SAME_STRATEGY,
    DetailedTrial,
    HeuristicExtractor,
    Trial,
)
from alma.learning.maturity import Confirmation, Maturity, confirmation_of
from alma.learning.strategies import strategy_key
from alma.model.governance import Attribution
from alma.model.learning import AntiPattern, Heuristic, Outcome, anti_pattern_id
from alma.model.query import Compare, Cursor, In, Order
from alma.model.scope import Scope
from alma.storage.base import StorageBackend
from alma.storage.tombstones import Because, deleted_by_owners, has_tombstones, tombstones_of
from alma.storage.transaction import Transaction

NOT_THE_SAME = "not_the_same"
"""The metadata key of a rule under which strategies are kept that were said not to be its own."""
RELATED = "related"
"""The metadata key of a rule under which older rules are kept that say more, less or the opposite."""

SKILL = "skill"
"""The metadata key of a rule under which the skill is kept that it was imported from."""

NEWEST_FIRST = Order("timestamp", "desc")
_OLDEST_FIRST = (Order("timestamp"), Order("id"))
_MOST_COUNTED = 10_000
_BATCH = 200

Made = TypeVar("Made", Heuristic, AntiPattern)


def lesson_id_of(project_id: str, agent: str, strategy: str, task: str) -> str:
    """The id of the lesson that begins with this strategy on this task; every process derives the same."""
    return _digest(project_id, agent, strategy_key(strategy), strategy_key(task))


def deleted_lessons(tx: Transaction, project_id: str, lessons: Mapping[str, str]) -> set[str]:
    """Those of these lessons, given by id with their strategies, of which the rule was deleted or rejected."""
    if not has_tombstones(tx):
        return set()
    rule = Heuristic(agent="-", project_id=project_id, condition="-", strategy="-").values()
    rules = {key: Heuristic.trusted({**rule, "id": key, "strategy": text}) for key, text in lessons.items()}
    gone = {key for key, each in tombstones_of(tx, rules.values()).items() if each.because is not Because.ERASED}
    # A lesson in other words by now has the id of the deleted rule.
    listed = deleted_by_owners(tx, list(rules.values()))
    gone |= {key for key, ids in listed.items() if key in ids}
    return gone - {each.id for each in tx.get_many(Heuristic, list(gone), Scope.everywhere())}


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode(errors="surrogatepass")).hexdigest()[:32]


def skill_of(rule: Heuristic) -> Mapping[str, Any] | None:
    """The skill that a rule was imported from."""
    known = rule.metadata.get(SKILL)
    return known if isinstance(known, Mapping) else None


class StoredLessons:
    """The lessons of an agent inside a transaction; rules and warnings are locked before they are decided on."""

    def __init__(self, tx: Transaction, scope: Scope) -> None:
        self.tx = tx
        self.scope = scope
        self._rules: dict[str, Heuristic | None] = {}
        self._trials: dict[str, list[Trial]] = {}

    def rule(self, lesson_id: str) -> Heuristic | None:
        """The rule that a lesson has become, locked; so is a lesson that is not one yet."""
        if lesson_id not in self._rules:
            self.tx.hold(f"lesson {lesson_id}")
            self._rules[lesson_id] = next(iter(self.tx.lock(Heuristic, [lesson_id], self.scope)), None)
        return self._rules[lesson_id]

    def warning(self, lesson_id: str) -> AntiPattern | None:
        """The warning of a lesson, locked."""
        return next(iter(self.warnings([lesson_id])), None)

    def warnings(self, lessons: Iterable[str]) -> list[AntiPattern]:
        """The warnings of these lessons, locked."""
        ids = list(map(anti_pattern_id, lessons))
        return self.tx.lock(AntiPattern, ids, self.scope) if ids else []

    def alternatives(self, lessons: Iterable[str]) -> dict[str, str | None]:
        """Which of these lessons have a warning, each with the better alternative that it names."""
        lesson_of = {anti_pattern_id(lesson): lesson for lesson in lessons}
        if not lesson_of:
            return {}
        found = self.tx.values(AntiPattern, ("id", "better_alternative"), self.scope, In("id", lesson_of))
        return {lesson_of[key]: alternative for key, alternative in found}

    def trials(self, lesson_id: str) -> list[Trial]:
        """The newest outcomes of a lesson, newest first."""
        if lesson_id not in self._trials:
            self._trials[lesson_id] = list(map(Trial._make, self._outcomes(Trial._fields, lesson_id, EVIDENCE_READ)))
        return self._trials[lesson_id]

    def detailed_trials(self, lesson_id: str) -> list[DetailedTrial]:
        """The same, with their texts."""
        return list(map(DetailedTrial._make, self._outcomes(DetailedTrial._fields, lesson_id, EVIDENCE_READ)))

    def all_trials(self, lesson_id: str) -> list[Trial]:
        """All outcomes of a lesson, newest first; of a very long one, the newest thousands."""
        return list(map(Trial._make, self._outcomes(Trial._fields, lesson_id, _MOST_COUNTED)))

    def _outcomes(self, names: tuple[str, ...], lesson_id: str, limit: int) -> Sequence[tuple[object, ...]]:
        lesson = Compare("lesson_id", "eq", lesson_id)
        return self.tx.values(Outcome, names, self.scope, lesson, (NEWEST_FIRST,), limit)

    def lesson_of(self, outcome_id: str) -> str | None:
        """The lesson that an outcome belongs to today."""
        found = self.tx.values(Outcome, ("lesson_id",), self.scope, Compare("id", "eq", outcome_id))
        return None if not found or found[0][0] is None else str(found[0][0])


class HeuristicEvidence(NamedTuple):
    """The ids of the stored outcomes for and against a heuristic, oldest first, and how far they confirm it."""

    outcomes_for: tuple[str, ...]
    outcomes_against: tuple[str, ...]
    confirmation: Confirmation = Confirmation()

    @property
    def maturity(self) -> Maturity:
        """How far the heuristic is confirmed."""
        return self.confirmation.state


def evidence_of(storage: StorageBackend, heuristic_id: str, scope: Scope) -> HeuristicEvidence:
    """All outcomes for and against a heuristic of this scope."""
    with storage.snapshot():
        rule = storage.require(Heuristic, heuristic_id, scope)
        of_agent = Scope(project_id=rule.project_id, agent=rule.agent)
        lesson = Compare("lesson_id", "eq", rule.id)
        rows = storage.values(Outcome, ("id", "success"), of_agent, lesson, _OLDEST_FIRST)
        ids = {result: tuple(str(key) for key, success in rows if bool(success) is result) for result in (True, False)}
        known = confirmation_of(storage, rule)
    return HeuristicEvidence(ids[True], ids[False], known)


def separate(
    storage: StorageBackend,
    extractor: HeuristicExtractor,
    heuristic_id: str,
    strategy: str,
    scope: Scope,
    by: Attribution,
) -> list[str]:
    """Move the outcomes of a rule that tried this strategy to a lesson of their own, and keep them apart.

    The rule counts what is left. Returns the ids of the outcomes that were moved.
    """
    key = strategy_key(strategy)

    def move(tx: Transaction) -> list[str]:
        held = tx.lock(Heuristic, [heuristic_id], scope)
        if not held:
            raise NotFoundError(Heuristic.spec.kind, heuristic_id)
        every = _outcomes_of(tx, heuristic_id, scope)
        moving = [each for each in every if strategy_key(each.strategy_used or "") == key]
        if not moving:
            raise ValidationError("not_the_same", "strategy", strategy, "is not among the strategies of this rule")
        left = [each for each in every if each not in moving]
        if not left:
            raise ValidationError("not_the_same", "strategy", strategy, "is the only strategy of this rule")
        lesson = _digest(heuristic_id, key)
        tx.save(*(_moved(each, lesson) for each in moving))
        tx.save(_without(held[0], moving, left, key, extractor))
        return [each.id for each in moving]

    return storage.write(move, by)


def _outcomes_of(tx: Transaction, lesson: str, scope: Scope) -> list[Outcome]:
    found: list[Outcome] = []
    after: Cursor | None = None
    while page := tx.find(Outcome, scope, Compare("lesson_id", "eq", lesson), limit=_BATCH, after=after):
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
