"""Evidence: the outcomes of an agent as arrays, ready to be compared with a new task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from alma import clock
from alma.learning.burst_damping import Sessions
from alma.learning.text_similarity import NumberIndex, TextIndex
from alma.model.learning import Outcome
from alma.model.memory import MemoryVersion
from alma.model.query import And, Compare, Order
from alma.model.record import spec_of
from alma.model.scope import Scope
from alma.storage.base import StorageBackend

_FIELDS = ("id", "task_description", "strategy_used", "success", "timestamp", "agent")
_NEWEST_FIRST = (Order("timestamp", "desc"), Order("id", "desc"))
MOST_OUTCOMES, MOST_TASKS = 40_000, 4_000
"""How many of the newest outcomes are looked at, and on how many different tasks."""

# The clocks of processes differ by up to this.
_CLOCKS_DIFFER = timedelta(minutes=5)


@dataclass
class Evidence:
    """The outcomes of a scope, each with its task, strategy, result and agent.

    `sessions` are numbered for each agent, `groups` for each agent with one task and strategy.
    """

    ids: list[str] = field(default_factory=list)
    texts: TextIndex = field(default_factory=TextIndex)
    numbers_in_texts: NumberIndex = field(default_factory=NumberIndex)
    task_rows: dict[str, int] = field(default_factory=dict)
    strategy_rows: dict[str, int] = field(default_factory=dict)
    tasks: list[int] = field(default_factory=list)
    strategies: list[int] = field(default_factory=list)
    results: list[float] = field(default_factory=list)
    author_rows: dict[str, int] = field(default_factory=dict)
    authors: list[int] = field(default_factory=list)
    sessions: list[int] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)
    _sessions: Sessions = field(default_factory=Sessions)
    _groups: Sessions = field(default_factory=Sessions)

    def number_of(self, agent: str | None) -> int | None:
        """The number of an agent; one that is not in use for an agent that reported nothing."""
        return None if agent is None else self.author_rows.get(agent, len(self.author_rows))

    def add(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Add outcomes, oldest first."""
        fresh = [task for _, task, *_ in rows if task not in self.task_rows]
        unique = list(dict.fromkeys(fresh))
        for task in unique:
            self.task_rows[task] = len(self.task_rows)
        self.texts.add(unique)
        self.numbers_in_texts.add(unique)
        for record_id, task, strategy, success, moment, agent in rows:
            task_row = self.task_rows[task]
            strategy_row = self.strategy_rows.setdefault(strategy or "", len(self.strategy_rows))
            author = self.author_rows.setdefault(agent, len(self.author_rows))
            self.ids.append(record_id)
            self.tasks.append(task_row)
            self.strategies.append(strategy_row)
            self.results.append(float(success))
            self.authors.append(author)
            self.sessions.append(self._sessions.number(author, moment))
            self.groups.append(self._groups.number((author, task_row, strategy_row), moment))


class EvidenceSnapshot(NamedTuple):
    """The evidence of a scope, and up to where the store was read for it."""

    evidence: Evidence
    total: int
    newest: datetime | None
    known: set[str]
    corrections: frozenset[int]
    read_at: datetime


def read_evidence(storage: StorageBackend, scope: Scope, before: EvidenceSnapshot | None = None) -> EvidenceSnapshot:
    """All outcomes inside the scope; a snapshot from before is extended where possible."""
    read_at = clock.now()
    total = storage.count(Outcome, scope)
    since = read_at if before is None else min(read_at, before.read_at)
    corrections = _corrections(storage, since - _CLOCKS_DIFFER)
    if before is None or before.newest is None or not corrections <= before.corrections:
        return _read_all(storage, scope, total, corrections, read_at)
    later = storage.values(Outcome, _FIELDS, scope, Compare("timestamp", "ge", before.newest), _NEWEST_FIRST)
    fresh = [row for row in reversed(later) if row[0] not in before.known]
    if before.total + len(fresh) != total:
        # Something was deleted, or was stored with an older timestamp: the arrays cannot be extended.
        return _read_all(storage, scope, total, corrections, read_at)
    before.evidence.add(fresh)
    before.known.update(row[0] for row in fresh)
    newest = fresh[-1][4] if fresh else before.newest
    return EvidenceSnapshot(before.evidence, total, newest, before.known, corrections, read_at)


def _corrections(storage: StorageBackend, since: datetime) -> frozenset[int]:
    """The numbers of the changes that were made to outcomes since then, in any scope."""
    changed = And(
        Compare("kind", "eq", spec_of(Outcome).kind),
        Compare("version_number", "gt", 1),
        Compare("created_at", "gt", since),
    )
    return frozenset(number for (number,) in storage.values(MemoryVersion, ("id",), Scope.everywhere(), changed))


def _read_all(
    storage: StorageBackend, scope: Scope, total: int, corrections: frozenset[int], read_at: datetime
) -> EvidenceSnapshot:
    rows = storage.values(Outcome, _FIELDS, scope, order=_NEWEST_FIRST, limit=MOST_OUTCOMES)
    evidence = Evidence()
    evidence.add(list(reversed(_of_few_tasks(rows))))
    newest = rows[0][4] if rows else None
    return EvidenceSnapshot(evidence, total, newest, set(evidence.ids), corrections, read_at)


def _of_few_tasks(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows, newest first, up to the greatest number of tasks."""
    tasks: set[str] = set()
    kept: list[tuple[Any, ...]] = []
    for row in rows:
        tasks.add(row[1])
        if len(tasks) > MOST_TASKS:
            break
        kept.append(row)
    return kept
