"""What says nothing that was not handed out, and what does."""

from __future__ import annotations

import pytest

from alma.ingest.echo_guard import repeats, sentences, shingles

PORT = ["The staging database listens on port 5433"]
RULE = ["Call the payments gateway", "retry with exponential backoff after a timeout", "worked 3 of 3 times"]
WARNING = ["Don't: hammer it in a tight loop", "429 too many requests"]
WISH = ["short answers, no emojis", "ana"]


# Words that turn what is said around.
_GUARDS = """
    not no never always none nor neither without only except unless avoid stop instead cannot before after until
    disable enable deny allow remove add false true off on more less least most must may optional required
"""
GUARDS = frozenset(_GUARDS.split())


def is_echo(text: str, *served: list[str]) -> bool:
    return repeats([*sentences([text])], [frozenset(shingles(texts)) for texts in served])


@pytest.mark.parametrize(
    "text",
    [
        "the staging database listens on port 5433!",
        "I remember that the staging database listens on port 5433, which is good to know",
        "The staging database listens on port 5433. That is important.",
        "It was mentioned earlier that the staging database listened on port 5433",
        "The user told me that the staging database listens on port 5433",
        "It turns out that the staging database listens on port 5433",
        "- **Fact (infra):** The staging database listens on port 5433",
        "<li>The staging database listens on port 5433</li>",
        "Here is what I recalled:\n\n**The staging database listens on port 5433.**",
        "The\u200b staging data\u200bbase listens on port 5433",
    ],
)
def test_dress_around_what_was_served_is_not_new(text: str) -> None:
    assert is_echo(text, PORT)


@pytest.mark.parametrize(
    "text",
    [
        "The production database listens on port 5433",
        "The staging cache listens on port 5433",
        "The staging database listens on port 5434",
        "The old staging database listens on port 5433",
        "The staging database listens on port 5433 in Frankfurt",
        "The staging database listens on port 5433 now",
        "The staging database no longer listens on port 5433",
        "Only the staging database listens on port 5433",
        "Alice says the staging database listens on port 5433",
        "That is good to know",
        "",
    ],
)
def test_one_word_that_carries_a_fact_is_news(text: str) -> None:
    assert not is_echo(text, PORT)


@pytest.mark.parametrize(
    ("served", "text"),
    [
        (RULE, "When calling the payments gateway, retry with exponential backoff after a timeout"),
        (RULE, "Retry with exponential backoff after a timeout when you call the payments gateway"),
        (RULE, "retry with exponential backoff after a timeout (worked 3 of 3 times)"),
        (WARNING, "Don't hammer it in a tight loop"),
        (WARNING, "Avoid hammering it in a tight loop: 429 too many requests"),
        (WISH, "The user prefers short answers, no emojis"),
        (WISH, "ana prefers short answers, no emojis"),
    ],
)
def test_a_memory_in_a_sentence_is_not_new(served: list[str], text: str) -> None:
    assert is_echo(text, served)


@pytest.mark.parametrize(
    ("served", "text"),
    [
        (RULE, "When calling the billing gateway, retry with exponential backoff after a timeout"),
        (RULE, "retry with exponential backoff after a timeout (worked 4 of 5 times)"),
        (RULE, "retry with exponential backoff before a timeout"),
        (WARNING, "Hammer it in a tight loop"),
        (WARNING, "It is good to hammer it in a tight loop"),
        (WISH, "Bob prefers short answers, no emojis"),
        (["Copy the data from staging to production"], "Copy the data from production to staging"),
        (["Never retry payments twice"], "Retry payments twice"),
        (["Alice is on call for the checkout service this week"], "Bob is on call for the checkout service this week"),
        (["The checkout service fails when the cache is cold"], "The checkout service fails when the cache is warm"),
        (["Deploy to shop with the blue key", "Deploy to blog with the red one"], "Deploy to blog with the blue key"),
    ],
)
def test_the_opposite_another_name_or_another_combination_is_news(served: list[str], text: str) -> None:
    assert not is_echo(text, served)


def test_a_sentence_must_be_said_by_one_memory_and_a_text_may_be_by_several() -> None:
    staging, shop = ["The staging database listens on port 5433"], ["The shop database listens on port 5432"]
    assert not is_echo("The shop database listens on port 5433", staging, shop)
    assert is_echo("The shop database listens on port 5432. The staging database listens on port 5433.", staging, shop)


def test_the_numbers_of_a_list_are_no_news_and_a_single_number_is() -> None:
    listed = "1. The staging database listens on port 5433\n2. Call the payments gateway"
    assert is_echo(listed, PORT, RULE)
    assert not is_echo("4. Oktober ist ein Feiertag", ["3. Oktober ist ein Feiertag"])


def test_no_word_that_turns_things_around_is_dress() -> None:
    said = {word for guard in GUARDS - {"instead"} for words in sentences([guard]) for word in words}
    assert not any(is_echo(f"{word} the staging database listens on port 5433", PORT) for word in said)
