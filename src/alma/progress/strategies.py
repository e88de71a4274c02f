"""Strategies: which of the items that could be started is the next one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from alma.errors import ValidationError
from alma.model.common import checked_name
from alma.model.workspace import WorkItem, WorkItemStatus

OPEN = (WorkItemStatus.PENDING, WorkItemStatus.IN_PROGRESS, WorkItemStatus.BLOCKED, WorkItemStatus.REVIEW)
"""The statuses of what is still to be finished."""

_USUAL_MINUTES = 60
_MINUTES_PER_CHECK = 15
_MINUTES_PER_ATTEMPT = 30

Key = Callable[[WorkItem], tuple[Any, ...]]


class Strategy(StrEnum):
    """What decides which item is the next one."""

    PRIORITY = "priority"
    """The most important first."""
    BLOCKED_UNBLOCK = "blocked_unblock"
    """First what most other items wait for, directly or through others."""
    QUICK_WIN = "quick_win"
    """First what is soonest done: by its estimate, else by how much there is to check and how often it was tried."""
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
    """The items that could be started, the next one first; for an agent, its own and those of nobody."""
    if agent is not None:
        checked_name("work_item", "agent", agent)
    startable = (item for item in _not_in_parts(open_items) if item.status is WorkItemStatus.PENDING)
    mine = (item for item in startable if agent is None or is_for(item, agent))
    return sorted(mine, key=_key(strategy, open_items))


def _not_in_parts(open_items: Sequence[WorkItem]) -> Iterator[WorkItem]:
    """The items without those whose open parts come first; a part that waits for the whole itself comes behind it."""
    by_id = {item.id: item for item in open_items}
    parts: dict[str, set[str]] = {}
    for item in open_items:
        if item.parent_id is not None:
            parts.setdefault(item.parent_id, set()).add(item.id)
    return (item for item in open_items if not parts.get(item.id, set()) - _waiting_for(item, by_id))


def is_for(item: WorkItem, agent: str) -> bool:
    """Whether an agent may take an item: its own, however the case of its name is written, or nobody's."""
    return item.agent is None or item.agent.casefold() == agent.casefold()


def begun(open_items: Sequence[WorkItem], strategy: Strategy, agent: str | None) -> list[WorkItem]:
    """The items that somebody is working on, the next one first; for an agent, its own."""
    mine = (
        item
        for item in open_items
        if item.status is WorkItemStatus.IN_PROGRESS
        and (agent is None or (item.agent is not None and is_for(item, agent)))
    )
    return sorted(mine, key=_key(strategy, open_items))


def effort_minutes(item: WorkItem) -> int:
    """How long an item may take: its estimate, or a guess that leaves estimated small ones in front."""
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
