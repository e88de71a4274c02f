"""Naming: the numbers, names and kinds of things that a text tells of."""

from __future__ import annotations

import re

from alma.model.spelling import ONES, TEENS, TENS
from alma.model.text import terms
from alma.retrieval.change import READ
from alma.retrieval.spoken import MONTHS, WEEKDAYS

WORD = re.compile(r"(?:['’@€$£%.+#/-]{0,16}+\w++)++")
DIGIT, _NAME = re.compile(r"\d"), re.compile(r"(?<=[a-z,] )[A-Z]\w*[a-z]\w*")
# What an answer may be instead of a number: a day of the week, or a month.
_FIGURE = re.compile(rf"\d|\b(?:{'|'.join((*WEEKDAYS, *MONTHS, *ONES, *TENS, *TEENS))})s?\b", re.IGNORECASE)
DETERMINERS = frozenset(("the", "our", "my", "your", "his", "her", "their", "its", "a", "an", "this", "that", "all"))
_CERTAIN = DETERMINERS | {"these", "those", "some", *ONES}


def has_figure(text: str) -> bool:
    """Whether a text tells a number, a day or a month."""
    return _FIGURE.search(text[:READ]) is not None


def has_digits(text: str) -> bool:
    """Whether a text has a number in digits."""
    return DIGIT.search(text[:READ]) is not None


def tells_of_a_kind(text: str, term: str) -> bool:
    """Whether a text speaks of such things, and not of certain ones: of leeks, not of the leeks."""
    words = WORD.findall(text[:READ])
    places = [place for place, word in enumerate(words) if term in terms(word)]
    return not any(word.lower() in _CERTAIN for place in places for word in words[max(0, place - 2) : place])


def names_in(text: str) -> frozenset[str]:
    """The terms of what a text writes with a capital letter where no sentence begins."""
    return frozenset(term for name in _NAME.findall(text[:READ]) for term in terms(name))
