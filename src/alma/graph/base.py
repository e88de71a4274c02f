"""The graph port: entities, relationships, the contract of graph stores, and what the stores share."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, TypeVar, get_args

from alma.clock import now
from alma.closeable import Closeable
from alma.errors import ValidationError
from alma.lazy import lazy_regex
from alma.model.common import checked_name, checked_part, checked_whole
from alma.model.fields import JsonObject, Refused, check_float, check_json_object, check_timestamp
from alma.redaction.nested import Masked, Redacted, redacted_value
from alma.redaction.redactor import DEFAULT_REDACTOR
from alma.text.tokens import query_terms, terms

Direction = Literal["out", "in", "both"]
# The names in alma-memory.
_DIRECTION_ALIASES: dict[str, Direction] = {"outgoing": "out", "incoming": "in"}
DEFAULT_PROJECT = "default"
_TYPE = lazy_regex(r"[^\W\d][\w .:/-]{0,63}")
_MAX_HOPS = 20
_MAX_ENTITIES = 10_000


@dataclass(frozen=True, slots=True)
class Entity:
    """Something that text mentions: a person, a company, a file, an idea."""

    id: str
    name: str
    entity_type: str
    properties: JsonObject = field(default_factory=dict)
    created_at: datetime = field(default_factory=now)

    def __post_init__(self) -> None:
        checked_name("entity", "id", self.id)
        object.__setattr__(self, "name", " ".join(checked_name("entity", "name", self.name).split()))
        _check_type("entity", "entity_type", self.entity_type)
        _check_common("entity", self)

    @classmethod
    def named(cls, name: str, entity_type: str, properties: Mapping[str, object] | None = None) -> Entity:
        """The entity with an id computed from type and name, so that every extraction gives the same id."""
        return cls(entity_id(entity_type, name), name, entity_type, dict(properties or {}))


@dataclass(frozen=True, slots=True)
class Relationship:
    """A directed relationship from a source to a target entity."""

    id: str
    source_id: str
    target_id: str
    relation_type: str
    properties: JsonObject = field(default_factory=dict)
    confidence: float = 1.0
    created_at: datetime = field(default_factory=now)

    def __post_init__(self) -> None:
        for name in ("id", "source_id", "target_id"):
            checked_name("relationship", name, getattr(self, name))
        _check_type("relationship", "relation_type", self.relation_type)
        if self.source_id == self.target_id:
            raise self_loop(self.source_id)
        object.__setattr__(self, "confidence", _checked_share("relationship", "confidence", self.confidence))
        _check_common("relationship", self)

    @classmethod
    def between(
        cls,
        source: Entity,
        target: Entity,
        relation_type: str,
        properties: Mapping[str, object] | None = None,
        confidence: float = 1.0,
    ) -> Relationship:
        """The relationship with an id computed from its ends and type."""
        made = digest(source.id, target.id, type_key(relation_type))
        return cls(made, source.id, target.id, relation_type, dict(properties or {}), confidence)


@dataclass(frozen=True, slots=True)
class GraphQuery:
    """A query: where to start, which relationships to follow, how far, and the limit.

    It starts at the entities with one of the names (as `find_entities` matches them) and one of the types; an empty
    list matches all. With `max_hops` 0 only these are returned.
    """

    names: Sequence[str] = ()
    entity_types: Sequence[str] = ()
    relation_types: Sequence[str] = ()
    max_hops: int = 1
    limit: int = 100
    direction: str = "both"
    min_confidence: float = 0.0

    def __post_init__(self) -> None:
        for name in ("names", "entity_types", "relation_types"):
            object.__setattr__(self, name, _checked_names("query", name, getattr(self, name)))
        checked_whole("query", "max_hops", self.max_hops, 0, _MAX_HOPS)
        checked_whole("query", "limit", self.limit, 0, _MAX_ENTITIES)
        object.__setattr__(self, "direction", checked_direction(self.direction))
        object.__setattr__(self, "min_confidence", _checked_share("query", "min_confidence", self.min_confidence))


@dataclass(frozen=True, slots=True)
class GraphResult:
    """The entities that were reached, nearest first, and the relationships between them.

    `paths` has for each entity the shortest path of ids from a start to itself.
    """

    entities: tuple[Entity, ...] = ()
    relationships: tuple[Relationship, ...] = ()
    paths: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.entities)


class GraphStore(Closeable):
    """Stores the entities and relationships of a project; projects are isolated from each other.

    * **One entity for each name of a type.** "Alice" and " alice" of type person are the same: the first id and
      spelling are kept, later properties are added and win where both have a key, and the later id becomes an alias. So
      the order of entities and their ids do not matter. Adding an entity with a known id changes the name, type and
      properties of that entity, unless another entity has the name (`UniquenessError`).
    * **One relationship of a type** connects two entities in one direction: added again, properties are merged as above
      and the higher confidence is kept. An id names one relationship (`UniquenessError`). An entity has no relationship
      to itself (`ValidationError`), not even by an alias, and both ends must exist (`NotFoundError`).
    * **Types and names are compared without case**; white space counts as one space.
    * **Deleting an entity** deletes its relationships and its ids with it, in one step.
    * **Results are ordered** by distance, then name, then id.
    * Concurrent writers in threads and processes lose no updates.

    A graph does not decide what is true, and does not forget.
    """

    # ------------------------------------------------------------------ implemented by stores

    @abstractmethod
    def add_entity(self, entity: Entity) -> str:
        """Store an entity, or merge it into the one with its name; returns the effective id."""

    @abstractmethod
    def add_relationship(self, relationship: Relationship) -> str:
        """Store a relationship, or merge it into the stored one; returns the effective id."""

    @abstractmethod
    def get_entities(self, entity_ids: Iterable[str]) -> list[Entity]:
        """The entities with these ids, in the given order, each once; missing ones are left out."""

    @abstractmethod
    def find_entities(self, name: str | None = None, entity_type: str | None = None, limit: int = 10) -> list[Entity]:
        """The entities with this name, then those whose names contain all of its words, shorter names first.

        Without a name: those of the type, by name. Words are compared as in full-text search, without English endings.
        """

    @abstractmethod
    def edges(
        self, entity_ids: Iterable[str], direction: Direction = "both", relation_types: Sequence[str] = ()
    ) -> list[Relationship]:
        """The relationships of these entities in this direction, by id; without types, of all types.

        The ids must be effective ids, as entities have them.
        """

    @abstractmethod
    def delete_entity(self, entity_id: str) -> bool:
        """Delete an entity with its relationships; returns whether there was one."""

    @abstractmethod
    def delete_relationship(self, relationship_id: str) -> bool:
        """Delete a relationship; returns whether there was one."""

    @abstractmethod
    def close(self) -> None:
        """Release what the graph opened; closing twice has no effect."""

    # ------------------------------------------------------------------ shared by all stores

    def get_entity(self, entity_id: str) -> Entity | None:
        """The entity with this id, or with an id that was merged into it."""
        found = self.get_entities([checked_id("entity", entity_id)])
        return found[0] if found else None

    def get_relationships(
        self, entity_id: str, direction: str = "both", relation_type: str | None = None
    ) -> list[Relationship]:
        """The relationships of one entity: outgoing ("out"), incoming ("in") or both."""
        if relation_type is not None:
            _check_text("query", "relation_type", relation_type)
        way, entity = checked_direction(direction), self.get_entity(entity_id)
        if entity is None:
            return []
        return self.edges([entity.id], way, () if relation_type is None else (relation_type,))

    def traverse(
        self,
        start_entity_id: str,
        max_hops: int = 2,
        relation_types: Sequence[str] = (),
        direction: str = "both",
        limit: int = 100,
    ) -> GraphResult:
        """Everything reachable from an entity within this number of hops, the entity itself first."""
        steps = GraphQuery((), (), relation_types or (), max_hops, limit, direction)
        start = self.get_entity(start_entity_id)
        return GraphResult() if start is None else self._reached([start], steps)

    def query(self, query: GraphQuery) -> GraphResult:
        """The result of a query."""
        checked_part("query", None, query, GraphQuery, "a GraphQuery, as GraphQuery(names=['Alice'])")
        return self._reached(self._starts(query), query)

    def _starts(self, query: GraphQuery) -> list[Entity]:
        names: Sequence[str | None] = query.names or (None,)
        types: Sequence[str | None] = query.entity_types or (None,)
        found = [e for name in names for kind in types for e in self.find_entities(name, kind, query.limit)]
        return list({entity.id: entity for entity in found}.values())[: query.limit]

    def _reached(self, starts: Sequence[Entity], query: GraphQuery) -> GraphResult:
        """Breadth-first search with one read per hop, so that all stores give the same answer."""
        found = {entity.id: entity for entity in starts[: query.limit]}
        paths: dict[str, tuple[str, ...]] = {key: (key,) for key in found}
        followed: dict[str, Relationship] = {}
        frontier = list(found)
        for _ in range(query.max_hops):
            edges = [e for e in self._followed(frontier, query) if e.id not in followed]
            followed.update((edge.id, edge) for edge in edges)
            fresh = self._beyond(edges, frontier, paths)[: query.limit - len(found)]
            if not fresh:
                break
            found.update((entity.id, entity) for entity in fresh)
            frontier = [entity.id for entity in fresh]
        inside = [edge for edge in followed.values() if edge.source_id in found and edge.target_id in found]
        inside.sort(key=lambda edge: (edge.source_id, edge.target_id, edge.relation_type))
        return GraphResult(tuple(found.values()), tuple(inside), {key: paths[key] for key in found})

    def _followed(self, frontier: Sequence[str], query: GraphQuery) -> list[Relationship]:
        if not frontier:
            return []
        edges = self.edges(frontier, checked_direction(query.direction), query.relation_types)
        return [edge for edge in edges if edge.confidence >= query.min_confidence]

    def _beyond(
        self, edges: Sequence[Relationship], frontier: Sequence[str], paths: dict[str, tuple[str, ...]]
    ) -> list[Entity]:
        """The entities at the far ends that were not reached before, in order; notes their paths."""
        here = set(frontier)
        for edge in sorted(edges, key=lambda edge: (edge.source_id, edge.target_id)):
            for near, far in ((edge.source_id, edge.target_id), (edge.target_id, edge.source_id)):
                if near in here and far not in paths:
                    paths[far] = (*paths[near], far)
        new = [key for key, path in paths.items() if len(path) > 1 and path[-2] in here and key not in here]
        return sorted(self.get_entities(new), key=lambda entity: (name_key(entity.name), entity.id))


# ---------------------------------------------------------------------- shared by adapters


def self_loop(entity_id: str) -> ValidationError:
    """The error for a relationship from an entity to itself."""
    return ValidationError("relationship", "source_id", entity_id, "must differ from target_id")


def check_search(name: str | None, entity_type: str | None, limit: int) -> None:
    """Validate the arguments of a search for entities."""
    for argument, value in (("name", name), ("entity_type", entity_type)):
        if value is not None:
            _check_text("query", argument, value)
    checked_whole("query", "limit", limit, 0, _MAX_ENTITIES)


def checked_entity(given: Entity) -> Entity:
    """The argument, if it is an Entity."""
    return checked_part("entity", None, given, Entity, "an Entity, as Entity(id=…, name=…, entity_type=…)")


def checked_relationship(given: Relationship) -> Relationship:
    """The argument, if it is a Relationship."""
    hint = "a Relationship, as Relationship(id=…, source_id=…, target_id=…, relation_type=…)"
    return checked_part("relationship", None, given, Relationship, hint)


def checked_id(subject: str, given: str) -> str:
    """The argument, if it is a valid id."""
    return checked_name(subject, "id", given)


def _check_text(subject: str, name: str, value: object) -> None:
    if not isinstance(value, str):
        raise ValidationError(subject, name, value, "must be text")


def _check_type(subject: str, name: str, value: object) -> None:
    if not isinstance(value, str) or not _TYPE.fullmatch(value):
        reason = "must begin with a letter and have up to 64 letters, digits, spaces or _ . : / -"
        raise ValidationError(subject, name, value, reason)


def _check_common(subject: str, value: Entity | Relationship) -> None:
    for name, check in (("properties", check_json_object), ("created_at", check_timestamp)):
        try:
            object.__setattr__(value, name, check(getattr(value, name)))
        except Refused as exc:
            raise ValidationError(subject, name, getattr(value, name), str(exc)) from None


def _checked_share(subject: str, name: str, value: object) -> float:
    try:
        number = check_float(value)
    except Refused as exc:
        raise ValidationError(subject, name, value, str(exc)) from None
    if not 0 <= number <= 1:
        raise ValidationError(subject, name, value, "must be between 0 and 1")
    return number


def _checked_names(subject: str, name: str, values: object) -> tuple[str, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ValidationError(subject, name, values, "must be a list of names")
    return tuple(checked_name(subject, name, value) for value in values)


def checked_direction(value: str) -> Direction:
    """The direction, by any of its names."""
    for known in get_args(Direction):
        if value == known or (isinstance(value, str) and _DIRECTION_ALIASES.get(value) == known):
            chosen: Direction = known
            return chosen
    raise ValidationError("query", "direction", value, "must be 'out', 'in' or 'both'")


def digest(*parts: str) -> str:
    """An id computed from the parts."""
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:32]


def entity_id(entity_type: str, name: str) -> str:
    """The id of an entity, computed from type and name."""
    return digest(type_key(entity_type), name_key(name))


def name_key(name: str) -> str:
    """The normalized form of a name: names with the same key are the same."""
    folded = " ".join(unicodedata.normalize("NFKC", name).casefold().split())
    return folded if 0 < len(folded) <= 200 else digest(name)


def type_key(name: str) -> str:
    """The normalized form of a type: types with the same key are the same."""
    return "_".join(re.split(r"[\s_]+", name.casefold().strip()))


Redact = Callable[[str, str], str]
"""Masks secrets in a text; the second argument is the name of the field."""

Kept = TypeVar("Kept", Entity, Relationship)


def masked(text: str, name: str) -> str:
    """Mask secrets as ingest does by default."""
    return DEFAULT_REDACTOR.redact(text, name).text


def merged_entity(kept: Entity, added: Entity) -> Entity:
    """The stored entity with the properties of the added one."""
    return replace(kept, properties={**kept.properties, **added.properties})


def merged_relationship(kept: Relationship, added: Relationship) -> Relationship:
    """The stored relationship with the properties and the higher confidence."""
    united = {**kept.properties, **added.properties}
    return replace(kept, properties=united, confidence=max(kept.confidence, added.confidence))


def entity_order(entity: Entity) -> tuple[str, str]:
    """By name, then by id."""
    return name_key(entity.name), entity.id


def without_secrets(value: Kept, redact: Redact | None) -> Kept:
    """The entity or relationship with its secrets masked."""
    if not isinstance(value, Entity | Relationship):
        raise ValidationError("graph", None, value, "must be an Entity or a Relationship")
    if redact is None:
        return value
    clean = replace(value, properties=redacted_value(value.properties, "", "", _reporting(redact), []))
    if isinstance(clean, Entity):
        return replace(clean, name=redact(clean.name, "name"), entity_type=redact(clean.entity_type, "type"))
    return replace(clean, relation_type=redact(clean.relation_type, "type"))


def _reporting(redact: Redact) -> Callable[[str, str], Redacted]:
    """Adapt `redact` to the interface of `redacted_value`."""

    def redacted(text: str, name: str) -> Redacted:
        clean = redact(text, name)
        return Redacted(clean, () if clean == text else (Masked("secret", name),))

    return redacted


def best_named(candidates: Iterable[Entity], name: str, limit: int) -> list[Entity]:
    """The entities with this name, then those whose names contain all of its words, shorter names first."""
    key, wanted = name_key(name), set(query_terms(name))
    fitting = [e for e in candidates if name_key(e.name) == key or (wanted and wanted <= set(terms(e.name)))]
    fitting.sort(key=lambda e: (name_key(e.name) != key, len(e.name), *entity_order(e)))
    return fitting[:limit]
