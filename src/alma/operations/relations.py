"""Operations on how things hang together: relations of memories, the graph of entities, patterns and gaps."""

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
        description="relates_to, contradicts, builds_on, resolves, supersedes, reply_to … or one of your own"
    )
    strength: Share | None = None
    context: Prose | None = Field(None, description="Why they are related.")
    user_id: Name | None = None


class RelationKept(Output):
    relationship: MemoryRelationship


@operation(
    "relations", Right.WRITE, idempotent=True, example={"from_id": _ID, "to_id": _OTHER, "relation": "supersedes"}
)
def relate_memories(caller: Caller, asked: Relate) -> RelationKept:
    """Say how one memory is related to another."""
    by = caller.by(user_id=asked.user_id)
    _see(caller, asked.project_id, by, asked.from_id, asked.to_id)
    made = caller.store.relationships.relate(
        asked.from_id,
        asked.to_id,
        asked.relation,
        caller.scope(asked.project_id),
        strength=asked.strength,
        context=asked.context,
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
def unrelate_memories(caller: Caller, asked: Unrelate) -> Unrelated:
    """Take back that one memory is related to another."""
    scope, by = caller.scope(asked.project_id), caller.by(user_id=asked.user_id)
    removed = caller.store.relationships.unrelate(asked.from_id, asked.to_id, asked.relation, scope, by)
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
    before_id: str = Field(description="The memory it was reached from.")


class RelatedMemories(Output):
    related: Sequence[RelatedMemory]


@operation("relations", Right.READ, example={"memory_id": _ID, "max_depth": 2})
def related_memories(caller: Caller, asked: RelatedTo) -> RelatedMemories:
    """Find the memories that are related to one, up to some steps away."""
    by = caller.by(user_id=asked.user_id)
    _see(caller, asked.project_id, by, asked.memory_id)
    found = caller.store.relationships.neighbours(
        asked.memory_id,
        caller.scope(asked.project_id),
        relations=asked.relations,
        direction=asked.direction,
        max_depth=asked.max_depth,
        min_strength=asked.min_strength,
        limit=asked.limit,
        by=by,
    )
    return RelatedMemories(
        related=[
            RelatedMemory(memory=each.memory, relation=each.relation, depth=each.depth, before_id=each.before_id)
            for each in found
            if caller.may_see(each.memory, by.user_id)
        ]
    )


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
def find_paths(caller: Caller, asked: FindPaths) -> Paths:
    """Find the ways from one memory to another."""
    by = caller.by(user_id=asked.user_id)
    _see(caller, asked.project_id, by, asked.from_id, asked.to_id)
    found = caller.store.relationships.paths(
        asked.from_id,
        asked.to_id,
        caller.scope(asked.project_id),
        relations=asked.relations,
        direction=asked.direction,
        max_depth=asked.max_depth,
        limit=asked.limit,
        by=by,
    )
    return Paths(paths=found)


class Detect(InProject):
    memory_id: Name
    save: bool = Field(False, description="Keep what is found.")
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
def detect_relations(caller: Caller, asked: Detect) -> DetectedRelations:
    """Find how a memory is related to others, with the evidence."""
    by = caller.by(user_id=asked.user_id)
    _see(caller, asked.project_id, by, asked.memory_id)
    found = caller.store.relationships.detect(asked.memory_id, caller.scope(asked.project_id), save=asked.save, by=by)
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
    save: bool = Field(True, description="Put what is found into the graph.")


class Graph(Output):
    entities: Sequence[Entity] = ()
    relationships: Sequence[Relationship] = ()


def _graph(caller: Caller, asked_project: str | None) -> StorageGraph:
    if caller.grant.agent is not None:
        raise PermissionDeniedError("the graph is all agents' of a project, and this key is limited to one of them")
    memory = caller.memory(asked_project)
    # What is added was read from a text that the redactor of the store has seen.
    return StorageGraph(memory.storage, memory.project_id, caller.by(), redact=None)


def _without_orders(
    entities: Sequence[Entity], relationships: Sequence[Relationship]
) -> tuple[list[Entity], list[Relationship]]:
    """What is named, but for quotations that would give orders to whoever reads the graph."""
    kept = [entity for entity in entities if injection_in([entity.name]) is None]
    ids = {entity.id for entity in kept}
    return kept, [each for each in relationships if {each.source_id, each.target_id} <= ids]


@operation("graph", Right.WRITE, idempotent=True, example={"text": "Ana works at Acme. Acme uses PostgreSQL."})
def add_to_graph(caller: Caller, asked: FromText) -> Graph:
    """Find people, organisations, tools and their relations in a text; no language model is needed."""
    graph = _graph(caller, asked.project_id)
    cleaned = masking(caller.store.redactor)(asked.text)
    entities, relationships = _without_orders(*EntityExtractor().extract(cleaned))
    if asked.save:
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
def query_graph(caller: Caller, asked: QueryGraph) -> Graph:
    """Find entities of the graph and what they are connected with."""
    query = GraphQuery(**asked.model_dump(exclude={"project_id"}))
    found = _graph(caller, asked.project_id).query(query)
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
def mine_patterns(caller: Caller, asked: Mine) -> Mined:
    """Find what recurs in a project's memories."""
    if caller.grant.agent is not None:
        raise PermissionDeniedError("patterns are a whole project's, and this key is limited to one agent of it")
    project = caller.memory(asked.project_id).project_id
    made = caller.store.patterns.mine(project, min_occurrences=asked.min_occurrences, by=caller.by())
    return Mined(created=made.created, updated=made.updated, removed=made.removed, unchanged=made.unchanged)


class Similar(InProject):
    pattern: Text = Field(description="A pattern in words.")
    user_id: Name | None = Field(None, description="Whose other projects are looked at too.")
    min_similarity: Share = 0.3
    limit: Limit = 10


class SimilarPatterns(Output):
    patterns: Sequence[SimilarPattern]


@operation("patterns", Right.READ, example={"pattern": "retry a call that failed"})
def find_similar_patterns(caller: Caller, asked: Similar) -> SimilarPatterns:
    """Find patterns like one, in this project and in a user's others."""
    user = caller.user(asked.user_id)
    found = caller.store.patterns.find_similar_patterns(
        asked.pattern,
        caller.memory(asked.project_id).project_id,
        user_id=None if caller.grant.project_id else user,
        limit=asked.limit,
        min_similarity=asked.min_similarity,
        within=caller.visible(asked.project_id),
    )
    # A vector is no JSON, and means nothing to a caller.
    told = [replace(each, pattern=each.pattern.replace(embedding=None)) for each in found]
    return SimilarPatterns(patterns=told)


class Insights(Input):
    user_id: Name | None = None
    min_projects: int = Field(2, ge=2, le=1_000)
    min_success_rate: Share = 0.5
    limit: Limit = 20


class InsightList(Output):
    insights: Sequence[Insight]


@operation("patterns", Right.READ, example={"user_id": "ana"})
def get_cross_project_insights(caller: Caller, asked: Insights) -> InsightList:
    """Find what works in several of a user's projects."""
    if caller.grant.project_id is not None:
        caller.require_unlimited("what is known across projects")
    given = asked.model_dump(exclude={"user_id"})
    found = caller.store.patterns.get_cross_project_insights(caller.required_user(asked.user_id), **given)
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
def suggest_context_gaps(caller: Caller, asked: Gaps) -> GapList:
    """Say what a project does not know yet and should."""
    found = caller.store.gaps.suggest_context_gaps(
        caller.scope(asked.project_id), activity=asked.activity, files=asked.files, limit=asked.limit
    )
    return GapList(gaps=found)


def _see(caller: Caller, asked_project: str | None, by: Attribution, *memory_ids: str) -> None:
    """Refuse what the caller may not see, as if it were not there."""
    for memory_id in memory_ids:
        caller.store.journal.require(memory_id, caller.scope(asked_project), by=by)


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
