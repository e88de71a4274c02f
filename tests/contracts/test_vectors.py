"""One suite, every vector index."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from alma.bootstrap import partition_tables
from alma.errors import ConfigurationError
from alma.model.learning import Heuristic
from alma.model.memory import Memory
from alma.storage.base import StorageBackend
from alma.storage.file_based import FileBasedStorage
from alma.storage.postgresql import PostgreSQLStorage
from alma.storage.sqlite_local import SQLiteStorage
from alma.sync import DataSyncManager, Relay
from alma.testing.vector_contract import DIMS, VectorContract
from alma.vectors.base import Nearest, VectorIndex
from alma.vectors.mapped import MappedIndex
from alma.vectors.mapped.state import Tuning
from alma.vectors.native import NativeIndex
from alma.vectors.qdrant import QdrantIndex, QdrantProjection
from tests.conftest import fresh_database
from tests.contracts.on_postgresql import OnPostgreSQL, OnPostgreSQLWithoutPgvector
from tests.support.postgres import PostgresServer
from tests.support.qdrant import QdrantNode


class NativeContract(VectorContract):
    @pytest.fixture
    def index(self, storage: StorageBackend) -> Iterator[VectorIndex]:
        with closing(NativeIndex(storage)) as index:
            yield index


class TestNativeOnSQLite(NativeContract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Iterator[StorageBackend]:
        with SQLiteStorage(tmp_path / "alma.db", embedding_dim=DIMS) as store:
            yield store


class TestNativeOnFiles(NativeContract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Iterator[StorageBackend]:
        with FileBasedStorage(tmp_path, embedding_dim=DIMS) as store:
            yield store

    def test_a_mapped_index_needs_a_feed(self, storage: StorageBackend) -> None:
        with pytest.raises(ConfigurationError, match="NativeIndex"):
            MappedIndex(storage)


class TestNativeOnPostgreSQL(OnPostgreSQL, NativeContract):
    pass


class TestNativeOnPostgreSQLWithItsIndex(TestNativeOnPostgreSQL):
    @pytest.fixture
    def index(self, storage: StorageBackend) -> Iterator[VectorIndex]:
        assert isinstance(storage, PostgreSQLStorage)
        for cls in (Heuristic, Memory):
            storage.prepare_vector_index(cls)
        with closing(NativeIndex(storage, exact=False)) as index:
            yield index


class TestNativeOnPartitionedPostgreSQL(TestNativeOnPostgreSQLWithItsIndex):
    @pytest.fixture(scope="class")
    @classmethod
    def dsn(cls, postgres: PostgresServer) -> Iterator[str]:
        with fresh_database(postgres) as dsn:
            partition_tables(dsn, ["vectors"], parts=3)
            yield dsn


class TestNativeOnPostgreSQLWithoutPgvector(OnPostgreSQLWithoutPgvector, NativeContract):
    pass


class MappedContract(VectorContract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Iterator[StorageBackend]:
        with SQLiteStorage(tmp_path / "alma.db", embedding_dim=DIMS) as store:
            yield store


class TestMapped(MappedContract):
    @pytest.fixture
    def index(self, storage: StorageBackend, tmp_path: Path) -> Iterator[VectorIndex]:
        with closing(MappedIndex(storage, tmp_path / "alma.db.vectors")) as index:
            yield index


class TestMappedInMemory(MappedContract):
    @pytest.fixture
    def index(self, storage: StorageBackend) -> Iterator[VectorIndex]:
        with closing(MappedIndex(storage)) as index:
            yield index


class TestMappedWithExactRankingAndConstantUpkeep(MappedContract):
    @pytest.fixture
    def index(self, storage: StorageBackend, tmp_path: Path) -> Iterator[VectorIndex]:
        tuning = Tuning(flush_rows=3, inline_rows=40, page_rows=8, sweep_after=2, dead_share=0.05)
        with closing(MappedIndex(storage, tmp_path / "alma.db.vectors", tuning=tuning)) as index:
            yield index


class CaughtUpIndex(QdrantIndex):
    """Brings Qdrant up to date before every search, so that it is Qdrant that proposes."""

    def __init__(self, storage: StorageBackend, url: str, prefix: str) -> None:
        super().__init__(storage, url, prefix=prefix)
        self._store = storage
        self._projection = QdrantProjection(url, prefix=prefix)
        self._relay = Relay(storage, self._projection)
        self._relaying = Lock()

    def search(self, cls: Any, *arguments: Any, **options: Any) -> list[Nearest]:
        with self._relaying:
            if not self._store.is_writing and not self._closed:
                self._relay.run()
        return super().search(cls, *arguments, **options)

    def close(self) -> None:
        if not self._closed:
            self._projection.clear()
            self._projection.close()
        super().close()


class QdrantContract(VectorContract):
    @pytest.fixture
    def index(self, storage: StorageBackend, qdrant: QdrantNode) -> Iterator[VectorIndex]:
        with closing(CaughtUpIndex(storage, qdrant.url, uuid.uuid4().hex)) as index:
            yield index


class TestQdrantOnSQLite(QdrantContract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Iterator[StorageBackend]:
        with SQLiteStorage(tmp_path / "alma.db", embedding_dim=DIMS) as store:
            yield store


class TestQdrantOnPostgreSQLWithARelayBesideIt(OnPostgreSQL, VectorContract):
    @pytest.fixture
    def index(self, storage: StorageBackend, qdrant: QdrantNode) -> Iterator[VectorIndex]:
        prefix = uuid.uuid4().hex
        projection = QdrantProjection(qdrant.url, prefix=prefix)
        with (
            DataSyncManager(storage, [projection]) as sync,
            closing(QdrantIndex(storage, qdrant.url, prefix=prefix)) as index,
        ):
            sync.start()
            yield index
            sync.stop()
            projection.clear()
