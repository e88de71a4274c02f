"""The strict judge: equal normalised texts are the same, and nothing else is claimed."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from types import MappingProxyType
from typing import Final

from alma.judge.base import LABELS, Judgement, Label

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
