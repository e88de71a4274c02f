"""Work items inside a transaction: statuses, dependencies, and the strategies that order them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from alma.clock import now
from alma.errors import NotFoundError, ValidationError
from alma.memory.updates import Screen, screened, without_secrets
from alma.model.common import checked_name
from alma.model.query import Compare
from alma.model.scope import Scope
from alma.model.workspace import WorkItem, WorkItemStatus
from alma.storage.base import Transaction

BLOCKED_REASON = "block_reason"
"""The key of an item's metadata that says what it waits for besides other items."""

_S = WorkItemStatus
_FOLLOWERS: dict[WorkItemStatus, tuple[WorkItemStatus, ...]] = {
    _S.PENDING: (_S.IN_PROGRESS, _S.BLOCKED, _S.REVIEW, _S.DONE, _S.FAILED),
    _S.IN_PROGRESS: (_S.PENDING, _S.BLOCKED, _S.REVIEW, _S.DONE, _S.FAILED),
    _S.BLOCKED: (_S.PENDING, _S.IN_PROGRESS, _S.REVIEW, _S.DONE, _S.FAILED),
    _S.REVIEW: (_S.PENDING, _S.IN_PROGRESS, _S.BLOCKED, _S.DONE, _S.FAILED),
    _S.DONE: (_S.PENDING, _S.IN_PROGRESS),
    _S.FAILED: (_S.PENDING, _S.IN_PROGRESS, _S.BLOCKED),
}
_WITH_OPEN_BLOCKERS = (_S.BLOCKED, _S.FAILED)


def parsed_status(said: WorkItemStatus | str) -> WorkItemStatus:
    """The status by any spelling, or an error that lists the statuses."""
    word = (
        "_".join(said.strip().casefold().replace("-", " ").replace("_", " ").split()) if isinstance(said, str) else said
    )
    try:
        return WorkItemStatus(word)
    except ValueError:
        raise ValidationError("work_item", "status", said, f"must be one of {', '.join(WorkItemStatus)}") from None


def locked(tx: Transaction, item_id: str, scope: Scope) -> WorkItem:
    """The item, locked until the end of the transaction."""
    found = tx.lock(WorkItem, [item_id], scope)
    if not found:
        raise NotFoundError("work_item", item_id)
    return found[0]


def create(tx: Transaction, item: WorkItem, scope: Scope) -> WorkItem:
    """Save a new item, blocked while one of its blockers is not done."""
    if tx.get(WorkItem, item.id, Scope.everywhere()) is not None:
        raise ValidationError("work_item", "id", item.id, "exists already; choose another id")
    if item.parent_id is not None:
        tx.require(WorkItem, item.parent_id, scope)
    blockers = list(dict.fromkeys(item.blocked_by))
    item = item.replace(blocked_by=())
    tx.insert(item)
    for blocker in blockers:
        item = add_dependency(tx, item.id, blocker, scope)
    return item


def set_status(
    tx: Transaction,
    item_id: str,
    status: WorkItemStatus,
    scope: Scope,
    note: str | None,
    screen: Screen = without_secrets,
) -> WorkItem:
    """Change the status of an item, and unblock or block the items that wait for it."""
    item = locked(tx, item_id, scope)
    if item.status is status and note is None:
        return item
    _require_allowed(item, status)
    entering = screened(item, _entering(item, status, now(), note), screen)
    changed = write(tx, item, entering, scope)
    if status is _S.DONE and item.status is not _S.DONE:
        _unblock_waiting(tx, changed, scope)
    elif item.status is _S.DONE and status is not _S.DONE:
        _block_waiting_again(tx, changed, scope)
    return changed


def claim(tx: Transaction, item_id: str, agent: str, scope: Scope) -> WorkItem | None:
    """Start an item for an agent, unless another agent has taken it."""
    found = tx.lock(WorkItem, [item_id], scope)
    if not found or found[0].status is not _S.PENDING or not is_for(found[0], agent):
        return None
    return write(
        tx, found[0], {"agent": found[0].agent or agent, **_entering(found[0], _S.IN_PROGRESS, now(), None)}, scope
    )


def add_dependency(tx: Transaction, item_id: str, blocker_id: str, scope: Scope) -> WorkItem:
    """Make an item wait for another one; a cycle is refused."""
    if item_id == blocker_id:
        raise ValidationError("work_item", "blocked_by", blocker_id, "cannot be the item itself")
    item, blocker = _both(tx, item_id, blocker_id, scope)
    _refuse_cycle(tx, item, blocker, scope)
    if item.status in (_S.DONE, _S.FAILED):
        raise ValidationError("work_item", "status", item.status, "has ended and cannot wait; reopen it first")
    write(tx, blocker, {"blocks": _with(blocker.blocks, item.id)}, scope)
    if blocker.status is _S.DONE:
        return item
    waiting = {"blocked_by": _with(item.blocked_by, blocker.id)}
    return write(tx, item, {**waiting, **_entering(item, _S.BLOCKED, now(), None)}, scope)


def wait_for_other(
    tx: Transaction, item_id: str, waits_for: str, scope: Scope, note: str | None, screen: Screen
) -> WorkItem:
    """Make an item wait for something that is not an item of the project, by any name."""
    item = set_status(tx, item_id, _S.BLOCKED, scope, note, screen)
    return write(tx, item, screened(item, {"blocked_by": _with(item.blocked_by, waits_for)}, screen), scope)


def remove_dependency(tx: Transaction, item_id: str, blocker_id: str, scope: Scope) -> WorkItem:
    """Remove a dependency between two items, or of an item on something that is not an item."""
    found = _locked(tx, (item_id, blocker_id), scope)
    item, blocker = found.get(item_id), found.get(blocker_id)
    if item is None or (blocker is None and blocker_id not in item.blocked_by):
        raise NotFoundError("work_item", item_id if item is None else blocker_id)
    if blocker is not None:
        write(tx, blocker, {"blocks": _without(blocker.blocks, item.id)}, scope)
    return _released(tx, item, blocker_id, scope)


def delete(tx: Transaction, item_id: str, scope: Scope) -> None:
    """Delete an item; items that waited for it are unblocked, its children lose their parent."""
    item = locked(tx, item_id, scope)
    _unblock_waiting(tx, item, scope)
    for blocker in tx.lock(WorkItem, item.blocked_by, scope):
        write(tx, blocker, {"blocks": _without(blocker.blocks, item.id)}, scope)
    for child in tx.find(WorkItem, scope, Compare("parent_id", "eq", item.id)):
        tx.update(WorkItem, child.id, {"parent_id": None, "updated_at": now()}, scope)
    tx.delete(WorkItem, [item.id], scope)


def _require_allowed(item: WorkItem, status: WorkItemStatus) -> None:
    if status is not item.status and status not in _FOLLOWERS[item.status]:
        raise ValidationError(
            "work_item", "status", status, f"cannot follow {item.status}; {', '.join(_FOLLOWERS[item.status])} can"
        )
    if item.blocked_by and status not in _WITH_OPEN_BLOCKERS:
        raise ValidationError(
            "work_item",
            "status",
            status,
            f"must wait: {item.title!r} is blocked by {', '.join(item.blocked_by)}; finish those or remove_dependency",
        )


def _entering(item: WorkItem, status: WorkItemStatus, moment: datetime, note: str | None) -> dict[str, Any]:
    """The changes of an item that enters a status: times, counts and the reason for being blocked."""
    changes: dict[str, Any] = {"status": status}
    if item.status is _S.IN_PROGRESS and status is not _S.IN_PROGRESS and item.started_at is not None:
        spent = max(0, round((moment - item.started_at).total_seconds() * 1000))
        changes["time_spent_ms"] = item.time_spent_ms + spent
    if status is _S.IN_PROGRESS and item.status is not _S.IN_PROGRESS:
        changes |= {"started_at": moment, "attempt_count": item.attempt_count + 1}
    if status is not item.status:
        changes["completed_at"] = moment if status in (_S.DONE, _S.FAILED) else None
    return {**changes, "metadata": _metadata(item, status, note)}


def _metadata(item: WorkItem, status: WorkItemStatus, note: str | None) -> dict[str, Any]:
    metadata = {key: value for key, value in item.metadata.items() if key != BLOCKED_REASON or status is _S.BLOCKED}
    if note is not None:
        metadata[BLOCKED_REASON if status is _S.BLOCKED else "note"] = note
    return metadata


def _unblock_waiting(tx: Transaction, blocker: WorkItem, scope: Scope) -> None:
    for item in tx.lock(WorkItem, sorted(blocker.blocks), scope):
        _released(tx, item, blocker.id, scope)


def _released(tx: Transaction, item: WorkItem, blocker_id: str, scope: Scope) -> WorkItem:
    """The item without this blocker; pending if it was the last one."""
    blocked_by = _without(item.blocked_by, blocker_id)
    waits = blocked_by or BLOCKED_REASON in item.metadata
    status = item.status if waits or item.status is not _S.BLOCKED else _S.PENDING
    return write(tx, item, {"blocked_by": blocked_by, "status": status}, scope)


def _block_waiting_again(tx: Transaction, blocker: WorkItem, scope: Scope) -> None:
    for item in tx.lock(WorkItem, sorted(blocker.blocks), scope):
        if item.status not in (_S.DONE, _S.FAILED):
            waiting = {"blocked_by": _with(item.blocked_by, blocker.id)}
            write(tx, item, {**waiting, **_entering(item, _S.BLOCKED, now(), None)}, scope)


def _both(tx: Transaction, item_id: str, blocker_id: str, scope: Scope) -> tuple[WorkItem, WorkItem]:
    found = _locked(tx, (item_id, blocker_id), scope)
    for each in (item_id, blocker_id):
        if each not in found:
            raise NotFoundError("work_item", each)
    return found[item_id], found[blocker_id]


def _locked(tx: Transaction, item_ids: Iterable[str], scope: Scope) -> dict[str, WorkItem]:
    ids = [checked_name("work_item", "id", each) for each in item_ids]
    return {item.id: item for item in tx.lock(WorkItem, sorted(ids), scope)}


def _refuse_cycle(tx: Transaction, item: WorkItem, blocker: WorkItem, scope: Scope) -> None:
    """Follow the items that wait for this one, and lock them, so that no cycle can be closed meanwhile."""
    seen = {item.id}
    reached = [item]
    while reached:
        following = [each for each in reached.pop().blocks if each not in seen]
        if blocker.id in following:
            raise ValidationError(
                "work_item", "blocked_by", blocker.id, f"would close a cycle: it waits for {item.title!r}"
            )
        seen.update(following)
        reached.extend(tx.lock(WorkItem, sorted(following), scope))


def write(tx: Transaction, item: WorkItem, changes: dict[str, Any], scope: Scope) -> WorkItem:
    """Store the changed fields of a locked item."""
    changed = {name: value for name, value in changes.items() if getattr(item, name) != value}
    if not changed:
        return item
    written = tx.update(WorkItem, item.id, {**changed, "updated_at": now()}, scope)
    assert written is not None, "it is locked"
    return written


def _with(ids: Iterable[str], added: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*ids, added)))


def _without(ids: Iterable[str], removed: str) -> tuple[str, ...]:
    return tuple(each for each in ids if each != removed)


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


_FEW_WORDS = 20
"""Of two efforts that are alike, the one that is described in far fewer characters goes first."""


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
            return lambda item: (effort_minutes(item), len(item.description) // _FEW_WORDS, *_importance(item))
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
