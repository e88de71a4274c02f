"""The effect of showing a memory on success: inverse-propensity weighting, with an interval valid at all times."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from alma.benefit.tuning import TUNING, Tuning

State = Literal["helps", "harms", "no effect seen", "not enough data"]


class Interval(NamedTuple):
    """The limits of an effect, which is a difference of two success rates."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Uplift:
    """The effect of showing a memory on the success rate, with its uncertainty.

    `interval` is a confidence sequence: with probability 1 - alpha it never misses the discounted average effect,
    however often it is looked at. `shrunk` is the effect pulled towards zero as far as it is uncertain; use it to order
    memories. A suspected memory probably harms, which is not clear yet. The rates are those of the trials with and
    without the memory.
    """

    effect: float
    interval: Interval
    shown: int
    withheld: int
    rate_shown: float | None
    rate_withheld: float | None
    shrunk: float
    state: State
    is_suspected: bool = False

    @property
    def exposures(self) -> int:
        """The trials in which the memory was shown or withheld."""
        return self.shown + self.withheld


@dataclass(slots=True)
class _Arm:
    """The outcomes of the trials in which a memory was shown, or of those in which it was withheld."""

    trials: int = 0
    won: int = 0
    weight: float = 0.0
    success: float = 0.0
    squares: float = 0.0

    def age(self, kept: float) -> None:
        self.weight, self.success, self.squares = self.weight * kept, self.success * kept, self.squares * kept

    def mean(self, prior: float, prior_weight: float) -> float:
        return (prior * prior_weight + self.success) / (prior_weight + self.weight)

    def variance(self, prior_weight: float) -> float:
        return (0.25 * prior_weight + self.squares) / (prior_weight + self.weight)

    def add(self, success: float, expected: float, weight: float) -> None:
        self.trials += 1
        self.won += success >= 0.5
        self.weight += weight
        self.success += weight * success
        self.squares += weight * (success - expected) ** 2

    @property
    def rate(self) -> float | None:
        return self.won / self.trials if self.trials else None


@dataclass(slots=True)
class UpliftEstimator:
    """Adds one trial after another and tells the uplift at any time.

    Each trial gives an augmented inverse-propensity score: it expects the effect of showing, given all before it,
    whatever the expectations that it is augmented with. The interval is Robbins' normal mixture over the discounted sum
    of these scores; the variance of each is predicted before its outcome is seen.
    """

    tuning: Tuning = TUNING
    _shown: _Arm = field(default_factory=_Arm)
    _withheld: _Arm = field(default_factory=_Arm)
    _weight: float = 0.0
    _sum: float = 0.0
    _variance: float = 0.0
    _mixing: float = 0.0

    def add(self, *, shown: bool, propensity: float, success: float, weight: float = 1.0, kept: float = 1.0) -> None:
        """Add a trial: `propensity` is the probability with which the memory was shown, `weight` what the outcome
        counts, and `kept` the share of their weight that the earlier trials keep.
        """
        self._age(kept)
        with_it = self._shown.mean(0.5, self.tuning.success_prior)
        without = self._withheld.mean(with_it, self.tuning.withheld_prior)
        missed = 1.0 - propensity
        variance = (
            self._shown.variance(self.tuning.variance_prior) / propensity
            + self._withheld.variance(self.tuning.variance_prior) / missed
        )
        surprise = (success - with_it) / propensity if shown else -(success - without) / missed
        self._mixing = self._mixing or self.tuning.tightest_after * variance
        self._weight += weight
        self._sum += weight * (with_it - without + surprise)
        self._variance += weight * weight * variance
        arm, expected = (self._shown, with_it) if shown else (self._withheld, without)
        arm.add(success, expected, weight)

    def _age(self, kept: float) -> None:
        self._shown.age(kept)
        self._withheld.age(kept)
        self._weight *= kept
        self._sum *= kept
        self._variance *= kept * kept
        self._mixing *= kept * kept

    @property
    def effect(self) -> float:
        """The estimated effect of showing."""
        return max(-1.0, min(1.0, self._sum / self._weight)) if self._weight else 0.0

    @property
    def exposures(self) -> int:
        """The trials so far."""
        return self._shown.trials + self._withheld.trials

    @property
    def shrunk(self) -> float:
        """The estimate pulled towards zero as far as it is uncertain."""
        if not self._weight:
            return 0.0
        prior = self.tuning.effect_deviation**2
        return self.effect * prior / (prior + self._variance / self._weight**2)

    @property
    def is_suspected(self) -> bool:
        """Whether the effect is probably below zero."""
        if not self._weight:
            return False
        prior, variance = self.tuning.effect_deviation**2, self._variance / self._weight**2
        return self.shrunk < -self.tuning.suspected_below * math.sqrt(prior * variance / (prior + variance))

    def interval(self) -> Interval:
        """The confidence sequence at this time."""
        if not self._weight or not self._mixing:
            return Interval(-1.0, 1.0)
        spread = self._variance + self._mixing
        radius = math.sqrt(spread * (math.log(spread / self._mixing) - 2 * math.log(self.tuning.alpha))) / self._weight
        middle = self._sum / self._weight
        return Interval(max(-1.0, min(1.0, middle - radius)), min(1.0, max(-1.0, middle + radius)))

    def uplift(self) -> Uplift:
        """Everything known at this time."""
        interval = self.interval()
        return Uplift(
            effect=self.effect,
            interval=interval,
            shown=self._shown.trials,
            withheld=self._withheld.trials,
            rate_shown=self._shown.rate,
            rate_withheld=self._withheld.rate,
            shrunk=self.shrunk,
            state=self._state(interval),
            is_suspected=self.is_suspected,
        )

    def _state(self, interval: Interval) -> State:
        if min(self._shown.trials, self._withheld.trials) < self.tuning.least_of_each:
            return "not enough data"
        if interval.low > 0:
            return "helps"
        if interval.high < 0:
            return "harms"
        return "no effect seen" if interval.high - interval.low <= 2 * self.tuning.seen else "not enough data"
