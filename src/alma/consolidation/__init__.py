"""Consolidation: memories that say the same become one, and can be taken apart again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alma.lazy import loader

if TYPE_CHECKING:
    from alma.consolidation.engine import ConsolidationEngine as ConsolidationEngine
    from alma.consolidation.result import ConsolidationResult as ConsolidationResult
    from alma.consolidation.result import MergedGroup as MergedGroup

_HOME_OF = {
    "ConsolidationEngine": "alma.consolidation.engine",
    "ConsolidationResult": "alma.consolidation.result",
    "MergedGroup": "alma.consolidation.result",
}

__all__ = [*_HOME_OF]

__getattr__ = loader(__name__, _HOME_OF)
