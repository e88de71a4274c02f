"""Whether a statement follows from the words it was made of, as the judge sees it."""

from __future__ import annotations

from collections.abc import Sequence

from alma.judge import default_judge
from alma.judge.base import Judge, Judgement
from alma.judge.strict import StrictJudge

LEAST_ENTAILED = 0.5
"""How likely *same* or *more* must be."""


def entailed(pairs: Sequence[tuple[str, str]], judge: Judge | None = None) -> list[bool]:
    """For each (words, statement) whether the words say the statement.

    Without a model nothing is known about that: then all of them are taken, and whoever proposes them has to be sure.
    """
    chosen = default_judge() if judge is None else judge
    if not pairs or chosen.name == StrictJudge().name:
        return [True] * len(pairs)
    return [follows(each) for each in chosen.compare(pairs)]


def follows(judged: Judgement) -> bool:
    """Whether the second text follows from the first."""
    return judged["same"] + judged["more"] >= LEAST_ENTAILED
