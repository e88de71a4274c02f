"""Whether a statement follows from the words it was made of, as the judge sees it."""

from __future__ import annotations

from collections.abc import Sequence

from alma.judge import StrictJudge, default_judge
from alma.judge.base import Judge, Judgement

LEAST_ENTAILED = 0.5
"""How likely *same* or *more* must be."""


def entailed(pairs: Sequence[tuple[str, str]], judge: Judge | None = None) -> list[bool]:
    """For each (words, statement) whether the words say the statement.

    A judge without a model knows equal texts only and is not asked: then the frames alone decide.
    """
    chosen = default_judge() if judge is None else judge
    if isinstance(chosen, StrictJudge) or not pairs:
        return [True] * len(pairs)
    return [_follows(each) for each in chosen.compare(pairs)]


def _follows(judged: Judgement) -> bool:
    return judged["same"] + judged["more"] >= LEAST_ENTAILED
