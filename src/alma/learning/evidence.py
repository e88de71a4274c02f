"""Evidence: the outcomes of an agent, held ready to be compared with a new task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from alma.learning.figures import Figures
from alma.learning.resemblance import Writings
from alma.model.learning import Outcome
from alma.model.query import Compare, Order
from alma.model.scope import Scope
from alma.storage.base import StorageBackend

_FIELDS = ("id", "task_description", "strategy_used", "success", "timestamp")
_NEWEST_FIRST = (Order("timestamp", "desc"), Order("id", "desc"))
MOST_OUTCOMES, MOST_TASKS = 40_000, 4_000
"""How many of the newest outcomes are looked at, and on how many different tasks."""


@dataclass
class Evidence:
    """Outcomes as arrays: on which of the tasks, with which of the strategies, how well."""

    ids: list[str] = field(default_factory=list)
    writings: Writings = field(default_factory=Writings)
    figures: Figures = field(default_factory=Figures)
    task_rows: dict[str, int] = field(default_factory=dict)
    strategy_rows: dict[str, int] = field(default_factory=dict)
    tasks: list[int] = field(default_factory=list)
    strategies: list[int] = field(default_factory=list)
    results: list[float] = field(default_factory=list)

    def add(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Take in outcomes, oldest first."""
        fresh = [task for _, task, *_ in rows if task not in self.task_rows]
        unique = list(dict.fromkeys(fresh))
        for task in unique:
            self.task_rows[task] = len(self.task_rows)
        self.writings.add(unique)
        self.figures.add(unique)
        for record_id, task, strategy, success, _ in rows:
            self.ids.append(record_id)
            self.tasks.append(self.task_rows[task])
            self.strategies.append(self.strategy_rows.setdefault(strategy or "", len(self.strategy_rows)))
            self.results.append(float(success))


@dataclass
class _Held:
    """The evidence of a scope, and the state of the store it was read at."""

    evidence: Evidence
    generation: str
    total: int
    newest: datetime | None
    known: set[str]


class EvidenceReader:
    """Reads the evidence of a scope, and afterwards only what has come since; for one thread at a time."""

    def __init__(self, storage: StorageBackend) -> None:
        self._storage = storage
        self._held: dict[Scope, _Held] = {}

    def read(self, scope: Scope) -> Evidence:
        """All outcomes inside the scope, whichever process wrote them; the next reading adds to it."""
        generation = self._storage.generation()
        held = self._held.get(scope)
        if held is not None and held.generation == generation:
            return held.evidence
        with self._storage.snapshot():
            held = self._refreshed(held, scope, generation)
        self._held[scope] = held
        return held.evidence

    def _refreshed(self, held: _Held | None, scope: Scope, generation: str) -> _Held:
        total = self._storage.count(Outcome, scope)
        if held is None or held.newest is None:
            return self._whole(scope, generation, total)
        since = Compare("timestamp", "ge", held.newest)
        later = self._storage.values(Outcome, _FIELDS, scope, since, _NEWEST_FIRST)
        fresh = [row for row in reversed(later) if row[0] not in held.known]
        if held.total + len(fresh) != total:
            # Something was deleted, or came with a time of its own: counting on would count it forever or never.
            return self._whole(scope, generation, total)
        held.evidence.add(fresh)
        held.known.update(row[0] for row in fresh)
        newest = fresh[-1][4] if fresh else held.newest
        return _Held(held.evidence, generation, total, newest, held.known)

    def _whole(self, scope: Scope, generation: str, total: int) -> _Held:
        rows = self._storage.values(Outcome, _FIELDS, scope, order=_NEWEST_FIRST, limit=MOST_OUTCOMES)
        evidence = Evidence()
        evidence.add(list(reversed(_of_few_tasks(rows))))
        newest = rows[0][4] if rows else None
        return _Held(evidence, generation, total, newest, set(evidence.ids))


def _of_few_tasks(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows, newest first, as long as they are about no more tasks than can be held."""
    tasks: set[str] = set()
    kept: list[tuple[Any, ...]] = []
    for row in rows:
        tasks.add(row[1])
        if len(tasks) > MOST_TASKS:
            break
        kept.append(row)
    return kept
