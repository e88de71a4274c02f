"""The port of judges, and the strict judge, which needs no model.

A judge compares two short texts, says whether a memory helps with a task, and whether a text looks like an injection.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
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
        """The name of the judge, which is stored with its decisions."""
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


# "10²" is not "102" and "1½" is not "11/2", which is what NFKC makes of them.
_RAISED = ("<super>", "<sub>", "<fraction>")
# A question mark says something: "Deploy on Friday?" is not "Deploy on Friday."
_END_PUNCTUATION = " .,;:!…。、"


def normalised(text: str) -> str:
    """The text in NFKC, case folded, with single spaces and without punctuation at its end."""
    if not text.isascii():
        raised = any(unicodedata.decomposition(character).startswith(_RAISED) for character in text)
        text = unicodedata.normalize("NFC" if raised else "NFKC", text)
    folded = " ".join(text.casefold().split())
    return folded.rstrip(_END_PUNCTUATION) or folded


def certain(label: Label) -> Judgement:
    """The judgement that gives all probability to one label."""
    return Judgement(label, MappingProxyType({each: float(each == label) for each in LABELS}))


SAME: Final = certain("same")
OTHER: Final = certain("other")


class StrictJudge:
    """Judges without a model: *same* for texts that are equal once normalised, *other* for all others."""

    @property
    def name(self) -> str:
        return "strict"

    def compare(self, pairs: Sequence[tuple[str, str]]) -> list[Judgement]:
        """*same* or *other*, never anything in between: different words may well say the same."""
        return [SAME if a == b or normalised(a) == normalised(b) else OTHER for a, b in pairs]

    def useful(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """None for each pair: without a model nothing is known about what helps."""
        return [None] * len(pairs)

    def injection(self, texts: Sequence[str]) -> list[float | None]:
        """None for each text: without a model nothing is known about what it asks of its reader."""
        return [None] * len(texts)

    def __repr__(self) -> str:
        return "StrictJudge()"
