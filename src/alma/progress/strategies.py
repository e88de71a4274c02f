"""Strategies: the order in which work items are started."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from alma.errors import ValidationError
from alma.model.common import checked_name
from alma.model.workspace import WorkItem, WorkItemStatus

OPEN = (WorkItemStatus.PENDING, WorkItemStatus.IN_PROGRESS, WorkItemStatus.BLOCKED, WorkItemStatus.REVIEW)
"""The statuses of unfinished items."""

_USUAL_MINUTES = 60
_MINUTES_PER_CHECK = 15
_MINUTES_PER_ATTEMPT = 30

Key = Callable[[WorkItem], tuple[Any, ...]]


class Strategy(StrEnum):
    """How the next item is chosen."""

    PRIORITY = "priority"
    """The most important first."""
    BLOCKED_UNBLOCK = "blocked_unblock"
    """First what most other items wait for, directly or indirectly."""
    QUICK_WIN = "quick_win"
    """First the smallest effort: the estimate, else a guess from the number of checks and attempts."""
    FIFO = "fifo"
    """The oldest first."""

    @classmethod
    def parse(cls, named: str) -> Strategy:
        """The strategy with this name, or an error that lists them."""
        try:
            return cls(named.strip().casefold().replace("-", "_") if isinstance(named, str) else named)
        except ValueError:
            raise ValidationError("progress", "strategy", named, f"must be one of {', '.join(cls)}") from None


def ranked(open_items: Sequence[WorkItem], strategy: Strategy, agent: str | None) -> list[WorkItem]:
    """The items that can be started, next one first; for an agent, its own and unassigned ones."""
    if agent is not None:
        checked_name("work_item", "agent", agent)
    startable = (item for item in _without_open_parts(open_items) if item.status is WorkItemStatus.PENDING)
    mine = (item for item in startable if agent is None or is_for(item, agent))
    return sorted(mine, key=_key(strategy, open_items))


def _without_open_parts(open_items: Sequence[WorkItem]) -> Iterator[WorkItem]:
    """Items without open children; children that wait for their parent come after it."""
    by_id = {item.id: item for item in open_items}
    parts: dict[str, set[str]] = {}
    for item in open_items:
        if item.parent_id is not None:
            parts.setdefault(item.parent_id, set()).add(item.id)
    return (item for item in open_items if not parts.get(item.id, set()) - _waiting_for(item, by_id))


def is_for(item: WorkItem, agent: str) -> bool:
    """Whether an agent may take an item: its own, ignoring case, or an unassigned one."""
    return item.agent is None or item.agent.casefold() == agent.casefold()


def begun(open_items: Sequence[WorkItem], strategy: Strategy, agent: str | None) -> list[WorkItem]:
    """The items in progress, next one first; for an agent, its own."""
    mine = (
        item
        for item in open_items
        if item.status is WorkItemStatus.IN_PROGRESS
        and (agent is None or (item.agent is not None and is_for(item, agent)))
    )
    return sorted(mine, key=_key(strategy, open_items))


def effort_minutes(item: WorkItem) -> int:
    """The effort of an item: its estimate, or a guess that ranks after small estimates."""
    if item.estimate_minutes is not None:
        return item.estimate_minutes
    checks = len(item.tests) + len(item.acceptance_criteria)
    return _USUAL_MINUTES + _MINUTES_PER_CHECK * checks + _MINUTES_PER_ATTEMPT * item.attempt_count


def _key(strategy: Strategy, open_items: Iterable[WorkItem]) -> Key:
    match strategy:
        case Strategy.FIFO:
            return _age
        case Strategy.PRIORITY:
            return _importance
        case Strategy.QUICK_WIN:
            return lambda item: (effort_minutes(item), *_importance(item))
        case Strategy.BLOCKED_UNBLOCK:
            by_id = {item.id: item for item in open_items}
            return lambda item: (-len(_waiting_for(item, by_id)), *_importance(item))


def _age(item: WorkItem) -> tuple[Any, ...]:
    return item.created_at, item.id


def _importance(item: WorkItem) -> tuple[Any, ...]:
    return -item.priority, *_age(item)


def _waiting_for(item: WorkItem, open_items: Mapping[str, WorkItem]) -> set[str]:
    """The open items that cannot go on before this one is done."""
    waiting: set[str] = set()
    reached = [item]
    while reached:
        for waiter in reached.pop().blocks:
            if waiter in open_items and waiter not in waiting:
                waiting.add(waiter)
                reached.append(open_items[waiter])
    return waiting
