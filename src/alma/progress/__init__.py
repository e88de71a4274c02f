"""Progress: work items, their order, and how far they are; each name is loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alma.lazy import loader

if TYPE_CHECKING:
    from alma.model.workspace import ProgressLog as ProgressLog
    from alma.model.workspace import WorkItem as WorkItem
    from alma.model.workspace import WorkItemStatus as WorkItemStatus
    from alma.progress.items import Strategy as Strategy
    from alma.progress.tracker import ProgressSummary as ProgressSummary
    from alma.progress.tracker import ProgressTracker as ProgressTracker

_HOME_OF = {
    "ProgressLog": "alma.model.workspace",
    "ProgressSummary": "alma.progress.tracker",
    "ProgressTracker": "alma.progress.tracker",
    "Strategy": "alma.progress.items",
    "WorkItem": "alma.model.workspace",
    "WorkItemStatus": "alma.model.workspace",
}

__all__ = [*_HOME_OF]

__getattr__ = loader(__name__, _HOME_OF)
