"""Confidence of a probability estimate."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alma.model.learning import Belief

WEIGHTS = st.floats(0, 5000)


@given(WEIGHTS, WEIGHTS)
def test_the_interval_lies_around_the_mean_inside_0_and_1(won: float, lost: float) -> None:
    belief = Belief(won, lost)
    low, high = belief.interval
    assert 0 <= low <= belief.mean <= high <= 1
    assert low == belief.lower_bound


def test_known_quantiles() -> None:
    assert Belief().interval == pytest.approx((0.05, 0.95), abs=2e-3)
    # The distribution function of Beta(4, 1) is x^4.
    assert Belief(3, 0).lower_bound == pytest.approx(0.05**0.25, abs=2e-3)


def test_more_of_the_same_narrows_the_interval() -> None:
    bounds = [Belief(n, 0).lower_bound for n in (1, 3, 10, 100)]
    assert bounds == sorted(bounds)


def test_evidence_ages_by_half_lives() -> None:
    now = datetime(2026, 1, 31, tzinfo=UTC)
    aged = Belief(8, 4).aged(now - timedelta(days=60), now, 30)
    assert (aged.weight_for, aged.weight_against) == pytest.approx((2, 1))
    assert Belief(8, 4).aged(now + timedelta(days=1), now, 30) == Belief(8, 4)
