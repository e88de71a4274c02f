"""Operations on the workspace: projects, users, settings and work items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from alma.errors import NotFoundError, PermissionDeniedError
from alma.memory.deletion import Subject
from alma.memory.projects import ProjectStats
from alma.model.workspace import Project, User, WorkItem, WorkItemStatus
from alma.operations.access import Caller, Right
from alma.operations.base import InProject, Input, Limit, Name, Operation, Output, Prose, Text, operation
from alma.progress.items import Strategy, is_for
from alma.progress.tracker import ProgressSummary, ProgressTracker

_ID = "01a1e0a2b81e7fc49d0ec9b96de703e8"
Label = Annotated[str, StringConstraints(max_length=200)]
Ids = Annotated[Sequence[Name], Field(max_length=1_000)]


class InitializeProject(Input):
    user_id: Name | None = Field(None, description="The owner; default: the key's user.")
    name: Name | None = None
    path: Annotated[str, StringConstraints(min_length=1, max_length=500)] | None = Field(
        None, description="The project directory on this machine, to detect language and framework."
    )
    project_id: Name | None = Field(None, description="An id of your choice; generated if not given.")
    description: Prose | None = None
    language: Label | None = None
    framework: Label | None = None
    project_type: Label | None = None
    config: Mapping[str, Any] | None = None


class ProjectKept(Output):
    project: Project


@operation("projects", Right.WRITE, idempotent=True, example={"user_id": "ana", "name": "shop", "language": "python"})
def initialize_project(caller: Caller, request: InitializeProject) -> ProjectKept:
    """Create a project, or update what is known about it."""
    if request.path is not None and not caller.is_local:
        raise PermissionDeniedError("a directory can only be read from the machine it is on: leave path out")
    project_id = caller.project(request.project_id) if caller.grant.project_id else request.project_id
    made = caller.store.projects.initialize(
        caller.required_user(request.user_id),
        project_id=project_id,
        config=dict(request.config) if request.config is not None else None,
        by=caller.by(user_id=request.user_id),
        **request.model_dump(exclude={"user_id", "project_id", "config"}),
    )
    return ProjectKept(project=made)


class ProjectsOf(Input):
    user_id: Name | None = None
    active_only: bool = True


class ProjectList(Output):
    projects: Sequence[Project]


@operation("projects", Right.READ, example={"user_id": "ana"})
def list_projects(caller: Caller, request: ProjectsOf) -> ProjectList:
    """List a user's projects."""
    found = caller.store.projects.list_all(caller.required_user(request.user_id), request.active_only)
    only = caller.grant.project_id
    return ProjectList(projects=[project for project in found if only in (None, project.id)])


class StatsOfProject(InProject):
    pass


class ProjectCounts(Output):
    stats: ProjectStats


@operation("projects", Right.READ, example={})
def get_project_stats(caller: Caller, request: StatsOfProject) -> ProjectCounts:
    """Count what a project remembers, and the outcomes of its tasks."""
    if caller.grant.agent is not None:
        raise PermissionDeniedError("project statistics cover all agents, and this key is limited to one agent")
    return ProjectCounts(stats=caller.store.projects.stats(caller.memory(request.project_id).project_id))


# ---------------------------------------------------------------------- users


class CreateUser(Input):
    username: Name
    user_id: Name | None = None
    email: Label | None = None
    display_name: Prose | None = None
    profile: Mapping[str, Any] | None = None
    preferences: Mapping[str, Any] | None = None


class UserKept(Output):
    user: User


@operation("users", Right.ADMIN, example={"username": "ana", "user_id": "ana", "display_name": "Ana"})
def create_user(caller: Caller, request: CreateUser) -> UserKept:
    """Create a user."""
    caller.require_unlimited("making a user")
    return UserKept(user=caller.store.users.create(by=caller.by(), **_plain(request)))


class UserId(Input):
    user_id: Name | None = Field(None, description="The user; default: the key's user.")


@operation("users", Right.READ, example={"user_id": "ana"})
def get_user(caller: Caller, request: UserId) -> UserKept:
    """Read a user's profile."""
    return UserKept(user=caller.store.users.require(caller.required_user(request.user_id)))


class UpdateUser(UserId):
    email: Label | None = None
    display_name: Prose | None = None
    profile: Mapping[str, Any] | None = Field(None, description="Keys to change; null removes a key.")
    preferences: Mapping[str, Any] | None = Field(None, description="Keys to change; null removes a key.")


@operation("users", Right.WRITE, idempotent=True, example={"user_id": "ana", "profile": {"language": "pt"}})
def update_user(caller: Caller, request: UpdateUser) -> UserKept:
    """Change a user's profile; an unknown user is created."""
    users, user_id, by = caller.store.users, caller.required_user(request.user_id), caller.by()
    user = users.ensure(user_id, by)
    if request.profile is not None:
        user = users.merge_profile(user_id, request.profile, by)
    if request.preferences is not None:
        user = users.merge_preferences(user_id, request.preferences, by)
    plain = {name: value for name in ("email", "display_name") if (value := getattr(request, name)) is not None}
    return UserKept(user=users.update(user_id, by, **plain) if plain else user)


# ---------------------------------------------------------------------- deletion


class Deletion(Input):
    confirm: Name | None = Field(
        None, description="The token of an earlier call without it; without a token nothing is deleted, only counted."
    )
    export_to: Annotated[str, StringConstraints(min_length=1, max_length=500)] | None = Field(
        None, description="A folder on this machine that receives an export first."
    )


class DeleteUser(Deletion):
    user_id: Name = Field(description="The user; with the user go their projects, sessions and memories.")


class DeleteProject(Deletion):
    project_id: Name = Field(description="The project; everything in it is deleted too, also of other users.")


class Deleted(Output):
    deleted: bool
    counts: Mapping[str, int] = Field(description="The number of records of each kind.")
    projects: Sequence[str] = Field(description="The projects that are deleted as well.")
    of_others: int = Field(description="How many of the records belong to other users.")
    confirm: str | None = Field(None, description="The token that confirms the deletion of exactly these records.")
    exported: Sequence[str] = ()


@operation("users", Right.ADMIN, destructive=True, takes_long=True, idempotent=True, example={"user_id": "ana"})
def delete_user(caller: Caller, request: DeleteUser) -> Deleted:
    """Delete a user with all their records; without a token this only counts.

    Records of every kind, their versions, vectors and archived copies are deleted, and audit events lose their details.
    Pass `confirm` with the returned token to delete.
    """
    if caller.grant.project_id is not None or caller.grant.agent is not None:
        caller.require_unlimited("a user")
    return _deleted(caller, "user", caller.required_user(request.user_id), request)


@operation("projects", Right.ADMIN, destructive=True, takes_long=True, idempotent=True, example={"project_id": "shop"})
def delete_project(caller: Caller, request: DeleteProject) -> Deleted:
    """Delete a project with everything in it; without a token this only counts.

    Records of every kind, their versions, vectors and archived copies are deleted, and audit events lose their details.
    Pass `confirm` with the returned token to delete.
    """
    if caller.grant.user_id is not None or caller.grant.agent is not None:
        caller.require_unlimited("a project")
    return _deleted(caller, "project", caller.project(request.project_id), request)


def _deleted(caller: Caller, subject: Subject, subject_id: str, request: Deletion) -> Deleted:
    if request.export_to is not None and not caller.is_local:
        raise PermissionDeniedError("an export can only be written on the machine of the store: leave export_to out")
    deletions = caller.store.deletions
    plan = deletions.plan(subject, subject_id)
    files = [] if request.export_to is None else deletions.export(plan, request.export_to)
    if request.confirm is not None:
        plan = deletions.delete(subject, subject_id, request.confirm, caller.by())
    return Deleted(
        deleted=request.confirm is not None,
        counts=plan.counts,
        projects=plan.projects,
        of_others=plan.of_others,
        confirm=None if request.confirm is not None else plan.token,
        exported=list(map(str, files)),
    )


# ---------------------------------------------------------------------- settings


class SettingShown(Output):
    key: str
    value: bool | int | float | str
    default: bool | int | float | str
    source: str = Field(description="Where the value comes from: default, model (the embedding model), global or user.")
    description: str
    is_user_configurable: bool


class SettingList(Output):
    settings: Sequence[SettingShown]


def _shown(setting: Any) -> SettingShown:
    names = ("key", "value", "default", "description", "is_user_configurable")
    return SettingShown(source=str(setting.source), **{name: getattr(setting, name) for name in names})


@operation("settings", Right.READ, example={})
def list_settings(caller: Caller, request: UserId) -> SettingList:
    """List the effective settings, for all users or for one."""
    found = caller.store.settings.list_all(caller.user(request.user_id))
    return SettingList(settings=[_shown(setting) for setting in found])


class SetSetting(UserId):
    key: Name
    value: bool | int | float | Prose = Field(description="The new value, of the setting's type.")


@operation("settings", Right.WRITE, idempotent=True, example={"key": "max_memories_per_session", "value": 500})
def set_setting(caller: Caller, request: SetSetting) -> SettingShown:
    """Change a setting, for all users or for one."""
    user = caller.user(request.user_id)
    if user is None:
        caller.require(Right.ADMIN)
        caller.require_unlimited("a setting for all")
    return _shown(caller.store.settings.set(request.key, request.value, user, caller.by()))


# ---------------------------------------------------------------------- work


class CreateWorkItem(InProject):
    title: Text
    description: Prose = ""
    item_type: Name = "task"
    priority: int = Field(50, ge=0, le=100)
    agent: Name | None = None
    parent_id: Name | None = None
    blocked_by: Ids = ()
    acceptance_criteria: Annotated[Sequence[Prose], Field(max_length=100)] = ()
    estimate_minutes: int | None = Field(None, ge=0, le=10**7)


class WorkItemKept(Output):
    item: WorkItem | None = None


def _tracker(caller: Caller, project_id: str | None) -> ProgressTracker:
    memory = caller.memory(project_id)
    return ProgressTracker(memory.project_id, memory.storage, memory.screen)


def _reachable(caller: Caller, tracker: ProgressTracker, ids: Sequence[str]) -> None:
    """Raise NotFoundError for items outside of a key that is limited to an agent."""
    for item_id in ids if caller.grant.agent else ():
        if tracker.require_item(item_id).agent != caller.grant.agent:
            raise NotFoundError("work_item", item_id)


@operation("work", Right.WRITE, example={"title": "Write the export test", "priority": 80, "agent": "helena"})
def create_work_item(caller: Caller, request: CreateWorkItem) -> WorkItemKept:
    """Create a work item."""
    tracker = _tracker(caller, request.project_id)
    _reachable(caller, tracker, [*request.blocked_by, *([request.parent_id] if request.parent_id else [])])
    given = request.model_dump(exclude={"project_id", "agent"})
    return WorkItemKept(
        item=tracker.create_work_item(agent=caller.any_agent(request.agent), by=caller.by(agent=request.agent), **given)
    )


class WorkItems(InProject):
    status: WorkItemStatus | None = None
    agent: Name | None = None
    limit: Limit = 50


class WorkItemList(Output):
    items: Sequence[WorkItem]


@operation("work", Right.READ, example={"status": "pending"})
def list_work_items(caller: Caller, request: WorkItems) -> WorkItemList:
    """List work items."""
    found = _tracker(caller, request.project_id).get_items(request.status, caller.any_agent(request.agent))
    return WorkItemList(items=found[: request.limit])


class UpdateWorkItem(InProject):
    item_id: Name
    status: WorkItemStatus = Field(description="pending, in_progress, blocked, review, done or failed")
    note: Prose | None = None


@operation("work", Right.WRITE, idempotent=True, example={"item_id": _ID, "status": "done"})
def update_work_item(caller: Caller, request: UpdateWorkItem) -> WorkItemKept:
    """Set the status of a work item; completing it unblocks the items that wait for it."""
    tracker = _tracker(caller, request.project_id)
    _reachable(caller, tracker, [request.item_id])
    return WorkItemKept(item=tracker.update_status(request.item_id, request.status, request.note, caller.by()))


class NextWorkItem(InProject):
    agent: Name | None = None
    strategy: Strategy = Field(Strategy.PRIORITY, description="priority, blocked_unblock, quick_win or fifo")


@operation("work", Right.READ, example={"strategy": "quick_win"})
def next_work_item(caller: Caller, request: NextWorkItem) -> WorkItemKept:
    """Recommend the next work item."""
    tracker = _tracker(caller, request.project_id)
    return WorkItemKept(item=tracker.get_next_item(caller.any_agent(request.agent), request.strategy))


class ProgressOf(InProject):
    agent: Name | None = None


class ProgressMade(Output):
    summary: str
    total: int
    done: int
    in_progress: int
    blocked: int
    failed: int
    completion: float


@operation("work", Right.READ, example={})
def progress_summary(caller: Caller, request: ProgressOf) -> ProgressMade:
    """Summarize the progress of the work items."""
    made = _summary(caller, _tracker(caller, request.project_id), caller.any_agent(request.agent))
    names = ("total", "done", "in_progress", "blocked", "failed", "completion")
    return ProgressMade(summary=made.to_prompt(), **{name: getattr(made, name) for name in names})


def _summary(caller: Caller, tracker: ProgressTracker, agent: str | None) -> ProgressSummary:
    if caller.grant.agent is None:
        return tracker.get_progress_summary(agent)
    # A summary names the items that an item waits for, and a limited key may only see its own agent's items.
    reachable = [item for item in tracker.get_items() if is_for(item, caller.grant.agent)]
    return ProgressSummary.of(tracker.project_id, agent, reachable)


def _plain(request: Input) -> dict[str, Any]:
    return {name: value for name, value in request.model_dump().items() if value is not None}


WORKSPACE: tuple[Operation[Any, Any], ...] = (
    initialize_project,
    list_projects,
    get_project_stats,
    create_user,
    get_user,
    update_user,
    delete_user,
    delete_project,
    list_settings,
    set_setting,
    create_work_item,
    list_work_items,
    update_work_item,
    next_work_item,
    progress_summary,
)
