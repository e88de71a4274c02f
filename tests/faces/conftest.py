"""A memory that a service is made of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from alma import ALMA
from tests.faces.rest import memory_at, place_of


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a new store is to be: an SQLite file, unless a test asks for both with `on_both_stores`."""
    return place_of(request, tmp_path)


@pytest.fixture
def alma(place: str) -> Iterator[ALMA]:
    with memory_at(place) as memory:
        yield memory
