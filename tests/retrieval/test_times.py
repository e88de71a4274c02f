"""Times: what happened in the time that a question speaks of, whatever kind of memory it is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome
from alma.model.memory import Memory
from alma.retrieval.engine import RetrievalEngine
from alma.testing.builders import a_preference

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
YESTERDAY, MARCH = NOW - timedelta(days=1), datetime(2026, 3, 10, tzinfo=UTC)
OWNER: dict[str, Any] = {"agent": "helena", "project_id": "shop"}

Remember = Callable[..., Any]


def found(engine: RetrievalEngine, question: str, **options: Any) -> list[str]:
    """The ids that are handed over, having seen that the terms of every score add up to it."""
    answer = engine.retrieve(question, "helena", "shop", now=NOW, **options)
    for reasons in answer.explanations.values():
        assert sum(reasons.terms.values()) == pytest.approx(reasons.score)
    return [str(record.key) for record in answer]


def a_deployment(key: str, strategy: str, moment: datetime) -> Outcome:
    return Outcome(
        id=key, task_description="Deploy the shop", strategy_used=strategy, success=True, timestamp=moment, **OWNER
    )


DEPLOYMENTS = (
    a_deployment("today", "canary", NOW),
    a_deployment("yesterday", "blue and green", YESTERDAY),
    a_deployment("march", "by hand, over night", MARCH),
)


def test_outcomes_of_the_time_that_is_asked_for_come_first(engine: RetrievalEngine, remember: Remember) -> None:
    remember(*DEPLOYMENTS)
    assert found(engine, "How did we deploy the shop in March?")[0] == "march"
    assert found(engine, "How did we deploy the shop yesterday?")[0] == "yesterday"
    assert found(engine, "How did we deploy the shop?")[0] == "today"
    assert found(engine, "what happened yesterday?", kinds=["outcome"]) == ["yesterday"]


def test_lessons_of_every_kind_are_of_the_time_they_were_learned_or_seen_to_hold(
    engine: RetrievalEngine, remember: Remember
) -> None:
    lesson = {"condition": "the cart is slow", "strategy": "cache the prices", "confidence": 0.8, **OWNER}
    old = NOW - timedelta(days=400)
    remember(
        Heuristic(id="learned", created_at=MARCH, last_validated=NOW, **lesson),
        Heuristic(id="validated", created_at=old, last_validated=MARCH, **lesson | {"strategy": "fewer queries"}),
        Heuristic(id="other", created_at=old, last_validated=NOW, **lesson | {"strategy": "a larger machine"}),
        AntiPattern(
            id="mistake", pattern="retry at once", why_bad="it floods", last_seen=MARCH, created_at=old, **OWNER
        ),
        DomainKnowledge(id="fact", domain="db", fact="The shop runs on MySQL", last_verified=MARCH, **OWNER),
        DomainKnowledge(id="newer", domain="db", fact="The shop runs on Postgres", last_verified=NOW, **OWNER),
    )
    assert sorted(found(engine, "What happened in March?")) == ["fact", "learned", "mistake", "validated"]
    assert found(engine, "What did the shop run on in March?", kinds=[DomainKnowledge])[0] == "fact"
    assert found(engine, "What does the shop run on?", kinds=[DomainKnowledge])[0] == "newer"


def test_an_event_bounds_the_time_of_lessons(engine: RetrievalEngine, remember: Remember) -> None:
    remember(*DEPLOYMENTS)
    remember(Memory(content="Release 2.0 went out", project_id="shop", event_time=NOW - timedelta(days=100)))
    outcomes = engine.retrieve("How did we deploy the shop before the 2.0 release?", "helena", "shop", now=NOW).outcomes
    assert outcomes[0].id == "march"


def test_an_event_that_no_memory_names_bounds_no_time(engine: RetrievalEngine, remember: Remember) -> None:
    remember(*DEPLOYMENTS)
    asked = "How did we deploy the shop before the 2.0 release?"
    assert found(engine, asked, kinds=[Outcome])[0] == "today"


RELEASES = (
    ("rule", "Before the release, run the smoke tests and freeze the code", 200),
    ("notes", "The release notes are written by Ana", 290),
    ("tagged", "The release of 1.0 was tagged by Ben late in the evening", 350),
)


@pytest.mark.parametrize(
    "question", ["What should be done before the release?", "What do we usually do before the release?"]
)
def test_who_asks_what_is_done_before_an_event_gets_the_rule_whenever_it_was_told(
    engine: RetrievalEngine, remember: Remember, question: str
) -> None:
    remember(*(_told(key, content, days) for key, content, days in RELEASES))
    assert found(engine, question)[0] == "rule"


def test_what_says_what_was_before_an_event_is_of_that_time_and_does_not_date_the_event(
    engine: RetrievalEngine, remember: Remember
) -> None:
    remember(
        _told("told", "Before the launch we had frozen the code", 10),
        _told("launch", "The launch went well", 50),
        _told("hired", "We hired Ben", 80),
        _told("fired", "We let Carl go", 20),
    )
    assert sorted(found(engine, "What did we do before the launch?")) == ["hired", "told"]


def test_a_date_behind_an_event_tells_which_one_it_was(engine: RetrievalEngine, remember: Remember) -> None:
    remember(
        _told("march", "The outage of the mail server is over", 252),
        _told("may", "The outage of the shop is over", 190),
        _told("cron", "We moved the cron jobs", 220),
        _told("queue", "We moved the queue", 100),
        _told("files", "We moved the files", 300),
    )
    assert sorted(found(engine, "What did we do after the outage in March?")) == ["cron", "march", "may", "queue"]
    assert sorted(found(engine, "What did we do since the outage in May?")) == ["may", "queue"]
    assert sorted(found(engine, "What did we do before the outage in May?")) == ["cron", "files", "march"]


def test_an_event_that_no_one_told_of_was_when_the_question_says(engine: RetrievalEngine, remember: Remember) -> None:
    remember(_told("cron", "We moved the cron jobs", 220), _told("queue", "We moved the queue", 100))
    assert found(engine, "Which jobs or queue did we move since the flood in July?")[0] == "queue"


def _told(key: str, content: str, days_ago: int) -> Memory:
    return Memory(id=key, content=content, project_id="shop", event_time=NOW - timedelta(days=days_ago))


def test_what_was_said_before_of_a_day_is_of_that_day(engine: RetrievalEngine, remember: Remember) -> None:
    remember(
        Memory(id="plan", content="We launch on 25 November", project_id="shop", event_time=NOW - timedelta(days=8)),
        Memory(id="dinner", content="Dinner with the board", project_id="shop", event_time=NOW + timedelta(days=7)),
        Memory(id="cart", content="We renamed the cart", project_id="shop", event_time=NOW - timedelta(days=300)),
    )
    assert sorted(found(engine, "What happens on 25 November?")) == ["dinner", "plan"]
    assert sorted(found(engine, "What is planned for next week?")) == ["dinner", "plan"]
    assert found(engine, "What happened in the last 10 days?") == ["plan"]


def test_what_is_to_come_after_the_time_that_is_asked_for_gains_nothing(
    engine: RetrievalEngine, remember: Remember
) -> None:
    for key, days in (("next", 7), ("later", 14)):
        content = f"Workshop with the {key} supplier"
        remember(Memory(id=key, content=content, project_id="shop", event_time=NOW + timedelta(days=days)))
    answer = engine.retrieve("Which workshop with a supplier is next week?", "helena", "shop", now=NOW)
    assert [answer.explanation_of(key).terms.get("time", 0.0) > 0 for key in ("next", "later")] == [True, False]


def test_preferences_come_whatever_time_is_asked_for(engine: RetrievalEngine, remember: Remember) -> None:
    remember(a_preference(id="tabs", user_id="maria", timestamp=MARCH))
    assert found(engine, "What happened yesterday?", user_id="maria") == ["tabs"]


@pytest.mark.parametrize(
    "question", ["What happened yesterday evening?", "What was done with the database on Tuesday night?"]
)
def test_of_two_memories_of_a_day_the_one_of_the_evening_comes_first(
    engine: RetrievalEngine, remember: Remember, question: str
) -> None:
    morning, evening = (YESTERDAY.replace(hour=hour) for hour in (9, 20))
    remember(
        Memory(id="evening", content="The database was moved", project_id="shop", event_time=evening),
        Memory(id="morning", content="The database was backed up", project_id="shop", event_time=morning),
    )
    assert found(engine, question) == ["evening", "morning"]


def test_who_asks_what_is_to_come_finds_what_was_said_of_it_before(engine: RetrievalEngine, remember: Remember) -> None:
    remember(
        Memory(
            id="crown",
            content="I was told to come back in March",
            project_id="shop",
            event_time=NOW - timedelta(days=60),
        ),
        Memory(id="cart", content="We renamed the cart", project_id="shop", event_time=YESTERDAY),
    )
    assert found(engine, "What is planned for March?") == ["crown"]
    assert found(engine, "What did I note since Monday?") == ["cart"]


@pytest.mark.parametrize(
    "question",
    [
        "Was ist gestern passiert?",
        "Was geschah gestern?",
        "Was wurde gestern beschlossen?",
        "¿Qué pasó ayer?",
        "Qu'est-ce qui s'est passé hier ?",
        "Qu'avons-nous fait hier ?",
        "Cosa è successo ieri?",
        "Что произошло вчера?",
        "Co się stało wczoraj?",
        "Vad hände igår?",
        "Dün ne oldu?",
        "ماذا حدث أمس؟",
        "昨天发生了什么？",
        "昨日何がありましたか？",
        "어제 무슨 일이 있었나요?",
    ],
)
def test_who_asks_for_a_time_alone_may_ask_in_another_language(
    engine: RetrievalEngine, remember: Remember, question: str
) -> None:
    remember(
        Memory(id="yesterday", content="Der Vertrag wurde unterschrieben", project_id="shop", event_time=YESTERDAY),
        Memory(id="march", content="Der Vertrag wurde entworfen", project_id="shop", event_time=MARCH),
    )
    assert found(engine, question) == ["yesterday"]


OUTAGE = datetime(2026, 9, 3, 10, tzinfo=UTC)


def test_what_happened_on_the_day_of_an_event_was_during_it(engine: RetrievalEngine, remember: Remember) -> None:
    remember(
        Memory(id="event", content="The outage of the payment provider began", event_time=OUTAGE, project_id="shop"),
        Memory(id="then", content="Marek sent vouchers", event_time=OUTAGE + timedelta(hours=3), project_id="shop"),
        Memory(id="later", content="Lena sent flowers", event_time=OUTAGE + timedelta(days=30), project_id="shop"),
        Memory(id="lesson", content="From the outage we learned to keep a second provider", project_id="shop"),
    )
    answer = found(engine, "What happened during the outage?")
    assert "then" in answer
    assert "later" not in answer
    # It may have taken longer than a day, so that nothing else is left out.
    assert "lesson" in answer


def test_another_event_of_its_kind_does_not_tell_when_something_was(
    engine: RetrievalEngine, remember: Remember
) -> None:
    remember(
        Memory(id="other", content="The outage of the mail server began", event_time=OUTAGE, project_id="shop"),
        Memory(id="then", content="Marek sent vouchers", event_time=OUTAGE + timedelta(hours=3), project_id="shop"),
    )
    assert "then" not in found(engine, "What happened during the outage of the warehouse?")


def test_what_was_between_two_events_is_bounded_by_both(engine: RetrievalEngine, remember: Remember) -> None:
    remember(
        Memory(id="begun", content="Kickoff of the new shop", event_time=OUTAGE, project_id="shop"),
        Memory(
            id="ended", content="Launch party of the new shop", event_time=OUTAGE + timedelta(20), project_id="shop"
        ),
        Memory(id="inside", content="We pay with Stripe", event_time=OUTAGE + timedelta(9), project_id="shop"),
        Memory(id="before", content="We pay with PayPal", event_time=OUTAGE - timedelta(9), project_id="shop"),
        Memory(id="after", content="We pay with Adyen", event_time=OUTAGE + timedelta(40), project_id="shop"),
    )
    answer = found(engine, "What happened between the kickoff and the launch?")
    assert "inside" in answer
    assert not {"before", "after"} & set(answer)
    chosen = found(engine, "With what did we pay between the kickoff and the launch?")
    assert next(each for each in chosen if each in ("inside", "before", "after")) == "inside"


def test_of_two_memories_of_a_day_the_one_of_the_hour_comes_first(engine: RetrievalEngine, remember: Remember) -> None:
    day = NOW.replace(hour=0) - timedelta(days=1)
    remember(
        Memory(id="nine", content="The gateway raised an alarm", event_time=day.replace(hour=9), project_id="shop"),
        Memory(
            id="three", content="The gateway raised an alarm again", event_time=day.replace(hour=15), project_id="shop"
        ),
    )
    assert found(engine, "Which alarm did the gateway raise yesterday at 3 pm?")[0] == "three"
    assert found(engine, "Which alarm did the gateway raise yesterday before 10 am?")[0] == "nine"


@pytest.mark.parametrize(
    "question",
    [
        "What happened earlier today?",
        "What happened so far today?",
        "What happened early this morning?",
        "What happened at 9 am today?",
        "What happened between 8 and 10 this morning?",
        "What happened around 9 am?",
        "Show me the notes of today",
        "List everything from today",
        "What was decided today?",
        "What progress did we make today?",
        "How did it go today?",
        "Catch me up on today",
        "today",
    ],
)
def test_however_a_time_alone_is_asked_for_it_gives_what_happened_then(
    engine: RetrievalEngine, remember: Remember, question: str
) -> None:
    today = NOW.replace(hour=9)
    remember(
        Memory(id="today", content="The printer ran out of paper", event_time=today, project_id="shop"),
        Memory(id="before", content="Nine visitors came", event_time=today - timedelta(days=3), project_id="shop"),
    )
    assert found(engine, question) == ["today"]


def test_of_hours_without_a_day_the_last_ones_come_first(engine: RetrievalEngine, remember: Remember) -> None:
    midnight = NOW.replace(hour=0)
    remember(
        *(
            Memory(id=key, content=f"Alarm {key}", event_time=midnight + timedelta(minutes=minutes), project_id="shop")
            for key, minutes in {"late": 600, "soon": 10, "yesterday": -1400}.items()
        )
    )
    assert found(engine, "What happened shortly after midnight?") == ["soon", "late"]
    # Who asks for something else means any such hour.
    assert found(engine, "Which alarm rang shortly after midnight?") != ["soon", "late"]


def test_what_is_to_be_done_in_a_time_may_have_been_told_before(engine: RetrievalEngine, remember: Remember) -> None:
    told = NOW - timedelta(days=20)
    remember(Memory(id="task", content="Your task is to water the plants", event_time=told, project_id="shop"))
    assert found(engine, "What is my task today?") == ["task"]
