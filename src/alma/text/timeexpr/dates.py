"""Read single dates ("last week", "3 May", "in Q3 2024") by the rules of `english.toml`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from functools import cache
from typing import NamedTuple

from alma.text.timeexpr import interpretation, recurring
from alma.text.timeexpr.calendar import Span
from alma.text.timeexpr.interpretation import Reader
from alma.text.timeexpr.normalize import data
from alma.text.timeexpr.vocabulary import DECADES, MONTHS, PATTERNS, SEASONS, WEEKDAYS, Asking, Date, expanded

_TOKEN, _DIGIT = re.compile("[a-z0-9]+"), re.compile(r"\d")
_NUMBER = "#"
# Words that bound a time, by a date or by an event.
_BOUNDS = "between from before until till prior after since following later onward onwards during throughout around"
_WORD_SETS = {
    "MONTHS": (*MONTHS, *(name[:3] for name in MONTHS), "sept"),
    "SEASONS": tuple(SEASONS),
    "WEEKDAYS": tuple(WEEKDAYS),
    "SHORT_WEEKDAYS": (*(name[:3] for name in WEEKDAYS), "tues", "thur", "thurs"),
    "DECADES": tuple(DECADES),
    "FEASTS": tuple(recurring.FEAST_WORDS),
}

Rule = tuple[re.Pattern[str], Reader]


def may_speak_of_time(text: str) -> bool:
    """Whether a text has a number or a word of any rule; most texts have none."""
    return not _rules().words.isdisjoint(_TOKEN.findall(text)) or _DIGIT.search(text) is not None


def read_date(text: str, at: Asking) -> Date | None:
    """The date that the first of the rules reads in a text of small letters."""
    for pattern, read in _rules_for(text):
        for match in pattern.finditer(text):
            spans = _read(read, match, at)
            if spans:
                return Date(spans, match[0].strip())
            # "31 February 2024" is invalid, and so are its parts.
            text = text.replace(match[0], "|")
    return None


def date_at_start(text: str, at: Asking) -> Date | None:
    """The date that a text starts with."""
    return _first(((pattern.match(text), read) for pattern, read in _rules_for(text)), at)


def whole_date(text: str, at: Asking) -> Date | None:
    """The date that is the whole text."""
    return _first(((pattern.fullmatch(text), read) for pattern, read in _rules_for(text)), at)


def _first(found: Iterable[tuple[re.Match[str] | None, Reader]], at: Asking) -> Date | None:
    for match, read in found:
        if match is not None:
            spans = _read(read, match, at)
            # What one rule rejects is not read by a later one.
            return Date(spans, match[0].strip()) if spans else None
    return None


def _read(read: Reader, match: re.Match[str], at: Asking) -> tuple[Span, ...]:
    try:
        found = read(match, at)
    except (ValueError, OverflowError):  # "31 February", "9000 years ago"
        return ()
    spans = (found,) if isinstance(found[0], datetime) else found
    return tuple(span for span in spans if span[0] < span[1])


class _Rules(NamedTuple):
    rules: tuple[Rule, ...]
    # The places of the rules that need each word.
    by_word: dict[str, list[int]]
    words: frozenset[str]


@cache
def _rules() -> _Rules:
    names = {**PATTERNS, "FEAST": recurring.FEAST}
    rules: list[Rule] = []
    by_word: dict[str, list[int]] = defaultdict(list)
    for place, entry in enumerate(data("english.toml")["rules"]):
        rules.append((re.compile(expanded(entry["pattern"], names)), _reader(entry["read"])))
        for word in entry["words"].split():
            for each in _WORD_SETS.get(word, (word,)):
                by_word[each].append(place)
    return _Rules(tuple(rules), dict(by_word), frozenset(_BOUNDS.split()).union(by_word))


def _reader(name: str) -> Reader:
    """The function of that name; "days_from_now(-2)" is made by one."""
    function, _, argument = name.rstrip(")").partition("(")
    module = interpretation if hasattr(interpretation, function) else recurring
    read = getattr(module, function)
    found: Reader = read(int(argument)) if argument else read
    return found


def _rules_for(text: str) -> list[Rule]:
    """The rules that may match anything in a text, in their order."""
    rules = _rules()
    words = rules.by_word.keys() & _TOKEN.findall(text)
    if _DIGIT.search(text):
        words.add(_NUMBER)
    return [rules.rules[place] for place in sorted({place for word in words for place in rules.by_word[word]})]
