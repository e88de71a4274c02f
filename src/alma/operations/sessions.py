"""Operations on sessions: opening, switching and ending them, what they hold in mind, and what they hand over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from alma.memory.working import LeftOut
from alma.model.memory import Memory
from alma.model.scope import Scope
from alma.model.workspace import AgentState, Session, SessionHandoff
from alma.operations.access import Caller, Right
from alma.operations.base import InProject, Limit, Name, Operation, Output, Prose, Share, operation
from alma.session.manager import SessionManager

_ID = "01a1e0a2b81e7fc49d0ec9b96de703e8"
Label = Annotated[str, StringConstraints(max_length=200)]
Lines = Annotated[Sequence[Prose], Field(max_length=100)]
Ids = Annotated[Sequence[Name], Field(min_length=1, max_length=1_000)]


class CreateSession(InProject):
    name: Prose = ""
    description: Prose | None = None
    session_type: Name = "conversation"
    goal: Prose | None = None
    user_id: Name | None = None
    agent: Name | None = None
    parent_session_id: Name | None = None
    git_branch: Label | None = None
    git_commit: Label | None = None
    working_directory: Prose | None = None
    context: Mapping[str, Any] | None = None
    session_id: Name | None = Field(None, description="An id of your own; one is made otherwise.")


class SessionOpen(Output):
    session: Session
    previous: Session | None = Field(default=None, description="The session that was left, when switching.")


@operation(
    "sessions", Right.WRITE, example={"name": "Fix the login", "goal": "Users stay logged in", "agent": "helena"}
)
def create_session(caller: Caller, asked: CreateSession) -> SessionOpen:
    """Open a session, which memories and agent states can belong to."""
    caller.session(asked.parent_session_id, asked.project_id)
    own = {"project_id", "user_id", "agent", "context"}
    made = caller.store.sessions.create(
        project_id=caller.project(asked.project_id),
        user_id=caller.user(asked.user_id),
        agent=caller.any_agent(asked.agent),
        context=dict(asked.context) if asked.context is not None else None,
        by=caller.by(user_id=asked.user_id, agent=asked.agent),
        visible=caller.scope(asked.project_id) if caller.grant.is_limited else Scope.everywhere(),
        **asked.model_dump(exclude=own),
    )
    return SessionOpen(session=made)


class SessionId(InProject):
    session_id: Name


@operation("sessions", Right.READ, example={"session_id": _ID})
def get_session(caller: Caller, asked: SessionId) -> SessionOpen:
    """Read a session."""
    return SessionOpen(session=caller.store.sessions.require(asked.session_id, caller.scope(asked.project_id)))


class ListSessions(InProject):
    active: bool | None = Field(None, description="Only open ones, or only ended ones.")
    archived: bool | None = Field(False, description="Also the archived ones with null.")
    session_type: Name | None = None
    agent: Name | None = None
    limit: Limit = 20


class SessionList(Output):
    sessions: Sequence[Session]


@operation("sessions", Right.READ, example={"active": True})
def list_sessions(caller: Caller, asked: ListSessions) -> SessionList:
    """List sessions, the newest first."""
    scope = caller.scope(asked.project_id, agent=asked.agent)
    found = caller.store.sessions.find(
        scope, active=asked.active, archived=asked.archived, session_type=asked.session_type, limit=asked.limit
    )
    return SessionList(sessions=found)


class SwitchSession(SessionId):
    reopen: bool = Field(False, description="Open it again if it was ended.")


@operation("sessions", Right.WRITE, idempotent=True, example={"session_id": _ID})
def switch_session(caller: Caller, asked: SwitchSession) -> SessionOpen:
    """Make another session the current one."""
    scope = caller.scope(asked.project_id)
    switched = caller.store.sessions.switch(asked.session_id, scope, reopen=asked.reopen, by=caller.by())
    return SessionOpen(session=switched.session, previous=switched.previous)


class EndSession(SessionId):
    summary: Prose | None = Field(None, description="What came of it; its most telling sentences otherwise.")
    archive: bool = Field(False, description="Put it away as well.")


@operation("sessions", Right.WRITE, idempotent=True, example={"session_id": _ID, "summary": "Fixed.", "archive": False})
def end_session(caller: Caller, asked: EndSession) -> SessionOpen:
    """End a session, with a summary."""
    scope = caller.scope(asked.project_id)
    ended = caller.store.sessions.end(
        asked.session_id, scope, summary=asked.summary, archive=asked.archive, by=caller.by()
    )
    return SessionOpen(session=ended)


class SessionRemoved(Output):
    deleted: bool


@operation("sessions", Right.DELETE, destructive=True, idempotent=True, example={"session_id": _ID})
def delete_session(caller: Caller, asked: SessionId) -> SessionRemoved:
    """Delete a session; the knowledge it led to stays."""
    scope = caller.scope(asked.project_id)
    return SessionRemoved(deleted=caller.store.sessions.delete(asked.session_id, scope, caller.by()))


# ---------------------------------------------------------------------- working memory


_ASKING = Field(None, description="Who asks; private memories are seen by their user alone.")


class HoldMemories(SessionId):
    memory_ids: Ids
    pinned: bool = Field(False, description="Never give it up for room.")
    max_tokens: int | None = Field(None, ge=1, le=10**7, description="How much the context window holds.")
    user_id: Name | None = _ASKING


class InMind(Output):
    session_id: str
    memories: Sequence[Memory]
    tokens: int
    max_tokens: int
    prompt: str
    evicted: Sequence[LeftOut] = Field((), description="What had to go for room, and why.")


def _in_mind(held: Any) -> InMind:
    return InMind(
        session_id=held.session_id,
        memories=held.memories,
        tokens=held.tokens,
        max_tokens=held.max_tokens,
        prompt=held.to_prompt(),
        evicted=held.evicted,
    )


@operation("sessions", Right.WRITE, idempotent=True, example={"session_id": _ID, "memory_ids": [_ID]})
def hold_memories(caller: Caller, asked: HoldMemories) -> InMind:
    """Hold memories in a session's context window; the least useful go when there is no room."""
    held = caller.store.working.hold(
        asked.session_id,
        asked.memory_ids,
        caller.scope(asked.project_id),
        max_tokens=asked.max_tokens,
        pinned=asked.pinned,
        by=caller.by(user_id=asked.user_id),
    )
    return _in_mind(held)


class WorkingSetOf(SessionId):
    max_tokens: int | None = Field(None, ge=1, le=10**7)
    user_id: Name | None = _ASKING


@operation("sessions", Right.READ, example={"session_id": _ID})
def working_set(caller: Caller, asked: WorkingSetOf) -> InMind:
    """Read what a session holds in its context window."""
    scope = caller.scope(asked.project_id)
    by = caller.by(user_id=asked.user_id)
    return _in_mind(caller.store.working.working_set(asked.session_id, scope, asked.max_tokens, by))


class ReleaseMemories(SessionId):
    memory_ids: Ids


class Released(Output):
    released: int


@operation("sessions", Right.WRITE, idempotent=True, example={"session_id": _ID, "memory_ids": [_ID]})
def release_memories(caller: Caller, asked: ReleaseMemories) -> Released:
    """Let memories go from a session's context window; they are not forgotten."""
    scope = caller.scope(asked.project_id)
    gone = caller.store.working.release(asked.session_id, asked.memory_ids, scope, caller.by())
    return Released(released=gone)


# ---------------------------------------------------------------------- handing over


class CreateHandoff(SessionId):
    agent: Name
    last_action: Prose | None = None
    last_outcome: Label | None = Field(None, description="success, failure, interrupted or unknown")
    next_steps: Lines | None = None
    blockers: Lines | None = None
    key_decisions: Lines | None = None
    active_files: Lines | None = None
    risk_flags: Lines | None = None
    current_goal: Prose | None = None
    confidence_level: Share | None = None


class HandedOver(Output):
    handoff: SessionHandoff | None = None
    quick_reload: str = Field("", description="What the next session needs to know, as text.")


def _manager(caller: Caller, asked_project: str | None) -> SessionManager:
    memory = caller.memory(asked_project)
    # Keys are given for agents by their exact names.
    user_id = caller.scope(asked_project).user_id
    return SessionManager(memory.project_id, memory.storage, memory.screen, any_case=False, user_id=user_id)


@operation(
    "sessions",
    Right.WRITE,
    example={"session_id": _ID, "agent": "helena", "last_action": "wrote the test", "next_steps": ["make it pass"]},
)
def create_handoff(caller: Caller, asked: CreateHandoff) -> HandedOver:
    """Leave word for whoever goes on: what was done, what is next, what is in the way."""
    manager, agent = _manager(caller, asked.project_id), caller.agent(asked.agent)
    caller.session(asked.session_id, asked.project_id)
    given = asked.model_dump(exclude={"project_id", "agent", "session_id"})
    handoff = manager.create_handoff(agent, asked.session_id, **given)
    return HandedOver(handoff=handoff, quick_reload=manager.get_quick_reload(agent))


class LatestHandoff(InProject):
    agent: Name
    max_tokens: int = Field(500, ge=0, le=100_000)


@operation("sessions", Right.READ, example={"agent": "helena"})
def latest_handoff(caller: Caller, asked: LatestHandoff) -> HandedOver:
    """Read what the last session of an agent left for the next."""
    manager, agent = _manager(caller, asked.project_id), caller.agent(asked.agent)
    reload = manager.get_quick_reload(agent, asked.max_tokens)
    return HandedOver(handoff=manager.get_latest_handoff(agent), quick_reload=reload)


# ---------------------------------------------------------------------- agent states


class StateOf(InProject):
    agent: Name
    session_id: Name | None = Field(None, description="The state in one session; the agent's own otherwise.")


class SaveState(StateOf):
    state: Mapping[str, Any]
    ttl_seconds: float | None = Field(None, gt=0, le=10**10)
    merge: bool = Field(False, description="Change only the keys that are given.")


class StateKept(Output):
    state: AgentState | None = None


class StateCleared(Output):
    cleared: bool


def _state_owner(caller: Caller, asked: StateOf) -> tuple[str, str | None]:
    """Whose state it is. One outside of sessions is the agent's in the whole store, not a project's or a user's."""
    if asked.session_id is None and (caller.grant.project_id or caller.grant.user_id):
        caller.require_unlimited("an agent's state outside of any session")
    return caller.agent(asked.agent), caller.session(asked.session_id, asked.project_id)


@operation("sessions", Right.WRITE, idempotent=True, example={"agent": "helena", "state": {"step": 3}})
def save_agent_state(caller: Caller, asked: SaveState) -> StateKept:
    """Keep where an agent left off."""
    agent, session = _state_owner(caller, asked)
    kept = caller.store.states.save(
        agent,
        dict(asked.state),
        session,
        ttl_seconds=asked.ttl_seconds,
        merge=asked.merge,
        by=caller.by(agent=asked.agent, session_id=session),
    )
    return StateKept(state=kept)


@operation("sessions", Right.READ, example={"agent": "helena"})
def load_agent_state(caller: Caller, asked: StateOf) -> StateKept:
    """Read where an agent left off."""
    return StateKept(state=caller.store.states.load(*_state_owner(caller, asked)))


@operation("sessions", Right.DELETE, destructive=True, idempotent=True, example={"agent": "helena"})
def clear_agent_state(caller: Caller, asked: StateOf) -> StateCleared:
    """Forget where an agent left off."""
    return StateCleared(cleared=caller.store.states.clear(*_state_owner(caller, asked), by=caller.by()))


SESSIONS: tuple[Operation[Any, Any], ...] = (
    create_session,
    get_session,
    list_sessions,
    switch_session,
    end_session,
    delete_session,
    hold_memories,
    working_set,
    release_memories,
    create_handoff,
    latest_handoff,
    save_agent_state,
    load_agent_state,
    clear_agent_state,
)
