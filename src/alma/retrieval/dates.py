"""Dates: single times as people name them ("last week", "3 May", "in Q3 2024"), read by rules."""

from __future__ import annotations

import re
from calendar import isleap, monthrange
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

MONTHS = """
january february march april may june july august september october november december
""".split()  # noqa: SIM905 - as people say them
WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_VAGUE = {"couple": 2, "few": 3, "several": 4}
_ONES = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9}
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()  # noqa: SIM905
_TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
_NUMBERS = {"a": 1, "an": 1, "dozen": 12, "hundred": 100, **_ONES, **_TENS, **_VAGUE}
_NUMBERS |= {name: number for number, name in enumerate(_TEENS, start=10)}
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "1st": 1, "2nd": 2, "3rd": 3, "4th": 4}
# Month and day on which one begins, and how many days it has.
_HOLIDAYS = {"christmas eve": (12, 24, 1), "christmas day": (12, 25, 1), "christmas": (12, 24, 3)}
_HOLIDAYS |= {"new year's eve": (12, 31, 1), "new year's day": (1, 1, 1), "new year": (1, 1, 1)}
_HOLIDAYS |= {"halloween": (10, 31, 1), "valentine's day": (2, 14, 1)}

MONTH = r"(?P<month>sept|" + "|".join(f"{name[:3]}(?:{name[3:]})?" for name in MONTHS) + r")(?![a-z0-9])\.?"
DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
# Behind a year there is no further number: 2024.1 is a version.
YEAR = r"(?P<year>(?:19|20)\d\d)(?!\w|[-/.:]\d)"
_COUNT = (
    r"(?<![\d.,/])(?P<count>\d{1,4}(?:[.,]\d)?|"
    rf"(?:{'|'.join(_TENS)})[ -](?:{'|'.join(_ONES)})|{'|'.join(_NUMBERS)})(?: of)?"
)
_UNIT = r"(?P<unit>minute|hour|day|week|month|year)s?"
# "3 days", "half a year", "a year and a half", "two and a half years"
_HOW_MANY = rf"(?:(?P<half>half)(?: an?)?|{_COUNT}(?P<and_half> and a half)?)"
AMOUNT = rf"{_HOW_MANY} {_UNIT}(?P<with_half> and a half)?"
# Of minutes and hours nobody asks what they will bring.
_DAYS_OR_MORE = rf"{_HOW_MANY} (?P<unit>day|week|month|year)s?(?P<with_half> and a half)?"
_HALVES = ("half", "and_half", "with_half")
_PREVIOUS = r"(?:last|past|previous|this past)"
_NEXT = r"(?:next|coming|this coming|upcoming)"
_LONG_UNIT = r"(?P<unit>week|month|quarter|year|weekend)"
_HOLIDAY = rf"(?P<holiday>{'|'.join(_HOLIDAYS)})"
_SEASON = rf"(?P<season>{'|'.join(SEASONS)})(?!\w| boot)"  # Not the framework.
_WEEKDAY = rf"(?P<weekday>{'|'.join(WEEKDAYS)})\b"
# Where nothing of the sentence follows.
_END = r"(?=[^\w]*$|[,;:?!)]|\.(?: |$))"

EARLIEST = datetime(1, 1, 2, tzinfo=UTC)
LATEST = datetime(9999, 12, 30, tzinfo=UTC)

Span = tuple[datetime, datetime]
"""From a moment up to but not including another."""


class Asking(NamedTuple):
    """When a question is asked, by the clock on the wall, and whether it speaks of the future or of the past."""

    now: datetime
    looks_ahead: bool = False
    looks_back: bool = False


class Date(NamedTuple):
    """The spans that some words stand for: one, or two where they can be read in two ways."""

    spans: tuple[Span, ...]
    phrase: str

    @property
    def start(self) -> datetime:
        return self.spans[0][0]

    @property
    def end(self) -> datetime:
        return self.spans[0][1]


# What people say of the past; what is planned or scheduled is not over, and a need, feed or speed is no past either.
PAST_VERB = (
    r"(?:did|was|were|had|went|gone|came|said|told|made|left|got|took|broke|found|wrote|sent|met|saw|bought|ran|began|"
    r"built|chose|gave|held|kept|knew|lost|paid|spoke|spent|taught|thought|won|quit|fell|"
    r"agreed|(?!planned|scheduled|expected|booked|invited|required|needed|supposed|hundred|embed)\w\w+[^\We]ed)"
)
_BACK = re.compile(rf"\b(?:{PAST_VERB}|ago)\b")
_AHEAD = re.compile(
    r"\b(?:will|shall|won't|going to|\w+'ll|due|plan|plans|planned|planning|scheduled|expected|upcoming|coming up|"
    r"expires?|next|tomorrow|deadlines?|appointments?|booked)\b"
)


def asking(text: str, now: datetime) -> Asking:
    """How a question, in small letters, stands to the time it speaks of."""
    looks_back = _BACK.search(text) is not None
    return Asking(now, looks_ahead=not looks_back and _AHEAD.search(text) is not None, looks_back=looks_back)


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


Reader = Callable[[re.Match[str], Asking], Span | tuple[Span, ...]]


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


# ---------------------------------------------------------------------- days


def _exact_day(match: re.Match[str], at: Asking) -> Span:
    return _whole_day(int(match["year"]), int(match["number"]), int(match["day"]))


def _point_day(match: re.Match[str], at: Asking) -> Span:
    """ "12.03.2025": where there are points, the day comes first."""
    return _whole_day(int(match["year"]), int(match["two"]), int(match["one"]))


def _slash_day(match: re.Match[str], at: Asking) -> tuple[Span, ...]:
    """ "3/12/2025" is the 12th of March for some and the 3rd of December for others: it may be either."""
    year, one, two = (int(match[name]) for name in ("year", "one", "two"))
    year += 2000 if year < 100 else 0
    ways = [(one, two)] if one == two else [(one, two), (two, one)]
    found = tuple(_whole_day(year, month, day) for month, day in ways if month <= 12)
    if not found:
        raise ValueError("there is no such month")
    return found


def _named_day(match: re.Match[str], at: Asking) -> Span:
    month, day = _month_number(match["month"]), int(match["day"])
    if match["month"] in ("may", "march") and re.match(r" [a-z]+s\b", match.string[match.end() :]):
        raise ValueError("it is a verb: may 5 users log in?")
    return _whole_day(_year_of_day(match, at, month, day), month, day)


def _day_of_month(match: re.Match[str], at: Asking) -> Span:
    """ "on the 5th": the last one there was, or the next where the future is spoken of."""
    day, which = int(match["day"]), match.groupdict().get("which")
    month = at.now.replace(day=1)
    if which == "last" or (which is None and day > at.now.day and not at.looks_ahead):
        month = _months_later(month, -1)
    elif which == "next" or (which is None and day < at.now.day and at.looks_ahead):
        month = _months_later(month, 1)
    return _whole_day(month.year, month.month, day)


def _holiday(match: re.Match[str], at: Asking) -> Span:
    month, day, days = _HOLIDAYS[match["holiday"]]
    start = _midnight(_year_of_day(match, at, month, day), month, day)
    return start, start + timedelta(days=days)


def _days_from_now(days: int) -> Reader:
    def read(match: re.Match[str], at: Asking) -> Span:
        start = _day(at.now) + timedelta(days=days)
        return start, start + timedelta(days=1)

    return read


def _weekday(match: re.Match[str], at: Asking) -> Span:
    """The last one before today, or the next: "next Friday", and "this Friday" where it is not said to be over."""
    ahead = (WEEKDAYS.index(match["weekday"]) - at.now.weekday()) % 7
    which = match.groupdict().get("which") or ""
    if "next" in which or "coming" in which or (which in ("", "on") and at.looks_ahead):
        ahead = ahead or 7
    elif which != "this" or at.looks_back:
        ahead -= 7
    start = _day(at.now) + timedelta(days=ahead)
    return start, start + timedelta(days=1)


def _weekday_alone(match: re.Match[str], at: Asking) -> Span:
    """ "What did we decide Monday?" In a sentence that speaks of no time it is any Monday."""
    if not at.looks_back and not at.looks_ahead:
        raise ValueError("any such day")
    return _weekday(match, at)


# ---------------------------------------------------------------------- weeks


def _week_of_month(match: re.Match[str], at: Asking) -> Span:
    """ "the first week of May" has its first seven days."""
    month = _month_number(match["month"])
    start, end = _month(_year_of_month(match, at, month), month)
    if match["which"] == "last":
        return end - timedelta(days=7), end
    first = start + timedelta(days=7 * (_ORDINALS[match["which"]] - 1))
    return first, first + timedelta(days=7)


def _week_of_day(match: re.Match[str], at: Asking) -> Span:
    """ "the week of 3 May"."""
    return _this("week", _named_day(match, at)[0])


def _numbered_week(match: re.Match[str], at: Asking) -> Span:
    start = datetime.fromisocalendar(int(match["year"]), int(match["week"]), 1).replace(tzinfo=UTC)
    return start, start + timedelta(days=7)


# ---------------------------------------------------------------------- months and years


def _named_month(match: re.Match[str], at: Asking) -> Span:
    month = _month_number(match["month"])
    return _part(match, *_month(_year_of_month(match, at, month), month))


def _month_of_year(match: re.Match[str], at: Asking) -> Span:
    """ "June of last year", "June two years ago"."""
    which = match["which"] or "last"
    years = -int(_number(match["count"])) if match["count"] else {"last": -1, "this": 0, "next": 1}[which]
    return _month(at.now.year + years, _month_number(match["month"]))


def _numbered_month(match: re.Match[str], at: Asking) -> Span:
    return _month(int(match["year"]), int(match["number"]))


def _previous_month_named(match: re.Match[str], at: Asking) -> Span:
    """ "last March" is the one of the year before when this year's is not over yet."""
    month = _month_number(match["month"])
    return _month(at.now.year if month < at.now.month else at.now.year - 1, month)


def _next_month_named(match: re.Match[str], at: Asking) -> Span:
    month = _month_number(match["month"])
    return _month(at.now.year if month > at.now.month else at.now.year + 1, month)


def _whole_year(match: re.Match[str], at: Asking) -> Span:
    year = int(match["year"])
    return _part(match, _midnight(year, 1, 1), _midnight(year + 1, 1, 1))


def _decade(match: re.Match[str], at: Asking) -> Span:
    year = int(match["year"])
    return _part(match, _midnight(year, 1, 1), _midnight(year + 10, 1, 1))


def _part(match: re.Match[str], start: datetime, end: datetime) -> Span:
    """The third of a span that is meant, where the words name one."""
    third = (end - start) / 3
    part = (match.groupdict().get("part") or "").strip(" -").removeprefix("the ")
    match part.removesuffix(" of"):
        case "early" | "beginning" | "start":
            return start, start + third
        case "mid" | "middle":
            return start + third, end - third
        case "late" | "end":
            return end - third, end
        case _:
            return start, end


def _quarter(match: re.Match[str], at: Asking) -> Span:
    return _share_of_year(match, at, months=3)


def _half(match: re.Match[str], at: Asking) -> Span:
    return _share_of_year(match, at, months=6)


def _share_of_year(match: re.Match[str], at: Asking, months: int) -> Span:
    said = match["share"]
    number = 12 // months if said == "last" else int(_ORDINALS.get(said, said))
    first = months * (number - 1) + 1
    year, which = at.now.year, match.groupdict().get("which")
    if match["year"]:
        year = int(match["year"])
    elif which in ("last", "next"):
        year += 1 if which == "next" else -1
    elif which != "this" and not at.looks_ahead:
        year -= first > at.now.month
    return _midnight(year, first, 1), _next_month(year, first + months - 1)


def _season(match: re.Match[str], at: Asking) -> Span:
    first, which = SEASONS[match["season"]], match.groupdict().get("which")
    year = int(match["year"]) if match["year"] else at.now.year - (first > at.now.month)
    start = _midnight(year, first, 1)
    if not match["year"]:
        if which == "last" and _months_later(start, 3) > at.now:
            start = _months_later(start, -12)
        elif which == "next" or (at.looks_ahead and _months_later(start, 3) <= at.now):
            start = _months_later(start, 12)
    return start, _months_later(start, 3)


# ---------------------------------------------------------------------- reckoned from now


def _ago(match: re.Match[str], at: Asking) -> Span:
    """Around that moment: the larger the unit, the less exactly it is meant; with halves it is meant more exactly."""
    centre = shifted(at.now, match, -1)
    slack = timedelta({"week": 4, "month": 16, "year": 120}.get(match["unit"], int(match["count"] in _VAGUE)))
    if "." in (match["count"] or "") or any(match[name] for name in _HALVES):
        slack = timedelta((slack / 2).days)
    return _day(centre - slack), _day(centre + slack) + timedelta(days=1)


def _longer_ago(match: re.Match[str], at: Asking) -> Span:
    """ "more than a week ago", "less than a week ago"."""
    then = shifted(at.now, match, -1)
    if match["how"] in ("less than", "under"):
        return _day(then), _after(at.now)
    return EARLIEST, _day(then) + timedelta(days=1)


def _in_units(match: re.Match[str], at: Asking) -> Span:
    """ "in two weeks", where the future is spoken of: otherwise it is how long something takes."""
    if not at.looks_ahead and not match["from_now"]:
        raise ValueError("it is how long something takes")
    centre = shifted(at.now, match, 1)
    slack = timedelta({"week": 4, "month": 16, "year": 120}.get(match["unit"], 0))
    return max(_day(centre - slack), _after(at.now)), _day(centre + slack) + timedelta(days=1)


def _last_units(match: re.Match[str], at: Asking) -> Span:
    return _day(shifted(at.now, match, -1)), _after(at.now)


def _next_units(match: re.Match[str], at: Asking) -> Span:
    return _day(at.now), _day(shifted(at.now, match, 1)) + timedelta(days=1)


def _some_units(direction: int) -> Reader:
    """ "in the past weeks", "in the coming days": a few."""

    def read(match: re.Match[str], at: Asking) -> Span:
        then = _moved(at.now, direction * _VAGUE["few"], match["some"])
        return _day(min(then, at.now)), _after(max(then, at.now))

    return read


def _previous_unit(match: re.Match[str], at: Asking) -> Span:
    """ "last week" is the calendar's; in "the past week" it is the seven days until now."""
    unit = match["unit"]
    if match["which"].startswith("past") or match["which"] == "this past":
        return _day(_moved(at.now, -1, unit)), _after(at.now)
    return _part(match, *_this(unit, _before(unit, at.now)))


def _next_unit(match: re.Match[str], at: Asking) -> Span:
    unit = match["unit"]
    following = _this(unit, at.now)[1] + timedelta(days=6 if unit == "weekend" else 0)
    return _part(match, *_this(unit, following))


def _unit_before_last(match: re.Match[str], at: Asking) -> Span:
    unit = match["unit"]
    return _this(unit, _before(unit, _before(unit, at.now)))


def _the_weekend(match: re.Match[str], at: Asking) -> Span:
    start, end = _this("weekend", at.now)
    return (start, end) if start <= at.now or at.looks_ahead else (start - timedelta(days=7), end - timedelta(days=7))


def _this_unit(match: re.Match[str], at: Asking) -> Span:
    return _part(match, *_this(match["unit"], at.now))


def _before(unit: str, moment: datetime) -> datetime:
    """A moment of the week, month or so before the one of this moment."""
    return _this(unit, moment)[0] - timedelta(days=7 if unit == "weekend" else 1)


def _this(unit: str, moment: datetime) -> Span:
    midnight = _day(moment)
    match unit:
        case "week":
            start = midnight - timedelta(days=midnight.weekday())
            return start, start + timedelta(days=7)
        case "weekend":
            saturday = midnight - timedelta(days=midnight.weekday()) + timedelta(days=5)
            return saturday, saturday + timedelta(days=2)
        case "month":
            return _month(moment.year, moment.month)
        case "quarter":
            first = 3 * ((moment.month - 1) // 3) + 1
            return _midnight(moment.year, first, 1), _next_month(moment.year, first + 2)
        case "year":
            return _midnight(moment.year, 1, 1), _midnight(moment.year + 1, 1, 1)
        case _:
            return midnight, midnight + timedelta(days=1)


def _last_days(days: int) -> Reader:
    def read(match: re.Match[str], at: Asking) -> Span:
        return _day(at.now) - timedelta(days=days), _after(at.now)

    return read


# ---------------------------------------------------------------------- the rules

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
            _exact_day,
        ),
        (
            _NUMBER,
            r"(?<![\w./-])(?<!version )(?<!release )(?P<one>\d{1,2})\.(?P<two>\d{1,2})\."
            r"(?P<year>(?:19|20)\d\d)(?!\w|[-/.]\d)",
            _point_day,
        ),
        (
            _NUMBER,
            r"(?<![\w./-])(?P<one>\d{1,2})(?P<by>[/-])(?P<two>\d{1,2})(?P=by)(?P<year>(?:19|20)\d\d)(?!\w|[-/.]\d)",
            _slash_day,
        ),
        (_NUMBER, r"\bon (?P<one>\d{1,2})/(?P<two>\d{1,2})/(?P<year>\d\d)(?!\w|[-/.]\d)", _slash_day),
        ("week", rf"\b(?:the )?week of (?:the )?{DAY}(?: of)? {MONTH},?(?: {YEAR})?", _week_of_day),
        ("week", rf"\b(?:the )?week of {MONTH} (?:the )?{DAY}(?![\w%]|[.:/-]\d)(?:,? {YEAR})?", _week_of_day),
        (
            "week",
            r"\b(?P<which>first|second|third|fourth|1st|2nd|3rd|4th|last) week (?:of|in) "
            rf"{MONTH}(?: (?:of )?{YEAR})?",
            _week_of_month,
        ),
        (_NUMBER, rf"\bweek (?P<week>\d\d?)(?: of|,|/)? {YEAR}", _numbered_week),
        (_NUMBER, r"(?<![\w./-])(?P<year>(?:19|20)\d\d)-?w(?P<week>\d\d)(?!\w|[-/.]\d)", _numbered_week),
        (_MONTH_WORDS, rf"(?<![\w./,-]){DAY}(?: of)? {MONTH},?(?: {YEAR})?", _named_day),
        (_MONTH_WORDS, rf"\b{MONTH} (?:the )?{DAY}(?![\w%]|[.:/-]\d)(?:,? {YEAR})?", _named_day),
        ("month", rf"\bon the {DAY} of (?P<which>this|last|next) month\b", _day_of_month),
        (
            "year years",
            rf"\b{MONTH},?(?: of)? (?:(?P<which>last|this|next) year\b|{_COUNT} years? ago\b)",
            _month_of_year,
        ),
        ("year years", rf"\b(?:(?P<which>last|this|next) year|{_COUNT} years? ago),? in {MONTH}", _month_of_year),
        (_NUMBER, r"(?<![\w./-])(?P<year>(?:19|20)\d\d)-(?P<number>0[1-9]|1[0-2])(?![\w/-]|\.\d)", _numbered_month),
        (_NUMBER, r"(?<![\w./-])(?P<number>0[1-9]|1[0-2])/(?P<year>(?:19|20)\d\d)(?![\w/-]|\.\d)", _numbered_month),
        # Not what was bought for it, or made of it.
        (
            "christmas halloween valentine year",
            rf"\b(?:on|at|over|around|during|last|this|next) {_HOLIDAY}\b(?:,? (?:of |in )?{YEAR})?",
            _holiday,
        ),
        ("christmas halloween valentine year", rf"\b{_HOLIDAY},? (?:of |in )?{YEAR}", _holiday),
        (_MONTH_WORDS, rf"\b{_PART}{MONTH}(?: (?:of )?{YEAR})?", _named_month),
        (_MONTH_WORDS, rf"\b{MONTH},?(?: of)? {YEAR}", _named_month),
        (_MONTH_WORDS, rf"\b{_PREVIOUS} {MONTH}", _previous_month_named),
        (_MONTH_WORDS, rf"\b{_NEXT} {MONTH}", _next_month_named),
        # "This may be", "all may come"
        (_MONTH_WORDS, rf"\b(?!(?:this|all) may\b(?!{_END})){_IN} {MONTH}(?! \d)", _named_month),
        (_NUMBER, rf"\bq(?P<share>[1-4])(?!\w){_OF_YEAR}?", _quarter),
        (_NUMBER, r"(?<![\w./-])(?P<year>(?:19|20)\d\d)[ /-]?q(?P<share>[1-4])(?!\w)", _quarter),
        ("quarter", rf"\b(?P<share>{'|'.join(_ORDINALS)}|last) quarter{_OF_YEAR}", _quarter),
        # With a year only: h1 is a heading.
        (_NUMBER, rf"\bh(?P<share>[12])(?!\w){_OF_YEAR}", _half),
        (_NUMBER, rf"\b(?P<share>[12])h{_OF_YEAR}", _half),
        (_NUMBER, r"(?<![\w./-])(?P<year>(?:19|20)\d\d)[ /-]?h(?P<share>[12])(?!\w)", _half),
        ("half", rf"\b(?P<share>first|second|1st|2nd|last) half{_OF_YEAR}", _half),
        (
            _SEASON_WORDS,
            r"\b(?P<which>last|this|next|in|during|in the|during the|past|previous) "
            rf"{_SEASON}(?: (?:of )?{YEAR})?",
            _season,
        ),
        (_SEASON_WORDS, rf"\b{_SEASON} (?:of )?{YEAR}", _season),
        (_NUMBER, rf"\b{_PART}{YEAR}", _whole_year),
        (
            _NUMBER,
            r"\b(?:in|during|since|before|after|of|until|till|by|year|throughout|through|across|all|around) "
            rf"(?!2000 [a-z]+s\b){YEAR}",
            _whole_year,
        ),
        (_NUMBER, rf"\b(?:for|from) {YEAR}{_END}", _whole_year),
        (
            _NUMBER,
            r"\b(?:in|during|of|throughout) the (?:(?P<part>early|mid|late)[ -])?(?P<year>(?:19|20)\d0)'?s\b",
            _decade,
        ),
        ("yesterday", r"\b(?:the )?day before yesterday\b", _days_from_now(-2)),
        ("tomorrow", r"\b(?:the )?day after tomorrow\b", _days_from_now(2)),
        ("yesterday night", r"\b(?:yesterday|last night)\b", _days_from_now(-1)),
        ("tomorrow", r"\btomorrow\b", _days_from_now(1)),
        (
            "today tonight morning afternoon evening",
            r"\b(?:today|tonight|this (?:morning|afternoon|evening))\b",
            _days_from_now(0),
        ),
        ("ago", rf"\b(?P<how>more than|longer than|over|at least|less than|under) {AMOUNT} ago\b", _longer_ago),
        ("ago back earlier", rf"\b{AMOUNT} (?:ago|back|earlier)\b", _ago),
        ("last past previous", rf"\b(?:in |over |during |within )?(?:the |these )?{_PREVIOUS} {AMOUNT}\b", _last_units),
        (
            "last past previous",
            rf"\bthe {_PREVIOUS} (?P<unit>day|week|month|year)(?P<with_half> and a half)\b",
            _last_units,
        ),
        (
            "next coming upcoming",
            rf"\b(?:in |over |during |within |for )?(?:the )?{_NEXT} {_DAYS_OR_MORE}\b",
            _next_units,
        ),
        ("from ahead", rf"\b{_DAYS_OR_MORE} (?P<from_now>from (?:now|today)|ahead)\b", _in_units),
        (
            "day days week weeks month months year years",
            rf"\bin {_DAYS_OR_MORE}(?P<from_now>'s? time)?(?!\w)",
            _in_units,
        ),
        (
            "last past previous",
            rf"\b(?:in|within|over|during) the {_PREVIOUS} (?P<unit>minute|hour|day)\b",
            _last_units,
        ),
        (
            "last past previous",
            rf"\b(?:in|over|during|for) the {_PREVIOUS} (?P<some>day|week|month|year)s\b",
            _some_units(-1),
        ),
        (
            "next coming upcoming",
            rf"\b(?:in|over|during|for) the {_NEXT} (?P<some>day|week|month|year)s\b",
            _some_units(1),
        ),
        ("last", rf"\bthe {_LONG_UNIT} before last\b", _unit_before_last),
        ("weekend", r"\b(?:over|on|at|during|for) the weekend\b", _the_weekend),
        ("last past previous", rf"\b(?:{_PART})?(?P<which>{_PREVIOUS[3:-1]}) {_LONG_UNIT}\b", _previous_unit),
        ("next coming upcoming", rf"\b(?:{_PART})?{_NEXT} {_LONG_UNIT}\b", _next_unit),
        ("week month quarter year weekend", rf"\b(?:{_PART})?this {_LONG_UNIT}\b", _this_unit),
        (
            "week month quarter year weekend",
            r"\b(?P<part>(?:the )?(?:beginning|start|middle|end) of) the (?P<unit>week|month|quarter|year)\b",
            _this_unit,
        ),
        (_WEEKDAY_WORDS, rf"\b(?P<which>{_PREVIOUS[3:-1]}|{_NEXT[3:-1]}|on|this) {_WEEKDAY}", _weekday),
        (
            _WEEKDAY_WORDS,
            r"(?<!every )(?<!each )(?<!by )(?<!to )(?<!and )(?<!or )(?<!through )(?<!-)(?<!black )(?<!cyber )(?<!good )"
            rf"\b{_WEEKDAY}(?: (?:morning|afternoon|evening|night))?{_END}",
            _weekday_alone,
        ),
        (_NUMBER, rf"\bon the {DAY}{_END}", _day_of_month),
        ("recently lately days", r"\b(?:recently|lately|these days)\b", _last_days(30)),
        ("day", r"\bthe other day\b", _last_days(10)),
    )
)
_TOKEN, _DIGIT = re.compile("[a-z0-9]+"), re.compile(r"\d")
# What bounds a time, by a date or by an event.
_BOUNDS = "between from before until till prior after since following later onward onwards"
_TELLING = frozenset(_BOUNDS.split()).union(*(words for words, _, _ in _RULES))


def _rules_for(text: str) -> Iterator[tuple[re.Pattern[str], Reader]]:
    """The rules that may read anything in a text, in their order."""
    said = set(_TOKEN.findall(text))
    if _DIGIT.search(text):
        said.add(_NUMBER)
    return ((pattern, read) for words, pattern, read in _RULES if not words.isdisjoint(said))


# ---------------------------------------------------------------------- reckoning


def _number(word: str) -> float:
    if word[0].isdigit():
        return float(word.replace(",", "."))
    return sum(_NUMBERS[part] for part in re.split("[ -]", word))


def shifted(moment: datetime, match: re.Match[str], direction: int) -> datetime:
    """The moment so much earlier or later as the amount in a match says: one unit where it does not say how many."""
    parts = match.groupdict()
    count = 0.0 if parts.get("half") else _number(parts.get("count") or "a")
    if any(parts.get(name) for name in _HALVES):
        count += 0.5
    return _moved(moment, direction * count, parts.get("unit") or parts["one_unit"])


def _moved(moment: datetime, count: float, unit: str) -> datetime:
    if unit in ("minute", "hour", "day", "week"):
        return moment + timedelta(**{f"{unit}s": count})
    months = count * {"quarter": 3, "year": 12}.get(unit, 1)
    whole = int(months)
    return _months_later(moment, whole) + timedelta(days=round(30 * (months - whole)))


def _month_number(word: str) -> int:
    return next(number for number, name in enumerate(MONTHS, start=1) if name[:3] == word[:3])


def _year_of_month(match: re.Match[str], at: Asking, month: int) -> int:
    """The year that is named, or else the one in which the month was last seen, or is next where that is asked for."""
    named = match.groupdict().get("year")
    if named:
        return int(named)
    if at.looks_ahead:
        return at.now.year + (month < at.now.month)
    return at.now.year - (month > at.now.month)


def _year_of_day(match: re.Match[str], at: Asking, month: int, day: int) -> int:
    """The year that is named, or else the one in which the day is nearest; if the past is spoken of, the last one."""
    named = match.groupdict().get("year")
    if named:
        return int(named)
    last = at.now.year if (month, day) <= (at.now.month, at.now.day) else at.now.year - 1
    following = last + 1
    if (month, day) == (2, 29):
        last = next(year for year in range(last, last - 9, -1) if isleap(year))
        following = next(year for year in range(following, following + 9) if isleap(year))
    if at.looks_back:
        return last
    today = _day(at.now)
    past, ahead = today - _midnight(last, month, day), _midnight(following, month, day) - today
    return following if past and (at.looks_ahead or ahead < past) else last


def _whole_day(year: int, month: int, day: int) -> Span:
    start = _midnight(year, month, day)
    return start, start + timedelta(days=1)


def _month(year: int, month: int) -> Span:
    return _midnight(year, month, 1), _next_month(year, month)


def _midnight(year: int, month: int, day: int) -> datetime:
    return datetime(year, month, day, tzinfo=UTC)


def _day(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _after(now: datetime) -> datetime:
    return _day(now) + timedelta(days=1)


def _next_month(year: int, month: int) -> datetime:
    return _midnight(year + month // 12, month % 12 + 1, 1)


def _months_later(moment: datetime, months: int) -> datetime:
    month = moment.month - 1 + months
    year, month = moment.year + month // 12, month % 12 + 1
    return moment.replace(year=year, month=month, day=min(moment.day, monthrange(year, month)[1]))
