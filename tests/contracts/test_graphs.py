"""One suite, every graph."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from alma.graph.base import GraphStore
from alma.graph.memory import InMemoryGraph
from alma.graph.neo4j import Neo4jGraph
from alma.graph.relational import StorageGraph
from alma.storage.base import StorageBackend
from alma.storage.file_based import FileBasedStorage
from alma.storage.sqlite_local import SQLiteStorage
from alma.testing.graph_contract import Another, GraphContract, SharedGraphContract
from tests.contracts.on_postgresql import OnPostgreSQL
from tests.support.bolt import BoltServer


class TestMemory(GraphContract):
    @pytest.fixture
    def graph(self) -> GraphStore:
        return InMemoryGraph()


class OverStorage(GraphContract, SharedGraphContract):
    @pytest.fixture
    def graph(self, storage: StorageBackend) -> GraphStore:
        return StorageGraph(storage)

    @pytest.fixture
    def another(self, storage: StorageBackend) -> Another:
        return partial(StorageGraph, storage)


class TestSQLite(OverStorage):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Iterator[StorageBackend]:
        with SQLiteStorage(tmp_path / "alma.db") as storage:
            yield storage

    @pytest.fixture
    def another(self, storage: StorageBackend, tmp_path: Path) -> Another:
        return lambda **options: StorageGraph(SQLiteStorage(tmp_path / "alma.db"), close_storage=True, **options)


class TestFiles(OverStorage):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Iterator[StorageBackend]:
        with FileBasedStorage(tmp_path) as storage:
            yield storage


class TestPostgreSQL(OnPostgreSQL, OverStorage):
    pass


class TestNeo4j(GraphContract, SharedGraphContract):
    @pytest.fixture
    def another(self, bolt: BoltServer) -> Another:
        """Projects of this test's own: the server keeps those of the others."""
        prefix = uuid.uuid4().hex

        def opened(project_id: str = "here") -> GraphStore:
            place = (bolt.uri, bolt.username, bolt.password, bolt.database)
            return Neo4jGraph(*place, project_id=f"{prefix} {project_id}")

        return opened

    @pytest.fixture
    def graph(self, another: Another) -> Iterator[GraphStore]:
        with another() as graph:
            yield graph
