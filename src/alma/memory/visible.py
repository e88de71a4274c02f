"""Visible: which memories a session may see, and which are over."""

from __future__ import annotations

from datetime import datetime

from alma.clock import now
from alma.model.memory import Memory
from alma.model.query import And, Compare, In, Or, Order, Predicate
from alma.model.scope import Scope
from alma.model.workspace import Session, SessionMemory
from alma.storage.base import Transaction

_EVERYWHERE = Scope.everywhere()


def memories_of(tx: Transaction, session: Session, user_id: str | None) -> list[Memory]:
    """The live memories of a session that its user may see and so may whoever asks, oldest first."""
    where = Compare("session_id", "eq", session.id)
    placed = [row[0] for row in tx.values(SessionMemory, ("memory_id",), _EVERYWHERE, where)]
    of_session: Predicate = Or(where, In("id", placed)) if placed else where
    found = tx.find(Memory, _EVERYWHERE, And(of_session, Compare("is_active", "eq", True)), (Order("created_at"),))
    moment = now()
    seen = [memory for memory in found if is_visible(memory, session) and is_open_to(memory, user_id)]
    return [memory for memory in seen if not is_over(memory, moment)]


def is_visible(memory: Memory, session: Session) -> bool:
    """Whether a session may hold a memory: of its project, or global of its user; a private one of its user alone."""
    theirs = memory.user_id is not None and memory.user_id == session.user_id
    # What is private and no user's is the agent's that made it.
    by_agent = memory.user_id is None and memory.source_agent is not None and memory.source_agent == session.agent
    if memory.is_private and not theirs and not by_agent:
        return False
    same_project = memory.project_id is None or memory.project_id == session.project_id
    if same_project:
        return memory.project_id is not None or memory.user_id is None or theirs or memory.session_id == session.id
    return memory.layer_global and theirs


def is_open_to(memory: Memory, user_id: str | None) -> bool:
    """Whether whoever asks may see a memory that a session holds: what is private to a user, that user alone."""
    return not memory.is_private or memory.user_id is None or memory.user_id == user_id


def is_over(memory: Memory, moment: datetime) -> bool:
    """Whether a memory is no longer to be shown."""
    return memory.is_archived or not memory.is_active or (memory.expires_at is not None and memory.expires_at <= moment)
