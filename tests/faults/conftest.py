"""Where the stores of the fault tests live."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import fresh_database
from tests.faults.stores import files_address, sqlite_address
from tests.support.postgres import PostgresServer

pytest.register_assert_rewrite("tests.faults.checks", "tests.faults.processes")


@pytest.fixture(scope="session")
def durable_postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server with the settings it comes with, which keep what was committed."""
    with PostgresServer() as server:
        yield server


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    """The address of a new store in an SQLite file."""
    return sqlite_address(tmp_path / "alma.db")


@pytest.fixture
def files(tmp_path: Path) -> str:
    """The address of a new store in a folder of JSON files."""
    return files_address(tmp_path / "alma")


@pytest.fixture
def postgresql(durable_postgres: PostgresServer) -> Iterator[str]:
    """The address of a new store in a PostgreSQL database."""
    with fresh_database(durable_postgres) as dsn:
        yield dsn


@pytest.fixture(params=["sqlite", "postgresql", "files"])
def address(request: pytest.FixtureRequest) -> str:
    """The address of a new store, of each sort in turn."""
    return str(request.getfixturevalue(request.param))
