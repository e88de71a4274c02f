"""A graph in storage: entities and relationships are records of a project, on any backend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from alma.errors import NotFoundError
from alma.graph.base import (
    DEFAULT_PROJECT,
    Direction,
    Entity,
    GraphStore,
    Redact,
    Relationship,
    best_named,
    check_search,
    checked_entity,
    checked_id,
    checked_relationship,
    digest,
    masked,
    merged_entity,
    merged_relationship,
    name_key,
    self_loop,
    type_key,
    without_secrets,
)
from alma.model.governance import ANONYMOUS, Attribution
from alma.model.graph import GraphAlias, GraphEntity, GraphRelationship
from alma.model.query import And, Compare, In, Or, Order, Predicate
from alma.model.scope import Scope
from alma.storage.base import RecordStore, Transaction

_BATCH_SIZE = 400
_CANDIDATES = 500
_EDGE_ORDER = (Order("source_id"), Order("target_id"), Order("type_key"))


class StorageGraph(GraphStore):
    """The graph of one project in a store that other processes can use at the same time.

    `redact` masks every text before it is stored. With `close_storage`, closing the graph closes the store.
    """

    def __init__(
        self,
        storage: RecordStore,
        project_id: str = DEFAULT_PROJECT,
        by: Attribution = ANONYMOUS,
        redact: Redact | None = masked,
        close_storage: bool = False,
    ) -> None:
        self._storage = storage
        self._scope = Scope(project_id=project_id)
        self._project_id = project_id
        self._by = by
        self._redact = redact
        self._owns_storage = close_storage

    def add_entity(self, entity: Entity) -> str:
        clean = without_secrets(checked_entity(entity), self._redact)
        return self._storage.write(lambda tx: self._add_entity(tx, clean), self._by)

    def add_relationship(self, relationship: Relationship) -> str:
        clean = without_secrets(checked_relationship(relationship), self._redact)
        return self._storage.write(lambda tx: self._add_relationship(tx, clean), self._by)

    def get_entities(self, entity_ids: Iterable[str]) -> list[Entity]:
        with self._storage.snapshot() as tx:
            return [_entity(record) for record in self._known(tx, list(dict.fromkeys(entity_ids)))]

    def find_entities(self, name: str | None = None, entity_type: str | None = None, limit: int = 10) -> list[Entity]:
        check_search(name, entity_type, limit)
        of_type: Predicate = And() if entity_type is None else Compare("type_key", "eq", type_key(entity_type))
        if name is None:
            order = (Order("name_key"), Order("entity_id"))
            return [_entity(record) for record in self._storage.find(GraphEntity, self._scope, of_type, order, limit)]
        with self._storage.snapshot() as tx:
            same = tx.find(GraphEntity, self._scope, And(of_type, Compare("name_key", "eq", name_key(name))))
            similar = tx.search_text(GraphEntity, name, self._scope, of_type, max(_CANDIDATES, limit))
        found = {record.id: _entity(record) for record in (*same, *(hit.record for hit in similar))}
        return best_named(found.values(), name, limit)

    def edges(
        self, entity_ids: Iterable[str], direction: Direction = "both", relation_types: Sequence[str] = ()
    ) -> list[Relationship]:
        of_type: Predicate = And() if not relation_types else In("type_key", map(type_key, relation_types))
        keys = [self._key(each) for each in dict.fromkeys(entity_ids)]
        found: dict[str, GraphRelationship] = {}
        with self._storage.snapshot() as tx:
            for some in _batches(keys):
                records = tx.find(GraphRelationship, self._scope, And(_touching(some, direction), of_type), _EDGE_ORDER)
                found.update((record.id, record) for record in records)
        ordered = sorted(found.values(), key=lambda record: (record.source_id, record.target_id, record.type_key))
        return [_relationship(record) for record in ordered]

    def delete_entity(self, entity_id: str) -> bool:
        def delete(tx: Transaction) -> bool:
            known = self._known(tx, [checked_id("entity", entity_id)])
            return bool(known) and bool(tx.delete(GraphEntity, [known[0].id], self._scope))

        return self._storage.write(delete, self._by)

    def delete_relationship(self, relationship_id: str) -> bool:
        named = Compare("relationship_id", "eq", checked_id("relationship", relationship_id))
        return bool(self._storage.delete_where(GraphRelationship, self._scope, named, self._by))

    def close(self) -> None:
        """Close the store, if the graph owns it."""
        if self._owns_storage:
            self._storage.close()

    # ------------------------------------------------------------------ entities

    def _add_entity(self, tx: Transaction, entity: Entity) -> str:
        known = self._known(tx, [entity.id])
        if known:
            return self._change_entity(tx, known[0], entity)
        where = And(
            Compare("type_key", "eq", type_key(entity.entity_type)), Compare("name_key", "eq", name_key(entity.name))
        )
        same = tx.find(GraphEntity, self._scope, where, limit=1)
        if not same:
            tx.save(self._entity_record(entity))
            return entity.id
        tx.save(GraphAlias(id=self._key(entity.id), project_id=self._project_id, entity_key=same[0].id))
        return self._merge_entity(tx, same[0], entity)

    def _change_entity(self, tx: Transaction, record: GraphEntity, entity: Entity) -> str:
        renamed = self._entity_record(replace(entity, id=record.entity_id))
        if (renamed.type_key, renamed.name_key) == (record.type_key, record.name_key):
            return self._merge_entity(tx, record, entity)
        fields = ("name", "name_key", "entity_type", "type_key")
        tx.update(GraphEntity, record.id, {name: getattr(renamed, name) for name in fields}, self._scope)
        return self._merge_entity(tx, record, entity)

    def _merge_entity(self, tx: Transaction, record: GraphEntity, entity: Entity) -> str:
        if merged_entity(_entity(record), entity) == _entity(record):
            return record.entity_id
        for current in tx.lock(GraphEntity, [record.id], self._scope):
            merged = merged_entity(_entity(current), entity)
            tx.update(GraphEntity, record.id, {"properties": merged.properties}, self._scope)
        return record.entity_id

    def _known(self, tx: Transaction, entity_ids: Sequence[str]) -> list[GraphEntity]:
        """The entities with these ids or aliases, each once, in order."""
        found: dict[str, GraphEntity] = {}
        for some in _batches([self._key(each) for each in entity_ids]):
            records = {record.id: record for record in tx.get_many(GraphEntity, some, self._scope)}
            missing = [key for key in some if key not in records]
            aliases = {a.id: a.entity_key for a in tx.get_many(GraphAlias, missing, self._scope)} if missing else {}
            behind = {record.id: record for record in tx.get_many(GraphEntity, aliases.values(), self._scope)}
            for key in some:
                record = records.get(key) or behind.get(aliases.get(key, ""))
                if record is not None:
                    found.setdefault(record.id, record)
        return list(found.values())

    def _entity_record(self, entity: Entity) -> GraphEntity:
        return GraphEntity(
            id=self._key(entity.id),
            project_id=self._project_id,
            entity_id=entity.id,
            name=entity.name,
            name_key=name_key(entity.name),
            entity_type=entity.entity_type,
            type_key=type_key(entity.entity_type),
            properties=entity.properties,
            created_at=entity.created_at,
        )

    # ------------------------------------------------------------------ relationships

    def _add_relationship(self, tx: Transaction, relationship: Relationship) -> str:
        source, target = (self._end(tx, end) for end in (relationship.source_id, relationship.target_id))
        if source.id == target.id:
            raise self_loop(source.entity_id)
        key = digest(source.id, target.id, type_key(relationship.relation_type))
        kept = tx.get(GraphRelationship, key, self._scope)
        if kept is None:
            tx.save(self._relationship_record(key, source, target, relationship))
            return relationship.id
        if merged_relationship(_relationship(kept), relationship) != _relationship(kept):
            for current in tx.lock(GraphRelationship, [key], self._scope):
                merged = merged_relationship(_relationship(current), relationship)
                changes = {"properties": merged.properties, "confidence": merged.confidence}
                tx.update(GraphRelationship, key, changes, self._scope)
        return kept.relationship_id

    def _end(self, tx: Transaction, entity_id: str) -> GraphEntity:
        known = self._known(tx, [entity_id])
        if not known:
            raise NotFoundError("entity", entity_id)
        return known[0]

    def _relationship_record(
        self, key: str, source: GraphEntity, target: GraphEntity, relationship: Relationship
    ) -> GraphRelationship:
        return GraphRelationship(
            id=key,
            project_id=self._project_id,
            relationship_id=relationship.id,
            source_key=source.id,
            target_key=target.id,
            source_id=source.entity_id,
            target_id=target.entity_id,
            relation_type=relationship.relation_type,
            type_key=type_key(relationship.relation_type),
            properties=relationship.properties,
            confidence=relationship.confidence,
            created_at=relationship.created_at,
        )

    # ------------------------------------------------------------------ ids

    def _key(self, public_id: str) -> str:
        """The id of a record, unique across projects."""
        return digest(self._project_id, public_id)


def _entity(record: GraphEntity) -> Entity:
    return Entity(record.entity_id, record.name, record.entity_type, record.properties, record.created_at)


def _relationship(record: GraphRelationship) -> Relationship:
    return Relationship(
        record.relationship_id,
        record.source_id,
        record.target_id,
        record.relation_type,
        record.properties,
        record.confidence,
        record.created_at,
    )


def _touching(keys: Sequence[str], direction: Direction) -> Predicate:
    parts = {"out": ("source_key",), "in": ("target_key",), "both": ("source_key", "target_key")}[direction]
    return Or(*(In(name, keys) for name in parts))


def _batches(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    """Split keys into batches for one statement each."""
    for start in range(0, len(keys), _BATCH_SIZE):
        yield keys[start : start + _BATCH_SIZE]
