"""The statistics of benefit: what the estimates and intervals say about simulated trials of known effect."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from alma.benefit.trials import Arm, Trial, estimated, is_withheld
from alma.benefit.uplift import UpliftEstimator

START = datetime(2026, 1, 1, tzinfo=UTC)


def simulated(rng: np.random.Generator, effect: float, trials: int, propensity: float) -> tuple[UpliftEstimator, bool]:
    """An estimator after these trials, and whether its interval always held the effect."""
    estimator, held = UpliftEstimator(), True
    for _ in range(trials):
        shown = bool(rng.random() < propensity)
        success = float(rng.random() < 0.5 + effect * shown)
        estimator.add(shown=shown, propensity=propensity, success=success)
        low, high = estimator.interval()
        held = held and low <= effect <= high
    return estimator, held


@pytest.mark.parametrize("propensity", [0.95, 0.8])
def test_intervals_hold_the_effect_at_all_times_at_their_level(propensity: float) -> None:
    rng = np.random.default_rng(7)
    held = [simulated(rng, effect, 400, propensity)[1] for effect in (-0.3, 0.0, 0.2) for _ in range(25)]
    assert sum(held) >= 0.92 * len(held)


@pytest.mark.parametrize(("effect", "state"), [(-0.3, "harms"), (0.3, "helps"), (0.0, "no effect seen")])
def test_states_follow_the_interval(effect: float, state: str) -> None:
    estimator, _ = simulated(np.random.default_rng(3), effect, 3000, 0.8)
    assert estimator.uplift().state == state


def test_little_data_says_nothing() -> None:
    estimator, _ = simulated(np.random.default_rng(3), -0.4, 20, 0.95)
    assert estimator.uplift().state == "not enough data"


def confounded(effect: float, tasks: int = 3000) -> list[Trial]:
    """A memory without competition that is found for easy tasks, and one of this effect that is found for all."""
    rng, trials = np.random.default_rng(11), []
    for number in range(tasks):
        easy = bool(rng.random() < 0.5)
        arms = {"all": Arm(bool(rng.random() < 0.8), 0.8)}
        if easy:
            arms["easy"] = Arm(bool(rng.random() < 0.8), 0.8)
        chance = (0.7 if easy else 0.3) + effect * arms["all"].shown
        trials.append(Trial(START + timedelta(minutes=number), float(rng.random() < chance), arms))
    return trials


def test_being_found_for_easy_tasks_does_not_count_for_a_memory() -> None:
    benefit = estimated(confounded(-0.25))
    easy, harmful = benefit.memories["easy"], benefit.memories["all"]
    assert easy.rate_shown is not None
    assert easy.rate_shown > 0.45
    assert easy.interval.low < 0 < easy.interval.high
    assert harmful.state == "harms"
    assert benefit.additive["all"] == pytest.approx(-0.25, abs=0.07)
    assert benefit.additive["easy"] == pytest.approx(0.0, abs=0.07)


def test_old_trials_lose_their_weight() -> None:
    rng = np.random.default_rng(5)

    def trial(at: datetime, effect: float) -> Trial:
        shown = bool(rng.random() < 0.5)
        return Trial(at, float(rng.random() < 0.5 + effect * shown), {"m": Arm(shown, 0.5)})

    before = [trial(START + timedelta(hours=n), 0.4) for n in range(600)]
    after = [trial(START + timedelta(days=1100, hours=n), -0.4) for n in range(600)]
    assert estimated([*before, *after]).memories["m"].effect == pytest.approx(-0.4, abs=0.1)


def test_what_is_withheld_depends_on_retrieval_and_memory_alone() -> None:
    drawn = [is_withheld(f"retrieval {n}", "lesson", 0.05) for n in range(4000)]
    assert drawn == [is_withheld(f"retrieval {n}", "lesson", 0.05) for n in range(4000)]
    assert 0.035 < sum(drawn) / len(drawn) < 0.065
    assert not any(is_withheld(f"retrieval {n}", "lesson", 0.0) for n in range(1000))
