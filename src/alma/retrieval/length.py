"""Length: a long text also matches by accident, unless what is asked stands together in one passage of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import compress

from alma.retrieval.candidates import WORDS

STATEMENT, LONG = 300, 2_400
"""In characters: what is still a statement, and from where on length makes no more difference."""
ONE_PASSAGE = 750
"""In bytes: a text no longer than that fits into a model's window, so that its vector is all there is of it."""

_CONCISION = 0.35
# In words: as much as a statement has.
_PASSAGE = 50
# So much of what length takes from the best match by words a passage with the whole question gives back.
_GIVEN_BACK = 0.75


def concision(length: int) -> float:
    """How much of what speaks for a text of this length counts."""
    return 1.0 if length <= STATEMENT else float((STATEMENT / min(length, LONG)) ** _CONCISION)


def given_back(length: int, gathered: float) -> dict[str, float]:
    """What speaks for a long text of which one passage has this share of the question."""
    value = _GIVEN_BACK * WORDS * (1.0 - concision(length)) * gathered
    return {"passage": value} if value else {}


def best_passage(words: Sequence[str], weight_of: Mapping[str, float]) -> float:
    """The most that different words of the question weigh which stand in one passage of a text."""
    places = list(compress(enumerate(words), map(weight_of.__contains__, words)))
    inside: Counter[str] = Counter()
    weight = best = 0.0
    first = 0
    for place, word in places:
        weight += 0.0 if inside[word] else weight_of[word]
        inside[word] += 1
        while places[first][0] <= place - _PASSAGE:
            left = places[first][1]
            inside[left] -= 1
            weight -= 0.0 if inside[left] else weight_of[left]
            first += 1
        best = max(best, weight)
    return best
