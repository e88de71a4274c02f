"""Stores of every kind, two at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from alma.bootstrap import open_storage
from alma.storage.base import StorageBackend
from tests.conftest import fresh_database
from tests.support.postgres import PostgresServer

DIMS = 3
OpenStore = Callable[..., StorageBackend]


@pytest.fixture
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenStore]:
    """Opens an empty store of a kind: sqlite, files or postgresql."""
    with ExitStack() as stack:
        made = 0

        def open_new(kind: str, embedding_dim: int = DIMS, **options: Any) -> StorageBackend:
            nonlocal made
            made += 1
            if kind == "postgresql":
                server: PostgresServer = request.getfixturevalue("postgres")
                place = stack.enter_context(fresh_database(server))
            elif kind == "sqlite":
                place = str(tmp_path / f"store{made}.db")
            else:
                place = f"file://{tmp_path / f'store{made}'}"
            return stack.enter_context(open_storage(place, embedding_dim, **options))

        yield open_new
