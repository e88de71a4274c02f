"""Every store, opened once, for tests that ask all of them the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from alma.storage.azure_cosmos import AzureCosmosStorage
from alma.storage.base import StorageBackend
from alma.storage.file_based import FileBasedStorage
from alma.storage.postgresql import PostgreSQLStorage
from alma.storage.sqlite_local import SQLiteStorage
from tests.agreement.stores import DIMS
from tests.conftest import fresh_database
from tests.support.cosmos import empty_database
from tests.support.cosmos_server import KEY, CosmosServer
from tests.support.postgres import PostgresServer

Stores = dict[str, StorageBackend]


@pytest.fixture(scope="module")
def databases(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    with ExitStack() as stack:
        dsn = stack.enter_context(fresh_database(postgres))
        path = tmp_path_factory.mktemp("sqlite") / "alma.db"
        yield {
            "sqlite": stack.enter_context(SQLiteStorage(path, embedding_dim=DIMS)),
            "postgresql": stack.enter_context(PostgreSQLStorage.from_dsn(dsn, embedding_dim=DIMS, pool_size=2)),
        }


@pytest.fixture(scope="module")
def cosmos_store(cosmos: CosmosServer) -> Iterator[StorageBackend]:
    """A store on Cosmos DB, for tests with few examples: every request goes over HTTP."""
    with AzureCosmosStorage(cosmos.url, KEY, empty_database(cosmos, DIMS), embedding_dim=DIMS) as store:
        yield store


@pytest.fixture
def stores(databases: Stores, tmp_path: Path) -> Iterator[Stores]:
    """The databases, and files that start anew: every write rewrites a whole file, so they had better stay short."""
    with FileBasedStorage(tmp_path / "files", embedding_dim=DIMS) as files:
        yield {**databases, "files": files}
