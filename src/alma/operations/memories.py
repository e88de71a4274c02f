"""Operations on general memories: create, read, update, delete, list, search, summarize and get context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field, StringConstraints

from alma.memory.filters import MemoryFilter
from alma.memory.summary import Sentence
from alma.model.memory import Layer, Memory
from alma.model.scope import Scope
from alma.model.slice import Dropped
from alma.operations.access import Caller, Right
from alma.operations.base import ASKING_USER, InProject, Limit, Name, Operation, Output, Prose, Share, Text, operation

Tag = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Tags = Annotated[Sequence[Tag], Field(max_length=1_000)]
Json = Mapping[str, Any]
Cosine = Annotated[float, Field(ge=-1, le=1)]
MIN_SIMILARITY = Field(
    None, description="The least cosine; default in semantic mode: the setting semantic_search_threshold."
)
Source = Annotated[
    Name | None,
    Field(
        description="The provenance of the text. Text that looks like a prompt injection is quarantined unless "
        "it comes from user, agent or system.",
    ),
]


class Described(InProject):
    """Fields of a memory that a caller can set."""

    title: Prose | None = None
    summary: Prose | None = None
    memory_type: Name | None = Field(
        None, description="decision, task, progress, insight, pattern, error, solution, note, conversation …"
    )
    category: Annotated[str, StringConstraints(max_length=200)] | None = Field(
        None, description="Chosen by rules if not given."
    )
    tags: Tags | None = None
    importance_score: Share | None = Field(None, description="From 0 to 1; chosen by rules if not given.")
    priority: int | None = Field(None, ge=1, le=10, description="Importance from 1 to 10; give one of the two.")
    layers: Sequence[Layer] | None = Field(
        None, max_length=4, description="session, project, global, temporal; chosen by rules if not given."
    )
    ttl_seconds: float | None = Field(None, gt=0, le=10**10, description="The lifetime in seconds.")
    expires_at: AwareDatetime | None = Field(None, description="When it expires; give this or ttl_seconds.")
    event_time: AwareDatetime | None = Field(None, description="When the event in the text happened.")
    context_json: Json | None = Field(None, description="Where the memory comes from: files, line, command …")
    source_tool: Annotated[str, StringConstraints(max_length=200)] | None = None
    external_id: Annotated[str, StringConstraints(max_length=200)] | None = None
    is_private: bool | None = Field(None, description="Visible to its user only.")

    def said(self) -> dict[str, Any]:
        """The fields that were given, without the owner."""
        return {
            name: getattr(self, name)
            for name in self.model_fields_set & Described.model_fields.keys() - {"project_id"}
            if getattr(self, name) is not None
        }


class CreateMemory(Described):
    content: Text | Json = Field(description="The content: text, or a JSON object with a text.")
    user_id: Name | None = None
    session_id: Name | None = None
    agent: Name | None = Field(None, description="The agent that creates the memory.")
    source: Source = None


class MemoryKept(Output):
    memory: Memory
    version: int | None = Field(default=None, description="Pass it as expected_version to update without conflicts.")


@operation(
    "memories",
    Right.WRITE,
    example={"content": "We chose PostgreSQL for its row locks.", "memory_type": "decision", "tags": ["database"]},
)
def create_memory(caller: Caller, request: CreateMemory) -> MemoryKept:
    """Create a memory: a note, a decision, a solution or a part of a conversation.

    Category, importance and layers are chosen by rules if they are not given; the memory records the reasons.
    """
    session = caller.session(request.session_id, request.project_id)
    by = caller.by(user_id=request.user_id, agent=request.agent, session_id=session)
    journal, project = caller.store.journal, caller.project(request.project_id)
    memory = journal.create(request.content, by=by, project_id=project, source=request.source, **request.said())
    # The version is not always 1: a duplicate updates the existing memory.
    return MemoryKept(memory=memory, version=journal.version(memory.id, Scope(project_id=project), by=by))


class MemoryId(InProject):
    memory_id: Name
    user_id: Name | None = ASKING_USER


@operation("memories", Right.READ, example={"memory_id": "01a1e0a2b81e7fc49d0ec9b96de703e8"})
def get_memory(caller: Caller, request: MemoryId) -> MemoryKept:
    """Read a memory by its id."""
    scope, by, journal = caller.scope(request.project_id), caller.by(user_id=request.user_id), caller.store.journal
    # Read the version first: a concurrent change then makes an update with expected_version fail.
    version = journal.version(request.memory_id, scope, by=by)
    return MemoryKept(memory=journal.require(request.memory_id, scope, by=by), version=version)


class UpdateMemory(Described):
    memory_id: Name
    content: Text | Json | None = None
    is_archived: bool | None = Field(None, description="Archive the memory, or restore it.")
    user_id: Name | None = Field(None, description="Who changes it.")
    reason: Prose | None = Field(None, description="Why; kept in the history.")
    expected_version: int | None = Field(default=None, ge=1, description="Fail if the memory has another version.")
    source: Source = None


@operation(
    "memories",
    Right.WRITE,
    idempotent=True,
    example={"memory_id": "01a1e0a2b81e7fc49d0ec9b96de703e8", "title": "Row locks", "reason": "clearer"},
)
def update_memory(caller: Caller, request: UpdateMemory) -> MemoryKept:
    """Change a memory; the previous version stays in the history."""
    changes = request.said()
    for name in ("content", "is_archived"):
        if getattr(request, name) is not None:
            changes[name] = getattr(request, name)
    scope, by, journal = caller.scope(request.project_id), caller.by(user_id=request.user_id), caller.store.journal
    memory = journal.update(
        request.memory_id,
        changes,
        scope,
        by=by,
        reason=request.reason or None,
        expected_version=request.expected_version,
        source=request.source,
    )
    return MemoryKept(memory=memory, version=journal.version(request.memory_id, scope, by=by))


class DeleteMemory(MemoryId):
    hard: bool = Field(False, description="Delete permanently; otherwise it can be restored.")
    reason: Prose | None = None
    expected_version: int | None = Field(default=None, ge=1, description="Fail if the memory has another version.")


class Deleted(Output):
    deleted: bool


@operation(
    "memories",
    Right.DELETE,
    idempotent=True,
    destructive=True,
    example={"memory_id": "01a1e0a2b81e7fc49d0ec9b96de703e8"},
)
def delete_memory(caller: Caller, request: DeleteMemory) -> Deleted:
    """Delete a memory, softly by default."""
    scope, by = caller.scope(request.project_id), caller.by(user_id=request.user_id)
    if request.hard:
        caller.require(Right.ADMIN)
    deleted = caller.store.journal.delete(
        request.memory_id,
        scope,
        by=by,
        hard=request.hard,
        reason=request.reason or None,
        expected_version=request.expected_version,
    )
    return Deleted(deleted=deleted)


class RestoreMemory(MemoryId):
    reason: Prose | None = None


@operation("memories", Right.WRITE, idempotent=True, example={"memory_id": "01a1e0a2b81e7fc49d0ec9b96de703e8"})
def restore_memory(caller: Caller, request: RestoreMemory) -> MemoryKept:
    """Restore a softly deleted memory."""
    scope, by = caller.scope(request.project_id), caller.by(user_id=request.user_id)
    memory = caller.store.journal.undelete(request.memory_id, scope, by=by, reason=request.reason or None)
    return MemoryKept(memory=memory)


class ListMemories(InProject):
    ids: Sequence[Name] | None = Field(None, max_length=1_000, description="Exactly these memories, in this order.")
    where: MemoryFilter | None = Field(None, description="A filter.")
    sort: Sequence[Name] = Field(("-created_at",), max_length=5, description="Sort fields; minus for descending.")
    limit: int = Field(50, ge=1, le=1_000)
    offset: int = Field(0, ge=0, le=10**9)
    cursor: Annotated[str, StringConstraints(max_length=4_000)] | None = None
    user_id: Name | None = None
    session_id: Name | None = None


class MemoryPage(Output):
    memories: Sequence[Memory]
    next_cursor: str | None = Field(None, description="Pass it as cursor for the next page; absent on the last page.")


@operation("memories", Right.READ, example={"where": {"types": ["decision"], "tags": ["database"]}, "limit": 20})
def list_memories(caller: Caller, request: ListMemories) -> MemoryPage:
    """List memories by id or by a filter, sorted and paginated."""
    page = caller.store.journal.batch_read(
        caller.scope(request.project_id),
        by=caller.by(user_id=request.user_id, session_id=caller.session(request.session_id, request.project_id)),
        ids=request.ids,
        where=request.where,
        sort=request.sort,
        limit=request.limit,
        offset=request.offset,
        cursor=request.cursor,
    )
    return MemoryPage.from_result(page)


class SearchMemories(InProject):
    query: Text
    mode: Literal["hybrid", "semantic", "keyword"] = "hybrid"
    where: MemoryFilter | None = None
    min_similarity: Cosine | None = MIN_SIMILARITY
    limit: Limit = 10
    user_id: Name | None = None
    session_id: Name | None = None
    route_layers: bool = Field(False, description="Choose the layers to search from the words of the query.")
    why_not: Name | None = Field(None, description="The id of a memory: explain why it was not found.")


class Hit(Output):
    memory: Memory
    score: float
    similarity: float | None = None
    relevance: float | None = Field(None, description="The calibrated probability that the memory is relevant.")
    why: str = Field(description="The terms of the score.")
    notes: Sequence[str] = Field((), description="By what the memory was superseded or contradicted, and when.")


class Hits(Output):
    hits: Sequence[Hit]
    mode: str
    degraded: str = ""
    why_not: Dropped | None = None


@operation("memories", Right.READ, example={"query": "Why did we choose PostgreSQL?", "limit": 5})
def search_memories(caller: Caller, request: SearchMemories) -> Hits:
    """Search memories by meaning and by words; each hit explains its score."""
    found = caller.store.journal.search(
        request.query,
        caller.scope(request.project_id),
        by=caller.by(user_id=request.user_id, session_id=caller.session(request.session_id, request.project_id)),
        mode=request.mode,
        where=request.where,
        min_similarity=request.min_similarity,
        limit=request.limit,
        routed=request.route_layers,
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
    why_not = found.why_not(request.why_not) if request.why_not else None
    return Hits(hits=hits, mode=found.mode, degraded=found.degraded, why_not=why_not)


class BulkDelete(InProject):
    where: MemoryFilter | None = None
    older_than_days: Annotated[float, Field(ge=0, le=365_000)] | None = None
    hard: bool = False
    dry_run: bool = Field(False, description="List what would be deleted without deleting anything.")
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
def bulk_delete(caller: Caller, request: BulkDelete) -> BulkDeleted:
    """Delete all memories that match a filter or are older than this."""
    if request.hard:
        caller.require(Right.ADMIN)
    deleted = caller.store.journal.bulk_delete(
        caller.scope(request.project_id),
        where=request.where,
        older_than=None if request.older_than_days is None else timedelta(days=request.older_than_days),
        by=caller.by(user_id=request.user_id),
        hard=request.hard,
        dry_run=request.dry_run,
        reason=request.reason or None,
    )
    return BulkDeleted.from_result(deleted)


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


class Summarize(InProject):
    where: MemoryFilter | None = Field(None, description="Which memories to summarize, for example a time range.")
    max_tokens: int = Field(300, ge=1, le=10_000)
    user_id: Name | None = None
    session_id: Name | None = None


class Summarized(Output):
    text: str
    method: str
    sentences: Sequence[Sentence] = ()
    memory_ids: Sequence[str] = ()
    degraded: str = ""


@operation("memories", Right.READ, example={"where": {"types": ["decision"]}, "max_tokens": 200})
def summarize(caller: Caller, request: Summarize) -> Summarized:
    """Summarize a session or a time range with sentences of the memories themselves."""
    session = caller.session(request.session_id, request.project_id)
    made = caller.store.journal.summarize(
        caller.scope(request.project_id, session_id=session),
        by=caller.by(user_id=request.user_id, session_id=session),
        where=request.where,
        max_tokens=request.max_tokens,
    )
    return Summarized.from_result(made)


class GetContext(InProject):
    activity: Prose = Field("", description="What the agent is about to do, in a few words.")
    files: Sequence[Annotated[str, StringConstraints(min_length=1, max_length=500)]] = Field((), max_length=50)
    git_branch: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None
    max_tokens: int = Field(2_000, ge=0, le=100_000)
    user_id: Name | None = None
    session_id: Name | None = None
    agent: Name | None = None


class ContextPart(Output):
    kind: str
    id: str
    section: str
    reason: str
    text: str


class Context(Output):
    prompt: str
    items: Sequence[ContextPart]
    left_out: int = Field(description="The number of items that did not fit into max_tokens.")
    layers: Mapping[str, str] = Field(description="The layers that were searched, each with the reason.")
    degraded: str = ""


@operation(
    "memories",
    Right.READ,
    example={"activity": "fix the login timeout", "files": ["src/login.py"], "git_branch": "main"},
)
def get_context(caller: Caller, request: GetContext) -> Context:
    """Collect the memories that matter for an activity, a set of files and a branch, within a token budget."""
    session = caller.session(request.session_id, request.project_id)
    found = caller.store.journal.get_context(
        caller.scope(request.project_id),
        activity=request.activity,
        files=request.files,
        git_branch=request.git_branch,
        by=caller.by(user_id=request.user_id, agent=request.agent, session_id=session),
        max_tokens=request.max_tokens,
    )
    items = [
        ContextPart(kind=item.record.spec.kind, id=item.id, section=item.section, reason=item.reason, text=item.text)
        for item in found.items
    ]
    return Context(
        prompt=found.to_prompt(),
        items=items,
        left_out=len(found.left_out),
        layers={str(layer): reason for layer, reason in found.plan.reasons.items()},
        degraded=found.degraded,
    )


CONTEXT: tuple[Operation[Any, Any], ...] = (summarize, get_context)
