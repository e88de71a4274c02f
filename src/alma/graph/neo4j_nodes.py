"""The nodes and relationships that records make in Neo4j."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, NamedTuple

from alma.graph.base import digest
from alma.lazy import lazy_regex
from alma.model.memory import Memory, MemoryRelationship, ProjectPattern
from alma.model.record import Record
from alma.model.relations import Relation
from alma.model.workspace import Project, User

MEMORY, PROJECT, PATTERN, USER, LINK = "Memory", "Project", "Pattern", "User", "AlmaLink"
TIME_WINDOW = "1 hour"
_CUSTOM = "RELATED_TO"
_TYPE = lazy_regex(r"[A-Z][A-Z0-9_]{0,63}")
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class End(NamedTuple):
    """A node that a relationship starts from or leads to."""

    label: str
    id: str

    def __str__(self) -> str:
        return f"{self.label}:{self.id}"

    @classmethod
    def parse(cls, text: str) -> End:
        label, _, key = text.partition(":")
        return cls(label, key)


@dataclass(frozen=True, slots=True)
class Edge:
    """A relationship in the graph; `id` among its properties is that of the stored relationship it was made from."""

    type: str
    source: End
    target: End
    properties: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, End, End, Any]:
        return self.type, self.source, self.target, self.properties.get("id")

    def __str__(self) -> str:
        return f"{self.type} from {self.source} to {self.target}"


Value = str | Callable[[Any], Any]
"""The name of a field, or a function of the record."""


def _layers(memory: Memory) -> list[str]:
    return [name for name in ("session", "project", "global", "temporal") if getattr(memory, f"layer_{name}")]


def _same(*names: str) -> dict[str, Value]:
    return {name: name for name in names}


_NODES: Mapping[type[Record], tuple[str, Mapping[str, Value]]] = {
    User: (USER, _same("id", "username", "created_at")),
    Project: (PROJECT, _same("id", "user_id", "name", "project_type", "language", "framework", "created_at")),
    Memory: (
        MEMORY,
        {
            **_same("id", "user_id", "project_id", "session_id", "title", "memory_type", "category"),
            **_same("importance_score", "created_at", "updated_at"),
            "layer_assignments": _layers,
        },
    ),
    ProjectPattern: (
        PATTERN,
        {
            **_same("id", "pattern_type", "pattern_name", "success_rate", "usage_count", "created_at"),
            "description": "pattern_description",
        },
    ),
}
KINDS: tuple[type[Record], ...] = (*_NODES, MemoryRelationship)
LABELS: Mapping[type[Record], str] = {cls: label for cls, (label, _) in _NODES.items()}


def node_of(record: Record | None) -> dict[str, Any] | None:
    """The properties of a record's node; None for what has no node, as deleted and archived memories."""
    if record is None or (isinstance(record, Memory) and (record.is_archived or not record.is_active)):
        return None
    _, properties = _NODES[type(record)]
    return _present((name, _value(record, value)) for name, value in properties.items())


def links_of(record: Record | None) -> list[Edge]:
    """The relationships that a record says; each is in the graph while both of its ends are."""
    if isinstance(record, MemoryRelationship):
        return [_stated(record)]
    return list(_shown(record)) if isinstance(record, ProjectPattern) else []


# ---------------------------------------------------------------------- stated relationships


def edge_type(relation: str) -> str:
    """The type of a relation: its name in capitals, or RELATED_TO if that is not a plain identifier."""
    name = relation.upper()
    return name if _TYPE.fullmatch(name) else _CUSTOM


def _sequence(edge: MemoryRelationship) -> int:
    said = edge.metadata.get("sequence")
    return said if isinstance(said, int) and not isinstance(said, bool) else 1


def _reason(edge: MemoryRelationship) -> str:
    evidence = edge.metadata.get("evidence")
    found = [each.get("detail") for each in evidence if isinstance(each, dict)] if isinstance(evidence, list) else []
    return edge.context or next((text for text in found if isinstance(text, str) and text), "stated")


_DOCUMENTED: Mapping[str, tuple[str, Value]] = {
    Relation.CONTRADICTS: ("discovered_at", "created_at"),
    Relation.BUILDS_ON: ("sequence", _sequence),
    Relation.RESOLVES: ("resolution_date", lambda edge: edge.created_at.date()),
    Relation.SUPERSEDES: ("reason", _reason),
}
STATED_TYPES = frozenset(edge_type(relation) for relation in Relation) | {_CUSTOM}


def _stated(edge: MemoryRelationship) -> Edge:
    values: dict[str, Value] = {
        **_same("id", "strength", "context", "auto_detected", "created_by"),
        "relation": "relationship_type",
    }
    values |= dict([_DOCUMENTED[edge.relationship_type]] if edge.relationship_type in _DOCUMENTED else [])
    ends = End(MEMORY, edge.from_memory_id), End(MEMORY, edge.to_memory_id)
    return Edge(
        edge_type(edge.relationship_type), *ends, _present((name, _value(edge, each)) for name, each in values.items())
    )


# ---------------------------------------------------------------------- patterns


def _shown(pattern: ProjectPattern) -> Iterable[Edge]:
    this, project = End(PATTERN, pattern.id), End(PROJECT, pattern.project_id)
    succeeded = pattern.success_rate >= 0.5
    yield Edge("USED_IN", this, project, {"success": succeeded, "date": pattern.last_used_at.date()})
    if not succeeded:
        yield Edge("FAILED_IN", this, project, {"reason": _failure(pattern)})
    failed = _failed(pattern)
    for memory in dict.fromkeys(pattern.memory_ids):
        yield Edge("DEMONSTRATES", End(MEMORY, memory), this)
        if memory in failed:
            yield Edge("CONTRADICTS_PATTERN", End(MEMORY, memory), this, {"reason": _failure(pattern)})
        else:
            yield Edge("VALIDATES", End(MEMORY, memory), this, {"outcome": "success"})


def _failed(pattern: ProjectPattern) -> frozenset[str]:
    """The memories in which the pattern did not work; without a list of them, all or none by its success rate."""
    said = pattern.pattern_data_json.get("failed_ids")
    if isinstance(said, list):
        return frozenset(each for each in said if isinstance(each, str))
    return frozenset(pattern.memory_ids) if pattern.success_rate < 0.5 else frozenset()


def _failure(pattern: ProjectPattern) -> str:
    said = pattern.pattern_data_json.get("reason")
    if isinstance(said, str) and said:
        return said
    return f"succeeded in {pattern.success_rate:.0%} of {pattern.usage_count:,} uses"


# ---------------------------------------------------------------------- links and values


def link_node(owner: str, edge: Edge) -> dict[str, Any]:
    """The node that remembers a relationship, also while one of its ends is not there."""
    ends = {"source": str(edge.source), "target": str(edge.target), "type": edge.type}
    return {**edge.properties, **ends, "owner": owner, "key": digest(owner, *ends.values())}


def edge_of(link: Mapping[str, Any]) -> Edge:
    """The relationship that a link node remembers."""
    properties = {
        name: value for name, value in link.items() if name not in ("source", "target", "type", "owner", "key")
    }
    return Edge(link["type"], End.parse(link["source"]), End.parse(link["target"]), properties)


def owner_of(cls: type[Record], record_id: str) -> str:
    """The owner of the links of a record."""
    return f"{cls.spec.kind}:{record_id}"


def native(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Properties as the driver returns them, with Python's own times in UTC."""
    return {name: _native(value) for name, value in properties.items()}


def _native(value: Any) -> Any:
    made = value.to_native() if hasattr(value, "to_native") else value
    if isinstance(made, datetime):
        # Not every server keeps the time zone, and all times are written in UTC.
        return made.replace(tzinfo=UTC) if made.tzinfo is None else made.astimezone(UTC)
    return made


def _value(record: Record, value: Value) -> Any:
    found = getattr(record, value) if isinstance(value, str) else value(record)
    return found.astimezone(UTC) if isinstance(found, datetime) else found


def _present(items: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in items if value is not None}
