"""The workspace: users, projects, sessions and their memories, handoffs, work items and agent states."""

from __future__ import annotations

from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from alma.arguments import earlier
from alma.clock import new_id, now
from alma.errors import ValidationError
from alma.model.common import Count, Label, Name, Path, Prose, Share, Strings, Text
from alma.model.drafts import Draft, HandoffSteps, SessionNotes, WorkSteps
from alma.model.fields import JsonObject, Range
from alma.model.record import Index, OnDelete, Record, Reference, Unique, record


@record(
    "user",
    table="users",
    unique=(Unique("idx_users_username", ("username",)), Unique("idx_users_email", ("email",))),
    indexes=(
        Index("idx_users_active", ("last_active_at",), where="is_active IS TRUE"),
        Index("idx_user_profiles_is_active", ("is_active",)),
        Index("idx_user_profiles_preferences", ("preferences_json",), only="postgresql:gin"),
    ),
)
class User(Record):
    """A person, with a profile and preferences."""

    id: Name = field(default_factory=new_id)
    username: Name
    email: Label | None = None
    display_name: Prose | None = None
    profile_json: JsonObject = field(default_factory=dict)
    preferences_json: JsonObject = field(default_factory=dict)
    created_at: datetime = field(default_factory=now)
    updated_at: datetime = field(default_factory=now)
    last_active_at: datetime = field(default_factory=now)
    is_active: bool = True


@record(
    "project",
    table="projects",
    unique=(Unique("idx_projects_user_name", ("user_id", "name")),),
    indexes=(
        Index("idx_projects_user_active", ("user_id", "last_accessed_at"), where="is_active IS TRUE"),
        Index("idx_projects_path", ("path",), where="path IS NOT NULL"),
        Index("idx_projects_type", ("project_type",)),
    ),
)
class Project(Record):
    """Something a user works on."""

    id: Name = field(default_factory=new_id)
    user_id: Name
    name: Name
    description: Prose | None = None
    path: Path | None = None
    git_remote_url: Prose | None = None
    git_branch: Prose | None = "main"
    project_type: Label | None = None
    language: Label | None = None
    framework: Label | None = None
    config_json: JsonObject = field(default_factory=dict)
    created_at: datetime = field(default_factory=now)
    updated_at: datetime = field(default_factory=now)
    last_accessed_at: datetime = field(default_factory=now)
    is_active: bool = True


@record(
    "session",
    table="sessions",
    postgres_table="alma_sessions",
    indexes=(
        Index("idx_sessions_user_active", ("user_id", "last_active_at"), where="is_active IS TRUE"),
        Index("idx_active_sessions", ("user_id", "last_active_at DESC"), where="is_active IS TRUE"),
        Index("idx_sessions_project", ("project_id",), where="project_id IS NOT NULL"),
        Index("idx_sessions_branch", ("git_branch",), where="git_branch IS NOT NULL"),
        Index("idx_sessions_parent", ("parent_session_id",), where="parent_session_id IS NOT NULL"),
        Index("idx_sessions_user_id", ("user_id",)),
        Index("idx_sessions_created_at", ("created_at",)),
        Index("idx_sessions_session_type", ("session_type",)),
    ),
    references=(Reference("parent_session_id", "session", OnDelete.CLEAR),),
)
class Session(SessionNotes, Record):
    """A period of work or conversation."""

    id: Name = field(default_factory=new_id)
    user_id: Name | None = None
    project_id: Name | None = None
    agent: Name | None = None
    name: Prose = ""
    description: Prose | None = None
    session_type: Name = "conversation"
    goal: Prose | None = None
    summary: Prose | None = None
    git_branch: Label | None = None
    git_commit: Label | None = None
    working_directory: Prose | None = None
    context_json: JsonObject = field(default_factory=dict)
    metadata: JsonObject = field(default_factory=dict)
    parent_session_id: Name | None = None
    created_at: datetime = field(default_factory=now)
    updated_at: datetime = field(default_factory=now)
    last_active_at: datetime = field(default_factory=now)
    ended_at: datetime | None = None
    is_active: bool = True
    is_archived: bool = False


@record(
    "session_memory",
    table="session_memories",
    unique=(Unique("unique_session_memory", ("session_id", "memory_id")),),
    indexes=(
        Index("idx_session_memories_session", ("session_id", "position_in_session")),
        Index("idx_session_memories_working", ("session_id", "working_memory"), where="working_memory IS TRUE"),
        Index(
            "idx_session_memories_context",
            ("context_window_position",),
            where="context_window_position IS NOT NULL",
        ),
    ),
    references=(
        Reference("session_id", "session", OnDelete.CASCADE, must_exist=True),
        Reference("memory_id", "memory", OnDelete.CASCADE, must_exist=True),
    ),
)
class SessionMemory(Record):
    """A memory's place in a session, and whether it is being worked on."""

    id: Name = field(default_factory=new_id)
    session_id: Name
    memory_id: Name
    position_in_session: Count | None = None
    working_memory: bool = False
    context_window_position: Count | None = None
    added_at: datetime = field(default_factory=now)
    pinned: bool = False


class SessionOutcome(StrEnum):
    """The outcome of the last action in a session."""

    SUCCESS = "success"
    FAILURE = "failure"
    PARTIAL = "partial"
    INTERRUPTED = "interrupted"
    UNKNOWN = "unknown"

    @classmethod
    def parse(cls, said: object) -> SessionOutcome:
        """The outcome for a word, a bool or None; other values are an error."""
        if said is None:
            return cls.UNKNOWN
        if isinstance(said, bool):
            return cls.SUCCESS if said else cls.FAILURE
        if isinstance(said, str):
            word = "_".join(said.casefold().strip(" \t\r\n.!").replace("-", " ").replace("_", " ").split())
            for outcome, words in _OUTCOME_WORDS.items():
                if word == outcome or word in words:
                    return cls(outcome)
        raise ValidationError("session_handoff", "last_outcome", said, f"must be one of {', '.join(cls)}")


_OUTCOME_WORDS: dict[str, set[str]] = {
    "success": {"succeeded", "successful", "successfully", "ok", "okay", "pass", "passed", "done", "complete"}
    | {"completed", "true", "yes"},
    "failure": {"fail", "failed", "failing", "error", "errored", "broken", "unsuccessful", "false", "no"},
    "partial": {
        "partially",
        "partly",
        "mixed",
        "incomplete",
        "unfinished",
        "in_progress",
        "partial_success",
        "blocked",
    },
    "interrupted": {
        "aborted",
        "cancelled",
        "canceled",
        "stopped",
        "paused",
        "killed",
        "crashed",
        "timeout",
        "timed_out",
    },
    "unknown": {"", "none", "unclear", "n/a", "?", "pending"},
}


def _with_times(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a handoff; begin and end of the session become its duration and time."""
    given.pop("embedding", None)
    begun, ended = given.pop("session_start", None), given.pop("session_end", None)
    if begun is not None and ended is not None:
        given.setdefault("duration_ms", max(0, int((ended - begun).total_seconds() * 1000)))
    if ended is not None or begun is not None:
        given.setdefault("created_at", ended or begun)
    return given


@earlier(_with_times)
@record(
    "session_handoff",
    table="session_handoffs",
    indexes=(Index("idx_session_handoffs_project_agent", ("project_id", "agent", "created_at DESC")),),
)
class SessionHandoff(HandoffSteps, Record):
    """The handoff of one session to the next."""

    id: Name = field(default_factory=new_id)
    project_id: Name
    agent: Name
    session_id: Name
    goal: Prose | None = None
    last_action: Prose
    last_outcome: Label | None = None
    current_goal: Prose | None = None
    key_decisions: Strings = ()
    active_files: Strings = ()
    blockers: Strings = ()
    next_steps: Strings = ()
    confidence_level: Share = 0.5
    risk_flags: Strings = ()
    test_status: JsonObject = field(default_factory=dict)
    duration_ms: Count | None = None
    metadata: JsonObject = field(default_factory=dict)
    created_at: datetime = field(default_factory=now)


class WorkItemStatus(StrEnum):
    """The status of a work item."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    BLOCKED = "blocked"
    REVIEW = "review"
    DONE = "done"
    FAILED = "failed"


@record(
    "work_item",
    table="work_items",
    indexes=(Index("idx_work_items_project_status", ("project_id", "status", "priority DESC")),),
)
class WorkItem(WorkSteps, Record):
    """A work item: a task, its status and its dependencies."""

    id: Name = field(default_factory=new_id)
    project_id: Name
    agent: Name | None = None
    title: Text
    description: Prose = ""
    item_type: Name = "task"
    status: WorkItemStatus = WorkItemStatus.PENDING
    priority: Annotated[int, Range(0, 100)] = 50
    parent_id: Name | None = None
    blocks: Strings = ()
    blocked_by: Strings = ()
    tests: Strings = ()
    tests_passing: bool = False
    acceptance_criteria: Strings = ()
    attempt_count: Count = 0
    time_spent_ms: Count = 0
    metadata: JsonObject = field(default_factory=dict)
    created_at: datetime = field(default_factory=now)
    updated_at: datetime = field(default_factory=now)
    started_at: datetime | None = None
    completed_at: datetime | None = None
    estimate_minutes: Count | None = None


@record(
    "progress_log",
    table="progress_logs",
    indexes=(Index("idx_progress_logs_project", ("project_id", "created_at DESC")),),
)
class ProgressLog(Record):
    """A snapshot of a project's progress and current action."""

    id: Name = field(default_factory=new_id)
    project_id: Name
    agent: Name | None = None
    session_id: Name | None = None
    items_total: Count = 0
    items_pending: Count = 0
    items_in_progress: Count = 0
    items_blocked: Count = 0
    items_review: Count = 0
    items_done: Count = 0
    items_failed: Count = 0
    current_item_id: Name | None = None
    current_action: Prose | None = None
    note: Prose | None = None
    created_at: datetime = field(default_factory=now)

    @classmethod
    def create(cls, project_id: str, agent: str, session_id: str, *counts: int, **fields: Any) -> ProgressLog:
        """A log that is not stored; `counts` are those of items in total, done, in progress, blocked and pending."""
        named: dict[str, Any] = dict(zip(_LOGGED, counts, strict=False))
        fields.pop("session_start", None)
        return cls(project_id=project_id, agent=agent, session_id=session_id, **named, **fields)


_LOGGED = ("items_total", "items_done", "items_in_progress", "items_blocked", "items_pending")


@record(
    "agent_state",
    table="agent_states",
    postgres_table="alma_agent_states",
    unique=(Unique("unique_agent_session", ("agent_id", "session_id"), nulls_equal=True),),
    indexes=(
        Index("idx_agent_states_agent_id", ("agent_id",)),
        Index("idx_agent_states_session_id", ("session_id",)),
        Index("idx_agent_states_expires_at", ("expires_at",)),
    ),
    references=(Reference("session_id", "session", OnDelete.CASCADE),),
)
class AgentState(Record):
    """The state that an agent keeps between turns, for a session or without one."""

    id: Name = field(default_factory=new_id)
    agent_id: Name
    session_id: Name | None = None
    state_data: JsonObject
    created_at: datetime = field(default_factory=now)
    updated_at: datetime = field(default_factory=now)
    expires_at: datetime | None = None


class WorkItemDraft(Draft, WorkItem):
    """A work item that a program changes step by step."""


class HandoffDraft(Draft, SessionHandoff):
    """A handoff that a program changes step by step."""

    session_start: Any = None
    session_end: Any = None
