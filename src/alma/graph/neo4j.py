"""A graph in Neo4j, or in another server that speaks Bolt and Cypher."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from alma.errors import NotFoundError, UniquenessError
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
from alma.graph.neo4j_server import GraphServer
from alma.lazy import lazy_regex
from alma.model.common import checked_name
from alma.model.secret import Secret
from alma.text.tokens import query_terms, terms

_LABEL = "AlmaEntity"
_ID_LABEL = "AlmaId"
_GUARD_LABEL = "AlmaRelationshipId"
_RELATION = lazy_regex(r"[A-Z][A-Z0-9_]{0,63}")
_CONSTRAINTS = tuple(
    f"CREATE CONSTRAINT {name} IF NOT EXISTS FOR (n:{label}) REQUIRE n.{key} IS UNIQUE"
    for name, label, key in (
        ("alma_entity_name", _LABEL, "key"),
        ("alma_entity", _LABEL, "uid"),
        ("alma_id", _ID_LABEL, "key"),
        ("alma_relationship_id", _GUARD_LABEL, "key"),
    )
)


class Neo4jGraph(GraphStore):
    """Entities are nodes `AlmaEntity`; relationships are edges with the relation in capitals as type.

    Values are always bound as parameters; the type of an edge, which cannot be bound, consists of letters, digits and _
    only. Properties are stored as one JSON text, because Neo4j has no nested ones.
    """

    def __init__(
        self,
        uri: str,
        username: str = "neo4j",
        password: str | Secret = "",
        database: str | None = None,
        project_id: str = DEFAULT_PROJECT,
        timeout_seconds: float = 30.0,
        redact: Redact | None = masked,
    ) -> None:
        self._project_id = checked_name("graph", "project_id", project_id)
        self._redact = redact
        self._server = GraphServer(uri, username, password, database, timeout_seconds, _CONSTRAINTS)

    def add_entity(self, entity: Entity) -> str:
        clean = without_secrets(checked_entity(entity), self._redact)
        return self._server.write(lambda tx: self._add_entity(tx, clean))

    def add_relationship(self, relationship: Relationship) -> str:
        clean = without_secrets(checked_relationship(relationship), self._redact)
        return self._server.write(lambda tx: self._add_relationship(tx, clean))

    def get_entities(self, entity_ids: Iterable[str]) -> list[Entity]:
        wanted = list(dict.fromkeys(entity_ids))
        found = self._server.read(lambda tx: self._known(tx, wanted))
        return list({entity.id: entity for key in wanted if (entity := found.get(key))}.values())

    def find_entities(self, name: str | None = None, entity_type: str | None = None, limit: int = 10) -> list[Entity]:
        check_search(name, entity_type, limit)
        where = "n.project_id = $project" + (" AND n.type_key = $type" if entity_type is not None else "")
        given: dict[str, Any] = {"type": None if entity_type is None else type_key(entity_type), "limit": limit}
        if name is None:
            tail = "RETURN properties(n) AS node ORDER BY n.name_key, n.id LIMIT $limit"
            return self._nodes(f"MATCH (n:{_LABEL}) WHERE {where} {tail}", given)
        given |= {"name": name_key(name), "words": query_terms(name)}
        words = "size($words) > 0 AND all(w IN $words WHERE w IN n.words)"
        found = self._nodes(
            f"MATCH (n:{_LABEL}) WHERE {where} AND (n.name_key = $name OR ({words})) RETURN properties(n) AS node",
            given,
        )
        return best_named(found, name, limit)

    def edges(
        self, entity_ids: Iterable[str], direction: Direction = "both", relation_types: Sequence[str] = ()
    ) -> list[Relationship]:
        given = {"uids": [self._key(each) for each in entity_ids], "types": [type_key(name) for name in relation_types]}
        queries = [
            f"MATCH (a:{_LABEL})-[r]->(b:{_LABEL}) WHERE {near}.uid IN $uids "
            "AND (size($types) = 0 OR r.type_key IN $types) "
            "RETURN properties(r) AS edge, a.id AS source, b.id AS target"
            for near in {"out": "a", "in": "b", "both": "ab"}[direction]
        ]
        rows = self._server.read(lambda tx: [row for query in queries for row in self._run(tx, query, given)])
        found = {row["edge"]["id"]: _relationship(row["edge"], row["source"], row["target"]) for row in rows}
        return sorted(found.values(), key=lambda each: (each.source_id, each.target_id, type_key(each.relation_type)))

    def delete_entity(self, entity_id: str) -> bool:
        return self._server.write(lambda tx: self._delete_entity(tx, checked_id("entity", entity_id)))

    def delete_relationship(self, relationship_id: str) -> bool:
        checked_id("relationship", relationship_id)

        def delete(tx: Any) -> bool:
            guard = f"MATCH (g:{_GUARD_LABEL} {{key: $key}}) RETURN g.source AS source"
            guards = self._run(tx, guard, {"key": self._key(relationship_id)})
            if not guards:
                return False
            match = f"MATCH (:{_LABEL} {{uid: $source}})-[r]->(:{_LABEL}) WHERE r.id = $id DELETE r"
            self._run(tx, match, {"source": guards[0]["source"], "id": relationship_id})
            self._forget_edges(tx, [relationship_id])
            return True

        return self._server.write(delete)

    def close(self) -> None:
        """Close the connections to the server."""
        self._server.close()

    # ------------------------------------------------------------------ entities

    def _add_entity(self, tx: Any, entity: Entity) -> str:
        known = self._known(tx, [entity.id]).get(entity.id)
        if known is not None:
            return self._change_entity(tx, known, entity)
        same = self._named(tx, entity)
        if same is None:
            self._run(tx, f"CREATE (n:{_LABEL}) SET n = $node", {"node": self._node(entity)})
        counts = entity if same is None else same
        self._run(
            tx,
            f"CREATE (i:{_ID_LABEL} {{key: $key, project_id: $project, entity_id: $id}})",
            {"key": self._key(entity.id), "id": counts.id},
        )
        return counts.id if same is None else self._merge_entity(tx, same, entity)

    def _change_entity(self, tx: Any, known: Entity, entity: Entity) -> str:
        if _name(known) != _name(entity):
            if self._named(tx, entity) is not None:
                raise UniquenessError("entity", ("entity_type", "name"), (entity.entity_type, entity.name))
            known = replace(known, name=entity.name, entity_type=entity.entity_type)
            self._set_node(tx, known)
        return self._merge_entity(tx, known, entity)

    def _merge_entity(self, tx: Any, kept: Entity, added: Entity) -> str:
        if merged_entity(kept, added) != kept:
            # Writing locks the node before it is read again.
            lock = f"MATCH (n:{_LABEL} {{uid: $uid}}) SET n.locked = true RETURN properties(n) AS node"
            rows = self._run(tx, lock, {"uid": self._key(kept.id)})
            self._set_node(tx, merged_entity(_entity(rows[0]["node"]), added))
        return kept.id

    def _set_node(self, tx: Any, entity: Entity) -> None:
        change = f"MATCH (n:{_LABEL} {{uid: $uid}}) SET n = $node"
        self._run(tx, change, {"uid": self._key(entity.id), "node": self._node(entity)})

    def _named(self, tx: Any, entity: Entity) -> Entity | None:
        match = f"MATCH (n:{_LABEL} {{key: $key}}) RETURN properties(n) AS node"
        rows = self._run(tx, match, {"key": self._node_key(entity)})
        return _entity(rows[0]["node"]) if rows else None

    def _known(self, tx: Any, entity_ids: Sequence[str]) -> dict[str, Entity]:
        """The entities with these ids or merged ids."""
        by_key = {self._key(each): each for each in entity_ids}
        rows = self._run(
            tx,
            f"MATCH (i:{_ID_LABEL}) WHERE i.key IN $keys RETURN i.key AS key, i.entity_id AS id",
            {"keys": list(by_key)},
        )
        counting = {by_key[row["key"]]: row["id"] for row in rows}
        match = f"MATCH (n:{_LABEL}) WHERE n.uid IN $uids RETURN properties(n) AS node"
        found = self._run(tx, match, {"uids": [self._key(each) for each in set(counting.values())]})
        nodes = {row["node"]["id"]: _entity(row["node"]) for row in found}
        return {each: nodes[key] for each, key in counting.items() if key in nodes}

    def _delete_entity(self, tx: Any, entity_id: str) -> bool:
        known = self._known(tx, [entity_id]).get(entity_id)
        if known is None:
            return False
        given = {"id": known.id, "uid": self._key(known.id)}
        edges = self._run(tx, f"MATCH (:{_LABEL} {{uid: $uid}})-[r]-(:{_LABEL}) RETURN r.id AS id", given)
        self._forget_edges(tx, [row["id"] for row in edges])
        self._run(tx, f"MATCH (n:{_LABEL} {{uid: $uid}}) DETACH DELETE n", given)
        self._run(tx, f"MATCH (i:{_ID_LABEL}) WHERE i.project_id = $project AND i.entity_id = $id DELETE i", given)
        return True

    def _node(self, entity: Entity) -> dict[str, Any]:
        return {
            "key": self._node_key(entity),
            "uid": self._key(entity.id),
            "project_id": self._project_id,
            "id": entity.id,
            "name": entity.name,
            "name_key": name_key(entity.name),
            "words": terms(entity.name),
            "entity_type": entity.entity_type,
            "type_key": type_key(entity.entity_type),
            "properties": json.dumps(entity.properties),
            "created_at": entity.created_at.isoformat(),
        }

    # ------------------------------------------------------------------ relationships

    def _add_relationship(self, tx: Any, relationship: Relationship) -> str:
        ends = self._known(tx, [relationship.source_id, relationship.target_id])
        for end in (relationship.source_id, relationship.target_id):
            if end not in ends:
                raise NotFoundError("entity", end)
        source, target = ends[relationship.source_id], ends[relationship.target_id]
        if source.id == target.id:
            raise self_loop(source.id)
        kept = self._edge_between(tx, source.id, target.id, relationship)
        if kept is None:
            return self._create_edge(tx, replace(relationship, source_id=source.id, target_id=target.id))
        if merged_relationship(kept, relationship) != kept:
            given = {"source": self._key(source.id), "id": kept.id}
            match = f"MATCH (:{_LABEL} {{uid: $source}})-[r]->(:{_LABEL}) WHERE r.id = $id"
            rows = self._run(tx, f"{match} SET r.locked = true RETURN properties(r) AS edge", given)
            current = _relationship(rows[0]["edge"], source.id, target.id)
            edge = _edge(merged_relationship(current, relationship))
            self._run(tx, f"{match} SET r = $edge", {**given, "edge": edge})
        return kept.id

    def _edge_between(self, tx: Any, source: str, target: str, relationship: Relationship) -> Relationship | None:
        rows = self._run(
            tx,
            f"MATCH (:{_LABEL} {{uid: $source}})-[r]->(:{_LABEL} {{uid: $target}}) WHERE r.type_key = $type "
            "RETURN properties(r) AS edge",
            {
                "source": self._key(source),
                "target": self._key(target),
                "type": type_key(relationship.relation_type),
            },
        )
        return _relationship(rows[0]["edge"], source, target) if rows else None

    def _create_edge(self, tx: Any, relationship: Relationship) -> str:
        # Not every server has unique constraints on edges, so guard nodes hold the id and the position of each edge.
        way = (relationship.source_id, relationship.target_id, type_key(relationship.relation_type))
        taken = {"key": self._key(relationship.id)}
        ends = {"source": self._key(relationship.source_id), "target": self._key(relationship.target_id)}
        if self._run(tx, f"MATCH (g:{_GUARD_LABEL} {{key: $key}}) RETURN g.key AS key", taken):
            raise UniquenessError("relationship", ("id",), (relationship.id,))
        self._run(
            tx,
            f"CREATE (:{_GUARD_LABEL} {{key: $key, project_id: $project, edge_id: $id, source: $source}}) "
            f"CREATE (:{_GUARD_LABEL} {{key: $place, project_id: $project, edge_id: $id, source: $source}})",
            {**taken, **ends, "place": digest(self._project_id, *way), "id": relationship.id},
        )
        self._run(
            tx,
            f"MATCH (a:{_LABEL} {{uid: $source}}), (b:{_LABEL} {{uid: $target}}) "
            f"CREATE (a)-[r:{_edge_type(relationship)}]->(b) SET r = $edge",
            {**ends, "edge": _edge(relationship)},
        )
        return relationship.id

    def _forget_edges(self, tx: Any, ids: Sequence[str]) -> None:
        match = f"MATCH (g:{_GUARD_LABEL}) WHERE g.project_id = $project AND g.edge_id IN $ids DELETE g"
        self._run(tx, match, {"ids": list(ids)})

    # ------------------------------------------------------------------ the server

    def _key(self, public_id: str) -> str:
        return digest(self._project_id, public_id)

    def _node_key(self, entity: Entity) -> str:
        return digest(self._project_id, *_name(entity))

    def _nodes(self, query: str, given: Mapping[str, Any]) -> list[Entity]:
        return [_entity(row["node"]) for row in self._server.read(lambda tx: self._run(tx, query, given))]

    def _run(self, tx: Any, query: str, given: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        return list(tx.run(query, {**given, "project": self._project_id}).data())


def _name(entity: Entity) -> tuple[str, str]:
    return type_key(entity.entity_type), name_key(entity.name)


def _entity(node: Mapping[str, Any]) -> Entity:
    created = datetime.fromisoformat(node["created_at"]).astimezone(UTC)
    return Entity(node["id"], node["name"], node["entity_type"], json.loads(node["properties"]), created)


def _relationship(edge: Mapping[str, Any], source: str, target: str) -> Relationship:
    created = datetime.fromisoformat(edge["created_at"]).astimezone(UTC)
    rest = (edge["relation_type"], json.loads(edge["properties"]), edge["confidence"], created)
    return Relationship(edge["id"], source, target, *rest)


def _edge(relationship: Relationship) -> dict[str, Any]:
    return {
        "id": relationship.id,
        "relation_type": relationship.relation_type,
        "type_key": type_key(relationship.relation_type),
        "properties": json.dumps(relationship.properties),
        "confidence": relationship.confidence,
        "created_at": relationship.created_at.isoformat(),
    }


def _edge_type(relationship: Relationship) -> str:
    """The relation as an edge type; names without such a form become RELATED_TO with the relation as property."""
    name = re.sub(r"\W+", "_", type_key(relationship.relation_type)).upper()
    return name if _RELATION.fullmatch(name) else "RELATED_TO"
