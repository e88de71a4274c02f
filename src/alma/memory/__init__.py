"""General memories: the journal, their layers, search, and the working context."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alma.lazy import loader

if TYPE_CHECKING:
    from alma.memory.context import WorkingContext as WorkingContext
    from alma.memory.filters import MemoryFilter as MemoryFilter
    from alma.memory.git import GitContext as GitContext
    from alma.memory.git import read_git_context as read_git_context
    from alma.memory.journal import Journal as Journal
    from alma.memory.layers import PromotionRules as PromotionRules
    from alma.memory.layers import route_layers as route_layers

_HOME_OF = {
    "Journal": "alma.memory.journal",
    "MemoryFilter": "alma.memory.filters",
    "WorkingContext": "alma.memory.context",
    "GitContext": "alma.memory.git",
    "read_git_context": "alma.memory.git",
    "route_layers": "alma.memory.layers",
    "PromotionRules": "alma.memory.layers",
}

__all__ = [*_HOME_OF]

__getattr__ = loader(__name__, _HOME_OF)
