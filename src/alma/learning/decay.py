"""Decay curves: how much of a memory's strength is left after some time without use."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from alma.errors import ValidationError


class Decay(ABC):
    """A curve from 1 for a memory that was just used down to 0."""

    @abstractmethod
    def strength(self, age_days: float) -> float:
        """The strength left after this number of days, between 0 and 1; it never grows with age."""


@dataclass(frozen=True, slots=True)
class ExponentialDecay(Decay):
    """Halves in every half-life."""

    half_life_days: float = 30.0

    def __post_init__(self) -> None:
        _positive("half_life_days", self.half_life_days)

    def strength(self, age_days: float) -> float:
        return float(0.5 ** (_age(age_days) / self.half_life_days))


@dataclass(frozen=True, slots=True)
class LinearDecay(Decay):
    """Falls by the same amount every day down to the floor."""

    days: float = 90.0
    floor: float = 0.0

    def __post_init__(self) -> None:
        _positive("days", self.days)
        _share("floor", self.floor)

    def strength(self, age_days: float) -> float:
        return max(self.floor, 1.0 - (1.0 - self.floor) * min(1.0, _age(age_days) / self.days))


@dataclass(frozen=True, slots=True)
class StepDecay(Decay):
    """1 until the first step, then the strength of the last step that was passed: pairs of days and strength."""

    steps: Sequence[tuple[float, float]] = field(default=((30.0, 0.75), (90.0, 0.5), (180.0, 0.25), (365.0, 0.0)))

    def __post_init__(self) -> None:
        steps = tuple(sorted((_age(days), _share("steps", left)) for days, left in _pairs(self.steps)))
        lefts = [left for _, left in steps]
        if not steps or lefts != sorted(lefts, reverse=True):
            raise ValidationError("decay", "steps", self.steps, "must be at least one step, and fall from step to step")
        object.__setattr__(self, "steps", steps)

    def strength(self, age_days: float) -> float:
        passed = [left for days, left in self.steps if _age(age_days) >= days]
        return passed[-1] if passed else 1.0


@dataclass(frozen=True, slots=True)
class NoDecay(Decay):
    """Always 1."""

    def strength(self, age_days: float) -> float:
        _age(age_days)
        return 1.0


def _pairs(steps: Any) -> list[tuple[Any, Any]]:
    try:
        return [(days, left) for days, left in steps]
    except (TypeError, ValueError):
        raise ValidationError("decay", "steps", steps, "must be pairs of days and strength, as [(30, 0.5)]") from None


def _age(days: Any) -> float:
    """The age in days; 0 for a time in the future."""
    if isinstance(days, bool) or not isinstance(days, int | float) or math.isnan(days):
        raise ValidationError("decay", "age_days", days, "must be a number of days")
    return max(0.0, float(days))


def _positive(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValidationError("decay", name, value, "must be a number above 0")


def _share(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValidationError("decay", name, value, "must be between 0 and 1")
    return float(value)
