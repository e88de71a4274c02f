"""Whether anything that is stored has to do with a task: strong, weak, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from alma.model.learning import Heuristic, Outcome
from alma.model.memory import Memory
from alma.model.query import EVERYTHING
from alma.model.scope import Scope
from alma.retrieval.engine import RetrievalEngine
from alma.retrieval.relevance import FEATURES, default_relevance
from alma.testing import builders as make
from tests.support.tuned import tuned

Remember = Callable[..., Any]

DEPLOYED = ("checkout", "search", "billing", "mail", "login", "catalogue")
OFFICE = (
    "The office plants are watered on Mondays",
    "Ana prefers tea to coffee",
    "The data warehouse loads at 02:00 UTC",
    "Invoices are sent as PDF",
    "Lisbon has 12 desks",
    "Sprint review is on Thursday",
)
SHIP = "Ship the recommendations service to prod"


def remember_deployments(remember: Remember) -> set[str]:
    """Six deployments among other things; the ids of the deployments."""
    remember(*(make.a_memory(content=text, title="") for text in OFFICE))
    remember(
        *(make.a_memory(id=each, content=f"Deploy the {each} service to production", title="") for each in DEPLOYED)
    )
    return set(DEPLOYED)


def test_what_says_it_in_other_words_is_found(engine: RetrievalEngine, remember: Remember) -> None:
    deployments = remember_deployments(remember)
    found = engine.retrieve(SHIP, "helena", "shop", top_k=8)
    assert {memory.id for memory in found.memories} == deployments
    assert "service to production" in found.to_prompt()


@pytest.mark.parametrize("question", ["How do I bake a cake?", "Who is the king of Spain?", "Tune a guitar", "x", "{}"])
def test_a_question_about_something_else_gets_nothing(
    engine: RetrievalEngine, remember: Remember, question: str
) -> None:
    remember_deployments(remember)
    assert not engine.retrieve(question, "helena", "shop")


def test_a_search_gives_its_best_with_its_relevance(engine: RetrievalEngine, remember: Remember) -> None:
    remember_deployments(remember)
    found = engine.search("How do I bake a cake?", [(Scope(project_id="shop"), EVERYTHING)], 3)
    assert len(found.memories) == 3
    for each in found.explain():
        assert each.relevance is not None
        assert each.relevance < default_relevance().strong
        assert each.strength == "weak"


def a_tried(key: str, task: str) -> Outcome:
    return make.an_outcome(id=key, task_description=task, strategy_used="ask Ben first")


def test_weak_lessons_come_on_demand_only(engine: RetrievalEngine, remember: Remember) -> None:
    remember(*(a_tried(f"other-{place}", text) for place, text in enumerate(OFFICE[1:])))
    remember(a_tried("plants", "Buy pots for the plants"))
    task = "Water the flowers"
    assert not engine.retrieve(task, "helena", "shop").outcomes
    found = engine.retrieve(task, "helena", "shop", weak=True)
    (first, *_) = found.outcomes
    explanation = found.explanation_of(first.id)
    assert explanation.strength == "weak"
    assert found.why_not(first.id) is None
    assert first.task_description in found.to_prompt()
    assert found.to_prompt(weak=False) == ""


def test_why_not_names_the_number_and_the_threshold(engine: RetrievalEngine, remember: Remember) -> None:
    remember(make.a_memory(id="tea", content="Ana likes tea"), make.a_memory(id="form", content="the login form"))
    dropped = engine.retrieve("Test the login form", "helena", "shop").why_not("tea")
    assert dropped is not None
    assert dropped.stage == "relevance"
    assert f"is below {default_relevance().weak:g}" in dropped.reason


def test_a_weak_memory_is_in_the_slice_and_not_in_its_prompt(engine: RetrievalEngine, remember: Remember) -> None:
    remember_deployments(remember)
    found = engine.retrieve(SHIP, "helena", "shop", top_k=8)
    weak = [memory for memory in found.memories if found.strength_of(memory) == "weak"]
    for memory in weak:
        assert memory.content not in found.to_prompt()
        assert memory.content in found.to_prompt(weak=True)
        dropped = found.why_not(memory.id)
        assert dropped is not None
        assert "weak" in dropped.reason
    assert len(weak) < len(found.memories)


def test_the_outcomes_that_a_rule_counts_are_not_repeated_below_it(engine: RetrievalEngine, remember: Remember) -> None:
    task = "Test the login form"
    rule = Heuristic(
        id="rule", agent="helena", project_id="shop", condition=task, strategy="try each field", confidence=0.9
    )
    counted = make.an_outcome(id="counted", task_description=task, strategy_used="try each field", lesson_id="rule")
    other = make.an_outcome(id="other", task_description=f"{task} on mobile", strategy_used="tap with two fingers")
    remember(rule, counted, other)
    found = engine.retrieve(task, "helena", "shop")
    assert {outcome.id for outcome in found.outcomes} == {"counted", "other"}
    prompt = found.packed()
    assert "rule" in prompt.included
    assert "other" in prompt.included
    assert "counted" not in prompt.included
    dropped = found.why_not("counted")
    assert dropped is not None
    assert "evidence for rule" in dropped.reason


def test_a_conversation_that_is_too_long_to_be_read_gains_as_a_whole(
    engine: RetrievalEngine, remember: Remember, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuned(monkeypatch, turns_read=8)
    day = datetime(2026, 1, 5, tzinfo=UTC)
    facts = [f"{name} was written in the language of Latin" for name in ("Iliad", "Aeneid", "Beowulf", "Edda", "Faust")]
    facts += [f"The capital of region {number} is Port {number}" for number in range(20)]
    facts += ["Don Quixote was written in the language of Spanish"]
    remember(
        *(
            Memory(
                id=f"fact-{n}", content=fact, project_id="shop", session_id="facts", event_time=day + timedelta(hours=n)
            )
            for n, fact in enumerate(facts)
        )
    )
    found = engine.retrieve("Which language was Don Quixote written in?", "helena", "shop", top_k=3)
    assert found.memories[0].id == f"fact-{len(facts) - 1}"


@pytest.mark.parametrize("text", ["y", "🎉", "select * from t;", '{"a": [1, 2]}', "谁喜欢绿茶", "z" * 20_000, "a\x00b"])
def test_odd_tasks_get_a_sound_answer(engine: RetrievalEngine, remember: Remember, text: str) -> None:
    remember_deployments(remember)
    found = engine.retrieve(text, "helena", "shop")
    assert not [memory for memory in found.memories if memory.id in DEPLOYED]


def test_every_weight_is_of_a_known_feature() -> None:
    model = default_relevance()
    assert set(model.with_vectors.weights) == set(FEATURES)
    assert set(model.words_only.weights) < set(FEATURES)
    assert 0 < model.weak < model.strong < 1
