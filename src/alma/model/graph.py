"""Graph memory: entities, their aliases, and the relationships between them."""

from __future__ import annotations

from dataclasses import field
from datetime import datetime

from alma.clock import now
from alma.model.common import Name, Share
from alma.model.fields import JsonObject
from alma.model.record import Index, OnDelete, Record, Reference, Unique, record


@record(
    "graph_entity",
    table="graph_entities",
    postgres_table="alma_graph_entities",
    text=("name",),
    unique=(Unique("unique_graph_entity", ("project_id", "type_key", "name_key")),),
    indexes=(Index("idx_graph_entities_name", ("project_id", "name_key")),),
)
class GraphEntity(Record):
    """A person, a thing or an idea of a project; `id` is computed from the project and the public `entity_id`."""

    id: Name
    project_id: Name
    entity_id: Name
    name: Name
    name_key: Name
    entity_type: Name
    type_key: Name
    properties: JsonObject = field(default_factory=dict)
    created_at: datetime = field(default_factory=now)


@record(
    "graph_alias",
    table="graph_aliases",
    postgres_table="alma_graph_aliases",
    indexes=(Index("idx_graph_aliases_entity", ("entity_key",)),),
    references=(Reference("entity_key", "graph_entity", OnDelete.CASCADE, must_exist=True),),
)
class GraphAlias(Record):
    """Another id under which an entity was added; `id` is computed from the project and that id."""

    id: Name
    project_id: Name
    entity_key: Name


@record(
    "graph_relationship",
    table="graph_relationships",
    postgres_table="alma_graph_relationships",
    unique=(
        Unique("unique_graph_relationship", ("source_key", "target_key", "type_key")),
        Unique("unique_graph_relationship_id", ("project_id", "relationship_id")),
    ),
    distinct=(("source_key", "target_key"),),
    indexes=(Index("idx_graph_relationships_target", ("target_key",)),),
    references=(
        Reference("source_key", "graph_entity", OnDelete.CASCADE, must_exist=True),
        Reference("target_key", "graph_entity", OnDelete.CASCADE, must_exist=True),
    ),
)
class GraphRelationship(Record):
    """A directed relationship between two entities; there is at most one of each type."""

    id: Name
    project_id: Name
    relationship_id: Name
    source_key: Name
    target_key: Name
    source_id: Name
    target_id: Name
    relation_type: Name
    type_key: Name
    properties: JsonObject = field(default_factory=dict)
    confidence: Share = 1.0
    created_at: datetime = field(default_factory=now)
