"""When two strategies are the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alma.bootstrap import create_embedder
from alma.learning.strategies import contradicts, same_strategy
from alma.storage.nearest import cosines

EMBEDDER = create_embedder("local")


def cosine(one: str, other: str) -> float:
    left, right = EMBEDDER.encode_batch([one, other])
    return cosines(left, [right.to_bytes()])[0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Tested empty fields, invalid email, valid submission", "test empty fields, invalid e-mail, valid submission"),
        ("validate it field by field", "field-by-field validation"),
        ("Use explicit waits instead of sleep", "Used explicit waits rather than sleeping"),
        ("Run database migrations before deploying", "deploy only after running the database migrations"),
        ("Split the task into smaller steps", "break the task down into small steps"),
        ("Cache the API responses", "use caching for responses of the API"),
        ("caching", "Use caching"),
        ("Ask the user for clarification", "Request clarification from the user"),
        ("Seed the database before each test", "Before every test, seed the database"),
        ("Validate each field separately", "Validate the fields one by one"),
        ("I used incremental validation", "incremental validation"),
        ("never use sleep() in tests", "don't use sleep() in tests"),
        ("exponential back-off", "Use exponential backoff"),
        ("summarise the thread", "Summarize the thread"),
        ("Write the summary last", "wrote the summary last"),
        ("Add an index on the foreign key column", "Create an index for the foreign-key column"),
        ("Call the prospect in the morning", "Phone the prospect in the morning"),
        ("Cross-check the claim in two independent sources", "Verify the claim with two independent sources"),
        ("Increase the timeout to 30 seconds", "Raise the timeout to 30 seconds"),
        ("Reduce the batch size", "Lower the batch size"),
        ("Quote the original source", "Cite the original source"),
        ("Denormalise the read model", "Denormalize the read model"),
        ("Sear the steak before baking it", "Bake the steak after searing it"),
        ("Store secrets in a vault", "Keep the secrets in a vault"),
        ("Batch inserts in groups of 500", "Insert in batches of 500"),
    ],
)
def test_paraphrases_are_the_same(one: str, other: str) -> None:
    assert same_strategy(one, other, cosine(one, other))
    assert not contradicts(one, other, cosine(one, other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("always retry", "never retry"),
        ("Use caching", "Avoid caching"),
        ("Use caching", "Do not use caching"),
        ("Use caching", "Don't use caching"),
        ("retry", "rollback"),
        ("strategy A", "strategy B"),
        ("Use the production database for tests", "Use a test database for production"),
        ("Mount the volume read-only", "Mount the volume read-write"),
        ("Raise the timeout", "Lower the timeout"),
        ("Call the customer", "Email the customer"),
        ("Sample with replacement", "Sample without replacement"),
        ("Peel the potatoes before boiling", "Peel the potatoes after boiling"),
        ("Convert XML to JSON", "Convert JSON to XML"),
        ("Scale horizontally", "Scale vertically"),
        ("Commit every 100 rows", "Commit every 1000 rows"),
        ("use model gpt-4", "use model gpt-3.5"),
        ("Use PostgreSQL", "Use SQLite"),
        ("run migrations before deploy", "run migrations after deploy"),
        ("increase the pool size", "decrease the pool size"),
        ("Use synchronous requests", "Use asynchronous requests"),
        ("Write the failing test first", "Write the documentation first"),
        ("turn on verbose logging", "turn off verbose logging"),
        ("merge the branches", "rebase the branches"),
        ("encrypt the payload", "decrypt the payload"),
        ("allow all origins", "block all origins"),
        ("use gpt-4", "use gpt-4o"),
        ("use weak references", "use strong references"),
        ("inbound calls", "outbound calls"),
        ("It's good to mock", "It isn't good to mock"),
        ("hardly ever restart the pod", "always restart the pod"),
        ("use blocking io", "use non-blocking io"),
        ("Write tests then code", "Write code then tests"),
        ("prefer composition over inheritance", "prefer inheritance over composition"),
        ("translate English to German", "translate German to English"),
        ("import from A into B", "import from B into A"),
    ],
)
def test_other_strategies_are_others_however_alike_they_look(one: str, other: str) -> None:
    assert not same_strategy(one, other, cosine(one, other))


@given(st.text(max_size=60))
def test_every_strategy_is_the_same_as_itself(text: str) -> None:
    assert same_strategy(text, text)


@given(st.text(max_size=60), st.text(max_size=60))
def test_the_order_of_the_two_does_not_matter(one: str, other: str) -> None:
    assert same_strategy(one, other, 0.9) == same_strategy(other, one, 0.9)
    assert contradicts(one, other, 0.9) == contradicts(other, one, 0.9)
