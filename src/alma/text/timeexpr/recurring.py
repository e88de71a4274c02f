"""Interpret times by weekday, feast, season or part of a period: "two Fridays ago", "the first ten days of May"."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from alma.text.timeexpr.interpretation import (
    month_number,
    number_of,
    previous_month_named,
    weekday_number,
    year_of_month,
    years_for,
)
from alma.text.timeexpr.vocabulary import (
    ORDINALS,
    SEASONS,
    WEEKDAYS,
    QueryTime,
    Span,
    day_of,
    midnight,
    months_later,
    moved,
    unit_before,
    unit_of,
    whole_month,
)

_WEEK, _DAY = timedelta(days=7), timedelta(days=1)
# The months within which "Monday the 9th" recurs.
_MONTHS_SEARCHED = 30


def weekdays_ago(match: re.Match[str], at: QueryTime) -> Span:
    """ "two Fridays ago"."""
    return _day(_last(match, at) - _WEEK * (int(number_of(match["count"])) - 1))


def weekday_before_last(match: re.Match[str], at: QueryTime) -> Span:
    """ "the Friday before last"."""
    return _day(_last(match, at) - _WEEK)


def weekday_a_week_ago(match: re.Match[str], at: QueryTime) -> Span:
    """ "a week ago Tuesday": on a Tuesday, the one before."""
    back = (at.now.weekday() - weekday_number(match["weekday"])) % 7
    return _day(day_of(at.now) - _DAY * back - _WEEK)


def weekday_of_week(match: re.Match[str], at: QueryTime) -> Span:
    """ "Tuesday last week", "next week on Tuesday"."""
    week = unit_of("week", at.now)[0]
    monday = {"last": week - _WEEK, "previous": week - _WEEK, "next": week + _WEEK}.get(match["which"], week)
    return _day(monday + _DAY * weekday_number(match["weekday"]))


def weekday_with_number(match: re.Match[str], at: QueryTime) -> Span:
    """ "Monday the 9th": the last 9th on a Monday, or the next in a text about the future."""
    number, wanted, today = int(match["day"]), weekday_number(match["weekday"]), day_of(at.now)
    for months in range(_MONTHS_SEARCHED):
        month = months_later(today.replace(day=1), months if at.looks_ahead else -months)
        if number > (whole_month(month.year, month.month)[1] - month).days:
            continue
        day = month.replace(day=number)
        if day.weekday() == wanted and (day >= today if at.looks_ahead else day <= today):
            return _day(day)
    raise ValueError("no such day")


def weekday_of_month(match: re.Match[str], at: QueryTime) -> Span:
    """ "the third Tuesday of October", "the last Friday of last month"."""
    which = match.groupdict().get("which")
    if which is None:
        month = month_number(match["month"])
        span = whole_month(year_of_month(match, at, month), month)
    else:
        span = unit_of("month", months_later(at.now.replace(day=1), {"last": -1, "this": 0, "next": 1}[which]))
    return _day(_nth(match["nth"], weekday_number(match["weekday"]), span))


def _nth(nth: str, weekday: int, span: Span) -> datetime:
    start, end = span
    if nth in ("last", "final"):
        return end - _DAY * ((end - _DAY * (weekday + 1)).weekday() + 1)
    found = start + _DAY * ((weekday - start.weekday()) % 7) + _WEEK * (ORDINALS[nth] - 1)
    if found >= end:
        raise ValueError("the month has no fifth one")
    return found


def _last(match: re.Match[str], at: QueryTime) -> datetime:
    """The last such day before today."""
    back = (at.now.weekday() - weekday_number(match["weekday"])) % 7
    return day_of(at.now) - _DAY * (back or 7)


def _day(start: datetime) -> Span:
    return start, start + _DAY


# ---------------------------------------------------------------------- feasts


def _easter(year: int) -> datetime:
    """Easter Sunday, by the rule of the Gregorian calendar (Butcher)."""
    century, rest = divmod(year, 100)
    moon = (19 * (year % 19) + century - century // 4 - (century - (century + 8) // 25 + 1) // 3 + 15) % 30
    week = (32 + 2 * (century % 4) + 2 * (rest // 4) - moon - rest % 4) % 7
    month, day = divmod(moon + week - 7 * ((year % 19 + 11 * moon + 22 * week) // 451) + 114, 31)
    return midnight(year, month, day + 1)


def _on(month: int, day: int) -> Callable[[int], datetime]:
    return lambda year: midnight(year, month, day)


def _nth_of(nth: str, weekday: str, month: int) -> Callable[[int], datetime]:
    return lambda year: _nth(nth, WEEKDAYS.index(weekday), whole_month(year, month))


def _after(begins: Callable[[int], datetime], days: int) -> Callable[[int], datetime]:
    return lambda year: begins(year) + _DAY * days


def _easter_and(days: int) -> Callable[[int], datetime]:
    return _after(_easter, days)


# When each feast begins in a year, and how many days it has.
_FEASTS: Mapping[str, tuple[Callable[[int], datetime], int]] = {
    "christmas eve": (_on(12, 24), 1),
    "christmas day": (_on(12, 25), 1),
    "christmas": (_on(12, 24), 3),
    "boxing day": (_on(12, 26), 1),
    "new year's eve": (_on(12, 31), 1),
    "new year's day": (_on(1, 1), 1),
    "new year": (_on(1, 1), 1),
    "halloween": (_on(10, 31), 1),
    "valentine's day": (_on(2, 14), 1),
    "independence day": (_on(7, 4), 1),
    "good friday": (_easter_and(-2), 1),
    "easter sunday": (_easter_and(0), 1),
    "easter monday": (_easter_and(1), 1),
    "easter": (_easter_and(-2), 4),
    "thanksgiving": (_nth_of("fourth", "thursday", 11), 1),
    "black friday": (_after(_nth_of("fourth", "thursday", 11), 1), 1),
    "cyber monday": (_after(_nth_of("fourth", "thursday", 11), 4), 1),
    "ascension day": (_easter_and(39), 1),
    "pentecost": (_easter_and(49), 2),
    "labor day": (_nth_of("first", "monday", 9), 1),
    "memorial day": (_nth_of("last", "monday", 5), 1),
}
FEAST = rf"(?P<feast>{'|'.join(_FEASTS)})"
FEAST_WORDS = {word for name in _FEASTS for word in re.findall("[a-z]+", name) if word not in ("s", "day")}


def feast(match: re.Match[str], at: QueryTime) -> tuple[Span, ...]:
    begins, days = _FEASTS[match["feast"]]
    which, named = match.groupdict().get("which"), match["year"]
    if named:
        years: tuple[int, ...] = (int(named),)
    elif which == "this":
        years = (at.now.year,)
    else:
        at = at._replace(looks_back=which == "last" or at.looks_back, looks_ahead=which == "next" or at.looks_ahead)
        years = years_for(at, begins)
    return tuple((begins(year), begins(year) + _DAY * days) for year in years)


def feast_since(name: str, at: QueryTime, count: int) -> Span:
    """The occurrence this many back, counted from the last one."""
    begins, days = _FEASTS[name]
    start = begins(years_for(at._replace(looks_back=True, looks_ahead=False), begins)[0] - count + 1)
    return start, start + _DAY * days


# ---------------------------------------------------------------------- seasons, feasts and nights ago

_BEFORE_LAST = 2


def seasons_ago(match: re.Match[str], at: QueryTime) -> Span:
    """ "two summers ago", "the summer before last": the last one is over."""
    start = midnight(at.now.year, SEASONS[match["season"]], 1)
    if months_later(start, 3) > at.now:
        start = months_later(start, -12)
    start = months_later(start, -12 * (_count(match) - 1))
    return start, months_later(start, 3)


def feasts_ago(match: re.Match[str], at: QueryTime) -> Span:
    """ "two Christmases ago"."""
    return feast_since(match["feast"], at, _count(match))


def month_before_last(match: re.Match[str], at: QueryTime) -> Span:
    """ "the March before last"."""
    start, end = previous_month_named(match, at)
    return months_later(start, -12), months_later(end, -12)


def weekends_ago(match: re.Match[str], at: QueryTime) -> Span:
    """ "two weekends ago"."""
    start, end = unit_of("weekend", unit_before("weekend", at.now))
    earlier = timedelta(days=7 * (_count(match) - 1))
    return start - earlier, end - earlier


def nights_ago(match: re.Match[str], at: QueryTime) -> Span:
    """ "the night before last", "three nights ago": named by the day on which it began."""
    start = day_of(at.now) - timedelta(days=_count(match))
    return start, start + timedelta(days=1)


def of_year_before_last(match: re.Match[str], at: QueryTime) -> Span:
    """ "March of the year before last"."""
    parts = match.groupdict()
    if parts.get("month"):
        start = midnight(at.now.year - 2, month_number(match["month"]), 1)
        return start, months_later(start, 1)
    start = midnight(at.now.year - 2, SEASONS[match["season"]], 1)
    return start, months_later(start, 3)


def _count(match: re.Match[str]) -> int:
    said = match.groupdict().get("count")
    return int(number_of(said)) if said else _BEFORE_LAST


# ---------------------------------------------------------------------- parts of a month, quarter or year

# "The first days of May" are some.
_SOME = 5


def part_of_month(match: re.Match[str], at: QueryTime) -> Span:
    """ "the first ten days of October"."""
    return _side(match, _whole_month(match, at))


def part_of_year(match: re.Match[str], at: QueryTime) -> Span:
    """ "the first three months of 2026"."""
    return _side(match, unit_of("year", midnight(int(match["year"]), 1, 1)))


def part_of_unit(match: re.Match[str], at: QueryTime) -> Span:
    """ "the last two weeks of last month"."""
    return _side(match, _whole_unit(match, at))


def half_of_month(match: re.Match[str], at: QueryTime) -> Span:
    """ "the first half of November"."""
    return _half(match, _whole_month(match, at))


def half_of_unit(match: re.Match[str], at: QueryTime) -> Span:
    return _half(match, _whole_unit(match, at))


def _whole_month(match: re.Match[str], at: QueryTime) -> Span:
    month = month_number(match["month"])
    return whole_month(year_of_month(match, at, month), month)


def _whole_unit(match: re.Match[str], at: QueryTime) -> Span:
    unit, direction = match["whole"], {"last": -1, "this": 0, "next": 1}[match["which"]]
    months = {"month": 1, "quarter": 3, "year": 12}[unit]
    return unit_of(unit, months_later(at.now.replace(day=1), direction * months))


def _side(match: re.Match[str], span: Span) -> Span:
    count = number_of(match["count"]) if match["count"] else _SOME if match["many"] else 1
    if match["side"] == "first":
        return span[0], min(span[1], moved(span[0], count, match["unit"]))
    return max(span[0], moved(span[1], -count, match["unit"])), span[1]


def _half(match: re.Match[str], span: Span) -> Span:
    middle = span[0] + (span[1] - span[0]) / 2
    return (span[0], middle) if match["half"] in ("first", "1st") else (middle, span[1])
