"""The estimate: how likely each strategy is to succeed at a task, from outcomes of all strategies on other tasks.

A Gaussian process over (task, strategy). What is shared by all strategies is how hard a task is; what is a strategy's
own is how good it is everywhere, and how good on tasks like this. So an outcome on a hard task says more for a strategy
than one on a task that everything solves, and one outcome tells something about all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from alma.learning.burst_damping import weights_for
from alma.learning.evidence import Evidence
from alma.learning.text_similarity import some_of

# How much outcomes vary, in shares of their variance: with how hard all tasks are, how hard tasks like this are, how
# hard this very task is, how good a strategy is, and how good it is on tasks like this.
_ALL_TASKS, _SUCH_TASKS, _THIS_TASK, _STRATEGY, _STRATEGY_ON_SUCH_TASKS = 0.2, 0.6, 0.1, 0.02, 1.0
_FORESEEABLE = _ALL_TASKS + _SUCH_TASKS + _STRATEGY + _STRATEGY_ON_SUCH_TASKS
# How much outcomes vary for no reason at all; the evidence itself says which fits.
_NOISES = (0.1, 0.3, 1.0, 3.0, 10.0)
# Where all strategies were tried on every task, a task's own turn for each of them counts as such, too.
_NOISES_FOR_ALL = (1.0, 3.0, 10.0)
# How many outcomes it takes to believe that nearly everything succeeds, or nothing; and of a strategy, that it differs.
_DOUBT, _DOUBT_OF_ONE = 4.0, 5.0
_LEAST_VARIANCE = 0.02


@dataclass(frozen=True, slots=True)
class Observations:
    """Outcomes, each an array: which one, on which task, with which strategy (all numbers), how well (0 to 1).

    `weights` are what each counts, up to 1: the less, the more of what it shows may be chance.
    """

    outcomes: Any
    tasks: Any
    strategies: Any
    results: Any
    weights: Any

    def __len__(self) -> int:
        return len(self.results)


@dataclass(frozen=True, slots=True)
class Estimate:
    """For each strategy the expected share of successes, and how unsure that is."""

    means: Any
    deviations: Any


def average(observed: Observations) -> float:
    """How all strategies do everywhere; a few successes are no proof that everything succeeds."""
    return float((observed.results @ observed.weights + 0.5 * _DOUBT) / (observed.weights.sum() + _DOUBT))


def estimate(observed: Observations, alike: Any, among: Any, expected: Any, noise: float) -> Estimate:
    """What these outcomes say about a task.

    `alike` is how alike each outcome's task is to it, `among` how alike they are to each other, `expected` what each
    strategy does as far as nothing else is known.
    """
    own = observed.strategies[None, :] == np.arange(len(expected))[:, None]
    common = (_ALL_TASKS + _SUCH_TASKS * alike)[None, :]
    telling = common + own * _own(alike)[None, :]
    surprise = observed.results - expected[observed.strategies]
    solved = np.linalg.solve(_covariance(observed, among, noise), np.column_stack([surprise, telling.T]))
    means = expected + telling @ solved[:, 0]
    left = _FORESEEABLE - np.einsum("sn,ns->s", telling, solved[:, 1:])
    return Estimate(np.clip(means, 0, 1), np.sqrt(np.maximum(left, 0) * _spread(observed.results)))


def estimate_from_all(results: Any, alike: Any, among: Any, expected: Any, noise: float) -> Estimate:
    """The same from tasks on which every strategy was tried once: a row for each task, a column for each strategy.

    What all strategies have in common and what sets each apart can then be told without each other, so that many more
    tasks can be weighed.
    """
    share = 1 / results.shape[1]
    surprise = results - expected
    common = surprise.mean(axis=1)
    apart = surprise - common[:, None]
    level, left_common = _foretold(_shared(alike, share), _shared(among, share), _THIS_TASK + noise * share, common)
    differences, left_apart = _foretold(_own(alike), _own(among), noise, apart)
    left = _shared(1.0, share) - left_common + (1 - share) * (_own(1.0) - left_apart)
    deviation = np.sqrt(max(float(left), 0.0) * _spread(results))
    return Estimate(np.clip(expected + level + differences, 0, 1), np.full(len(expected), deviation))


def estimate_everywhere(observed: Observations, expected: Any) -> Estimate:
    """What these outcomes say about any task, as far as how tasks resemble each other tells nothing."""
    tried, won = _tried_and_won(observed.strategies, observed.results, observed.weights, len(expected))
    certainty = tried + _DOUBT_OF_ONE
    return Estimate((won + _DOUBT_OF_ONE * expected) / certainty, np.sqrt(_spread(observed.results) / certainty))


def fitting_noise(observed: Observations, among: Any, expected: Any) -> float | None:
    """The noise under which the outcomes of each task are foretold best by those of all other tasks.

    None where how good each strategy is everywhere foretells them as well.
    """
    surprise = observed.results - expected[observed.strategies]
    blocks = [np.flatnonzero(observed.tasks == task) for task in np.unique(observed.tasks)]
    errors = [
        _error(_missed(_covariance(observed, among, noise), surprise, blocks), surprise, blocks) for noise in _NOISES
    ]
    if min(errors) >= _error(_missed_everywhere(observed, expected, blocks), surprise, blocks):
        return None
    return _NOISES[int(np.argmin(errors))]


def fitting_noise_for_all(results: Any, among: Any, expected: Any) -> float:
    """The noise under which least is lost with the strategy that all other tasks foretell to be the best for a task."""
    surprise = results - expected
    apart = surprise - surprise.mean(axis=1)[:, None]
    return min(_NOISES_FOR_ALL, key=lambda noise: _lost(_own(among), noise, results, apart, expected))


def _lost(covariance: Any, noise: float, results: Any, apart: Any, expected: Any) -> float:
    inverse = np.linalg.inv(covariance + noise * np.eye(len(covariance)))
    foretold = expected + apart - (inverse @ apart) / np.diag(inverse)[:, None]
    chosen = np.take_along_axis(results, foretold.argmax(axis=1)[:, None], axis=1)
    return float((results.max(axis=1) - chosen[:, 0]).mean())


def _own(alike: Any) -> Any:
    """How much of what a strategy does on two tasks is alike for reasons of its own."""
    return _STRATEGY + _STRATEGY_ON_SUCH_TASKS * alike


def _shared(alike: Any, share: float) -> Any:
    """How much of what all strategies do on two tasks, on average, is alike."""
    return _ALL_TASKS + _SUCH_TASKS * alike + share * _own(alike)


def _foretold(telling: Any, covariance: Any, noise: float, values: Any) -> tuple[Any, float]:
    """What the values tell, and how much of what is not known they explain."""
    matrix = covariance + noise * np.eye(len(covariance))
    solved = np.linalg.solve(matrix, np.column_stack([telling, values]))
    told = telling @ solved[:, 1:]
    return (told if values.ndim > 1 else told[0]), float(telling @ solved[:, 0])


def _covariance(observed: Observations, among: Any, noise: float) -> Any:
    same = observed.strategies[:, None] == observed.strategies[None, :]
    matrix = _ALL_TASKS + _SUCH_TASKS * among + same * _own(among)
    matrix += _THIS_TASK * (observed.tasks[:, None] == observed.tasks[None, :])
    matrix[np.diag_indices(len(matrix))] += noise / observed.weights
    return matrix


def _missed(covariance: Any, values: Any, blocks: Sequence[Any]) -> list[Any]:
    """By how much all others miss the values of each block."""
    inverse = np.linalg.inv(covariance)
    weighted = inverse @ values
    return [np.linalg.solve(inverse[np.ix_(block, block)], weighted[block]) for block in blocks]


def _missed_everywhere(observed: Observations, expected: Any, blocks: Sequence[Any]) -> list[Any]:
    """The same, if each strategy is foretold to do as it did on all other tasks on average."""
    tried, won = _tried_and_won(observed.strategies, observed.results, observed.weights, len(expected))
    missed = []
    for block in blocks:
        strategies, results = observed.strategies[block], observed.results[block]
        own_tried, own_won = _tried_and_won(strategies, results, observed.weights[block], len(expected))
        foretold = (won - own_won + _DOUBT_OF_ONE * expected) / (tried - own_tried + _DOUBT_OF_ONE)
        missed.append(results - foretold[strategies])
    return missed


def _tried_and_won(strategies: Any, results: Any, weights: Any, count: int) -> tuple[Any, Any]:
    """How often each strategy was tried, and how much of that it won."""
    tried = np.bincount(strategies, weights=weights, minlength=count)
    return tried, np.bincount(strategies, weights=weights * results, minlength=count)


def _spread(results: Any) -> float:
    """How much the outcomes vary; a few that are all alike are no proof that they never do."""
    return max(float(results.var()), _LEAST_VARIANCE)


def _error(missed: Sequence[Any], values: Any, blocks: Sequence[Any]) -> float:
    """How badly the values of the blocks were foretold, each missed by so much.

    Of a task on which several strategies were tried, by what is lost with the one that is foretold to be the best;
    otherwise by the square of what is missed.
    """
    several = [(block, each) for block, each in zip(blocks, missed, strict=True) if len(block) > 1]
    if 2 * len(several) > len(blocks):
        return float(np.mean([values[b].max() - values[b][np.argmax(values[b] - each)] for b, each in several]))
    return float(np.mean(np.concatenate(missed) ** 2))


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
