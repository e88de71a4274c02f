"""A graph server with an empty graph."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from alma.graph.neo4j_projection import Neo4jProjection
from tests.graph.reading import GraphReader
from tests.support.bolt import BoltServer


@pytest.fixture(scope="session")
def opened(bolt: BoltServer) -> Iterator[Neo4jProjection]:
    with Neo4jProjection(bolt.uri, bolt.username, bolt.password, bolt.database) as projection:
        projection.prepare()
        yield projection


@pytest.fixture
def projection(opened: Neo4jProjection) -> Neo4jProjection:
    """The projection of no records."""
    opened.clear()
    return opened


@pytest.fixture(scope="session")
def graph(bolt: BoltServer) -> Iterator[GraphReader]:
    """Cypher on the server, as a user of the graph writes it."""
    with GraphReader(bolt) as reader:
        yield reader
