"""Statements: the texts of memories as far as they are compared with each other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from alma.model.vector import Vector
from alma.storage.nearest import cosines_among
from alma.text.tokens import STOP_WORDS, terms

_LONGEST_STATEMENT = 2_000
_COMPARED = 40
# What a question names in a way that its terms do not keep: letters for a name (IT, US, plan B), parts that belong
# together (web-10, 10.0.0.7, room 4) and numbers below zero.
_LETTERS = re.compile(r"(?<=\w )(?!I\b)[A-Z]{1,4}\b")
# From the start of a word: from anywhere inside, a word of thousands of letters would be gone through as many times.
_JOINED = re.compile(r"(?<!\w)\w+(?:[-./_:@#]\w+)+")
_NUMBERED = re.compile(r"(?<!\w)([^\W\d_]+) \d+(?![\w.:/-]\w|\w)")
BELOW_ZERO = re.compile(r"(?<![\w.])-\d+")
_NO_LETTER = re.compile(r"[\W_]+")


@dataclass(slots=True)
class Statement:
    """A memory's text as far as it is compared with others."""

    id: str
    owner: str
    text: str
    moment: datetime | None
    score: float
    words: frozenset[str] = frozenset()
    matched: frozenset[str] = frozenset()
    named: frozenset[str] = frozenset()
    vector: Vector | None = None
    # A turn of a conversation: two that share a subject are no versions of one fact.
    is_remark: bool = False
    # What it tells besides its text: that something succeeded is not that it failed.
    result: str = ""
    # Who is shown to say it: what two agents have learned in the same words reads the same.
    voice: str = ""

    @property
    def gist(self) -> tuple[str, str, str] | None:
        """What every copy of it has in common; nothing where it is too long to be left out for another."""
        return (self.voice, self.result, self.text) if len(self.text) <= _LONGEST_STATEMENT else None


def cut(statements: Sequence[Statement], asked: frozenset[str], question: str = "") -> list[Statement]:
    """The best statements that are short enough to be compared, with their words and what they name of the question."""
    chosen = [statement for statement in statements[:_COMPARED] if len(statement.text) <= _LONGEST_STATEMENT]
    names = _names(question)
    for statement in chosen:
        statement.words = statement.words or frozenset(terms(statement.text))
        statement.matched = statement.words & asked
        if names:
            statement.named = frozenset(name for name in names if _names_it(statement.text, name))
    return chosen


@lru_cache(maxsize=16)
def _names(question: str) -> frozenset[str]:
    named = {name for form in (_LETTERS, _JOINED, BELOW_ZERO) for name in form.findall(question)}
    # "In 2024" names nothing.
    numbered = {each[0] for each in _NUMBERED.finditer(question) if each[1].lower() not in STOP_WORDS}
    return frozenset(named | numbered)


def _names_it(text: str, name: str) -> bool:
    """Whether a text has a name of the question; how its parts are joined does not matter, nor does their case."""
    if name.startswith("-"):
        return name in BELOW_ZERO.findall(text)
    if name.isalpha():
        # One letter at the beginning is an article.
        return re.search(rf"(?<=\w ){name}\b" if len(name) == 1 else rf"\b{name}\b", text) is not None
    return f" {_NO_LETTER.sub(' ', name).casefold()} " in f" {_NO_LETTER.sub(' ', text).casefold()} "


class Nearness:
    """How near statements are by meaning; for all at once, when it is first asked."""

    def __init__(self, statements: Sequence[Statement]) -> None:
        self._with_vectors = [each for each in statements if each.vector is not None]
        self._place: dict[str, int] | None = None
        self._rows: list[list[float]] = []

    def __call__(self, one: Statement, other: Statement) -> float:
        if self._place is None:
            self._place = self._reckoned()
        if one.id not in self._place or other.id not in self._place:
            return 0.0
        return self._rows[self._place[one.id]][self._place[other.id]]

    def _reckoned(self) -> dict[str, int]:
        vectors = [each.vector for each in self._with_vectors if each.vector is not None]
        if len(set(map(len, vectors))) > 1:
            # Half-way to another model they cannot be compared.
            return {}
        self._rows = cosines_among(vectors)
        return {each.id: place for place, each in enumerate(self._with_vectors)}
