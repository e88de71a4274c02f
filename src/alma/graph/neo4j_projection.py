"""Keep the nodes and relationships in Neo4j equal to the records of the store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from heapq import merge
from threading import Lock
from typing import Any, ClassVar

from alma.errors import ConfigurationError, StorageError
from alma.graph.neo4j_edges import ELEMENT_ID, EdgeDifferences, Graph, Rows
from alma.graph.neo4j_nodes import (
    KINDS,
    LABELS,
    LINK,
    MEMORY,
    PATTERN,
    PROJECT,
    USER,
    Edge,
    End,
    edge_of,
    link_node,
    links_of,
    node_of,
    owner_of,
)
from alma.graph.neo4j_schema import migrate
from alma.graph.neo4j_server import GraphServer, Result, Work
from alma.model.memory import MemoryRelationship, ProjectPattern
from alma.model.record import Record
from alma.model.secret import Secret
from alma.sync.projection import Change, Difference, Mismatch, Projection

_LOCK = "MERGE (l:AlmaLock {key: 'projection'}) SET l.turn = coalesce(l.turn, 0) + 1"
_CLEARED = 5_000
_PLACES = {
    MEMORY: ("user_id", "project_id", "session_id", "created_at"),
    PROJECT: ("user_id",),
    PATTERN: (),
    USER: (),
}
_LINKED: tuple[type[Record], ...] = (ProjectPattern, MemoryRelationship)
_STRAY = f"RETURN {ELEMENT_ID} AS id"
_UNNAMED = f"MATCH (n:{{}}) WHERE NOT coalesce(n.id STARTS WITH '', false) {_STRAY}"
_REPEATED = (
    f"MATCH (n:{{}}) WHERE n.id STARTS WITH '' WITH n.id AS key, collect({ELEMENT_ID}) AS same WHERE size(same) > 1 "
    "UNWIND same[1..] AS id RETURN id"
)
_PATTERNS, _RELATIONSHIPS = (owner_of(cls, "") for cls in _LINKED)
_STRAYS: Mapping[type[Record], tuple[str, ...]] = {
    **{cls: (_UNNAMED.format(label), _REPEATED.format(label)) for cls, label in LABELS.items() if label != PATTERN},
    ProjectPattern: (
        _UNNAMED.format(PATTERN),
        _REPEATED.format(PATTERN),
        f"MATCH (n:AlmaLink) WHERE n.owner STARTS WITH '{_PATTERNS}' "
        f"WITH n, substring(n.owner, {len(_PATTERNS)}) AS key "
        f"OPTIONAL MATCH (p:Pattern) WHERE p.id = key WITH n, p WHERE p IS NULL {_STRAY}",
    ),
    MemoryRelationship: (
        f"MATCH (n:AlmaLink) WHERE NOT coalesce(n.owner STARTS WITH '{_PATTERNS}' "
        f"OR n.owner STARTS WITH '{_RELATIONSHIPS}', false) {_STRAY}",
    ),
}
"""Entries without a record: nodes without an id or with that of another, links without an owner or its node."""
Affected = Mapping[str, set[str]]


class Neo4jProjection(Projection):
    """Memories, projects, patterns and users as nodes, and the documented relationships between them.

    One database holds the graph of one store. Deleted and archived memories are left out of it.
    """

    name: ClassVar[str] = "neo4j"
    kinds: ClassVar[tuple[type[Record], ...]] = KINDS

    def __init__(
        self,
        uri: str,
        username: str = "neo4j",
        password: str | Secret = "",
        database: str | None = None,
        timeout_seconds: float = 30.0,
    ) -> None:
        self._server = GraphServer(uri, username, password, database, timeout_seconds)
        self._writing = Lock()
        self._is_prepared = False
        # What no record explains, listed when the first page of a kind is read.
        self._strays: dict[type[Record], list[str]] = {}

    def ping(self) -> None:
        with _as_storage_error():
            self._server.ping()

    def prepare(self) -> None:
        with _as_storage_error():
            migrate(self._server)
        self._is_prepared = True

    def apply(self, changes: Sequence[Change]) -> None:
        if not self._is_prepared:
            self.prepare()

        def write(tx: Any) -> None:
            graph = Graph(tx)
            # Relationships are computed from what other transactions write, so these take turns.
            graph.run(_LOCK)
            _apply(graph, changes)

        with self._writing, _as_storage_error():
            self._server.write(write)

    def compare(self, expected: Sequence[Change]) -> list[Mismatch]:
        return self._read(lambda tx: list(_mismatches(Graph(tx), expected)))

    def held(self, cls: type[Record], after: str | None, limit: int) -> list[str]:
        if after is None or cls not in self._strays:
            self._strays[cls] = self._listed_strays(cls)
        match, prefix = _named(cls)
        query = f"{match} RETURN id ORDER BY id LIMIT {int(limit)}"
        rows = self._read(lambda tx: Graph(tx).run(query, prefix=prefix, after=prefix + (after or "")))
        named = [row["id"].removeprefix(prefix) for row in rows]
        end = named[-1] if len(named) == limit else None
        strays = [key for key in self._strays[cls] if key > (after or "") and (end is None or key < end)]
        if strays:
            # What was listed may be deleted by now.
            strays = sorted({*strays}.intersection(self._listed_strays(cls)))
        return list(merge(named, strays))[:limit]

    def count(self, cls: type[Record]) -> int:
        match, prefix = _named(cls)
        query = f"{match} RETURN count(id) AS number"
        rows = self._read(lambda tx: Graph(tx).run(query, prefix=prefix, after=prefix))
        return int(rows[0]["number"]) + len(self._listed_strays(cls))

    def _listed_strays(self, cls: type[Record]) -> list[str]:
        """The nodes that have no id of a record of their own, by an id of the server's."""
        return self._read(lambda tx: sorted(key for query in _STRAYS[cls] for key in Graph(tx).ids(query)))

    def clear(self) -> None:
        for label in (*LABELS.values(), LINK):
            query = f"MATCH (n:{label}) WITH n LIMIT {_CLEARED} DETACH DELETE n RETURN count(*) AS number"
            with self._writing, _as_storage_error():
                while self._server.write(lambda tx, query=query: Graph(tx).run(query))[0]["number"]:  # type: ignore[misc]
                    pass

    def close(self) -> None:
        self._server.close()

    def _read(self, work: Work[Result]) -> Result:
        with _as_storage_error():
            return self._server.read(work)


def _named(cls: type[Record]) -> tuple[str, str]:
    """The query for the ids of the records that have nodes or links, and what stands before them."""
    if cls in LABELS:
        return f"MATCH (n:{LABELS[cls]}) WHERE n.id > $after WITH DISTINCT n.id AS id", ""
    match = "MATCH (n:AlmaLink) WHERE n.owner STARTS WITH $prefix AND n.owner > $after WITH DISTINCT n.owner AS id"
    return match, owner_of(cls, "")


@contextmanager
def _as_storage_error() -> Iterator[None]:
    """A refused password stops the projection, not the relay."""
    try:
        yield
    except ConfigurationError as exc:
        raise StorageError(str(exc)) from exc


# ---------------------------------------------------------------------- applying


def _apply(graph: Graph, changes: Sequence[Change]) -> None:
    wanted = {label: _nodes(changes, label) for label in LABELS.values()}
    before = {label: graph.nodes(label, nodes) for label, nodes in wanted.items() if nodes}
    moved = {label: {k for k in wanted[label] if wanted[label][k] != before[label].get(k)} for label in before}
    shifted = {
        label: {
            key for key in moved[label] if _place(label, wanted[label][key]) != _place(label, before[label].get(key))
        }
        for label in before
    }
    affected: defaultdict[str, set[str]] = defaultdict(set)
    for each in changes:
        _add(affected, {MEMORY: graph.remove_element(each.record_id)})
    for label in before:
        affected[label] |= wanted[label].keys()
    _add(affected, _around(graph, shifted))
    for label in before:
        graph.remove(label, [key for key in before[label] if wanted[label][key] is None])
        graph.put(label, [node for key in moved[label] if (node := wanted[label][key]) is not None])
    _add(affected, _write_links(graph, [each for each in changes if each.cls in _LINKED]))
    _add(affected, _around(graph, shifted))
    for label in (PROJECT, MEMORY, PATTERN):
        graph.settle(label, affected[label])


def _place(label: str, node: Mapping[str, Any] | None) -> tuple[Any, ...] | None:
    """The fields that relationships of other nodes depend on."""
    return None if node is None else tuple(node.get(name) for name in _PLACES[label])


def _nodes(changes: Sequence[Change], label: str) -> dict[str, dict[str, Any] | None]:
    return {each.record_id: node_of(each.record) for each in changes if LABELS.get(each.cls) == label}


def _add(affected: defaultdict[str, set[str]], more: Affected) -> None:
    for label, ids in more.items():
        affected[label] |= ids


def _write_links(graph: Graph, changes: Sequence[Change]) -> Affected:
    """Write the links of these records; returns the owners of the relationships that they describe."""
    wanted = _links(changes)
    known = graph.links("owner", (owner_of(each.cls, each.record_id) for each in changes))
    there = {link["key"]: link for link in known}
    graph.remove_links((link["owner"] for link in known if link["key"] not in wanted), wanted)
    graph.put(LINK, [link for key, link in wanted.items() if there.get(key) != link], "key")
    return _owners([*known, *wanted.values()])


def _links(changes: Iterable[Change]) -> dict[str, dict[str, Any]]:
    """The links that records say, by key."""
    made = (link_node(owner_of(each.cls, each.record_id), edge) for each in changes for edge in links_of(each.record))
    return {link["key"]: link for link in made}


def _owners(links: Iterable[Mapping[str, Any]]) -> Affected:
    """The nodes that own the relationships of links: the pattern, else the memory they start from."""
    owners: defaultdict[str, set[str]] = defaultdict(set)
    for link in links:
        ends = End.parse(link["source"]), End.parse(link["target"])
        owner = next((end for end in ends if end.label == PATTERN), ends[0])
        owners[owner.label].add(owner.id)
    return owners


def _around(graph: Graph, shifted: Affected) -> Affected:
    """The nodes whose relationships depend on these nodes."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for label, depends in _DEPENDS.items():
        if shifted.get(label):
            _add(found, depends(graph, shifted[label]))
    return found


def _around_memories(graph: Graph, ids: Collection[str]) -> Affected:
    ends = [str(End(MEMORY, key)) for key in ids]
    owners = _owners([*graph.links("source", ends), *graph.links("target", ends)])
    return {**owners, MEMORY: owners.get(MEMORY, set()) | graph.before(ids)}


def _around_projects(graph: Graph, ids: Collection[str]) -> Affected:
    given = {"ids": list(ids)}
    memories = graph.ids("MATCH (m:Memory) WHERE m.project_id IN $ids RETURN m.id AS id", **given)
    memories |= graph.ids("MATCH (m:Memory)-[:APPLIES_TO]->(p:Project) WHERE p.id IN $ids RETURN m.id AS id", **given)
    users = {node["user_id"] for node in graph.nodes(PROJECT, ids).values() if "user_id" in node}
    memories |= graph.ids(
        "MATCH (m:Memory) WHERE m.user_id IN $users AND 'global' IN m.layer_assignments RETURN m.id AS id",
        users=list(users),
    )
    owners = _owners(graph.links("target", (str(End(PROJECT, key)) for key in ids)))
    return {MEMORY: memories, PATTERN: owners.get(PATTERN, set())}


def _around_users(graph: Graph, ids: Collection[str]) -> Affected:
    given = {"ids": list(ids)}
    memories = graph.ids("MATCH (m:Memory) WHERE m.user_id IN $ids RETURN m.id AS id", **given)
    projects = graph.ids("MATCH (p:Project) WHERE p.user_id IN $ids RETURN p.id AS id", **given)
    patterns = _owners(graph.links("source", (str(End(MEMORY, key)) for key in memories))).get(PATTERN, set())
    return {MEMORY: memories, PROJECT: projects, PATTERN: patterns}


_DEPENDS: Mapping[str, Callable[[Graph, Collection[str]], Affected]] = {
    MEMORY: _around_memories,
    PROJECT: _around_projects,
    USER: _around_users,
}

# ---------------------------------------------------------------------- comparing


def _mismatches(graph: Graph, expected: Sequence[Change]) -> Iterator[Mismatch]:
    for cls, label in LABELS.items():
        changes = [each for each in expected if each.cls is cls]
        if changes:
            yield from _compared_nodes(graph, label, changes)
    changes = [each for each in expected if each.cls is MemoryRelationship]
    if changes:
        yield from _compared_links(graph, changes)


def _compared_nodes(graph: Graph, label: str, changes: Sequence[Change]) -> Iterator[Mismatch]:
    wanted = _nodes(changes, label)
    held = graph.nodes(label, wanted)
    edges = _edge_details(graph, label, held.keys())
    links = _link_details(graph, changes) if label == PATTERN else {}
    for key, node in wanted.items():
        found = _difference(node, held.get(key))
        details = [*links.get(key, ()), *edges.get(key, ())]
        if found is None and node is not None and details:
            found = Difference.CORRUPTED, "; ".join(details[:3])
        if found is not None:
            yield Mismatch(key, *found)


def _difference(node: Mapping[str, Any] | None, held: Mapping[str, Any] | None) -> tuple[Difference, str] | None:
    if node == held:
        return None
    if held is None or node is None:
        return (
            (Difference.MISSING, "it is not there") if held is None else (Difference.ORPHANED, "it must not be there")
        )
    names = sorted(name for name in {*node, *held} if node.get(name) != held.get(name))
    is_older = "updated_at" in node and node["updated_at"] != held.get("updated_at")
    return Difference.STALE if is_older else Difference.CORRUPTED, f"other values of {', '.join(names)}"


def _edge_details(graph: Graph, label: str, ids: Collection[str]) -> Mapping[str, list[str]]:
    """Mismatches of the relationships that these nodes own, except stated relationships."""
    if label == USER or not ids:
        return {}
    found = graph.differences(label, ids)
    details: defaultdict[str, list[str]] = defaultdict(list)
    for text, edge in _described(found):
        if "id" not in edge.properties or text.startswith("has"):
            details[_owner(label, edge)].append(text)
    return details


def _owner(label: str, edge: Edge) -> str:
    return edge.source.id if edge.source.label == label else edge.target.id


def _described(found: EdgeDifferences) -> Iterator[tuple[str, Edge]]:
    yield from ((f"lacks {edge}", edge) for edge in found.missing)
    yield from ((f"other values of {edge}", edge) for _, edge in found.changed)
    yield from ((f"has {held.edge}, which nothing says", held.edge) for held in found.surplus)


def _link_details(graph: Graph, changes: Sequence[Change]) -> Mapping[str, list[str]]:
    """Mismatches of the links of these records, by record."""
    details: defaultdict[str, list[str]] = defaultdict(list)
    wanted, held = _links(changes), _held_links(graph, changes)
    for key in {*wanted, *held}:
        if wanted.get(key) != held.get(key):
            link = wanted.get(key) or held[key]
            details[link["owner"].partition(":")[2]].append(f"the link of {edge_of(link)} is not as stored")
    return details


def _held_links(graph: Graph, changes: Sequence[Change]) -> dict[str, dict[str, Any]]:
    links: Rows = graph.links("owner", (owner_of(each.cls, each.record_id) for each in changes))
    return {link["key"]: link for link in links}


def _compared_links(graph: Graph, changes: Sequence[Change]) -> Iterator[Mismatch]:
    wanted, held = _links(changes), _held_links(graph, changes)
    by_owner = {each.record_id: owner_of(each.cls, each.record_id) for each in changes}
    sources = _owners([*wanted.values(), *held.values()]).get(MEMORY, set())
    edges = {edge.properties.get("id"): text for text, edge in _described(graph.differences(MEMORY, sources))}
    for key, owner in by_owner.items():
        mine, theirs = ([x for x in links.values() if x["owner"] == owner] for links in (wanted, held))
        others = (x for x in theirs if x not in mine)
        found = None if mine == theirs else _difference(next(iter(mine), None), next(others, None))
        if found is None and mine and key in edges:
            lacks = edges[key].startswith("lacks")
            found = Difference.MISSING if lacks else Difference.CORRUPTED, edges[key]
        if found is not None:
            yield Mismatch(key, *found)
