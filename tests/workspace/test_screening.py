"""Screening: what sessions, states and work items keep has passed the screen, however it came in."""

from __future__ import annotations

import json
from typing import TypeVar

import pytest

from alma.embeddings.mock import MockEmbedder
from alma.errors import ScopeViolationError
from alma.learning.protocols import Execution, LearningProtocol
from alma.memory.archive import Archive
from alma.memory.audit import AuditTrail
from alma.memory.projects import Projects
from alma.memory.relationships import Relationships
from alma.memory.sessions import Sessions
from alma.memory.settings import Users
from alma.memory.states import AgentStates
from alma.memory.updates import as_it_is
from alma.model.governance import Attribution
from alma.model.kinds import KINDS
from alma.model.memory import Memory
from alma.model.record import Record
from alma.model.scope import MemoryScope, Scope
from alma.progress import ProgressTracker
from alma.retrieval.engine import RetrievalEngine
from alma.session import SessionManager
from alma.storage.base import StorageBackend
from alma.storage.document import from_document, to_document
from alma.testing.builders import a_memory

SECRET = "sk-1234567890"
T = TypeVar("T", bound=Record)


def masked(record: T, /) -> T:
    """The record with the secret masked wherever it stands."""
    text = json.dumps(to_document(record)).replace(SECRET, "[masked]")
    return from_document(type(record), json.loads(text))


def stored_texts(store: StorageBackend) -> str:
    records = [record for cls in KINDS for record in store.find(cls, Scope.everywhere())]
    return "\n".join(json.dumps(to_document(record)) for record in records)


@pytest.fixture
def said() -> str:
    return f"used the key {SECRET} here"


def test_nothing_that_an_agent_notes_is_stored_with_its_secret(store: StorageBackend, said: str) -> None:
    manager = SessionManager("shop", store, screen=masked)
    session = manager.start_session("helena", goal=said, metadata={"note": said}).session_id
    manager.update_session("helena", session, said, "success", decision=said, test_status={"login": said})
    handoff = manager.create_handoff("helena", session, next_steps=[said])
    assert handoff.last_action == "used the key [masked] here"
    sessions = Sessions(store, screen=masked)
    other = sessions.create(user_id="ana", project_id="shop", agent="helena", description=said).id
    sessions.update_context(other, Scope(user_id="ana"), {"note": said})
    sessions.end(other, Scope(user_id="ana"), summary=said)
    assert SECRET not in stored_texts(store)
    assert "[masked]" in stored_texts(store)


def test_nothing_in_a_work_item_or_a_log_is_stored_with_its_secret(store: StorageBackend, said: str) -> None:
    tracker = ProgressTracker("shop", store, screen=masked)
    item = tracker.create_work_item(said, description=said, acceptance_criteria=[said])
    tracker.update_item(item.id, description=said, metadata={"link": said})
    tracker.update_status(item.id, "failed", note=said)
    tracker.update_status(item.id, "pending")
    tracker.block(item.id, reason=said)
    tracker.log_progress(current_action=said, note=said)
    assert SECRET not in stored_texts(store)
    assert item.title == "used the key [masked] here"


def test_nothing_in_a_state_a_profile_or_a_project_is_stored_with_its_secret(store: StorageBackend, said: str) -> None:
    states, users = AgentStates(store, screen=masked), Users(store, screen=masked)
    states.save("helena", {"note": said})
    states.save("helena", {"more": said}, merge=True)
    users.create("ana", user_id="ana", profile={"bio": said})
    users.merge_preferences("ana", {"note": said})
    projects = Projects(store, screen=masked)
    projects.initialize("ana", "shop", description=said)
    projects.initialize("ana", "shop", config={"note": said})
    assert SECRET not in stored_texts(store)


def test_by_default_nothing_is_stored_with_its_secret(store: StorageBackend, said: str) -> None:
    manager = SessionManager("shop", store)
    session = manager.start_session("helena", goal=said).session_id
    manager.update_session("helena", session, said, "success", decision=said)
    handoff = manager.create_handoff("helena", session, next_steps=[said])
    assert handoff.next_steps == ("used the key [redacted:openai_key] here",)
    tracker = ProgressTracker("shop", store)
    item = tracker.create_work_item("Pay", description=said)
    tracker.update_status(item.id, "failed", note=said)
    tracker.log_progress(current_action=said)
    AgentStates(store).save("helena", {"note": said, "password": "hunter2"})
    Users(store).create("ana", user_id="ana", profile={"bio": said})
    Projects(store).initialize("ana", "shop", description=said)
    sessions = Sessions(store)
    other = sessions.create(user_id="ana", description=said).id
    sessions.update_context(other, Scope(user_id="ana"), {"note": said})
    sessions.end(other, Scope(user_id="ana"), summary=said)
    texts = stored_texts(store)
    assert SECRET not in texts
    assert "hunter2" not in texts
    assert "[redacted:" in texts


def test_by_default_a_failure_is_logged_without_its_secret(store: StorageBackend, said: str) -> None:
    trail = AuditTrail(store)
    because = Attribution(user_id="ana", reason=said)
    trail.record_failure("create", "memory", ValueError(said), because, request={"query": said, "token": "hunter2"})
    (event,) = trail.find(Scope.everywhere(), success=False)
    assert event.error_message == "ValueError: used the key [redacted:openai_key] here"
    assert SECRET not in json.dumps(event.details_json)
    assert "hunter2" not in json.dumps(event.details_json)


def test_who_has_screened_already_can_let_everything_pass(store: StorageBackend, said: str) -> None:
    AgentStates(store, screen=as_it_is).save("helena", {"note": said})
    assert SECRET in stored_texts(store)


def test_no_reason_is_kept_with_its_secret(store: StorageBackend, said: str) -> None:
    by = Attribution(user_id="ana", reason=said, user_agent=said)
    for name in ("one", "two"):
        store.save(a_memory(id=name, project_id="shop"), by)
    shop = Scope(project_id="shop")
    related = Relationships(store).relate("one", "two", "relates_to", shop, context=said)
    assert related.context == "used the key [redacted:openai_key] here"
    Archive(store).put(Memory, ["one"], shop, reason=said)
    assert SECRET not in stored_texts(store)


def test_a_refusal_is_noted_without_the_secret_of_what_was_refused(store: StorageBackend) -> None:
    scopes = {"helena": MemoryScope(agent_name="helena", can_learn=[], cannot_learn=["backend"])}
    engine = RetrievalEngine(store, MockEmbedder(store.embedding_dim))
    with pytest.raises(ScopeViolationError, match="cannot learn"):
        LearningProtocol(store, engine.embedder, engine.index, scopes).learn(
            Execution("helena", "shop", f"backend with {'ghp_' + 'a1B2' * 9} and {SECRET}", True, f"use {SECRET}")
        )
    engine.close()
    assert SECRET[:10] not in stored_texts(store)
    assert "a1B2" not in stored_texts(store)
