"""A memory for what plugs into a framework, in the environment of that framework."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from alma import ALMA

OpenMemory = Callable[[], ALMA]


@pytest.fixture
def open_memory(tmp_path: Path) -> Iterator[OpenMemory]:
    """Opens the same store again, as another process would."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(ALMA.quickstart(tmp_path / "alma.db", project_id="shop"))


@pytest.fixture
def alma(open_memory: OpenMemory) -> ALMA:
    return open_memory()
