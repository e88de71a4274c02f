"""Operations on general memories: the Orchestrator's entries and the Layered server's memories, which are one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field, StringConstraints

from alma.memory.filters import MemoryFilter
from alma.model.memory import Layer, Memory
from alma.model.scope import Scope
from alma.model.slice import Dropped
from alma.operations.access import Caller, Right
from alma.operations.base import InProject, Limit, Name, Operation, Output, Prose, Share, Text, operation

Tag = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Tags = Annotated[Sequence[Tag], Field(max_length=1_000)]
Json = Mapping[str, Any]
Source = Annotated[
    Name | None,
    Field(
        description="Where the text comes from; what is not from user, agent or system, as web or email, is "
        "quarantined where it gives orders."
    ),
]


class Described(InProject):
    """What a caller may say of a memory."""

    title: Prose | None = None
    summary: Prose | None = None
    memory_type: Name | None = Field(
        None, description="decision, task, progress, insight, pattern, error, solution, note, conversation … "
    )
    category: Annotated[str, StringConstraints(max_length=200)] | None = Field(
        None, description="Assigned by rules when not given."
    )
    tags: Tags | None = None
    importance_score: Share | None = Field(None, description="From 0 to 1; assigned by rules when not given.")
    priority: int | None = Field(None, ge=1, le=10, description="The same on a scale from 1 to 10; give one of both.")
    layers: Sequence[Layer] | None = Field(
        None, max_length=4, description="session, project, global, temporal; chosen by rules when not given."
    )
    ttl_seconds: float | None = Field(None, gt=0, le=10**10, description="How long it lives.")
    expires_at: AwareDatetime | None = Field(None, description="When it ends; give this or ttl_seconds.")
    event_time: AwareDatetime | None = Field(None, description="When what it tells happened.")
    context_json: Json | None = Field(None, description="Where it comes from: files, line, command …")
    source_tool: Annotated[str, StringConstraints(max_length=200)] | None = None
    external_id: Annotated[str, StringConstraints(max_length=200)] | None = None
    is_private: bool | None = Field(None, description="Seen by its user alone.")

    def said(self) -> dict[str, Any]:
        """What was given, without whose it is."""
        return {
            name: getattr(self, name)
            for name in self.model_fields_set & Described.model_fields.keys() - {"project_id"}
            if getattr(self, name) is not None
        }


class CreateMemory(Described):
    content: Text | Json = Field(description="What is remembered: text, or JSON with a text.")
    user_id: Name | None = None
    session_id: Name | None = None
    agent: Name | None = Field(None, description="The agent that remembers it.")
    source: Source = None


class MemoryKept(Output):
    memory: Memory
    version: int | None = Field(default=None, description="Counts its changes; an update can insist on it.")


@operation(
    "memories",
    Right.WRITE,
    example={"content": "We chose PostgreSQL for its row locks.", "memory_type": "decision", "tags": ["database"]},
)
def create_memory(caller: Caller, asked: CreateMemory) -> MemoryKept:
    """Remember something: a note, a decision, a solution, a piece of a conversation.

    Category, importance and layers are assigned by rules when they are not given, with their reasons in the memory.
    """
    session = caller.session(asked.session_id, asked.project_id)
    by = caller.by(user_id=asked.user_id, agent=asked.agent, session_id=session)
    journal, project = caller.store.journal, caller.project(asked.project_id)
    memory = journal.create(asked.content, by=by, project_id=project, source=asked.source, **asked.said())
    # Not the first where it says what was remembered before.
    return MemoryKept(memory=memory, version=journal.version(memory.id, Scope(project_id=project), by=by))


class MemoryId(InProject):
    memory_id: Name
    user_id: Name | None = Field(None, description="Who asks; private memories are seen by their user alone.")


@operation("memories", Right.READ, example={"memory_id": "01a1e0a2b81e7fc49d0ec9b96de703e8"})
def get_memory(caller: Caller, asked: MemoryId) -> MemoryKept:
    """Read a memory by its id."""
    scope, by, journal = caller.scope(asked.project_id), caller.by(user_id=asked.user_id), caller.store.journal
    # The version first: a change in between makes an update fail that insists on it, never succeed by mistake.
    version = journal.version(asked.memory_id, scope, by=by)
    return MemoryKept(memory=journal.require(asked.memory_id, scope, by=by), version=version)


class UpdateMemory(Described):
    memory_id: Name
    content: Text | Json | None = None
    is_archived: bool | None = Field(None, description="Put it aside, or back.")
    user_id: Name | None = Field(None, description="Who changes it.")
    reason: Prose | None = Field(None, description="Why; kept in its history.")
    expected_version: int | None = Field(default=None, ge=1, description="Refuse if it was changed since this version.")
    source: Source = None


@operation(
    "memories",
    Right.WRITE,
    idempotent=True,
    example={"memory_id": "01a1e0a2b81e7fc49d0ec9b96de703e8", "title": "Row locks", "reason": "clearer"},
)
def update_memory(caller: Caller, asked: UpdateMemory) -> MemoryKept:
    """Change a memory; what it was before stays in its history."""
    changes = asked.said()
    for name in ("content", "is_archived"):
        if getattr(asked, name) is not None:
            changes[name] = getattr(asked, name)
    scope, by, journal = caller.scope(asked.project_id), caller.by(user_id=asked.user_id), caller.store.journal
    memory = journal.update(
        asked.memory_id,
        changes,
        scope,
        by=by,
        reason=asked.reason or None,
        expected_version=asked.expected_version,
        source=asked.source,
    )
    return MemoryKept(memory=memory, version=journal.version(asked.memory_id, scope, by=by))


class DeleteMemory(MemoryId):
    hard: bool = Field(False, description="Delete it for good; by default it can be restored.")
    reason: Prose | None = None
    expected_version: int | None = Field(default=None, ge=1, description="Refuse if it was changed since this version.")


class Deleted(Output):
    deleted: bool


@operation(
    "memories",
    Right.DELETE,
    idempotent=True,
    destructive=True,
    example={"memory_id": "01a1e0a2b81e7fc49d0ec9b96de703e8"},
)
def delete_memory(caller: Caller, asked: DeleteMemory) -> Deleted:
    """Delete a memory; softly unless it is to be for good."""
    scope, by = caller.scope(asked.project_id), caller.by(user_id=asked.user_id)
    if asked.hard:
        caller.require(Right.ADMIN)
    deleted = caller.store.journal.delete(
        asked.memory_id,
        scope,
        by=by,
        hard=asked.hard,
        reason=asked.reason or None,
        expected_version=asked.expected_version,
    )
    return Deleted(deleted=deleted)


class RestoreMemory(MemoryId):
    reason: Prose | None = None


@operation("memories", Right.WRITE, idempotent=True, example={"memory_id": "01a1e0a2b81e7fc49d0ec9b96de703e8"})
def restore_memory(caller: Caller, asked: RestoreMemory) -> MemoryKept:
    """Bring a softly deleted memory back."""
    scope, by = caller.scope(asked.project_id), caller.by(user_id=asked.user_id)
    memory = caller.store.journal.undelete(asked.memory_id, scope, by=by, reason=asked.reason or None)
    return MemoryKept(memory=memory)


class ListMemories(InProject):
    ids: Sequence[Name] | None = Field(None, max_length=1_000, description="Exactly these, in this order.")
    where: MemoryFilter | None = Field(None, description="What they must be like.")
    sort: Sequence[Name] = Field(("-created_at",), max_length=5, description="Fields; a minus sign for falling order.")
    limit: int = Field(50, ge=1, le=1_000)
    offset: int = Field(0, ge=0, le=10**9)
    cursor: Annotated[str, StringConstraints(max_length=4_000)] | None = None
    user_id: Name | None = None
    session_id: Name | None = None


class MemoryPage(Output):
    memories: Sequence[Memory]
    next_cursor: str | None = Field(None, description="Give it as cursor for the next page; missing at the end.")


@operation("memories", Right.READ, example={"where": {"types": ["decision"], "tags": ["database"]}, "limit": 20})
def list_memories(caller: Caller, asked: ListMemories) -> MemoryPage:
    """Read many memories: these ids, or all that a filter lets through, sorted and page by page."""
    page = caller.store.journal.batch_read(
        caller.scope(asked.project_id),
        by=caller.by(user_id=asked.user_id, session_id=caller.session(asked.session_id, asked.project_id)),
        ids=asked.ids,
        where=asked.where,
        sort=asked.sort,
        limit=asked.limit,
        offset=asked.offset,
        cursor=asked.cursor,
    )
    return MemoryPage(memories=page.memories, next_cursor=page.next_cursor)


class SearchMemories(InProject):
    query: Text
    mode: Literal["hybrid", "semantic", "keyword"] = "hybrid"
    where: MemoryFilter | None = None
    min_similarity: Annotated[float, Field(ge=-1, le=1)] | None = None
    limit: Limit = 10
    user_id: Name | None = None
    session_id: Name | None = None
    route_layers: bool = Field(False, description="Let the question's words choose the layers.")
    why_not: Name | None = Field(None, description="The id of a memory: say why it was not found.")


class Hit(Output):
    memory: Memory
    score: float
    similarity: float | None = None
    relevance: float | None = Field(None, description="The probability that it has to do with the query.")
    why: str = Field(description="What its score is made of.")
    notes: Sequence[str] = Field((), description="That it was superseded or contradicted, when and by what.")


class Hits(Output):
    hits: Sequence[Hit]
    mode: str
    degraded: str = ""
    why_not: Dropped | None = None


@operation("memories", Right.READ, example={"query": "Why did we choose PostgreSQL?", "limit": 5})
def search_memories(caller: Caller, asked: SearchMemories) -> Hits:
    """Find the memories that answer a question, each with the reasons for its score."""
    found = caller.store.journal.search(
        asked.query,
        caller.scope(asked.project_id),
        by=caller.by(user_id=asked.user_id, session_id=caller.session(asked.session_id, asked.project_id)),
        mode=asked.mode,
        where=asked.where,
        min_similarity=asked.min_similarity,
        limit=asked.limit,
        routed=asked.route_layers,
    )
    hits = [
        Hit(
            memory=hit.memory,
            score=hit.score,
            similarity=hit.similarity,
            relevance=hit.relevance,
            why=hit.explain(),
            notes=hit.explanation.notes,
        )
        for hit in found
    ]
    why_not = found.why_not(asked.why_not) if asked.why_not else None
    return Hits(hits=hits, mode=found.mode, degraded=found.degraded, why_not=why_not)


class BulkDelete(InProject):
    where: MemoryFilter | None = None
    older_than_days: Annotated[float, Field(ge=0, le=365_000)] | None = None
    hard: bool = False
    dry_run: bool = Field(False, description="Say which they would be, and delete nothing.")
    reason: Prose | None = None
    user_id: Name | None = None


class BulkDeleted(Output):
    count: int
    ids: Sequence[str]
    dry_run: bool


@operation(
    "memories",
    Right.DELETE,
    destructive=True,
    takes_long=True,
    example={"where": {"types": ["conversation"]}, "older_than_days": 30, "dry_run": True},
)
def bulk_delete(caller: Caller, asked: BulkDelete) -> BulkDeleted:
    """Delete all memories that a filter lets through or that are older than this."""
    if asked.hard:
        caller.require(Right.ADMIN)
    deleted = caller.store.journal.bulk_delete(
        caller.scope(asked.project_id),
        where=asked.where,
        older_than=None if asked.older_than_days is None else timedelta(days=asked.older_than_days),
        by=caller.by(user_id=asked.user_id),
        hard=asked.hard,
        dry_run=asked.dry_run,
        reason=asked.reason or None,
    )
    return BulkDeleted(count=deleted.count, ids=deleted.ids, dry_run=deleted.dry_run)


MEMORIES: tuple[Operation[Any, Any], ...] = (
    create_memory,
    get_memory,
    update_memory,
    delete_memory,
    restore_memory,
    list_memories,
    search_memories,
    bulk_delete,
)
