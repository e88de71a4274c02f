"""The English words for times, their patterns, the tense of a text, and calendar arithmetic."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from alma.lazy import lazy_regex

_ONES = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9}
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
MONTHS = """
january february march april may june july august september october november december
""".split()  # noqa: SIM905 - as people say them
WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
VAGUE = {"couple": 2, "few": 3, "several": 4}
NUMBERS = {"a": 1, "an": 1, "dozen": 12, "hundred": 100, **_ONES, **_TENS, **VAGUE}
NUMBERS |= {word: number for number, word in enumerate(_TEENS.split(), 10)}
ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "1st": 1, "2nd": 2, "3rd": 3, "4th": 4}
ORDINALS |= {"fifth": 5, "5th": 5}
DAY_WORDS = """
first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth
sixteenth seventeenth eighteenth nineteenth twentieth twenty-first twenty-second twenty-third twenty-fourth twenty-fifth
twenty-sixth twenty-seventh twenty-eighth twenty-ninth thirtieth thirty-first
""".split()  # noqa: SIM905 - as people say them
DECADES = ["fifties", "sixties", "seventies", "eighties", "nineties"]

MONTH = r"(?P<month>sept|" + "|".join(f"{name[:3]}(?:{name[3:]})?" for name in MONTHS) + r")(?![a-z0-9])\.?"
DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
# 2024.1 is a version, not a year.
YEAR = r"(?P<year>(?:19|20)\d\d)(?!\w|[-/.:]\d)"
COUNT = (
    r"(?<![\d.,/])(?P<count>\d{1,4}(?:[.,]\d)?|"
    rf"(?:{'|'.join(_TENS)})[ -](?:{'|'.join(_ONES)})|{'|'.join(NUMBERS)})(?: of)?"
)
_UNIT = r"(?P<unit>minute|hour|day|week|month|quarter|year|decade)s?"
# "3 days", "half a year", "a year and a half", "two and a half years"
_HOW_MANY = rf"(?:(?P<half>half)(?: an?)?|{COUNT}(?P<and_half> and a half)?)"
AMOUNT = rf"{_HOW_MANY} {_UNIT}(?P<with_half> and a half)?"
# Minutes and hours are not used for the future.
DAYS_OR_MORE = rf"{_HOW_MANY} (?P<unit>day|week|month|year)s?(?P<with_half> and a half)?"
HALVES = ("half", "and_half", "with_half")
PREVIOUS = r"(?:last|past|previous|this past)"
NEXT = r"(?:next|coming|this coming|upcoming)"
LONG_UNIT = r"(?P<unit>week|month|quarter|year|weekend)"
SEASON = rf"(?P<season>{'|'.join(SEASONS)})(?!\w| boot)"  # Not the framework.
WEEKDAY = rf"(?P<weekday>{'|'.join(WEEKDAYS)})\b"
# Only where a day must follow, because "sun" is also a word.
SHORT_WEEKDAY = r"(?P<weekday>mon|tues?|wed|thu|thurs?|fri|sat|sun)\b\.?"
# At the end of a sentence or clause.
END = r"(?=[^\w]*$|[,;:?!)]|\.(?: |$))"

PATTERNS = {
    "MONTH": MONTH,
    "DAY": DAY,
    "YEAR": YEAR,
    "COUNT": COUNT,
    "AMOUNT": AMOUNT,
    "DAYS_OR_MORE": DAYS_OR_MORE,
    "LONG_UNIT": LONG_UNIT,
    "SEASON": SEASON,
    "WEEKDAY": WEEKDAY,
    "SHORT_WEEKDAY": SHORT_WEEKDAY,
    "END": END,
    "PREVIOUS": PREVIOUS,
    "NEXT": NEXT,
    "PREVIOUS_WORDS": PREVIOUS[3:-1],
    "NEXT_WORDS": NEXT[3:-1],
    "PREVIOUS_OR_NEXT": f"{PREVIOUS[3:-1]}|{NEXT[3:-1]}",
    "WEEKDAYS": "|".join(WEEKDAYS),
    "SEASONS": "|".join(SEASONS),
    "DAY_WORDS": "|".join(DAY_WORDS),
    "DECADES": "|".join(DECADES),
    "ORDINALS": "|".join(ORDINALS),
    "IN": r"(?:in|during|of|by|since|before|after|until|till|around|from|for|this|throughout|through|across|all)",
    "PART": r"(?P<part>early|mid|late|(?:the )?(?:beginning|start|middle|end) of)(?: in)?[ -]",
    "WHICH": r"(?P<which>last|this|next)",
    "GOES_ON": rf"(?:{END}|(?= (?:with|in|at|on|to|by|and|did|do|was|were|what|who|we|i|you|they|he|she|it)\b))",
    "NTH": r"(?P<nth>first|second|third|fourth|fifth|1st|2nd|3rd|4th|5th|last|final)",
    "OF_YEAR": rf"(?:,?[ /-](?:of )?{YEAR}| (?:of )?(?P<which>last|this|next|the) year\b)",
}
"""The named patterns that `english.toml` refers to."""

_NAME = lazy_regex("<<([A-Z_]+)>>")


def expanded(pattern: str, names: Mapping[str, str]) -> str:
    """A pattern after inserting the named patterns."""
    return _NAME.sub(lambda name: names[name[1]], pattern)


class QueryTime(NamedTuple):
    """The local time of a query, and whether it is about the future or the past."""

    now: datetime
    looks_ahead: bool = False
    looks_back: bool = False


class Date(NamedTuple):
    """The spans of a date: one, or two when it is ambiguous."""

    spans: tuple[Span, ...]
    phrase: str

    @property
    def start(self) -> datetime:
        return self.spans[0][0]

    @property
    def end(self) -> datetime:
        return self.spans[0][1]


# Past verbs; not planned or scheduled, and not nouns such as need, feed or speed.
PAST_VERB = (
    r"(?:did|was|were|had|went|gone|came|said|told|made|left|got|took|broke|found|wrote|sent|met|saw|bought|ran|began|"
    r"built|chose|gave|held|kept|knew|lost|paid|spoke|spent|taught|thought|won|quit|fell|"
    r"agreed|(?!planned|scheduled|expected|booked|invited|required|needed|supposed|hundred|embed)\w\w+[^\We]ed)"
)
# "Who booked it?" is about the past; "what is booked" need not be.
_BACK = lazy_regex(rf"\b(?:{PAST_VERB}|ago|who \w+ed)\b")
_AHEAD = lazy_regex(
    r"\b(?:will|shall|won't|going to|\w+'ll|due|plan|plans|planned|planning|scheduled|expected|upcoming|coming up|"
    r"expires?|next|tomorrow|deadlines?|appointments?|booked)\b"
)


def looks_back(text: str) -> bool:
    """Whether a lower-case text is about the past."""
    return _BACK.search(text) is not None


def query_time(text: str, now: datetime) -> QueryTime:
    """Whether a lower-case question is about the past or the future."""
    is_over = looks_back(text)
    return QueryTime(now, looks_ahead=not is_over and _AHEAD.search(text) is not None, looks_back=is_over)


EARLIEST = datetime(1, 1, 2, tzinfo=UTC)
LATEST = datetime(9999, 12, 30, tzinfo=UTC)

Span = tuple[datetime, datetime]
"""From a moment up to but not including another."""


def unit_of(unit: str, moment: datetime) -> Span:
    """The day, week, weekend, month, quarter or year that a moment is in; a weekend is that of its week."""
    today = day_of(moment)
    match unit:
        case "week":
            start = today - timedelta(days=today.weekday())
            return start, start + timedelta(days=7)
        case "weekend":
            saturday = today - timedelta(days=today.weekday()) + timedelta(days=5)
            return saturday, saturday + timedelta(days=2)
        case "month":
            return whole_month(moment.year, moment.month)
        case "quarter":
            first = 3 * ((moment.month - 1) // 3) + 1
            return midnight(moment.year, first, 1), next_month(moment.year, first + 2)
        case "year":
            return midnight(moment.year, 1, 1), midnight(moment.year + 1, 1, 1)
        case _:
            return today, today + timedelta(days=1)


def unit_before(unit: str, moment: datetime) -> datetime:
    """A moment of the week, month or so before the one of this moment."""
    return unit_of(unit, moment)[0] - timedelta(days=7 if unit == "weekend" else 1)


def whole_day(year: int, month: int, day: int) -> Span:
    start = midnight(year, month, day)
    return start, start + timedelta(days=1)


def whole_month(year: int, month: int) -> Span:
    return midnight(year, month, 1), next_month(year, month)


def midnight(year: int, month: int, day: int) -> datetime:
    return datetime(year, month, day, tzinfo=UTC)


def day_of(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def day_after(now: datetime) -> datetime:
    return day_of(now) + timedelta(days=1)


def next_month(year: int, month: int) -> datetime:
    return midnight(year + month // 12, month % 12 + 1, 1)


def months_later(moment: datetime, months: int) -> datetime:
    month = moment.month - 1 + months
    year, month = moment.year + month // 12, month % 12 + 1
    return moment.replace(year=year, month=month, day=min(moment.day, monthrange(year, month)[1]))


def moved(moment: datetime, count: float, unit: str) -> datetime:
    if unit in ("minute", "hour", "day", "week"):
        return moment + timedelta(**{f"{unit}s": count})
    months = count * {"quarter": 3, "year": 12, "decade": 120}.get(unit, 1)
    whole = int(months)
    return months_later(moment, whole) + timedelta(days=round(30 * (months - whole)))
