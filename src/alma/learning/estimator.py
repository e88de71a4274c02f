"""The estimator: the probability that each strategy succeeds at a task, from outcomes on other tasks.

A Gaussian process over pairs of task and strategy. All strategies share how hard a task is; each has how good it is in
general and on similar tasks. So a success on a hard task counts more for a strategy than one on an easy task, and each
outcome changes the estimates of all strategies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from alma.lazy import lazy_module
from alma.learning.burst_damping import weights_for
from alma.learning.evidence import Evidence
from alma.learning.text_similarity import some_of
from alma.learning.tuning import ESTIMATOR

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy_module("numpy")


@dataclass(frozen=True, slots=True)
class Observations:
    """Arrays with an element for each outcome: its number, task, strategy and result (0 to 1).

    `weights` are at most 1; a lower weight means more noise.
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
    """The expected share of successes of each strategy, and its standard deviation."""

    means: Any
    deviations: Any


def average(observed: Observations) -> float:
    """The average result of all strategies, with a prior of one half."""
    return float(
        (observed.results @ observed.weights + 0.5 * ESTIMATOR.prior_average)
        / (observed.weights.sum() + ESTIMATOR.prior_average)
    )


def estimate(observed: Observations, similarity: Any, among: Any, expected: Any, noise: float) -> Estimate:
    """The estimate for a task.

    `similarity` is that of the task of each outcome to it, `among` are the similarities of these tasks to each other,
    `expected` is the prior mean of each strategy.
    """
    own = observed.strategies[None, :] == np.arange(len(expected))[:, None]
    common = (ESTIMATOR.all_tasks + ESTIMATOR.such_tasks * similarity)[None, :]
    covariances = common + own * _own(similarity)[None, :]
    residuals = observed.results - expected[observed.strategies]
    solved = np.linalg.solve(_covariance(observed, among, noise), np.column_stack([residuals, covariances.T]))
    means = expected + covariances @ solved[:, 0]
    left = ESTIMATOR.explained - np.einsum("sn,ns->s", covariances, solved[:, 1:])
    return Estimate(np.clip(means, 0, 1), np.sqrt(np.maximum(left, 0) * _spread(observed.results)))


def estimate_from_table(results: Any, similarity: Any, among: Any, expected: Any, noise: float) -> Estimate:
    """The same from tasks on which every strategy was tried once: a row for each task, a column for each strategy.

    The mean of all strategies and the difference of each are then independent, which allows many more tasks.
    """
    share = 1 / results.shape[1]
    residuals = results - expected
    common = residuals.mean(axis=1)
    apart = residuals - common[:, None]
    level, left_common = _predicted(
        _shared(similarity, share), _shared(among, share), ESTIMATOR.this_task + noise * share, common
    )
    differences, left_apart = _predicted(_own(similarity), _own(among), noise, apart)
    left = _shared(1.0, share) - left_common + (1 - share) * (_own(1.0) - left_apart)
    deviation = np.sqrt(max(float(left), 0.0) * _spread(results))
    return Estimate(np.clip(expected + level + differences, 0, 1), np.full(len(expected), deviation))


def estimate_overall(observed: Observations, expected: Any) -> Estimate:
    """The estimate for any task, where the similarity of tasks does not help."""
    tried, won = _tried_and_won(observed.strategies, observed.results, observed.weights, len(expected))
    certainty = tried + ESTIMATOR.prior_strategy
    return Estimate(
        (won + ESTIMATOR.prior_strategy * expected) / certainty, np.sqrt(_spread(observed.results) / certainty)
    )


def select_noise(observed: Observations, among: Any, expected: Any) -> float | None:
    """The noise with which the outcomes of each task are predicted best from all other tasks.

    None where the overall average of each strategy predicts them as well.
    """
    residuals = observed.results - expected[observed.strategies]
    blocks = [np.flatnonzero(observed.tasks == task) for task in np.unique(observed.tasks)]
    errors = [
        _error(_errors(_covariance(observed, among, noise), residuals, blocks), residuals, blocks)
        for noise in ESTIMATOR.noises
    ]
    if min(errors) >= _error(_errors_overall(observed, expected, blocks), residuals, blocks):
        return None
    return ESTIMATOR.noises[int(np.argmin(errors))]


def select_noise_of_table(results: Any, among: Any, expected: Any) -> float:
    """The noise with which the strategy predicted best from all other tasks loses least."""
    residuals = results - expected
    apart = residuals - residuals.mean(axis=1)[:, None]
    return min(ESTIMATOR.noises_of_table, key=lambda noise: _lost(_own(among), noise, results, apart, expected))


def _lost(covariance: Any, noise: float, results: Any, apart: Any, expected: Any) -> float:
    inverse = np.linalg.inv(covariance + noise * np.eye(len(covariance)))
    predicted = expected + apart - (inverse @ apart) / np.diag(inverse)[:, None]
    chosen = np.take_along_axis(results, predicted.argmax(axis=1)[:, None], axis=1)
    return float((results.max(axis=1) - chosen[:, 0]).mean())


def _own(similarity: Any) -> Any:
    """The covariance of one strategy on two tasks, without that of all strategies."""
    return ESTIMATOR.strategy + ESTIMATOR.strategy_on_such_tasks * similarity


def _shared(similarity: Any, share: float) -> Any:
    """The covariance of the mean of all strategies on two tasks."""
    return ESTIMATOR.all_tasks + ESTIMATOR.such_tasks * similarity + share * _own(similarity)


def _predicted(covariances: Any, covariance: Any, noise: float, values: Any) -> tuple[Any, float]:
    """The prediction from the values, and the variance that they explain."""
    matrix = covariance + noise * np.eye(len(covariance))
    solved = np.linalg.solve(matrix, np.column_stack([covariances, values]))
    texts_of = covariances @ solved[:, 1:]
    return (texts_of if values.ndim > 1 else texts_of[0]), float(covariances @ solved[:, 0])


def _covariance(observed: Observations, among: Any, noise: float) -> Any:
    same = observed.strategies[:, None] == observed.strategies[None, :]
    matrix = ESTIMATOR.all_tasks + ESTIMATOR.such_tasks * among + same * _own(among)
    matrix += ESTIMATOR.this_task * (observed.tasks[:, None] == observed.tasks[None, :])
    matrix[np.diag_indices(len(matrix))] += noise / observed.weights
    return matrix


def _errors(covariance: Any, values: Any, blocks: Sequence[Any]) -> list[Any]:
    """The errors of predicting each block from all others."""
    inverse = np.linalg.inv(covariance)
    weighted = inverse @ values
    return [np.linalg.solve(inverse[np.ix_(block, block)], weighted[block]) for block in blocks]


def _errors_overall(observed: Observations, expected: Any, blocks: Sequence[Any]) -> list[Any]:
    """The same, predicting the average of each strategy on all other tasks."""
    tried, won = _tried_and_won(observed.strategies, observed.results, observed.weights, len(expected))
    errors_of = []
    for block in blocks:
        strategies, results = observed.strategies[block], observed.results[block]
        own_tried, own_won = _tried_and_won(strategies, results, observed.weights[block], len(expected))
        predicted = (won - own_won + ESTIMATOR.prior_strategy * expected) / (
            tried - own_tried + ESTIMATOR.prior_strategy
        )
        errors_of.append(results - predicted[strategies])
    return errors_of


def _tried_and_won(strategies: Any, results: Any, weights: Any, count: int) -> tuple[Any, Any]:
    """The weighted trials and successes of each strategy."""
    tried = np.bincount(strategies, weights=weights, minlength=count)
    return tried, np.bincount(strategies, weights=weights * results, minlength=count)


def _spread(results: Any) -> float:
    """The variance of the outcomes, at least a minimum: a few equal ones do not prove that they never vary."""
    return max(float(results.var()), ESTIMATOR.least_variance)


def _error(errors_of: Sequence[Any], values: Any, blocks: Sequence[Any]) -> float:
    """The error of predicting the blocks.

    For tasks on which several strategies were tried, what is lost with the one predicted to be best; otherwise the mean
    squared error.
    """
    several = [(block, each) for block, each in zip(blocks, errors_of, strict=True) if len(block) > 1]
    if 2 * len(several) > len(blocks):
        return float(np.mean([values[b].max() - values[b][np.argmax(values[b] - each)] for b, each in several]))
    return float(np.mean(np.concatenate(errors_of) ** 2))


# At least two strategies are needed to tell what they have in common.
_SEVERAL = 2


def with_exploration(found: Estimate) -> Any:
    """The upper value of each strategy: its mean, and a bonus for its uncertainty.

    Where one succeeds nearly always there is nothing to be won, so that one is kept to.
    """
    return found.means + ESTIMATOR.exploration * (1 - found.means.max()) * found.deviations


class StrategyEstimator:
    """Estimates strategies from the evidence of one agent; holds the noise that was selected for it."""

    def __init__(self) -> None:
        self._asked_at = 0
        # None where the similarity of tasks does not help.
        self._noise: float | None = ESTIMATOR.noise_of_few

    def estimate(self, task: str, similarity: Any, evidence: Evidence, observed: Observations, count: int) -> Estimate:
        """The estimate of `count` strategies; `similarity` is that of each task of the evidence to this one."""
        # The prior means are equal: a difference that is subtracted first would count as certain.
        expected = np.full(count, average(observed))
        if not len(observed):
            return Estimate(expected, np.full(count, 0.5))
        noise = self._select_noise(observed, evidence, expected)
        if noise is None:
            return estimate_overall(observed, expected)
        table = _table(observed, _nearest(np.unique(observed.tasks), similarity), count)
        if table is not None:
            tasks, results = table
            near = _finely(similarity[tasks], evidence.numbers_in_texts.similarity(task, tasks))
            return estimate_from_table(results, near, _finely_among(evidence, tasks), expected, noise)
        local = _part(observed, _weighed(observed.tasks, similarity[observed.tasks]))
        return estimate(local, similarity[local.tasks], _among(evidence, local), expected, noise)

    def _select_noise(self, observed: Observations, evidence: Evidence, expected: Any) -> float | None:
        """The noise, selected again whenever the evidence has grown by half."""
        if len(observed) >= max(ESTIMATOR.least_outcomes, 1.5 * self._asked_at) or len(observed) < self._asked_at:
            self._asked_at = len(observed)
            table = _table(observed, some_of(np.unique(observed.tasks), ESTIMATOR.sampled_tasks), len(expected))
            if table is not None:
                tasks, results = table
                self._noise = select_noise_of_table(results, _finely_among(evidence, tasks), expected)
            else:
                sample = _part(observed, _sampled(observed.tasks))
                self._noise = select_noise(sample, _among(evidence, sample), expected)
        return self._noise


def observations(evidence: Evidence, known: Any, similarity: Any, reader: str | None = None) -> Observations:
    """The outcomes of the strategies in question, each with its weight for the agent that asks."""
    tried, tasks, authors, groups, sessions = (
        np.array(each, dtype=int)
        for each in (evidence.strategies, evidence.tasks, evidence.authors, evidence.groups, evidence.sessions)
    )
    strategies = known[tried]
    # Reports on other strategies also count in how contested an agent's reports are.
    named = np.where(strategies >= 0, strategies, len(known) + tried)
    weights = weights_for(evidence.number_of(reader), authors, groups, sessions, named, similarity[tasks])
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


def _nearest(tasks: Any, similarity: Any) -> Any:
    return tasks[np.argsort(-similarity[tasks], kind="stable")[: ESTIMATOR.nearest_tasks]]


def _sampled(tasks: Any) -> Any:
    """The rows of the outcomes on a sample of tasks."""
    unique = np.unique(tasks)
    return np.flatnonzero(
        np.isin(tasks, some_of(unique, max(2, int(ESTIMATOR.sampled_outcomes * len(unique) / len(tasks)))))
    )


def _weighed(tasks: Any, similarity_of_own: Any) -> Any:
    """The rows of the outcomes on the most similar tasks, limited in outcomes and in tasks."""
    nearest_first = np.argsort(-similarity_of_own, kind="stable")[: ESTIMATOR.nearest_outcomes]
    _, first = np.unique(tasks[nearest_first], return_index=True)
    order = np.sort(first)
    return nearest_first[: order[ESTIMATOR.nearest_tasks]] if len(order) > ESTIMATOR.nearest_tasks else nearest_first


def _finely(similarity: Any, near: Any) -> Any:
    return (1 - ESTIMATOR.by_numbers) * similarity + ESTIMATOR.by_numbers * near


def _finely_among(evidence: Evidence, tasks: Any) -> Any:
    """The similarities of these tasks to each other, including their numbers."""
    return _finely(evidence.texts.among(tasks), evidence.numbers_in_texts.among(tasks))


def _among(evidence: Evidence, observed: Observations) -> Any:
    """The similarities of the tasks of these outcomes to each other; each task is compared once."""
    unique, place = np.unique(observed.tasks, return_inverse=True)
    return evidence.texts.among(unique)[np.ix_(place, place)]
