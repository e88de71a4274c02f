"""The calls of alma-memory 0.4 on a progress tracker and its summary, in terms of the present ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from alma.arguments import renamed
from alma.model.governance import ANONYMOUS
from alma.model.workspace import ProgressLog, WorkItem, WorkItemStatus
from alma.progress import items
from alma.progress.items import is_for

if TYPE_CHECKING:
    from alma.storage.base import StorageBackend

_RENAMED = renamed(
    {
        "completion_rate": None,
        "success_rate": None,
        "avg_time_per_item_ms": None,
        "generated_at": None,
        "total_time_ms": "time_spent_ms",
        "last_activity": "last_updated",
        "current_item": "current_focus",
    }
)


def earlier_arguments(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a summary: those that follow from others are dropped, others have another name."""
    told = _RENAMED(given)
    focus = told.get("current_focus", ())
    return {**told, "current_focus": focus if isinstance(focus, tuple) else () if focus is None else (focus,)}


class EarlierSummary:
    """What a summary was asked for under other names."""

    __slots__ = ()

    @property
    def completion_rate(self: Any) -> float:
        """The share of items that are done."""
        return self.completion  # type: ignore[no-any-return]

    @property
    def success_rate(self: Any) -> float:
        """The share of ended items that are done."""
        ended = self.done + self.failed
        return self.done / ended if ended else 0.0

    @property
    def current_item(self: Any) -> WorkItem | None:
        """The most important item in progress."""
        return next(iter(self.current_focus), None)

    @property
    def total_time_ms(self: Any) -> int:
        """The time spent on all items."""
        return self.time_spent_ms  # type: ignore[no-any-return]

    @property
    def avg_time_per_item_ms(self: Any) -> float:
        """The time spent for each item that is done."""
        return self.time_spent_ms / self.done if self.done else 0.0

    @property
    def last_activity(self: Any) -> datetime | None:
        """When an item changed last."""
        return self.last_updated  # type: ignore[no-any-return]

    def format_summary(self: Any) -> str:
        """The counts, and what is done now and next, as lines."""
        lines = [f"Progress: {self.done}/{self.total} ({self.completion_percentage}%)"]
        lines += [f"  {name}: {getattr(self, name.lower().replace(' ', '_'))}" for name in _COUNTED]
        lines += [f"  Current: {self.current_item.title}"] if self.current_item else []
        lines += [f"  Next: {self.next_suggested.title}"] if self.next_suggested else []
        return "\n".join([*lines, *([f"  Blockers: {len(self.blockers)} items"] if self.blockers else [])])


_COUNTED = ("In Progress", "Blocked", "Pending")


class EarlierCalls:
    """The calls under other names; an unknown id gives None instead of an error."""

    project_id: str

    def get_work_item(self: Any, item_id: str) -> WorkItem | None:
        """The item with this id, or None; see `get_item`."""
        return self.get_item(item_id)  # type: ignore[no-any-return]

    def update_work_item(self: Any, item_id: str, **updates: Any) -> WorkItem | None:
        """Change fields of an item, the status among them; see `update_item` and `update_status`."""
        status = updates.pop("status", None)
        if self.get_item(item_id) is None:
            return None
        item = self.update_item(item_id, **updates) if updates else self.require_item(item_id)
        return item if status is None else self.update_status(item_id, status)  # type: ignore[no-any-return]

    def delete_work_item(self: Any, item_id: str) -> bool:
        """Delete an item; returns whether there was one."""
        if self.get_item(item_id) is None:
            return False
        self.delete_item(item_id)
        return True

    def start_item(self: Any, item_id: str) -> WorkItem | None:
        """Set an item in progress."""
        return self._to(item_id, WorkItemStatus.IN_PROGRESS)  # type: ignore[no-any-return]

    def complete_item(self: Any, item_id: str, tests_passing: bool = True) -> WorkItem | None:
        """Set an item to done, and whether its tests pass."""
        if self._to(item_id, WorkItemStatus.DONE) is None:
            return None
        return self.update_item(item_id, tests_passing=tests_passing)  # type: ignore[no-any-return]

    def block_item(self: Any, item_id: str, blocked_by: str | None = None, reason: str = "") -> WorkItem | None:
        """Say that an item waits for another one, or for a reason; see `block`."""
        if self.get_item(item_id) is None:
            return None
        if blocked_by is None or self.get_item(blocked_by) is not None:
            told = reason or (None if blocked_by else "blocked")
            return self.block(item_id, blocked_by, told)  # type: ignore[no-any-return]
        return self._write(  # type: ignore[no-any-return]
            lambda tx: items.wait_for_other(tx, item_id, blocked_by, self._scope, reason or None, self._screen),
            ANONYMOUS,
        )

    def unblock_item(self: Any, item_id: str) -> WorkItem | None:
        """An item waits no longer; see `unblock`."""
        return None if self.get_item(item_id) is None else self.unblock(item_id)

    def get_actionable_items(self: Any, agent: str | None = None) -> list[WorkItem]:
        """The open items that wait for no other, of this agent or of no agent, oldest first."""
        return [item for item in self.get_items() if item.is_actionable() and (agent is None or is_for(item, agent))]

    def get_blocked_items(self: Any, agent: str | None = None) -> list[WorkItem]:
        """The items that wait."""
        return self.get_items(WorkItemStatus.BLOCKED, agent)  # type: ignore[no-any-return]

    def get_in_progress_items(self: Any, agent: str | None = None) -> list[WorkItem]:
        """The items in progress."""
        return self.get_items(WorkItemStatus.IN_PROGRESS, agent)  # type: ignore[no-any-return]

    def get_progress_history(
        self: Any, agent: str | None = None, session_id: str | None = None, limit: int = 10
    ) -> list[ProgressLog]:
        """The progress logged, newest first; see `get_progress_log`."""
        logs = self.get_progress_log(None, agent)
        return [log for log in logs if session_id is None or log.session_id == session_id][:limit]

    def create_from_list(self: Any, items: Iterable[Mapping[str, Any]], agent: str | None = None) -> list[WorkItem]:
        """Create an item from each mapping of arguments; the agent is for those that name none."""
        return [self.create_work_item(**{"agent": agent, **item}) for item in items]

    def expand_to_items(self: Any, text: str, item_type: str = "task", agent: str | None = None) -> list[WorkItem]:
        """Create an item from each line that begins with "- "."""
        told = (line.strip().removeprefix("- ").strip() for line in text.splitlines() if line.strip().startswith("- "))
        return [self.create_work_item(each, each, item_type=item_type, agent=agent) for each in told if each]

    def to_dict(self: Any) -> dict[str, Any]:
        """The items and the log of the project, as JSON can hold them."""
        items, logs = self.get_items(), self.get_progress_log(None)
        return {
            "project_id": self.project_id,
            "work_items": [_plain(item) for item in items],
            "progress_logs": [_plain(log) for log in logs],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], storage: StorageBackend | None = None) -> Self:
        """A tracker with the items and the log that `to_dict` gave, written to the store."""
        tracker: Any = cls(data["project_id"], storage)  # type: ignore[call-arg]
        records = [_restored(WorkItem, values, tracker.project_id) for values in data.get("work_items", ())]
        records += [_restored(ProgressLog, values, tracker.project_id) for values in data.get("progress_logs", ())]
        tracker._storage.write(lambda tx: [tx.save(record) for record in records])
        return tracker  # type: ignore[no-any-return]

    def _to(self: Any, item_id: str, status: WorkItemStatus) -> WorkItem | None:
        return None if self.get_item(item_id) is None else self.update_status(item_id, status)


def _plain(record: Any) -> dict[str, Any]:
    return {name: _json(value) for name, value in record.values().items()}


def _json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return list(value) if isinstance(value, tuple) else value


def _restored(cls: Any, values: Mapping[str, Any], project_id: str) -> Any:
    known = {name: value for name, value in values.items() if name in cls.spec.by_name}
    moments = {
        name: datetime.fromisoformat(value)
        for name, value in known.items()
        if name.endswith("_at") and isinstance(value, str)
    }
    return cls(**{**known, **moments, "project_id": project_id})
