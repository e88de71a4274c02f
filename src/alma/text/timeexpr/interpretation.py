"""Interpret the match of a rule as a span of time: days, weeks, months, quarters, years, and amounts of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from alma.text.timeexpr.vocabulary import (
    DAY_WORDS,
    DECADES,
    EARLIEST,
    HALVES,
    MONTHS,
    NUMBERS,
    ORDINALS,
    SEASONS,
    VAGUE,
    WEEKDAYS,
    QueryTime,
    Span,
    day_after,
    day_of,
    midnight,
    months_later,
    moved,
    next_month,
    unit_before,
    unit_of,
    whole_day,
    whole_month,
)

Reader = Callable[[re.Match[str], QueryTime], Span | tuple[Span, ...]]


# ---------------------------------------------------------------------- days


def exact_day(match: re.Match[str], at: QueryTime) -> Span:
    return whole_day(int(match["year"]), int(match["number"]), int(match["day"]))


def point_day(match: re.Match[str], at: QueryTime) -> Span:
    """ "12.03.2025": with points, the day comes first."""
    return whole_day(int(match["year"]), int(match["two"]), int(match["one"]))


def slash_day(match: re.Match[str], at: QueryTime) -> tuple[Span, ...]:
    """ "3/12/2025" is the 12th of March or the 3rd of December, depending on the country: both are tried."""
    year, one, two = (int(match[name]) for name in ("year", "one", "two"))
    year += 2000 if year < 100 else 0
    ways = [(one, two)] if one == two else [(one, two), (two, one)]
    found = tuple(whole_day(year, month, day) for month, day in ways if month <= 12)
    if not found:
        raise ValueError("no such month")
    return found


def named_day(match: re.Match[str], at: QueryTime) -> tuple[Span, ...]:
    if _is_verb(match):
        raise ValueError("may 5 users log in?")
    return _days_named(match, at, month_number(match["month"]), int(match["day"]))


def worded_day(match: re.Match[str], at: QueryTime) -> tuple[Span, ...]:
    """ "the tenth of November"."""
    return _days_named(match, at, month_number(match["month"]), DAY_WORDS.index(match["worded"]) + 1)


def day_without_year(match: re.Match[str], at: QueryTime) -> tuple[Span, ...]:
    """ "on 10.11.", or "on 11/10", which may be either."""
    one, two = int(match["one"]), int(match["two"])
    ways = {(two, one)} if match["by"] == "." else {(one, two), (two, one)}
    return tuple(span for month, day in sorted(ways) if month <= 12 for span in _days_named(match, at, month, day))


def _days_named(match: re.Match[str], at: QueryTime, month: int, day: int) -> tuple[Span, ...]:
    named = match.groupdict().get("year")
    years = (int(named),) if named else years_for(at, lambda year: midnight(year, month, day))
    return tuple(whole_day(year, month, day) for year in years)


def _is_verb(match: re.Match[str]) -> bool:
    """Whether a month before a number is a verb: "may 5 users log in?" """
    if match["month"] not in ("may", "march") or match["year"] or not match[0].startswith(match["month"]):
        return False
    before, behind = match.string[: match.start()], match.string[match.end() :]
    return not before.endswith(("on ", "since ", "of ")) and re.match(r" [a-z]+s\b", behind) is not None


def day_of_month(match: re.Match[str], at: QueryTime) -> Span:
    """ "on the 5th": the last one, or the next in a text about the future."""
    day, which = int(match["day"]), match.groupdict().get("which")
    month = at.now.replace(day=1)
    if which == "last" or (which is None and day > at.now.day and not at.looks_ahead):
        month = months_later(month, -1)
    elif which == "next" or (which is None and day < at.now.day and at.looks_ahead):
        month = months_later(month, 1)
    return whole_day(month.year, month.month, day)


def days_from_now(days: int) -> Reader:
    def read(match: re.Match[str], at: QueryTime) -> Span:
        start = day_of(at.now) + timedelta(days=days)
        return start, start + timedelta(days=1)

    return read


def whole_night(match: re.Match[str], at: QueryTime) -> Span:
    """ "overnight" is the last night in a text about the past; otherwise it is any night."""
    if not at.looks_back:
        raise ValueError("any night")
    today = day_of(at.now)
    return today - timedelta(days=1), today


def weekday(match: re.Match[str], at: QueryTime) -> Span:
    """The last one before today, or the next: "next Friday", and "this Friday" in a text that is not about the past."""
    ahead = (weekday_number(match["weekday"]) - at.now.weekday()) % 7
    which = match.groupdict().get("which") or ""
    if "next" in which or "coming" in which or (which in ("", "on") and at.looks_ahead):
        ahead = ahead or 7
    elif which != "this" or at.looks_back:
        ahead -= 7
    start = day_of(at.now) + timedelta(days=ahead)
    return start, start + timedelta(days=1)


def weekday_alone(match: re.Match[str], at: QueryTime) -> Span:
    """ "What did we decide Monday?" In a sentence without a tense it is any Monday."""
    if not at.looks_back and not at.looks_ahead:
        raise ValueError("any such day")
    return weekday(match, at)


# ---------------------------------------------------------------------- weeks


def week_of_month(match: re.Match[str], at: QueryTime) -> Span:
    """ "the first week of May" has its first seven days."""
    month = month_number(match["month"])
    start, end = whole_month(year_of_month(match, at, month), month)
    if match["which"] == "last":
        return end - timedelta(days=7), end
    first = start + timedelta(days=7 * (ORDINALS[match["which"]] - 1))
    return first, first + timedelta(days=7)


def week_of_day(match: re.Match[str], at: QueryTime) -> Span:
    """ "the week of 3 May"."""
    return unit_of("week", named_day(match, at)[0][0])


def numbered_week(match: re.Match[str], at: QueryTime) -> Span:
    start = _monday(int(match["year"]), int(match["week"]))
    return start, start + timedelta(days=7)


def week_without_year(match: re.Match[str], at: QueryTime) -> Span:
    """ "in calendar week 42": the last one, or the next."""
    week = int(match["week"])
    at = at._replace(looks_back=not at.looks_ahead)
    start = _monday(years_for(at, lambda year: _monday(year, week))[0], week)
    return start, start + timedelta(days=7)


def day_of_week(match: re.Match[str], at: QueryTime) -> Span:
    """ "2026-W45-3"."""
    start = _monday(int(match["year"]), int(match["week"])) + timedelta(days=int(match["day"]) - 1)
    return start, start + timedelta(days=1)


def _monday(year: int, week: int) -> datetime:
    return datetime.fromisocalendar(year, week, 1).replace(tzinfo=UTC)


# ---------------------------------------------------------------------- months and years


def named_month(match: re.Match[str], at: QueryTime) -> Span:
    month = month_number(match["month"])
    return part_of(match, *whole_month(year_of_month(match, at, month), month))


def month_of_year(match: re.Match[str], at: QueryTime) -> Span:
    """ "June of last year", "June two years ago"."""
    which = match["which"] or "last"
    years = -int(number_of(match["count"])) if match["count"] else {"last": -1, "this": 0, "next": 1}[which]
    return whole_month(at.now.year + years, month_number(match["month"]))


def numbered_month(match: re.Match[str], at: QueryTime) -> Span:
    return whole_month(int(match["year"]), int(match["number"]))


def previous_month_named(match: re.Match[str], at: QueryTime) -> Span:
    """ "last March" is the one of the year before when this year's is not over yet."""
    month = month_number(match["month"])
    return whole_month(at.now.year if month < at.now.month else at.now.year - 1, month)


def next_month_named(match: re.Match[str], at: QueryTime) -> Span:
    month = month_number(match["month"])
    return whole_month(at.now.year if month > at.now.month else at.now.year + 1, month)


def whole_year(match: re.Match[str], at: QueryTime) -> Span:
    year = int(match["year"])
    return part_of(match, midnight(year, 1, 1), midnight(year + 1, 1, 1))


def decade(match: re.Match[str], at: QueryTime) -> Span:
    named = match.groupdict()
    if named.get("named"):
        year = 1900 + 10 * (DECADES.index(named["named"]) + 5)
    else:
        year = int(named.get("year") or f"19{named['decade']}")
    return part_of(match, midnight(year, 1, 1), midnight(year + 10, 1, 1))


def part_of(match: re.Match[str], start: datetime, end: datetime) -> Span:
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


def quarter(match: re.Match[str], at: QueryTime) -> Span:
    return _share_of_year(match, at, months=3)


def half(match: re.Match[str], at: QueryTime) -> Span:
    return _share_of_year(match, at, months=6)


def numbered_half(match: re.Match[str], at: QueryTime) -> Span:
    """ "in H1", in a text about the past or the future."""
    if not at.looks_back and not at.looks_ahead:
        raise ValueError("it may be a heading")
    return half(match, at)


def _share_of_year(match: re.Match[str], at: QueryTime, months: int) -> Span:
    said = match["share"]
    number = 12 // months if said == "last" else int(ORDINALS.get(said, said))
    first = months * (number - 1) + 1
    year, which = at.now.year, match.groupdict().get("which")
    if match["year"]:
        year = int(match["year"])
    elif which in ("last", "next"):
        year += 1 if which == "next" else -1
    elif which != "this" and not at.looks_ahead:
        year -= first > at.now.month
    return midnight(year, first, 1), next_month(year, first + months - 1)


def season_of_year(match: re.Match[str], at: QueryTime) -> Span:
    """ "the autumn of last year"."""
    year = at.now.year + {"last": -1, "this": 0, "next": 1}[match["which"]]
    start = midnight(year, SEASONS[match["season"]], 1)
    return start, months_later(start, 3)


def season(match: re.Match[str], at: QueryTime) -> Span:
    first, which = SEASONS[match["season"]], match.groupdict().get("which")
    year = int(match["year"]) if match["year"] else at.now.year - (first > at.now.month)
    start = midnight(year, first, 1)
    if not match["year"]:
        if which == "last" and months_later(start, 3) > at.now:
            start = months_later(start, -12)
        elif which == "next" or (at.looks_ahead and months_later(start, 3) <= at.now):
            start = months_later(start, 12)
    return start, months_later(start, 3)


def part_of_season(match: re.Match[str], at: QueryTime) -> Span:
    """ "in late summer"."""
    return part_of(match, *season(match, at))


# ---------------------------------------------------------------------- relative to now


def ago(match: re.Match[str], at: QueryTime) -> Span:
    """A span around that moment: wider for larger units, narrower for amounts with halves."""
    centre = shifted(at.now, match, -1)
    if match["unit"] == "quarter" and not any(match[name] for name in HALVES):
        # A quarter is always one of the year.
        return unit_of("quarter", centre)
    usual = {"week": 4, "month": 16, "quarter": 45, "year": 120, "decade": 1_200}
    slack = timedelta(usual.get(match["unit"], int(match["count"] in VAGUE)))
    if "." in (match["count"] or "") or any(match[name] for name in HALVES):
        slack = timedelta((slack / 2).days)
    return day_of(centre - slack), day_of(centre + slack) + timedelta(days=1)


def exactly_ago(match: re.Match[str], at: QueryTime) -> Span:
    """ "a year ago today", "a week ago yesterday", "this time last year", "the same week last year"."""
    parts = match.groupdict()
    if "which" in parts:
        then = moved(at.now, -1 if parts["which"] == "last" else 1, parts["unit"])
    else:
        then = shifted(at.now, match, -1)
    if parts["exact"] == "this time":
        slack = timedelta({"week": 1, "month": 4}.get(parts["unit"], 16))
        return day_of(then - slack), day_of(then + slack) + timedelta(days=1)
    if parts["exact"] == "yesterday":
        then -= timedelta(days=1)
    return unit_of(parts["exact"].removeprefix("this "), then)


def longer_ago(match: re.Match[str], at: QueryTime) -> Span:
    """ "more than a week ago", "less than a week ago"."""
    then = shifted(at.now, match, -1)
    if match["how"] in ("less than", "under"):
        return day_of(then), day_after(at.now)
    return EARLIEST, day_of(then) + timedelta(days=1)


def in_units(match: re.Match[str], at: QueryTime) -> Span:
    """ "in two weeks", in a text about the future; otherwise it is a duration."""
    if not at.looks_ahead and not match["from_now"]:
        raise ValueError("it is how long something takes")
    centre = shifted(at.now, match, 1)
    slack = timedelta({"week": 4, "month": 16, "year": 120}.get(match["unit"], 0))
    return max(day_of(centre - slack), day_after(at.now)), day_of(centre + slack) + timedelta(days=1)


def last_units(match: re.Match[str], at: QueryTime) -> Span:
    return day_of(shifted(at.now, match, -1)), day_after(at.now)


def next_units(match: re.Match[str], at: QueryTime) -> Span:
    return day_of(at.now), day_of(shifted(at.now, match, 1)) + timedelta(days=1)


def some_units(direction: int) -> Reader:
    """ "in the past weeks", "in the coming days": a few."""

    def read(match: re.Match[str], at: QueryTime) -> Span:
        then = moved(at.now, direction * VAGUE["few"], match["some"])
        return day_of(min(then, at.now)), day_after(max(then, at.now))

    return read


def previous_unit(match: re.Match[str], at: QueryTime) -> Span:
    """ "last week" is a calendar week; "the past week" is the seven days until now."""
    unit = match["unit"]
    if match["which"].startswith("past") or match["which"] == "this past":
        return day_of(moved(at.now, -1, unit)), day_after(at.now)
    return part_of(match, *unit_of(unit, unit_before(unit, at.now)))


def next_unit(match: re.Match[str], at: QueryTime) -> Span:
    unit = match["unit"]
    if unit == "weekend" and not match["which"].startswith("next"):
        # "The coming weekend" is that of this week, "next weekend" the one after it.
        return unit_of(unit, at.now if at.now.weekday() < 5 else at.now + timedelta(days=7))
    following = unit_of(unit, at.now)[1] + timedelta(days=6 if unit == "weekend" else 0)
    return part_of(match, *unit_of(unit, following))


def unit_before_last(match: re.Match[str], at: QueryTime) -> Span:
    unit = match["unit"]
    return unit_of(unit, unit_before(unit, unit_before(unit, at.now)))


def unit_after_next(match: re.Match[str], at: QueryTime) -> Span:
    unit = match["unit"]
    for _ in range(2):
        at = at._replace(now=unit_of(unit, at.now)[1] + timedelta(days=5 if unit == "weekend" else 0))
    return unit_of(unit, at.now)


def rest_of_unit(match: re.Match[str], at: QueryTime) -> Span:
    return day_of(at.now), unit_of(match["unit"], at.now)[1]


def the_weekend(match: re.Match[str], at: QueryTime) -> Span:
    start, end = unit_of("weekend", at.now)
    return (start, end) if start <= at.now or at.looks_ahead else (start - timedelta(days=7), end - timedelta(days=7))


def this_unit(match: re.Match[str], at: QueryTime) -> Span:
    return part_of(match, *unit_of(match["unit"], at.now))


def last_days(days: int) -> Reader:
    def read(match: re.Match[str], at: QueryTime) -> Span:
        return day_of(at.now) - timedelta(days=days), day_after(at.now)

    return read


# ---------------------------------------------------------------------- amounts and years


def number_of(word: str) -> float:
    if word[0].isdigit():
        return float(word.replace(",", "."))
    return sum(NUMBERS[part] for part in re.split("[ -]", word))


def shifted(moment: datetime, match: re.Match[str], direction: int) -> datetime:
    """The moment earlier or later by the amount in a match; one unit if it has no number."""
    parts = match.groupdict()
    count = 0.0 if parts.get("half") else number_of(parts.get("count") or "a")
    if any(parts.get(name) for name in HALVES):
        count += 0.5
    return moved(moment, direction * count, parts.get("unit") or parts["one_unit"])


def month_number(word: str) -> int:
    return next(number for number, name in enumerate(MONTHS, start=1) if name[:3] == word[:3])


def year_of_month(match: re.Match[str], at: QueryTime, month: int) -> int:
    """The named year, or that of the last such month, or of the next one in a question about the future."""
    named = match.groupdict().get("year")
    if named:
        return int(named)
    if at.looks_ahead:
        return at.now.year + (month < at.now.month)
    return at.now.year - (month > at.now.month)


def years_for(at: QueryTime, begins: Callable[[int], datetime]) -> tuple[int, ...]:
    """The possible years of a day without one: the last, or the next; without a tense, the nearer one first."""
    today = day_of(at.now)
    # Leap days recur after at most eight years.
    days = {year: day for year in range(at.now.year - 8, at.now.year + 9) if (day := _if_any(begins, year)) is not None}
    last = max((year for year, day in days.items() if day <= today), default=None)
    following = min((year for year, day in days.items() if day > today), default=None)
    if last is None or following is None:
        raise ValueError("no such day")
    past, ahead = today - days[last], days[following] - today
    if at.looks_back or not past:
        return (last,)
    if at.looks_ahead:
        return (following,)
    return (following, last) if ahead < past else (last, following)


def _if_any(begins: Callable[[int], datetime], year: int) -> datetime | None:
    try:
        return begins(year)
    except ValueError:
        return None


def weekday_number(word: str) -> int:
    return next(number for number, name in enumerate(WEEKDAYS) if name[:3] == word[:3])
