"""Tasks: when two of them are similar, so that what was learned on one is told about the other.

Meaning decides where it is clear. Between that and no resemblance at all, words do: *test the login form* and *test the
newsletter form* mean different things to a model, and are the same kind of task to whoever has to do them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from alma.model.text import query_terms

SIMILAR, SIMILAR_OF_A_TYPE, SIMILAR_IN_WORDS = 0.65, 0.5, 0.35
"""How alike the meanings of two tasks are at least: of any two, of one type, and of those that share their words."""

_FEWEST_SHARED = 2
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
        fewest_shared = max(_FEWEST_SHARED, -(-self.size // 2))
        return max(1, self.marks.bit_count() - self.size + fewest_shared)

    def shares_most(self, other: Wording) -> bool:
        """Whether both have at least half of their words in common, and more than one."""
        shared = len(set(self.words.split()).intersection(other.words.split()))
        return shared >= _FEWEST_SHARED and 2 * shared >= max(self.size, other.size)


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
    return (one is not None and one == other and cosine >= SIMILAR_OF_A_TYPE) or wordings[0].shares_most(wordings[1])
