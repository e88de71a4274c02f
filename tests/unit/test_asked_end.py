"""Whether a question asks for the first or the last of several things."""

from __future__ import annotations

import pytest

from alma.retrieval.sequence import asked_end


@pytest.mark.parametrize(
    "question",
    [
        "What was the last outage?",
        "last outage",
        "latest retro",
        "What did we say in the last retro?",
        "Anna's last message",
        "What did Ben say last?",
        "Which version did we deploy most recently?",
        "When did the server last restart?",
        "when was billing last deployed?",
        "How many people came last time?",
    ],
)
def test_the_last_one_is_asked_for(question: str) -> None:
    assert asked_end(question) == "last"


@pytest.mark.parametrize(
    "question",
    [
        "When did we first deploy billing-service?",
        "the first outage this year",
        "What was my first half marathon time?",
        "When did I meet Tom for the first time?",
        "our very first customer",
        "Where did we originally host it?",
        "earliest note about pricing",
    ],
)
def test_the_first_one_is_asked_for(question: str) -> None:
    assert asked_end(question) == "first"


@pytest.mark.parametrize(
    "question",
    [
        "what happened last week",
        "in the last 3 days",
        "the last two weeks",
        "last March",
        "How long does the battery last?",
        "Will it last?",
        "What is Anna's last name?",
        "first aid kit",
        "in the first half of 2025",
        "Which came first, the demo or the audit?",
        "Did I buy the bike or the car first?",
        "What came up at the retro before the last?",
        "First of all, how do I deploy?",
        "What is the last line of the file?",
        "the last few commits",
        "first_name column",
        "What should I do first?",
        "at last",
    ],
)
def test_no_end_is_asked_for(question: str) -> None:
    assert asked_end(question) is None
