"""Summaries: how far a project's work is, what is being done, what is stuck and what comes next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from alma.model.briefing import Line, Topic, briefing
from alma.model.workspace import WorkItem, WorkItemStatus
from alma.progress.changes import BLOCKED_REASON
from alma.progress.strategies import OPEN, Strategy, is_for, ranked

_RECENT = 5


@dataclass(frozen=True, slots=True)
class ProgressSummary:
    """How far a project, or one agent in it, is."""

    project_id: str
    agent: str | None
    total: int
    pending: int
    in_progress: int
    blocked: int
    review: int
    done: int
    failed: int
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
        """The summary of a project's items, or of those of one agent among them."""
        items = [item for item in project_items if agent is None or (item.agent and is_for(item, agent))]
        counted = Counter(item.status for item in items)
        by_status = {status.value: counted[status] for status in WorkItemStatus}
        # What is next for somebody depends on what others do, and may be nobody's yet.
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
        """Which share of the items is done, from 0 to 1."""
        return self.done / self.total if self.total else 0.0

    @property
    def completion_percentage(self) -> float:
        """Which share of the items is done, from 0 to 100."""
        return 100 * self.completion

    def to_prompt(self, max_tokens: int = 500) -> str:
        """The summary as text for a language model, never longer than the budget."""
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
    return tuple(sorted(done, key=lambda item: (item.completed_at, item.id), reverse=True)[:_RECENT])


def _waits_for(item: WorkItem, titles: Mapping[str, str]) -> str:
    if item.blocked_by:
        return f"waits for {', '.join(titles.get(each, each) for each in item.blocked_by)}"
    return str(item.metadata.get(BLOCKED_REASON, "blocked"))
