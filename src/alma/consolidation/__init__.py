"""Consolidation: near-duplicate memories are merged into one, and merges can be undone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alma.lazy import loader

if TYPE_CHECKING:
    from alma.consolidation.engine import ConsolidationEngine as ConsolidationEngine
    from alma.consolidation.merging import ConsolidationResult as ConsolidationResult
    from alma.consolidation.merging import MergedGroup as MergedGroup

_HOME_OF = {
    "ConsolidationEngine": "alma.consolidation.engine",
    "ConsolidationResult": "alma.consolidation.merging",
    "MergedGroup": "alma.consolidation.merging",
}

__all__ = [*_HOME_OF]

__getattr__ = loader(__name__, _HOME_OF)
