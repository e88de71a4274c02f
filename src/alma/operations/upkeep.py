"""Operations that look at a memory as a whole: what it holds, how it is, whether it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from alma import __version__
from alma.learning.health import MemoryHealthMonitor
from alma.model.learning import Heuristic, UserPreference
from alma.model.memory import Memory
from alma.model.query import And, Compare
from alma.model.scope import Scope
from alma.operations.access import Caller, Right
from alma.operations.base import InProject, Input, Name, Operation, Output, operation
from alma.operations.learning import GROUP


class StatsOf(InProject):
    agent: Name | None = None


class Stats(Output):
    project_id: str
    agent: str | None = None
    counts: Mapping[str, Any]


@operation(GROUP, Right.READ, example={"agent": "helena"})
def stats(caller: Caller, asked: StatsOf) -> Stats:
    """Count the memories of each kind, of one agent or of all."""
    memory, agent = caller.memory(asked.project_id), caller.any_agent(asked.agent)
    alive = And(Compare("is_active", "eq", True), Compare("is_archived", "eq", False))
    general = memory.storage.count(Memory, caller.scope(asked.project_id, agent=asked.agent), alive)
    counts = {**memory.get_stats(agent), "memories_count": general}
    if caller.grant.is_limited:
        # Preferences are all users', and how many others have is nothing a limited key is told.
        user = caller.user()
        own = 0 if user is None else memory.storage.count(UserPreference, Scope(user_id=user))
        counts["total_count"] += own - counts["preferences_count"]
        counts["preferences_count"] = own
    return Stats(project_id=memory.project_id, agent=agent, counts=counts)


class HealthOf(InProject):
    pass


class Health(Output):
    healthy: bool
    total: int
    archived: int
    quarantined: int
    stale_share: float
    duplicates_share: float
    recommendations: Sequence[str]


@operation(GROUP, Right.READ, takes_long=True, example={})
def memory_health(caller: Caller, asked: HealthOf) -> Health:
    """Say how fresh, trusted and distinct the memories of a project are, and what to do about it."""
    report = MemoryHealthMonitor(caller.store.storage).report(caller.project_scope(asked.project_id))
    return Health(
        healthy=report.is_healthy,
        total=report.total,
        archived=report.archived,
        quarantined=report.quarantined,
        stale_share=report.stale_share,
        duplicates_share=report.duplicates_share,
        recommendations=report.recommendations,
    )


class Nothing(Input):
    pass


class Alive(Output):
    status: str
    version: str
    storage: str
    embedding_model: str


@operation("service", Right.READ, example={})
def health(caller: Caller, asked: Nothing) -> Alive:
    """Say whether the memory answers, and what it runs on."""
    storage = caller.store.storage
    storage.require_in_place()
    storage.count(Heuristic, Scope(project_id=caller.store.project_id), Compare("id", "eq", "-"))
    return Alive(
        status="ok", version=__version__, storage=type(storage).__name__, embedding_model=caller.store.embedder.model
    )


UPKEEP: tuple[Operation[Any, Any], ...] = (stats, memory_health, health)
