"""Operations of maintenance: run its tasks, show when they ran, and bring sessions back from cold storage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import Field

from alma.errors import ConfigurationError
from alma.maintenance.cold_storage import ColdStorage
from alma.maintenance.tasks import Task
from alma.operations.access import Caller, Right
from alma.operations.base import Input, Name, Operation, Output, operation


class Maintain(Input):
    tasks: Sequence[Task] | None = Field(None, description="Only these; default: all that are configured.")
    dry_run: bool = Field(False, description="Count what would be done without changing anything.")


class TaskDone(Output):
    task: Task
    count: int = Field(description="How many records it archived, deleted or changed, or would.")
    error: str | None = None
    is_on: bool = Field(description="Whether the task is configured; if not, nothing was done.")


class Maintained(Output):
    results: Sequence[TaskDone]
    dry_run: bool


@operation("maintenance", Right.ADMIN, takes_long=True, example={"dry_run": True})
def maintain(caller: Caller, request: Maintain) -> Maintained:
    """Run the maintenance of the store now: expiry, decay, cleanup, retention, cold storage.

    A running service does it by itself at the configured interval. What is archived can be restored.
    """
    caller.require_unlimited("maintenance")
    progress, total = caller.progress, len(request.tasks or Task)
    done: list[Task] = []

    def began(task: Task) -> None:
        if progress is not None:
            progress(len(done), total)
        done.append(task)

    results = caller.store.maintenance.run(request.tasks, dry_run=request.dry_run, on_task=began)
    return Maintained(results=list(map(TaskDone.from_result, results)), dry_run=request.dry_run)


class Nothing(Input):
    pass


class LastRun(Output):
    started_at: datetime
    finished_at: datetime
    counts: Mapping[str, int]
    error: str | None = None


class MaintenanceState(Output):
    is_running: bool = Field(description="Whether this service runs it at the interval.")
    tasks: Sequence[Task] = Field(description="The tasks that are configured.")
    last_run: LastRun | None = None
    next_run: datetime = Field(description="When a service runs it next.")


@operation("maintenance", Right.READ, example={})
def maintenance_status(caller: Caller, request: Nothing) -> MaintenanceState:
    """Show which tasks of maintenance are configured, what the last run did, and when the next is due."""
    caller.require_unlimited("the state of maintenance")
    found = caller.store.maintenance
    last = found.last_run
    return MaintenanceState(
        is_running=found.is_running,
        tasks=[task for task in Task if found.is_on(task)],
        last_run=None if last is None else LastRun.from_result(last),
        next_run=found.next_run,
    )


class ColdSession(Output):
    session_id: str
    file: str
    memories: int


class ColdSessions(Output):
    sessions: Sequence[ColdSession]


@operation("maintenance", Right.READ, example={})
def list_cold_sessions(caller: Caller, request: Nothing) -> ColdSessions:
    """List the sessions whose memories were moved to compressed files."""
    caller.require_unlimited("cold storage")
    found = _cold_storage(caller).stored()
    return ColdSessions(sessions=[_shown(each) for each in found])


class OfSession(Input):
    session_id: Name


@operation("maintenance", Right.ADMIN, takes_long=True, example={"session_id": "01a1e0a2b81e7fc49d0ec9b96de703e8"})
def store_session(caller: Caller, request: OfSession) -> ColdSession:
    """Move the memories of an ended session to a compressed file; restore_session brings them back."""
    caller.require_unlimited("cold storage")
    return _shown(_cold_storage(caller).store(request.session_id, caller.by()))


@operation("maintenance", Right.ADMIN, takes_long=True, example={"session_id": "01a1e0a2b81e7fc49d0ec9b96de703e8"})
def restore_session(caller: Caller, request: OfSession) -> ColdSession:
    """Bring the memories of a session back from its compressed file."""
    caller.require_unlimited("cold storage")
    return _shown(_cold_storage(caller).restore(request.session_id, caller.by()))


def _cold_storage(caller: Caller) -> ColdStorage:
    found = caller.store.maintenance.cold_storage
    if found is None:
        raise ConfigurationError("there is no cold storage; set maintenance.cold_storage_dir to its folder")
    return found


def _shown(session: Any) -> ColdSession:
    return ColdSession(session_id=session.session_id, file=str(session.file), memories=session.memories)


UPKEEP: tuple[Operation[Any, Any], ...] = (
    maintain,
    maintenance_status,
    list_cold_sessions,
    store_session,
    restore_session,
)
