"""Operations on relations between memories, the entity graph, patterns and knowledge gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from alma.errors import PermissionDeniedError
from alma.graph.base import Entity, GraphQuery, Relationship
from alma.graph.extraction import EntityExtractor
from alma.graph.relational import StorageGraph
from alma.ingest.screening import injection_in
from alma.memory.gaps import Gap
from alma.memory.path_search import Path
from alma.memory.patterns import Insight, SimilarPattern
from alma.model.governance import Attribution
from alma.model.memory import Memory, MemoryRelationship
from alma.operations.access import Caller, Right
from alma.operations.base import InProject, Input, Limit, Name, Operation, Output, Prose, Share, Text, operation
from alma.redaction.redactor import masking

_ID = "01a1e0a2b81e7fc49d0ec9b96de703e8"
_OTHER = "01a1e0a2b81f7fc49d0ec9b96de703e9"
Relations = Annotated[Sequence[Name], Field(max_length=50)]
Direction = Literal["out", "in", "both"]


class Relate(InProject):
    from_id: Name
    to_id: Name
    relation: Name = Field(
        description="relates_to, contradicts, builds_on, resolves, supersedes, reply_to … or a name of your choice"
    )
    strength: Share | None = None
    context: Prose | None = Field(None, description="Why they are related.")
    user_id: Name | None = None


class RelationKept(Output):
    relationship: MemoryRelationship


@operation(
    "relations", Right.WRITE, idempotent=True, example={"from_id": _ID, "to_id": _OTHER, "relation": "supersedes"}
)
def relate_memories(caller: Caller, request: Relate) -> RelationKept:
    """Relate one memory to another."""
    by = caller.by(user_id=request.user_id)
    _see(caller, request.project_id, by, request.from_id, request.to_id)
    made = caller.store.relationships.relate(
        request.from_id,
        request.to_id,
        request.relation,
        caller.scope(request.project_id),
        strength=request.strength,
        context=request.context,
        by=by,
    )
    return RelationKept(relationship=made)


class Unrelate(InProject):
    from_id: Name
    to_id: Name
    relation: Name
    user_id: Name | None = None


class Unrelated(Output):
    removed: bool


@operation(
    "relations",
    Right.DELETE,
    idempotent=True,
    destructive=True,
    example={"from_id": _ID, "to_id": _OTHER, "relation": "supersedes"},
)
def unrelate_memories(caller: Caller, request: Unrelate) -> Unrelated:
    """Remove a relation between two memories."""
    scope, by = caller.scope(request.project_id), caller.by(user_id=request.user_id)
    removed = caller.store.relationships.unrelate(request.from_id, request.to_id, request.relation, scope, by)
    return Unrelated(removed=removed)


class RelatedTo(InProject):
    memory_id: Name
    relations: Relations | None = None
    direction: Direction = "both"
    max_depth: int = Field(1, ge=1, le=10)
    min_strength: Share = 0.0
    limit: Limit = 50
    user_id: Name | None = None


class RelatedMemory(Output):
    memory: Memory
    relation: str
    depth: int
    before_id: str = Field(description="The previous memory on the path.")


class RelatedMemories(Output):
    related: Sequence[RelatedMemory]


@operation("relations", Right.READ, example={"memory_id": _ID, "max_depth": 2})
def related_memories(caller: Caller, request: RelatedTo) -> RelatedMemories:
    """List memories related to a memory, up to some hops away."""
    by = caller.by(user_id=request.user_id)
    _see(caller, request.project_id, by, request.memory_id)
    found = caller.store.relationships.neighbours(
        request.memory_id,
        caller.scope(request.project_id),
        relations=request.relations,
        direction=request.direction,
        max_depth=request.max_depth,
        min_strength=request.min_strength,
        limit=request.limit,
        by=by,
    )
    seen = [each for each in found if caller.may_see(each.memory, by.user_id)]
    return RelatedMemories(related=list(map(RelatedMemory.from_result, seen)))


class FindPaths(InProject):
    from_id: Name
    to_id: Name
    relations: Relations | None = None
    direction: Direction = "both"
    max_depth: int = Field(4, ge=1, le=10)
    limit: Limit = 10
    user_id: Name | None = None


class Paths(Output):
    paths: Sequence[Path]


@operation("relations", Right.READ, example={"from_id": _ID, "to_id": _OTHER})
def find_paths(caller: Caller, request: FindPaths) -> Paths:
    """Find paths of relations from one memory to another."""
    by = caller.by(user_id=request.user_id)
    _see(caller, request.project_id, by, request.from_id, request.to_id)
    found = caller.store.relationships.paths(
        request.from_id,
        request.to_id,
        caller.scope(request.project_id),
        relations=request.relations,
        direction=request.direction,
        max_depth=request.max_depth,
        limit=request.limit,
        by=by,
    )
    return Paths(paths=found)


class Detect(InProject):
    memory_id: Name
    save: bool = Field(False, description="Store the relations found.")
    user_id: Name | None = None


class DetectedRelation(Output):
    relation: str
    from_id: str
    to_id: str
    strength: float
    evidence: Sequence[str]


class DetectedRelations(Output):
    detected: Sequence[DetectedRelation]


@operation("relations", Right.WRITE, idempotent=True, example={"memory_id": _ID, "save": False})
def detect_relations(caller: Caller, request: Detect) -> DetectedRelations:
    """Detect how a memory is related to others, with the evidence."""
    by = caller.by(user_id=request.user_id)
    _see(caller, request.project_id, by, request.memory_id)
    found = caller.store.relationships.detect(
        request.memory_id, caller.scope(request.project_id), save=request.save, by=by
    )
    return DetectedRelations(
        detected=[
            DetectedRelation(
                relation=each.relation,
                from_id=each.from_id,
                to_id=each.to_id,
                strength=each.strength,
                evidence=[str(piece) for piece in each.evidence],
            )
            for each in found
        ]
    )


# ---------------------------------------------------------------------- the graph


class FromText(InProject):
    text: Text
    save: bool = Field(True, description="Add what is found to the graph.")


class Graph(Output):
    entities: Sequence[Entity] = ()
    relationships: Sequence[Relationship] = ()


def _graph(caller: Caller, project_id: str | None) -> StorageGraph:
    if caller.grant.agent is not None:
        raise PermissionDeniedError("the graph belongs to all agents of a project; this key is limited to one agent")
    memory = caller.memory(project_id)
    # Texts are redacted before entities are extracted from them.
    return StorageGraph(memory.storage, memory.project_id, caller.by(), redact=None)


def _without_orders(
    entities: Sequence[Entity], relationships: Sequence[Relationship]
) -> tuple[list[Entity], list[Relationship]]:
    """The entities and relations without names that look like a prompt injection."""
    kept = [entity for entity in entities if injection_in([entity.name]) is None]
    ids = {entity.id for entity in kept}
    return kept, [each for each in relationships if {each.source_id, each.target_id} <= ids]


@operation("graph", Right.WRITE, idempotent=True, example={"text": "Ana works at Acme. Acme uses PostgreSQL."})
def add_to_graph(caller: Caller, request: FromText) -> Graph:
    """Extract people, organisations, tools and their relations from a text; no language model is needed."""
    graph = _graph(caller, request.project_id)
    cleaned = masking(caller.store.redactor)(request.text)
    entities, relationships = _without_orders(*EntityExtractor().extract(cleaned))
    if request.save:
        for entity in entities:
            graph.add_entity(entity)
        for relationship in relationships:
            graph.add_relationship(relationship)
    return Graph(entities=entities, relationships=relationships)


class QueryGraph(InProject):
    names: Annotated[Sequence[Name], Field(max_length=50)] = ()
    entity_types: Annotated[Sequence[Name], Field(max_length=50)] = ()
    relation_types: Relations = ()
    max_hops: int = Field(1, ge=0, le=10)
    limit: Limit = 50
    direction: Direction = "both"
    min_confidence: Share = 0.0


@operation("graph", Right.READ, example={"names": ["Acme"], "max_hops": 2})
def query_graph(caller: Caller, request: QueryGraph) -> Graph:
    """Find entities of the graph and what they are connected to."""
    query = GraphQuery(**request.model_dump(exclude={"project_id"}))
    found = _graph(caller, request.project_id).query(query)
    return Graph(entities=found.entities, relationships=found.relationships)


# ---------------------------------------------------------------------- patterns and gaps


class Mine(InProject):
    min_occurrences: int = Field(2, ge=2, le=1_000)


class Mined(Output):
    created: Sequence[str]
    updated: Sequence[str]
    removed: Sequence[str]
    unchanged: Sequence[str]


@operation("patterns", Right.WRITE, takes_long=True, idempotent=True, example={})
def mine_patterns(caller: Caller, request: Mine) -> Mined:
    """Find recurring patterns in a project's memories."""
    if caller.grant.agent is not None:
        raise PermissionDeniedError("patterns belong to all agents of a project; this key is limited to one agent")
    project = caller.memory(request.project_id).project_id
    made = caller.store.patterns.mine(project, min_occurrences=request.min_occurrences, by=caller.by())
    return Mined.from_result(made)


class Similar(InProject):
    pattern: Text = Field(description="A description of the pattern.")
    user_id: Name | None = Field(None, description="Also search the other projects of this user.")
    min_similarity: Share = 0.3
    limit: Limit = 10


class SimilarPatterns(Output):
    patterns: Sequence[SimilarPattern]


@operation("patterns", Right.READ, example={"pattern": "retry a call that failed"})
def find_similar_patterns(caller: Caller, request: Similar) -> SimilarPatterns:
    """Find patterns similar to a description, in this project and a user's other projects."""
    user = caller.user(request.user_id)
    found = caller.store.patterns.find_similar_patterns(
        request.pattern,
        caller.memory(request.project_id).project_id,
        user_id=None if caller.grant.project_id else user,
        limit=request.limit,
        min_similarity=request.min_similarity,
        within=caller.visible(request.project_id),
    )
    # Vectors are not part of the result.
    shown = [replace(each, pattern=each.pattern.replace(embedding=None)) for each in found]
    return SimilarPatterns(patterns=shown)


class Insights(Input):
    user_id: Name | None = None
    min_projects: int = Field(2, ge=2, le=1_000)
    min_success_rate: Share = 0.5
    limit: Limit = 20


class InsightList(Output):
    insights: Sequence[Insight]


@operation("patterns", Right.READ, example={"user_id": "ana"})
def get_cross_project_insights(caller: Caller, request: Insights) -> InsightList:
    """Find what works in several of a user's projects."""
    if caller.grant.project_id is not None:
        caller.require_unlimited("what is known across projects")
    given = request.model_dump(exclude={"user_id"})
    found = caller.store.patterns.get_cross_project_insights(caller.required_user(request.user_id), **given)
    return InsightList(insights=found)


class Gaps(InProject):
    activity: Prose | None = None
    files: Annotated[
        Sequence[Annotated[str, StringConstraints(min_length=1, max_length=500)]], Field(max_length=50)
    ] = ()
    limit: Limit = 20


class GapList(Output):
    gaps: Sequence[Gap]


@operation("patterns", Right.READ, example={"activity": "deploy the shop", "files": ["deploy.sh"]})
def suggest_context_gaps(caller: Caller, request: Gaps) -> GapList:
    """List knowledge that a project lacks."""
    found = caller.store.gaps.suggest_context_gaps(
        caller.scope(request.project_id), activity=request.activity, files=request.files, limit=request.limit
    )
    return GapList(gaps=found)


def _see(caller: Caller, project_id: str | None, by: Attribution, *memory_ids: str) -> None:
    """Raise NotFoundError for memories that the caller may not see."""
    for memory_id in memory_ids:
        caller.store.journal.require(memory_id, caller.scope(project_id), by=by)


RELATIONS: tuple[Operation[Any, Any], ...] = (
    relate_memories,
    unrelate_memories,
    related_memories,
    find_paths,
    detect_relations,
    add_to_graph,
    query_graph,
    mine_patterns,
    find_similar_patterns,
    get_cross_project_insights,
    suggest_context_gaps,
)
