"""Recurring: what comes every year or week, told by how many there were since ("two summers ago")."""

from __future__ import annotations

import re
from datetime import timedelta

from alma.text.timeexpr.calendar import Span, day_of, midnight, months_later, unit_before, unit_of
from alma.text.timeexpr.interpretation import month_number, number_of, previous_month_named
from alma.text.timeexpr.vocabulary import SEASONS, Asking
from alma.text.timeexpr.weekdays import feast_since

_BEFORE_LAST = 2


def season(match: re.Match[str], at: Asking) -> Span:
    """ "two summers ago", "the summer before last": the last one is over."""
    start = midnight(at.now.year, SEASONS[match["season"]], 1)
    if months_later(start, 3) > at.now:
        start = months_later(start, -12)
    start = months_later(start, -12 * (_count(match) - 1))
    return start, months_later(start, 3)


def feast(match: re.Match[str], at: Asking) -> Span:
    """ "two Christmases ago"."""
    return feast_since(match["feast"], at, _count(match))


def month(match: re.Match[str], at: Asking) -> Span:
    """ "the March before last"."""
    start, end = previous_month_named(match, at)
    return months_later(start, -12), months_later(end, -12)


def weekend(match: re.Match[str], at: Asking) -> Span:
    """ "two weekends ago"."""
    start, end = unit_of("weekend", unit_before("weekend", at.now))
    earlier = timedelta(days=7 * (_count(match) - 1))
    return start - earlier, end - earlier


def night(match: re.Match[str], at: Asking) -> Span:
    """ "the night before last", "three nights ago": named by the day on which it began."""
    start = day_of(at.now) - timedelta(days=_count(match))
    return start, start + timedelta(days=1)


def of_year_before_last(match: re.Match[str], at: Asking) -> Span:
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
