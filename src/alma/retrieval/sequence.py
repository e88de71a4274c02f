"""Sequence: whether a question asks for the first or the last of several things that happened."""

from __future__ import annotations

import re
from typing import Literal

from alma.retrieval.spoken import MONTHS, NUMBERS, SEASONS, WEEKDAYS

End = Literal["first", "last"]

# A time ("last week", "the first quarter") is read as such; a last name, first aid or the last mile is no time at all.
_OTHER_SENSES = r"""
night decade century of \d+\w* half(?=\W*$|\s(?:of|year)) names? resort aid class mile place person column row line page
paragraph argument element items? letter digits? party
"""
_UNITS = r"(?:minute|hour|day|week|weekend|month|quarter|year)s?"
_NO_EVENT = "|".join((_UNITS, *_OTHER_SENSES.split(), *MONTHS, *WEEKDAYS, *SEASONS, *NUMBERS))
_OF = r"(?:the|our|my|your|his|her|their|its|\w+['’]s?|^)"
_LAST = rf"last (?!(?:{_NO_EVENT})\b)\w"
_FIRST = rf"first (?!(?:{_NO_EVENT})\b)\w"
_HAPPENED = r"(?:did|was|were|has|have|had) (?:[\w'-]+ ){1,4}"
_VERY_LAST = re.compile(
    r"\b(?:latest|newest|most recent(?:ly)?|last time)\b(?! of\b)|"
    # How long something will last is another question.
    r"^(?:what|who|which|when|where)\b.* \w+ last\W*$|"
    rf"\b{_HAPPENED}{_LAST}|{_OF}(?: very| \w+)? ?\b{_LAST}",
    re.IGNORECASE,
)
_VERY_FIRST = re.compile(
    r"\b(?:earliest|first time|initially|originally)\b|"
    rf"\b{_HAPPENED}(?:{_FIRST}|first\W*$)|{_OF}(?: very)? ?\b{_FIRST}",
    re.IGNORECASE,
)
# Whoever compares names both: "which came first, the demo or the audit?"
_COMPARES = re.compile(r"\bfirst\b.*(?:,| the) .*\bor\b|\bor\b.*\bfirst\b|\bbefore the last\b", re.IGNORECASE)
_READ = 500


def asked_end(question: str) -> End | None:
    """Which end of a row of like things is asked for, where a question asks for one."""
    text = " ".join(question[:_READ].split())
    if _COMPARES.search(text):
        return None
    if _VERY_LAST.search(text):
        return "last"
    return "first" if _VERY_FIRST.search(text) else None
