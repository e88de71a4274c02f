"""What must not be taken for the same, crowded out by number, or lost while the embedder is down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest

from alma.clock import now
from alma.embeddings.base import EmbeddingProvider, Passage
from alma.errors import EmbeddingError
from alma.model.memory import Memory
from alma.retrieval.engine import RetrievalEngine
from alma.storage.base import StorageBackend
from alma.testing import builders as make

Remember = Callable[..., Any]
HOUR = timedelta(hours=1)


class Down(EmbeddingProvider):
    """A provider that has stopped working."""

    model = "all-MiniLM-L6-v2"
    dimension = 384

    def _embed(self, texts: Sequence[str]) -> list[list[Passage]]:
        raise EmbeddingError("no connection")


def said(content: str, **values: Any) -> Memory:
    return make.a_memory(content=content, title="", **values)


def contents(found: Any) -> list[str]:
    return [memory.content for memory in found.memories]


@pytest.mark.parametrize(
    ("one", "other", "question"),
    [
        ("Anna owes Ben 50 euros", "Ben owes Anna 50 euros", "Who owes whom 50 euros?"),
        ("Release 1.2 fixed the login", "Release 2.1 fixed the login", "Which release fixed the login?"),
        ("The offset in x is -5", "The offset in x is 5", "What is the offset in x?"),
        ("The flight goes Paris → Rome", "The flight goes Rome → Paris", "Where does the flight go?"),
        ("Alerts fire when load > 80", "Alerts fire when load < 80", "When do alerts fire?"),
        ("Build 17: ✅", "Build 17: ❌", "How did build 17 go?"),
    ],
)
def test_the_same_words_can_say_something_else(
    engine: RetrievalEngine, remember: Remember, one: str, other: str, question: str
) -> None:
    remember(said(one), said(other))
    assert sorted(contents(engine.retrieve(question, "helena", "shop"))) == sorted([one, other])


def test_one_thing_said_twice_is_handed_over_once(engine: RetrievalEngine, remember: Remember) -> None:
    remember(said("The login was fixed in release 2.1."), said("the login was fixed in  Release 2.1"))
    found = engine.retrieve("Which release fixed the login?", "helena", "shop")
    assert len(found.memories) == 1


@pytest.mark.parametrize(
    ("older", "newer", "question"),
    [
        ("The IT team sits on floor 2", "The HR team sits on floor 4", "On which floor does the IT team sit?"),
        ("The US office opens at 9", "The UK office opens at 8", "When does the US office open?"),
        ("A daily dose of vitamin A is 900", "A daily dose of vitamin C is 90", "What is the daily dose of vitamin A?"),
        ("web-10 has the address 10.0.0.10", "web-11 has the address 10.0.0.11", "What is the address of web-10?"),
        ("Zone -1 is the cellar", "Zone 1 is the first floor", "What is zone -1?"),
        ("Room 4 has 2 chairs", "Room 7 has 4 chairs", "How many chairs are in room 4?"),
    ],
)
def test_news_of_something_else_overrules_nothing(
    engine: RetrievalEngine, remember: Remember, older: str, newer: str, question: str
) -> None:
    remember(said(older, event_time=now() - timedelta(days=30)), said(newer, event_time=now() - timedelta(days=25)))
    assert contents(engine.retrieve(question, "helena", "shop"))[0] == older


def test_news_of_the_same_thing_overrules_whatever_joins_its_name(engine: RetrievalEngine, remember: Remember) -> None:
    remember(
        said("web-10 listens on port 80", event_time=now() - timedelta(days=30)),
        said("Web 10 listens on port 81", event_time=now() - timedelta(days=25)),
    )
    found = engine.retrieve("On which port does web-10 listen?", "helena", "shop")
    assert contents(found)[0] == "Web 10 listens on port 81"


def test_a_warning_is_not_crowded_out_by_notes_about_other_things(engine: RetrievalEngine, remember: Remember) -> None:
    remember(make.an_anti_pattern(pattern="waiting with a fixed sleep in browser tests", why_bad="it makes them flaky"))
    names, things, towns = ("Maria", "Joao", "Rita"), ("bicycle", "lamp", "table", "boat"), ("Lisbon", "Porto")
    remember(
        *(
            said(f"{names[i % 3]} bought a {things[i % 4]} in {towns[i % 2]} for {i} euros, and paid in cash")
            for i in range(600)
        )
    )
    found = engine.retrieve("Why is my Selenium run unstable?", "helena", "shop")
    assert len(found.anti_patterns) == 1
    assert not found.memories


def test_two_warnings_among_many_notes_are_handed_over_for_a_reason_only(
    engine: RetrievalEngine, remember: Remember
) -> None:
    dialogue = make.an_anti_pattern(pattern="Hard-coding dialogue in scripts", why_bad="translators could not find it")
    lightmaps = make.an_anti_pattern(pattern="Committing lightmaps", why_bad="the repository grew by 40 GB")
    remember(dialogue, lightmaps)
    things = ("wolf", "lantern", "dragon", "boat", "castle", "bridge")
    remember(*(said(f"The {thing} was redrawn by {name}") for thing in things for name in ("Marta", "Idris", "Hana")))
    assert not engine.retrieve("Which fonts does the menu use?", "helena", "shop")
    found = engine.retrieve("Where do I put lines of dialogue?", "helena", "shop")
    assert [each.pattern for each in found.anti_patterns] == [dialogue.pattern]


@pytest.mark.parametrize(
    "task",
    [
        "Add a second payment gateway for customers in Brazil",
        "Rotate the keys of the payment gateway",
        "Which gateway?",
    ],
)
def test_without_the_embedder_a_word_is_enough(store: StorageBackend, remember: Remember, task: str) -> None:
    remember(said("We chose Stripe as payment gateway"), said("Lunch is at noon"))
    engine = RetrievalEngine(store, Down())
    found = engine.retrieve(task, "helena", "shop")
    assert contents(found) == ["We chose Stripe as payment gateway"]
    assert found.degraded.endswith("found without it")
    engine.close()


def test_a_memory_without_a_vector_is_found_by_its_words(engine: RetrievalEngine, store: StorageBackend) -> None:
    store.save(said("We chose Stripe as payment gateway"))
    assert contents(engine.retrieve("Which payment gateway did we choose?", "helena", "shop"))


def test_all_standing_instructions_come_and_each_once(engine: RetrievalEngine, remember: Remember) -> None:
    rules = [said(f"Rule {i}: keep part {i} tidy", memory_type="instruction", layer_global=True) for i in range(15)]
    remember(*rules, said("rule 3: keep part 3 tidy.", memory_type="instruction", layer_global=True))
    remember(*(make.a_preference(preference=f"likes the colour {i}") for i in range(25)))
    remember(
        make.a_preference(preference="Use British spelling"), make.a_preference(preference="use British  spelling.")
    )
    found = engine.retrieve("Write a report", "helena", "shop", user_id="ana")
    assert len(found.instructions) == 15
    assert len(found.preferences) == 26
