"""Heuristics from stored outcomes, as in alma-memory 0.4.

`alma.learn` makes them with every outcome; this is for outcomes that a program saved without it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from alma.clock import now
from alma.learning import heuristics
from alma.learning.heuristics import DetailedTrial, LessonEvidence
from alma.learning.lessons import lesson_id_of
from alma.learning.strategies import StrategyComparer
from alma.learning.tuning import LESSONS
from alma.model.learning import Belief, Heuristic, Outcome
from alma.model.scope import MemoryScope, Scope
from alma.storage.earlier import store_of
from alma.text.tokens import query_terms

_MAKER = heuristics.HeuristicExtractor()
_ORDER = ("first", "then", "next")


@dataclass
class PatternCandidate:
    """A strategy with the outcomes that tried it."""

    task_type: str
    strategy: str
    occurrence_count: int
    success_count: int
    failure_count: int
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def success_rate(self) -> float:
        """The share of successes."""
        return self.success_count / self.occurrence_count if self.occurrence_count else 0.0

    @property
    def confidence(self) -> float:
        """The expected rate of success, which few outcomes do not move far from one half."""
        return Belief(self.success_count, self.failure_count).mean


@dataclass
class ExtractionResult:
    """How many heuristics were made, and why others were not."""

    heuristics_created: int = 0
    heuristics_updated: int = 0
    patterns_analyzed: int = 0
    patterns_rejected: int = 0
    rejected_reasons: dict[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The numbers."""
        return asdict(self)


class HeuristicExtractor:
    """Groups the outcomes of each agent and type of task by strategy, and makes heuristics of the groups.

    Two strategies are the same if the judge says so with at least `strategy_similarity_threshold`.
    """

    def __init__(
        self,
        storage: Any,
        scopes: Mapping[str, MemoryScope],
        min_occurrences: int = 3,
        min_confidence: float = 0.5,
        strategy_similarity_threshold: float = 0.5,
    ) -> None:
        self.storage = storage
        self.scopes = scopes
        self.min_occurrences = min_occurrences
        self.min_confidence = min_confidence
        self.similarity_threshold = strategy_similarity_threshold
        self._comparer = StrategyComparer()

    def extract(self, project_id: str, agent: str | None = None) -> ExtractionResult:
        """Make or renew the heuristics of a project."""
        store, scope = store_of(self.storage, project_id, agent), Scope(project_id=project_id, agent=agent)
        groups = defaultdict[tuple[str, str], list[Outcome]](list)
        for outcome in store.iterate(Outcome, scope):
            groups[outcome.agent, outcome.task_type or ""].append(outcome)
        patterns = [each for (_, kind), outcomes in groups.items() for each in self._patterns(kind, outcomes)]
        known = {rule.id for rule in store.iterate(Heuristic, scope)}
        rejected, ids = Counter[str](), list[str]()
        for pattern in patterns:
            reason = self._rejection(pattern)
            if reason is None:
                ids.append(self._saved(pattern))
            else:
                rejected[reason] += 1
        updated = len(known.intersection(ids))
        return ExtractionResult(len(ids) - updated, updated, len(patterns), rejected.total(), dict(rejected))

    def _rejection(self, pattern: PatternCandidate) -> str | None:
        scope = self.scopes.get(pattern.outcomes[0].agent)
        if pattern.occurrence_count < max(self.min_occurrences, scope.min_occurrences_for_heuristic if scope else 0):
            return "insufficient_occurrences"
        return "low_confidence" if pattern.confidence < self.min_confidence else None

    def _patterns(self, task_type: str, outcomes: Sequence[Outcome]) -> list[PatternCandidate]:
        """The outcomes by strategy, each wording compared with all of a pattern."""
        texts = dict.fromkeys(outcome.strategy_used or "" for outcome in outcomes)
        sets: list[list[str]] = []
        for text in texts:
            near = [each for each in sets if any(self._strategies_similar(text, other) for other in each)]
            sets = [each for each in sets if each not in near]
            sets.append([*(other for each in near for other in each), text])
        patterns = []
        for wordings in sets:
            group = [outcome for outcome in outcomes if (outcome.strategy_used or "") in wordings]
            won = sum(outcome.success for outcome in group)
            patterns.append(PatternCandidate(task_type, wordings[0], len(group), won, len(group) - won, group))
        return patterns

    def _saved(self, pattern: PatternCandidate) -> str:
        outcomes = sorted(pattern.outcomes, key=lambda each: each.timestamp or now())
        trials = [DetailedTrial.of(outcome) for outcome in outcomes]
        first = outcomes[0]
        lesson = lesson_id_of(first.project_id, first.agent, first.strategy_used or "", first.task_description)
        evidence = LessonEvidence(outcomes[-1], lesson, trials, trials)
        rule = _MAKER.heuristic(evidence, Belief(pattern.success_count, pattern.failure_count), now())
        self.storage.save_heuristic(rule)
        return rule.id

    def _strategies_similar(self, s1: str, s2: str) -> bool:
        found = self._comparer.judgement(s1, s2)
        return found["same"] >= self.similarity_threshold and found["opposite"] < LESSONS.opposite

    def _normalize_strategy(self, strategy: str) -> list[str]:
        return [word for word in query_terms(strategy) if word not in _ORDER]


def extract_heuristics_from_outcome(
    outcome: Outcome, existing_heuristics: Sequence[Heuristic], min_confidence: float = 0.5
) -> dict[str, Any] | None:
    """The heuristic that an outcome validates or contradicts, if there is one."""
    comparer = StrategyComparer()
    for rule in existing_heuristics:
        tried = rule.agent == outcome.agent and (outcome.task_type or "").casefold() in rule.condition.casefold()
        if tried and comparer.same(rule.strategy, outcome.strategy_used or ""):
            action = "validate" if outcome.success else "invalidate"
            return {"heuristic_id": rule.id, "action": action, "current_confidence": rule.confidence}
    return None
