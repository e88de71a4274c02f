"""One suite, every vector index."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from alma.errors import ConfigurationError
from alma.model.learning import Heuristic
from alma.model.memory import Memory
from alma.storage.base import StorageBackend
from alma.storage.file_based import FileBasedStorage
from alma.storage.postgresql import PostgreSQLStorage
from alma.storage.sqlite_local import SQLiteStorage
from alma.testing.vector_contract import DIMS, VectorContract
from alma.vectors.base import VectorIndex
from alma.vectors.mapped import MappedIndex
from alma.vectors.mapped.state import Tuning
from alma.vectors.native import NativeIndex
from tests.contracts.on_postgresql import OnPostgreSQL, OnPostgreSQLWithoutPgvector


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
