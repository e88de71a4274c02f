"""Recommendation: which of the known strategies to use for a task, and what speaks for each."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from alma.errors import ValidationError
from alma.learning.estimate import (
    Estimate,
    Observations,
    average,
    estimate,
    estimate_from_all,
    fitting_noise,
    fitting_noise_for_all,
)
from alma.learning.evidence import Evidence, EvidenceReader
from alma.learning.strategies import strategy_key
from alma.model.belief import Belief
from alma.model.learning import Heuristic
from alma.model.scope import Scope
from alma.storage.base import StorageBackend

# How many of the outcomes on the most similar tasks are weighed against each other.
_WEIGHED, _TASKS_WEIGHED = 1000, 350
# How many are looked at to see how much outcomes vary for no reason.
_SAMPLED, _TASKS_SAMPLED = 1000, 700
# A strategy that is less well known is worth trying: by how much of what is not known about it.
_CURIOSITY = 0.8
# Where every strategy was tried on each task, the evidence tells tasks apart by their numbers: how much of it.
_BY_NUMBERS = 0.25
_NAMED = 5
# Of how many strategies it can be said what they have in common.
_SEVERAL = 2
# As long as fewer outcomes than this are known, they do not tell; then most is learned by trusting each of them.
_TELLING, _UNKNOWN_NOISE = 200, 0.1

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
        return (
            f"{self.strategy} ({best.expected:.0%} expected, between {best.lower_bound:.0%} and "
            f"{best.upper_bound:.0%}; tried {best.tried} times, succeeded {best.succeeded})"
        )


class Recommender:
    """Weighs what happened on similar tasks, for all strategies together."""

    def __init__(self, storage: StorageBackend, same: Same) -> None:
        self._storage = storage
        self._reader = EvidenceReader(storage)
        self._same = same
        self._matches: dict[tuple[str, str], bool] = {}
        self._noises: dict[Scope, tuple[int, float]] = {}
        self._lock = threading.Lock()

    def recommend(
        self, task: str, scope: Scope, among: Iterable[str] | None = None, *, explore: bool = True
    ) -> Recommendation:
        """The strategy that promises most, where one that is little known may prove better than it looks.

        Without `explore`, the one that is surest to do well.
        """
        assessed, curiosity = self.assess(task, scope, among)

        def promise(i: int) -> tuple[float, float]:
            known = assessed[i]
            return (known.expected + _CURIOSITY * curiosity[i] if explore else known.lower_bound), -i

        best = max(range(len(assessed)), key=promise)
        rest = sorted((a for i, a in enumerate(assessed) if i != best), key=lambda a: -a.expected)
        return Recommendation(assessed[best].strategy, (assessed[best], *rest))

    def assess(
        self, task: str, scope: Scope, among: Iterable[str] | None = None
    ) -> tuple[Sequence[Assessed], Sequence[float]]:
        """What is known about each strategy for this task, and how unsure it is."""
        # The evidence grows with what was learned in between, so one answer is made at a time.
        with self._lock:
            evidence = self._reader.read(scope)
            rules = self._storage.values(Heuristic, ("id", "strategy"), scope)
            strategies = _checked(among, evidence, [strategy for _, strategy in rules])
            observed = _observations(evidence, self._mapped(evidence, strategies))
            alike = evidence.writings.alike(task) if len(evidence.writings) else np.zeros(0)
            found = self._estimate(task, evidence, observed, alike, len(strategies), scope)
            return [
                self._assessed(i, strategy, evidence, observed, alike, found, rules)
                for i, strategy in enumerate(strategies)
            ], found.deviations

    # ------------------------------------------------------------------ the numbers

    def _estimate(
        self, task: str, evidence: Evidence, observed: Observations, alike: Any, count: int, scope: Scope
    ) -> Estimate:
        # What sets the strategies apart is left to the estimate: taken out before, it would pass for certain.
        expected = np.full(count, average(observed))
        if not len(observed):
            return Estimate(expected, np.full(count, 0.5))
        noise = self._noise(scope, observed, evidence, expected)
        table = _table(observed, _nearest(np.unique(observed.tasks), alike), count)
        if table is not None:
            tasks, results = table
            near = _finely(alike[tasks], evidence.figures.alike(task, tasks))
            return estimate_from_all(results, near, _finely_among(evidence, tasks), expected, noise)
        local = _part(observed, _weighed(observed.tasks, alike[observed.tasks]))
        return estimate(local, alike[local.tasks], _among(evidence, local), expected, noise)

    def _noise(self, scope: Scope, observed: Observations, evidence: Evidence, expected: Any) -> float:
        """How much outcomes vary for no reason; asked again whenever there is half as much evidence more."""
        size, noise = self._noises.get(scope, (0, _UNKNOWN_NOISE))
        if len(observed) >= max(_TELLING, 1.5 * size) or len(observed) < size:
            table = _table(observed, _spread(np.unique(observed.tasks), _TASKS_SAMPLED), len(expected))
            if table is not None:
                tasks, results = table
                noise = fitting_noise_for_all(results, _finely_among(evidence, tasks), expected)
            else:
                sample = _part(observed, _sampled(observed.tasks))
                noise = fitting_noise(sample, _among(evidence, sample), expected)
            self._noises[scope] = (len(observed), noise)
        return noise

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
            raise ValidationError("recommend", "among", among, "must name strategies, since none is known yet")
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


def _observations(evidence: Evidence, known: Any) -> Observations:
    """The outcomes of the strategies that are asked about."""
    strategies = known[np.array(evidence.strategies, dtype=int)]
    kept = np.flatnonzero(strategies >= 0)
    tasks, results = np.array(evidence.tasks, dtype=int), np.array(evidence.results, dtype=float)
    return Observations(kept, tasks[kept], strategies[kept], results[kept])


def _part(observed: Observations, chosen: Any) -> Observations:
    return Observations(
        observed.outcomes[chosen], observed.tasks[chosen], observed.strategies[chosen], observed.results[chosen]
    )


def _table(observed: Observations, tasks: Any, strategies: int) -> tuple[Any, Any] | None:
    """These tasks and a row of results for each, if every one of several strategies was tried on each of them once."""
    chosen = np.flatnonzero(np.isin(observed.tasks, tasks))
    if strategies < _SEVERAL or len(chosen) != len(tasks) * strategies:
        return None
    ordered = np.sort(tasks)
    results = np.full((len(tasks), strategies), np.nan)
    results[np.searchsorted(ordered, observed.tasks[chosen]), observed.strategies[chosen]] = observed.results[chosen]
    return None if np.isnan(results).any() else (ordered, results)


def _nearest(tasks: Any, alike: Any) -> Any:
    return tasks[np.argsort(-alike[tasks], kind="stable")[:_TASKS_WEIGHED]]


def _spread(tasks: Any, most: int) -> Any:
    """Some of the tasks, spread over all of them."""
    return tasks[np.linspace(0, len(tasks) - 1, min(most, len(tasks))).astype(int)]


def _sampled(tasks: Any) -> Any:
    """The numbers of the outcomes on some of the tasks, spread over all of them."""
    unique = np.unique(tasks)
    return np.flatnonzero(np.isin(tasks, _spread(unique, max(2, int(_SAMPLED * len(unique) / len(tasks))))))


def _weighed(tasks: Any, likeness: Any) -> Any:
    """The numbers of the outcomes on the most similar tasks: not too many of either."""
    nearest_first = np.argsort(-likeness, kind="stable")[:_WEIGHED]
    _, first = np.unique(tasks[nearest_first], return_index=True)
    order = np.sort(first)
    return nearest_first[: order[_TASKS_WEIGHED]] if len(order) > _TASKS_WEIGHED else nearest_first


def _finely(alike: Any, near: Any) -> Any:
    return (1 - _BY_NUMBERS) * alike + _BY_NUMBERS * near


def _finely_among(evidence: Evidence, tasks: Any) -> Any:
    """How alike these tasks are to each other, by their numbers, too."""
    return _finely(evidence.writings.among(tasks), evidence.figures.among(tasks))


def _among(evidence: Evidence, observed: Observations) -> Any:
    """How alike the tasks of these outcomes are to each other; each task is compared once."""
    unique, place = np.unique(observed.tasks, return_inverse=True)
    return evidence.writings.among(unique)[np.ix_(place, place)]
