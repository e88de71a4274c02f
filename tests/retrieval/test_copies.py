"""What was stored many times is handed over once, and keeps nothing else out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from alma.model.record import Record
from alma.model.scope import MemoryScope
from alma.retrieval.engine import RetrievalEngine
from alma.testing import builders as make

Remember = Callable[..., Any]
QUESTION = "How do I test the login form?"
COPIED = "Test the login form with an empty password"
OTHERS = {
    "locks": "Test that the login form locks an account after five wrong passwords",
    "expired": "Test the login form with an expired session",
    "mobile": "Test the fingerprint button of the login form on mobile",
    "moved": "Test that the login form was moved to another page",
}
KINDS: dict[str, Callable[[str, str], Record]] = {
    "memories": lambda key, text: make.a_memory(id=key, content=text),
    "outcomes": lambda key, text: make.an_outcome(id=key, task_description=text, strategy_used="try each field"),
    "domain_knowledge": lambda key, text: make.some_knowledge(id=key, fact=text),
}


@pytest.mark.parametrize("copies", [25, 300])
@pytest.mark.parametrize("section", KINDS)
def test_copies_leave_room_for_what_else_is_known(
    engine: RetrievalEngine, remember: Remember, section: str, copies: int
) -> None:
    stored = KINDS[section]
    remember(*(stored(f"copy-{number}", COPIED) for number in range(copies)))
    remember(*(stored(key, text) for key, text in OTHERS.items()))
    found = engine.retrieve(QUESTION, "helena", "shop", weak=True)
    handed_over = [record.id.partition("-")[0] for record in getattr(found, section)]
    assert sorted(handed_over) == sorted(["copy", *OTHERS])


def test_copies_of_several_texts_leave_room_for_others_as_well(engine: RetrievalEngine, remember: Remember) -> None:
    stored = KINDS["outcomes"]
    texts = [f"Test the {page} form with an empty password" for page in ("login", "log-in", "sign-in", "sign-up")]
    remember(*(stored(f"{place}-{number}", text) for place, text in enumerate(texts) for number in range(60)))
    remember(stored("rare", "Test the login form with an expired session"))
    found = engine.retrieve(
        "Test the login form with an expired session or an empty password", "helena", "shop", weak=True
    )
    assert len(found.outcomes) == 5
    assert "rare" in [outcome.id for outcome in found.outcomes]


def test_copies_that_differ_in_punctuation_leave_room_for_others(engine: RetrievalEngine, remember: Remember) -> None:
    stored = KINDS["domain_knowledge"]
    ends = ("", ".", "!", "?", " ;", ",", "..", "!!")
    remember(*(stored(f"copy-{number}", COPIED + ends[number % len(ends)]) for number in range(120)))
    remember(*(stored(key, text) for key, text in OTHERS.items()))
    found = engine.retrieve(QUESTION, "helena", "shop")
    assert {record.id for record in found.domain_knowledge} > OTHERS.keys()


def test_several_strategies_for_one_task_are_no_copies(engine: RetrievalEngine, remember: Remember) -> None:
    ways = [make.an_outcome(task_description=COPIED, strategy_used=f"use way{number}") for number in range(40)]
    others = [make.an_outcome(task_description=f"Write page {number} of the manual") for number in range(20)]
    remember(*ways, *others)
    found = engine.retrieve(COPIED, "helena", "shop")
    assert {outcome.task_description for outcome in found.outcomes} == {COPIED}
    assert len(found.outcomes) == 5


def test_what_several_agents_learned_in_the_same_words_is_handed_over_once(
    engine: RetrievalEngine, remember: Remember
) -> None:
    others = ["victor", "ana", "ben", "eve"]
    remember(*(make.some_knowledge(agent=agent, fact=COPIED) for agent in ("helena", *others)))
    rare = remember(make.some_knowledge(agent="ben", fact=OTHERS["locks"]))
    scope = MemoryScope("helena", [], [], inherit_from=others)
    found = engine.retrieve(QUESTION, "helena", "shop", scope=scope)
    assert sorted(each.fact for each in found.domain_knowledge) == sorted([COPIED, rare.fact])


def test_however_many_are_asked_for_a_copy_is_handed_over_once(engine: RetrievalEngine, remember: Remember) -> None:
    remember(*(KINDS["memories"](f"copy-{number}", COPIED) for number in range(120)))
    assert len(engine.retrieve(QUESTION, "helena", "shop", top_k=40).memories) == 1


def test_a_failure_is_not_a_repetition_of_a_success(engine: RetrievalEngine, remember: Remember) -> None:
    results = {"good": True, "bad": False}
    remember(*(make.an_outcome(id=key, task_description=COPIED, success=ended) for key, ended in results.items()))
    found = engine.retrieve(QUESTION, "helena", "shop")
    assert {outcome.id for outcome in found.outcomes} == {"good", "bad"}


def test_a_failure_is_found_among_any_number_of_successes(engine: RetrievalEngine, remember: Remember) -> None:
    remember(*(make.an_outcome(id=f"copy-{number}", task_description=COPIED) for number in range(100)))
    remember(make.an_outcome(id="bad", task_description=COPIED, success=False))
    found = engine.retrieve(QUESTION, "helena", "shop")
    assert [outcome.success for outcome in found.outcomes].count(False) == 1


def test_why_not_says_of_a_copy_what_stands_in_its_place(engine: RetrievalEngine, remember: Remember) -> None:
    remember(*(KINDS["memories"](f"copy-{number:03}", COPIED) for number in range(40)))
    remember(*(KINDS["memories"](key, text) for key, text in OTHERS.items()))
    found = engine.retrieve(QUESTION, "helena", "shop")
    kept = next(memory.id for memory in found.memories if memory.id.startswith("copy"))
    reasons = [found.why_not(f"copy-{number:03}") for number in range(40)]
    assert [reason for reason in reasons if reason is not None and reason.stage == "repetition"]
    assert all(reason is None or reason.stage in ("repetition", "rank") for reason in reasons)
    assert any(reason is not None and kept in reason.reason for reason in reasons)
