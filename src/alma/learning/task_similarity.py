"""Tasks: when two of them are similar, so that what was learned on one is told about the other.

Meaning decides where it is clear. Between that and no resemblance at all, words do: *test the login form* and *test the
newsletter form* mean different things to a model, and are the same kind of task to whoever has to do them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from alma.text.tokens import query_terms

SIMILAR, SIMILAR_OF_A_TYPE, SIMILAR_IN_WORDS = 0.65, 0.5, 0.35
"""How alike the meanings of two tasks are at least: of any two, of one type, and of those that share their words."""

# The same of two short tasks that share one word: what is done to a thing, or the thing.
_SIMILAR_IN_ONE_WORD = 0.42
_FEWEST_SHARED = 2
_SHORT, _NEARLY_SHORT = 2, 3
# What is longer is told better by its meaning.
_MOST_WORDS = 16
_MARKS = 64


class Wording(NamedTuple):
    """The words that a task is told in, and a mark for each, which several words may have in common.

    The words are one text, since many of these are kept and objects that hold others take time as long as they are.
    """

    words: str = ""
    size: int = 0
    marks: int = 0

    @property
    def fewest_marks(self) -> int:
        """How many marks another task has in common with this one, at least, if it shares most of the words."""
        fewest_shared = 1 if self.size <= _NEARLY_SHORT else -(-self.size // 2)
        return max(1, self.marks.bit_count() - self.size + fewest_shared)

    def similar_from(self, other: Wording) -> float:
        """From which cosine on tasks of these words are similar: a lower one where they have half of them in common."""
        shared = len(set(self.words.split()).intersection(other.words.split()))
        if shared >= _FEWEST_SHARED and 2 * shared >= max(self.size, other.size):
            return SIMILAR_IN_WORDS
        sizes = sorted((self.size, other.size))
        short = sizes[0] == _SHORT and sizes[1] <= _NEARLY_SHORT
        return _SIMILAR_IN_ONE_WORD if shared and short else SIMILAR


UNWORDED = Wording()


@lru_cache(maxsize=64)
def wording_of(task: str) -> Wording:
    """How a task is worded; one of many words as if it had none."""
    words = query_terms(task)
    if len(words) > _MOST_WORDS:
        return UNWORDED
    marks = 0
    for word in words:
        marks |= 1 << hash(word) % _MARKS
    return Wording(" ".join(words), len(words), marks)


def are_similar(cosine: float, types: tuple[str | None, str | None], wordings: tuple[Wording, Wording]) -> bool:
    """Whether two tasks are similar, by the cosine of their vectors, their types and their words."""
    one, other = types
    if cosine >= SIMILAR or cosine < SIMILAR_IN_WORDS:
        return cosine >= SIMILAR
    if one is not None and other is not None and one != other:
        return False
    of_a_type = one is not None and one == other and cosine >= SIMILAR_OF_A_TYPE
    return of_a_type or cosine >= wordings[0].similar_from(wordings[1])


def word_overlap(words: set[str], others: Iterable[str]) -> float:
    """The share of all the words of two tasks that both have."""
    theirs = set(others)
    return len(words & theirs) / len(words | theirs) if words | theirs else 0.0
