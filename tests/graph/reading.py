"""Reads the graph with the driver alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Self

import neo4j

from alma.graph.neo4j_nodes import native
from alma.model.record import Record
from alma.sync.projection import Change
from tests.support.bolt import BoltServer

_EDGES = (
    "MATCH (a:{a})-[r]->(b:{b}) RETURN a.id AS source, type(r) AS type, b.id AS target, properties(r) AS properties"
)
_LABELS = ("Memory", "Project", "Pattern", "User")


class GraphReader:
    """Runs Cypher."""

    def __init__(self, server: BoltServer) -> None:
        self._database = server.database
        self._driver = neo4j.GraphDatabase.driver(server.uri, auth=(server.username, server.password))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._driver.close()

    def __call__(self, query: str, **given: Any) -> list[dict[str, Any]]:
        with self._driver.session(database=self._database) as session:
            return list(session.run(query, given).data())

    def nodes(self, label: str) -> dict[str, dict[str, Any]]:
        """The properties of the nodes, by id."""
        return {row["n"]["id"]: native(row["n"]) for row in self(f"MATCH (n:{label}) RETURN properties(n) AS n")}

    def edges(self) -> list[tuple[str, str, str, dict[str, Any]]]:
        """Every relationship between nodes of records, as (from, type, to, properties)."""
        rows = [row for a in _LABELS for b in _LABELS for row in self(_EDGES.format(a=a, b=b))]
        found = [(row["source"], row["type"], row["target"], native(row["properties"])) for row in rows]
        return sorted(found, key=str)

    def kinds_of_edges(self) -> Counter[str]:
        return Counter(edge[1] for edge in self.edges())

    def pairs(self, name: str) -> list[tuple[str, str]]:
        """From where to where relationships of this type lead."""
        return [(source, target) for source, kind, target, _ in self.edges() if kind == name]


def states(*records: Record) -> list[Change]:
    return [Change(type(record), str(record.key), record) for record in records]


def gone(*records: Record) -> list[Change]:
    return [Change(type(record), str(record.key), None) for record in records]


def of_type(edges: Sequence[tuple[str, str, str, dict[str, Any]]], name: str) -> dict[str, Any]:
    """The properties of the one relationship of a type."""
    (found,) = [properties for _, kind, _, properties in edges if kind == name]
    return found
