"""Decay: from whole to nothing, never the other way."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alma.errors import ValidationError
from alma.learning.decay import Decay, ExponentialDecay, LinearDecay, NoDecay, StepDecay

CURVES: list[Decay] = [ExponentialDecay(), LinearDecay(), LinearDecay(10, 0.2), StepDecay(), NoDecay()]
ages = st.floats(min_value=0, max_value=1e6, allow_nan=False)


@pytest.mark.parametrize("decay", CURVES, ids=repr)
@given(younger=ages, older=ages)
def test_strength_lies_between_nothing_and_whole_and_never_grows(decay: Decay, younger: float, older: float) -> None:
    younger, older = sorted((younger, older))
    assert 1.0 >= decay.strength(younger) >= decay.strength(older) >= 0.0


@pytest.mark.parametrize("decay", CURVES, ids=repr)
def test_what_is_new_is_whole(decay: Decay) -> None:
    assert decay.strength(0) == decay.strength(-5) == 1.0


def test_each_curve_falls_in_its_way() -> None:
    assert ExponentialDecay(30).strength(60) == 0.25
    assert LinearDecay(90).strength(45) == 0.5
    assert LinearDecay(90).strength(900) == 0
    assert LinearDecay(90, floor=0.2).strength(900) == 0.2
    assert [StepDecay([(10, 0.5), (20, 0.1)]).strength(days) for days in (9.9, 10, 20, 99)] == [1.0, 0.5, 0.1, 0.1]
    assert NoDecay().strength(10**6) == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: ExponentialDecay(0),
        lambda: ExponentialDecay(float("nan")),
        lambda: LinearDecay(-1),
        lambda: LinearDecay(10, 2),
        lambda: StepDecay([]),
        lambda: StepDecay([(10, 0.1), (20, 0.5)]),
        lambda: StepDecay([(10, 1.5)]),
        lambda: StepDecay([30, 0.5]),  # type: ignore[list-item]
        lambda: StepDecay(None),  # type: ignore[arg-type]
        lambda: NoDecay().strength("long"),  # type: ignore[arg-type]
        lambda: ExponentialDecay().strength(float("nan")),
    ],
)
def test_nonsense_is_refused(make: Any) -> None:
    with pytest.raises(ValidationError):
        make()
