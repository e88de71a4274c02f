"""A memory over a real store of each kind, with the local model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from alma import ALMA

Open = Callable[..., ALMA]


@pytest.fixture(params=["sqlite", "files", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a new store of each kind is."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgres_dsn"))
    return str(tmp_path / "alma.db") if request.param == "sqlite" else f"file://{tmp_path / 'files'}"


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
