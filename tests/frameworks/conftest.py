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


@pytest.fixture
def measured(tmp_path: Path) -> Iterator[ALMA]:
    """A memory that measures the benefit of its memories, with a fact about billing."""
    with ALMA.quickstart(tmp_path / "measured.db", "shop", benefit={"withhold": 1e-9}) as memory:
        memory.add_domain_knowledge("helena", "billing", "The billing service deploys to the cluster")
        yield memory
