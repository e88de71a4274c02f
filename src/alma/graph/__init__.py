"""Graph memory: the port, its stores, and the extraction of entities; each name is loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alma.lazy import loader

if TYPE_CHECKING:
    from alma.graph.base import Entity as Entity
    from alma.graph.base import GraphQuery as GraphQuery
    from alma.graph.base import GraphResult as GraphResult
    from alma.graph.base import GraphStore as GraphStore
    from alma.graph.base import Relationship as Relationship
    from alma.graph.extraction import EntityExtractor as EntityExtractor
    from alma.graph.extraction import Extraction as Extraction
    from alma.graph.memory import InMemoryGraph as InMemoryGraph
    from alma.graph.neo4j import Neo4jGraph as Neo4jGraph
    from alma.graph.relational import StorageGraph as StorageGraph

_HOME_OF = {
    "Entity": "alma.graph.base",
    "Relationship": "alma.graph.base",
    "GraphQuery": "alma.graph.base",
    "GraphResult": "alma.graph.base",
    "GraphStore": "alma.graph.base",
    "EntityExtractor": "alma.graph.extraction",
    "Extraction": "alma.graph.extraction",
    "InMemoryGraph": "alma.graph.memory",
    "StorageGraph": "alma.graph.relational",
    "Neo4jGraph": "alma.graph.neo4j",
    "create_graph_store": "alma.bootstrap.providers",
}

__all__ = [*_HOME_OF]

__getattr__ = loader(__name__, _HOME_OF)
