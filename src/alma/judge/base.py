"""The judge's port: what two short texts are to each other, whether a memory helps with a task, and what is hostile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

Label = Literal["same", "more", "less", "opposite", "supersedes", "other"]
LABELS: Final[tuple[Label, ...]] = ("same", "more", "less", "opposite", "supersedes", "other")


@dataclass(frozen=True, slots=True)
class Judgement:
    """What text `a` is to text `b`.

    *same*: they say the same. *more*: `a` implies `b` and says more. *less*: the other way round. *opposite*: both
    cannot be followed or be true. *supersedes*: another value of the same single-valued thing, so that the later one
    replaces the earlier. *other*: anything else. `probabilities` has every label and adds up to 1.
    """

    label: Label
    probabilities: Mapping[Label, float]

    def __getitem__(self, label: Label) -> float:
        return self.probabilities[label]


class Judge(Protocol):
    """Compares texts. The same texts get the same answer; no text is an error, however long or odd it is."""

    @property
    def name(self) -> str:
        """What judged: stored beside what was decided."""
        ...

    def compare(self, pairs: Sequence[tuple[str, str]]) -> list[Judgement]:
        """What the first text of each pair is to the second."""
        ...

    def useful(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """For each (task, memory) the probability that the memory helps with the task; None where it cannot tell."""
        ...

    def injection(self, texts: Sequence[str]) -> list[float | None]:
        """For each text the probability that it holds instructions aimed at its reader; None where it cannot tell."""
        ...
