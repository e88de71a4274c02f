"""Whether a statement follows from the words it was made of, as the judge sees it."""

from __future__ import annotations

from collections.abc import Sequence

from alma.judge import default_judge
from alma.judge.base import Judge
from alma.judge.strict import StrictJudge

LEAST_RESTATED = 0.05
"""How likely *same* or *more* must be for a statement that restates a clause in other grammar.

The judge takes "I" and "the user" for two people more often than frames are wrong: on the development snippets 0.05
loses no right statement, 0.3 one in five, at the same precision.
"""
LEAST_PROPOSED = 0.3
"""The same for a statement that a language model proposes in words of its own.

Of development proposals that threshold keeps 87 % of the right ones, and drops 63 % of the wrong ones.
"""


def entailed(pairs: Sequence[tuple[str, str]], least: float, judge: Judge | None = None) -> list[bool]:
    """For each (words, statement) whether the words say the statement, as likely as `least`.

    Without a model nothing is known about that: then all of them are taken, and whoever proposes them has to be sure.
    """
    chosen = default_judge() if judge is None else judge
    if not pairs or chosen.name == StrictJudge().name:
        return [True] * len(pairs)
    return [judged["same"] + judged["more"] >= least for judged in chosen.compare(pairs)]
