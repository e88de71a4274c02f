"""Rule evidence: outcomes that are not stored any more but counted by rules and warnings.

Old outcomes are archived, while the rule keeps their counts; a hand-written rule never had outcomes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from alma import clock
from alma.lazy import lazy_module
from alma.learning.burst_damping import limited_by_hours
from alma.learning.estimator import Estimate
from alma.learning.heuristics import current_belief
from alma.model.learning import AntiPattern, Belief, Heuristic, anti_pattern_id, kept
from alma.model.scope import Scope
from alma.storage.base import StorageBackend
from alma.text.tokens import query_terms

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy_module("numpy")

_NOTHING = Belief()
# The weight of a lesson about a task in other words.
_ON_OTHER_TASKS = 0.25
_MOSTLY = 0.5


class Rule(NamedTuple):
    """The stored fields of a heuristic that count as evidence."""

    id: str
    condition: str
    strategy: str
    confidence: float
    occurrence_count: int
    success_count: int
    weight_for: float | None
    weight_against: float | None
    last_validated: datetime | None
    agent: str
    created_at: datetime | None

    @property
    def task(self) -> str:
        return self.condition

    @property
    def tried(self) -> int:
        return self.occurrence_count

    @property
    def succeeded(self) -> int:
        return self.success_count

    def belief(self, now: datetime, half_life_days: float) -> Belief:
        return current_belief(self, now, half_life_days)

    @property
    def learned_until(self) -> datetime | None:
        return self.last_validated


class WarningRow(NamedTuple):
    """The stored fields of an anti-pattern that count as evidence, for any task."""

    id: str
    pattern: str
    occurrence_count: int
    last_seen: datetime | None
    agent: str
    created_at: datetime | None

    @property
    def task(self) -> str:
        return ""

    @property
    def strategy(self) -> str:
        return self.pattern

    @property
    def tried(self) -> int:
        return self.occurrence_count

    @property
    def succeeded(self) -> int:
        return 0

    def belief(self, now: datetime, half_life_days: float) -> Belief:
        return Belief(0.0, self.occurrence_count * kept(self.last_seen, now, half_life_days))

    @property
    def learned_until(self) -> datetime | None:
        return self.last_seen


Lesson = Rule | WarningRow


def lessons_of(storage: StorageBackend, scope: Scope) -> list[Lesson]:
    """The rules and warnings of a scope, the rules first, without the warnings of these rules."""
    rules = [Rule._make(row) for row in storage.values(Heuristic, Rule._fields, scope)]
    warnings = [WarningRow._make(row) for row in storage.values(AntiPattern, WarningRow._fields, scope)]
    texts_of = {anti_pattern_id(rule.id) for rule in rules} if warnings else set[str]()
    return [*rules, *(warning for warning in warnings if warning.id not in texts_of)]


@dataclass(frozen=True, slots=True)
class UnstoredEvidence:
    """What lessons add to the stored outcomes of one strategy: further trials, and the belief from them."""

    tried: int = 0
    succeeded: int = 0
    belief: Belief = _NOTHING

    @property
    def is_any(self) -> bool:
        return self.belief.evidence > 0


def unstored_evidence(
    lessons: Iterable[Lesson], task: str, tried: int, half_life_days: float, reader: str | None = None
) -> UnstoredEvidence:
    """What lessons about one strategy add, of which `tried` outcomes are still stored."""
    held = list(lessons)
    counted = sum(lesson.tried for lesson in held)
    # Every outcome strengthens at most one lesson, so counts above the stored outcomes are unstored ones.
    unseen = max(0, counted - tried)
    share = unseen / counted if counted else float(tried == 0)
    if not share:
        return UnstoredEvidence()
    now, won, lost = clock.now(), 0.0, 0.0
    for lesson in held:
        belief, weight = lesson.belief(now, half_life_days), share * _relevance(lesson, task)
        if reader is not None and lesson.agent != reader:
            belief = limited_by_hours(belief, lesson.created_at, lesson.learned_until)
        won, lost = won + weight * belief.weight_for, lost + weight * belief.weight_against
    return UnstoredEvidence(unseen, round(share * sum(lesson.succeeded for lesson in held)), Belief(won, lost))


def _relevance(lesson: Lesson, task: str) -> float:
    if not lesson.task:
        return 1.0
    one, other = (set(query_terms(text)) for text in (lesson.task, task))
    smaller = min(len(one), len(other))
    return 1.0 if smaller and len(one & other) >= _MOSTLY * smaller else _ON_OTHER_TASKS


def with_unstored(found: Estimate, evidence: Any, unstored: Sequence[UnstoredEvidence]) -> Estimate:
    """The estimate combined with the unstored evidence.

    `evidence` is the weight of the stored outcomes of each strategy.
    """
    if not any(each.is_any for each in unstored):
        return found
    stored = evidence + 1.0
    won, lost = (np.array([each.belief[side] for each in unstored]) for side in (0, 1))
    means = (found.means * stored + won) / (stored + won + lost)
    return replace(found, means=means, deviations=found.deviations * np.sqrt(stored / (stored + won + lost)))
