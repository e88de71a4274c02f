"""Without a judge: a newer fact in the same form comes first, news of something else does not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from alma.embeddings.base import EmbeddingProvider
from alma.retrieval.engine import RetrievalEngine
from alma.retrieval.scoring import ScoringWeights
from alma.storage.base import StorageBackend
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
        (ANNA, "Anna no longer drinks coffee.", "Where does Anna live?"),
        (ANNA, "Hannah moved to 7 Pine Road in York.", "Where does Anna live?"),
        (CEO, "The CEO's new car is electric.", "Who is the CEO?"),
        (
            "Server alpha runs Debian 11.",
            "Server beta was upgraded to Debian 12.",
            "Which Debian does server alpha run?",
        ),
        (
            "Sarah is the account manager for Acme.",
            "Sarah left for Paris to see a customer.",
            "Who is the account manager for Acme?",
        ),
        ("Our Paris office is at 12 Rue Cler.", "Tom left Paris on Monday.", "Where is our Paris office?"),
        ("The best pizza is at Luigi's.", "Luigi's closed early on Sunday.", "Where is the best pizza?"),
        ("Leo is allergic to nuts.", "Leo's sister stopped eating nuts.", "What is Leo allergic to?"),
        ("Nina speaks Danish.", "Nina finished a Danish novel.", "Which language does Nina speak?"),
        ("The wifi password is on the fridge.", "We replaced the fridge's light bulb.", "Where is the wifi password?"),
        ("The landlord is Mr Hobbs.", "Mr Hobbs retired from the chess club.", "Who is the landlord?"),
        ("Tickets are sold at the north gate.", "The south gate was shut down.", "Where are tickets sold?"),
        ("Eva lives with her parents.", "Eva's brother has moved in with Tom.", "Who does Eva live with?"),
        ("Tess is allergic to nuts.", "Tess's son is no longer allergic to nuts.", "Is Tess allergic to nuts?"),
        (
            "The bakery on Elm Street closes at 18:00.",
            "The bakery on Oak Street now closes at 19:30.",
            "When does the bakery on Elm Street close?",
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


@pytest.mark.parametrize(
    ("older", "newer", "question"),
    [
        ("Our CI runs on Jenkins.", "Jenkins was upgraded to Java 21.", "What does our CI run on?"),
        ("The login page uses OAuth.", "Finished the login page.", "What does the login page use?"),
        ("I take 20 mg of statins.", "Dad's statins were increased to 40 mg.", "How much statins do I take?"),
        ("My manager is Priya Raman.", "Priya moved my review to Friday.", "Who is my boss?"),
        ("My manager is Priya Raman.", "Priya left a message about the review.", "Who is my boss?"),
        ("The API limit is 100 per minute.", "The upload limit was raised to 50 MB.", "What is the API limit?"),
        ("Anna's birthday is 4 May.", "Anna moved her birthday party to 10 May.", "When is Anna's birthday?"),
        ("The team meets in room Berlin.", "The projector in room Berlin was replaced.", "Where does the team meet?"),
        ("I live at 14 Rosewood Lane in Leeds.", "My brother moved to Manchester.", "Where do I live?"),
        ("The backup runs at 02:30.", "The backup now includes the audit log.", "When does the backup run?"),
        ("Sam drives a Volvo.", "Pat sold the Volvo and bought a Kia.", "What car does Sam drive?"),
        (
            "Amara leads the enzyme project.",
            "Amara no longer leads the reading group.",
            "Who leads the enzyme project?",
        ),
        ("Ivo works for Judge Brandt.", "Ivo's cousin left Judge Brandt.", "Who does Ivo work for?"),
        ("Gran's soup is made of leeks and potatoes.", "Gran gave away the leeks.", "What is Gran's soup made of?"),
        ("Visits are from 14:00 to 16:00.", "Ticket 14 was closed.", "When are visits?"),
        ("Visits are from 14:00 to 16:00.", "Lena passed 14 tests.", "When are visits?"),
        ("Our babysitter is Alina.", "Alina quit smoking.", "Who is our babysitter?"),
        ("Feature flags are in Redis.", "Sessions were moved from Redis to Postgres.", "Where are feature flags?"),
        ("Hangar 2 belongs to Aero Blue.", "Aero Blue sold hangar 5 to Skyline.", "Who owns hangar 2?"),
        ("Mara's sister lives in Ghent.", "Mara has moved to Liège.", "Where does Mara's sister live?"),
        ("We sell bread rolls on Sunday.", "We stopped selling rye bread.", "What do we sell on Sunday?"),
        ("Guests get tea in the lobby.", "We stopped buying green tea.", "What do guests get in the lobby?"),
    ],
)
def test_what_says_that_something_else_is_over_does_not(
    engine: RetrievalEngine, remember: Remember, older: str, newer: str, question: str
) -> None:
    assert order(engine, remember, older, newer, question)[0] == older


def order_of_facts(engine: RetrievalEngine, remember: Remember, older: str, newer: str, question: str) -> list[str]:
    told = ((older, MARCH), (newer, SEPTEMBER), ("Parking permits are for members of staff.", SEPTEMBER))
    remember(*(make.some_knowledge(fact=fact, last_verified=moment) for fact, moment in told))
    found = engine.retrieve(question, "helena", "shop", now=datetime(2026, 11, 17, tzinfo=UTC))
    for each in found.explain():
        assert sum(each.terms.values()) == pytest.approx(each.score)
    return [fact.fact for fact in found.domain_knowledge][:2]


@pytest.mark.parametrize(
    ("older", "newer", "question"),
    [
        (
            "The projector in room Berlin is an Epson.",
            "The projector in room Oslo is a Sony.",
            "Which projector is in room Berlin?",
        ),
        (
            "Dr. Silva is the physician on ward 7.",
            "Dr. Mensah is now the physician on ward 9.",
            "Who is the physician on ward 7?",
        ),
        ("The API limit is 100 a minute.", "The webhook limit is 300 a minute.", "What is the API limit?"),
        ("Ben's badge number is 4471.", "Zoe's badge number is 9910.", "What is Ben's badge number?"),
    ],
)
def test_a_newer_fact_about_something_else_stands_behind_the_one_that_is_asked_for(
    engine: RetrievalEngine, remember: Remember, older: str, newer: str, question: str
) -> None:
    assert order_of_facts(engine, remember, older, newer, question) == [older, newer]


@pytest.mark.parametrize(
    ("older", "newer", "question"),
    [
        ("The API limit is 100 a minute.", "The API limit is 300 a minute.", "What is the API limit?"),
        ("Standup is at 9:30.", "Standup starts at 10 from now on.", "When is standup?"),
        (
            "Captain Reyes commands the Aurora.",
            "Lindqvist took over command of the Aurora.",
            "Who commands the Aurora?",
        ),
    ],
)
def test_a_newer_fact_about_the_same_thing_stands_before_the_older_one(
    engine: RetrievalEngine, remember: Remember, older: str, newer: str, question: str
) -> None:
    assert order_of_facts(engine, remember, older, newer, question) == [newer, older]


def test_the_newest_fact_comes_first_where_nothing_but_its_age_counts(
    store: StorageBackend, embedder: EmbeddingProvider, remember: Remember
) -> None:
    weights = ScoringWeights(similarity=0, recency=1, success=0, confidence=0)
    engine = RetrievalEngine(store, embedder, scoring_weights=weights, min_score_threshold=0)
    older, newer = "The projector in room Berlin is an Epson.", "The projector in room Oslo is a Sony."
    assert order_of_facts(engine, remember, older, newer, "Which projector is in room Berlin?") == [newer, older]
    engine.close()
