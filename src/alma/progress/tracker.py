"""The progress tracker: work items with dependencies, the next item, and a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from alma.arguments import earlier
from alma.bootstrap.stores import StoreUser
from alma.clock import new_id
from alma.errors import ValidationError
from alma.memory.updates import Screen, screened, without_secrets
from alma.model.briefing import Line, Topic, briefing
from alma.model.common import checked_name, checked_whole, spellings
from alma.model.drafts import drafted
from alma.model.fields import JsonObject
from alma.model.governance import ANONYMOUS, Attribution
from alma.model.query import And, Compare, In, Order, Predicate
from alma.model.scope import Scope
from alma.model.workspace import ProgressLog, WorkItem, WorkItemStatus
from alma.progress import items
from alma.progress.earlier import EarlierCalls, EarlierSummary, earlier_arguments
from alma.progress.items import BLOCKED_REASON, OPEN, Strategy, begun, is_for, ranked

if TYPE_CHECKING:
    from alma.storage.base import StorageBackend, Transaction


_EDITABLE = (
    "title",
    "description",
    "item_type",
    "priority",
    "agent",
    "tests",
    "tests_passing",
    "acceptance_criteria",
    "estimate_minutes",
    "metadata",
)
_MAX_RECENT = 5
T = TypeVar("T")


class ProgressTracker(EarlierCalls, StoreUser):
    """The work items of a project, in the given store or in the project's default store."""

    def __init__(
        self, project_id: str, storage: StorageBackend | None = None, screen: Screen = without_secrets
    ) -> None:
        self.project_id = checked_name("progress", "project_id", project_id)
        super().__init__(storage, screen)
        self._scope = Scope(project_id=project_id)
        self.storage = storage

    # ------------------------------------------------------------------ items

    def create_work_item(
        self,
        title: str,
        description: str = "",
        item_type: str = "task",
        agent: str | None = None,
        priority: int = 50,
        parent_id: str | None = None,
        blocked_by: Sequence[str] = (),
        tests: Sequence[str] = (),
        acceptance_criteria: Sequence[str] = (),
        estimate_minutes: int | None = None,
        metadata: JsonObject | None = None,
        item_id: str | None = None,
        by: Attribution = ANONYMOUS,
    ) -> WorkItem:
        """Create an item: pending, or blocked while one of its blockers is not done; priorities range from 0 to 100."""
        item = WorkItem(
            id=item_id or new_id(),
            project_id=self.project_id,
            title=title,
            description=description,
            item_type=item_type,
            priority=priority,
            agent=agent,
            parent_id=parent_id,
            blocked_by=blocked_by,
            tests=tests,
            acceptance_criteria=acceptance_criteria,
            estimate_minutes=estimate_minutes,
            metadata=metadata or {},
        )
        return self._write(lambda tx: items.create(tx, self._screen(item), self._scope), by)

    def get_item(self, item_id: str) -> WorkItem | None:
        """The item with this id in the project, or None."""
        return drafted(self._storage.get(WorkItem, item_id, self._scope))  # type: ignore[no-any-return]

    def require_item(self, item_id: str) -> WorkItem:
        """The item with this id, or NotFoundError."""
        return drafted(self._storage.require(WorkItem, item_id, self._scope))  # type: ignore[no-any-return]

    def get_items(
        self,
        status: WorkItemStatus | str | Sequence[WorkItemStatus | str] | None = None,
        agent: str | None = None,
        item_type: str | None = None,
        parent_id: str | None = None,
    ) -> list[WorkItem]:
        """The items of the project, filtered by status, agent, type or parent, oldest first."""
        where: list[Predicate] = []
        if status is not None:
            wanted = status if isinstance(status, Sequence) and not isinstance(status, str) else [status]
            where.append(In("status", [items.parsed_status(each) for each in wanted]))
        if agent is not None:
            where.append(In("agent", spellings(checked_name("work_item", "agent", agent))))
        if parent_id is not None:
            where.append(Compare("parent_id", "eq", parent_id))
        if item_type is not None:
            where.append(Compare("item_type", "eq", item_type))
        found = self._storage.find(WorkItem, self._scope, And(*where), (Order("created_at"),))
        return drafted(found)  # type: ignore[no-any-return]

    def update_item(self, item_id: str, by: Attribution = ANONYMOUS, **fields: Any) -> WorkItem:
        """Change fields of an item; status and dependencies have separate methods."""
        for name in fields:
            if name not in _EDITABLE:
                raise ValidationError("work_item", None, name, f"cannot be changed here; these can: {_EDITABLE}")

        def update(tx: Transaction) -> WorkItem:
            item = items.locked(tx, item_id, self._scope)
            return items.write(tx, item, screened(item, fields, self._screen), self._scope)

        return self._write(update, by)

    def update_status(
        self,
        item_id: str,
        status: WorkItemStatus | str,
        note: str | None = None,
        by: Attribution = ANONYMOUS,
        *,
        notes: str | None = None,
    ) -> WorkItem:
        """Set the status: pending, in_progress, blocked, review, done or failed.

        A done item no longer blocks others; a reopened one blocks them again. For "blocked", the note says what the
        item waits for. `notes` is the earlier name of the note.
        """
        note = notes if note is None else note
        wanted = items.parsed_status(status)
        return self._write(lambda tx: items.set_status(tx, item_id, wanted, self._scope, note, self._screen), by)

    def delete_item(self, item_id: str, by: Attribution = ANONYMOUS) -> None:
        """Delete an item; items that waited for it are unblocked."""
        self._storage.write(lambda tx: items.delete(tx, item_id, self._scope), by)

    # ------------------------------------------------------------------ dependencies

    def add_dependency(self, item_id: str, blocked_by: str, by: Attribution = ANONYMOUS) -> WorkItem:
        """Make an item wait until another one is done; a cycle is refused."""
        return self._write(lambda tx: items.add_dependency(tx, item_id, blocked_by, self._scope), by)

    def remove_dependency(self, item_id: str, blocked_by: str, by: Attribution = ANONYMOUS) -> WorkItem:
        """Remove a dependency between two items."""
        return self._write(lambda tx: items.remove_dependency(tx, item_id, blocked_by, self._scope), by)

    def block(
        self, item_id: str, blocked_by: str | None = None, reason: str | None = None, by: Attribution = ANONYMOUS
    ) -> WorkItem:
        """Block an item by another one, by a reason, or by both."""
        if blocked_by is None and reason is None:
            raise ValidationError("work_item", "blocked_by", None, "or a reason must say what the item waits for")

        def block(tx: Transaction) -> WorkItem:
            if blocked_by is not None:
                item = items.add_dependency(tx, item_id, blocked_by, self._scope)
                if reason is None:
                    return item
            return items.set_status(tx, item_id, WorkItemStatus.BLOCKED, self._scope, reason, self._screen)

        return self._write(block, by)

    def unblock(self, item_id: str, blocked_by: str | None = None, by: Attribution = ANONYMOUS) -> WorkItem:
        """Remove one blocker of an item, or all blockers and reasons."""

        def unblock(tx: Transaction) -> WorkItem:
            item = items.locked(tx, item_id, self._scope)
            for blocker in item.blocked_by if blocked_by is None else (blocked_by,):
                item = items.remove_dependency(tx, item_id, blocker, self._scope)
            if blocked_by is None and item.status is WorkItemStatus.BLOCKED:
                item = items.set_status(tx, item_id, WorkItemStatus.PENDING, self._scope, None)
            return item

        return self._write(unblock, by)

    # ------------------------------------------------------------------ the next item

    def get_next_item(self, agent: str | None = None, strategy: Strategy | str = Strategy.PRIORITY) -> WorkItem | None:
        """The pending item to work on next, else one in progress; None if all are done.

        An agent gets its own and unassigned items, and of those in progress only its own. Strategies: priority,
        blocked_unblock, quick_win, fifo. Nothing is reserved; use `claim_next` for that.
        """
        chosen = Strategy.parse(strategy)
        with self._storage.snapshot() as tx:
            open_items = self._open(tx)
        candidates = ranked(open_items, chosen, agent) or begun(open_items, chosen, agent)
        return drafted(next(iter(candidates), None))  # type: ignore[no-any-return]

    def get_next_items(
        self, limit: int = 5, strategy: Strategy | str = Strategy.PRIORITY, agent: str | None = None
    ) -> list[WorkItem]:
        """The pending items to start next, in order."""
        chosen = Strategy.parse(strategy)
        checked_whole("progress", "limit", limit, 0)
        with self._storage.snapshot() as tx:
            return drafted(ranked(self._open(tx), chosen, agent)[:limit])  # type: ignore[no-any-return]

    def claim_next(
        self, agent: str, strategy: Strategy | str = Strategy.PRIORITY, by: Attribution | None = None
    ) -> WorkItem | None:
        """Start the next item for an agent and return it, or None; no item is claimed twice."""
        chosen = Strategy.parse(strategy)
        checked_name("work_item", "agent", agent)

        def claim(tx: Transaction) -> WorkItem | None:
            candidates = ranked(self._open(tx), chosen, agent)
            claims = (items.claim(tx, item.id, agent, self._scope) for item in candidates)
            return next((item for item in claims if item is not None), None)

        return self._write(claim, by or Attribution(agent=agent))

    def _open(self, tx: Transaction) -> list[WorkItem]:
        return tx.find(WorkItem, self._scope, In("status", OPEN))

    def _write(self, work: Callable[[Transaction], T], by: Attribution) -> T:
        written = self._storage.write(work, by)
        return drafted(written) if isinstance(written, WorkItem) else written

    # ------------------------------------------------------------------ summaries

    def get_progress_summary(self, agent: str | None = None) -> ProgressSummary:
        """The progress of the project, or of one agent."""
        if agent is not None:
            checked_name("work_item", "agent", agent)
        return ProgressSummary.of(self.project_id, agent, self.get_items())

    def log_progress(
        self,
        agent: str | None = None,
        session_id: str | None = None,
        current_action: str | None = None,
        current_item_id: str | None = None,
        note: str | None = None,
        by: Attribution = ANONYMOUS,
    ) -> ProgressLog:
        """Store a snapshot of the progress and the current action."""

        def log(tx: Transaction) -> ProgressLog:
            if current_item_id is not None:
                tx.require(WorkItem, current_item_id, self._scope)
            summary = self.get_progress_summary()
            entry = ProgressLog(
                project_id=self.project_id,
                agent=agent,
                session_id=session_id,
                current_item_id=current_item_id,
                current_action=current_action,
                note=note,
                items_total=summary.total,
                **{f"items_{status}": getattr(summary, status) for status in WorkItemStatus},
            )
            entry = self._screen(entry)
            tx.save(entry)
            return entry

        return self._write(log, by)

    def get_progress_log(self, limit: int | None = 20, agent: str | None = None) -> list[ProgressLog]:
        """The stored snapshots, latest first."""
        where = And() if agent is None else In("agent", spellings(checked_name("work_item", "agent", agent)))
        return self._storage.find(ProgressLog, self._scope, where, (Order("created_at", "desc"),), limit)


@earlier(earlier_arguments)
@dataclass(frozen=True, slots=True)
class ProgressSummary(EarlierSummary):
    """How far a project, or one agent in it, is."""

    project_id: str
    agent: str | None
    total: int
    pending: int
    in_progress: int
    blocked: int
    done: int
    failed: int
    review: int = 0
    current_focus: tuple[WorkItem, ...] = ()
    next_suggested: WorkItem | None = None
    stuck: tuple[WorkItem, ...] = ()
    blockers: tuple[str, ...] = ()
    """What the blocked items wait for, one sentence each."""
    recently_done: tuple[WorkItem, ...] = ()
    time_spent_ms: int = 0
    last_updated: datetime | None = None

    @classmethod
    def of(cls, project_id: str, agent: str | None, project_items: Sequence[WorkItem]) -> ProgressSummary:
        """The summary of a project's items, or of one agent's items."""
        items = [item for item in project_items if agent is None or (item.agent and is_for(item, agent))]
        counted = Counter(item.status for item in items)
        by_status = {status.value: counted[status] for status in WorkItemStatus}
        # The next item of an agent depends on the items of others and may be unassigned.
        open_items = [item for item in project_items if item.status in OPEN]
        titles = {item.id: item.title for item in project_items}
        stuck = _of_status(items, WorkItemStatus.BLOCKED)
        return cls(
            project_id,
            agent,
            total=len(items),
            **by_status,
            current_focus=_of_status(items, WorkItemStatus.IN_PROGRESS),
            next_suggested=next(iter(ranked(open_items, Strategy.PRIORITY, agent)), None),
            stuck=stuck,
            blockers=tuple(f"{item.title}: {_waits_for(item, titles)}" for item in stuck),
            recently_done=_recently_done(items),
            time_spent_ms=sum(item.time_spent_ms for item in items),
            last_updated=max((item.updated_at for item in items), default=None),
        )

    @property
    def completion(self) -> float:
        """The share of items that are done, from 0 to 1."""
        return self.done / self.total if self.total else 0.0

    @property
    def completion_percentage(self) -> int:
        """The share of items that are done in whole per cent, rounded down."""
        return 100 * self.done // self.total if self.total else 0

    def to_prompt(self, max_tokens: int = 500) -> str:
        """The summary as text for a language model, within the token budget."""
        counts = f"{self.done} of {self.total} done ({self.completion:.0%}), {self.in_progress} in progress, "
        counts += f"{self.pending} pending, {self.blocked} blocked, {self.review} in review, {self.failed} failed"
        lines = [Line(counts)]
        lines += [Line("In progress", item.title) for item in self.current_focus]
        if self.next_suggested is not None:
            lines.append(Line("Next", self.next_suggested.title))
        lines += [Line("Blocked", blocker) for blocker in self.blockers]
        return briefing([Topic("Progress", tuple(lines))], max_tokens)

    def __str__(self) -> str:
        return f"{self.project_id}: {self.done} of {self.total} done ({self.completion:.0%})"


def _of_status(items: Sequence[WorkItem], status: WorkItemStatus) -> tuple[WorkItem, ...]:
    return tuple(sorted((item for item in items if item.status is status), key=lambda item: (-item.priority, item.id)))


def _recently_done(items: Sequence[WorkItem]) -> tuple[WorkItem, ...]:
    done = [item for item in items if item.status is WorkItemStatus.DONE and item.completed_at is not None]
    return tuple(sorted(done, key=lambda item: (item.completed_at, item.id), reverse=True)[:_MAX_RECENT])


def _waits_for(item: WorkItem, titles: Mapping[str, str]) -> str:
    if item.blocked_by:
        return f"waits for {', '.join(titles.get(each, each) for each in item.blocked_by)}"
    return str(item.metadata.get(BLOCKED_REASON, "blocked"))
