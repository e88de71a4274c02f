"""Maintenance: periodic tasks of a store, at an interval inside a service or on request."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from alma import clock
from alma.errors import ALMAError, StorageError, ValidationError
from alma.learning.confidence_decay import ConfidenceDecayer
from alma.learning.lifecycle import Expiry, MemoryLifecycle
from alma.learning.pruning import ForgettingEngine
from alma.learning.schedule import Schedule, ScheduledRun
from alma.maintenance.cold_storage import ColdStorage
from alma.maintenance.policy import MaintenancePolicy
from alma.memory.archive import Archive
from alma.memory.audit import AuditTrail
from alma.model.governance import Attribution
from alma.model.scope import Scope
from alma.storage.base import StorageBackend, checked_storage

_log = logging.getLogger("alma.maintenance")
_EVERYWHERE = Scope.everywhere()
_BY = Attribution(agent="maintenance", reason="maintenance")

Renew = Callable[..., None]
"""Called between steps of long tasks."""


class Demote(Protocol):
    """Demotes the memories that are measured to harm, in all projects; returns how many."""

    def __call__(self, *, dry_run: bool, by: Attribution) -> int: ...


def _nothing(*_: int) -> None: ...


class Task(StrEnum):
    """The tasks of maintenance, in the order in which they run."""

    EXPIRE = "expire"
    DECAY = "decay"
    CLEANUP = "cleanup"
    BENEFIT = "benefit"
    RETENTION = "retention"
    SESSIONS = "sessions"
    OUTBOX = "outbox"
    AUDIT = "audit"


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The result of a task: the number of records it changed (or would, in a dry run), or why it failed or is off."""

    task: Task
    count: int = 0
    error: str | None = None
    is_on: bool = True


class Maintenance:
    """Runs the tasks of a policy; every task but the retention of archive and audit log can be undone.

    `active_readers` names the readers of the outbox that this process runs, whose marks are never dropped. `demote` is
    the work of the task *benefit*.
    """

    def __init__(
        self,
        storage: StorageBackend,
        archive: Archive,
        policy: MaintenancePolicy | None = None,
        active_readers: Callable[[], Iterable[str]] = tuple,
        demote: Demote | None = None,
    ) -> None:
        self.policy = policy or MaintenancePolicy()
        folder = self.policy.cold_storage_dir
        self.cold_storage = None if folder is None else ColdStorage(storage, archive, folder)
        self._storage = checked_storage("maintenance", storage)
        self._archive = archive
        self._lifecycle = MemoryLifecycle(storage, archive)
        self._forgetting = ForgettingEngine(storage, archive=archive)
        self._active_readers = active_readers
        self._demote = demote
        self._schedule = Schedule(storage, "maintenance", self.policy.interval, self._scheduled, _BY)

    # ------------------------------------------------------------------ in a service

    def start(self) -> None:
        """Run at the policy's interval in a thread, if it is enabled; of several processes, one at a time."""
        if self.policy.enabled:
            self._schedule.start()

    def stop(self) -> None:
        """Stop what `start` started, after a run in progress."""
        self._schedule.stop()

    @property
    def is_running(self) -> bool:
        """Whether this process runs the schedule."""
        return self._schedule.is_running

    @property
    def last_run(self) -> ScheduledRun | None:
        """The last scheduled run, by any process."""
        return self._schedule.last_run

    @property
    def next_run(self) -> datetime:
        """When the next scheduled run is due."""
        return self._schedule.next_run

    def _scheduled(self, counts: dict[str, int], renew: Renew) -> None:
        failures = []
        for result in self.run(renew=renew):
            if result.error is not None:
                failures.append(f"{result.task}: {result.error}")
            elif result.is_on:
                counts[result.task] = result.count
        _log.info("maintenance was run", extra={"counts": dict(counts), "failures": len(failures)})
        if failures:
            raise StorageError("; ".join(failures))

    # ------------------------------------------------------------------ on request

    def is_on(self, task: Task) -> bool:
        """Whether the policy has this task."""
        policy = self.policy
        switches: Mapping[Task, bool] = {
            Task.DECAY: policy.decay,
            Task.CLEANUP: policy.cleanup,
            Task.BENEFIT: policy.benefit and self._demote is not None,
            Task.RETENTION: policy.deleted_days is not None or policy.purge_days is not None,
            Task.SESSIONS: policy.session_days is not None and self.cold_storage is not None,
            Task.OUTBOX: policy.outbox_days is not None,
            Task.AUDIT: policy.audit_days is not None,
        }
        return switches.get(task, True)

    def run(
        self,
        tasks: Iterable[Task | str] | None = None,
        *,
        dry_run: bool = False,
        renew: Renew = _nothing,
        on_task: Callable[[Task], object] = lambda _: None,
    ) -> list[TaskResult]:
        """Run the tasks now, all or some; one that fails is reported and does not keep the others."""
        chosen = list(Task) if tasks is None else [_task(each) for each in tasks]
        results = []
        for task in (each for each in Task if each in chosen):
            on_task(task)
            renew()
            results.append(self._one(task, dry_run, renew))
        return results

    def _one(self, task: Task, dry_run: bool, renew: Renew) -> TaskResult:
        if not self.is_on(task):
            return TaskResult(task, is_on=False)
        work: Mapping[Task, Callable[[bool, Renew], int]] = {
            Task.EXPIRE: self._expire,
            Task.DECAY: self._decay,
            Task.CLEANUP: self._clean_up,
            Task.BENEFIT: self._demote_harmful,
            Task.RETENTION: self._retain,
            Task.SESSIONS: self._store_sessions,
            Task.OUTBOX: self._trim_outbox,
            Task.AUDIT: self._trim_audit,
        }
        try:
            return TaskResult(task, work[task](dry_run, renew))
        except (ALMAError, OSError) as exc:
            error = self._storage.masked(str(exc))
            _log.warning("a task of maintenance failed", extra={"task": task, "error": error})
            return TaskResult(task, error=error)

    # ------------------------------------------------------------------ the tasks

    def _expire(self, dry_run: bool, renew: Renew) -> int:
        expiry = Expiry(self._storage, self._archive)
        return sum((expiry.due() if dry_run else expiry.run_once()).values())

    def _decay(self, dry_run: bool, renew: Renew) -> int:
        strength = self.policy.min_strength
        memories = self._lifecycle.process_memory_decay(_EVERYWHERE, dry_run=dry_run, min_strength=strength, by=_BY)
        renew()
        return memories.total + ConfidenceDecayer(self._storage).apply(_EVERYWHERE, dry_run, _BY).total

    def _clean_up(self, dry_run: bool, renew: Renew) -> int:
        return self._forgetting.prune(_EVERYWHERE, self.policy.prune, dry_run, _BY, progress=renew).total

    def _demote_harmful(self, dry_run: bool, renew: Renew) -> int:
        assert self._demote is not None
        return self._demote(dry_run=dry_run, by=_BY)

    def _retain(self, dry_run: bool, renew: Renew) -> int:
        done = 0
        if self.policy.deleted_days is not None:
            deleted_for = _days(self.policy.deleted_days)
            done += len(self._lifecycle.retain(_EVERYWHERE, deleted_for=deleted_for, dry_run=dry_run, by=_BY).ids)
        if self.policy.purge_days is not None:
            until = self._before(self.policy.purge_days)
            if dry_run:
                return done + self._archive.count(_EVERYWHERE, until=until)
            done += self._archive.purge(until, _EVERYWHERE, _BY, soft_deleted=False)
        return done

    def _store_sessions(self, dry_run: bool, renew: Renew) -> int:
        assert self.cold_storage is not None
        due = self.cold_storage.due(self._before(self.policy.session_days))
        for session_id in () if dry_run else due:
            self.cold_storage.store(session_id, _BY)
            renew()
        return len(due)

    def _trim_outbox(self, dry_run: bool, renew: Renew) -> int:
        before, active = self._before(self.policy.outbox_days), set(self._active_readers())
        dropped = 0
        for reader in self._storage.projections():
            backlog = self._storage.backlog(reader)
            if reader not in active and backlog.oldest is not None and backlog.oldest < before:
                dropped += backlog.pending
                if not dry_run:
                    facts = {"reader": reader, "marks": backlog.pending}
                    _log.warning("a reader of the outbox was dropped", extra=facts)
                    self._storage.drop_projection(reader)
        return dropped

    def _trim_audit(self, dry_run: bool, renew: Renew) -> int:
        trail = AuditTrail(self._storage)
        before = self._before(self.policy.audit_days)
        return trail.count_before(before) if dry_run else trail.delete_before(before, _BY, renew)

    def _before(self, days: float | None) -> datetime:
        return clock.now() - _days(days or 0.0)


def _days(days: float) -> timedelta:
    return timedelta(days=days)


def _task(name: Task | str) -> Task:
    try:
        return Task(name)
    except ValueError:
        raise ValidationError("maintenance", "task", name, f"must be one of {', '.join(Task)}") from None
