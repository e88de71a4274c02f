"""The judge of this process, where none is configured."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

from alma.errors import ALMAError
from alma.judge.base import Judge, Judgement
from alma.judge.strict import StrictJudge

_log = logging.getLogger(__name__)
_WARNING = "The judge's model cannot be used, so texts are compared strictly and only equal ones are the same."

Answer = TypeVar("Answer")


@cache
def default_judge() -> Judge:
    """The one judge of this process: the shipped model, or the strict comparison where it cannot be used."""
    return FallbackJudge(_shipped)


def _shipped() -> Judge:
    from alma.judge.local import LocalJudge

    return LocalJudge()


class FallbackJudge:
    """The judge that `make` gives, and the strict one as soon as that fails; a warning is logged then, once."""

    def __init__(self, make: Callable[[], Judge]) -> None:
        self.problem: str | None = None
        """Why the strict judge answers, if it does."""
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
        return self._asked(lambda judge: judge.compare(pairs))

    def useful(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        return self._asked(lambda judge: judge.useful(pairs))

    def injection(self, texts: Sequence[str]) -> list[float | None]:
        return self._asked(lambda judge: judge.injection(texts))

    def __repr__(self) -> str:
        return repr(self._judge)

    def _asked(self, ask: Callable[[Judge], Answer]) -> Answer:
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
