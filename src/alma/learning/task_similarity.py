"""Task similarity: whether two tasks are so similar that what was learned on one applies to the other.

The cosine of their vectors decides where it is clear. Below that, shared words lower the threshold: *test the login
form* and *test the newsletter form* have a low cosine, but are the same kind of task.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from alma.learning.tuning import LESSONS
from alma.text.tokens import query_terms

_FEWEST_SHARED = 2
_SHORT, _NEARLY_SHORT = 2, 3
# The words of a longer task say less than its vector.
_MOST_WORDS = 16

Words = frozenset[str]
NO_WORDS: Words = frozenset()


@lru_cache(maxsize=64)
def words_of(task: str) -> Words:
    """The words by which a task is compared; none for a long task."""
    words = query_terms(task)
    return NO_WORDS if len(words) > _MOST_WORDS else frozenset(words)


def similar_from(words: Words, others: Words) -> float:
    """The cosine from which on tasks with these words are similar; lower where they share half of their words."""
    shared = len(words & others)
    if shared >= _FEWEST_SHARED and 2 * shared >= max(len(words), len(others)):
        return LESSONS.similar_in_words
    shorter, longer = sorted((len(words), len(others)))
    is_short = shorter == _SHORT and longer <= _NEARLY_SHORT
    return LESSONS.similar_in_one_word if shared and is_short else LESSONS.similar


def are_similar(cosine: float, types: tuple[str | None, str | None], words: tuple[Words, Words]) -> bool:
    """Whether two tasks are similar, by the cosine of their vectors, their types and their words."""
    one, other = types
    if cosine >= LESSONS.similar or cosine < LESSONS.similar_in_words:
        return cosine >= LESSONS.similar
    if one is not None and other is not None and one != other:
        return False
    of_one_type = one is not None and one == other and cosine >= LESSONS.similar_of_type
    return of_one_type or cosine >= similar_from(*words)


def word_overlap(words: set[str], others: Iterable[str]) -> float:
    """The Jaccard similarity of the words of two tasks."""
    theirs = set(others)
    return len(words & theirs) / len(words | theirs) if words | theirs else 0.0
