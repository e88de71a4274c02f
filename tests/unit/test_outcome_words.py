"""Words, signs and values for success and failure."""

from __future__ import annotations

from enum import Enum

import numpy as np
import pytest

from alma.errors import ValidationError
from alma.learning.validation import parsed_outcome


class Result(Enum):
    WON = "success"
    LOST = "Failed"
    OPEN = "pending"


@pytest.mark.parametrize("told", ["passed ✅", "✅✅", "👍 done!", "no errors", Result.WON, np.int64(1)])
def test_a_success_is_read_whatever_stands_around_it(told: object) -> None:
    assert parsed_outcome(told) is True


@pytest.mark.parametrize("told", ["❌ FAILED", "didn’t work", "exception", "not ok", Result.LOST, np.float32(0)])
def test_a_failure_is_read_whatever_stands_around_it(told: object) -> None:
    assert parsed_outcome(told) is False


@pytest.mark.parametrize("told", ["passed ❌", "✅❌", "✅ maybe", "partial", Result.OPEN, np.nan, -1])
def test_what_tells_both_or_neither_is_refused_with_what_is_accepted(told: object) -> None:
    with pytest.raises(ValidationError, match='must be "success" or "failure", or a bool'):
        parsed_outcome(told)
