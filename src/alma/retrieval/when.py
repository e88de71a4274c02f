"""When: the time a question speaks of ("last week", "in March", "before the release"), read by rules."""

from __future__ import annotations

import re
from calendar import isleap, monthrange
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

_MONTHS = """
january february march april may june july august september october november december
""".split()  # noqa: SIM905 - as people say them
_WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}
_VAGUE = {"couple": 2, "few": 3, "several": 4}
_NUMBERS |= {"eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, **_VAGUE}
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "1st": 1, "2nd": 2, "3rd": 3, "4th": 4}
# Month and day on which one begins, and how many days it has.
_HOLIDAYS = {"christmas": (12, 24, 3), "new year's eve": (12, 31, 1), "halloween": (10, 31, 1)}
_HOLIDAYS |= {"valentine's day": (2, 14, 1), "new year's day": (1, 1, 1)}
# In a longer text a time is one of many, and no longer what is asked for.
_READ = 2_000
_EARLIEST = datetime(1, 1, 2, tzinfo=UTC)
_LATEST = datetime(9999, 12, 30, tzinfo=UTC)

_MONTH = r"(?P<month>sept|" + "|".join(f"{name[:3]}(?:{name[3:]})?" for name in _MONTHS) + r")(?![a-z0-9])\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
# Behind a year there is no further number: 2024.1 is a version.
_YEAR = r"(?P<year>(?:19|20)\d\d)(?!\w|[-/.:]\d)"
_COUNT = r"(?P<count>\d{1,4}|" + "|".join(_NUMBERS) + r")(?: of)?"
_UNIT = r"(?P<unit>minute|hour|day|week|month|year)s?"
_PREVIOUS = r"(?:last|past|previous|this past)"
# Whoever asks how long it was from one event to another wants to know of both.
_ASKS_SPAN = re.compile(r"\bhow (?:long|much time|many (?:minute|hour|day|week|month|year)s)\b")


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """The span of time a question speaks of, from `start` up to but not including `end`.

    `anchor` is the event that bounds it where that is no date ("the release"); the span is then not known yet and
    `side` says on which side of the event it lies.
    """

    start: datetime
    end: datetime
    phrase: str
    anchor: str | None = None
    side: str | None = None

    def holds(self, moment: datetime) -> bool:
        """Whether the moment lies inside."""
        return self.start <= moment < self.end

    def anchored(self, moment: datetime) -> TimeWindow:
        """The span once it is known when the event was."""
        if self.side == "before":
            return TimeWindow(_EARLIEST, moment, self.phrase)
        return TimeWindow(moment, _LATEST, self.phrase)


def time_window(question: str, now: datetime) -> TimeWindow | None:
    """The time the question speaks of, or None where it speaks of none.

    `now` is when it is asked, and days begin at midnight in its time zone.
    """
    text = " ".join(question[:_READ].lower().replace("fortnight", "two weeks").split())
    if not _may_speak_of_time(text):
        return None
    here = now.replace(tzinfo=UTC)
    window = _between(text, here) or _bounded(text, here) or _plain(text, here)
    return _anchor(text) if window is None else _in_zone(window, now)


def _may_speak_of_time(text: str) -> bool:
    """Whether a text has a number or a word that any of the rules asks for: most have none, which is seen at once."""
    return not _TELLING.isdisjoint(_TOKEN.findall(text)) or _DIGIT.search(text) is not None


def _in_zone(window: TimeWindow, now: datetime) -> TimeWindow:
    """The window that was read off a clock on the wall, as instants."""
    if now.tzinfo is UTC:
        return window
    start, end = (each.replace(tzinfo=now.tzinfo).astimezone(UTC) for each in (window.start, window.end))
    return replace(window, start=start, end=end)


def _between(text: str, now: datetime) -> TimeWindow | None:
    """ "between March and May", "from 3 May to 5 May": from the start of the first to the end of the second."""
    for match in re.finditer(r"\b(?:between|from) (.{1,40}?) (?:and|to|until|till) (.{3,40})", text):
        second = _bare(_plain, match[2], now)
        first = second and _bare(_plain, _with_date_of(match[1], match[2]), now)
        if first and second and first.start < second.end:
            return TimeWindow(first.start, second.end, match[0])
        if first and second and match[1].split()[-1] in _WEEKDAYS:
            # The one before, as from Thursday to Monday.
            return TimeWindow(first.start - timedelta(days=7), second.end, match[0])
    return None


def _with_date_of(first: str, second: str) -> str:
    """ "between March and May 2023" is all in one year, and "from 3 to 5 May" in one month."""
    if re.fullmatch(_DAY, first.removeprefix("the ")) and (month := re.search(rf"\b{_MONTH}", second)):
        first = f"{first} {month[0]}"
    year = re.search(rf"\b{_YEAR}", second)
    return first if year is None or re.search(rf"\b{_YEAR}", first) else f"{first} {year[0]}"


def _bounded(text: str, now: datetime) -> TimeWindow | None:
    """ "before May", "since last week": everything on one side of a date."""
    for match in re.finditer(r"(?<!day )\b(before|until|till|prior to|after|since|following) (.{3,60})", text):
        span = _bare(_leading, match[2], now)
        if span is None:
            continue
        phrase = f"{match[1]} {span.phrase}"
        if match[1] not in ("before", "until", "till", "prior to"):
            return TimeWindow(span.start if match[1] == "since" else span.end, _LATEST, phrase)
        if span.start > _EARLIEST:
            return TimeWindow(_EARLIEST, span.start, phrase)
    return None


def _bare(read: Callable[[str, datetime], TimeWindow | None], text: str, now: datetime) -> TimeWindow | None:
    """The date in a text that stands where it needs no preposition: "since May", "until Monday"."""
    for preposition in ("", "in ", "on "):
        span = read(preposition + text, now)
        if span is not None:
            return replace(span, phrase=span.phrase.removeprefix(preposition))
    return None


def _leading(text: str, now: datetime) -> TimeWindow | None:
    """The date a text starts with, perhaps behind an article."""
    span = _plain(text, now)
    if span is None or not re.match(rf"(?:the |in |on |about |around )*{re.escape(span.phrase)}", text):
        return None
    return span


def _anchor(text: str) -> TimeWindow | None:
    """ "before the release": an event that memory has to date."""
    if _ASKS_SPAN.search(text):
        return None
    match = re.search(r"\b(before|prior to|after|since|following) ((?:the|our|my|your|we|i|they) [\w' -]{3,60})", text)
    if match is None:
        return None
    side = "before" if match[1] in ("before", "prior to") else "after"
    event = re.split(r" (?:did|does|do|what|who|which|how|why) ", match[2])[0]
    return TimeWindow(_EARLIEST, _LATEST, f"{match[1]} {event.strip()}", anchor=event.strip(), side=side)


def _plain(text: str, now: datetime) -> TimeWindow | None:
    """The first rule that reads a date in the text."""
    for pattern, read in _RULES:
        for match in pattern.finditer(text):
            span = _read(read, match, now)
            if span is not None:
                return TimeWindow(*span, match[0].strip())
            # "31 February 2024" is no date, and its parts are none either.
            text = text.replace(match[0], "|")
    return None


Span = tuple[datetime, datetime]


def _read(read: Callable[[re.Match[str], datetime], Span], match: re.Match[str], now: datetime) -> Span | None:
    try:
        return read(match, now)
    except (ValueError, OverflowError):  # "31 February", "9000 years ago"
        return None


def _exact_day(match: re.Match[str], now: datetime) -> Span:
    parts = match.groupdict()
    start = _midnight(int(parts["year"]), int(parts["number"]), int(parts["day"]))
    return start, start + timedelta(days=1)


def _named_day(match: re.Match[str], now: datetime) -> Span:
    month = _month_number(match["month"])
    start = _midnight(_year(match, now, month, int(match["day"])), month, int(match["day"]))
    return start, start + timedelta(days=1)


def _named_month(match: re.Match[str], now: datetime) -> Span:
    month = _month_number(match["month"])
    year = _year(match, now, month, 1)
    return _part(match, _midnight(year, month, 1), _next_month(year, month))


def _month_of_past_year(match: re.Match[str], now: datetime) -> Span:
    """ "June of last year", "June two years ago"."""
    month, year = _month_number(match["month"]), now.year - (_number(match["count"]) if match["count"] else 1)
    return _midnight(year, month, 1), _next_month(year, month)


def _iso_month(match: re.Match[str], now: datetime) -> Span:
    year, month = int(match["year"]), int(match["number"])
    return _midnight(year, month, 1), _next_month(year, month)


def _holiday(match: re.Match[str], now: datetime) -> Span:
    month, day, days = _HOLIDAYS[match["holiday"]]
    start = _midnight(_year(match, now, month, day), month, day)
    return start, start + timedelta(days=days)


def _previous_month_named(match: re.Match[str], now: datetime) -> Span:
    """ "last March" is the one of the year before when this year's is not over yet."""
    month = _month_number(match["month"])
    year = now.year if month < now.month else now.year - 1
    return _midnight(year, month, 1), _next_month(year, month)


def _whole_year(match: re.Match[str], now: datetime) -> Span:
    year = int(match["year"])
    return _part(match, _midnight(year, 1, 1), _midnight(year + 1, 1, 1))


def _part(match: re.Match[str], start: datetime, end: datetime) -> Span:
    """The third of a span that is meant, where the words name one."""
    third = (end - start) / 3
    match (match.groupdict().get("part") or "").strip(" -"):
        case "early" | "the beginning of" | "the start of":
            return start, start + third
        case "mid" | "the middle of":
            return start + third, end - third
        case "late" | "the end of":
            return end - third, end
        case _:
            return start, end


def _quarter(match: re.Match[str], now: datetime) -> Span:
    return _share_of_year(match, now, int(_ORDINALS.get(match["quarter"], match["quarter"])), months=3)


def _half(match: re.Match[str], now: datetime) -> Span:
    return _share_of_year(match, now, int(_ORDINALS.get(match["half"], match["half"])), months=6)


def _share_of_year(match: re.Match[str], now: datetime, number: int, months: int) -> Span:
    first = months * (number - 1) + 1
    year = int(match["year"]) if match["year"] else now.year - (first > now.month)
    return _midnight(year, first, 1), _next_month(year, first + months - 1)


def _season(match: re.Match[str], now: datetime) -> Span:
    first = _SEASONS[match["season"]]
    year = int(match["year"]) if match["year"] else now.year - (first > now.month)
    if match["which"] == "last" and not match["year"] and _months_later(_midnight(year, first, 1), 3) > now:
        year -= 1
    start = _midnight(year, first, 1)
    return start, _months_later(start, 3)


def _ago(match: re.Match[str], now: datetime) -> Span:
    """Around that moment: the larger the unit, the less exactly it is meant."""
    unit = match["unit"]
    centre = _earlier(now, _number(match["count"]), unit)
    slack = timedelta({"week": 4, "month": 16, "year": 120}.get(unit, int(match["count"] in _VAGUE)))
    return _day(centre - slack), _day(centre + slack) + timedelta(days=1)


def _last_units(match: re.Match[str], now: datetime) -> Span:
    count = match.groupdict().get("count") or "a"
    return _day(_earlier(now, _number(count), match["unit"])), _after(now)


def _previous_unit(match: re.Match[str], now: datetime) -> Span:
    """ "last week" is the calendar's; in "the past week" it is the seven days until now."""
    this = _this(match["unit"], now)[0]
    if match["which"].startswith("past") or match["which"] == "this past":
        return _day(_earlier(now, 1, match["unit"])), _after(now)
    return _this(match["unit"], this - timedelta(days=7 if match["unit"] == "weekend" else 1))


def _unit_before_last(match: re.Match[str], now: datetime) -> Span:
    unit = match["unit"]
    last = _this(unit, now)[0] - timedelta(days=7 if unit == "weekend" else 1)
    return _this(unit, _this(unit, last)[0] - timedelta(days=7 if unit == "weekend" else 1))


def _the_weekend(match: re.Match[str], now: datetime) -> Span:
    start, end = _this("weekend", now)
    return (start, end) if start <= now else (start - timedelta(days=7), end - timedelta(days=7))


def _this_unit(match: re.Match[str], now: datetime) -> Span:
    return _this(match["unit"], now)


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
            return midnight.replace(day=1), _next_month(moment.year, moment.month)
        case "quarter":
            first = 3 * ((moment.month - 1) // 3) + 1
            return _midnight(moment.year, first, 1), _next_month(moment.year, first + 2)
        case "year":
            return _midnight(moment.year, 1, 1), _midnight(moment.year + 1, 1, 1)
        case _:
            return midnight, midnight + timedelta(days=1)


def _previous_weekday(match: re.Match[str], now: datetime) -> Span:
    back = (now.weekday() - _WEEKDAYS.index(match["weekday"])) % 7 or 7
    start = _day(now) - timedelta(days=back)
    return start, start + timedelta(days=1)


def _days_back(days: int) -> Callable[[re.Match[str], datetime], Span]:
    def read(match: re.Match[str], now: datetime) -> Span:
        start = _day(now) - timedelta(days=days)
        return start, start + timedelta(days=1)

    return read


def _lately(match: re.Match[str], now: datetime) -> Span:
    return _day(now) - timedelta(days=30), _after(now)


_IN = r"(?:in|during|of|by|since|before|after|until|till|around|from|for|this)"
_PART = r"(?P<part>early|mid|late|the (?:beginning|start|middle|end) of)[ -]"

_TOKEN, _DIGIT = re.compile("[a-z0-9]+"), re.compile(r"\d")
# Whatever is read asks for a number or for one of these.
_TELLING = frozenset(
    (*_MONTHS, *(name[:3] for name in _MONTHS), "sept", *_WEEKDAYS, *_SEASONS, "christmas", "halloween", "valentine")
) | frozenset(
    """
    yesterday today tonight night morning afternoon evening recently lately ago back earlier last past previous
    days week weekend month quarter half year between from before until till prior after since following
    """.split()  # noqa: SIM905 - as people say them
)
_RULES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], datetime], Span]], ...] = tuple(
    (re.compile(pattern), read)
    for pattern, read in (
        # With points only where each part has two digits: 2024.1.2 is a version.
        (
            r"(?<![\w.])(?P<year>(?:19|20)\d\d)(?:[-/]|\.(?=\d\d\.\d\d))"
            r"(?P<number>\d{1,2})[-/.](?P<day>\d{1,2})(?!\d|[-/.]\d)",
            _exact_day,
        ),
        (rf"(?<![\w.]){_DAY}(?: of)? {_MONTH},?(?: {_YEAR})?", _named_day),
        (rf"\b{_MONTH} {_DAY}(?![\w%]|[.:/-]\d)(?:,? {_YEAR})?", _named_day),
        (rf"\b{_MONTH},?(?: of)? (?:last year\b|{_COUNT} years? ago\b)", _month_of_past_year),
        (rf"\b(?:last year|{_COUNT} years? ago),? in {_MONTH}", _month_of_past_year),
        (r"(?<![\w./-])(?P<year>(?:19|20)\d\d)-(?P<number>0[1-9]|1[0-2])(?![\w/-]|\.\d)", _iso_month),
        # Not what was bought for it, or made of it.
        (
            rf"\b(?:on|at|over|around|during|last) (?P<holiday>{'|'.join(_HOLIDAYS)})\b(?:,? (?:of |in )?{_YEAR})?",
            _holiday,
        ),
        (rf"\b{_PART}{_MONTH}(?: (?:of )?{_YEAR})?", _named_month),
        (rf"\b{_MONTH},?(?: of)? {_YEAR}", _named_month),
        (rf"\b{_PREVIOUS} {_MONTH}", _previous_month_named),
        (rf"\b{_IN} {_MONTH}(?! \d)", _named_month),
        (rf"\bq(?P<quarter>[1-4])(?!\w)(?: (?:of )?{_YEAR})?", _quarter),
        (rf"\b(?P<quarter>{'|'.join(_ORDINALS)}) quarter(?:,? (?:of )?{_YEAR}| of the year)", _quarter),
        (rf"\b(?P<half>first|second|1st|2nd) half(?: (?:of )?{_YEAR}| of the year)", _half),
        (
            r"\b(?P<which>last|this|in|during|in the|during the|past|previous) "
            # Not the framework.
            rf"(?P<season>{'|'.join(_SEASONS)})(?!\w| boot)(?: (?:of )?{_YEAR})?",
            _season,
        ),
        (rf"\b{_PART}{_YEAR}", _whole_year),
        (rf"\b(?:in|during|since|before|after|of|until|by|year) {_YEAR}", _whole_year),
        (r"\b(?:the )?day before yesterday\b", _days_back(2)),
        (r"\b(?:yesterday|last night)\b", _days_back(1)),
        (r"\b(?:today|tonight|this (?:morning|afternoon|evening))\b", _days_back(0)),
        (rf"\b{_COUNT} {_UNIT} (?:ago|back|earlier)\b", _ago),
        (rf"\b(?:in |over |during |within )?(?:the |these )?{_PREVIOUS} {_COUNT} {_UNIT}\b", _last_units),
        (rf"\b(?:in|within|over|during) the {_PREVIOUS} (?P<unit>minute|hour|day)\b", _last_units),
        (r"\bthe (?P<unit>week|month|quarter|year|weekend) before last\b", _unit_before_last),
        (r"\b(?:over|on|at|during) the weekend\b", _the_weekend),
        (rf"\b(?P<which>{_PREVIOUS[3:-1]}) (?P<unit>week|month|quarter|year|weekend)\b", _previous_unit),
        (r"\bthis (?P<unit>week|month|quarter|year|weekend)\b", _this_unit),
        (rf"\b(?:{_PREVIOUS}|on|this) (?P<weekday>{'|'.join(_WEEKDAYS)})\b", _previous_weekday),
        (r"\b(?:recently|lately|these days)\b", _lately),
    )
)


def _number(word: str) -> int:
    return int(word) if word.isdigit() else _NUMBERS[word]


def _month_number(word: str) -> int:
    return next(number for number, name in enumerate(_MONTHS, start=1) if name[:3] == word[:3])


def _year(match: re.Match[str], now: datetime, month: int, day: int) -> int:
    """The year that is named, or else the one in which that day was last seen."""
    named = match.groupdict().get("year")
    if named:
        return int(named)
    year = now.year if (month, day) <= (now.month, now.day) else now.year - 1
    while (month, day) == (2, 29) and not isleap(year):
        year -= 1
    return year


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


def _earlier(now: datetime, count: int, unit: str) -> datetime:
    if unit in ("minute", "hour", "day", "week"):
        return now - timedelta(**{f"{unit}s": count})
    return _months_later(now, -count * (12 if unit == "year" else 1))
