"""Sequence: whether a question asks for the first or the last of several things that happened."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Literal

from alma.model.query import In
from alma.retrieval.candidate import Candidate
from alma.retrieval.candidates import by_target
from alma.retrieval.change import READ
from alma.retrieval.scoring import MOMENTS
from alma.storage.base import StorageBackend
from alma.text.timeexpr.vocabulary import MONTHS, NUMBERS, SEASONS, WEEKDAYS

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
# So many at the end that is asked for are read, of those whose words are nearly as good as the best.
_AT_THE_END, _AS_GOOD = 5, 0.7


# Few questions have any of these, which is seen at once.
_ANY = re.compile("last|first|latest|newest|recent|earliest|initially|originally", re.IGNORECASE)


@lru_cache(maxsize=16)
def asked_end(question: str) -> End | None:
    """Which end of a row of like things is asked for, where a question asks for one."""
    text = " ".join(question[:READ].split())
    if _ANY.search(text) is None or _COMPARES.search(text):
        return None
    if _VERY_LAST.search(text):
        return "last"
    return "first" if _VERY_FIRST.search(text) else None


def at_the_end(storage: StorageBackend, best: Sequence[Candidate], end: End, most: int) -> list[Candidate]:
    """The candidates nearest to the end that is asked for that are not among the `most` that are read anyway."""
    words = max((each.words or 0.0 for each in best), default=0.0)
    alike = {each.id: each for each in best if words and (each.words or 0.0) >= _AS_GOOD * words}
    moments = _moments(storage, list(alike.values())) if len(best) > most else {}
    in_time = sorted(moments, key=lambda key: (moments[key], key), reverse=end == "last")
    read = {each.id for each in best[:most]}
    return [alike[key] for key in in_time[:_AT_THE_END] if key not in read]


def _moments(storage: StorageBackend, candidates: Sequence[Candidate]) -> dict[str, datetime]:
    found: dict[str, datetime] = {}
    for target, ids in by_target(candidates).items():
        names = (target.cls.spec.key, *MOMENTS.get(target.cls, ()))
        for key, *told in storage.values(target.cls, names, target.scope, In(target.cls.spec.key, ids)):
            moment = next((each for each in told if each is not None), None)
            if moment is not None:
                found[str(key)] = moment
    return found
