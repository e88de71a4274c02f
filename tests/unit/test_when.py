"""When: the times that questions speak of, and the words that only look like times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from alma.retrieval import when
from alma.retrieval.when import TimeWindow, time_window

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
def test_a_time_is_reckoned_from_the_day_of_the_question(phrase: str, start: str, end: str) -> None:
    assert days(time_window(f"what did we decide {phrase}?", THURSDAY)) == (start, end)


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
        ("January 2nd", "2025-01-02", "2025-01-03"),
        ("this winter", "2025-12-01", "2026-03-01"),
        ("last winter", "2024-12-01", "2025-03-01"),
        ("Q4", "2025-10-01", "2026-01-01"),
    ],
)
def test_on_the_first_of_january_the_past_is_last_year(phrase: str, start: str, end: str) -> None:
    assert days(time_window(phrase, NEW_YEAR)) == (start, end)


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
    assert days(time_window(phrase, LEAP_DAY)) == (start, end)


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
    assert days(time_window(phrase, MONTH_END)) == (start, end)


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
    assert days(time_window(f"what did we decide {phrase}?", THURSDAY)) == (start, end)


def test_a_day_begins_where_the_question_is_asked() -> None:
    in_tokyo = datetime(2026, 5, 14, 1, 30, tzinfo=ZoneInfo("Asia/Tokyo"))
    window = time_window("what did we decide yesterday?", in_tokyo)
    assert window is not None
    assert window.start == datetime(2026, 5, 12, 15, tzinfo=UTC)
    assert window.end == datetime(2026, 5, 13, 15, tzinfo=UTC)
    # The clocks went forward in between.
    in_berlin = datetime(2026, 3, 30, 9, tzinfo=ZoneInfo("Europe/Berlin"))
    window = time_window("what did we decide last weekend?", in_berlin)
    assert window is not None
    assert window.end - window.start == timedelta(hours=47)


def test_on_a_sunday_the_weekend_is_this_one() -> None:
    assert days(time_window("over the weekend", SUNDAY)) == ("2026-05-16", "2026-05-18")


def test_on_a_sunday_the_last_weekend_is_over() -> None:
    assert days(time_window("last weekend", SUNDAY)) == ("2026-05-09", "2026-05-11")
    assert days(time_window("this weekend", SUNDAY)) == ("2026-05-16", "2026-05-18")


def test_a_leap_day_without_a_year_is_the_last_one_there_was() -> None:
    assert days(time_window("29 February", THURSDAY)) == ("2024-02-29", "2024-03-01")


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
    assert days(time_window(f"what broke {phrase}", THURSDAY)) == (start, end)


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
    assert days(time_window(f"what changed {phrase}?", THURSDAY)) == (start, "2026-05-15")


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
    assert days(time_window(f"what happened {phrase}, and why", THURSDAY)) == (start, end)


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
    ],
)
def test_a_time_may_be_bounded_on_one_side(phrase: str, start: str, end: str) -> None:
    assert days(time_window(f"what did we ship {phrase}?", THURSDAY)) == (start, end)


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
    assert days(time_window(f"what did we ship {phrase}?", THURSDAY)) == (start, end)


def test_the_first_of_two_dates_has_the_year_of_the_second_even_while_its_own_is_near() -> None:
    asked = datetime(2022, 6, 1, tzinfo=UTC)
    assert days(time_window("between March and May 2023", asked)) == ("2023-03-01", "2023-06-01")


@pytest.mark.parametrize(
    ("question", "anchor", "side"),
    [
        ("what did we decide before the release?", "the release", "before"),
        ("what broke after our migration", "our migration", "after"),
        ("since the outage, what changed", "the outage", "after"),
        ("what was slow before we moved to Postgres?", "we moved to postgres", "before"),
        ("which tests before the release did we skip?", "the release", "before"),
    ],
)
def test_an_event_without_a_date_is_left_for_memory_to_date(question: str, anchor: str, side: str) -> None:
    window = time_window(question, THURSDAY)
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
    assert time_window(question, THURSDAY) is None


def test_once_its_event_is_dated_a_time_lies_on_one_side_of_it() -> None:
    before, after = (time_window(f"what broke {side} the release", THURSDAY) for side in ("before", "after"))
    assert before is not None
    assert after is not None
    assert days(before.anchored(NEW_YEAR)) == (EARLIEST, "2026-01-01")
    assert days(after.anchored(NEW_YEAR)) == ("2026-01-01", LATEST)


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
    ],
)
def test_what_only_looks_like_a_time_is_none(question: str) -> None:
    assert time_window(question, THURSDAY) is None


@pytest.mark.parametrize(
    "question",
    ["31 February 2024", "February 30, 2024", "29 February 2023", "on 2024-13-45", "2023-02-29", "9999 years ago"],
)
def test_an_impossible_date_is_none(question: str) -> None:
    assert time_window(question, THURSDAY) is None


def test_beside_an_impossible_date_another_one_is_read() -> None:
    assert days(time_window("on 31 February or yesterday", THURSDAY)) == ("2026-05-13", "2026-05-14")


@pytest.mark.parametrize(
    ("question", "phrase"),
    [
        ("what did we decide  Last\n Week?", "last week"),
        ("shipped since May", "since may"),
        ("from 3 May to 5 May", "from 3 may to 5 may"),
        ("before the release", "before the release"),
    ],
)
def test_a_time_carries_the_words_it_was_read_from(question: str, phrase: str) -> None:
    window = time_window(question, THURSDAY)
    assert window is not None
    assert window.phrase == phrase


def test_a_time_holds_its_start_and_not_its_end() -> None:
    window = time_window("yesterday", THURSDAY)
    assert window is not None
    assert window.holds(window.start)
    assert window.holds(window.end - timedelta(microseconds=1))
    assert not window.holds(window.end)


def test_a_time_at_the_end_of_a_long_text_is_not_what_it_asks_for() -> None:
    assert time_window("word " * 1000 + "yesterday", THURSDAY) is None


WORDS = """
last this past previous in the of on since before after until between from and to early mid late may march feb 29 31 8th
2024 2023-02-29 1999 monday weekend week month quarter year days ago 9999 a couple few 3 q1 summer winter yesterday
today recently hours minutes release we our
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
    window = time_window(question, now)
    assert window is None or window.start < window.end


_RULE_WORDS = st.sampled_from(
    """
    in on at the of this last past previous early mid-may late jan sept may-day 3rd 2024 2024-03 q2 first quarter half
    year years day days ago back earlier christmas valentine's new spring yesterday night today morning week weekend
    monday recently between from to and before until till prior after since following we deployed it maybe marching
    """.split()  # noqa: SIM905 - as people say them
)


@settings(max_examples=300)
@given(words=st.lists(_RULE_WORDS, max_size=8))
def test_no_time_is_overlooked_because_no_word_seems_to_speak_of_one(words: list[str]) -> None:
    text = " ".join(words)
    if not when._may_speak_of_time(text):
        assert when._between(text, THURSDAY) is None
        assert when._bounded(text, THURSDAY) is None
        assert when._plain(text, THURSDAY) is None
        assert when._anchor(text) is None
