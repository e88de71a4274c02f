"""An agent with a handful of memories: the right one first, and nothing where nothing fits."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from alma.model.memory import Memory
from alma.retrieval.engine import RetrievalEngine

Remember = Callable[..., Any]
NOW = datetime(2026, 6, 17, 12, tzinfo=UTC)
SERVICES = (
    "We deploy the checkout service with Helm on Tuesdays.",
    "We deploy the search service with Ansible on Fridays.",
    "We deploy the billing service by hand, with a runbook.",
    "We deploy the mail service with Docker Compose.",
    "We deploy the image service to Cloudflare.",
    "We deploy the reporting service every night.",
    "We deploy the gateway service behind a feature flag.",
    "We deploy the auth service with a canary of five percent.",
)
ANSWERS = {
    "How do we deploy the billing service?": "billing",
    "deploy the mail service": "mail",
    "Which service is deployed with a canary?": "auth",
    "What do we deploy by hand?": "billing",
    # Words that all of them have tell nothing, so that meaning decides.
    "rollout of login service gradually": "auth",
    # A newer memory about another service overrules nothing.
    "Where does the pictures service get deployed?": "image",
}
TEA, CITY, DOG = "用户喜欢喝绿茶。", "用户住在上海。", "用户的狗叫小白。"


def contents(engine: RetrievalEngine, question: str, **options: Any) -> list[str]:
    found = engine.retrieve(question, "helena", "shop", kinds=[Memory], now=NOW, **options)
    return [memory.content for memory in found.memories]


def test_of_memories_that_are_alike_the_right_one_comes_first(engine: RetrievalEngine, remember: Remember) -> None:
    remember(*(Memory(content=each, project_id="shop") for each in SERVICES))
    first = {question: contents(engine, question)[0] for question in ANSWERS}
    assert {question: each.split()[3] for question, each in first.items()} == ANSWERS


@pytest.mark.parametrize("question", ["What is the capital of Mongolia?", "qwzxv blorft", "grandma's apple pie"])
def test_what_was_never_stored_is_not_found(engine: RetrievalEngine, remember: Remember, question: str) -> None:
    remember(*(Memory(content=each, project_id="shop") for each in SERVICES))
    assert contents(engine, question) == []


def test_a_writing_that_the_model_does_not_know_is_found_by_its_words(
    engine: RetrievalEngine, remember: Remember
) -> None:
    remember(*(Memory(content=each, project_id="shop") for each in (TEA, CITY, DOG)))
    assert contents(engine, "用户住在哪里?")[0] == CITY
    assert contents(engine, "绿茶")[0] == TEA
    assert contents(engine, "量子力学是什么") == []


THAI, LAO, PARTY = "เซิร์ฟเวอร์รีสตาร์ททุกคืน 4711", "ເຊີບເວີເລີ່ມຕົ້ນໃໝ່ທຸກຄືນ", "🎉🎉🎉"


@pytest.mark.parametrize("question", ["xyzzy", "hm", "foobar", "0815"])
def test_a_memory_of_which_the_model_reads_nothing_is_near_to_no_word_or_number(
    engine: RetrievalEngine, remember: Remember, question: str
) -> None:
    remember(*(Memory(content=each, project_id="shop") for each in (THAI, LAO, PARTY, CITY)))
    assert contents(engine, question) == []


def test_a_memory_of_which_the_model_reads_nothing_is_found_by_what_it_shares_with_the_question(
    engine: RetrievalEngine, remember: Remember
) -> None:
    remember(*(Memory(content=each, project_id="shop") for each in (THAI, LAO, PARTY, CITY)))
    assert contents(engine, "What is 4711?") == [THAI]
    assert contents(engine, "Who wrote 🎉?") == [PARTY]


@pytest.mark.parametrize(
    ("question", "days"),
    [
        ("What happened yesterday?", [1]),
        ("What did we do last week?", [8, 9]),
        ("Anything new in March?", [95]),
        ("Summarize the past 10 days", [1, 8, 9]),
    ],
)
def test_a_query_that_asks_for_a_time_alone_gets_what_happened_then(
    engine: RetrievalEngine, remember: Remember, question: str, days: list[int]
) -> None:
    told = {
        1: "Maria asked for a darker theme.",
        8: "The sprint review went well.",
        9: "Internet Explorer is dropped.",
        95: "Version 2.0 is with all customers.",
        200: "We talked about last week's outage and what happened yesterday.",
    }
    remember(*(Memory(content=c, project_id="shop", event_time=NOW - timedelta(days=d)) for d, c in told.items()))
    assert set(contents(engine, question)) == {told[day] for day in days}


def test_where_nothing_happened_then_there_is_nothing_to_tell(engine: RetrievalEngine, remember: Remember) -> None:
    remember(Memory(id="theme", content="What happened in March: a darker theme.", project_id="shop", event_time=NOW))
    found = engine.retrieve("What happened in March 2020?", "helena", "shop", now=NOW)
    assert not found
    assert str(found.why_not("theme")) == "time: it is outside of the time range of the query"


def test_a_memory_without_a_time_of_its_own_happened_when_it_was_made(
    engine: RetrievalEngine, remember: Remember
) -> None:
    made = NOW - timedelta(days=1)
    remember(Memory(content="Maria asked for a darker theme.", project_id="shop", created_at=made))
    assert contents(engine, "What happened yesterday?") == ["Maria asked for a darker theme."]


def test_a_handshake_asks_for_no_time(engine: RetrievalEngine, remember: Remember) -> None:
    remember(Memory(content="Maria asked for a darker theme.", project_id="shop", event_time=NOW))
    assert contents(engine, "How are you today?") == []


GERMAN = {
    "deploy": "Wir deployen den Shop jeden Freitag um 15 Uhr.",
    "tea": "Anna mag grünen Tee und keinen Kaffee.",
    "backup": "Die Datenbank wird nachts um zwei gesichert.",
    "server": "Der Server in Frankfurt hat 64 GB Arbeitsspeicher.",
    "team": "Ben leitet das Team für die Suche.",
    "customer": "Der Kunde möchte Rechnungen als PDF bekommen.",
    "dog": "Unser Hund heißt Bello und frisst am liebsten Huhn.",
    "car": "Das Auto braucht neue Winterreifen.",
    "rent": "Die Miete beträgt 1200 Euro im Monat.",
    "printer": "Der Drucker im zweiten Stock ist kaputt.",
}
IN_GERMAN = {
    "Wann deployen wir den Shop?": "deploy",
    "Welchen Tee mag Anna?": "tea",
    "Wann wird die Datenbank gesichert?": "backup",
    "Wie heißt unser Hund?": "dog",
    "Wie hoch ist die Miete?": "rent",
    "Was ist mit dem Drucker?": "printer",
    "Wie hoch ist der Mount Everest?": None,
    "Wer schrieb den Faust?": None,
    "Wie weit ist der Mond entfernt?": None,
    "Welche Pilze sind giftig?": None,
    "Wie spielt man Schach?": None,
    "Wie funktioniert ein Kühlschrank?": None,
}


def test_in_a_language_that_the_model_has_not_learned_only_what_stands_out_is_found(
    engine: RetrievalEngine, remember: Remember
) -> None:
    remember(*(Memory(id=key, content=each, project_id="shop") for key, each in GERMAN.items()))
    for question, expected in IN_GERMAN.items():
        found = [GERMAN[expected]] if expected else []
        assert contents(engine, question)[:1] == found, question


def test_a_question_in_another_language_finds_what_is_said_in_english(
    engine: RetrievalEngine, remember: Remember
) -> None:
    remember(Memory(content="The server in Frankfurt has 64 GB of memory.", project_id="shop"))
    assert contents(engine, "Wie viel RAM hat die Maschine in Frankfurt?")
