"""Time expressions: the times that questions ask about, and words that only look like times."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from alma.text.timeexpr import TimeWindow, find, resolve
from alma.text.timeexpr.dates import may_speak_of_time
from alma.text.timeexpr.ranges import read_time
from alma.text.timeexpr.vocabulary import QueryTime

THURSDAY = datetime(2026, 5, 14, 10, 30, tzinfo=UTC)
NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
LEAP_DAY = datetime(2024, 2, 29, 12, tzinfo=UTC)
MONTH_END = datetime(2025, 3, 31, 23, 59, tzinfo=UTC)
SUNDAY = datetime(2026, 5, 17, 8, tzinfo=UTC)

EARLIEST, LATEST = "0001-01-02", "9999-12-30"


def days(window: TimeWindow | None) -> tuple[str, str] | None:
    """The first day of a window and the day it ends before."""
    return None if window is None else (window.start.date().isoformat(), window.end.date().isoformat())


@pytest.mark.parametrize(
    ("phrase", "start", "end"),
    [
        ("today", "2026-05-14", "2026-05-15"),
        ("this morning", "2026-05-14", "2026-05-15"),
        ("yesterday", "2026-05-13", "2026-05-14"),
        ("last night", "2026-05-13", "2026-05-14"),
        ("the day before yesterday", "2026-05-12", "2026-05-13"),
        ("last week", "2026-05-04", "2026-05-11"),
        ("last month", "2026-04-01", "2026-05-01"),
        ("last year", "2025-01-01", "2026-01-01"),
        ("last weekend", "2026-05-09", "2026-05-11"),
        ("last quarter", "2026-01-01", "2026-04-01"),
        ("this week", "2026-05-11", "2026-05-18"),
        ("this month", "2026-05-01", "2026-06-01"),
        ("this quarter", "2026-04-01", "2026-07-01"),
        ("this year", "2026-01-01", "2027-01-01"),
        ("this weekend", "2026-05-16", "2026-05-18"),
        ("last Monday", "2026-05-11", "2026-05-12"),
        ("last Thursday", "2026-05-07", "2026-05-08"),
        ("on Friday", "2026-05-08", "2026-05-09"),
        ("past week", "2026-05-07", "2026-05-15"),
        ("past month", "2026-04-14", "2026-05-15"),
        ("this past year", "2025-05-14", "2026-05-15"),
        ("recently", "2026-04-14", "2026-05-15"),
        ("lately", "2026-04-14", "2026-05-15"),
    ],
)
def test_a_time_is_counted_from_the_day_of_the_question(phrase: str, start: str, end: str) -> None:
    assert days(resolve(f"what did we decide {phrase}?", THURSDAY)) == (start, end)


@pytest.mark.parametrize(
    ("phrase", "start", "end"),
    [
        ("yesterday", "2025-12-31", "2026-01-01"),
        ("last week", "2025-12-22", "2025-12-29"),
        ("this week", "2025-12-29", "2026-01-05"),
        ("last month", "2025-12-01", "2026-01-01"),
        ("last quarter", "2025-10-01", "2026-01-01"),
        ("last year", "2025-01-01", "2026-01-01"),
        ("last weekend", "2025-12-27", "2025-12-29"),
        ("in December", "2025-12-01", "2026-01-01"),
        ("in January", "2026-01-01", "2026-02-01"),
        ("on January 2nd", "2025-01-02", "2025-01-03"),
        ("this winter", "2025-12-01", "2026-03-01"),
        ("last winter", "2024-12-01", "2025-03-01"),
        ("Q4", "2025-10-01", "2026-01-01"),
    ],
)
def test_on_the_first_of_january_the_past_is_last_year(phrase: str, start: str, end: str) -> None:
    assert days(resolve(f"what happened {phrase}", NEW_YEAR)) == (start, end)


@pytest.mark.parametrize(
    ("phrase", "start", "end"),
    [
        ("today", "2024-02-29", "2024-03-01"),
        ("last month", "2024-01-01", "2024-02-01"),
        ("past year", "2023-02-28", "2024-03-01"),
        ("in February", "2024-02-01", "2024-03-01"),
        ("29 February", "2024-02-29", "2024-03-01"),
        ("a year ago", "2022-10-31", "2023-06-29"),
    ],
)
def test_on_a_leap_day_a_year_earlier_is_the_day_before(phrase: str, start: str, end: str) -> None:
    assert days(resolve(phrase, LEAP_DAY)) == (start, end)


@pytest.mark.parametrize(
    ("phrase", "start", "end"),
    [
        ("last month", "2025-02-01", "2025-03-01"),
        ("past month", "2025-02-28", "2025-04-01"),
        ("this month", "2025-03-01", "2025-04-01"),
        ("last week", "2025-03-24", "2025-03-31"),
        ("last Monday", "2025-03-24", "2025-03-25"),
        ("one month ago", "2025-02-12", "2025-03-17"),
    ],
)
def test_at_the_end_of_a_long_month_a_month_earlier_is_the_end_of_a_short_one(
    phrase: str, start: str, end: str
) -> None:
    assert days(resolve(phrase, MONTH_END)) == (start, end)


@pytest.mark.parametrize(
    ("phrase", "start", "end"),
    [
        ("in June of last year", "2025-06-01", "2025-07-01"),
        ("June last year", "2025-06-01", "2025-07-01"),
        ("last year in June", "2025-06-01", "2025-07-01"),
        ("since June two years ago", "2024-06-01", LATEST),
        ("in the third quarter of 2025", "2025-07-01", "2025-10-01"),
        ("in the first half of 2025", "2025-01-01", "2025-07-01"),
        ("in the second half of the year", "2025-07-01", "2026-01-01"),
        ("in 2025-03", "2025-03-01", "2025-04-01"),
        ("the week before last", "2026-04-27", "2026-05-04"),
        ("the month before last", "2026-03-01", "2026-04-01"),
        ("the weekend before last", "2026-05-02", "2026-05-04"),
        ("over the weekend", "2026-05-09", "2026-05-11"),
        ("a fortnight ago", "2026-04-26", "2026-05-05"),
        ("within the last hour", "2026-05-14", "2026-05-15"),
        ("in the past day", "2026-05-13", "2026-05-15"),
        ("from 3 to 5 May", "2026-05-03", "2026-05-06"),
        ("between the 3rd and the 5th of May 2025", "2025-05-03", "2025-05-06"),
        ("between Monday and Wednesday", "2026-05-11", "2026-05-14"),
        ("from Thursday to Monday", "2026-05-07", "2026-05-12"),
        ("from Saturday to Friday", "2026-05-02", "2026-05-09"),
        ("around Christmas", "2025-12-24", "2025-12-27"),
        ("on New Year's Eve", "2025-12-31", "2026-01-01"),
        ("before Halloween", EARLIEST, "2025-10-31"),
    ],
)
def test_people_name_a_time_in_many_ways(phrase: str, start: str, end: str) -> None:
    assert days(resolve(f"what did we decide {phrase}?", THURSDAY)) == (start, end)


def test_a_day_begins_where_the_question_is_asked() -> None:
    in_tokyo = datetime(2026, 5, 14, 1, 30, tzinfo=ZoneInfo("Asia/Tokyo"))
    window = resolve("what did we decide yesterday?", in_tokyo)
    assert window is not None
    assert window.start == datetime(2026, 5, 12, 15, tzinfo=UTC)
    assert window.end == datetime(2026, 5, 13, 15, tzinfo=UTC)
    # The clocks went forward in between.
    in_berlin = datetime(2026, 3, 30, 9, tzinfo=ZoneInfo("Europe/Berlin"))
    window = resolve("what did we decide last weekend?", in_berlin)
    assert window is not None
    assert window.end - window.start == timedelta(hours=47)


def test_on_a_sunday_the_weekend_is_this_one() -> None:
    assert days(resolve("over the weekend", SUNDAY)) == ("2026-05-16", "2026-05-18")


def test_on_a_sunday_the_last_weekend_is_over() -> None:
    assert days(resolve("last weekend", SUNDAY)) == ("2026-05-09", "2026-05-11")
    assert days(resolve("this weekend", SUNDAY)) == ("2026-05-16", "2026-05-18")


def test_a_leap_day_without_a_year_is_the_last_one_there_was() -> None:
    assert days(resolve("what happened on 29 February", THURSDAY)) == ("2024-02-29", "2024-03-01")


@pytest.mark.parametrize(
    ("phrase", "start", "end"),
    [
        ("5 minutes ago", "2026-05-14", "2026-05-15"),
        ("an hour ago", "2026-05-14", "2026-05-15"),
        ("two days ago", "2026-05-12", "2026-05-13"),
        ("10 days back", "2026-05-04", "2026-05-05"),
        ("a couple of days ago", "2026-05-11", "2026-05-14"),
        ("a few days ago", "2026-05-10", "2026-05-13"),
        ("3 weeks ago", "2026-04-19", "2026-04-28"),
        ("two months ago", "2026-02-26", "2026-03-31"),
        ("3 years ago", "2023-01-14", "2023-09-12"),
    ],
)
def test_a_time_ago_is_meant_less_exactly_the_longer_ago_it_is(phrase: str, start: str, end: str) -> None:
    assert days(resolve(f"what broke {phrase}", THURSDAY)) == (start, end)


@pytest.mark.parametrize(
    ("phrase", "start"),
    [
        ("in the last 10 days", "2026-05-04"),
        ("in the last 24 hours", "2026-05-13"),
        ("over the past two weeks", "2026-04-30"),
        ("within the last three months", "2026-02-14"),
        ("the previous couple of years", "2024-05-14"),
        ("last few days", "2026-05-11"),
    ],
)
def test_the_last_so_many_days_end_today(phrase: str, start: str) -> None:
    assert days(resolve(f"what changed {phrase}?", THURSDAY)) == (start, "2026-05-15")


@pytest.mark.parametrize(
    ("phrase", "start", "end"),
    [
        ("2024-03-05", "2024-03-05", "2024-03-06"),
        ("on 2024/3/5", "2024-03-05", "2024-03-06"),
        ("2024.03.05", "2024-03-05", "2024-03-06"),
        ("2024-03-05T10:00:00Z", "2024-03-05", "2024-03-06"),
        ("8 May 2023", "2023-05-08", "2023-05-09"),
        ("8 Sep. 2023", "2023-09-08", "2023-09-09"),
        ("the 5th of May 2023", "2023-05-05", "2023-05-06"),
        ("May 8, 2023", "2023-05-08", "2023-05-09"),
        ("May 8th", "2026-05-08", "2026-05-09"),
        ("May 20th", "2025-05-20", "2025-05-21"),
        ("29 Feb 2024", "2024-02-29", "2024-03-01"),
        ("31 December 1999", "1999-12-31", "2000-01-01"),
        ("in March", "2026-03-01", "2026-04-01"),
        ("in May", "2026-05-01", "2026-06-01"),
        ("in June", "2025-06-01", "2025-07-01"),
        ("this March", "2026-03-01", "2026-04-01"),
        ("last March", "2026-03-01", "2026-04-01"),
        ("last May", "2025-05-01", "2025-06-01"),
        ("March 2024", "2024-03-01", "2024-04-01"),
        ("Sept 2023", "2023-09-01", "2023-10-01"),
        ("December of 2023", "2023-12-01", "2024-01-01"),
        ("early March", "2026-03-01", "2026-03-11"),
        ("mid-March 2024", "2024-03-11", "2024-03-21"),
        ("the end of March", "2026-03-21", "2026-04-01"),
        ("in 2023", "2023-01-01", "2024-01-01"),
        ("in early 2024", "2024-01-01", "2024-05-02"),
        ("late 2023", "2023-09-01", "2024-01-01"),
        ("Q1 2024", "2024-01-01", "2024-04-01"),
        ("Q3", "2025-07-01", "2025-10-01"),
        ("last summer", "2025-06-01", "2025-09-01"),
        ("in the summer of 2022", "2022-06-01", "2022-09-01"),
        ("last winter", "2025-12-01", "2026-03-01"),
        ("this spring", "2026-03-01", "2026-06-01"),
        ("last spring", "2025-03-01", "2025-06-01"),
        ("in fall 2024", "2024-09-01", "2024-12-01"),
    ],
)
def test_a_date_is_the_last_one_of_that_name_unless_its_year_is_named(phrase: str, start: str, end: str) -> None:
    assert days(resolve(f"what happened {phrase}, and why", THURSDAY)) == (start, end)


@pytest.mark.parametrize(
    ("phrase", "start", "end"),
    [
        ("since May", "2026-05-01", LATEST),
        ("since 2022", "2022-01-01", LATEST),
        ("since Monday", "2026-05-11", LATEST),
        ("since yesterday", "2026-05-13", LATEST),
        ("after last week", "2026-05-11", LATEST),
        ("after 2024-03-05", "2024-03-06", LATEST),
        ("following the 5th of May 2023", "2023-05-06", LATEST),
        ("before June 2023", EARLIEST, "2023-06-01"),
        ("before last week", EARLIEST, "2026-05-04"),
        ("until yesterday", EARLIEST, "2026-05-13"),
        ("prior to 2024", EARLIEST, "2024-01-01"),
        ("no earlier than last week", "2026-05-04", LATEST),
    ],
)
def test_a_time_may_be_bounded_on_one_side(phrase: str, start: str, end: str) -> None:
    assert days(resolve(f"what did we ship {phrase}?", THURSDAY)) == (start, end)


@pytest.mark.parametrize(
    ("phrase", "start", "end"),
    [
        ("between March and May 2023", "2023-03-01", "2023-06-01"),
        ("between March 2022 and May 2023", "2022-03-01", "2023-06-01"),
        ("from March to May", "2026-03-01", "2026-06-01"),
        ("from 3 May to 5 May", "2026-05-03", "2026-05-06"),
        ("from 3 May until 5 May 2023", "2023-05-03", "2023-05-06"),
        ("between 2022 and 2023", "2022-01-01", "2024-01-01"),
        ("between Monday and Wednesday", "2026-05-11", "2026-05-14"),
        ("from 2024-03-05 to 2024-03-07", "2024-03-05", "2024-03-08"),
    ],
)
def test_a_time_may_lie_between_two_others(phrase: str, start: str, end: str) -> None:
    assert days(resolve(f"what did we ship {phrase}?", THURSDAY)) == (start, end)


@pytest.mark.parametrize(
    ("phrase", "start", "end"),
    [
        ("March to June 2025", "2025-03-01", "2025-07-01"),
        ("March-June 2025", "2025-03-01", "2025-07-01"),
        ("March \u2013 June 2025", "2025-03-01", "2025-07-01"),
        ("April 2025 through June 2025", "2025-04-01", "2025-07-01"),
        ("in March and April 2025", "2025-03-01", "2025-05-01"),
        ("in March, April and May 2025", "2025-03-01", "2025-06-01"),
        ("on the 17th and 18th of April", "2026-04-17", "2026-04-19"),
        ("yesterday and today", "2026-05-13", "2026-05-15"),
        ("3-5 May 2025", "2025-05-03", "2025-05-06"),
        ("May 3-5, 2025", "2025-05-03", "2025-05-06"),
        ("from May 3 to 5", "2026-05-03", "2026-05-06"),
        ("in 2023-2024", "2023-01-01", "2025-01-01"),
        ("from 12.03.2025 to 15.03.2025", "2025-03-12", "2025-03-16"),
        ("between Q1 and Q3 2025", "2025-01-01", "2025-10-01"),
        ("from December 2024 to February", "2024-12-01", "2025-03-01"),
        ("from December to February 2025", "2024-12-01", "2025-03-01"),
        ("from November to February", "2025-11-01", "2026-03-01"),
        ("from March until now", "2026-03-01", "2026-05-15"),
        ("from March on", "2026-03-01", LATEST),
        ("from March onwards", "2026-03-01", LATEST),
        ("May 2025 onwards", "2025-05-01", LATEST),
        ("3-5 November 2025", "2025-11-03", "2025-11-06"),
        ("on 12\u201314 April", "2026-04-12", "2026-04-15"),
        ("2-3 weeks ago", "2026-04-19", "2026-05-05"),
        ("two or three days ago", "2026-05-11", "2026-05-13"),
        ("ten to twelve days ago", "2026-05-02", "2026-05-05"),
    ],
)
def test_a_time_may_reach_from_one_date_to_another(phrase: str, start: str, end: str) -> None:
    assert days(resolve(f"what did we ship {phrase}?", THURSDAY)) == (start, end)


def test_two_dates_that_do_not_touch_are_two_times() -> None:
    window = resolve("what did we ship in March and July 2025?", THURSDAY)
    assert window is not None
    spans = [(start.date().isoformat(), end.date().isoformat()) for start, end in window.spans]
    assert spans == [("2025-03-01", "2025-04-01"), ("2025-07-01", "2025-08-01")]
    assert [window.holds(datetime(2025, month, 5, tzinfo=UTC)) for month in (3, 4, 7)] == [True, False, True]


@pytest.mark.parametrize(
    ("phrase", "start", "end"),
    [
        ("half a year ago", "2025-09-15", "2026-01-14"),
        ("a year and a half ago", "2024-09-15", "2025-01-14"),
        ("two and a half years ago", "2023-09-15", "2024-01-14"),
        ("1.5 years ago", "2024-09-15", "2025-01-14"),
        ("half an hour ago", "2026-05-14", "2026-05-15"),
        ("thirteen days ago", "2026-05-01", "2026-05-02"),
        ("twenty-one days ago", "2026-04-23", "2026-04-24"),
        ("in the last year and a half", "2024-11-14", "2026-05-15"),
        ("in the past half year", "2025-11-14", "2026-05-15"),
        ("in the past weeks", "2026-04-23", "2026-05-15"),
        ("more than a week ago", EARLIEST, "2026-05-08"),
        ("less than a month ago", "2026-04-14", "2026-05-15"),
        ("the other day", "2026-05-04", "2026-05-15"),
    ],
)
def test_a_time_ago_may_have_halves_and_larger_numbers(phrase: str, start: str, end: str) -> None:
    assert days(resolve(f"what broke {phrase}?", THURSDAY)) == (start, end)


@pytest.mark.parametrize(
    ("phrase", "start", "end"),
    [
        ("until the end of March", EARLIEST, "2026-04-01"),
        ("before the end of March", EARLIEST, "2026-04-01"),
        ("by the end of last year", EARLIEST, "2026-01-01"),
        ("after the end of March", "2026-04-01", LATEST),
        ("no later than 3 May 2025", EARLIEST, "2025-05-04"),
        ("later than 3 May 2025", "2025-05-04", LATEST),
        ("throughout 2024", "2024-01-01", "2025-01-01"),
        ("throughout March", "2026-03-01", "2026-04-01"),
        ("in H1 2025", "2025-01-01", "2025-07-01"),
        ("in 2025 H2", "2025-07-01", "2026-01-01"),
        ("in Q1 of last year", "2025-01-01", "2025-04-01"),
        ("in the last quarter of 2025", "2025-10-01", "2026-01-01"),
        ("on 12.03.2025", "2025-03-12", "2025-03-13"),
        ("on 3/14/2025", "2025-03-14", "2025-03-15"),
        ("on 14/3/2025", "2025-03-14", "2025-03-15"),
        ("in 03/2025", "2025-03-01", "2025-04-01"),
        ("Christmas 2024", "2024-12-24", "2024-12-27"),
        ("on Christmas Eve", "2025-12-24", "2025-12-25"),
        ("the week before Christmas", "2025-12-17", "2025-12-24"),
        ("two days after 3 May 2025", "2025-05-04", "2025-05-06"),
        ("the day before 3 May", "2026-05-02", "2026-05-03"),
        ("the week of March 3rd", "2026-03-02", "2026-03-09"),
        ("the second week of March 2025", "2025-03-08", "2025-03-15"),
        ("in week 12 of 2025", "2025-03-17", "2025-03-24"),
        ("in 2025-W12", "2025-03-17", "2025-03-24"),
        ("summer 2024", "2024-06-01", "2024-09-01"),
        ("in the 1990s", "1990-01-01", "2000-01-01"),
        ("late last year", "2025-09-01", "2026-01-01"),
        ("at the beginning of the year", "2026-01-01", "2026-05-02"),
        ("on the 5th", "2026-05-05", "2026-05-06"),
        ("on the 20th of last month", "2026-04-20", "2026-04-21"),
        ("Monday", "2026-05-11", "2026-05-12"),
    ],
)
def test_untrusted_sources_name_a_time_in_still_other_ways(phrase: str, start: str, end: str) -> None:
    assert days(resolve(f"what did we ship {phrase}?", THURSDAY)) == (start, end)


@pytest.mark.parametrize(
    ("phrase", "start", "end"),
    [
        ("two Fridays ago", "2026-05-01", "2026-05-02"),
        ("the Friday before last", "2026-05-01", "2026-05-02"),
        ("Tuesday last week", "2026-05-05", "2026-05-06"),
        ("last week on Tuesday", "2026-05-05", "2026-05-06"),
        ("a week ago Tuesday", "2026-05-05", "2026-05-06"),
        ("a week ago Thursday", "2026-05-07", "2026-05-08"),
        ("on Monday the 4th", "2026-05-04", "2026-05-05"),
        ("on Friday the 13th", "2026-03-13", "2026-03-14"),
        ("on Mon", "2026-05-11", "2026-05-12"),
        ("the third Tuesday of April", "2026-04-21", "2026-04-22"),
        ("the last Friday of April", "2026-04-24", "2026-04-25"),
        ("the first Monday of last month", "2026-04-06", "2026-04-07"),
        ("on the tenth of April", "2026-04-10", "2026-04-11"),
        ("on the twenty-first of April", "2026-04-21", "2026-04-22"),
        ("on 10-Apr-2026", "2026-04-10", "2026-04-11"),
        ("on 10.04.", "2026-04-10", "2026-04-11"),
        ("on 4/30", "2026-04-30", "2026-05-01"),
        ("a year ago today", "2025-05-14", "2025-05-15"),
        ("a year ago this week", "2025-05-12", "2025-05-19"),
        ("this time last year", "2025-04-28", "2025-05-31"),
        ("the same day last month", "2026-04-14", "2026-04-15"),
        ("three quarters ago", "2025-07-01", "2025-10-01"),
        ("2 wks ago", "2026-04-26", "2026-05-05"),
        ("3 d ago", "2026-05-11", "2026-05-12"),
        ("in calendar week 12", "2026-03-16", "2026-03-23"),
        ("in KW 50", "2025-12-08", "2025-12-15"),
        ("in week 12", "2026-03-16", "2026-03-23"),
        ("on 2026-W12-3", "2026-03-18", "2026-03-19"),
        ("in FY25", "2025-01-01", "2026-01-01"),
        ("in FY2025 Q2", "2025-04-01", "2025-07-01"),
        ("in 2025 Q2", "2025-04-01", "2025-07-01"),
        ("in the last fiscal quarter", "2026-01-01", "2026-04-01"),
        ("in Q1-Q2 2025", "2025-01-01", "2025-07-01"),
        ("YTD", "2026-01-01", "2027-01-01"),
        ("in the current month", "2026-05-01", "2026-06-01"),
        ("in summer '24", "2024-06-01", "2024-09-01"),
        ("in the autumn of last year", "2025-09-01", "2025-12-01"),
        ("in the nineties", "1990-01-01", "2000-01-01"),
        ("in the first half of April", "2026-04-01", "2026-04-16"),
        ("in the first ten days of April", "2026-04-01", "2026-04-11"),
        ("in the last two weeks of April", "2026-04-17", "2026-05-01"),
        ("on the last day of last month", "2026-04-30", "2026-05-01"),
        ("in the first three months of 2025", "2025-01-01", "2025-04-01"),
        ("over Easter", "2026-04-03", "2026-04-07"),
        ("on Good Friday 2024", "2024-03-29", "2024-03-30"),
        ("last Thanksgiving", "2025-11-27", "2025-11-28"),
        ("last Christmas", "2025-12-24", "2025-12-27"),
        ("on Memorial Day", "2025-05-26", "2025-05-27"),
        ("in March/April", "2026-03-01", "2026-05-01"),
        ("in March '25", "2025-03-01", "2025-04-01"),
        ("in Sept. '25", "2025-09-01", "2025-10-01"),
        ("in Q4'25", "2025-10-01", "2026-01-01"),
        ("in Q4/24", "2024-10-01", "2025-01-01"),
        ("in Mar-2025", "2025-03-01", "2025-04-01"),
        ("a week ago yesterday", "2026-05-06", "2026-05-07"),
        ("in the past decade", "2016-05-14", "2026-05-15"),
    ],
)
def test_a_time_is_told_by_weekdays_feasts_parts_and_shorthand(phrase: str, start: str, end: str) -> None:
    assert days(resolve(f"what did we ship {phrase}?", THURSDAY)) == (start, end)


@pytest.mark.parametrize(
    ("phrase", "start", "end"),
    [
        ("two summers ago", "2024-06-01", "2024-09-01"),
        ("the summer before last", "2024-06-01", "2024-09-01"),
        ("the winter before last", "2024-12-01", "2025-03-01"),
        ("the March before last", "2025-03-01", "2025-04-01"),
        ("the June before last", "2024-06-01", "2024-07-01"),
        ("in June of the year before last", "2024-06-01", "2024-07-01"),
        ("in the autumn of the year before last", "2024-09-01", "2024-12-01"),
        ("two Christmases ago", "2024-12-24", "2024-12-27"),
        ("the Easter before last", "2025-04-18", "2025-04-22"),
        ("two weekends ago", "2026-05-02", "2026-05-04"),
        ("the night before last", "2026-05-12", "2026-05-13"),
        ("three nights ago", "2026-05-11", "2026-05-12"),
    ],
)
def test_what_comes_again_and_again_is_told_by_how_many_there_were_since(phrase: str, start: str, end: str) -> None:
    assert days(resolve(f"what did we ship {phrase}?", THURSDAY)) == (start, end)


def test_a_day_without_a_year_is_either_where_no_one_says_whether_it_is_over() -> None:
    window = resolve("notes of 2 January", datetime(2026, 11, 17, tzinfo=UTC))
    assert window is not None
    assert [start.date().isoformat() for start, _ in window.spans] == ["2027-01-02", "2026-01-02"]


def test_the_coming_weekend_is_this_one_and_the_next_one_follows() -> None:
    assert days(resolve("what is planned for the coming weekend?", THURSDAY)) == ("2026-05-16", "2026-05-18")
    assert days(resolve("what is planned for next weekend?", THURSDAY)) == ("2026-05-23", "2026-05-25")


@pytest.mark.parametrize(
    ("phrase", "inside", "outside"),
    [
        ("yesterday evening", 13 * 24 + 20, 13 * 24 + 9),
        ("this morning", 14 * 24 + 8, 14 * 24 + 16),
        ("last night", 14 * 24 + 2, 13 * 24 + 10),
        ("on the afternoon of 3 May", 3 * 24 + 15, 3 * 24 + 8),
        ("on Monday morning", 11 * 24 + 8, 11 * 24 + 22),
    ],
)
def test_a_part_of_a_day_counts_more_than_the_rest_of_it(phrase: str, inside: int, outside: int) -> None:
    window = resolve(f"what did we ship {phrase}?", THURSDAY)
    april = datetime(2026, 4, 30, tzinfo=UTC)
    assert window is not None
    meant, other = (april + timedelta(hours=hours) for hours in (inside, outside))
    assert window.holds(meant)
    assert window.holds(other)
    assert window.share(meant) > window.share(other)


def test_a_date_that_can_be_read_in_two_ways_is_either() -> None:
    window = resolve("what happened on 3/12/2025?", THURSDAY)
    assert window is not None
    assert [start.date().isoformat() for start, _ in window.spans] == ["2025-03-12", "2025-12-03"]


@pytest.mark.parametrize(
    ("question", "start", "end"),
    [
        ("what happens tomorrow?", "2026-05-15", "2026-05-16"),
        ("what is on the day after tomorrow?", "2026-05-16", "2026-05-17"),
        ("what is planned for next week?", "2026-05-18", "2026-05-25"),
        ("what is due in the next ten days?", "2026-05-14", "2026-05-25"),
        ("what is on next Monday?", "2026-05-18", "2026-05-19"),
        ("what is due on Friday?", "2026-05-15", "2026-05-16"),
        ("what is due by Friday?", "2026-05-14", "2026-05-16"),
        ("what is due before the end of the month?", "2026-05-14", "2026-06-01"),
        ("what will happen in two weeks?", "2026-05-24", "2026-06-02"),
        ("what will we ship in March?", "2027-03-01", "2027-04-01"),
        ("what is on this Saturday?", "2026-05-16", "2026-05-17"),
        ("which events are on 20 May?", "2026-05-20", "2026-05-21"),
        ("which events were on 20 May?", "2025-05-20", "2025-05-21"),
        ("which events happened on 20 May?", "2025-05-20", "2025-05-21"),
        ("what has been open since 20 May?", "2025-05-20", LATEST),
        ("what is planned for the weekend?", "2026-05-16", "2026-05-18"),
        ("where will we go next summer?", "2026-06-01", "2026-09-01"),
        ("what is planned for the week after next?", "2026-05-25", "2026-06-01"),
        ("what is planned for the weekend after next?", "2026-05-30", "2026-06-01"),
        ("what is due in the month after next?", "2026-07-01", "2026-08-01"),
        ("what is planned for the rest of the month?", "2026-05-14", "2026-06-01"),
        ("what will happen in a fortnight?", "2026-05-24", "2026-06-02"),
    ],
)
def test_a_question_may_look_ahead(question: str, start: str, end: str) -> None:
    assert days(resolve(question, THURSDAY)) == (start, end)


def test_the_first_of_two_dates_has_the_year_of_the_second_even_while_its_own_is_near() -> None:
    asked = datetime(2022, 6, 1, tzinfo=UTC)
    assert days(resolve("between March and May 2023", asked)) == ("2023-03-01", "2023-06-01")


@pytest.mark.parametrize(
    ("question", "anchor", "side"),
    [
        ("what did we decide before the release?", "the release", "before"),
        ("what broke after our migration", "our migration", "after"),
        ("since the outage, what changed", "the outage", "after"),
        ("what was slow before we moved to Postgres?", "we moved to postgres", "before"),
        ("which tests before the release did we skip?", "the release", "before"),
        ("what broke before the 2.0 release?", "the 2.0 release", "before"),
        ("Prior to the 2.0 release, what was slow?", "the 2.0 release", "before"),
        ("what did we decide before release 2.0?", "release 2.0", "before"),
        ("what broke after launch?", "launch", "after"),
        ("what did we use before Anna left?", "anna left", "before"),
        ("what did they do after Anna's wedding?", "anna's wedding", "after"),
        ("what changed since version 2.1?", "version 2.1", "after"),
        ("what did he do after his graduation?", "his graduation", "after"),
        ("what was missing until the migration?", "the migration", "before"),
        ("what changed between the last release and now?", "the last release", "after"),
        ('what did we decide before the "Phoenix" launch?', "the phoenix launch", "before"),
    ],
)
def test_an_event_without_a_date_is_left_for_memory_to_date(question: str, anchor: str, side: str) -> None:
    window = resolve(question, THURSDAY)
    assert window is not None
    assert (window.anchor, window.side) == (anchor, side)


@pytest.mark.parametrize(
    "question",
    [
        "how many days before the release did we freeze the code?",
        "how long was the shop down after the migration",
        "how much time passed since we moved to Postgres?",
    ],
)
def test_who_asks_how_long_it_was_between_two_events_wants_to_know_of_both(question: str) -> None:
    assert resolve(question, THURSDAY) is None


def test_once_its_event_is_dated_a_time_lies_on_one_side_of_it() -> None:
    before, after = (resolve(f"what broke {side} the release", THURSDAY) for side in ("before", "after"))
    assert before is not None
    assert after is not None
    assert days(before.anchored(NEW_YEAR, NEW_YEAR)) == (EARLIEST, "2026-01-01")
    assert days(after.anchored(NEW_YEAR, NEW_YEAR)) == ("2026-01-01", LATEST)


@pytest.mark.parametrize(
    "question",
    [
        "",
        "you may start",
        "may I",
        "march forward",
        "in order to march",
        "the second item",
        "mid-level",
        "decide 10 things",
        "12 monkeys",
        "what did April say",
        "tell me about June",
        "a december release",
        "version 2024.1",
        "since 2024.1",
        "in 2024-13",
        "python 2023.5.1",
        "upgrade to 1.2.3",
        "in version 1.2 may 3.4 work",
        "port 2020",
        "in 2020px",
        "in Spring Boot",
        "fall back to the cache",
        "call back",
        "the last time",
        "after all",
        "since then",
        "since it works",
        "before that",
        "a week",
        "this may be a bug",
        "may 5 users log in at once?",
        "what did April and June tell us",
        "march to victory",
        "wait a second",
        "the second half of the file",
        "finish in 5 minutes",
        "how did we finish in two weeks?",
        "retry in 3 days",
        "upgrade from 2.0 to 3.1",
        "is it up 24/7?",
        "it costs 12.50 or 3.99",
        "10.0.0.1 and 192.168.1.20",
        "connect to 10.12.20.25",
        "3/4 and 1/2 of 3.5",
        "section 3.12.2 of the manual",
        "release 12.03.2025",
        "ports 2000-2010",
        "Visual Studio 2022 or later",
        "in 2000 files",
        "the text in h1",
        "who works Monday to Friday?",
        "the next release",
        "look after Anna's cat",
        "what should be checked before release?",
        "what is to be done before deploying",
        "after each deployment",
        "since I've accumulated miles",
        "the last month of the contract",
        "the first day of school",
        "the second of the two",
        "the first of many tests",
        "what changed on 5/10 machines",
        "does it run on 3.9.",
        "in week 3 of the course",
        "150 kw",
        "ticket 42 of the current sprint",
        "the new year plan",
        "the same day delivery",
        "what do a quarter of the users pay?",
        "does it run on 3.11.04?",
        'what does the "Today" widget show?',
        "who sang “Never on Sunday”?",
    ],
)
def test_what_only_looks_like_a_time_is_none(question: str) -> None:
    assert resolve(question, THURSDAY) is None


@pytest.mark.parametrize(
    "question",
    ["31 February 2024", "February 30, 2024", "29 February 2023", "on 2024-13-45", "2023-02-29", "9999 years ago"],
)
def test_an_impossible_date_is_none(question: str) -> None:
    assert resolve(question, THURSDAY) is None


def test_beside_an_impossible_date_another_one_is_read() -> None:
    assert days(resolve("on 31 February or yesterday", THURSDAY)) == ("2026-05-13", "2026-05-14")


@pytest.mark.parametrize(
    ("question", "phrase"),
    [
        ("what did we decide  Last\n Week?", "last week"),
        ("shipped since May", "since may"),
        ("from 3 May to 5 May", "from 3 may to 5 may"),
        ("before the release", "before the release"),
        ('"what did we do last week?"', "last week"),
    ],
)
def test_a_time_carries_the_words_it_was_read_from(question: str, phrase: str) -> None:
    window = resolve(question, THURSDAY)
    assert window is not None
    assert window.phrase == phrase


def test_a_time_holds_its_start_and_not_its_end() -> None:
    window = resolve("yesterday", THURSDAY)
    assert window is not None
    assert window.holds(window.start)
    assert window.holds(window.end - timedelta(microseconds=1))
    assert not window.holds(window.end)


def test_a_time_at_the_end_of_a_long_text_is_not_what_it_asks_for() -> None:
    assert resolve("word " * 1000 + "yesterday", THURSDAY) is None


WORDS = """
last this past previous in the of on since before after until between from and to early mid late may march feb 29 31 8th
2024 2023-02-29 1999 monday weekend week month quarter year days ago 9999 a couple few 3 q1 summer winter yesterday
today recently hours minutes release we our tomorrow next coming will half an weeks through throughout h1 by end
12.03.2025 3/12/2025 31.02.2025 onwards on 2025-w54 week easter fridays fy25 calendar cw first second same time
today night morning decade nineties fifth of 10-apr-2025 31.02. ytd christmas
""".split()  # noqa: SIM905


def questions() -> SearchStrategy[str]:
    return st.text() | st.lists(st.sampled_from(WORDS) | st.text(max_size=5), max_size=12).map(" ".join)


@settings(max_examples=1000, deadline=None, derandomize=True, database=None)
@given(
    question=questions(),
    now=st.datetimes(datetime(1, 1, 1), datetime(9998, 12, 31), timezones=st.just(UTC)),  # noqa: DTZ001
)
@example(question="before yesterday", now=datetime(1, 1, 2, tzinfo=UTC))
@example(question="after this year", now=datetime(9998, 12, 31, tzinfo=UTC))
@example(question="before the release", now=datetime(1, 1, 1, tzinfo=UTC))
def test_every_question_can_be_read_and_every_time_ends_after_it_starts(question: str, now: datetime) -> None:
    window = resolve(question, now)
    assert window is None or window.start < window.end


_RULE_WORDS = st.sampled_from(
    """
    in on at the of this last past previous early mid-may late jan sept may-day 3rd 2024 2024-03 q2 first quarter half
    year years day days ago back earlier christmas valentine's new spring yesterday night today morning week weekend
    monday recently between from to and before until till prior after since following we deployed it maybe marching
    tomorrow next coming two weeks months by end onwards through throughout h1 12.03.2025 3/12/2025 ahead now other
    """.split()  # noqa: SIM905 - as people say them
)


@settings(max_examples=300)
@given(words=st.lists(_RULE_WORDS, max_size=8))
def test_no_time_is_overlooked_because_no_word_seems_to_speak_of_one(words: list[str]) -> None:
    text = " ".join(words)
    if not may_speak_of_time(text):
        assert read_time(text, QueryTime(THURSDAY, looks_ahead=True)) is None


@pytest.mark.parametrize("words", ["and may ", "monday, ", "to 5 ", "before the ", "in march and ", "1-", "half a "])
def test_a_text_that_says_the_same_over_and_over_is_read_in_no_time(words: str) -> None:
    started = time.process_time()
    resolve(words * 400, THURSDAY)
    assert time.process_time() - started < 1.0


@pytest.mark.parametrize(
    ("question", "start", "end"),
    [
        ("Was haben wir gestern entschieden?", "2025-12-31", "2026-01-01"),
        ("Was ist vor drei Tagen passiert?", "2025-12-29", "2025-12-30"),
        ("Was war letzte Woche los?", "2025-12-22", "2025-12-29"),
        ("Wer kam am 3. Mai 2025?", "2025-05-03", "2025-05-04"),
        ("Was geschah im März 2025?", "2025-03-01", "2025-04-01"),
        ("Qu’est-ce qu’on a décidé hier ?", "2025-12-31", "2026-01-01"),
        ("Qui est venu il y a trois jours ?", "2025-12-29", "2025-12-30"),
        ("Que s’est-il passé la semaine dernière ?", "2025-12-22", "2025-12-29"),
        ("¿Qué pasó la semana pasada?", "2025-12-22", "2025-12-29"),
        ("¿Qué pasó el 3 de mayo de 2025?", "2025-05-03", "2025-05-04"),
        ("Cosa è successo due giorni fa?", "2025-12-30", "2025-12-31"),
        ("Cosa è successo a marzo 2025?", "2025-03-01", "2025-04-01"),
        ("O que aconteceu no mês passado?", "2025-12-01", "2026-01-01"),
        ("Wat is er vorige maand gebeurd?", "2025-12-01", "2026-01-01"),
    ],
)
def test_times_are_read_in_other_languages(question: str, start: str, end: str) -> None:
    assert days(resolve(question, NEW_YEAR)) == (start, end)


@pytest.mark.parametrize("question", ["Is there an estate tax?", "Who met Mona?", "the once popular mars mission"])
def test_english_words_are_no_times_of_other_languages(question: str) -> None:
    assert resolve(question, NEW_YEAR) is None


@pytest.mark.parametrize(
    ("phrase", "start", "end"),
    [
        ("over the winter", "2025-12-01", "2026-03-01"),
        ("all summer", "2025-06-01", "2025-09-01"),
        ("in winter 2024/25", "2024-12-01", "2025-03-01"),
        ("FY2025", "2025-01-01", "2026-01-01"),
        ("since FY25", "2025-01-01", LATEST),
        ("FY25 Q2", "2025-04-01", "2025-07-01"),
        ("week 12", "2026-03-16", "2026-03-23"),
        ("since week 12", "2026-03-16", LATEST),
        ("on 20260503", "2026-05-03", "2026-05-04"),
        ("on Black Friday", "2025-11-28", "2025-11-29"),
        ("since Cyber Monday", "2025-12-01", LATEST),
        ("this day last year", "2025-05-14", "2025-05-15"),
        ("up to March", EARLIEST, "2026-03-01"),
        ("in H1", "2026-01-01", "2026-07-01"),
        ("the past decade", "2016-05-14", "2026-05-15"),
        ("two quarters ago", "2025-10-01", "2026-01-01"),
        ("in the 4th fiscal quarter", "2025-10-01", "2026-01-01"),
        ("in the week commencing 4 May", "2026-05-04", "2026-05-11"),
        ("w/c 4 May", "2026-05-04", "2026-05-11"),
        ("in wk 12", "2026-03-16", "2026-03-23"),
        ("in CY2024", "2024-01-01", "2025-01-01"),
        ("since the turn of the year", "2026-01-01", LATEST),
        ("vorletzte Woche", "2026-04-27", "2026-05-04"),
        ("la semana antepasada", "2026-04-27", "2026-05-04"),
        ("seit Ostern", "2026-04-03", LATEST),
        ("on the weekend before Easter", "2026-03-28", "2026-03-30"),
        ("on the Tuesday after Easter", "2026-04-07", "2026-04-08"),
        ("on the Friday before 3 March 2025", "2025-02-28", "2025-03-01"),
        ("on the weekend after 1 May", "2026-05-02", "2026-05-04"),
        ("on the Monday before last", "2026-05-04", "2026-05-05"),
        ("on June 2, '24", "2024-06-02", "2024-06-03"),
        ("on 02.06.25", "2025-06-02", "2025-06-03"),
    ],
)
def test_further_ways_to_name_a_time(phrase: str, start: str, end: str) -> None:
    assert days(resolve(f"What did we decide about the galley {phrase}?", THURSDAY)) == (start, end)


@pytest.mark.parametrize(
    ("question", "start", "end"),
    [
        ("昨天我们决定了什么？", "2026-05-13", "2026-05-14"),
        ("上周末发生了什么", "2026-05-09", "2026-05-11"),
        ("3天前的会议", "2026-05-11", "2026-05-12"),
        ("先週のリリースはどうだった？", "2026-05-04", "2026-05-11"),
        ("지난달에 무엇을 샀지?", "2026-04-01", "2026-05-01"),
        ("Что мы решили на прошлой неделе?", "2026-05-04", "2026-05-11"),
        ("Что решили в марте?", "2026-03-01", "2026-04-01"),
        ("Co ustaliliśmy w zeszłym tygodniu?", "2026-05-04", "2026-05-11"),
        ("Vad bestämde vi förra veckan?", "2026-05-04", "2026-05-11"),
        ("Hvad besluttede vi i går?", "2026-05-13", "2026-05-14"),
        ("Geçen ay ne karar verdik?", "2026-04-01", "2026-05-01"),
        ("ماذا قررنا الأسبوع الماضي؟", "2026-05-04", "2026-05-11"),
        ("पिछले महीने क्या हुआ?", "2026-04-01", "2026-05-01"),
    ],
)
def test_the_commonest_times_are_read_in_further_languages(question: str, start: str, end: str) -> None:
    assert days(resolve(question, THURSDAY)) == (start, end)


@pytest.mark.parametrize(
    "question",
    [
        "Can we seat up to 2000 guests?",
        "Which invoice has the number 20260503?",
        "What is wrong with the h2 tag?",
        "How is the winter coat made?",
        "Which exercises are in week 3 of the course?",
        "Who lives in Tym?",
        "Who is ahead of the competition?",
        "Are all spring rolls vegetarian?",
        "What led through the fall of Rome?",
        "Does it scale up to 2000?",
    ],
)
def test_what_only_looks_like_those_is_not_a_time(question: str) -> None:
    assert resolve(question, THURSDAY) is None


@pytest.mark.parametrize(
    ("question", "side", "anchor", "days_of"),
    [
        ("What did we do the night of the outage?", "after", "the outage", ("2026-03-10", "2026-03-11")),
        ("Who called the morning after the storm?", "after", "the storm", ("2026-03-11", "2026-03-12")),
        ("What was said on the eve of the audit?", "before", "the audit", ("2026-03-09", "2026-03-10")),
        ("What was decided in the run-up to the audit?", "before", "the audit", (EARLIEST, "2026-03-10")),
        ("What was agreed ahead of our board meeting?", "before", "our board meeting", (EARLIEST, "2026-03-10")),
        ("What changed in the wake of the breach?", "after", "the breach", ("2026-03-10", LATEST)),
    ],
)
def test_a_time_beside_an_event_is_known_once_the_event_is_dated(
    question: str, side: str, anchor: str, days_of: tuple[str, str]
) -> None:
    window = resolve(question, THURSDAY)
    assert window is not None
    assert (window.side, window.anchor) == (side, anchor)
    assert days(window.anchored(datetime(2026, 3, 10, tzinfo=UTC), THURSDAY)) == days_of


@pytest.mark.parametrize(
    ("question", "side", "anchor", "event_within"),
    [
        ("What did we change since the outage in March?", "after", "the outage", ("2026-03-01", "2026-04-01")),
        ("What did we decide before the release last week?", "before", "the release", ("2026-05-04", "2026-05-11")),
        ("What broke after our migration of 5 May?", "after", "our migration", ("2026-05-05", "2026-05-06")),
        ("What was slow before the upgrade in 2024?", "before", "the upgrade", ("2024-01-01", "2025-01-01")),
    ],
)
def test_a_date_behind_an_event_says_when_the_event_was(
    question: str, side: str, anchor: str, event_within: tuple[str, str]
) -> None:
    window = resolve(question, THURSDAY)
    assert window is not None
    assert (window.side, window.anchor) == (side, anchor)
    assert window.event_within is not None
    assert tuple(moment.date().isoformat() for moment in window.event_within) == event_within


@pytest.mark.parametrize(
    ("question", "days_of"),
    [
        ("What did we change in March after the outage?", ("2026-03-01", "2026-04-01")),
        ("What did we change after the outage between March and April?", ("2026-03-01", "2026-05-01")),
        ("What did we say before the end of March?", (EARLIEST, "2026-04-01")),
        ("Who did I meet during the lunch last Tuesday?", ("2026-05-12", "2026-05-13")),
    ],
)
def test_a_date_that_is_not_the_events_is_the_time_itself(question: str, days_of: tuple[str, str]) -> None:
    assert days(resolve(question, THURSDAY)) == days_of


def test_an_event_that_no_one_dates_was_when_the_question_says() -> None:
    since, before = (resolve(f"What changed {side} the outage in March?", THURSDAY) for side in ("since", "before"))
    assert since is not None
    assert before is not None
    assert days(since.unanchored()) == ("2026-03-01", LATEST)
    assert days(before.unanchored()) == (EARLIEST, "2026-04-01")


@pytest.mark.parametrize(
    ("question", "recurs"),
    [
        ("What should be done before the release?", True),
        ("What do we usually do before the release?", True),
        ("What must be checked before the release?", True),
        ("What runs after the build?", True),
        ("What is sent after the user signs up?", True),
        ("What happens after 3 failed logins?", True),
        ("Who is informed after the outage?", True),
        ("What can go wrong after our migration?", True),
        ("What should we have checked before the release?", False),
        ("Can you tell me what we decided before the release?", False),
        ("What do you remember of the time before the outage?", False),
        ("What is planned after the release?", False),
        ("What will we do after the release?", False),
        ("What is broken after the migration?", False),
        ("What do we do differently since the outage?", False),
        ("What does Evan do after the wedding?", False),
        ("What could Ana do after her career?", False),
    ],
)
def test_who_asks_what_is_done_means_any_such_event(question: str, recurs: bool) -> None:
    window = resolve(question, THURSDAY)
    assert window is not None
    assert window.anchor is not None
    assert window.recurs is recurs


@pytest.mark.parametrize(
    ("text", "is_told"),
    [
        ("Before the release, run the smoke tests", True),
        ("Run the smoke tests prior to our release.", True),
        ("We tagged the release", False),
        ("After the release we rest", False),
        ("Before the releases of May nobody slept", False),
    ],
)
def test_a_text_can_say_by_itself_what_lies_before_an_event(text: str, is_told: bool) -> None:
    window = resolve("What did we do before the release?", THURSDAY)
    assert window is not None
    assert window.is_told_by(text) is is_told


def test_who_booked_something_is_asked_of_the_past() -> None:
    assert days(resolve("Who booked the centrifuge in week 40?", THURSDAY)) == ("2025-09-29", "2025-10-06")
    assert days(resolve("What is booked in week 40?", THURSDAY)) == ("2026-09-28", "2026-10-05")


# ---------------------------------------------------------------------- hours of a clock, and what events surround


@pytest.mark.parametrize(
    ("phrase", "spans"),
    [
        ("at 3 pm yesterday", ["13 14:30-16:00"]),
        ("yesterday at 3 p.m.", ["13 14:30-16:00"]),
        ("yesterday at 15:00", ["13 14:30-16:00"]),
        ("yesterday at 3", ["13 02:30-04:00", "13 14:30-16:00"]),
        ("yesterday evening at 8", ["13 19:30-21:00"]),
        ("this morning before 10", ["14 00:00-10:00"]),
        ("before noon today", ["14 00:00-12:00"]),
        ("after 5 pm today", ["14 17:00-00:00"]),
        ("yesterday between 2 and 4 pm", ["13 14:00-16:00"]),
        ("between 2 and 4 pm yesterday", ["13 14:00-16:00"]),
        ("today between 9:00 and 17:00", ["14 09:00-17:00"]),
        ("last night around 11pm", ["13 22:00-00:00"]),
        ("last night at 2", ["14 01:30-03:00"]),
        ("at 02:15 this morning", ["14 01:45-03:15"]),
        ("on Monday at 14:30", ["11 14:00-15:30"]),
        ("on the morning of the 12th", ["12 04:00-12:00"]),
        ("three hours ago", ["14 06:45-08:15"]),
        ("in the last two hours", ["14 08:30-10:30"]),
        ("in the last 24h", ["13 10:30-10:30"]),
        ("overnight", ["13 18:00-06:00"]),
        ("during the night", ["13 18:00-06:00"]),
        ("yesterday shortly after 3 pm", ["13 15:00-17:00"]),
        ("just before noon yesterday", ["13 10:00-12:00"]),
        ("shortly after midnight today", ["14 00:00-02:00"]),
        ("last night after midnight", ["14 00:00-01:00"]),
        ("yesterday at midnight", ["13 23:30-01:00"]),
        ("at 2026-05-12T16:20:05Z", ["12 15:50-17:20"]),
        ("yesterday after 10 retries", []),
        ("yesterday at 5%", []),
        ("in 3 stores yesterday", []),
    ],
)
def test_hours_of_a_clock_are_those_of_the_day_beside_them(phrase: str, spans: list[str]) -> None:
    window = resolve(f"what happened {phrase}?", THURSDAY)
    assert window is not None
    assert [f"{start:%d %H:%M}-{end:%H:%M}" for start, end in window.at_best] == spans
    assert all(window.holds(start) and window.holds(end - timedelta(minutes=1)) for start, end in window.at_best)


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/Los_Angeles", "Asia/Kolkata"])
def test_hours_are_those_where_the_question_is_asked(zone: str) -> None:
    there = THURSDAY.astimezone(ZoneInfo(zone))
    at_three = resolve("what happened yesterday at 3 pm?", there)
    since_nine = resolve("what changed since 9 am yesterday?", there)
    assert at_three is not None
    assert since_nine is not None
    yesterday = (there - timedelta(days=1)).date()
    start, end = (moment.astimezone(ZoneInfo(zone)) for moment in at_three.at_best[0])
    assert (start.date(), f"{start:%H:%M}", f"{end:%H:%M}") == (yesterday, "14:30", "16:00")
    begun = since_nine.start.astimezone(ZoneInfo(zone))
    assert (begun.date(), begun.hour, since_nine.end.year) == (yesterday, 9, 9999)


@pytest.mark.parametrize(
    ("phrase", "start", "end"),
    [
        ("on the twelfth", "2026-05-12", "2026-05-13"),
        ("on the twenty-first", "2026-04-21", "2026-04-22"),
        ("in late summer", "2025-08-01", "2025-09-01"),
        ("in early spring 2025", "2025-03-01", "2025-03-31"),
    ],
)
def test_days_in_words_and_parts_of_seasons_are_times(phrase: str, start: str, end: str) -> None:
    assert days(resolve(f"what did we do {phrase}?", THURSDAY)) == (start, end)


@pytest.mark.parametrize(
    ("question", "anchor"),
    [
        ("What broke during the outage?", "the outage"),
        ("What was said during our call with Acme?", "our call with acme"),
        ("What did we promise while the audit was running?", "the audit"),
        ("What went wrong throughout the beta?", "the beta"),
        ("Who helped in the middle of the migration?", "the migration"),
        ("What happened around the release?", "the release"),
    ],
)
def test_what_was_during_an_event_was_on_its_day(question: str, anchor: str) -> None:
    window = resolve(question, THURSDAY)
    assert window is not None
    assert (window.side, window.anchor) == ("during", anchor)
    assert days(window.anchored(datetime(2026, 3, 10, 22, tzinfo=UTC), THURSDAY)) == ("2026-03-10", "2026-03-11")
    assert window.is_told_by(f"During {anchor} nobody slept")


@pytest.mark.parametrize(
    ("question", "first", "second"),
    [
        ("What did we decide between the kickoff and the launch?", "the kickoff", "the launch"),
        ("What was reported from the launch until our first hotfix?", "the launch", "our first hotfix"),
        ("Who left between our last audit and the release of 2.0?", "our last audit", "the release of 2.0"),
    ],
)
def test_a_time_may_lie_between_two_events(question: str, first: str, second: str) -> None:
    window = resolve(question, THURSDAY)
    assert window is not None
    assert (window.anchor, window.then) == (first, second)


@pytest.mark.parametrize(
    "question",
    [
        "What is the difference between the release and the deployment?",
        "What did we merge between the deployment branch and the release branch?",
        "Who was in the room between the kitchen and the hall?",
        "What moved from the staging to the production cluster?",
        "Which port is used during the build?",
        "What should we do during the outage?",
        "What do we do during the outage?",
        "What happens during the login?",
        "What broke in the late fall of Rome?",
        "Who sits on the fourth floor?",
        "What was logged at 10:30 in the sample file?",
        "Does cron run at 3 am?",
        "Which jobs run overnight?",
        "What has Ana been up to?",
        "What did we read about the middle of the page?",
        "Who walked around the office?",
        "What did we build around the release process?",
        "What should we do around the release?",
    ],
)
def test_what_has_hours_or_events_in_it_need_not_be_a_time(question: str) -> None:
    assert resolve(question, THURSDAY) is None


@pytest.mark.parametrize(
    ("question", "best"),
    [
        ("What happened shortly after midnight?", "14 00:00-02:00"),
        ("What did we do around 9 am?", "14 08:00-10:00"),
        ("What happened between 8 and 10 am?", "14 08:00-10:00"),
        ("What happened at noon?", "13 11:30-13:00"),
        ("What happened after 10 pm?", "13 22:00-00:00"),
    ],
)
def test_hours_without_a_day_are_the_last_ones_there_were(question: str, best: str) -> None:
    window = resolve(question, THURSDAY, hours_only=True)
    assert window is not None
    assert [f"{start:%d %H:%M}-{end:%H:%M}" for start, end in window.at_best] == [best]


@pytest.mark.parametrize(
    "question",
    ["Which job runs at 3 am?", "What happened after 5?", "What happens after midnight?", "What broke at 10?"],
)
def test_a_number_or_what_is_always_done_at_some_hour_is_not_a_time_of_the_past(question: str) -> None:
    assert resolve(question, THURSDAY, hours_only=True) is None


def test_being_up_to_something_is_not_a_bound() -> None:
    assert days(resolve("What were we up to last month?", THURSDAY)) == ("2026-04-01", "2026-05-01")
    window = resolve("What happened up to last month?", THURSDAY)
    assert window is not None
    assert f"{window.end:%Y-%m-%d}" == "2026-04-01"


def test_shortly_before_or_after_an_event_is_within_a_week_of_it() -> None:
    for phrase in ("right after", "in the days after"):
        window = resolve(f"What happened {phrase} the release?", THURSDAY)
        assert window is not None
        assert days(window.anchored(datetime(2026, 4, 7, 12, tzinfo=UTC), THURSDAY)) == ("2026-04-08", "2026-04-15")


def test_the_same_day_as_an_event_is_its_day() -> None:
    window = resolve("What happened the same day as the release?", THURSDAY)
    assert window is not None
    assert days(window.anchored(datetime(2026, 4, 7, 12, tzinfo=UTC), THURSDAY)) == ("2026-04-07", "2026-04-08")


def test_a_statement_may_mean_the_past_or_the_future() -> None:
    found = find("Come back in March", THURSDAY)
    assert [(each.phrase, each.start.year) for each in found] == [("in march", 2026), ("in march", 2027)]
    assert find("Come back", THURSDAY) == []


def test_a_locale_leaves_other_languages_out() -> None:
    assert days(resolve("Was geschah vor zwei Wochen?", THURSDAY, "de")) == days(
        resolve("Was geschah vor zwei Wochen?", THURSDAY)
    )
    assert resolve("Was geschah vor zwei Wochen?", THURSDAY, "fr") is None
