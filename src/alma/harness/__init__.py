"""The harness: runs an agent in a setting with memory, and learns from each run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alma.lazy import loader

if TYPE_CHECKING:
    from alma.harness.base import Agent as Agent
    from alma.harness.base import Context as Context
    from alma.harness.base import MemorySchema as MemorySchema
    from alma.harness.base import RunResult as RunResult
    from alma.harness.base import RunStatus as RunStatus
    from alma.harness.base import Setting as Setting
    from alma.harness.base import Tool as Tool
    from alma.harness.base import ToolType as ToolType
    from alma.harness.domains import CodingDomain as CodingDomain
    from alma.harness.domains import ContentDomain as ContentDomain
    from alma.harness.domains import Domain as Domain
    from alma.harness.domains import OperationsDomain as OperationsDomain
    from alma.harness.domains import ResearchDomain as ResearchDomain
    from alma.harness.domains import create_harness as create_harness
    from alma.harness.runner import Harness as Harness

_HOMES = {
    "alma.harness.base": ("Setting", "Context", "Agent", "MemorySchema", "Tool", "ToolType", "RunResult", "RunStatus"),
    "alma.harness.runner": ("Harness",),
    "alma.harness.domains": (
        "Domain",
        "CodingDomain",
        "ResearchDomain",
        "ContentDomain",
        "OperationsDomain",
        "create_harness",
    ),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [*_HOME_OF]

__getattr__ = loader(__name__, _HOME_OF)
