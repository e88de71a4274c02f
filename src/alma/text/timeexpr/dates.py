"""Dates: single times as people name them ("last week", "3 May", "in Q3 2024"), read by rules."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from alma.text.timeexpr.calendar import Span
from alma.text.timeexpr.interpretation import Reader
from alma.text.timeexpr.rules import NUMBER, RULES
from alma.text.timeexpr.vocabulary import Asking, Date


def may_speak_of_time(text: str) -> bool:
    """Whether a text has a number or a word that any of the rules asks for: most have none, which is seen at once."""
    return not _TELLING.isdisjoint(_TOKEN.findall(text)) or _DIGIT.search(text) is not None


def read_date(text: str, at: Asking) -> Date | None:
    """The date that the first of the rules reads in a text of small letters."""
    for pattern, read in _rules_for(text):
        for match in pattern.finditer(text):
            spans = _read(read, match, at)
            if spans:
                return Date(spans, match[0].strip())
            # "31 February 2024" is no date, and its parts are none either.
            text = text.replace(match[0], "|")
    return None


def date_at_start(text: str, at: Asking) -> Date | None:
    """The date that a text starts with."""
    return _first(((pattern.match(text), read) for pattern, read in _rules_for(text)), at)


def whole_date(text: str, at: Asking) -> Date | None:
    """The date that a text is, and nothing besides."""
    return _first(((pattern.fullmatch(text), read) for pattern, read in _rules_for(text)), at)


def _first(found: Iterable[tuple[re.Match[str] | None, Reader]], at: Asking) -> Date | None:
    for match, read in found:
        if match is not None:
            spans = _read(read, match, at)
            # What one rule finds to be no date, none of the others reads as one.
            return Date(spans, match[0].strip()) if spans else None
    return None


def _read(read: Reader, match: re.Match[str], at: Asking) -> tuple[Span, ...]:
    try:
        found = read(match, at)
    except (ValueError, OverflowError):  # "31 February", "9000 years ago"
        return ()
    spans = (found,) if isinstance(found[0], datetime) else found
    return tuple(span for span in spans if span[0] < span[1])


def _rules_for(text: str) -> list[tuple[re.Pattern[str], Reader]]:
    """The rules that may read anything in a text, in their order."""
    said = _RULES_WITH.keys() & _TOKEN.findall(text)
    if _DIGIT.search(text):
        said.add(NUMBER)
    return [RULES[place][1:] for place in sorted({place for word in said for place in _RULES_WITH[word]})]


_TOKEN, _DIGIT = re.compile("[a-z0-9]+"), re.compile(r"\d")
# What bounds a time, by a date or by an event.
_BOUNDS = "between from before until till prior after since following later onward onwards during throughout around"
_TELLING = frozenset(_BOUNDS.split()).union(*(words for words, _, _ in RULES))
# The places of the rules that ask for each word.
_RULES_WITH: dict[str, list[int]] = defaultdict(list)
for _place, _rule in enumerate(RULES):
    for _word in _rule[0]:
        _RULES_WITH[_word].append(_place)
