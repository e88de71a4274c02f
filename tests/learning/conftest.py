"""A memory over a real store of each kind, with the local model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from alma import ALMA
from tests.conftest import empty_store

Open = Callable[..., ALMA]


@pytest.fixture(params=["sqlite", "files", "postgresql"])
def place(request: pytest.FixtureRequest) -> str:
    """The address of an empty store of each kind."""
    return empty_store(request, request.param)


@pytest.fixture
def open_alma(place: str) -> Iterator[Open]:
    """Opens memories on the same store, as two processes would; they are closed at the end."""
    opened: list[ALMA] = []

    def make(**settings: Any) -> ALMA:
        opened.append(ALMA.quickstart(place, "shop", **settings))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


@pytest.fixture
def alma(open_alma: Open) -> ALMA:
    return open_alma()
