"""A judge that says what a test needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from alma.judge.base import LABELS, Judgement, Label
from alma.judge.strict import StrictJudge


class ToldJudge(StrictJudge):
    """Knows the labels of some pairs of texts, in either order; of all others it says what the strict judge says."""

    def __init__(self, told: Mapping[tuple[str, str], Label], probability: float = 0.9) -> None:
        self._told = dict(told)
        self._probability = probability
        self.asked: list[tuple[str, str]] = []

    @property
    def name(self) -> str:
        return "told"

    def compare(self, pairs: Sequence[tuple[str, str]]) -> list[Judgement]:
        self.asked += pairs
        strict = super().compare(pairs)
        labels = [self._told.get(pair) or self._told.get((pair[1], pair[0])) for pair in pairs]
        return [by if label is None else self._sure(label) for label, by in zip(labels, strict, strict=True)]

    def _sure(self, label: Label) -> Judgement:
        rest = (1.0 - self._probability) / (len(LABELS) - 1)
        return Judgement(label, {each: self._probability if each == label else rest for each in LABELS})
