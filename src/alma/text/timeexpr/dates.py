"""Read dates ("last week", "in Q3 2024"), clock times and parts of a day ("yesterday at 3 pm")."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import cache
from typing import NamedTuple

from alma.lazy import lazy_regex
from alma.text.timeexpr import interpretation, recurring
from alma.text.timeexpr.interpretation import Reader, shifted
from alma.text.timeexpr.normalize import data
from alma.text.timeexpr.vocabulary import (
    AMOUNT,
    DECADES,
    END,
    MONTHS,
    PATTERNS,
    PREVIOUS,
    SEASONS,
    WEEKDAYS,
    Date,
    QueryTime,
    Span,
    expanded,
)

_TOKEN, _DIGIT = lazy_regex("[a-z0-9]+"), lazy_regex(r"\d")
_NUMBER = "#"
# Words that bound a time by a date or an event.
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


def read_date(text: str, at: QueryTime) -> Date | None:
    """The date that the first matching rule reads in a lower-case text."""
    for pattern, read in _rules_for(text):
        for match in pattern.finditer(text):
            spans = _read(read, match, at)
            if spans:
                return Date(spans, match[0].strip())
            # "31 February 2024" is invalid, and so are its parts.
            text = text.replace(match[0], "|")
    return None


def date_at_start(text: str, at: QueryTime) -> Date | None:
    """The date that a text starts with."""
    return _first(((pattern.match(text), read) for pattern, read in _rules_for(text)), at)


def whole_date(text: str, at: QueryTime) -> Date | None:
    """The date that is the whole text."""
    return _first(((pattern.fullmatch(text), read) for pattern, read in _rules_for(text)), at)


def _first(found: Iterable[tuple[re.Match[str] | None, Reader]], at: QueryTime) -> Date | None:
    for match, read in found:
        if match is not None:
            spans = _read(read, match, at)
            # Later rules do not read a match that a rule rejects.
            return Date(spans, match[0].strip()) if spans else None
    return None


def _read(read: Reader, match: re.Match[str], at: QueryTime) -> tuple[Span, ...]:
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


_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
_HALF_DAY = 12 * _HOUR
# The tolerance of "at" an hour.
_EARLIER, _LATER = _HOUR / 2, _HOUR
# The reach of "shortly" before or after.
_NEAR = 2 * _HOUR
_UNTIL, _FROM = ("before", "until", "till", "by"), ("after", "since", "from")
_EVENINGS = ("afternoon", "evening", "night")
# From then on a night is still that of the day on which it began.
_OF_A_NIGHT = 6


def _clock(number: str) -> str:
    return (
        rf"(?:(?P<hour{number}>[01]?\d|2[0-4])(?:[:.](?P<minute{number}>[0-5]\d))?"
        rf"(?: ?(?P<half{number}>[ap])\.?m\b\.?|(?P<exact{number}> ?o'clock))?(?!%)|(?P<word{number}>noon|midnight))"
    )


_WHEN = (
    r"(?:(?P<near>shortly|just|right|soon|immediately) )?"
    r"(?P<side>at|around|about|before|until|till|by|after|since|from|between) (?:about |around )?"
    rf"{_clock('')}(?: ?(?:and|to|until|till|-) ?{_clock('2')})?"
)
_PARTS = r"(?: (?:in the )?(?P<part>morning|afternoon|evening|night))?"


class Hours(NamedTuple):
    """Hours of a day, the words that name them and their day, and whether the time is open-ended."""

    spans: tuple[Span, ...]
    phrase: str
    onward: bool = False


def hours_named(text: str, phrase: str, day: Span) -> Hours | None:
    """The hours named before or after the words for a day, or None."""
    if day[1] - day[0] != _DAY:
        return None
    named = re.escape(phrase)
    forms = (
        # "Before 10" may continue with a noun, and so may "at 3" before a day.
        rf"{named},?{_PARTS},? {_WHEN}(?:{END}|(?<=[m:.\dnkt])(?= (?:and|or|what|who|did|was|were)\b))",
        rf"\b{_WHEN},? (?:on )?(?:the )?{named}{_PARTS}(?!\w)",
    )
    found = next((match for form in forms if (match := re.search(form, text)) is not None), None)
    return None if found is None else _clock_read(found, phrase, day[0])


def _clock_read(found: re.Match[str], phrase: str, midnight: datetime) -> Hours | None:
    part = found["part"] or next((each for each in ("morning", *_EVENINGS) if each in phrase), "")
    firsts = _hours(found, "", part, found["half2"])
    seconds = _hours(found, "2", part, None)
    # Without am or pm, the half of the day before the second hour is meant.
    firsts = [first for first in firsts if any(first < second for second in seconds)] or firsts
    spans = [_span(found, first, seconds) for first in firsts]
    meant = tuple((midnight + start, midnight + end) for start, end in spans if start < end)
    return Hours(meant, found[0], found["side"] == "since" and not seconds) if meant else None


def _hours(found: re.Match[str], number: str, part: str, other_half: str | None) -> list[timedelta]:
    """The hour since midnight; without am or pm, both readings."""
    if found[f"word{number}"]:
        # Hours after midnight are at the beginning of a day, except in a night.
        begins = found["side"] in _FROM and not number and part != "night"
        return [_HALF_DAY if found[f"word{number}"] == "noon" else timedelta(0) if begins else _DAY]
    if found[f"hour{number}"] is None:
        return []
    hour, minute = int(found[f"hour{number}"]), int(found[f"minute{number}"] or 0)
    half = found[f"half{number}"] or other_half
    offset = timedelta(hours=hour % 12 if half and hour <= 12 else hour, minutes=minute)
    if half or hour > 12 or found[f"hour{number}"].startswith("0"):
        return [_of_night(offset + (_HALF_DAY if half == "p" else timedelta(0)), part)]
    if part == "morning" or hour == 12:
        return [offset]
    if part == "night" and hour < _OF_A_NIGHT:
        return [offset + _DAY]
    return [offset + _HALF_DAY] if part in _EVENINGS else [offset, offset + _HALF_DAY]


def _of_night(offset: timedelta, part: str) -> timedelta:
    """ "Last night at 2 am" was today."""
    return offset + _DAY if part == "night" and offset < _HALF_DAY else offset


def _span(found: re.Match[str], first: timedelta, seconds: list[timedelta]) -> tuple[timedelta, timedelta]:
    later = min((each for each in seconds if each > first), default=None)
    if later is not None:
        return first, later
    side = found["side"]
    if side in _UNTIL:
        return max(timedelta(0), first - _NEAR) if found["near"] else timedelta(0), first
    if side in _FROM:
        return first, first + _NEAR if found["near"] else max(_DAY, first + _HOUR)
    return max(timedelta(0), first - (_EARLIER if side == "at" else _LATER)), first + _LATER


# ---------------------------------------------------------------------- without a day

_ALONE = lazy_regex(rf"\b{_WHEN}{_PARTS}{END}")


def with_day(text: str, day: str) -> str | None:
    """A text that names clock hours without a day, with this day appended; None if it names none. Only unambiguous
    hours count: not "after 5" or "between 9 and 11".
    """
    found = _ALONE.search(text)
    if found is None or not any(found[name] for name in ("half", "half2", "word", "exact", "minute")):
        return None
    return f"{text[: found.end()]} {day}{text[found.end() :]}"


# ---------------------------------------------------------------------- relative to now

_AGO = lazy_regex(rf"{AMOUNT} (?:ago|back|earlier)")
_LAST = lazy_regex(rf"(?:in |over |during |within )?(?:the |these )?{PREVIOUS} (?:{AMOUNT}|(?P<one_unit>minute|hour))")
_SHORT = ("minute", "hour")


def hours_from_now(phrase: str, now: datetime) -> Span | None:
    """The hours around "two hours ago", or since the beginning of "the last hour"; None for longer times."""
    ago, last = _AGO.fullmatch(phrase), _LAST.fullmatch(phrase)
    if ago is not None and ago["unit"] in _SHORT:
        moment = shifted(now, ago, -1)
        slack = max(_EARLIER, (now - moment) / 4)
        return moment - slack, moment + slack
    if last is not None and (last["unit"] or last["one_unit"]) in _SHORT:
        return shifted(now, last, -1), now
    return None


# ---------------------------------------------------------------------- parts of a day

# The first hour and the end of each part; a night extends into the next day.
_PARTS_OF_DAY = {"morning": (4, 12), "noon": (11, 14), "afternoon": (12, 18), "evening": (17, 24), "night": (18, 30)}
_DAYPART = rf"(?P<part>{'|'.join(_PARTS_OF_DAY)})"
_INSIDE = lazy_regex(rf"\b(?:to|over)?{_DAYPART}s?\b")


def daytime(text: str, phrase: str) -> str | None:
    """The part of the day named in, before or after the words for a day, or None."""
    day = re.escape(phrase)
    for form in (rf"{day},? (?:in the |at )?{_DAYPART}\b", rf"\b{_DAYPART} (?:of |on )?(?:the )?{day}"):
        found = re.search(form, text)
        if found is not None:
            return found["part"]
    inside = _INSIDE.search(phrase)
    return None if inside is None else inside["part"]


def hours_of(part: str, day: Span) -> Span | None:
    """That part of a span, if it is a day."""
    if day[1] - day[0] != _DAY:
        return None
    start, end = (timedelta(hours=hour) for hour in _PARTS_OF_DAY[part])
    return day[0] + start, day[0] + end
