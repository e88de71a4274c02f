"""One suite, every store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from alma.storage.base import Capability, StorageBackend
from alma.storage.file_based import FileBasedStorage
from alma.storage.postgresql import PostgreSQLStorage
from alma.storage.sqlite_local import SQLiteStorage
from alma.testing.storage_contract import DIMS, StorageContract
from tests.conftest import fresh_database
from tests.support.postgres import PostgresServer


class TestSQLite(StorageContract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Iterator[StorageBackend]:
        with SQLiteStorage(tmp_path / "alma.db", embedding_dim=DIMS) as store:
            yield store


class TestFiles(StorageContract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Iterator[StorageBackend]:
        with FileBasedStorage(tmp_path, embedding_dim=DIMS) as store:
            yield store


class TestPostgreSQL(StorageContract):
    @pytest.fixture
    def storage(self, postgres: PostgresServer) -> Iterator[StorageBackend]:
        with (
            fresh_database(postgres) as dsn,
            PostgreSQLStorage.from_dsn(dsn, embedding_dim=DIMS, pool_size=6) as store,
        ):
            yield store

    def test_vectors_are_searched_by_the_server(self, storage: StorageBackend) -> None:
        assert Capability.NATIVE_VECTORS in storage.capabilities
        assert storage.notes == ()


class TestPostgreSQLInASchemaOfItsOwn(StorageContract):
    @pytest.fixture
    def storage(self, postgres: PostgresServer) -> Iterator[StorageBackend]:
        with (
            fresh_database(postgres) as dsn,
            PostgreSQLStorage.from_dsn(dsn, embedding_dim=DIMS, pool_size=6, schema="Agent's memory") as store,
        ):
            yield store


class TestPostgreSQLWithoutPgvector(StorageContract):
    @pytest.fixture
    def storage(self, plain_postgres: PostgresServer) -> Iterator[StorageBackend]:
        with (
            fresh_database(plain_postgres) as dsn,
            PostgreSQLStorage.from_dsn(dsn, embedding_dim=DIMS, pool_size=6) as store,
        ):
            yield store

    def test_a_note_says_what_is_missing_and_how_to_get_it(self, storage: StorageBackend) -> None:
        assert Capability.NATIVE_VECTORS not in storage.capabilities
        (note,) = storage.notes
        assert "CREATE EXTENSION vector" in note
