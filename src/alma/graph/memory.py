"""A graph in the memory of this process, for tests and temporary data."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace

from alma.errors import NotFoundError, UniquenessError
from alma.graph.base import (
    Direction,
    Entity,
    GraphStore,
    Relationship,
    best_named,
    check_search,
    checked_entity,
    checked_id,
    checked_relationship,
    entity_order,
    merged_entity,
    merged_relationship,
    name_key,
    self_loop,
    type_key,
)

_Name = tuple[str, str]
_Edge = tuple[str, str, str]


class InMemoryGraph(GraphStore):
    """A graph store of dictionaries behind a lock."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._entities: dict[str, Entity] = {}
        self._named: dict[_Name, str] = {}
        self._effective_id: dict[str, str] = {}
        self._edges: dict[_Edge, Relationship] = {}
        self._edge_of: dict[str, _Edge] = {}
        self._edges_of: dict[str, set[_Edge]] = {}

    def add_entity(self, entity: Entity) -> str:
        checked_entity(entity)
        with self._lock:
            known = self._effective_id.get(entity.id)
            if known is not None:
                return self._changed(self._entities[known], entity)
            same = self._named.get(_name(entity))
            if same is None:
                self._entities[entity.id] = entity
                self._named[_name(entity)] = self._effective_id[entity.id] = entity.id
                return entity.id
            self._entities[same] = merged_entity(self._entities[same], entity)
            self._effective_id[entity.id] = same
            return same

    def _changed(self, kept: Entity, added: Entity) -> str:
        if _name(kept) != _name(added):
            if _name(added) in self._named:
                raise UniquenessError("entity", ("entity_type", "name"), (added.entity_type, added.name))
            self._named[_name(added)] = self._named.pop(_name(kept))
            kept = replace(kept, name=added.name, entity_type=added.entity_type)
        self._entities[kept.id] = merged_entity(kept, added)
        return kept.id

    def add_relationship(self, relationship: Relationship) -> str:
        checked_relationship(relationship)
        with self._lock:
            source, target = self._end(relationship.source_id), self._end(relationship.target_id)
            if source == target:
                raise self_loop(source)
            key = (source, target, type_key(relationship.relation_type))
            kept = self._edges.get(key)
            if kept is None:
                if relationship.id in self._edge_of:
                    raise UniquenessError("relationship", ("id",), (relationship.id,))
                self._edge_of[relationship.id] = key
                for end in (source, target):
                    self._edges_of.setdefault(end, set()).add(key)
                kept = replace(relationship, source_id=source, target_id=target)
            self._edges[key] = merged_relationship(kept, relationship)
            return kept.id

    def _end(self, entity_id: str) -> str:
        try:
            return self._effective_id[entity_id]
        except KeyError:
            raise NotFoundError("entity", entity_id) from None

    def get_entities(self, entity_ids: Iterable[str]) -> list[Entity]:
        with self._lock:
            found = (self._effective_id.get(key) for key in entity_ids)
            return [self._entities[key] for key in dict.fromkeys(found) if key is not None]

    def find_entities(self, name: str | None = None, entity_type: str | None = None, limit: int = 10) -> list[Entity]:
        check_search(name, entity_type, limit)
        with self._lock:
            every = list(self._entities.values())
        fitting = [e for e in every if entity_type is None or type_key(e.entity_type) == type_key(entity_type)]
        if name is not None:
            return best_named(fitting, name, limit)
        return sorted(fitting, key=entity_order)[:limit]

    def edges(
        self, entity_ids: Iterable[str], direction: Direction = "both", relation_types: Sequence[str] = ()
    ) -> list[Relationship]:
        wanted = {type_key(name) for name in relation_types}
        with self._lock:
            near = set(entity_ids)
            touching = {key for end in near for key in self._edges_of.get(end, ())}
            keys = sorted(key for key in touching if _leads(key, near, direction) and (not wanted or key[2] in wanted))
            return [self._edges[key] for key in keys]

    def delete_entity(self, entity_id: str) -> bool:
        checked_id("entity", entity_id)
        with self._lock:
            key = self._effective_id.get(entity_id)
            if key is None:
                return False
            for edge in list(self._edges_of.get(key, ())):
                self._remove(edge)
            self._edges_of.pop(key, None)
            del self._named[_name(self._entities.pop(key))]
            self._effective_id = {alias: counts for alias, counts in self._effective_id.items() if counts != key}
            return True

    def delete_relationship(self, relationship_id: str) -> bool:
        checked_id("relationship", relationship_id)
        with self._lock:
            key = self._edge_of.get(relationship_id)
            if key is not None:
                self._remove(key)
            return key is not None

    def _remove(self, edge: _Edge) -> None:
        del self._edge_of[self._edges.pop(edge).id]
        for end in edge[:2]:
            self._edges_of[end].discard(edge)

    def close(self) -> None:
        """Do nothing."""


def _name(entity: Entity) -> _Name:
    return type_key(entity.entity_type), name_key(entity.name)


def _leads(edge: _Edge, near: set[str], direction: Direction) -> bool:
    source, target, _ = edge
    return (direction != "in" and source in near) or (direction != "out" and target in near)
