"""Trials: what a retrieval showed and withheld, with which probability, and the outcome of the task."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from alma.benefit.tuning import TUNING, Tuning
from alma.benefit.uplift import Uplift, UpliftEstimator
from alma.lazy import lazy_module
from alma.model.learning import kept as kept_share

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy_module("numpy")


def is_withheld(retrieval_id: str, memory_id: str, share: float) -> bool:
    """Whether this retrieval withholds the memory; the same every time it is asked."""
    digest = hashlib.sha256(f"{retrieval_id}\x1f{memory_id}".encode()).digest()
    return int.from_bytes(digest[:8], "big") < share * 2**64


@dataclass(frozen=True, slots=True)
class Arm:
    """A memory in a trial: whether it was shown, and the probability with which it was."""

    shown: bool
    propensity: float
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trial:
    """A task whose outcome is known, with the memories that a retrieval could show for it."""

    at: datetime
    success: float
    arms: Mapping[str, Arm]
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Benefit:
    """The uplift of each memory and each group, and the effects of the additive model beside them."""

    memories: Mapping[str, Uplift]
    groups: Mapping[str, Uplift]
    additive: Mapping[str, float]
    trials: int


@dataclass(slots=True)
class _Discounted:
    estimator: UpliftEstimator
    last: datetime | None = None

    def add(self, arm: Arm, trial: Trial, half_life_days: float) -> None:
        kept = 1.0 if self.last is None else kept_share(self.last, trial.at, half_life_days)
        self.last = trial.at
        self.estimator.add(
            shown=arm.shown, propensity=arm.propensity, success=trial.success, weight=trial.weight, kept=kept
        )


@dataclass(slots=True)
class BenefitEstimator:
    """Adds trials in the order of their time."""

    tuning: Tuning = TUNING
    memories: dict[str, _Discounted] = field(default_factory=dict)
    groups: dict[str, _Discounted] = field(default_factory=dict)
    trials: list[Trial] = field(default_factory=list)

    def add(self, trial: Trial) -> None:
        """Credit the outcome of a trial to the memories that were shown and withheld."""
        self.trials.append(trial)
        for memory, arm in trial.arms.items():
            if not 0.0 < arm.propensity < 1.0:
                continue
            self._of(self.memories, memory).add(arm, trial, self.tuning.half_life_days)
            for group in arm.groups:
                self._of(self.groups, group).add(arm, trial, self.tuning.half_life_days)

    def _of(self, known: dict[str, _Discounted], name: str) -> _Discounted:
        if name not in known:
            known[name] = _Discounted(UpliftEstimator(self.tuning))
        return known[name]

    def _most_tried(self) -> list[str]:
        """The memories of the additive model, whose size grows with the square of their number."""
        tried = sorted(self.memories, key=lambda name: -self.memories[name].estimator.exposures)
        return tried[: self.tuning.most_in_model]

    def benefit(self) -> Benefit:
        """What is known after all trials so far."""
        return Benefit(
            {name: each.estimator.uplift() for name, each in self.memories.items()},
            {name: each.estimator.uplift() for name, each in self.groups.items()},
            additive_effects(self.trials, self._most_tried(), self.tuning),
            len(self.trials),
        )


def decidable(trials: Sequence[Trial], least_of_each: int) -> list[Trial]:
    """The trials with those memories only that were shown and withheld often enough for a verdict."""
    counts = Counter((name, arm.shown) for trial in trials for name, arm in trial.arms.items())
    names = {name for name, _ in counts if min(counts[name, True], counts[name, False]) >= least_of_each}
    found = ((trial, {name: arm for name, arm in trial.arms.items() if name in names}) for trial in trials)
    return [replace(trial, arms=arms) for trial, arms in found if arms]


def estimated(trials: Iterable[Trial], tuning: Tuning = TUNING) -> Benefit:
    """The benefit of every memory in these trials."""
    estimator = BenefitEstimator(tuning)
    for trial in sorted(trials, key=lambda each: each.at):
        estimator.add(trial)
    return estimator.benefit()


def additive_effects(trials: Sequence[Trial], memories: Sequence[str], tuning: Tuning = TUNING) -> dict[str, float]:
    """The effect of each memory with the others held fixed, by ridge regression.

    The model is additive: it says nothing about two memories that only work together. Success, less its discounted
    mean, is explained by what was shown less its propensity, so that tasks for which a memory is retrieved more often
    do not count for or against it.
    """
    if not trials or not memories:
        return {}
    column = {name: i for i, name in enumerate(memories)}
    newest = max(trial.at for trial in trials)
    weights = np.array([t.weight * kept_share(t.at, newest, tuning.half_life_days) for t in trials])
    success = np.array([trial.success for trial in trials])
    centred = success - float(weights @ success / weights.sum())
    # A trial with even odds has a variance of 0.25.
    squares = 0.25 * tuning.ridge * np.eye(len(memories))
    products = np.zeros(len(memories))
    for trial, weight, value in zip(trials, weights, centred, strict=True):
        held = [(column[name], float(arm.shown) - arm.propensity) for name, arm in trial.arms.items() if name in column]
        if held:
            places, shown = np.array([i for i, _ in held]), np.array([each for _, each in held])
            squares[np.ix_(places, places)] += weight * np.outer(shown, shown)
            products[places] += weight * value * shown
    solved = np.linalg.solve(squares, products)
    return {name: float(solved[i]) for name, i in column.items()}
