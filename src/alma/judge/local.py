"""The local judge: a small cross-encoder on onnxruntime, with a cache of its answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar

from alma.judge.base import Judgement, StrictJudge
from alma.judge.cache import AnswerCache, Probabilities, compared
from alma.judge.network import Head, Network, read_card
from alma.paths import expand_home
from alma.process import LazyValue, PerProcess

SHIPPED: Final = Path(__file__).parent / "data"
"""The folder of the model that comes with the package."""

Texts = TypeVar("Texts", bound=tuple[str, ...])


class LocalJudge:
    """The shipped model, or the one that lies in `folder`.

    A folder holds `judge.onnx`, its `tokenizer.json`, and `judge.json` with their digests. They are verified and loaded
    by the first call that needs them. It is safe to use from many threads and after a fork.

    What the model does not read of a text, because it is too long or in characters without a token, never counts
    as agreement: two such texts are not *same*.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self._folder = SHIPPED if folder is None else expand_home(folder)
        self._card = read_card(self._folder)
        self._network = PerProcess(lambda: LazyValue(lambda: Network(self._folder, self._card)))
        self._answers = PerProcess(AnswerCache)

    @property
    def name(self) -> str:
        return self._card.name

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return self._folder

    def load(self) -> None:
        """Verify and load the files now; an `ALMAError` says what is wrong with them."""
        self._network.get().loaded()

    def compare(self, pairs: Sequence[tuple[str, str]]) -> list[Judgement]:
        """What the first text of each pair is to the second; the order of a pair only exchanges *more* and *less*."""
        return compared(pairs, self._answers.get(), self._relations, StrictJudge())

    def useful(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """For each (task, memory) the probability that the memory helps with the task."""
        return self._answer("useful", pairs, lambda each: self._network.get().loaded().useful(each))

    def injection(self, texts: Sequence[str]) -> list[float | None]:
        """For each text the probability that it holds instructions aimed at its reader."""
        return self._answer(
            "injection",
            [(text,) for text in texts],
            lambda each: self._network.get().loaded().injection([text for (text,) in each]),
        )

    def __repr__(self) -> str:
        return f"LocalJudge(name={self.name!r})"

    def _relations(self, pairs: Sequence[tuple[str, str]]) -> Sequence[Probabilities]:
        return self._network.get().loaded().relations(pairs)

    def _answer(
        self, head: Head, asked: Sequence[Texts], ask: Callable[[Sequence[Texts]], list[float]]
    ) -> list[float | None]:
        """The probability of a head with one output; None where the model has no such head, 0 for an empty text."""
        if head not in self._card.temperatures:
            return [None] * len(asked)
        readable = [texts for texts in asked if all(map(str.strip, texts))]
        answers = iter(self._answers.get().found(head, readable, ask))
        return [next(answers) if all(map(str.strip, texts)) else 0.0 for texts in asked]
