"""Working memory: what a session holds, in order, and what of it fits into a context window."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alma.clock import now
from alma.errors import NotFoundError, ScopeViolationError, ValidationError
from alma.memory.sessions import Sessions
from alma.memory.settings import SystemSettings
from alma.memory.working import Candidate, WorkingMemory, fitted, prompt_costs
from alma.model.governance import Attribution
from alma.model.memory import Memory
from alma.model.scope import Scope
from alma.model.workspace import Session, SessionMemory
from alma.storage.base import StorageBackend
from alma.testing import builders as make
from alma.testing.strategies import texts
from alma.tokens import count_tokens
from tests.workspace.conftest import RunElsewhere

ANA = Scope(user_id="ana")
EVERYWHERE = Scope.everywhere()


@pytest.fixture
def session(store: StorageBackend) -> Session:
    return Sessions(store).create(session_id="s", user_id="ana", project_id="shop")


@pytest.fixture
def working(store: StorageBackend, session: Session) -> WorkingMemory:
    return WorkingMemory(store)


def remember(store: StorageBackend, *ids: str, **values: Any) -> list[str]:
    store.save_many([make.a_memory(id=each, content=f"{each}: " + "word " * 40, **values) for each in ids])
    return list(ids)


def order(working: WorkingMemory) -> list[str]:
    return [place.memory_id for place in working.places("s", ANA)]


def test_memories_keep_the_order_in_which_they_came(store: StorageBackend, working: WorkingMemory) -> None:
    remember(store, "a", "b", "c")
    working.add("s", ["a", "b"], ANA)
    added = working.add("s", ["b", "c"], ANA)
    assert [place.position_in_session for place in added.places] == [2, 3]
    assert order(working) == ["a", "b", "c"]
    working.move("s", "c", 1, ANA)
    assert order(working) == ["c", "a", "b"]
    working.move("s", "c", 99, ANA)
    assert [(p.memory_id, p.position_in_session) for p in working.places("s", ANA)] == [("a", 1), ("b", 2), ("c", 3)]
    assert working.remove("s", ["a", "nothing"], ANA) == 1
    assert order(working) == ["b", "c"]
    assert store.get(Memory, "a", EVERYWHERE) is not None


def test_a_full_session_lets_the_oldest_go_that_is_not_pinned(store: StorageBackend, working: WorkingMemory) -> None:
    SystemSettings(store).set("max_memories_per_session", 3)
    remember(store, *"abcdefg")
    working.add("s", "a", ANA, pinned=True)
    working.add("s", ["b", "c"], ANA)
    (dropped,) = working.add("s", "d", ANA).dropped
    assert dropped.memory_id == "b"
    assert "holds 3 memories (max_memories_per_session)" in dropped.reason
    assert order(working) == ["a", "c", "d"]
    assert store.get(Memory, "b", EVERYWHERE) is not None
    # More at once than there is room for: the last of them stay.
    assert [each.memory_id for each in working.add("s", ["b", "e", "f"], ANA).dropped] == ["c", "d", "b"]
    assert order(working) == ["a", "e", "f"]


def test_a_session_full_of_pinned_memories_says_so(store: StorageBackend, working: WorkingMemory) -> None:
    SystemSettings(store).set("max_memories_per_session", 1, user_id="ana")
    remember(store, "a", "b")
    working.add("s", "a", ANA)
    working.pin("s", "a", ANA)
    with pytest.raises(ValidationError, match="is full: it holds 1 memories and all are pinned"):
        working.add("s", "b", ANA, pinned=True)
    working.unpin("s", "a", ANA)
    working.add("s", "b", ANA, pinned=True)
    assert order(working) == ["b"]


def test_processes_that_add_at_once_keep_to_the_limit_and_to_an_order(
    store: StorageBackend, working: WorkingMemory, elsewhere: RunElsewhere
) -> None:
    SystemSettings(store).set("max_memories_per_session", 6)
    remember(store, *(f"{process}-{number}" for process in range(2) for number in range(5)))
    elsewhere("add-memories", processes=2)
    places = working.places("s", ANA)
    assert len(places) == 6
    assert len({place.position_in_session for place in places}) == 6


def test_a_session_does_not_hold_what_its_user_may_not_see(store: StorageBackend, working: WorkingMemory) -> None:
    remember(store, "private", user_id="ben", is_private=True)
    remember(store, "elsewhere", project_id="office")
    remember(store, "global", project_id="office", layer_global=True)
    remember(store, "gone", is_active=False)
    for memory_id in ("private", "elsewhere"):
        with pytest.raises(ScopeViolationError, match="not visible to this session"):
            working.add("s", memory_id, ANA)
    for memory_id in ("gone", "nothing"):
        with pytest.raises(NotFoundError):
            working.add("s", memory_id, ANA)
    working.add("s", "global", ANA)
    assert order(working) == ["global"]


def test_what_is_private_in_a_working_set_is_shown_to_its_user_alone(
    store: StorageBackend, working: WorkingMemory
) -> None:
    remember(store, "private", user_id="ana", is_private=True)
    remember(store, "shared", user_id="ana")
    shop, ana = Scope(project_id="shop"), Attribution(user_id="ana")
    assert [memory.id for memory in working.hold("s", ["private", "shared"], ANA).memories] == ["private", "shared"]
    assert len(working.working_set("s", shop, by=ana).memories) == 2
    for by in (Attribution(user_id="ben"), Attribution()):
        assert [memory.id for memory in working.working_set("s", shop, by=by).memories] == ["shared"]
        assert [memory.id for memory in working.fit("s", shop, by=by).memories] == ["shared"]
    assert len(working.working_set("s", ANA).memories) == 2


def test_an_agent_that_serves_two_users_does_not_bring_the_secrets_of_one_to_the_other(
    store: StorageBackend, working: WorkingMemory
) -> None:
    store.update(Session, "s", {"agent": "helena"}, ANA)
    remember(store, "private", user_id="ben", source_agent="helena", is_private=True)
    with pytest.raises(ScopeViolationError, match="not visible to this session"):
        working.hold("s", "private", ANA)


def test_the_working_set_stays_inside_its_budget_and_says_who_left(
    store: StorageBackend, working: WorkingMemory
) -> None:
    remember(store, "dull", importance_score=0.1)
    remember(store, "key", importance_score=0.9)
    remember(store, "new", importance_score=0.1)
    held = working.hold("s", ["dull", "key"], ANA, max_tokens=150)
    assert [memory.id for memory in held.memories] == ["dull", "key"]
    held = working.hold("s", "new", ANA, max_tokens=150)
    assert [memory.id for memory in held.memories] == ["key", "new"]
    (evicted,) = held.evicted
    assert evicted.memory_id == "dull"
    assert "importance 0.10" in evicted.reason
    assert count_tokens(held.to_prompt()) <= held.tokens <= 150
    assert working.working_set("s", ANA).memories == held.memories
    assert order(working) == ["dull", "key", "new"]
    positions = {place.memory_id: place.context_window_position for place in working.places("s", ANA)}
    assert positions == {"dull": None, "key": 1, "new": 2}


def test_what_was_used_last_stays_where_importance_is_equal(store: StorageBackend, working: WorkingMemory) -> None:
    remember(store, "old", last_accessed_at=now() - timedelta(days=9))
    remember(store, "used")
    working.hold("s", ["old", "used"], ANA)
    store.update(
        SessionMemory,
        next(place.id for place in working.places("s", ANA) if place.memory_id == "old"),
        {"added_at": now() - timedelta(days=8)},
        EVERYWHERE,
    )
    assert [memory.id for memory in working.fit("s", ANA, max_tokens=80).memories] == ["used"]


def test_pinned_memories_stay_or_the_budget_is_refused(store: StorageBackend, working: WorkingMemory) -> None:
    remember(store, "pinned", importance_score=0.0)
    remember(store, "key", importance_score=1.0)
    working.hold("s", "pinned", ANA, pinned=True)
    assert [memory.id for memory in working.hold("s", "key", ANA, max_tokens=80).memories] == ["pinned"]
    with pytest.raises(ValidationError, match="too small for the pinned memories"):
        working.fit("s", ANA, max_tokens=10)


def test_a_memory_longer_than_the_budget_is_left_out(store: StorageBackend, working: WorkingMemory) -> None:
    store.save(make.a_memory(id="long", content="word " * 100_000))
    (evicted,) = working.hold("s", "long", ANA, max_tokens=100).evicted
    assert evicted.reason == "it alone exceeds the budget of 100 tokens"


def test_what_expires_or_is_released_leaves_the_working_set(store: StorageBackend, working: WorkingMemory) -> None:
    remember(store, "a", "b", "c")
    working.hold("s", ["a", "b", "c"], ANA)
    store.update(Memory, "a", {"expires_at": now()}, EVERYWHERE)
    seen = working.working_set("s", ANA)
    assert [memory.id for memory in seen.memories] == ["b", "c"]
    assert [(each.memory_id, each.reason) for each in seen.evicted] == [("a", "it has expired")]
    assert working.release("s", ["b", "nothing"], ANA) == 1
    assert [memory.id for memory in working.fit("s", ANA).memories] == ["c"]
    assert working.fit("s", ANA).evicted == ()


def test_nothing_is_added_to_an_ended_session(store: StorageBackend, working: WorkingMemory) -> None:
    remember(store, "a")
    Sessions(store).end("s", ANA)
    with pytest.raises(ValidationError, match="has ended"):
        working.add("s", "a", ANA)


def test_a_wrong_position_or_budget_is_named(working: WorkingMemory, store: StorageBackend) -> None:
    with pytest.raises(ValidationError, match="whole number of at least 1"):
        working.move("s", "a", 0, ANA)
    with pytest.raises(NotFoundError):
        working.move("s", "a", 1, ANA)
    with pytest.raises(ValidationError, match="max_tokens"):
        working.fit("s", ANA, max_tokens=0)


memories = st.builds(
    make.a_memory,
    content=texts(Memory.spec.field("content")),
    importance_score=st.floats(0, 1),
)


@given(st.lists(memories, max_size=8), st.integers(1, 200))
def test_whatever_is_chosen_fits_and_the_rest_has_a_reason(found: list[Memory], max_tokens: int) -> None:
    candidates = [
        Candidate(SessionMemory(session_id="s", memory_id=memory.id, position_in_session=number), memory)
        for number, memory in enumerate(found)
    ]
    fit = fitted(candidates, max_tokens, prompt_costs(found, max_tokens), now())
    assert fit.tokens <= max_tokens
    chosen = {candidate.memory.id for candidate in fit.chosen}
    assert chosen | {each.memory_id for each in fit.left_out} == {memory.id for memory in found}
    assert all(each.reason for each in fit.left_out)
