"""Operations on sessions: create, switch and end them, working memory, handoffs and agent states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AwareDatetime, Field, StringConstraints

from alma.memory.working import LeftOut
from alma.model.memory import Memory
from alma.model.scope import Scope
from alma.model.workspace import AgentState, Session, SessionHandoff
from alma.operations.access import Caller, Right
from alma.operations.base import ASKING_USER, InProject, Limit, Name, Operation, Output, Prose, Share, operation
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
    session_id: Name | None = Field(None, description="An id of your choice; generated if not given.")


class SessionOpen(Output):
    session: Session
    previous: Session | None = Field(default=None, description="The previous session, after a switch.")


@operation(
    "sessions", Right.WRITE, example={"name": "Fix the login", "goal": "Users stay logged in", "agent": "helena"}
)
def create_session(caller: Caller, request: CreateSession) -> SessionOpen:
    """Create a session, to which memories and agent states can belong."""
    caller.session(request.parent_session_id, request.project_id)
    own = {"project_id", "user_id", "agent", "context"}
    made = caller.store.sessions.create(
        project_id=caller.project(request.project_id),
        user_id=caller.user(request.user_id),
        agent=caller.any_agent(request.agent),
        context=dict(request.context) if request.context is not None else None,
        by=caller.by(user_id=request.user_id, agent=request.agent),
        visible=caller.scope(request.project_id) if caller.grant.is_limited else Scope.everywhere(),
        **request.model_dump(exclude=own),
    )
    return SessionOpen(session=made)


class SessionId(InProject):
    session_id: Name


@operation("sessions", Right.READ, example={"session_id": _ID})
def get_session(caller: Caller, request: SessionId) -> SessionOpen:
    """Read a session."""
    return SessionOpen(session=caller.store.sessions.require(request.session_id, caller.scope(request.project_id)))


class ListSessions(InProject):
    active: bool | None = Field(None, description="true for open sessions only, false for ended ones only.")
    archived: bool | None = Field(False, description="false without archived ones, true for these only, null for all.")
    session_type: Name | None = None
    agent: Name | None = None
    limit: Limit = 20


class SessionList(Output):
    sessions: Sequence[Session]


@operation("sessions", Right.READ, example={"active": True})
def list_sessions(caller: Caller, request: ListSessions) -> SessionList:
    """List sessions, newest first."""
    scope = caller.scope(request.project_id, agent=request.agent)
    found = caller.store.sessions.find(
        scope, active=request.active, archived=request.archived, session_type=request.session_type, limit=request.limit
    )
    return SessionList(sessions=found)


class SwitchSession(SessionId):
    reopen: bool = Field(False, description="Reopen the session if it has ended.")


@operation("sessions", Right.WRITE, idempotent=True, example={"session_id": _ID})
def switch_session(caller: Caller, request: SwitchSession) -> SessionOpen:
    """Switch to another session, which becomes the current one."""
    scope = caller.scope(request.project_id)
    switched = caller.store.sessions.switch(request.session_id, scope, reopen=request.reopen, by=caller.by())
    return SessionOpen.from_result(switched)


class EndSession(SessionId):
    summary: Prose | None = Field(None, description="A summary; otherwise made of the session's own sentences.")
    archive: bool = Field(False, description="Also archive the session.")


@operation("sessions", Right.WRITE, idempotent=True, example={"session_id": _ID, "summary": "Fixed.", "archive": False})
def end_session(caller: Caller, request: EndSession) -> SessionOpen:
    """End a session and store its summary."""
    scope = caller.scope(request.project_id)
    ended = caller.store.sessions.end(
        request.session_id, scope, summary=request.summary, archive=request.archive, by=caller.by()
    )
    return SessionOpen(session=ended)


class SessionRemoved(Output):
    deleted: bool


@operation("sessions", Right.DELETE, destructive=True, idempotent=True, example={"session_id": _ID})
def delete_session(caller: Caller, request: SessionId) -> SessionRemoved:
    """Delete a session; the knowledge learned in it is kept."""
    scope = caller.scope(request.project_id)
    return SessionRemoved(deleted=caller.store.sessions.delete(request.session_id, scope, caller.by()))


# ---------------------------------------------------------------------- working memory


class HoldMemories(SessionId):
    memory_ids: Ids
    pinned: bool = Field(False, description="Never evict these memories.")
    max_tokens: int | None = Field(None, ge=1, le=10**7, description="The size of the context window in tokens.")
    user_id: Name | None = ASKING_USER


class InMind(Output):
    session_id: str
    memories: Sequence[Memory]
    tokens: int
    max_tokens: int
    prompt: str
    evicted: Sequence[LeftOut] = Field((), description="The memories that were evicted, with the reason.")


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
def hold_memories(caller: Caller, request: HoldMemories) -> InMind:
    """Add memories to a session's working set; the least useful ones are evicted when it is full."""
    held = caller.store.working.hold(
        request.session_id,
        request.memory_ids,
        caller.scope(request.project_id),
        max_tokens=request.max_tokens,
        pinned=request.pinned,
        by=caller.by(user_id=request.user_id),
    )
    return _in_mind(held)


class WorkingSetOf(SessionId):
    max_tokens: int | None = Field(None, ge=1, le=10**7)
    user_id: Name | None = ASKING_USER


@operation("sessions", Right.READ, example={"session_id": _ID})
def working_set(caller: Caller, request: WorkingSetOf) -> InMind:
    """Read the memories in a session's working set."""
    scope = caller.scope(request.project_id)
    by = caller.by(user_id=request.user_id)
    return _in_mind(caller.store.working.working_set(request.session_id, scope, request.max_tokens, by))


class ReleaseMemories(SessionId):
    memory_ids: Ids


class Released(Output):
    released: int


@operation("sessions", Right.WRITE, idempotent=True, example={"session_id": _ID, "memory_ids": [_ID]})
def release_memories(caller: Caller, request: ReleaseMemories) -> Released:
    """Remove memories from a session's working set; they are not deleted."""
    scope = caller.scope(request.project_id)
    gone = caller.store.working.release(request.session_id, request.memory_ids, scope, caller.by())
    return Released(released=gone)


# ---------------------------------------------------------------------- handoffs


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
    quick_reload: str = Field("", description="The agent's latest handoff as text for the next session.")


def _manager(caller: Caller, project_id: str | None) -> SessionManager:
    memory = caller.memory(project_id)
    # Grants name agents exactly, so names are compared case-sensitively.
    user_id = caller.scope(project_id).user_id
    return SessionManager(memory.project_id, memory.storage, screen=memory.screen, any_case=False, user_id=user_id)


@operation(
    "sessions",
    Right.WRITE,
    example={"session_id": _ID, "agent": "helena", "last_action": "wrote the test", "next_steps": ["make it pass"]},
)
def create_handoff(caller: Caller, request: CreateHandoff) -> HandedOver:
    """Store a handoff for the next session: what was done, what is next, and what is blocked."""
    manager, agent = _manager(caller, request.project_id), caller.agent(request.agent)
    caller.session(request.session_id, request.project_id)
    given = request.model_dump(exclude={"project_id", "agent", "session_id"})
    handoff = manager.create_handoff(agent, request.session_id, **given)
    return HandedOver(handoff=handoff, quick_reload=manager.get_quick_reload(agent))


class LatestHandoff(InProject):
    agent: Name
    session_id: Name | None = Field(None, description="Only a handoff of this session.")
    as_of: AwareDatetime | None = Field(None, description="The latest one at this time.")
    max_tokens: int = Field(500, ge=0, le=100_000)


@operation("sessions", Right.READ, example={"agent": "helena"})
def latest_handoff(caller: Caller, request: LatestHandoff) -> HandedOver:
    """Read the latest handoff of an agent, or that of a session or a time."""
    manager, agent = _manager(caller, request.project_id), caller.agent(request.agent)
    handoff = manager.get_latest_handoff(agent, request.session_id, request.as_of)
    is_latest = request.session_id is None and request.as_of is None
    reload = manager.get_quick_reload(agent, request.max_tokens) if is_latest else ""
    return HandedOver(handoff=handoff, quick_reload=reload)


# ---------------------------------------------------------------------- agent states


class StateOf(InProject):
    agent: Name
    session_id: Name | None = Field(None, description="The state in a session; default: outside of any session.")


class SaveState(StateOf):
    state: Mapping[str, Any]
    ttl_seconds: float | None = Field(None, gt=0, le=10**10)
    merge: bool = Field(False, description="Change only the given keys.")


class StateKept(Output):
    state: AgentState | None = None


class StateCleared(Output):
    cleared: bool


def _state_owner(caller: Caller, request: StateOf) -> tuple[str, str | None]:
    """The agent and session of a state; a state without a session belongs to the whole store."""
    if request.session_id is None and (caller.grant.project_id or caller.grant.user_id):
        caller.require_unlimited("an agent's state outside of any session")
    return caller.agent(request.agent), caller.session(request.session_id, request.project_id)


@operation("sessions", Right.WRITE, idempotent=True, example={"agent": "helena", "state": {"step": 3}})
def save_agent_state(caller: Caller, request: SaveState) -> StateKept:
    """Save the state of an agent, to continue later."""
    agent, session = _state_owner(caller, request)
    kept = caller.store.states.save(
        agent,
        dict(request.state),
        session,
        ttl_seconds=request.ttl_seconds,
        merge=request.merge,
        by=caller.by(agent=request.agent, session_id=session),
    )
    return StateKept(state=kept)


@operation("sessions", Right.READ, example={"agent": "helena"})
def load_agent_state(caller: Caller, request: StateOf) -> StateKept:
    """Read the saved state of an agent."""
    return StateKept(state=caller.store.states.load(*_state_owner(caller, request)))


@operation("sessions", Right.DELETE, destructive=True, idempotent=True, example={"agent": "helena"})
def clear_agent_state(caller: Caller, request: StateOf) -> StateCleared:
    """Delete the saved state of an agent."""
    return StateCleared(cleared=caller.store.states.clear(*_state_owner(caller, request), by=caller.by()))


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
