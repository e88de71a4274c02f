"""Operations that tend general memories: how far they are seen, how they are used, what decayed, their vectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import AwareDatetime, Field

from alma import __version__
from alma.clock import now
from alma.learning.forgetting import Pruned
from alma.learning.health import MemoryHealthMonitor
from alma.learning.policy import PrunePolicy
from alma.memory.filters import MemoryFilter
from alma.model.learning import Heuristic, UserPreference
from alma.model.memory import Layer, Memory
from alma.model.query import And, Compare
from alma.model.scope import Scope
from alma.operations.access import Caller, Right
from alma.operations.base import InProject, Input, Name, Operation, Output, Share, operation
from alma.operations.memories import MemoryId, MemoryKept, RestoreMemory
from alma.sync.reembed import reembed


class StatsOf(InProject):
    agent: Name | None = None


class Stats(Output):
    project_id: str
    agent: str | None = None
    counts: Mapping[str, Any]


@operation("learning", Right.READ, example={"agent": "helena"})
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


@operation("learning", Right.READ, takes_long=True, example={})
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


STATUS: tuple[Operation[Any, Any], ...] = (stats, memory_health, health)


_LAYER_FLAGS = tuple(f"layer_{layer}" for layer in Layer)


class Promote(InProject):
    memory_ids: Sequence[Name] | None = Field(None, max_length=1_000, description="Only these; all proposed otherwise.")
    dry_run: bool = Field(True, description="Only say what the rules propose.")


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
def promote_memories(caller: Caller, asked: Promote) -> PromotionsMade:
    """Raise what proved useful from a session to the project, or from the project to everywhere."""
    made = caller.store.journal.promote(
        caller.scope(asked.project_id), by=caller.by(), memory_ids=asked.memory_ids, dry_run=asked.dry_run
    )
    return PromotionsMade(
        promotions=[
            PromotionMade(
                memory_id=each.memory_id,
                before=[str(layer) for layer in each.before],
                to=str(each.to),
                rule=each.rule,
                reason=each.reason,
            )
            for each in made
        ],
        dry_run=asked.dry_run,
    )


@operation("memories", Right.WRITE, example={"memory_id": "01a1e0a2b81e7fc49d0ec9b96de703e8"})
def demote_memory(caller: Caller, asked: RestoreMemory) -> MemoryKept:
    """Take a memory's last promotion back."""
    scope, by = caller.scope(asked.project_id), caller.by(user_id=asked.user_id)
    return MemoryKept(memory=caller.store.journal.demote(asked.memory_id, scope, by=by, reason=asked.reason or None))


class Judge(MemoryId):
    helpful: bool = True
    session_id: Name | None = None


class Judged(Output):
    memory_id: str
    helpful: bool


@operation("memories", Right.WRITE, example={"memory_id": "01a1e0a2b81e7fc49d0ec9b96de703e8", "helpful": True})
def mark_helpful(caller: Caller, asked: Judge) -> Judged:
    """Say that a memory helped, or did not; it counts towards its promotion."""
    by = caller.by(user_id=asked.user_id, session_id=caller.session(asked.session_id, asked.project_id))
    caller.store.journal.mark_helpful(asked.memory_id, caller.scope(asked.project_id), by=by, helpful=asked.helpful)
    return Judged(memory_id=asked.memory_id, helpful=asked.helpful)


class Analyse(InProject):
    since: AwareDatetime | None = Field(None, description="Only memories made since then.")


class Analytics(Output):
    total: int
    by_type: Mapping[str, int]
    by_category: Mapping[str, int]
    by_layer: Mapping[str, int]
    average_importance: float | None = None
    accesses: int
    never_read: int
    most_read: Sequence[str] = Field(description="Ids, most read first.")
    first_created: datetime | None = None
    last_created: datetime | None = None


@operation("memories", Right.READ, takes_long=True, example={})
def get_memory_analytics(caller: Caller, asked: Analyse) -> Analytics:
    """Say what a project's memories are like and how they are used."""
    caller.store.journal.flush()
    columns = ("id", "memory_type", "category", "importance_score", "access_count", "created_at", *_LAYER_FLAGS)
    alive = MemoryFilter(created_since=asked.since).predicate(now())
    rows = caller.store.storage.values(Memory, columns, caller.scope(asked.project_id), alive)
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
    dry_run: bool = Field(True, description="Only say what would be archived, and why.")
    min_strength: Share = Field(0.1, description="What decays below this is archived.")


class Decayed(Output):
    archived: int
    dry_run: bool
    items: Sequence[Pruned]


@operation("memories", Right.DELETE, destructive=True, takes_long=True, example={"dry_run": True})
def process_memory_decay(caller: Caller, asked: Decay) -> Decayed:
    """Archive the memories that decayed too far or expired; they can be restored."""
    policy = PrunePolicy(min_strength=asked.min_strength)
    summary = caller.store.forgetting.prune(
        caller.scope(asked.project_id), policy, asked.dry_run, caller.by(), [Memory], caller.progress
    )
    return Decayed(archived=summary.total, dry_run=asked.dry_run, items=summary.items)


class Reindex(InProject):
    pass


class Reindexed(Output):
    model: str
    embedded: int = Field(description="How many vectors were made.")


@operation("memories", Right.ADMIN, takes_long=True, idempotent=True, example={})
def reindex_memories(caller: Caller, asked: Reindex) -> Reindexed:
    """Make the vectors that are missing, for the whole store."""
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
