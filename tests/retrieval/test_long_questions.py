"""Questions of a hundred thousand signs: answered soon, by their words and what they begin with, and without noise."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from alma.model.memory import Memory
from alma.model.query import EVERYTHING
from alma.model.scope import Scope
from alma.retrieval.engine import RetrievalEngine
from alma.retrieval.query_text import embedded_beginning, question_of

Remember = Callable[..., Any]
NONSENSE = {
    "one letter": "a" * 100_000,
    "points": "." * 100_000,
    "pictures": "🍕" * 50_000,
    "one character": "中" * 100_000,
    "a digest": "0f3a9c" * 16_000,
    "words": "zyxw vuts " * 10_000,
}


@pytest.mark.parametrize("question", NONSENSE.values(), ids=NONSENSE.keys())
def test_a_question_of_nothing_but_signs_is_answered_soon_and_with_nothing(
    engine: RetrievalEngine, remember: Remember, question: str
) -> None:
    remember(*(Memory(content=f"The payment gateway timed out {n} times", project_id="shop") for n in range(20)))
    engine.retrieve("warm up", "helena", "shop")
    began = time.process_time()
    found = engine.retrieve(question, "helena", "shop")
    assert time.process_time() - began < 3
    assert not found
    assert not found.degraded


def test_what_a_long_question_says_behind_its_beginning_is_found_by_words(
    engine: RetrievalEngine, remember: Remember
) -> None:
    told = remember(Memory(content="The zeppelin lands on Tuesday", project_id="shop"))
    question = ". " * 9_000 + "When does the zeppelin land?"
    assert [each.id for each in engine.retrieve(question, "helena", "shop").memories] == [told.id]


def test_a_task_of_thousands_of_different_words_is_answered(engine: RetrievalEngine, remember: Remember) -> None:
    told = remember(Memory(content="The zeppelin lands on Tuesday", project_id="shop"))
    question = "When does the zeppelin land on Tuesday? " + " ".join(f"w{n}" for n in range(3_000))
    found = engine.search(question, [(Scope(project_id="shop"), EVERYTHING)], mode="keyword")
    assert [each.id for each in found.memories] == [told.id]
    assert not engine.retrieve(question, "helena", "shop").degraded


def test_what_a_task_asks_at_its_end_is_found_by_words(engine: RetrievalEngine, remember: Remember) -> None:
    told, *_ = remember(
        Memory(content="The zeppelin lands on Tuesday", project_id="shop"),
        *(Memory(content=f"The payment gateway timed out {n} times", project_id="shop") for n in range(20)),
    )
    question = " ".join(f"step{n} payment" for n in range(100)) + ". When does the zeppelin land?"
    found = engine.search(question, [(Scope(project_id="shop"), EVERYTHING)], mode="keyword")
    assert found.memories[0].id == told.id


def test_a_question_behind_many_empty_lines_is_read(engine: RetrievalEngine, remember: Remember) -> None:
    told = remember(Memory(content="The zeppelin lands on Tuesday", project_id="shop"))
    question = "\n" * 30_000 + "When does the zeppelin land?"
    assert [each.id for each in engine.retrieve(question, "helena", "shop").memories] == [told.id]


def test_a_short_question_is_embedded_whole_and_of_a_long_one_the_beginning() -> None:
    assert embedded_beginning("How do we deploy? " * 100) == "How do we deploy? " * 100
    assert embedded_beginning("你好" * 5_000) == "你好" * 1_000
    long = "deploy the shop " * 5_000
    assert long.startswith(embedded_beginning(long))
    assert 4_000 < len(embedded_beginning(long)) < 7_000


SHIPPED = "Parcels to Switzerland go with Swiss Post because DHL charges extra customs fees"
ASKED = "How do we send packages to Zurich?"
LOG = "\n".join(
    f"2026-02-{day:02d}T04:{day:02d}:17Z DEBUG renderer[{day * 37}] allocated buffer {day * 911} in {day}ms"
    for day in range(1, 29)
)
DOCUMENT = (
    "Early maps of coastlines were scratched on clay tablets by merchants who sailed along the rivers. Monks painted "
    "allegorical worlds on vellum. Surveyors used chains and theodolites to triangulate whole countries. "
) * 20


@pytest.fixture
def shipped(remember: Remember) -> Memory:
    """What is asked for in other words, among other memories."""
    others = ("The office is closed in August", "Anna owns the checkout service", "Prices are stored in cents")
    told: Memory = remember(
        Memory(content=SHIPPED, project_id="shop"), *(Memory(content=each, project_id="shop") for each in others)
    )[0]
    return told


@pytest.mark.parametrize("beside", [LOG, DOCUMENT], ids=["log", "document"])
@pytest.mark.parametrize("form", ["{0}\n\n{1}", "{1}\n\n{0}", "{0} {1}", "Look at this:\n{0}\n{1}"])
def test_what_is_asked_beside_a_long_text_is_found_by_its_meaning(
    engine: RetrievalEngine, shipped: Memory, beside: str, form: str
) -> None:
    task = form.format(beside.strip(), ASKED)
    found = engine.retrieve(task, "helena", "shop")
    assert found.memories[0].id == shipped.id
    assert found.query == task


def test_what_a_long_task_is_about_is_found_beside_what_it_asks(engine: RetrievalEngine, remember: Remember) -> None:
    asked, told = remember(
        Memory(content=SHIPPED, project_id="shop"),
        Memory(content="Merchants scratched the first maps of coastlines on clay tablets", project_id="shop"),
    )
    found = engine.retrieve(f"{DOCUMENT}\n\n{ASKED}", "helena", "shop")
    assert {each.id for each in found.memories} == {asked.id, told.id}


def test_a_long_task_is_given_no_more_than_is_wanted_and_no_copies(engine: RetrievalEngine, remember: Remember) -> None:
    remember(
        *(Memory(content=f"Surveyors triangulate country {n} with chains", project_id="shop") for n in range(9)),
        *(Memory(content=f"Packages to Zurich number {n} are sent by post", project_id="shop") for n in range(9)),
        *(Memory(content=SHIPPED, project_id="shop") for _ in range(3)),
    )
    found = engine.retrieve(f"{DOCUMENT}\n\n{ASKED}", "helena", "shop", top_k=4)
    assert len(found.memories) == 4
    assert len({each.content for each in found.memories}) == 4
    scores = [each.score for each in found.explain()]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    ("task", "part"),
    [
        ("How do we deploy?", None),
        (f"{LOG}\n\nWho owns this?", "Who owns this?"),
        (f"Who owns this?\n{LOG}", "Who owns this?"),
        (f"Roll back the shop.\n\n{LOG}\n\nThanks!", "Roll back the shop. Thanks!"),
        (f"Here is the log:\n\n{LOG}\n\n这个错误是什么意思？", "这个错误是什么意思？"),
        (DOCUMENT + "Who drew them?", "Who drew them?"),
        ("x" * 5_000, None),
        ("." * 5_000, None),
    ],
)
def test_of_a_long_task_that_part_asks_which_stands_at_either_end(task: str, part: str | None) -> None:
    assert question_of(task) == part
