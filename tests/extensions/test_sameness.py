"""When two memories say the same, and when they only look alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alma.consolidation.sameness import sameness

HIGH = 0.97


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Use incremental validation for forms", "For forms, use incremental validation"),
        ("validate the form field by field", "Validate forms field by field."),
        ("Login uses OAuth 2.0 with 24h token expiry", "Login uses OAuth 2.0 with a token expiry of 24 hours"),
        ("retry three times", "retry 3 times"),
        ("Check every field separately", "Validate each field individually"),
        ("prefers dark mode", "Prefers dark mode."),
        ("Use OAuth for the login", "use oauth for the login"),
        ("The user wants concise answers", "the user wants short answers"),
        ("never commit the db password to the repo", "Do not commit the database password to the repository"),
        ("The staging database is slow", "The staging DB is slow"),
        ("Copy the user data from staging to production", "Copy user data to production from staging"),
        ("When the server fails, the client retries", "The client retries when the server fails"),
        ("The organisation likes that colour", "The organization likes that color"),
    ],
)
def test_the_same_in_other_words_is_the_same_even_without_vectors(one: str, other: str) -> None:
    assert sameness(one, other, None)
    assert sameness(one, other, HIGH)


def test_a_few_more_words_are_the_same_only_if_the_meaning_is() -> None:
    one, other = "Use explicit waits instead of sleep", "Prefer explicit waits over sleep calls"
    assert sameness(one, other, 0.9) == "one adds call, meaning 0.90"
    assert sameness(one, other, None) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Always retry", "Never retry"),
        ("prefers dark mode", "does not prefer dark mode"),
        ("validate before saving", "save before validating"),
        ("lock the row before reading it", "lock the row after reading it"),
        ("use port 8080 for the API", "use port 9090 for the API"),
        ("retry twice", "retry three times"),
        ("wait 5 seconds", "wait 5 minutes"),
        ("Ask Alice for approval", "Ask Bob for approval"),
        ("Ask Alice for approval", "Ask for approval"),
        ("retry the stripe gateway when it times out", "retry the paypal gateway when it times out"),
        ("the api is slow in March", "the api is slow in May"),
        ("deploy to staging", "deploy to production"),
        ("The API returns JSON", "The API returns XML"),
        ("Cache user.name", "Cache user.email"),
        ('click "Save"', 'click "Cancel"'),
        ("retry idempotent requests", "retry only idempotent requests"),
        ("enable the cache", "disable the cache"),
        ("use tabs", "use spaces"),
        ("version 1.2 is broken", "version 1.3 is broken"),
        ("Do not commit the password", "Commit the password"),
        ("avoid the cache for large files", "use the cache for large files"),
        ("small files are cached", "short files are cached"),
        ("Copy the user data from staging to production", "Copy the user data from production to staging"),
        ("The client retries when the server fails", "The server retries when the client fails"),
        ("Staging uses port 5432 and production port 5433", "Staging uses port 5433 and production port 5432"),
        ("Tokens expire after 24 hours", "Tokens expire after 24 hours of inactivity"),
        ("Tokens expire after 24 hours", "Admin tokens expire after 24 hours"),
        ("Backups run on the primary", "Backups run on the primary at night"),
        ("admins can delete users", "users can delete admins"),
        ("Alice is the manager of Bob", "Bob is the manager of Alice"),
        ("Bob is Alice's boss", "Alice is Bob's boss"),
        ("rain follows sun in May", "sun in May follows rain"),
        ("Ana lives in Rome and works in Milan", "Ana lives in Milan and works in Rome"),
        ("the user speaks German but not French", "the user speaks French but not German"),
        ("x > 5 is an error", "x < 5 is an error"),
        ("the balance is a + b", "the balance is a - b"),
        ("it is -5 degrees", "it is 5 degrees"),
        ("it costs $5", "it costs €5"),
        ("the parser is written in C", "the parser is written in C++"),
        ("the directory is reached by ldap", "the directory is reached by ldaps"),
        ("the customer database is slow", "the custom database is slow"),
        ("is the api stable?", "the api is stable"),
        ("Cache verwenden", "Cache nicht verwenden"),
    ],
)
def test_opposites_other_numbers_and_other_names_are_never_the_same(one: str, other: str) -> None:
    assert sameness(one, other, HIGH) is None
    assert sameness(other, one, HIGH) is None


@given(st.text(min_size=1).filter(str.strip), st.text(min_size=1).filter(str.strip))
def test_sameness_does_not_depend_on_who_comes_first(one: str, other: str) -> None:
    assert (sameness(one, other, HIGH) is None) == (sameness(other, one, HIGH) is None)


@given(st.text(min_size=1).filter(str.strip))
def test_every_text_says_the_same_as_itself(text: str) -> None:
    assert sameness(text, text, None) is not None
