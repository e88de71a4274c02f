"""Weekdays: days that are told by the day of the week ("two Fridays ago", "the last Friday of May"), and feasts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from alma.text.timeexpr.calendar import Span, day_of, midnight, months_later, unit_of, whole_month
from alma.text.timeexpr.interpretation import month_number, number_of, weekday_number, year_of_month, years_for
from alma.text.timeexpr.vocabulary import ORDINALS, WEEKDAYS, Asking

_WEEK, _DAY = timedelta(days=7), timedelta(days=1)
# "Monday the 9th" comes again within so many months.
_MONTHS_SEARCHED = 30


def so_many_ago(match: re.Match[str], at: Asking) -> Span:
    """ "two Fridays ago"."""
    return _day(_last(match, at) - _WEEK * (int(number_of(match["count"])) - 1))


def before_last(match: re.Match[str], at: Asking) -> Span:
    """ "the Friday before last"."""
    return _day(_last(match, at) - _WEEK)


def week_ago(match: re.Match[str], at: Asking) -> Span:
    """ "a week ago Tuesday": on a Tuesday, the one before."""
    back = (at.now.weekday() - weekday_number(match["weekday"])) % 7
    return _day(day_of(at.now) - _DAY * back - _WEEK)


def of_week(match: re.Match[str], at: Asking) -> Span:
    """ "Tuesday last week", "next week on Tuesday"."""
    week = unit_of("week", at.now)[0]
    monday = {"last": week - _WEEK, "previous": week - _WEEK, "next": week + _WEEK}.get(match["which"], week)
    return _day(monday + _DAY * weekday_number(match["weekday"]))


def with_number(match: re.Match[str], at: Asking) -> Span:
    """ "Monday the 9th": the last one that was a Monday, or the next where the future is spoken of."""
    number, wanted, today = int(match["day"]), weekday_number(match["weekday"]), day_of(at.now)
    for months in range(_MONTHS_SEARCHED):
        month = months_later(today.replace(day=1), months if at.looks_ahead else -months)
        if number > (whole_month(month.year, month.month)[1] - month).days:
            continue
        day = month.replace(day=number)
        if day.weekday() == wanted and (day >= today if at.looks_ahead else day <= today):
            return _day(day)
    raise ValueError("there is no such day")


def of_month(match: re.Match[str], at: Asking) -> Span:
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
        raise ValueError("there is no fifth one")
    return found


def _last(match: re.Match[str], at: Asking) -> datetime:
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


# When each begins in a year, and how many days it has.
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
FEAST_WORDS = " ".join({word for name in _FEASTS for word in re.findall("[a-z]+", name) if word not in ("s", "day")})


def feast(match: re.Match[str], at: Asking) -> tuple[Span, ...]:
    begins, days = _FEASTS[match["feast"]]
    which, named = match.groupdict().get("which"), match["year"]
    if named:
        years: tuple[int, ...] = (int(named),)
    elif which == "this":
        years = (at.now.year,)
    else:
        told = at._replace(looks_back=which == "last" or at.looks_back, looks_ahead=which == "next" or at.looks_ahead)
        years = years_for(told, begins)
    return tuple((begins(year), begins(year) + _DAY * days) for year in years)


def feast_since(name: str, at: Asking, count: int) -> Span:
    """The one that so many have been since, itself included."""
    begins, days = _FEASTS[name]
    start = begins(years_for(at._replace(looks_back=True, looks_ahead=False), begins)[0] - count + 1)
    return start, start + _DAY * days
