"""Parts: so much of the beginning or of the end of a month, a quarter or a year, and the halves of one."""

from __future__ import annotations

import re

from alma.text.timeexpr.calendar import Span, midnight, months_later, moved, unit_of, whole_month
from alma.text.timeexpr.interpretation import month_number, number_of, year_of_month
from alma.text.timeexpr.vocabulary import Asking

# "The first days of May" are some.
_SOME = 5


def of_month(match: re.Match[str], at: Asking) -> Span:
    """ "the first ten days of October"."""
    return _side(match, _month(match, at))


def of_year(match: re.Match[str], at: Asking) -> Span:
    """ "the first three months of 2026"."""
    return _side(match, unit_of("year", midnight(int(match["year"]), 1, 1)))


def of_unit(match: re.Match[str], at: Asking) -> Span:
    """ "the last two weeks of last month"."""
    return _side(match, _unit(match, at))


def half_of_month(match: re.Match[str], at: Asking) -> Span:
    """ "the first half of November"."""
    return _half(match, _month(match, at))


def half_of_unit(match: re.Match[str], at: Asking) -> Span:
    return _half(match, _unit(match, at))


def _month(match: re.Match[str], at: Asking) -> Span:
    month = month_number(match["month"])
    return whole_month(year_of_month(match, at, month), month)


def _unit(match: re.Match[str], at: Asking) -> Span:
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
