"""Remembered: what rules and warnings still know of outcomes that are forgotten, or were never told.

Outcomes grow old and go to the archive; what was learned from them stays, with its counts. So does a rule that somebody
wrote by hand, of which there never were any.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from alma import clock
from alma.learning.estimate import Estimate
from alma.learning.heuristics import HeuristicExtractor
from alma.learning.tasks import wording_of
from alma.model.belief import Belief, kept
from alma.model.learning import AntiPattern, Heuristic, anti_pattern_id
from alma.model.scope import Scope
from alma.storage.base import StorageBackend

_NOTHING = Belief()
# What happened on tasks of other words says this much about one.
_TOLD_ELSEWHERE = 0.25
_MOSTLY = 0.5


class Lesson(NamedTuple):
    """A rule or a warning: what it is about, how often it was seen to hold, and what that is worth today."""

    id: str
    task: str
    strategy: str
    tried: int
    succeeded: int
    belief: Belief
    is_rule: bool


@dataclass(frozen=True, slots=True)
class Remembered:
    """What lessons add to the outcomes of one strategy: how often it was tried besides, and what that is worth."""

    tried: int = 0
    succeeded: int = 0
    belief: Belief = _NOTHING

    @property
    def is_any(self) -> bool:
        return self.belief.evidence > 0


class Lessons:
    """Reads the rules and warnings of a scope, with what each is worth today."""

    def __init__(self, storage: StorageBackend, extractor: HeuristicExtractor) -> None:
        self._storage = storage
        self._extractor = extractor

    def read(self, scope: Scope) -> list[Lesson]:
        """All of them, the rules first; a warning of a rule is told by the rule itself."""
        now = clock.now()
        rows = self._storage.values(Heuristic, _RULE, scope)
        rules = [self._rule(row, now) for row in rows]
        told = {anti_pattern_id(rule.id) for rule in rules}
        warnings = self._storage.values(AntiPattern, _WARNING, scope)
        return [*rules, *(self._warning(row, now) for row in warnings if row[0] not in told)]

    def _rule(self, row: Sequence[Any], now: datetime) -> Lesson:
        values = dict(zip(_RULE, row, strict=True))
        rule = Heuristic.trusted({**_EMPTY_RULE, **values})
        belief = self._extractor.current_belief(rule, now)
        return Lesson(
            rule.id, rule.condition, rule.strategy, rule.occurrence_count, rule.success_count, belief, is_rule=True
        )

    def _warning(self, row: Sequence[Any], now: datetime) -> Lesson:
        key, pattern, failed, last_seen = row
        weight = failed * kept(last_seen, now, self._extractor.half_life_days)
        return Lesson(key, "", pattern, failed, 0, Belief(0.0, weight), is_rule=False)


_RULE = (
    "id",
    "condition",
    "strategy",
    "confidence",
    "occurrence_count",
    "success_count",
    "weight_for",
    "weight_against",
    "last_validated",
)
_WARNING = ("id", "pattern", "occurrence_count", "last_seen")
_EMPTY_RULE = Heuristic(agent="-", project_id="-", condition="-", strategy="-").values()


def remembered(lessons: Iterable[Lesson], task: str, tried: int) -> Remembered:
    """What lessons about one strategy add, of which so many outcomes are still stored."""
    held = list(lessons)
    counted = sum(lesson.tried for lesson in held)
    # Every outcome strengthens one lesson at most, so what was seen more often than is stored is forgotten.
    unseen = max(0, counted - tried)
    share = unseen / counted if counted else float(tried == 0)
    if not share:
        return Remembered()
    won = lost = 0.0
    for lesson in held:
        weight = share * _relevance(lesson, task)
        won, lost = won + weight * lesson.belief.weight_for, lost + weight * lesson.belief.weight_against
    return Remembered(unseen, round(share * sum(lesson.succeeded for lesson in held)), Belief(won, lost))


def _relevance(lesson: Lesson, task: str) -> float:
    if not lesson.task:
        return 1.0
    one, other = (set(wording_of(text).words.split()) for text in (lesson.task, task))
    smaller = min(len(one), len(other))
    return 1.0 if smaller and len(one & other) >= _MOSTLY * smaller else _TOLD_ELSEWHERE


def with_remembered(found: Estimate, tried: Sequence[int], besides: Sequence[Remembered]) -> Estimate:
    """The estimate, drawn towards what is remembered by as much as that outweighs the outcomes of each strategy."""
    if not any(each.is_any for each in besides):
        return found
    stored = np.array(tried, dtype=float) + 1.0
    won, lost = (np.array([each.belief[side] for each in besides]) for side in (0, 1))
    means = (found.means * stored + won) / (stored + won + lost)
    return replace(found, means=means, deviations=found.deviations * np.sqrt(stored / (stored + won + lost)))
