"""Among very many memories less is looked at, and the answer is still the first."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from alma.model.memory import Memory
from alma.model.query import Compare
from alma.model.scope import Scope
from alma.retrieval.engine import RetrievalEngine
from alma.storage.base import StorageBackend
from alma.testing import builders as make
from tests.support.tuned import tuned

Remember = Callable[..., Any]
START = datetime(2026, 1, 1, tzinfo=UTC)
TOPICS = ("the harbor crane", "a bread oven", "the night train", "our tax form", "an old violin")


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty memories count as very many."""
    tuned(monkeypatch, many_memories=20)


@pytest.fixture
def conversations(remember: Remember) -> None:
    remember(
        *(
            make.a_memory(
                id=f"s{session}-{turn}",
                session_id=f"s{session}",
                content=f"{TOPICS[session]} was mentioned, part {turn}",
                event_time=START + timedelta(minutes=10 * session + turn),
            )
            for session in range(5)
            for turn in range(7)
        ),
        make.a_memory(id="asked", session_id="s2", content="When does it leave?", event_time=START),
        make.a_memory(id="told", session_id="s9", content="The night train to Vienna leaves at nine in the evening"),
        make.a_memory(id="said", session_id="s9", content="Bring the blue suitcase"),
    )


@pytest.mark.usefixtures("many", "conversations")
def test_the_answer_is_found_among_very_many(engine: RetrievalEngine) -> None:
    found = engine.retrieve("When does the night train to Vienna leave?", "helena", "shop", kinds=[Memory])
    assert found.memories[0].id == "told"
    assert len(found.memories) == 5
    assert found.explanation_of("told").score == max(each.score for each in found.explanations.values())


@pytest.mark.usefixtures("many", "conversations")
@pytest.mark.parametrize(("most", "by_a_link"), [(8, True), (1, False)], ids=["rare", "too common"])
def test_among_very_many_only_the_rarest_words_link(
    engine: RetrievalEngine, remember: Remember, monkeypatch: pytest.MonkeyPatch, most: int, by_a_link: bool
) -> None:
    tuned(monkeypatch, many_memories=20, link_entries_among_many=most)
    remember(make.a_memory(id="linked", content="The canteen shuts in the evening"))
    found = engine.retrieve("When does the night train to Vienna leave?", "helena", "shop", kinds=[Memory], top_k=20)
    found_by = found.explanations["linked"].found_by if "linked" in found.explanations else ()
    assert ("linked words" in found_by) is by_a_link


@pytest.mark.usefixtures("many", "conversations")
def test_every_memory_that_is_left_out_has_a_reason(engine: RetrievalEngine, store: StorageBackend) -> None:
    found = engine.retrieve("When does the night train to Vienna leave?", "helena", "shop", kinds=[Memory])
    chosen = {memory.id for memory in found.memories}
    for (key,) in store.values(Memory, ("id",), Scope(project_id="shop")):
        assert (found.why_not(key) is None) == (key in chosen)


def test_few_records_are_counted_exactly(store: StorageBackend) -> None:
    store.save_many(make.a_memory(project_id="shop" if n % 3 else "yard") for n in range(30))
    assert store.size(Memory, Scope(project_id="yard")) == 10
    assert store.size(Memory, Scope.everywhere()) == 30
    assert store.size(Memory, Scope(project_id="nowhere")) == 0
    assert 0 <= store.size(Memory, Scope(project_id="shop"), Compare("is_archived", "eq", True)) <= 20
