"""Belief: how sure one can be that something works, from how often it did and did not."""

from __future__ import annotations

import math
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple, Protocol

EVIDENCE_HALF_LIFE_DAYS = 180.0
"""After how long evidence counts half, unless a configuration says otherwise."""

_PRIOR = 1.0
_CERTAINTY = 0.9
_SECONDS_PER_DAY = 86_400
_SLICES = 128


class Belief(NamedTuple):
    """A Beta posterior over the share of successes: evidence for and against, on top of one of each.

    Evidence loses half of its weight with every half-life, so that what worked long ago says less about today.
    """

    weight_for: float = 0.0
    weight_against: float = 0.0

    @property
    def mean(self) -> float:
        """The expected share of successes."""
        return self._alpha / (self._alpha + self._beta)

    @property
    def interval(self) -> tuple[float, float]:
        """The limits between which the share lies with a probability of nine in ten."""
        return self._quantile((1 - _CERTAINTY) / 2), self._quantile((1 + _CERTAINTY) / 2)

    @property
    def lower_bound(self) -> float:
        """The share of successes is hardly less than this."""
        return self._quantile((1 - _CERTAINTY) / 2)

    @property
    def evidence(self) -> float:
        """How much was seen."""
        return self.weight_for + self.weight_against

    def changed(self, before: Belief, after: Belief) -> Belief:
        """The belief after a part of its evidence has changed."""
        won, lost = (known + new - old for known, old, new in zip(self, before, after, strict=True))
        return Belief(max(0.0, won), max(0.0, lost))

    def aged(self, since: datetime | None, now: datetime, half_life_days: float) -> Belief:
        """The belief when time has passed since the evidence was weighed."""
        share = kept(since, now, half_life_days)
        return Belief(self.weight_for * share, self.weight_against * share)

    @property
    def _alpha(self) -> float:
        return self.weight_for + _PRIOR

    @property
    def _beta(self) -> float:
        return self.weight_against + _PRIOR

    def _quantile(self, probability: float) -> float:
        # Hundredths of an outcome make no difference anyone could see, and there are few of them.
        return _beta_quantile(round(self._alpha, 2), round(self._beta, 2), probability)


def kept(since: datetime | None, now: datetime, half_life_days: float) -> float:
    """The share of its weight that evidence has kept since it was weighed."""
    if since is None or now <= since:
        return 1.0
    return float(0.5 ** ((now - since).total_seconds() / _SECONDS_PER_DAY / half_life_days))


class Supported(Protocol):
    """A heuristic, or as much of it as says what is known for it and against it."""

    @property
    def confidence(self) -> float: ...
    @property
    def occurrence_count(self) -> int: ...
    @property
    def success_count(self) -> int: ...
    @property
    def weight_for(self) -> float | None: ...
    @property
    def weight_against(self) -> float | None: ...
    @property
    def last_validated(self) -> datetime | None: ...


def belief_in(heuristic: Supported) -> Belief | None:
    """What the evidence of a heuristic says; nothing for one that was written by hand."""
    if heuristic.weight_for is None or heuristic.weight_against is None:
        return None
    return Belief(heuristic.weight_for, heuristic.weight_against)


def belief_today(heuristic: Supported, now: datetime, half_life_days: float) -> Belief | None:
    """What the evidence of a heuristic says by now: what nobody has tried for long is less sure than it was."""
    known = belief_in(heuristic)
    return None if known is None else known.aged(heuristic.last_validated, now, half_life_days)


@lru_cache(maxsize=4096)
def _beta_quantile(alpha: float, beta: float, probability: float) -> float:
    """Where the Beta distribution reaches this probability: summed up over slices of where it has any weight."""
    mean = alpha / (alpha + beta)
    reach = 8 * math.sqrt(mean * (1 - mean) / (alpha + beta + 1))
    low, high = max(0.0, mean - reach), min(1.0, mean + reach)
    width = (high - low) / _SLICES
    middles = [low + (i + 0.5) * width for i in range(_SLICES)]
    logarithms = [(alpha - 1) * math.log(x) + (beta - 1) * math.log1p(-x) for x in middles]
    # The highest slice counts as one, so that none of thousands of outcomes is too small to be written.
    highest = max(logarithms)
    masses = [math.exp(each - highest) for each in logarithms]
    wanted = probability * math.fsum(masses)
    for x, mass in zip(middles, masses, strict=True):
        if wanted <= mass:
            return x + (wanted / mass - 0.5) * width
        wanted -= mass
    return high
