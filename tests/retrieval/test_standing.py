"""Standing instructions: returned while they are valid, without taking the place of other memories."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from alma.cache.local import RetrievalCache
from alma.clock import now
from alma.embeddings.base import EmbeddingProvider
from alma.model.memory import FactRelationship, Memory, MemoryRelationship
from alma.model.relations import Relation
from alma.retrieval.engine import RetrievalEngine
from alma.storage.base import StorageBackend
from alma.testing import builders as make
from tests.retrieval.test_kept_apart import Down
from tests.support.clock import Clock

Remember = Callable[..., Any]
NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def rule(key: str, content: str, **values: Any) -> Memory:
    return Memory(id=key, content=content, project_id="shop", memory_type="instruction", **values)


def handed_over(engine: RetrievalEngine, task: str = "Fix the login page") -> list[str]:
    return [each.id for each in engine.retrieve(task, "helena", "shop", now=NOW).instructions]


@pytest.fixture
def in_german(remember: Remember, store: StorageBackend) -> None:
    """Replies were in French, and are in German."""
    remember(rule("french", "Reply in French."), rule("german", "Reply in German."))
    store.save(
        MemoryRelationship(
            from_memory_id="german", to_memory_id="french", relationship_type=Relation.SUPERSEDES, strength=1.0
        )
    )


@pytest.mark.usefixtures("in_german")
def test_an_instruction_that_was_superseded_comes_with_no_task(engine: RetrievalEngine) -> None:
    assert handed_over(engine) == ["german"]
    why = engine.retrieve("Fix the login page", "helena", "shop", now=NOW).why_not("french")
    assert str(why) == "rule: it was superseded by german"


@pytest.mark.usefixtures("in_german")
def test_who_asks_about_it_finds_a_superseded_instruction_as_a_memory(engine: RetrievalEngine) -> None:
    found = engine.retrieve("In which language do I reply?", "helena", "shop", now=NOW)
    assert [each.id for each in found.instructions] == ["german"]
    assert [each.id for each in found.memories] == ["french"]
    assert f"superseded on {now():%Y-%m-%d} by: Reply in German." in found.to_prompt()


@pytest.mark.usefixtures("in_german")
def test_what_superseded_an_instruction_and_is_gone_supersedes_nothing(
    engine: RetrievalEngine, store: StorageBackend
) -> None:
    store.save(rule("german", "Reply in German.", is_active=False))
    assert handed_over(engine) == ["french"]


@pytest.mark.usefixtures("in_german")
def test_while_the_embedder_is_down_a_superseded_instruction_does_not_come_either(store: StorageBackend) -> None:
    found = RetrievalEngine(store, Down()).retrieve("Fix the login page", "helena", "shop", now=NOW)
    assert found.degraded
    assert [each.id for each in found.instructions] == ["german"]


def test_an_instruction_comes_while_it_holds(engine: RetrievalEngine, remember: Remember) -> None:
    remember(
        rule("over", "Freeze the code.", valid_until=NOW - DAY),
        rule("now", "Write tests.", valid_from=NOW - DAY, valid_until=NOW + DAY),
        rule("later", "Use the new tracker.", valid_from=NOW + DAY),
    )
    assert handed_over(engine) == ["now"]
    assert [each.id for each in engine.retrieve("Fix it", "helena", "shop", now=NOW + 2 * DAY).instructions] == [
        "later"
    ]


def test_an_instruction_that_begins_to_hold_is_not_kept_back_by_the_cache(
    store: StorageBackend, embedder: EmbeddingProvider, remember: Remember, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment, seconds = now(), Clock()
    remember(rule("later", "Use the new tracker.", valid_from=moment + timedelta(seconds=30)))
    engine = RetrievalEngine(store, embedder, cache=RetrievalCache(clock=seconds))
    monkeypatch.setattr("alma.clock.now", lambda: moment + timedelta(seconds=seconds.seconds - 100))
    assert [engine.retrieve("Fix it", "helena", "shop").from_cache for _ in range(2)] == [False, True]
    seconds.seconds += 31
    assert [each.id for each in engine.retrieve("Fix it", "helena", "shop").instructions] == ["later"]


def test_instructions_take_no_memory_s_place(engine: RetrievalEngine, remember: Remember) -> None:
    remember(*(rule(f"rule {n}", f"Deploy the {n}th service with a ticket, and tell team {n}.") for n in range(9)))
    remember(Memory(id="fact", content="The service with the ticket printer deploys slowly.", project_id="shop"))
    found = engine.retrieve("Deploy the service with a ticket", "helena", "shop", now=NOW, top_k=3)
    assert len(found.instructions) == 9
    assert [each.id for each in found.memories] == ["fact"]


def test_a_prompt_says_until_when_a_memory_held(engine: RetrievalEngine, remember: Remember) -> None:
    remember(
        Memory(content="Coupons give 20 percent off.", project_id="shop", valid_until=datetime(2026, 10, 1, tzinfo=UTC))
    )
    prompt = engine.retrieve("How much do coupons give?", "helena", "shop", now=NOW).to_prompt()
    assert prompt.endswith("Coupons give 20 percent off.\n  Note: held until 2026-10-01")


def test_a_prompt_says_from_when_a_memory_holds(engine: RetrievalEngine, remember: Remember) -> None:
    remember(
        Memory(content="Coupons give 20 percent off.", project_id="shop", valid_from=datetime(2027, 10, 1, tzinfo=UTC))
    )
    prompt = engine.retrieve("How much do coupons give?", "helena", "shop", now=NOW).to_prompt()
    assert prompt.endswith("Coupons give 20 percent off.\n  Note: holds from 2027-10-01")


def test_what_does_not_hold_yet_overrules_nothing(engine: RetrievalEngine, remember: Remember) -> None:
    price = "The price of the basic plan is {} euros"
    remember(
        Memory(id="now", content=price.format(10), project_id="shop", created_at=NOW - 90 * DAY),
        Memory(
            id="later", content=price.format(15), project_id="shop", created_at=NOW - DAY, valid_from=NOW + 30 * DAY
        ),
    )
    found = engine.retrieve("What is the price of the basic plan?", "helena", "shop", now=NOW)
    assert found.memories[0].id == "now"


def test_what_holds_no_longer_stands_behind_what_does(engine: RetrievalEngine, remember: Remember) -> None:
    price = "The price of the basic plan is {} euros"
    remember(
        Memory(id="now", content=price.format(10), project_id="shop", created_at=NOW - 90 * DAY),
        Memory(id="over", content=price.format(8), project_id="shop", created_at=NOW - 9 * DAY, valid_until=NOW - DAY),
    )
    found = engine.retrieve("What is the price of the basic plan?", "helena", "shop", now=NOW)
    assert [each.id for each in found.memories] == ["now", "over"]


@pytest.mark.parametrize(
    ("before", "after", "relation", "said"),
    [
        ("dark mode everywhere", "no longer dark mode, please use the light theme", "contradicts", "contradicted"),
        ("Use tabs for indentation", "Use spaces instead of tabs", "supersedes", "superseded"),
    ],
)
def test_a_prompt_says_that_a_wish_was_taken_back(
    engine: RetrievalEngine,
    store: StorageBackend,
    remember: Remember,
    before: str,
    after: str,
    relation: str,
    said: str,
) -> None:
    remember(
        make.a_preference(id="before", user_id="ana", category="editor", preference=before, timestamp=NOW - 9 * DAY),
        make.a_preference(id="after", user_id="ana", category="editor", preference=after, timestamp=NOW - DAY),
    )
    store.save(
        FactRelationship(
            kind="user_preference",
            user_id="ana",
            from_memory_id="after",
            to_memory_id="before",
            relationship_type=relation,
        )
    )
    found = engine.retrieve(before, "helena", "shop", user_id="ana")
    assert [wish.id for wish in found.preferences] == ["after", "before"]
    lines = found.to_prompt().splitlines()
    note = f"  Note: {said} on {NOW - DAY:%Y-%m-%d} by: {after}"
    assert lines.index(f"- Prefers (editor): {before}") + 1 == lines.index(note)
    for each in found.explain():
        assert sum(each.terms.values()) == pytest.approx(each.score)


def test_what_a_user_carries_along_is_an_instruction_for_no_one_else(
    engine: RetrievalEngine, remember: Remember
) -> None:
    anas = remember(
        make.a_memory(content="Answer in Korean", memory_type="instruction", user_id="ana", layer_global=True)
    )
    everybodys = remember(make.a_memory(content="Never deploy on Fridays", memory_type="instruction", user_id="ana"))
    for user in ("ben", None):
        for question in ("water the plants", "In which language am I to answer, in Korean?"):
            found = engine.retrieve(question, "helena", "shop", user_id=user)
            assert [each.id for each in found.instructions] == [everybodys.id]
    own = engine.retrieve("water the plants", "helena", "shop", user_id="ana")
    assert {each.id for each in own.instructions} == {anas.id, everybodys.id}
    assert anas.id in [
        each.id for each in engine.retrieve("Who wants answers in Korean?", "helena", "shop", user_id="ben").memories
    ]
