"""Operations on the neighbourhood of a memory, a lesson or an entity, and on paths between two."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

from pydantic import Field

from alma.errors import NotFoundError, PermissionDeniedError
from alma.graph.base import Entity
from alma.graph.relational import StorageGraph
from alma.learning.lessons import RELATED
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference, anti_pattern_id
from alma.model.memory import FactRelationship, Memory, MemoryRelationship, ProjectPattern
from alma.model.query import And, Compare, Has, In, Or, Order
from alma.model.scope import Scope
from alma.operations.access import Caller, Right
from alma.operations.base import ASKING_USER, InProject, Name, Operation, Output, Text, operation
from alma.operations.places import place_of, places
from alma.operations.rows import row_of

_ID = "01a1e0a2b81e7fc49d0ec9b96de703e8"
_OTHER = "01a1e0a2b81f7fc49d0ec9b96de703e9"
_EVERYWHERE = Scope.everywhere()
_LONGEST = 160
_MOST_STEPS = 6
_MOST_VISITED = 400
_NEWEST = (Order("timestamp", "desc"),)
NodeKind = Literal[
    "memory", "heuristic", "outcome", "domain_knowledge", "anti_pattern", "user_preference", "entity", "pattern"
]


class Node(Output):
    kind: str
    id: str
    label: str
    agent: str | None = None
    type: str | None = None
    created_at: datetime | None = None


class Edge(Output):
    source: str = Field(description="kind:id of a node.")
    target: str
    relation: str
    strength: float = 1.0


class Neighbourhood(Output):
    center: str = Field(description="kind:id of the node in the middle.")
    nodes: Sequence[Node]
    edges: Sequence[Edge]
    more: bool = Field(False, description="Whether it has more neighbours than the limit.")


class Around(InProject):
    kind: NodeKind
    id: Name
    limit: int = Field(60, ge=1, le=500)
    user_id: Name | None = ASKING_USER


@operation("graph", Right.READ, example={"kind": "memory", "id": _ID})
def neighbourhood(caller: Caller, request: Around) -> Neighbourhood:
    """Show what is directly connected with a memory, a lesson, a pattern or an entity."""
    walker = _Walker(caller, request.project_id, request.user_id, request.limit + 1)
    center = walker.node(request.kind, request.id)
    if center is None:
        raise NotFoundError(request.kind, request.id)
    links = list(walker.links(request.kind, request.id))
    nodes = {(center.kind, center.id): center}
    edges: list[Edge] = []
    for link in links:
        if len(nodes) > request.limit and (link.kind, link.id) not in nodes:
            continue
        node = nodes.get((link.kind, link.id)) or walker.node(link.kind, link.id)
        if node is not None:
            nodes[node.kind, node.id] = node
            edges.append(link.edge(center))
    return Neighbourhood(
        center=_key(center.kind, center.id),
        nodes=list(nodes.values()),
        edges=edges,
        more=len({(link.kind, link.id) for link in links}) > request.limit,
    )


class Connect(InProject):
    from_kind: NodeKind
    from_id: Name
    to_kind: NodeKind
    to_id: Name
    max_steps: int = Field(4, ge=1, le=_MOST_STEPS)
    user_id: Name | None = ASKING_USER


class Connection(Output):
    found: bool
    nodes: Sequence[Node] = Field(default=(), description="The nodes of a shortest path, from one end to the other.")
    edges: Sequence[Edge] = ()


@operation("graph", Right.READ, example={"from_kind": "memory", "from_id": _ID, "to_kind": "memory", "to_id": _OTHER})
def find_connection(caller: Caller, request: Connect) -> Connection:
    """Find a shortest path between two memories, lessons, patterns or entities, over connections of every kind."""
    walker = _Walker(caller, request.project_id, request.user_id, 100)
    start, end = (request.from_kind, request.from_id), (request.to_kind, request.to_id)
    for each in (start, end):
        if walker.node(*each) is None:
            raise NotFoundError(*each)
    return walker.path(start, end, request.max_steps)


class FindNodes(InProject):
    words: Text
    limit: int = Field(10, ge=1, le=50)
    user_id: Name | None = ASKING_USER


class NodesFound(Output):
    nodes: Sequence[Node]


@operation("graph", Right.READ, example={"words": "PostgreSQL"})
def find_nodes(caller: Caller, request: FindNodes) -> NodesFound:
    """Find entities, memories and lessons to start from, by name or by words."""
    walker = _Walker(caller, request.project_id, request.user_id, request.limit)
    found = list(walker.entities(request.words))
    for place in places(caller, request.project_id, user_id=request.user_id):
        hits = caller.store.storage.search_text(place.cls, request.words, place.scope, place.where, request.limit)
        found += [walker.shown(hit.record) for hit in hits]
    return NodesFound(nodes=found[: 4 * request.limit])


# ---------------------------------------------------------------------- walking


def _key(kind: str, record_id: str) -> str:
    return f"{kind}:{record_id}"


class _Link(NamedTuple):
    """A connection to another node; `outward` when it points to that node."""

    kind: str
    id: str
    relation: str
    strength: float = 1.0
    outward: bool = True

    def edge(self, origin: Node) -> Edge:
        ends = (_key(origin.kind, origin.id), _key(self.kind, self.id))
        source, target = ends if self.outward else ends[::-1]
        return Edge(source=source, target=target, relation=self.relation, strength=self.strength)


class _Walker:
    """Reads nodes and their connections inside what the caller sees."""

    def __init__(self, caller: Caller, project_id: str | None, user_id: str | None, limit: int) -> None:
        self._caller, self._storage, self._limit = caller, caller.store.storage, limit
        self._places = {place.kind: place for place in places(caller, project_id, user_id=user_id)}
        self._project_id = project_id
        # A pattern is made of memories of all users and agents.
        sees_all = caller.visible(project_id).unlimited
        self._patterns = place_of(caller, ProjectPattern, project_id) if sees_all else None
        self._graph = self._opened()

    def _opened(self) -> StorageGraph | None:
        """The graph of the project, which is closed to keys limited to an agent or to a user of all projects."""
        if self._caller.grant.agent is not None:
            return None
        try:
            memory = self._caller.memory(self._project_id)
        except PermissionDeniedError:
            return None
        return StorageGraph(memory.storage, memory.project_id, redact=None)

    # ------------------------------------------------------------------ nodes

    def node(self, kind: str, record_id: str) -> Node | None:
        """The node with this kind and id, if the caller sees it."""
        if kind == "entity":
            found = [] if self._graph is None else self._graph.get_entities([record_id])
            return self.shown_entity(found[0]) if found else None
        place = self._patterns if kind == "pattern" else self._places.get(kind)
        if place is None:
            return None
        named = place.within(In(place.cls.spec.key, [record_id]))
        for record in self._storage.find(place.cls, place.scope, named, limit=1):
            return self.shown(record)
        return None

    def shown(self, record: Any) -> Node:
        """A record as a node."""
        if isinstance(record, ProjectPattern):
            name, kind = record.pattern_name[:_LONGEST], record.pattern_type
            return Node(kind="pattern", id=record.id, label=name, type=kind, created_at=record.created_at)
        row = row_of(record, _LONGEST)
        label = row.text or row.title
        return Node(kind=row.kind, id=row.id, label=label, agent=row.agent, type=row.type, created_at=row.created_at)

    def shown_entity(self, entity: Entity) -> Node:
        """An entity as a node."""
        name, kind = entity.name[:_LONGEST], entity.entity_type
        return Node(kind="entity", id=entity.id, label=name, type=kind, created_at=entity.created_at)

    def entities(self, words: str) -> Iterator[Node]:
        """The entities with a name like this."""
        if self._graph is not None:
            for entity in self._graph.find_entities(words[:200], limit=self._limit):
                yield self.shown_entity(entity)

    # ------------------------------------------------------------------ connections

    def links(self, kind: str, record_id: str) -> Iterator[_Link]:
        """The connections of a node, whether or not the caller sees the other end."""
        yield from _READERS[kind](self, record_id)

    def path(self, start: tuple[str, str], end: tuple[str, str], most: int) -> Connection:
        """A shortest path, by breadth-first search from the start."""
        before: dict[tuple[str, str], tuple[tuple[str, str], _Link] | None] = {start: None}
        waiting = deque([(start, 0)])
        while waiting and end not in before and len(before) < _MOST_VISITED:
            here, depth = waiting.popleft()
            if depth == most:
                continue
            for link in self.links(*here):
                there = (link.kind, link.id)
                if there not in before and self.node(*there) is not None:
                    before[there] = (here, link)
                    waiting.append((there, depth + 1))
        return self._walked(before, end) if end in before else Connection(found=False)

    def _walked(
        self, before: dict[tuple[str, str], tuple[tuple[str, str], _Link] | None], end: tuple[str, str]
    ) -> Connection:
        nodes, edges, here = [self.node(*end)], [], end
        while (step := before[here]) is not None:
            here, link = step
            origin = self.node(*here)
            nodes.append(origin)
            if origin is not None:
                edges.append(link.edge(origin))
        return Connection(found=True, nodes=[each for each in reversed(nodes) if each is not None], edges=edges[::-1])

    # ------------------------------------------------------------------ connections of each kind

    def of_memory(self, record_id: str) -> Iterator[_Link]:
        yield from self._related(MemoryRelationship, "memory", record_id)
        yield from self._mentioned("memory", record_id)
        if self._patterns is not None:
            where = self._patterns.within(Has("memory_ids", record_id))
            for record in self._storage.find(ProjectPattern, self._patterns.scope, where, limit=self._limit):
                yield _Link("pattern", record.id, "shows", outward=True)

    def of_fact(self, record_id: str) -> Iterator[_Link]:
        for kind in ("domain_knowledge", "user_preference"):
            if kind in self._places and self.node(kind, record_id) is not None:
                yield from self._related(FactRelationship, kind, record_id)
                yield from self._mentioned(kind, record_id)

    def of_heuristic(self, record_id: str) -> Iterator[_Link]:
        place = self._places.get("heuristic")
        rule = None if place is None else self._storage.get(Heuristic, record_id, place.scope)
        if rule is None or place is None:
            return
        related = rule.metadata.get(RELATED)
        for other, link in related.items() if isinstance(related, dict) else ():
            said = link.get("is", "related") if isinstance(link, dict) else "related"
            yield _Link("heuristic", other, {"opposite": "contradicts"}.get(said, said))
        yield _Link("anti_pattern", anti_pattern_id(record_id), "warns")
        yield from self._outcomes(record_id)

    def of_warning(self, record_id: str) -> Iterator[_Link]:
        place = self._places.get("anti_pattern")
        warning = None if place is None else self._storage.get(AntiPattern, record_id, place.scope)
        for outcome in () if warning is None else warning.outcomes_for[-self._limit :]:
            yield _Link("outcome", outcome, "evidence", outward=False)

    def of_outcome(self, record_id: str) -> Iterator[_Link]:
        place = self._places.get("outcome")
        outcome = None if place is None else self._storage.get(Outcome, record_id, place.scope)
        if outcome is not None and outcome.lesson_id is not None:
            yield _Link("heuristic", outcome.lesson_id, "evidence")
            yield _Link("anti_pattern", anti_pattern_id(outcome.lesson_id), "evidence")

    def of_pattern(self, record_id: str) -> Iterator[_Link]:
        place = self._patterns
        pattern = None if place is None else self._storage.get(ProjectPattern, record_id, place.scope)
        for memory_id in () if pattern is None else pattern.memory_ids[: self._limit]:
            yield _Link("memory", memory_id, "shows", outward=False)

    def of_entity(self, record_id: str) -> Iterator[_Link]:
        if self._graph is None:
            return
        for edge in self._graph.edges([record_id]):
            out = edge.source_id == record_id
            yield _Link("entity", edge.target_id if out else edge.source_id, edge.relation_type, edge.confidence, out)
        for entity in self._graph.get_entities([record_id]):
            for kind in ("memory", "domain_knowledge"):
                yield from self._mentions(kind, entity.name)

    def _mentions(self, kind: str, name: str) -> Iterator[_Link]:
        """The records whose text has the name of an entity."""
        place = self._places.get(kind)
        if place is None:
            return
        for hit in self._storage.search_text(place.cls, name, place.scope, place.where, min(self._limit, 20)):
            if name.casefold() in hit.record.text().casefold():
                yield _Link(kind, str(hit.record.key), "mentions", outward=False)

    def _mentioned(self, kind: str, record_id: str) -> Iterator[_Link]:
        """The entities whose names are in the text of a record."""
        place = self._places.get(kind)
        if place is None or self._graph is None:
            return
        for record in self._storage.find(place.cls, place.scope, place.within(In("id", [record_id])), limit=1):
            text = record.text()[:2_000]
            for entity in self._graph.find_entities(text[:200], limit=20) if text.strip() else ():
                if entity.name.casefold() in text.casefold():
                    yield _Link("entity", entity.id, "mentions")

    def _related(
        self, cls: type[MemoryRelationship] | type[FactRelationship], kind: str, record_id: str
    ) -> Iterator[_Link]:
        ends = Or(Compare("from_memory_id", "eq", record_id), Compare("to_memory_id", "eq", record_id))
        of_kind = And(ends, Compare("kind", "eq", kind)) if cls is FactRelationship else ends
        strongest = (Order("strength", "desc"),)
        for edge in self._storage.find(cls, _EVERYWHERE, of_kind, strongest, 2 * self._limit):
            out = edge.from_memory_id == record_id
            other = edge.to_memory_id if out else edge.from_memory_id
            yield _Link(kind, other, edge.relationship_type, edge.strength, out)

    def _outcomes(self, lesson_id: str) -> Iterator[_Link]:
        place = self._places.get("outcome")
        of_lesson = Compare("lesson_id", "eq", lesson_id)
        found = [] if place is None else self._storage.find(Outcome, place.scope, of_lesson, _NEWEST, self._limit)
        for outcome in found:
            yield _Link("outcome", outcome.id, "evidence for" if outcome.success else "evidence against", outward=False)


_READERS: dict[str, Any] = {
    Memory.spec.kind: _Walker.of_memory,
    Heuristic.spec.kind: _Walker.of_heuristic,
    Outcome.spec.kind: _Walker.of_outcome,
    DomainKnowledge.spec.kind: _Walker.of_fact,
    AntiPattern.spec.kind: _Walker.of_warning,
    UserPreference.spec.kind: _Walker.of_fact,
    "entity": _Walker.of_entity,
    "pattern": _Walker.of_pattern,
}

SURROUNDINGS: tuple[Operation[Any, Any], ...] = (neighbourhood, find_connection, find_nodes)
