"""Databases that hold nothing yet."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import fresh_database
from tests.support.postgres import PostgresServer


@pytest.fixture
def postgres_dsn(postgres: PostgresServer) -> Iterator[str]:
    """A new database without a schema of ours."""
    with fresh_database(postgres, empty=True) as dsn:
        yield dsn
