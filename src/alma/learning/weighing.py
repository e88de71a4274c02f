"""Weighing: what the evidence of an agent says about each strategy for a task, and which of them to try."""

from __future__ import annotations

from typing import Any

import numpy as np

from alma.learning.damping import weights_for
from alma.learning.estimate import (
    Estimate,
    Observations,
    average,
    estimate,
    estimate_everywhere,
    estimate_from_all,
    fitting_noise,
    fitting_noise_for_all,
)
from alma.learning.evidence import Evidence
from alma.learning.resemblance import some_of

# How many of the outcomes on the most similar tasks are weighed against each other.
_WEIGHED, _TASKS_WEIGHED = 1000, 350
# How many are looked at to see how much outcomes vary for no reason.
_SAMPLED, _TASKS_SAMPLED = 1000, 700
# Where every strategy was tried on each task, the evidence tells tasks apart by their numbers: how much of it.
_BY_NUMBERS = 0.25
# Of how many strategies it can be said what they have in common.
_SEVERAL = 2
# As long as fewer outcomes than this are known, they do not tell; then most is learned by trusting each of them.
_TELLING, _UNKNOWN_NOISE = 200, 0.1
# A strategy that is less well known is worth trying: by how much of what is not known about it, where nothing succeeds.
_CURIOSITY = 1.5


def promises(found: Estimate) -> Any:
    """What each strategy promises: its own share of successes, and what might be won by getting to know it.

    Where one succeeds nearly always there is nothing to be won, so that one is kept to.
    """
    return found.means + _CURIOSITY * (1 - found.means.max()) * found.deviations


class Weighing:
    """Weighs what happened on similar tasks, for all strategies together; for the evidence of one agent."""

    def __init__(self) -> None:
        self._asked_at = 0
        # None where how tasks resemble each other tells nothing.
        self._noise: float | None = _UNKNOWN_NOISE

    def estimate(self, task: str, alike: Any, evidence: Evidence, observed: Observations, count: int) -> Estimate:
        """What is to be expected of `count` strategies; `alike` is how alike each task of the evidence is to this."""
        # What sets the strategies apart is left to the estimate: taken out before, it would pass for certain.
        expected = np.full(count, average(observed))
        if not len(observed):
            return Estimate(expected, np.full(count, 0.5))
        noise = self._fitting(observed, evidence, expected)
        if noise is None:
            return estimate_everywhere(observed, expected)
        table = _table(observed, _nearest(np.unique(observed.tasks), alike), count)
        if table is not None:
            tasks, results = table
            near = _finely(alike[tasks], evidence.figures.alike(task, tasks))
            return estimate_from_all(results, near, _finely_among(evidence, tasks), expected, noise)
        local = _part(observed, _weighed(observed.tasks, alike[observed.tasks]))
        return estimate(local, alike[local.tasks], _among(evidence, local), expected, noise)

    def _fitting(self, observed: Observations, evidence: Evidence, expected: Any) -> float | None:
        """How much outcomes vary for no reason; asked again whenever there is half as much evidence more."""
        if len(observed) >= max(_TELLING, 1.5 * self._asked_at) or len(observed) < self._asked_at:
            self._asked_at = len(observed)
            table = _table(observed, some_of(np.unique(observed.tasks), _TASKS_SAMPLED), len(expected))
            if table is not None:
                tasks, results = table
                self._noise = fitting_noise_for_all(results, _finely_among(evidence, tasks), expected)
            else:
                sample = _part(observed, _sampled(observed.tasks))
                self._noise = fitting_noise(sample, _among(evidence, sample), expected)
        return self._noise


def observations(evidence: Evidence, known: Any, alike: Any, reader: str | None = None) -> Observations:
    """The outcomes of the strategies that are asked about, as much as each counts for the agent that asks."""
    tried, tasks, authors, groups, sessions = (
        np.array(each, dtype=int)
        for each in (evidence.strategies, evidence.tasks, evidence.authors, evidence.groups, evidence.sessions)
    )
    strategies = known[tried]
    # What others report of strategies that are not asked about counts as well where it is told who reports anything.
    named = np.where(strategies >= 0, strategies, len(known) + tried)
    weights = weights_for(evidence.number_of(reader), authors, groups, sessions, named, alike[tasks])
    kept = np.flatnonzero(strategies >= 0)
    results = np.array(evidence.results, dtype=float)
    return Observations(kept, tasks[kept], strategies[kept], results[kept], weights[kept])


def _part(observed: Observations, chosen: Any) -> Observations:
    return Observations(
        observed.outcomes[chosen],
        observed.tasks[chosen],
        observed.strategies[chosen],
        observed.results[chosen],
        observed.weights[chosen],
    )


def _table(observed: Observations, tasks: Any, strategies: int) -> tuple[Any, Any] | None:
    """These tasks and a row of results for each, if every one of several strategies was tried on each of them once.

    And if all of these count in full.
    """
    chosen = np.flatnonzero(np.isin(observed.tasks, tasks))
    is_full = len(chosen) == len(tasks) * strategies and bool((observed.weights[chosen] == 1).all())
    if strategies < _SEVERAL or not is_full:
        return None
    ordered = np.sort(tasks)
    results = np.full((len(tasks), strategies), np.nan)
    results[np.searchsorted(ordered, observed.tasks[chosen]), observed.strategies[chosen]] = observed.results[chosen]
    return None if np.isnan(results).any() else (ordered, results)


def _nearest(tasks: Any, alike: Any) -> Any:
    return tasks[np.argsort(-alike[tasks], kind="stable")[:_TASKS_WEIGHED]]


def _sampled(tasks: Any) -> Any:
    """The numbers of the outcomes on some of the tasks, spread over all of them."""
    unique = np.unique(tasks)
    return np.flatnonzero(np.isin(tasks, some_of(unique, max(2, int(_SAMPLED * len(unique) / len(tasks))))))


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
