"""Memories with the local model: on SQLite, or on every kind of store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
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
    """Opens memories on the same store of each kind, as two processes would; they are closed at the end."""
    opened: list[ALMA] = []

    def make(**settings: Any) -> ALMA:
        opened.append(ALMA.quickstart(place, "shop", **settings))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


@pytest.fixture
def alma(sqlite_path: Path) -> Iterator[ALMA]:
    """A memory on SQLite, for what does not depend on the store."""
    with ALMA.quickstart(sqlite_path, "shop") as opened:
        yield opened
