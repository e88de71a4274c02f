"""One suite, every store."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from alma.storage.azure_cosmos import AzureCosmosStorage
from alma.storage.base import Capability, StorageBackend
from alma.storage.file_based import FileBasedStorage
from alma.storage.in_memory import InMemoryStorage
from alma.storage.postgresql import PostgreSQLStorage
from alma.storage.sqlite_local import SQLiteStorage
from alma.testing.storage_contract import DIMS, FeedContract, SharedContract, StorageContract
from alma.testing.storage_contract.sharing import Opener
from tests.conftest import fresh_database
from tests.contracts.on_postgresql import OnPostgreSQL, OnPostgreSQLWithoutPgvector, emptied_afterwards
from tests.support.cosmos import empty_database
from tests.support.cosmos_server import KEY, CosmosServer
from tests.support.postgres import PostgresServer


class TestSQLite(StorageContract, SharedContract, FeedContract):
    @pytest.fixture
    def opener(self, sqlite_path: Path) -> Opener:
        return partial(SQLiteStorage, sqlite_path, embedding_dim=DIMS)

    @pytest.fixture
    def storage(self, opener: Opener) -> Iterator[StorageBackend]:
        with opener() as store:
            yield store


class TestFiles(StorageContract, SharedContract):
    @pytest.fixture
    def opener(self, tmp_path: Path) -> Opener:
        return partial(FileBasedStorage, tmp_path, embedding_dim=DIMS)

    @pytest.fixture
    def storage(self, opener: Opener) -> Iterator[StorageBackend]:
        with opener() as store:
            yield store


class TestInMemory(StorageContract):
    @pytest.fixture
    def storage(self) -> Iterator[StorageBackend]:
        with InMemoryStorage(embedding_dim=DIMS) as store:
            yield store


class TestPostgreSQL(OnPostgreSQL, StorageContract, SharedContract):
    @pytest.fixture
    def opener(self, dsn: str) -> Opener:
        return partial(PostgreSQLStorage.from_dsn, dsn, embedding_dim=DIMS)

    def test_two_databases_of_one_server_never_have_the_same_generation(
        self, storage: StorageBackend, postgres: PostgresServer
    ) -> None:
        with fresh_database(postgres) as dsn, PostgreSQLStorage.from_dsn(dsn, embedding_dim=DIMS) as other:
            assert not {storage.generation() for _ in range(5)} & {other.generation() for _ in range(5)}

    def test_processes_agree_on_the_generation(self, storage: StorageBackend, opener: Opener) -> None:
        with opener() as another:
            assert {another.generation() for _ in range(5)} & {storage.generation() for _ in range(5)}

    def test_vectors_are_searched_by_the_server(self, storage: StorageBackend) -> None:
        assert Capability.NATIVE_VECTORS in storage.capabilities
        assert storage.notes == ()


class TestPostgreSQLInASchemaOfItsOwn(TestPostgreSQL):
    @pytest.fixture
    def opener(self, dsn: str) -> Opener:
        return partial(PostgreSQLStorage.from_dsn, dsn, embedding_dim=DIMS, schema="Agent's memory")

    @pytest.fixture
    def storage(self, dsn: str) -> Iterator[StorageBackend]:
        yield from emptied_afterwards(dsn, schema="Agent's memory")


class TestPostgreSQLWithoutPgvector(OnPostgreSQLWithoutPgvector, StorageContract, SharedContract):
    @pytest.fixture
    def opener(self, dsn: str) -> Opener:
        return partial(PostgreSQLStorage.from_dsn, dsn, embedding_dim=DIMS)

    def test_a_note_says_what_is_missing_and_how_to_get_it(self, storage: StorageBackend) -> None:
        assert Capability.NATIVE_VECTORS not in storage.capabilities
        (note,) = storage.notes
        assert "CREATE EXTENSION vector" in note


class TestAzureCosmos(StorageContract, SharedContract):
    @pytest.fixture
    def opener(self, cosmos: CosmosServer) -> Opener:
        name = empty_database(cosmos, DIMS)
        return partial(AzureCosmosStorage, cosmos.url, KEY, name, embedding_dim=DIMS, lease_seconds=5.0)

    @pytest.fixture
    def storage(self, opener: Opener) -> Iterator[StorageBackend]:
        with opener() as store:
            yield store

    def test_a_note_says_what_cosmos_db_cannot_do(self, storage: StorageBackend) -> None:
        (note,) = storage.notes
        assert "no transactions across partitions" in note
        assert Capability.NATIVE_VECTORS in storage.capabilities
