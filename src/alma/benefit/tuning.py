"""The numbers of the measurement of benefit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tuning:
    """`bench/benefit.py` measures what these numbers give: coverage, discovery of harmful memories, and cost."""

    alpha: float = 0.05
    """The probability that an interval ever misses the effect, however often it is looked at."""
    half_life_days: float = 180.0
    """After this time an outcome counts half."""
    tightest_after: float = 45.0
    """The prior variance of the mixture in units of the first trial: intervals are tightest after ten times as many."""
    success_prior: float = 2.0
    """Trials that the expected success of 0.5 counts for."""
    withheld_prior: float = 4.0
    """Trials for which the success without a memory is taken to be that with it."""
    variance_prior: float = 4.0
    """Trials for which the variance of a success is taken to be 0.25, its highest value."""
    effect_deviation: float = 0.15
    """The standard deviation of effects that estimates are shrunk with, to order memories."""
    suspected_below: float = 0.5
    """A memory is suspected to harm if its shrunk effect is this number of standard deviations below zero."""
    suspected_share: float = 0.5
    """The share of tasks from which a suspected memory is withheld, until it is clear whether it harms."""
    least_of_each: int = 5
    """Trials with and without a memory below which nothing is said about it."""
    seen: float = 0.2
    """*No effect seen* needs an interval that reaches no further than this on either side of its middle."""
    ridge: float = 4.0
    """The penalty of the additive model, in units of trials with even odds."""
    most_in_model: int = 2_000
    """The largest number of memories in the additive model; those with the most trials are used."""


TUNING = Tuning()
