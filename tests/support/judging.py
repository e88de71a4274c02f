"""Judges with scripted verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from alma.judge.base import LABELS, SAME, Judgement, Label, StrictJudge, normalised


def judgement(label: Label, probability: float = 0.95) -> Judgement:
    """A judgement that is this sure of one label."""
    rest = (1 - probability) / (len(LABELS) - 1)
    return Judgement(label, {each: probability if each == label else rest for each in LABELS})


class ScriptedJudge(StrictJudge):
    """Returns the given verdicts; all other texts have nothing in common."""

    def __init__(
        self,
        same: Iterable[Sequence[str]] = (),
        opposite: Iterable[tuple[str, str]] = (),
        more: Iterable[tuple[str, str]] = (),
        probability: float = 0.95,
    ) -> None:
        self._same = [frozenset(map(normalised, group)) for group in same]
        self._opposite = {frozenset(map(normalised, pair)) for pair in opposite}
        self._more = {tuple(map(normalised, pair)) for pair in more}
        self._probability = probability
        self.asked: list[list[tuple[str, str]]] = []

    @property
    def name(self) -> str:
        return "scripted"

    def compare(self, pairs: Sequence[tuple[str, str]]) -> list[Judgement]:
        self.asked.append(list(pairs))
        return [self._verdict(normalised(one), normalised(other)) for one, other in pairs]

    def _verdict(self, one: str, other: str) -> Judgement:
        if one == other:
            return SAME
        if frozenset((one, other)) in self._opposite:
            return judgement("opposite", self._probability)
        if any({one, other} <= group for group in self._same):
            return judgement("same", self._probability)
        if (one, other) in self._more or (other, one) in self._more:
            return judgement("more" if (one, other) in self._more else "less", self._probability)
        return judgement("other", self._probability)


class LabelledJudge(StrictJudge):
    """Returns the given labels for pairs of texts in either order, and the strict judgement for all others."""

    def __init__(self, labels: Mapping[tuple[str, str], Label], probability: float = 0.9) -> None:
        self._labels = dict(labels)
        self._probability = probability
        self.asked: list[tuple[str, str]] = []

    @property
    def name(self) -> str:
        return "scripted"

    def compare(self, pairs: Sequence[tuple[str, str]]) -> list[Judgement]:
        self.asked += pairs
        strict = super().compare(pairs)
        labels = [self._labels.get(pair) or self._labels.get((pair[1], pair[0])) for pair in pairs]
        return [
            by if label is None else judgement(label, self._probability)
            for label, by in zip(labels, strict, strict=True)
        ]
