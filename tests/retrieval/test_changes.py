"""What is no longer as it was: news in other words comes first, news of something else does not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from alma.retrieval.engine import RetrievalEngine
from alma.testing import builders as make

Remember = Callable[..., Any]
MARCH, SEPTEMBER = (datetime(2026, month, 1, tzinfo=UTC) for month in (3, 9))
ANNA, CEO = "Anna lives at 12 Oak Street in Leeds.", "The CEO is Mr. Braun."


def order(engine: RetrievalEngine, remember: Remember, older: str, newer: str, question: str) -> list[str]:
    remember(
        make.a_memory(content=older, title="", event_time=MARCH),
        make.a_memory(content=newer, title="", event_time=SEPTEMBER),
        make.a_memory(content="Parking permits are for members of staff.", title="", event_time=SEPTEMBER),
    )
    found = engine.retrieve(question, "helena", "shop", now=datetime(2026, 11, 17, tzinfo=UTC))
    for each in found.explain():
        assert sum(each.terms.values()) == pytest.approx(each.score)
    return [memory.content for memory in found.memories][:2]


@pytest.mark.parametrize(
    ("older", "newer", "question"),
    [
        (ANNA, "Anna moved to 7 Pine Road in York.", "Where does Anna live?"),
        (CEO, "Ms. Okada has become CEO.", "Who is the CEO?"),
        ("Tom eats meat.", "Tom is a vegetarian since June and does not eat meat anymore.", "Does Tom eat meat?"),
        ("Deployments happen on Thursdays.", "Deployments were moved to Tuesdays.", "When do deployments happen?"),
        (
            "We run PostgreSQL 14 in production.",
            "Production was upgraded to PostgreSQL 16.",
            "Which PostgreSQL version do we run in production?",
        ),
        (
            "Flight LH 400 leaves at 10:50.",
            "Flight LH 400 leaves at 13:05 because of a delay.",
            "When does flight LH 400 leave?",
        ),
    ],
)
def test_what_tells_of_a_change_comes_before_what_was_so(
    engine: RetrievalEngine, remember: Remember, older: str, newer: str, question: str
) -> None:
    assert order(engine, remember, older, newer, question) == [newer, older]


@pytest.mark.parametrize(
    ("older", "newer", "question"),
    [
        (ANNA, "Anna no longer drinks coffee.", "Where does Anna live?"),
        (ANNA, "Hannah moved to 7 Pine Road in York.", "Where does Anna live?"),
        (CEO, "The CEO's new car is electric.", "Who is the CEO?"),
        (
            "Server alpha runs Debian 11.",
            "Server beta was upgraded to Debian 12.",
            "Which Debian does server alpha run?",
        ),
    ],
)
def test_a_change_of_something_else_overrules_nothing(
    engine: RetrievalEngine, remember: Remember, older: str, newer: str, question: str
) -> None:
    assert order(engine, remember, older, newer, question)[0] == older


@pytest.mark.parametrize(
    ("older", "newer", "question"),
    [
        ("The old plan cost 9 euros.", "The plan costs 12 euros.", "What did the old plan cost?"),
        ("Before the merger we used Slack.", "After the merger we use Teams.", "What did we use before the merger?"),
    ],
)
def test_who_asks_how_it_was_gets_what_was_so(
    engine: RetrievalEngine, remember: Remember, older: str, newer: str, question: str
) -> None:
    assert order(engine, remember, older, newer, question)[0] == older
