"""Operations on the state of a memory: statistics, health, promotion, decay and reindexing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import AwareDatetime, Field

from alma import __version__
from alma.clock import now
from alma.learning.health import MemoryHealthMonitor
from alma.learning.policy import PrunePolicy
from alma.learning.pruning import Pruned
from alma.memory.filters import MemoryFilter
from alma.model.learning import Heuristic, UserPreference
from alma.model.memory import Layer, Memory
from alma.model.query import And, Compare
from alma.model.scope import Scope
from alma.operations.access import Caller, Right
from alma.operations.base import Hinted, InProject, Input, Name, Operation, Output, Share, operation
from alma.operations.engines import UNWELL, EngineState, states_of
from alma.operations.memories import MemoryId, MemoryKept, RestoreMemory
from alma.sync.reembed import reembed


class StatsOf(InProject):
    agent: Name | None = None


class Stats(Hinted):
    project_id: str
    agent: str | None = None
    counts: Mapping[str, Any]


@operation("learning", Right.READ, example={"agent": "helena"})
def stats(caller: Caller, request: StatsOf) -> Stats:
    """Count the memories of each kind, for one agent or all."""
    memory, agent = caller.memory(request.project_id), caller.any_agent(request.agent)
    alive = And(Compare("is_active", "eq", True), Compare("is_archived", "eq", False))
    general = memory.storage.count(Memory, caller.scope(request.project_id, agent=request.agent), alive)
    counts = {**memory.get_stats(agent), "memories_count": general}
    if caller.grant.is_limited:
        # Preferences belong to all users; a limited key is not told how many others have.
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


@operation("learning", Right.READ, takes_long=True, example={})
def memory_health(caller: Caller, request: HealthOf) -> Health:
    """Report how current, trusted and distinct the memories of a project are, with recommendations."""
    report = MemoryHealthMonitor(caller.store.storage).report(caller.project_scope(request.project_id))
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
    status: str = Field(
        description="ok, or degraded if an engine beside the store does not answer or has parked records."
    )
    version: str
    storage: str
    embedding_model: str
    engines: Sequence[EngineState] | None = Field(
        None, description="The engines beside the store; only for callers without limits."
    )


@operation("service", Right.READ, example={})
def health(caller: Caller, request: Nothing) -> Alive:
    """Check that the store is available, and show the store, the embedding model and the engines in use.

    Engines that are down or behind make nothing wrong: the store answers without them.
    """
    storage = caller.store.storage
    storage.require_in_place()
    storage.count(Heuristic, Scope(project_id=caller.store.project_id), Compare("id", "eq", "-"))
    engines = None if caller.grant.is_limited else states_of(caller.store.sync.status())
    return Alive(
        status="degraded" if any(each.state in UNWELL for each in engines or ()) else "ok",
        version=__version__,
        storage=type(storage).__name__,
        embedding_model=caller.store.embedder.model,
        engines=engines,
    )


STATUS: tuple[Operation[Any, Any], ...] = (stats, memory_health, health)


_LAYER_FLAGS = tuple(f"layer_{layer}" for layer in Layer)


class Promote(InProject):
    memory_ids: Sequence[Name] | None = Field(None, max_length=1_000, description="Only these; default: all.")
    dry_run: bool = Field(True, description="Show what the rules propose without changing anything.")


class PromotionMade(Output):
    memory_id: str
    before: Sequence[str]
    to: str
    rule: str
    reason: str


class PromotionsMade(Output):
    promotions: Sequence[PromotionMade]
    dry_run: bool


@operation("memories", Right.WRITE, idempotent=True, example={"dry_run": True})
def promote_memories(caller: Caller, request: Promote) -> PromotionsMade:
    """Promote useful memories from a session to the project, or from a project to all projects."""
    made = caller.store.journal.promote(
        caller.scope(request.project_id), by=caller.by(), memory_ids=request.memory_ids, dry_run=request.dry_run
    )
    return PromotionsMade(promotions=list(map(PromotionMade.from_result, made)), dry_run=request.dry_run)


@operation("memories", Right.WRITE, example={"memory_id": "01a1e0a2b81e7fc49d0ec9b96de703e8"})
def demote_memory(caller: Caller, request: RestoreMemory) -> MemoryKept:
    """Undo the last promotion of a memory."""
    scope, by = caller.scope(request.project_id), caller.by(user_id=request.user_id)
    return MemoryKept(
        memory=caller.store.journal.demote(request.memory_id, scope, by=by, reason=request.reason or None)
    )


class Judge(MemoryId):
    helpful: bool = True
    session_id: Name | None = None


class Judged(Output):
    memory_id: str
    helpful: bool


@operation("memories", Right.WRITE, example={"memory_id": "01a1e0a2b81e7fc49d0ec9b96de703e8", "helpful": True})
def mark_helpful(caller: Caller, request: Judge) -> Judged:
    """Report whether a memory was helpful; this counts towards its promotion."""
    by = caller.by(user_id=request.user_id, session_id=caller.session(request.session_id, request.project_id))
    caller.store.journal.mark_helpful(
        request.memory_id, caller.scope(request.project_id), by=by, helpful=request.helpful
    )
    return Judged(memory_id=request.memory_id, helpful=request.helpful)


class Analyse(InProject):
    since: AwareDatetime | None = Field(None, description="Only memories created since this time.")


class Analytics(Output):
    total: int
    by_type: Mapping[str, int]
    by_category: Mapping[str, int]
    by_layer: Mapping[str, int]
    average_importance: float | None = None
    accesses: int
    never_read: int
    most_read: Sequence[str] = Field(description="Memory ids, most read first.")
    first_created: datetime | None = None
    last_created: datetime | None = None


@operation("memories", Right.READ, takes_long=True, example={})
def get_memory_analytics(caller: Caller, request: Analyse) -> Analytics:
    """Count a project's memories by type, category and layer, and how often they are read."""
    caller.store.journal.flush()
    columns = ("id", "memory_type", "category", "importance_score", "access_count", "created_at", *_LAYER_FLAGS)
    alive = MemoryFilter(created_since=request.since).predicate(now())
    rows = caller.store.storage.values(Memory, columns, caller.scope(request.project_id), alive)
    read = sorted(rows, key=lambda row: -row[4])
    return Analytics(
        total=len(rows),
        by_type=Counter(row[1] for row in rows),
        by_category=Counter(row[2] or "none" for row in rows),
        by_layer={layer: sum(bool(row[6 + place]) for row in rows) for place, layer in enumerate(Layer)},
        average_importance=sum(row[3] for row in rows) / len(rows) if rows else None,
        accesses=sum(row[4] for row in rows),
        never_read=sum(row[4] == 0 for row in rows),
        most_read=[row[0] for row in read[:10] if row[4]],
        first_created=min((row[5] for row in rows), default=None),
        last_created=max((row[5] for row in rows), default=None),
    )


class Decay(InProject):
    dry_run: bool = Field(True, description="Show what would be archived, and why, without changing anything.")
    min_strength: Share = Field(0.1, description="Archive memories whose strength decayed below this.")


class Decayed(Output):
    archived: int
    dry_run: bool
    items: Sequence[Pruned]


@operation("memories", Right.DELETE, destructive=True, takes_long=True, example={"dry_run": True})
def process_memory_decay(caller: Caller, request: Decay) -> Decayed:
    """Archive memories that have expired or whose strength has decayed; they can be restored."""
    policy = PrunePolicy(min_strength=request.min_strength)
    summary = caller.store.forgetting.prune(
        caller.scope(request.project_id), policy, request.dry_run, caller.by(), [Memory], caller.progress
    )
    return Decayed(archived=summary.total, dry_run=request.dry_run, items=summary.items)


class Reindex(InProject):
    pass


class Reindexed(Output):
    model: str
    embedded: int = Field(description="The number of vectors created.")


@operation("memories", Right.ADMIN, takes_long=True, idempotent=True, example={})
def reindex_memories(caller: Caller, request: Reindex) -> Reindexed:
    """Create missing vectors for all memories of the store."""
    caller.require_unlimited("reindexing")
    embedder = caller.store.embedder
    progress = caller.progress
    made = reembed(caller.store.storage, embedder, lambda step: progress(step.done, step.total) if progress else None)
    return Reindexed(model=embedder.model, embedded=made)


MAINTENANCE: tuple[Operation[Any, Any], ...] = (
    promote_memories,
    demote_memory,
    mark_helpful,
    get_memory_analytics,
    process_memory_decay,
    reindex_memories,
)
