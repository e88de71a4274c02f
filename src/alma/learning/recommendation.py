"""Recommendation: which of the known strategies to use for a task, and what speaks for each."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from alma.errors import ValidationError
from alma.learning.estimate import Estimate, Observations
from alma.learning.evidence import Evidence, EvidenceReader
from alma.learning.strategies import strategy_key
from alma.learning.weighing import Weighing, observations, promises
from alma.model.belief import Belief
from alma.model.learning import Heuristic
from alma.model.scope import Scope
from alma.storage.base import StorageBackend

_NAMED = 5

Same = Callable[[str, str], bool]


@dataclass(frozen=True, slots=True)
class Assessed:
    """What is known about one strategy for a task.

    `expected` is the share of successes to be expected, which lies between the two bounds with a probability of nine
    in ten. `outcome_ids` are those on the most similar tasks it was tried on, most similar first.
    """

    strategy: str
    expected: float
    lower_bound: float
    upper_bound: float
    tried: int
    succeeded: int
    outcome_ids: tuple[str, ...] = ()
    heuristic_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The strategy to use, and what is known about every one that was asked about, the recommended one first."""

    strategy: str
    ranked: tuple[Assessed, ...]

    @property
    def best(self) -> Assessed:
        """What is known about the recommended strategy."""
        return self.ranked[0]

    def __str__(self) -> str:
        best = self.best
        if not best.tried:
            return f"{self.strategy} (never tried, so nothing speaks for it or against it)"
        return (
            f"{self.strategy} ({best.expected:.0%} expected, between {best.lower_bound:.0%} and "
            f"{best.upper_bound:.0%}; worked {best.succeeded} of {best.tried} times)"
        )


class Recommender:
    """Weighs what happened on similar tasks, for all strategies together."""

    def __init__(self, storage: StorageBackend, same: Same) -> None:
        self._storage = storage
        self._reader = EvidenceReader(storage)
        self._same = same
        self._matches: dict[tuple[str, str], bool] = {}
        self._weighings: dict[Scope, Weighing] = {}
        self._lock = threading.Lock()

    def recommend(
        self, task: str, scope: Scope, among: Iterable[str] | None = None, *, explore: bool = True
    ) -> Recommendation:
        """The strategy that promises most, where one that is little known may prove better than it looks.

        Without `explore`, the one that is surest to do well.
        """
        assessed, promising = self.assess(task, scope, among)
        values = promising if explore else [known.lower_bound for known in assessed]
        best = int(np.argmax(values))
        rest = sorted((a for i, a in enumerate(assessed) if i != best), key=lambda a: -a.expected)
        return Recommendation(assessed[best].strategy, (assessed[best], *rest))

    def assess(
        self, task: str, scope: Scope, among: Iterable[str] | None = None
    ) -> tuple[Sequence[Assessed], Sequence[float]]:
        """What is known about each strategy for this task, and what it promises."""
        # The evidence grows with what was learned in between, so one answer is made at a time.
        with self._lock:
            evidence = self._reader.read(scope)
            rules = self._storage.values(Heuristic, ("id", "strategy"), scope)
            strategies = _checked(among, evidence, [strategy for _, strategy in rules])
            observed = observations(evidence, self._mapped(evidence, strategies))
            alike = evidence.writings.alike(task)
            weighing = self._weighings.setdefault(scope, Weighing())
            found = weighing.estimate(task, alike, evidence, observed, len(strategies))
            return [
                self._assessed(i, strategy, evidence, observed, alike, found, rules)
                for i, strategy in enumerate(strategies)
            ], promises(found)

    def _mapped(self, evidence: Evidence, strategies: Sequence[str]) -> Any:
        """Which of the strategies each strategy of the evidence is, or -1."""
        exact = {strategy_key(strategy): i for i, strategy in reversed(list(enumerate(strategies)))}
        return np.array([self._match(text, strategies, exact) for text in evidence.strategy_rows], dtype=int)

    def _match(self, text: str, strategies: Sequence[str], exact: dict[str, int]) -> int:
        number = exact.get(strategy_key(text))
        if number is not None:
            return number
        return next((i for i, strategy in enumerate(strategies) if self._is_same(text, strategy)), -1)

    def _is_same(self, one: str, other: str) -> bool:
        if (one, other) not in self._matches:
            self._matches[one, other] = self._same(one, other)
        return self._matches[one, other]

    # ------------------------------------------------------------------ the words

    def _assessed(
        self,
        number: int,
        strategy: str,
        evidence: Evidence,
        observed: Observations,
        alike: Any,
        found: Estimate,
        rules: Sequence[tuple[str, str]],
    ) -> Assessed:
        own = np.flatnonzero(observed.strategies == number)
        likeness, results = alike[observed.tasks[own]], observed.results[own]
        nearest_first = observed.outcomes[own[np.argsort(-likeness, kind="stable")]]
        expected = float(found.means[number])
        low, high = _belief(results, likeness).interval
        return Assessed(
            strategy=strategy,
            expected=expected,
            lower_bound=min(expected, low),
            upper_bound=max(expected, high),
            tried=len(own),
            succeeded=round(float(results.sum())),
            outcome_ids=tuple(evidence.ids[i] for i in nearest_first[:_NAMED]),
            heuristic_ids=tuple(key for key, rule in rules if self._is_same(rule, strategy))[:_NAMED],
        )


def _belief(results: Any, alike: Any) -> Belief:
    """What a strategy's own outcomes say, each as much as its task is alike."""
    return Belief(float(results @ alike), float((1 - results) @ alike))


def _checked(among: Iterable[str] | None, evidence: Evidence, rules: Sequence[str]) -> list[str]:
    if among is None:
        known = dict.fromkeys([*rules, *(text for text in evidence.strategy_rows if text)])
        if not known:
            raise ValidationError(
                "recommend", "among", among, "must name strategies to choose from, since nothing was tried yet"
            )
        return list(known)
    if isinstance(among, str):
        raise ValidationError("recommend", "among", among, "must be a list of strategies")
    strategies = list(dict.fromkeys(among))
    for strategy in strategies:
        if not isinstance(strategy, str) or not strategy.strip():
            raise ValidationError("recommend", "among", strategy, "must hold texts that say what to do")
    if not strategies:
        raise ValidationError("recommend", "among", among, "must name at least one strategy")
    return strategies
