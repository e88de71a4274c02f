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

# How much outcomes vary, in shares of their variance: with how hard all tasks are, how hard tasks like this are, how
# hard this very task is, how good a strategy is, and how good it is on tasks like this.
_ALL_TASKS, _SUCH_TASKS, _THIS_TASK, _STRATEGY, _STRATEGY_ON_SUCH_TASKS = 0.2, 0.6, 0.1, 0.05, 0.5
_FORESEEABLE = _ALL_TASKS + _SUCH_TASKS + _STRATEGY + _STRATEGY_ON_SUCH_TASKS
# How much outcomes vary for no reason at all; the evidence itself says which fits.
_NOISES = (0.1, 0.3, 1.0, 3.0)
# How many outcomes the average counts as, when what a strategy does everywhere is estimated.
_SHRINKING = 25.0
_DOUBT = 4.0
_LEAST_VARIANCE = 0.02


@dataclass(frozen=True, slots=True)
class Observations:
    """Outcomes, each an array: which one, on which task, with which strategy (all numbers), how well (0 to 1)."""

    outcomes: Any
    tasks: Any
    strategies: Any
    results: Any

    def __len__(self) -> int:
        return len(self.results)


@dataclass(frozen=True, slots=True)
class Estimate:
    """For each strategy the expected share of successes, and how unsure that is."""

    means: Any
    deviations: Any


def averages(observed: Observations, strategies: int) -> Any:
    """How each strategy does everywhere, drawn towards what all of them do."""
    counts = np.bincount(observed.strategies, minlength=strategies)
    sums = np.bincount(observed.strategies, weights=observed.results, minlength=strategies)
    # A few successes are no proof that everything succeeds.
    overall = (observed.results.sum() + 0.5 * _DOUBT) / (len(observed) + _DOUBT)
    return (sums + _SHRINKING * overall) / (counts + _SHRINKING)


def estimate(observed: Observations, alike: Any, among: Any, expected: Any, noise: float) -> Estimate:
    """What these outcomes say about a task.

    `alike` is how alike each outcome's task is to it, `among` how alike they are to each other, `expected` what each
    strategy does everywhere.
    """
    own = observed.strategies[None, :] == np.arange(len(expected))[:, None]
    common = (_ALL_TASKS + _SUCH_TASKS * alike)[None, :]
    telling = common + own * (_STRATEGY + _STRATEGY_ON_SUCH_TASKS * alike)[None, :]
    surprise = observed.results - expected[observed.strategies]
    solved = np.linalg.solve(_covariance(observed, among, noise), np.column_stack([surprise, telling.T]))
    means = expected + telling @ solved[:, 0]
    left = _FORESEEABLE - np.einsum("sn,ns->s", telling, solved[:, 1:])
    spread = max(float(observed.results.var()), _LEAST_VARIANCE)
    return Estimate(np.clip(means, 0, 1), np.sqrt(np.maximum(left, 0) * spread))


def fitting_noise(observed: Observations, among: Any, expected: Any) -> float:
    """The noise under which the outcomes of each task are foretold best by those of all other tasks."""
    surprise = observed.results - expected[observed.strategies]
    blocks = [np.flatnonzero(observed.tasks == task) for task in np.unique(observed.tasks)]
    return min(_NOISES, key=lambda noise: _error(_covariance(observed, among, noise), surprise, blocks))


def _covariance(observed: Observations, among: Any, noise: float) -> Any:
    same = observed.strategies[:, None] == observed.strategies[None, :]
    matrix = _ALL_TASKS + _SUCH_TASKS * among + same * (_STRATEGY + _STRATEGY_ON_SUCH_TASKS * among)
    matrix += _THIS_TASK * (observed.tasks[:, None] == observed.tasks[None, :])
    matrix[np.diag_indices(len(matrix))] += noise
    return matrix


def _error(covariance: Any, values: Any, blocks: Sequence[Any]) -> float:
    """How badly all others foretell the values of each block.

    Of a task on which several strategies were tried, by what is lost with the one that is foretold to be the best;
    otherwise by the square of what is missed.
    """
    inverse = np.linalg.inv(covariance)
    weighted = inverse @ values
    missed = [np.linalg.solve(inverse[np.ix_(block, block)], weighted[block]) for block in blocks]
    several = [(block, each) for block, each in zip(blocks, missed, strict=True) if len(block) > 1]
    if 2 * len(several) > len(blocks):
        return float(np.mean([values[b].max() - values[b][np.argmax(values[b] - each)] for b, each in several]))
    return float(np.mean(np.concatenate(missed) ** 2))
