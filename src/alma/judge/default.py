"""The default judge of this process, and a check that a statement follows from its source."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

from alma.errors import ALMAError
from alma.judge.base import Judge, Judgement, StrictJudge

_log = logging.getLogger(__name__)
_WARNING = "The judge's model cannot be used, so texts are compared strictly and only equal ones are the same."

Answer = TypeVar("Answer")


@cache
def default_judge() -> Judge:
    """The judge shared by this process: the shipped model, or the strict judge where it cannot be used."""
    return FallbackJudge(_shipped)


def _shipped() -> Judge:
    from alma.judge.local import LocalJudge

    return LocalJudge()


class FallbackJudge:
    """The judge from a factory, and the strict judge after the first failure, which is logged once."""

    def __init__(self, make: Callable[[], Judge]) -> None:
        self.problem: str | None = None
        """The reason of the fallback to the strict judge, if there was one."""
        self._judge: Judge
        try:
            self._judge = make()
        except ALMAError as exc:
            self._fall_back(exc)

    @property
    def name(self) -> str:
        return self._judge.name

    @property
    def megabytes(self) -> float:
        """How large the files of the model are; 0 without one."""
        folder: Path | None = getattr(self._judge, "folder", None)
        return 0.0 if folder is None else sum(file.stat().st_size for file in folder.iterdir()) / 1e6

    def compare(self, pairs: Sequence[tuple[str, str]]) -> list[Judgement]:
        return self._ask(lambda judge: judge.compare(pairs))

    def useful(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        return self._ask(lambda judge: judge.useful(pairs))

    def injection(self, texts: Sequence[str]) -> list[float | None]:
        return self._ask(lambda judge: judge.injection(texts))

    def __repr__(self) -> str:
        return repr(self._judge)

    def _ask(self, ask: Callable[[Judge], Answer]) -> Answer:
        judge = self._judge
        try:
            return ask(judge)
        except ALMAError as exc:
            if judge is self._judge:
                self._fall_back(exc)
            return ask(self._judge)

    def _fall_back(self, exc: ALMAError) -> None:
        self._judge, self.problem = StrictJudge(), str(exc)
        _log.warning(_WARNING, extra={"reason": str(exc)})


LEAST_RESTATED = 0.05
"""The threshold of *same* or *more* for a statement that restates a clause in other grammar.

It is low because the judge often takes "I" and "the user" for two people: on the development snippets 0.05 loses no
correct statement and 0.3 one in five, at the same precision.
"""
LEAST_PROPOSED = 0.3
"""The same for a statement that a language model phrased. On development proposals it keeps 87 % of the correct ones
and drops 63 % of the wrong ones.
"""


def entailed(pairs: Sequence[tuple[str, str]], least: float, judge: Judge | None = None) -> list[bool]:
    """For each (source, statement), whether the source entails the statement with a probability of at least `least`.

    Without a model this is unknown, and all are accepted.
    """
    chosen = default_judge() if judge is None else judge
    if not pairs or chosen.name == StrictJudge().name:
        return [True] * len(pairs)
    return [judged["same"] + judged["more"] >= least for judged in chosen.compare(pairs)]
