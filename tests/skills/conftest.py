"""A memory with lessons that are confirmed to different degrees."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from alma import ALMA

TASKS = ("Test the login form", "Test the sign-up form", "Test the password form", "Test the search form")
STRATEGY = "wait until the network is idle before asserting"


@pytest.fixture
def alma(sqlite_path: Path) -> Iterator[ALMA]:
    with ALMA.quickstart(sqlite_path, "shop") as memory:
        yield memory


def confirm(alma: ALMA, *, agent: str = "helena", strategy: str = STRATEGY, sessions: int = 4) -> str:
    """Confirm a strategy by several tasks in several sessions; returns the id of the lesson."""
    rule = None
    for number, task in enumerate(TASKS):
        for _ in range(3):
            metadata = {"session": f"s{number % sessions}"}
            learned = alma.learn(agent, task, "success", strategy, metadata=metadata)
            rule = learned.heuristic or rule
    assert rule is not None
    return rule.id
