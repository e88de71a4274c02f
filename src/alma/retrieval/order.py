"""Order among memories that say the same: a newer fact before the one it overrules, a repetition once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from alma.model.text import terms

# Two memories speak of the same thing when they match the question by the same words and share this much of their own.
_SAME_SUBJECT, _SAME_WORDS = 0.95, 0.4
_REPETITION = 0.97
_LONGEST_STATEMENT = 2_000
_COMPARED = 40


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


def cut(statements: Sequence[Statement], asked: frozenset[str]) -> list[Statement]:
    """The best statements that are short enough to be compared, with their words."""
    chosen = [statement for statement in statements[:_COMPARED] if len(statement.text) <= _LONGEST_STATEMENT]
    for statement in chosen:
        statement.words = statement.words or frozenset(terms(statement.text))
        statement.matched = statement.words & asked
    return chosen


def newest_first(
    statements: Sequence[Statement], weight_of: Mapping[str, float], overruled: Callable[[Statement, Statement], None]
) -> None:
    """Tell of every statement that a newer one about the same thing stands behind; `overruled(older, newer)`."""
    dated = sorted((s for s in statements if s.moment is not None), key=lambda s: (s.moment, s.id))
    for place, older in enumerate(dated):
        for newer in dated[place + 1 :]:
            if newer.score <= older.score and newer.moment != older.moment and same_thing(older, newer, weight_of):
                overruled(older, newer)


def same_thing(one: Statement, other: Statement, weight_of: Mapping[str, float]) -> bool:
    """Whether both say something about the same thing, as far as the question is concerned."""
    # Few share enough of their words, and that is quickly seen.
    if one.owner != other.owner or not one.words or not other.words or _overlap(one, other) < _SAME_WORDS:
        return False
    either = sum(weight_of.get(word, 1.0) for word in one.matched | other.matched)
    both = sum(weight_of.get(word, 1.0) for word in one.matched & other.matched)
    return either > 0 and both >= _SAME_SUBJECT * either


def repeats(one: Statement, other: Statement) -> bool:
    """Whether one says nothing that the other does not."""
    if one.owner != other.owner or not one.words:
        return False
    shorter, longer = sorted((len(one.words), len(other.words)))
    # They overlap by no more than the shorter one has.
    return shorter / longer >= _REPETITION and _overlap(one, other) >= _REPETITION


def _overlap(one: Statement, other: Statement) -> float:
    shared = len(one.words & other.words)
    return shared / (len(one.words) + len(other.words) - shared)
