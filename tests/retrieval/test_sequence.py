"""Queries about the past: what was true then, and what happened beside an event."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from alma.retrieval.engine import RetrievalEngine
from alma.testing import builders as make

Remember = Callable[..., Any]
NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)
TOLD = {
    "deployed-1": ("2026-01-12", "Deployed billing-service v2.3.0 to production without incidents."),
    "redis": ("2026-02-03", "Outage: checkout was down for 43 minutes because the Redis primary ran out of memory."),
    "deployed-2": ("2026-02-16", "Deployed billing-service v2.4.0 to production; latency went up by 20 %."),
    "python-old": ("2025-10-01", "All services run on Python 3.9."),
    "python-new": ("2026-02-25", "We upgraded every service to Python 3.12."),
    "demo": ("2026-03-10", "Customer demo for Northwind went well, they want single sign-on."),
    "ticket": ("2026-03-11", "Wrote the follow-up to Northwind and opened ticket NW-118."),
    "flaky": ("2026-03-13", "Fixed the flaky test of the cart."),
    "ivan": ("2026-01-05", "On-call for the platform is Ivan this quarter."),
    "fatima": ("2026-04-01", "On-call for the platform is Fatima from April on."),
    "gateway": ("2026-04-19", "Outage: the gateway returned 502 for 12 minutes after a certificate had expired."),
    "load": ("2026-04-28", "Load test of the shop: 1,200 requests per second sustained."),
    "release": ("2026-05-04", "Release 3.0 of the shop went live."),
    "search": ("2026-05-06", "Customers complain about the new search of the shop."),
    "deployed-3": ("2026-05-11", "Deployed billing-service v2.6.0 to production, all green."),
    "reviews": ("2026-06-08", "Retro: we want smaller pull requests and a rota for reviews."),
}


@pytest.fixture
def year(remember: Remember) -> None:
    """What a team told in a year."""
    days = {key: datetime.fromisoformat(f"{day}T10:00:00+00:00") for key, (day, _) in TOLD.items()}
    remember(
        *(make.a_memory(id=key, title="", content=text, event_time=days[key]) for key, (_, text) in TOLD.items()),
    )


def found(engine: RetrievalEngine, question: str) -> list[str]:
    answer = engine.retrieve(question, "helena", "shop", now=NOW)
    for each in answer.explain():
        assert sum(each.terms.values()) == pytest.approx(each.score)
    return [memory.id for memory in answer.memories]


@pytest.mark.usefixtures("year")
@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Who was on call in February?", "ivan"),
        ("Who is on call?", "fatima"),
        ("Who was on call in May?", "fatima"),
        ("Which Python version do we use?", "python-new"),
    ],
)
def test_what_was_told_only_later_does_not_say_how_it_was_then(
    engine: RetrievalEngine, question: str, answer: str
) -> None:
    assert found(engine, question)[0] == answer


@pytest.mark.usefixtures("year")
@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What happened the day after the demo?", {"ticket"}),
        ("What happened on the day of the demo?", {"demo"}),
        ("What did we do in the week after the demo?", {"ticket", "flaky"}),
        ("What happened in the week before release 3.0?", {"load"}),
        ("What happened two days after the 3.0 release?", {"search"}),
        ("What happened since the release of 3.0?", {"release", "search", "deployed-3", "reviews"}),
        ("What did we do last sprint?", {"reviews"}),
        ("What happened three sprints ago?", {"load", "release", "search", "deployed-3"}),
        ("What happened in the week of 4 May?", {"release", "search"}),
    ],
)
def test_who_asks_what_happened_beside_an_event_gets_what_happened_then(
    engine: RetrievalEngine, question: str, answer: set[str]
) -> None:
    assert set(found(engine, question)) == answer


@pytest.mark.usefixtures("year")
def test_an_event_that_no_one_told_of_leaves_nothing_out(engine: RetrievalEngine) -> None:
    assert "demo" in found(engine, "What happened after the Northwind merger?")


@pytest.mark.parametrize("hours", [-11, 0, 14])
def test_what_happened_beside_the_ends_of_time_is_not_a_time(
    engine: RetrievalEngine, remember: Remember, hours: int
) -> None:
    ends = {"genesis": datetime(1, 1, 1, tzinfo=UTC), "apocalypse": datetime(9999, 12, 31, 23, tzinfo=UTC)}
    remember(*(make.a_memory(id=key, content=f"The {key}", title="", event_time=day) for key, day in ends.items()))
    asked = NOW.astimezone(timezone(timedelta(hours=hours)))
    for question, event in (("What happened the day before", "genesis"), ("What happened the day after", "apocalypse")):
        answer = engine.retrieve(f"{question} the {event}?", "helena", "shop", now=asked)
        assert event in [memory.id for memory in answer.memories]


def test_the_day_after_an_event_begins_at_midnight_where_it_is_asked(
    engine: RetrievalEngine, remember: Remember
) -> None:
    moments = {"demo": (10, 23), "offer": (11, 9), "kitchen": (12, 3)}
    texts = {"demo": "Customer demo for Northwind", "offer": "Wrote the offer", "kitchen": "Cleaned the kitchen"}
    for key, (day, hour) in moments.items():
        moment = datetime(2026, 3, day, hour, 30, tzinfo=UTC)
        remember(make.a_memory(id=key, content=texts[key], title="", event_time=moment))

    def day_after(zone: str) -> set[str]:
        asked = NOW.astimezone(ZoneInfo(zone))
        answer = engine.retrieve("What happened the day after the demo?", "helena", "shop", now=asked)
        return {memory.id for memory in answer.memories}

    assert day_after("UTC") == {"offer"}
    assert day_after("Asia/Tokyo") == {"kitchen"}
    assert day_after("America/Los_Angeles") == {"offer", "kitchen"}


def test_of_several_that_were_told_until_then_the_last_one_comes_first(
    engine: RetrievalEngine, remember: Remember
) -> None:
    months = {"Ivan": "2025-11", "Olga": "2026-01", "Fatima": "2026-02", "Piet": "2026-04", "Ada": "2026-05"}
    remember(
        *(
            make.a_memory(
                id=name,
                title="",
                content=f"On-call for the platform is {name}.",
                event_time=datetime.fromisoformat(f"{month}-03T10:00:00+00:00"),
            )
            for name, month in months.items()
        )
    )
    assert found(engine, "Who was on call for the platform in February?")[:2] == ["Fatima", "Olga"]
    assert found(engine, "Who was on call for the platform in December?")[0] == "Ivan"
    assert found(engine, "Who is on call for the platform?")[0] == "Ada"
