"""The estimate: a table of all that was tried says what its outcomes say, and the evidence tells its noise."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from alma.learning.estimator import Observations, estimate, estimate_from_table, estimate_overall, select_noise


@given(
    tasks=st.integers(2, 8),
    strategies=st.integers(2, 5),
    noise=st.sampled_from([0.1, 1.0, 3.0, 10.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_complete_table_says_what_its_outcomes_say(tasks: int, strategies: int, noise: float, seed: int) -> None:
    drawn = np.random.default_rng(seed)
    results = drawn.integers(0, 2, (tasks, strategies)).astype(float)
    places = drawn.normal(size=(tasks + 1, 3))
    similarity_of_own = np.exp(-((places[:, None] - places[None]) ** 2).sum(axis=2))
    among, similarity = similarity_of_own[:tasks, :tasks], similarity_of_own[tasks, :tasks]
    expected = drawn.uniform(0.2, 0.8, strategies)
    row, column = (each.ravel() for each in np.indices(results.shape))
    observed = Observations(np.arange(results.size), row, column, results.ravel(), np.ones(results.size))
    one = estimate(observed, similarity[row], among[np.ix_(row, row)], expected, noise)
    other = estimate_from_table(results, similarity, among, expected, noise)
    np.testing.assert_allclose(other.means, one.means, atol=1e-6)
    np.testing.assert_allclose(other.deviations, one.deviations, atol=1e-6)


def _in_kinds(results: np.ndarray) -> tuple[Observations, np.ndarray, np.ndarray]:
    """Outcomes of two strategies on tasks of four kinds, which are alike within a kind and not beyond."""
    count = len(results)
    tasks = np.arange(count)
    kinds, strategies = tasks % 4, tasks // 4 % 2
    among = np.where(kinds[:, None] == kinds[None], 0.9, 0.0) + 0.1 * np.eye(count)
    return Observations(tasks, tasks, strategies, results, np.ones(count)), among, np.full(2, 0.5)


def test_outcomes_that_similar_tasks_foretell_are_trusted() -> None:
    tasks = np.arange(240)
    noise = select_noise(*_in_kinds(((tasks % 4 < 2) == (tasks // 4 % 2 == 0)).astype(float)))
    assert noise is not None
    assert noise < 1.0


def test_where_tasks_tell_nothing_strategies_are_judged_by_what_they_do_everywhere() -> None:
    tasks = np.arange(240)
    drawn = np.random.default_rng(7).uniform(size=240)
    observed, among, expected = _in_kinds((drawn < np.where(tasks // 4 % 2 == 0, 0.8, 0.4)).astype(float))
    assert select_noise(observed, among, expected) is None
    found = estimate_overall(observed, expected)
    np.testing.assert_allclose(found.means, [0.8, 0.4], atol=0.1)
    assert (found.deviations < 0.05).all()


def test_a_strategy_that_was_never_tried_is_expected_to_do_as_all_do_and_least_certain() -> None:
    observed, _, _ = _in_kinds(np.ones(80))
    found = estimate_overall(observed, np.full(3, 0.5))
    assert found.means[2] == 0.5
    assert found.deviations.argmax() == 2
