"""Compare the relationships in Neo4j with what its nodes and links say, and write the differences.

Every relationship belongs to one node, its owner, and is computed from nodes and link nodes alone. So the order in
which records arrive does not matter: what changes says which owners are affected, and these are compared.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from typing import Any, NamedTuple

from alma.graph.neo4j_nodes import (
    MEMORY,
    PATTERN,
    PROJECT,
    STATED_TYPES,
    TIME_WINDOW,
    USER,
    Edge,
    End,
    edge_of,
    native,
)

_ELEMENT = "element:"
ELEMENT_ID = f"'{_ELEMENT}' + elementId(n)"
"""The id by which a node is named that has none of its own."""
_WINDOW = timedelta(hours=1)
_CHUNK = 500
Row = Mapping[str, Any]
Rows = list[dict[str, Any]]
Nodes = dict[str, dict[str, Any]]


class Held(NamedTuple):
    """A relationship that the graph has, with the server's name for it."""

    element: str
    edge: Edge


@dataclass(frozen=True, slots=True)
class EdgeDifferences:
    """The changes that make relationships as computed."""

    missing: Sequence[Edge]
    changed: Sequence[tuple[Held, Edge]]
    surplus: Sequence[Held]

    def __bool__(self) -> bool:
        return bool(self.missing or self.changed or self.surplus)


class _Owned(NamedTuple):
    """The relationships that one end of them owns: from label, with these types, to label; `near` is the owner."""

    near: str
    source: str
    types: tuple[str, ...]
    target: str


_OWNED: Mapping[str, tuple[_Owned, ...]] = {
    MEMORY: (
        _Owned("s", MEMORY, (), MEMORY),
        _Owned("s", MEMORY, ("BELONGS_TO", "APPLIES_TO"), PROJECT),
        _Owned("t", USER, ("CREATED",), MEMORY),
    ),
    PROJECT: (_Owned("t", USER, ("OWNS",), PROJECT),),
    PATTERN: (
        _Owned("t", MEMORY, ("DEMONSTRATES", "VALIDATES", "CONTRADICTS_PATTERN"), PATTERN),
        _Owned("s", PATTERN, ("USED_IN", "FAILED_IN"), PROJECT),
        _Owned("t", USER, ("DISCOVERED",), PATTERN),
    ),
}
# What a damaged link may lack.
_UNKNOWN = dict.fromkeys(("key", "owner", "source", "target", "type"), "")
# Consecutive memories have the same user, project and session; the comparison of times is in both directions.
_GROUP = " AND ".join(f"coalesce(n.{name}, '') = coalesce(m.{name}, '')" for name in ("user_id", "project_id"))
_NEIGHBOUR = (
    "MATCH (m:Memory) WHERE m.id IN $ids AND {having} CALL {{ WITH m MATCH (n:Memory) WHERE {place} AND " + _GROUP + " "
    "AND n.id IS NOT NULL AND n.created_at {sign}= m.created_at "
    "AND (n.created_at {sign} m.created_at OR n.id {sign} m.id) "
    # All memories of a place have the same {key}: ordered by it as well, the index gives the first without a sort.
    "RETURN n ORDER BY n.{key} {order}, n.created_at {order}, n.id {order} LIMIT 1 }} "
    "RETURN m.id AS id, m.created_at AS at, n.id AS other, n.created_at AS other_at"
)
_PLACES = (
    ("session_id", "m.session_id IS NOT NULL", "n.session_id = m.session_id"),
    (
        "project_id",
        "m.session_id IS NULL AND m.project_id IS NOT NULL",
        "n.project_id = m.project_id AND n.session_id IS NULL",
    ),
)


class Graph:
    """The nodes and relationships inside one transaction of the server."""

    def __init__(self, tx: Any) -> None:
        self._tx = tx

    def run(self, query: str, **given: Any) -> Rows:
        return list(self._tx.run(query, given).data())

    # ------------------------------------------------------------------ nodes

    def nodes(self, label: str, ids: Iterable[str], key: str = "id") -> Nodes:
        """The properties of the nodes by their ids; an id that two nodes have counts as missing."""
        rows = self.run(f"MATCH (n:{label}) WHERE n.{key} IN $ids RETURN properties(n) AS node", ids=list(ids))
        named = [native(row["node"]) for row in rows if isinstance(row["node"].get("id"), str)]
        number = Counter(node["id"] for node in named)
        return {node["id"]: node for node in named if number[node["id"]] == 1}

    def put(self, label: str, rows: Sequence[Row], key: str = "id") -> None:
        if rows:
            self.run(f"UNWIND $rows AS row MERGE (n:{label} {{{key}: row.{key}}}) SET n = row", rows=[*map(dict, rows)])

    def remove(self, label: str, ids: Collection[str]) -> None:
        if ids:
            self.run(f"MATCH (n:{label}) WHERE n.id IN $ids DETACH DELETE n", ids=list(ids))

    def remove_links(self, owners: Iterable[str], but: Iterable[str]) -> None:
        """Remove the links of these owners but for those with these keys."""
        if of := list(owners):
            query = "MATCH (l:AlmaLink) WHERE l.owner IN $owners AND NOT coalesce(l.key, '') IN $but DETACH DELETE l"
            self.run(query, owners=of, but=list(but))

    def remove_element(self, key: str) -> set[str]:
        """Remove a node that no record explains, by its `ELEMENT_ID`; returns the memories beside it."""
        if not key.startswith(_ELEMENT):
            return set()
        match = "MATCH (n) WHERE elementId(n) = $element"
        element = key.removeprefix(_ELEMENT)
        beside = self.ids(f"{match} MATCH (n)--(m:Memory) WHERE m.id STARTS WITH '' RETURN m.id AS id", element=element)
        self.run(f"{match} DETACH DELETE n", element=element)
        return beside

    def links(self, key: str, values: Iterable[str]) -> Rows:
        """The links whose source, target or owner is one of these."""
        wanted = list(values)
        query = f"MATCH (l:AlmaLink) WHERE l.{key} IN $values RETURN properties(l) AS link"
        rows = self.run(query, values=wanted) if wanted else []
        return [{**_UNKNOWN, **native(row["link"])} for row in rows]

    def ids(self, query: str, **given: Any) -> set[str]:
        """The ids that a query returns as `id`."""
        return {row["id"] for row in self.run(query, **given)}

    # ------------------------------------------------------------------ differences

    def differences(self, label: str, ids: Collection[str]) -> EdgeDifferences:
        """How the relationships that these nodes own differ from what nodes and links say."""
        wanted = {edge.key: edge for edge in _COMPUTED[label](self, ids)}
        missing, changed, surplus = dict(wanted), [], []
        for held in self._held(label, ids):
            # Of two that are the same, the second is one too many.
            edge = missing.pop(held.edge.key, None)
            if edge is None:
                surplus.append(held)
            elif edge.properties != held.edge.properties:
                changed.append((held, edge))
        return EdgeDifferences(list(missing.values()), changed, surplus)

    def settle(self, label: str, ids: Iterable[str]) -> None:
        """Make the relationships that these nodes own as they must be."""
        ordered = sorted(ids)
        for start in range(0, len(ordered), _CHUNK):
            found = self.differences(label, ordered[start : start + _CHUNK])
            self._write(
                "WHERE elementId(r) = row.element DELETE r", ((held.edge, held.element, None) for held in found.surplus)
            )
            self._write(
                "WHERE elementId(r) = row.element SET r = row.properties",
                ((held.edge, held.element, edge.properties) for held, edge in found.changed),
            )
            self._write("", ((edge, None, edge.properties) for edge in found.missing))

    def _write(self, change: str, edges: Iterable[tuple[Edge, str | None, Mapping[str, Any] | None]]) -> None:
        def kind(each: tuple[Edge, str | None, Mapping[str, Any] | None]) -> tuple[str, str, str]:
            return each[0].source.label, each[0].type, each[0].target.label

        for (source, name, target), batch in groupby(sorted(edges, key=kind), kind):
            rows = [
                {"source": edge.source.id, "target": edge.target.id, "element": element, "properties": properties}
                for edge, element, properties in batch
            ]
            ends = f"(s:{source} {{id: row.source}})", f"(t:{target} {{id: row.target}})"
            query = (
                f"MATCH {ends[0]}-[r:`{name}`]->{ends[1]} {change}"
                if change
                else f"MATCH {ends[0]}, {ends[1]} CREATE (s)-[r:`{name}`]->(t) SET r = row.properties"
            )
            self.run(f"UNWIND $rows AS row {query}", rows=rows)

    def _held(self, label: str, ids: Collection[str]) -> Iterator[Held]:
        for near, source, types, target in _OWNED[label]:
            named = f":{'|'.join(types)}" if types else ""
            rows = self.run(
                f"MATCH (s:{source})-[r{named}]->(t:{target}) WHERE {near}.id IN $ids RETURN elementId(r) AS element, "
                "type(r) AS type, s.id AS source, t.id AS target, properties(r) AS properties",
                ids=list(ids),
            )
            for row in rows:
                properties = native(row["properties"])
                if types or row["type"] in STATED_TYPES or "id" in properties:
                    ends = End(source, row["source"]), End(target, row["target"])
                    yield Held(row["element"], Edge(row["type"], *ends, properties))

    # ------------------------------------------------------------------ what nodes and links say

    def _of_memories(self, ids: Collection[str]) -> Iterator[Edge]:
        memories = self.nodes(MEMORY, ids)
        yield from self._created(memories)
        yield from self._in_projects(memories)
        links = self.links("source", (str(End(MEMORY, key)) for key in memories))
        yield from self._linked([link for link in links if End.parse(link["target"]).label == MEMORY], MEMORY)
        for here, there, is_near in self.followers(list(memories)):
            yield Edge("TEMPORAL_BEFORE", here, there)
            if is_near:
                yield Edge("SAME_CONTEXT", here, there, {"time_window": TIME_WINDOW})

    def _created(self, memories: Nodes) -> Iterator[Edge]:
        users = self.nodes(USER, {node["user_id"] for node in memories.values() if "user_id" in node})
        for key, node in memories.items():
            if node.get("user_id") in users:
                yield Edge("CREATED", End(USER, node["user_id"]), End(MEMORY, key))

    def _in_projects(self, memories: Nodes) -> Iterator[Edge]:
        own = self.nodes(PROJECT, {node["project_id"] for node in memories.values() if "project_id" in node})
        of_user = self._projects_of({node["user_id"] for node in memories.values() if _is_global(node)})
        for key, node in memories.items():
            project, layers = node.get("project_id"), node.get("layer_assignments", ())
            applies = set(of_user[node["user_id"]]) if _is_global(node) else set()
            if project in own:
                yield Edge("BELONGS_TO", End(MEMORY, key), End(PROJECT, str(project)))
                applies |= {str(project)} if {"project", "global"} & set(layers) else set()
            for each in applies:
                relevance = {"relevance": node.get("importance_score")}
                yield Edge("APPLIES_TO", End(MEMORY, key), End(PROJECT, each), relevance)

    def _projects_of(self, users: Collection[str]) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for key, node in self.nodes(PROJECT, users, "user_id").items() if users else ():
            found[node["user_id"]].append(key)
        return found

    def followers(self, ids: Collection[str]) -> Iterator[tuple[End, End, bool]]:
        """The memory after each of these, and whether it came within the time window."""
        for row in self._neighbours(ids, ">", "ASC"):
            here, there = native({"at": row["at"]})["at"], native({"at": row["other_at"]})["at"]
            yield End(MEMORY, row["id"]), End(MEMORY, row["other"]), there - here <= _WINDOW

    def before(self, ids: Collection[str]) -> set[str]:
        """The memories before these."""
        return {row["other"] for row in self._neighbours(ids, "<", "DESC")}

    def _neighbours(self, ids: Collection[str], sign: str, order: str) -> Rows:
        queries = [
            _NEIGHBOUR.format(key=key, having=having, place=place, sign=sign, order=order)
            for key, having, place in _PLACES
        ]
        return [row for query in queries for row in self.run(query, ids=list(ids))] if ids else []

    def _of_projects(self, ids: Collection[str]) -> Iterator[Edge]:
        projects = self.nodes(PROJECT, ids)
        users = self.nodes(USER, {node["user_id"] for node in projects.values() if "user_id" in node})
        for key, node in projects.items():
            if node.get("user_id") in users:
                yield Edge("OWNS", End(USER, node["user_id"]), End(PROJECT, key))

    def _of_patterns(self, ids: Collection[str]) -> Iterator[Edge]:
        patterns = [str(End(PATTERN, key)) for key in self.nodes(PATTERN, ids)]
        shown_by = self.links("target", patterns)
        yield from self._linked(shown_by, MEMORY)
        yield from self._linked(self.links("source", patterns), PROJECT)
        yield from self._discovered(shown_by)

    def _discovered(self, shown_by: Rows) -> Iterator[Edge]:
        """A pattern was discovered by the user whose memory shows it first."""
        pairs = {(End.parse(link["source"]).id, End.parse(link["target"])) for link in shown_by}
        memories = self.nodes(MEMORY, {memory for memory, _ in pairs})
        owned = {key: node for key, node in memories.items() if {"user_id", "created_at"} <= node.keys()}
        users = self.nodes(USER, {node["user_id"] for node in owned.values()})
        first: dict[End, str] = {}
        for memory, pattern in sorted(pairs, key=lambda pair: _moment(owned, pair[0])):
            if memory in owned:
                first.setdefault(pattern, owned[memory]["user_id"])
        for pattern, user in first.items():
            if user in users:
                yield Edge("DISCOVERED", End(USER, user), pattern)

    def _linked(self, links: Rows, label: str) -> Iterator[Edge]:
        """The relationships of links whose other end, which has this label, is there as well."""
        edges = [edge_of(link) for link in links]
        ends = {end.id for edge in edges for end in (edge.source, edge.target) if end.label == label}
        there = self.nodes(label, ends) if ends else {}
        for edge in edges:
            others = [end.id in there for end in (edge.source, edge.target) if end.label == label]
            if edge.type and others and all(others):
                yield edge


_COMPUTED: Mapping[str, Callable[[Graph, Collection[str]], Iterator[Edge]]] = {
    MEMORY: Graph._of_memories,
    PROJECT: Graph._of_projects,
    PATTERN: Graph._of_patterns,
}


def _is_global(node: Row) -> bool:
    return "user_id" in node and "global" in node.get("layer_assignments", ())


def _moment(owned: Nodes, memory: str) -> tuple[Any, ...]:
    return (False, owned[memory]["created_at"], memory) if memory in owned else (True, memory)
