"""The judge of this process, where none is configured."""

from __future__ import annotations

from functools import cache

from alma.judge.base import Judge
from alma.judge.strict import StrictJudge


@cache
def default_judge() -> Judge:
    """The one judge of this process: the shipped model, or the strict comparison where there is none."""
    return StrictJudge()
