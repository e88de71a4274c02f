"""A memory that a service is made of."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from alma import ALMA
from tests.faces.rest import memory_at, place_of


@pytest.fixture
def place(request: pytest.FixtureRequest) -> str:
    """The address of an empty store: an SQLite file, unless a test asks for both with `on_both_stores`."""
    return place_of(request)


@pytest.fixture
def alma(place: str) -> Iterator[ALMA]:
    with memory_at(place) as memory:
        yield memory
