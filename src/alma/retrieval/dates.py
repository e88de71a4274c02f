"""Dates: single times as people name them ("last week", "3 May", "in Q3 2024"), read by rules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime

from alma.retrieval import readers
from alma.retrieval.readers import Reader
from alma.retrieval.reckoning import Span
from alma.retrieval.spoken import (
    AMOUNT,
    COUNT,
    DAY,
    DAYS_OR_MORE,
    END,
    HOLIDAY,
    LONG_UNIT,
    MONTH,
    MONTHS,
    NEXT,
    ORDINALS,
    PREVIOUS,
    SEASON,
    SEASONS,
    WEEKDAY,
    WEEKDAYS,
    YEAR,
    Asking,
    Date,
)


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


def _rules_for(text: str) -> Iterator[tuple[re.Pattern[str], Reader]]:
    """The rules that may read anything in a text, in their order."""
    said = set(_TOKEN.findall(text))
    if _DIGIT.search(text):
        said.add(_NUMBER)
    return ((pattern, read) for words, pattern, read in _RULES if not words.isdisjoint(said))


_IN = r"(?:in|during|of|by|since|before|after|until|till|around|from|for|this|throughout|through|across|all)"
_PART = r"(?P<part>early|mid|late|(?:the )?(?:beginning|start|middle|end) of)(?: in)?[ -]"
_OF_YEAR = rf"(?:,?[ /-](?:of )?{YEAR}| (?:of )?(?P<which>last|this|next|the) year\b)"

_NUMBER = "#"
_MONTH_WORDS = " ".join((*MONTHS, *(name[:3] for name in MONTHS), "sept"))
_SEASON_WORDS, _WEEKDAY_WORDS = " ".join(SEASONS), " ".join(WEEKDAYS)

# Each with the words of which a text has to have one for the rule to read anything in it.
_RULES: tuple[tuple[frozenset[str], re.Pattern[str], Reader], ...] = tuple(
    (frozenset(words.split()), re.compile(pattern), read)
    for words, pattern, read in (
        # With points only where each part has two digits: 2024.1.2 is a version.
        (
            _NUMBER,
            r"(?<![\w.])(?P<year>(?:19|20)\d\d)(?:[-/]|\.(?=\d\d\.\d\d))"
            r"(?P<number>\d{1,2})[-/.](?P<day>\d{1,2})(?!\d|[-/.]\d)",
            readers.exact_day,
        ),
        (
            _NUMBER,
            r"(?<![\w./-])(?<!version )(?<!release )(?P<one>\d{1,2})\.(?P<two>\d{1,2})\."
            r"(?P<year>(?:19|20)\d\d)(?!\w|[-/.]\d)",
            readers.point_day,
        ),
        (
            _NUMBER,
            r"(?<![\w./-])(?P<one>\d{1,2})(?P<by>[/-])(?P<two>\d{1,2})(?P=by)(?P<year>(?:19|20)\d\d)(?!\w|[-/.]\d)",
            readers.slash_day,
        ),
        (_NUMBER, r"\bon (?P<one>\d{1,2})/(?P<two>\d{1,2})/(?P<year>\d\d)(?!\w|[-/.]\d)", readers.slash_day),
        ("week", rf"\b(?:the )?week of (?:the )?{DAY}(?: of)? {MONTH},?(?: {YEAR})?", readers.week_of_day),
        ("week", rf"\b(?:the )?week of {MONTH} (?:the )?{DAY}(?![\w%]|[.:/-]\d)(?:,? {YEAR})?", readers.week_of_day),
        (
            "week",
            r"\b(?P<which>first|second|third|fourth|1st|2nd|3rd|4th|last) week (?:of|in) "
            rf"{MONTH}(?: (?:of )?{YEAR})?",
            readers.week_of_month,
        ),
        (_NUMBER, rf"\bweek (?P<week>\d\d?)(?: of|,|/)? {YEAR}", readers.numbered_week),
        (_NUMBER, r"(?<![\w./-])(?P<year>(?:19|20)\d\d)-?w(?P<week>\d\d)(?!\w|[-/.]\d)", readers.numbered_week),
        (_MONTH_WORDS, rf"(?<![\w./,-]){DAY}(?: of)? {MONTH},?(?: {YEAR})?", readers.named_day),
        (_MONTH_WORDS, rf"\b{MONTH} (?:the )?{DAY}(?![\w%]|[.:/-]\d)(?:,? {YEAR})?", readers.named_day),
        ("month", rf"\bon the {DAY} of (?P<which>this|last|next) month\b", readers.day_of_month),
        (
            "year years",
            rf"\b{MONTH},?(?: of)? (?:(?P<which>last|this|next) year\b|{COUNT} years? ago\b)",
            readers.month_of_year,
        ),
        ("year years", rf"\b(?:(?P<which>last|this|next) year|{COUNT} years? ago),? in {MONTH}", readers.month_of_year),
        (
            _NUMBER,
            r"(?<![\w./-])(?P<year>(?:19|20)\d\d)-(?P<number>0[1-9]|1[0-2])(?![\w/-]|\.\d)",
            readers.numbered_month,
        ),
        (
            _NUMBER,
            r"(?<![\w./-])(?P<number>0[1-9]|1[0-2])/(?P<year>(?:19|20)\d\d)(?![\w/-]|\.\d)",
            readers.numbered_month,
        ),
        # Not what was bought for it, or made of it.
        (
            "christmas halloween valentine year",
            rf"\b(?:on|at|over|around|during|last|this|next) {HOLIDAY}\b(?:,? (?:of |in )?{YEAR})?",
            readers.holiday,
        ),
        ("christmas halloween valentine year", rf"\b{HOLIDAY},? (?:of |in )?{YEAR}", readers.holiday),
        (_MONTH_WORDS, rf"\b{_PART}{MONTH}(?: (?:of )?{YEAR})?", readers.named_month),
        (_MONTH_WORDS, rf"\b{MONTH},?(?: of)? {YEAR}", readers.named_month),
        (_MONTH_WORDS, rf"\b{PREVIOUS} {MONTH}", readers.previous_month_named),
        (_MONTH_WORDS, rf"\b{NEXT} {MONTH}", readers.next_month_named),
        # "This may be", "all may come"
        (_MONTH_WORDS, rf"\b(?!(?:this|all) may\b(?!{END})){_IN} {MONTH}(?! \d)", readers.named_month),
        (_NUMBER, rf"\bq(?P<share>[1-4])(?!\w){_OF_YEAR}?", readers.quarter),
        (_NUMBER, r"(?<![\w./-])(?P<year>(?:19|20)\d\d)[ /-]?q(?P<share>[1-4])(?!\w)", readers.quarter),
        ("quarter", rf"\b(?P<share>{'|'.join(ORDINALS)}|last) quarter{_OF_YEAR}", readers.quarter),
        # With a year only: h1 is a heading.
        (_NUMBER, rf"\bh(?P<share>[12])(?!\w){_OF_YEAR}", readers.half),
        (_NUMBER, rf"\b(?P<share>[12])h{_OF_YEAR}", readers.half),
        (_NUMBER, r"(?<![\w./-])(?P<year>(?:19|20)\d\d)[ /-]?h(?P<share>[12])(?!\w)", readers.half),
        ("half", rf"\b(?P<share>first|second|1st|2nd|last) half{_OF_YEAR}", readers.half),
        (
            _SEASON_WORDS,
            r"\b(?P<which>last|this|next|in|during|in the|during the|past|previous) "
            rf"{SEASON}(?: (?:of )?{YEAR})?",
            readers.season,
        ),
        (_SEASON_WORDS, rf"\b{SEASON} (?:of )?{YEAR}", readers.season),
        (_NUMBER, rf"\b{_PART}{YEAR}", readers.whole_year),
        (
            _NUMBER,
            r"\b(?:in|during|since|before|after|of|until|till|by|year|throughout|through|across|all|around) "
            rf"(?!2000 [a-z]+s\b){YEAR}",
            readers.whole_year,
        ),
        (_NUMBER, rf"\b(?:for|from) {YEAR}{END}", readers.whole_year),
        (
            _NUMBER,
            r"\b(?:in|during|of|throughout) the (?:(?P<part>early|mid|late)[ -])?(?P<year>(?:19|20)\d0)'?s\b",
            readers.decade,
        ),
        ("yesterday", r"\b(?:the )?day before yesterday\b", readers.days_from_now(-2)),
        ("tomorrow", r"\b(?:the )?day after tomorrow\b", readers.days_from_now(2)),
        ("yesterday night", r"\b(?:yesterday|last night)\b", readers.days_from_now(-1)),
        ("tomorrow", r"\btomorrow\b", readers.days_from_now(1)),
        (
            "today tonight morning afternoon evening",
            r"\b(?:today|tonight|this (?:morning|afternoon|evening))\b",
            readers.days_from_now(0),
        ),
        ("ago", rf"\b(?P<how>more than|longer than|over|at least|less than|under) {AMOUNT} ago\b", readers.longer_ago),
        ("ago back earlier", rf"\b{AMOUNT} (?:ago|back|earlier)\b", readers.ago),
        (
            "last past previous",
            rf"\b(?:in |over |during |within )?(?:the |these )?{PREVIOUS} {AMOUNT}\b",
            readers.last_units,
        ),
        (
            "last past previous",
            rf"\bthe {PREVIOUS} (?P<unit>day|week|month|year)(?P<with_half> and a half)\b",
            readers.last_units,
        ),
        (
            "next coming upcoming",
            rf"\b(?:in |over |during |within |for )?(?:the )?{NEXT} {DAYS_OR_MORE}\b",
            readers.next_units,
        ),
        ("from ahead", rf"\b{DAYS_OR_MORE} (?P<from_now>from (?:now|today)|ahead)\b", readers.in_units),
        (
            "day days week weeks month months year years",
            rf"\bin {DAYS_OR_MORE}(?P<from_now>'s? time)?(?!\w)",
            readers.in_units,
        ),
        (
            "last past previous",
            rf"\b(?:in|within|over|during) the {PREVIOUS} (?P<unit>minute|hour|day)\b",
            readers.last_units,
        ),
        (
            "last past previous",
            rf"\b(?:in|over|during|for) the {PREVIOUS} (?P<some>day|week|month|year)s\b",
            readers.some_units(-1),
        ),
        (
            "next coming upcoming",
            rf"\b(?:in|over|during|for) the {NEXT} (?P<some>day|week|month|year)s\b",
            readers.some_units(1),
        ),
        ("last", rf"\bthe {LONG_UNIT} before last\b", readers.unit_before_last),
        ("weekend", r"\b(?:over|on|at|during|for) the weekend\b", readers.the_weekend),
        ("last past previous", rf"\b(?:{_PART})?(?P<which>{PREVIOUS[3:-1]}) {LONG_UNIT}\b", readers.previous_unit),
        ("next coming upcoming", rf"\b(?:{_PART})?{NEXT} {LONG_UNIT}\b", readers.next_unit),
        ("week month quarter year weekend", rf"\b(?:{_PART})?this {LONG_UNIT}\b", readers.this_unit),
        (
            "week month quarter year weekend",
            r"\b(?P<part>(?:the )?(?:beginning|start|middle|end) of) the (?P<unit>week|month|quarter|year)\b",
            readers.this_unit,
        ),
        (_WEEKDAY_WORDS, rf"\b(?P<which>{PREVIOUS[3:-1]}|{NEXT[3:-1]}|on|this) {WEEKDAY}", readers.weekday),
        (
            _WEEKDAY_WORDS,
            r"(?<!every )(?<!each )(?<!by )(?<!to )(?<!and )(?<!or )(?<!through )(?<!-)(?<!black )(?<!cyber )(?<!good )"
            rf"\b{WEEKDAY}(?: (?:morning|afternoon|evening|night))?{END}",
            readers.weekday_alone,
        ),
        (_NUMBER, rf"\bon the {DAY}{END}", readers.day_of_month),
        ("recently lately days", r"\b(?:recently|lately|these days)\b", readers.last_days(30)),
        ("day", r"\bthe other day\b", readers.last_days(10)),
    )
)
_TOKEN, _DIGIT = re.compile("[a-z0-9]+"), re.compile(r"\d")
# What bounds a time, by a date or by an event.
_BOUNDS = "between from before until till prior after since following later onward onwards"
_TELLING = frozenset(_BOUNDS.split()).union(*(words for words, _, _ in _RULES))
