"""Users with their preferences, and what agents keep between turns."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from alma.clock import now
from alma.errors import NotFoundError, UniquenessError, ValidationError
from alma.memory.settings import Users
from alma.memory.states import AgentStates
from alma.model.scope import Scope
from alma.model.workspace import AgentState, Session
from alma.storage.base import StorageBackend
from alma.testing import builders as make
from tests.workspace.conftest import RunElsewhere

EVERYWHERE = Scope.everywhere()


def test_preferences_are_merged_as_deep_as_the_change_goes(store: StorageBackend) -> None:
    users = Users(store)
    users.create("ana", user_id="u1", preferences={"output": {"style": "short", "emojis": True}, "language": "en"})
    users.merge_preferences("u1", {"output": {"emojis": None, "width": 80}, "tags": ["a"]})
    assert users.require("u1").preferences_json == {
        "output": {"style": "short", "width": 80},
        "language": "en",
        "tags": ["a"],
    }


def test_a_name_or_id_that_is_taken_is_refused(store: StorageBackend) -> None:
    users = Users(store)
    users.create("ana", user_id="u1", email="ana@example.org")
    with pytest.raises(UniquenessError):
        users.create("ana")
    with pytest.raises(UniquenessError):
        users.create("anna", email="ana@example.org")
    with pytest.raises(ValidationError, match="is taken by another user"):
        users.create("ben", user_id="u1")
    assert users.named("ana") == users.get("u1")
    assert users.named("ben") is None


def test_a_user_is_changed_deactivated_and_seen_by_when_active(store: StorageBackend) -> None:
    users = Users(store)
    users.create("ana", user_id="u1")
    users.create("ben", user_id="u2")
    users.touch("u1")
    assert [user.id for user in users.list_all()] == ["u1", "u2"]
    users.update("u1", display_name="Ana", is_active=False)
    assert [user.id for user in users.list_all()] == ["u2"]
    assert len(users.list_all(active_only=False)) == 2
    with pytest.raises(ValidationError, match="cannot be changed here"):
        users.update("u1", id="u3")
    with pytest.raises(NotFoundError):
        users.touch("nobody")


def test_merging_from_several_processes_loses_nothing(store: StorageBackend, elsewhere: RunElsewhere) -> None:
    Users(store).create("ana", user_id="u1")
    elsewhere("merge-preferences", processes=3)
    assert Users(store).require("u1").preferences_json == {f"{p}-{i}": i for p in range(3) for i in range(5)}


def test_there_is_one_state_for_each_agent_and_session(store: StorageBackend) -> None:
    states = AgentStates(store)
    session = make.a_session()
    store.save(session)
    states.save("helena", {"step": 1})
    states.save("helena", {"step": 2}, session.id)
    states.save("helena", {"step": 3})
    assert store.count(AgentState, EVERYWHERE) == 2
    assert {state.session_id: state.state_data for state in states.list_all("helena")} == {
        None: {"step": 3},
        session.id: {"step": 2},
    }
    assert states.load("victor") is None


def test_several_processes_that_save_the_first_state_make_one(store: StorageBackend, elsewhere: RunElsewhere) -> None:
    elsewhere("save-state", processes=3)
    (state,) = AgentStates(store).list_all("helena")
    assert state.state_data == {"0": True, "1": True, "2": True}


def test_a_state_that_another_program_wrote_is_found_and_replaced(store: StorageBackend) -> None:
    store.save(make.an_agent_state(id="elsewhere"))
    AgentStates(store).save("helena", {"step": 2})
    assert [state.id for state in AgentStates(store).list_all("helena")] == ["elsewhere"]


def test_an_expired_state_is_gone_and_is_not_merged_into(store: StorageBackend) -> None:
    states = AgentStates(store)
    states.save("helena", {"old": 1}, expires_at=now() - timedelta(seconds=1))
    states.save("victor", {"kept": 1}, ttl_seconds=3600)
    assert states.load("helena") is None
    assert states.list_all("helena") == []
    assert states.save("helena", {"new": 1}, merge=True).state_data == {"new": 1}
    assert states.load("helena") is not None
    assert states.expire(now() + timedelta(hours=2)) == 1
    assert states.load("victor") is None
    assert states.load("helena") is not None


def test_a_merge_keeps_the_expiry_unless_another_is_given(store: StorageBackend) -> None:
    states = AgentStates(store)
    first = states.save("helena", {"a": 1}, ttl_seconds=60)
    assert states.save("helena", {"b": None, "c": 2}, merge=True).expires_at == first.expires_at
    loaded = states.load("helena")
    assert loaded is not None
    assert loaded.state_data == {"a": 1, "c": 2}


def test_a_state_can_be_cleared_and_goes_with_its_session(store: StorageBackend) -> None:
    states = AgentStates(store)
    session = make.a_session()
    store.save(session)
    states.save("helena", {"a": 1})
    states.save("helena", {"a": 2}, session.id)
    assert states.clear("helena")
    assert not states.clear("helena")
    store.delete(Session, session.id, EVERYWHERE)
    assert states.list_all("helena") == []


def test_a_state_needs_a_session_that_exists_and_a_time_that_makes_sense(store: StorageBackend) -> None:
    states = AgentStates(store)
    with pytest.raises(NotFoundError):
        states.save("helena", {}, "no-such-session")
    for ttl in (0, -1, float("nan"), True, 1e30):
        with pytest.raises(ValidationError, match="ttl_seconds"):
            states.save("helena", {}, ttl_seconds=ttl)
    with pytest.raises(ValidationError, match="together with expires_at"):
        states.save("helena", {}, ttl_seconds=1, expires_at=now())


def test_an_invalid_json_object_is_named(store: StorageBackend) -> None:
    Users(store).create("ana", user_id="u1")
    wrong: Any = "short"
    with pytest.raises(ValidationError, match="must be a JSON object"):
        Users(store).merge_preferences("u1", wrong)
    with pytest.raises(ValidationError, match=r"agent_state.state_data must be a JSON object"):
        AgentStates(store).save("helena", wrong)
