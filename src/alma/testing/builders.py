"""Builders of valid records, and constants and errors that the contract suites share."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.memory import Memory, MemoryRelationship, ProjectPattern
from alma.model.scope import Scope
from alma.model.workspace import AgentState, Project, Session, SessionHandoff, SessionMemory, User, WorkItem

DIMS = 4
EVERYWHERE = Scope.everywhere()
SHOP = Scope(project_id="shop")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Oops(Exception):
    """Raised by tests inside a transaction."""


def a_heuristic(**values: Any) -> Heuristic:
    usual = {"agent": "helena", "project_id": "shop", "condition": "a form", "strategy": "test it field by field"}
    return Heuristic(**{**usual, **values})


def an_outcome(**values: Any) -> Outcome:
    return Outcome(**{"agent": "helena", "project_id": "shop", "task_description": "test the login form", **values})


def a_preference(**values: Any) -> UserPreference:
    return UserPreference(**{"user_id": "ana", "preference": "short answers", **values})


def some_knowledge(**values: Any) -> DomainKnowledge:
    return DomainKnowledge(**{"agent": "helena", "project_id": "shop", "fact": "tokens expire after a day", **values})


def an_anti_pattern(**values: Any) -> AntiPattern:
    return AntiPattern(**{"agent": "helena", "project_id": "shop", "pattern": "sleep instead of waiting", **values})


def a_memory(**values: Any) -> Memory:
    return Memory(
        **{"user_id": "ana", "project_id": "shop", "content": "the build was moved to another host", **values}
    )


def a_relationship(source: Memory, target: Memory, **values: Any) -> MemoryRelationship:
    ends = {"from_memory_id": source.id, "to_memory_id": target.id, "relationship_type": "builds_on"}
    return MemoryRelationship(**{**ends, **values})


def a_session(**values: Any) -> Session:
    return Session(**{"user_id": "ana", "project_id": "shop", "name": "morning", **values})


def a_place_in(session: Session, memory: Memory, **values: Any) -> SessionMemory:
    return SessionMemory(**{"session_id": session.id, "memory_id": memory.id, **values})


def a_user(**values: Any) -> User:
    return User(**{"username": "ana", **values})


def a_project(**values: Any) -> Project:
    return Project(**{"user_id": "ana", "name": "shop", **values})


def a_pattern(**values: Any) -> ProjectPattern:
    usual = {"project_id": "shop", "pattern_type": "testing", "pattern_name": "page objects"}
    return ProjectPattern(**{**usual, "pattern_description": "one class per page", **values})


def a_handoff(**values: Any) -> SessionHandoff:
    return SessionHandoff(
        **{"project_id": "shop", "agent": "helena", "session_id": "s1", "last_action": "tested the cart", **values}
    )


def a_work_item(**values: Any) -> WorkItem:
    return WorkItem(**{"project_id": "shop", "title": "test the cart", **values})


def an_agent_state(**values: Any) -> AgentState:
    return AgentState(**{"agent_id": "helena", "state_data": {"step": 1}, **values})
