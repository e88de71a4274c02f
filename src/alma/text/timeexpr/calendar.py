"""Calendar arithmetic: the day, week, month or year of a moment, and moments earlier or later."""

from __future__ import annotations

from calendar import monthrange
from datetime import UTC, datetime, timedelta

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
