"""Sessions: created, switched between, nested, ended and archived."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from alma.clock import now
from alma.errors import NotFoundError, ScopeViolationError, ValidationError
from alma.memory.handoffs import Handoffs
from alma.memory.sessions import Sessions
from alma.model.governance import Attribution
from alma.model.memory import Memory
from alma.model.scope import Scope
from alma.model.workspace import Project, Session, User
from alma.storage.base import StorageBackend
from alma.testing import builders as make
from tests.workspace.conftest import RunElsewhere

EVERYWHERE = Scope.everywhere()
ANA = Scope(user_id="ana")
SHOP = Scope(project_id="shop")


@pytest.fixture
def sessions(store: StorageBackend) -> Sessions:
    return Sessions(store)


def started(sessions: Sessions, name: str, **values: object) -> Session:
    owner = {"user_id": "ana", "project_id": "shop"}
    return sessions.create(session_id=name, name=name, **{**owner, **values})  # type: ignore[arg-type]


def test_a_new_session_is_the_current_one_until_another_is_switched_to(sessions: Sessions) -> None:
    started(sessions, "first")
    started(sessions, "second")
    started(sessions, "bens", user_id="ben")
    assert sessions.current(ANA) == sessions.get("second", ANA)
    switched = sessions.switch("first", ANA)
    assert switched.previous == sessions.get("second", ANA)
    assert sessions.current(ANA) == switched.session
    assert [session.id for session in sessions.find(ANA)] == ["first", "second"]
    assert sessions.switch("first", ANA).previous is None


def test_what_is_worked_in_becomes_current(sessions: Sessions) -> None:
    started(sessions, "first")
    started(sessions, "second")
    sessions.update_context("first", ANA, {"file": "a.py", "cursor": {"line": 1}})
    sessions.update_context("first", ANA, {"cursor": {"column": 2}, "file": None})
    current = sessions.current(ANA)
    assert current is not None
    assert (current.id, current.context_json) == ("first", {"cursor": {"line": 1, "column": 2}})
    sessions.touch("second", ANA)
    assert sessions.current(ANA) == sessions.get("second", ANA)


def test_the_user_and_the_project_of_a_session_are_noted_as_active(store: StorageBackend, sessions: Sessions) -> None:
    long_ago = now() - timedelta(days=9)
    store.save(make.a_user(id="ana", last_active_at=long_ago))
    store.save(make.a_project(id="shop", last_accessed_at=long_ago))
    started(sessions, "first")
    assert store.require(User, "ana", EVERYWHERE).last_active_at > long_ago
    assert store.require(Project, "shop", EVERYWHERE).last_accessed_at > long_ago
    store.update(User, "ana", {"last_active_at": long_ago}, EVERYWHERE)
    sessions.switch("first", ANA)
    assert store.require(User, "ana", EVERYWHERE).last_active_at > long_ago


def test_no_one_switches_to_what_is_outside_of_the_scope(sessions: Sessions) -> None:
    started(sessions, "first")
    for scope in (Scope(user_id="ben"), Scope(project_id="office")):
        with pytest.raises(NotFoundError):
            sessions.switch("first", scope)
    with pytest.raises(NotFoundError):
        sessions.end("no-such-session", ANA)


def test_an_id_is_given_once(sessions: Sessions) -> None:
    started(sessions, "first")
    with pytest.raises(ValidationError, match="exists already"):
        started(sessions, "first")


def test_an_ended_session_must_be_reopened_to_be_worked_in(sessions: Sessions) -> None:
    started(sessions, "first")
    ended = sessions.end("first", ANA, summary="We chose Stripe.", archive=True)
    assert (ended.is_active, ended.is_archived, ended.summary) == (False, True, "We chose Stripe.")
    assert ended.ended_at is not None
    assert sessions.current(ANA) is None
    assert sessions.find(ANA) == []
    assert sessions.find(ANA, archived=None) == [ended]
    for use in (sessions.switch, sessions.touch):
        with pytest.raises(ValidationError, match="has ended; start another one, or reopen it"):
            use("first", ANA)
    reopened = sessions.switch("first", ANA, reopen=True).session
    assert (reopened.is_active, reopened.ended_at, reopened.is_archived) == (True, None, False)
    assert sessions.current(ANA) == reopened


def test_ending_twice_keeps_when_it_ended_and_what_was_said(sessions: Sessions) -> None:
    started(sessions, "first")
    once = sessions.end("first", ANA, summary="Done.")
    again = sessions.end("first", ANA)
    assert (again.ended_at, again.summary) == (once.ended_at, "Done.")
    assert sessions.archive("first", ANA).is_archived
    assert not sessions.unarchive("first", ANA).is_archived


def test_without_a_model_the_summary_is_what_tells_most(store: StorageBackend, sessions: Sessions) -> None:
    started(sessions, "first")
    started(sessions, "empty")
    said = "We decided to pay with Stripe, key sk-1234567890abcdef."
    store.save(make.a_memory(id="m1", session_id="first", content=said, memory_type="decision"))
    store.save(make.a_memory(id="m2", session_id="first", content="The checkout times out with Stripe in the test."))
    summary = sessions.end("first", ANA).summary
    assert summary is not None
    assert "We decided to pay with Stripe" in summary
    assert "sk-1234567890abcdef" not in summary
    assert sessions.end("empty", ANA).summary is None
    assert Sessions(store, summarise=None).end(started(sessions, "plain").id, ANA).summary is None


def test_a_summary_is_made_from_what_the_session_remembers(store: StorageBackend) -> None:
    def summarise(session: Session, memories: Sequence[Memory]) -> str:
        return f"{session.name}: {', '.join(memory.id for memory in memories)}"

    sessions = Sessions(store, summarise)
    session = started(sessions, "first")
    started(sessions, "empty")
    own, brought = make.a_memory(id="m1", session_id="first"), make.a_memory(id="m2")
    store.save_many([own, brought, make.a_memory(id="other")])
    store.save(make.a_memory(id="secret", session_id="first", user_id="ben", is_private=True))
    store.save(make.a_memory(id="deleted", session_id="first", is_active=False))
    store.save(make.a_place_in(session, brought))
    assert sessions.end("first", ANA).summary == "first: m1, m2"
    assert sessions.end("empty", ANA).summary is None
    assert [memory.id for memory in sessions.memories("first", ANA)] == ["m1", "m2"]


def test_nothing_private_gets_into_a_summary_or_to_others(store: StorageBackend, sessions: Sessions) -> None:
    started(sessions, "first", project_id="shop")
    store.save_many(
        [
            make.a_memory(session_id="first", user_id="ana", content="Ana looks for another job", is_private=True),
            make.a_memory(session_id="first", user_id="ana", content="The cart uses cookies"),
        ]
    )
    assert sessions.end("first", ANA).summary == "The cart uses cookies"
    assert len(sessions.memories("first", ANA)) == 2
    assert len(sessions.memories("first", Scope(project_id="shop"), Attribution(user_id="ana"))) == 2
    for by in (Attribution(user_id="ben"), Attribution()):
        seen = sessions.memories("first", Scope(project_id="shop"), by)
        assert [memory.content for memory in seen] == ["The cart uses cookies"]


def test_sessions_stand_under_others_but_never_in_a_circle(sessions: Sessions) -> None:
    started(sessions, "a")
    started(sessions, "b", parent_session_id="a")
    started(sessions, "c", parent_session_id="b")
    assert [session.id for session in sessions.ancestors("c", ANA)] == ["b", "a"]
    assert [session.id for session in sessions.children("a", ANA)] == ["b"]
    for parent in ("a", "b", "c"):
        with pytest.raises(ValidationError, match="would close a cycle"):
            sessions.set_parent("a", parent, ANA)
    sessions.set_parent("c", None, ANA)
    sessions.set_parent("a", "c", ANA)
    assert [session.id for session in sessions.ancestors("b", ANA)] == ["a", "c"]


def test_deleting_a_session_keeps_what_was_learned_in_it(store: StorageBackend, sessions: Sessions) -> None:
    session = started(sessions, "work", agent="helena")
    started(sessions, "under", parent_session_id="work")
    memory = make.a_memory(session_id="work")
    store.save(memory)
    store.save(make.a_place_in(session, memory))
    sessions.end("work", ANA)
    assert not sessions.delete("work", Scope(user_id="ben"))
    assert sessions.delete("work", ANA)
    assert not sessions.delete("work", ANA)
    assert store.require(Memory, memory.id, ANA).session_id is None
    assert sessions.require("under", ANA).parent_session_id is None
    assert len(Handoffs(store).find(SHOP)) == 1


def test_a_parent_must_exist_and_be_of_the_same_owner(sessions: Sessions) -> None:
    started(sessions, "bens", user_id="ben")
    with pytest.raises(NotFoundError):
        started(sessions, "a", parent_session_id="nothing")
    with pytest.raises(ScopeViolationError, match="another user_id"):
        started(sessions, "a", parent_session_id="bens")
    started(sessions, "a")
    with pytest.raises(NotFoundError):
        sessions.set_parent("a", "bens", ANA)


def test_processes_that_close_a_circle_together_do_not(sessions: Sessions, elsewhere: RunElsewhere) -> None:
    for name in ("s0", "s1", "s2", "s3"):
        started(sessions, name)
    assert sorted(elsewhere("set-parent", "4", processes=4)) == ["cycle", "fine", "fine", "fine"]


def test_an_agents_session_that_ends_leaves_a_handoff(store: StorageBackend, sessions: Sessions) -> None:
    started(sessions, "people")
    sessions.end("people", ANA)
    started(sessions, "work", agent="helena", goal="test the cart")
    sessions.end("work", ANA, summary="The cart is tested.")
    sessions.end("work", ANA)
    (handoff,) = Handoffs(store).find(SHOP)
    assert (handoff.session_id, handoff.last_action, handoff.last_outcome) == ("work", "The cart is tested.", "unknown")
    assert handoff.goal == "test the cart"
