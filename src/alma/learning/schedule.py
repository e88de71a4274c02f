"""Schedules: work that one process of a store at a time does at an interval; and the cleanup scheduler."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from alma import clock
from alma.errors import ValidationError
from alma.learning.pruning import ForgettingEngine
from alma.model.common import checked_part
from alma.model.fields import check_timestamp
from alma.model.governance import Attribution, Setting, SettingType
from alma.model.scope import Scope
from alma.storage.base import StorageBackend, Transaction, checked_storage

_log = logging.getLogger("alma.learning")

LEASE = "cleanup.lease"
LAST_RUN = "cleanup.last_run"
_EVERYWHERE = Scope.everywhere()
_LEASE = timedelta(minutes=10)
# The tolerance for clocks of two machines; a time further ahead comes from a wrong clock and is ignored.
_SKEW = timedelta(minutes=10)
_BY = Attribution(agent="cleanup", reason="scheduled cleanup")

Wait = Callable[[float], bool]
"""Waits for a timeout in seconds, or less when it is time to stop, and returns whether it is."""


@dataclass(frozen=True, slots=True)
class ScheduledRun:
    """The result of one run: counts by name, or its error."""

    started_at: datetime
    finished_at: datetime
    counts: Mapping[str, int] = field(default_factory=dict)
    error: str | None = None


Work = Callable[[dict[str, int], Callable[..., None]], None]
"""Does the work, fills the counts, and calls its second argument from time to time, which renews the lease."""


class Schedule:
    """Does work at an interval in a thread, in one process of a store at a time.

    Any number of processes may have the same schedule: a lease lets one of them do each run, and the next is due an
    interval later for all. An error is logged and stored, and the next run still comes.
    """

    def __init__(
        self,
        storage: StorageBackend,
        name: str,
        interval: timedelta,
        work: Work,
        by: Attribution,
        now: Callable[[], datetime] = clock.now,
        wait: Wait | None = None,
    ) -> None:
        if not isinstance(interval, timedelta) or interval <= timedelta(0):
            raise ValidationError(name.partition(".")[0], "interval", interval, "must be a timedelta above 0")
        self._storage = storage
        self._name = name
        self._interval = interval
        self._work = work
        self._by = by
        self._now = now
        self._wait = wait
        self._changing = threading.Lock()
        # One for each thread, so that a restart does not keep the ending one alive.
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        first, _, rest = name.partition(".")
        of_scope = f".{rest}" if rest else ""
        self._lease, self._last_run = f"{first}.lease{of_scope}", f"{first}.last_run{of_scope}"
        self._holder = clock.new_id()
        self._held_until: datetime | None = None

    @property
    def last_run(self) -> ScheduledRun | None:
        """The last run, by any process."""
        return _run_of(self._storage.get(Setting, self._last_run, _EVERYWHERE))

    @property
    def next_run(self) -> datetime:
        """When the next run is due; now, if there was none yet."""
        last, moment = self.last_run, self._now()
        return moment if last is None else self._due(last, moment)

    @property
    def is_running(self) -> bool:
        """Whether the thread is alive."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Start the thread; a second call changes nothing."""
        with self._changing:
            if self.is_running and not self._stopping.is_set():
                return
            self._stopping = threading.Event()
            args = (self._stopping,)
            self._thread = threading.Thread(target=self._loop, args=args, name=f"alma-{self._name}", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop the thread, after a run in progress."""
        with self._changing:
            self._stopping.set()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def run_once(self) -> ScheduledRun | None:
        """Run now, due or not; None while another process does."""
        started = self._now()
        if not self._storage.write(lambda tx: self._take_lease(tx, started, only_if_due=False)):
            return None
        return self._run(started)

    def run_if_due(self) -> ScheduledRun | None:
        """Run if it is due and no other process does."""
        started = self._now()
        if not self._storage.write(lambda tx: self._take_lease(tx, started, only_if_due=True)):
            return None
        return self._run(started)

    # ------------------------------------------------------------------ the thread

    def _loop(self, stopping: threading.Event) -> None:
        wait = self._wait or stopping.wait
        while not stopping.is_set():
            pause = self._interval.total_seconds()
            try:
                self.run_if_due()
                pause = max(0.0, (self.next_run - self._now()).total_seconds())
            except Exception as exc:  # noqa: BLE001 - whatever a store does, the next run must come
                facts = {"schedule": self._name, "error": self._storage.masked(str(exc))}
                _log.warning("a scheduled run failed", extra=facts)
            # Another process may hold a lease of a run that it will not finish.
            if wait(min(max(pause, 1.0), _LEASE.total_seconds(), self._interval.total_seconds())):
                return

    def _run(self, started: datetime) -> ScheduledRun:
        counts: dict[str, int] = {}
        error: str | None = None
        try:
            self._work(counts, self._renew)
        except Exception as exc:  # noqa: BLE001 - it is stored, and the next run still comes
            error = self._storage.masked(f"{type(exc).__name__}: {exc}")
            _log.warning("a scheduled run failed", extra={"schedule": self._name, "error": error})
        run = ScheduledRun(started, self._now(), counts, error)
        self._storage.write(lambda tx: self._finish(tx, run), self._by)
        return run

    # ------------------------------------------------------------------ the lease

    def _take_lease(self, tx: Transaction, moment: datetime, only_if_due: bool) -> bool:
        tx.hold(self._lease)
        lease = _lease_of(tx.get(Setting, self._lease, _EVERYWHERE))
        if lease is not None and moment < lease.until <= moment + _LEASE + _SKEW:
            return False
        last = _run_of(tx.get(Setting, self._last_run, _EVERYWHERE))
        if only_if_due and last is not None and self._due(last, moment) > moment:
            return False
        self._hold_until(tx, moment + _LEASE)
        return True

    def _due(self, last: ScheduledRun, moment: datetime) -> datetime:
        """When the run after the last one is due."""
        if last.started_at > moment + _SKEW:
            return moment
        try:
            return last.started_at + self._interval
        except OverflowError:
            return datetime.max.replace(tzinfo=moment.tzinfo)

    def _renew(self, *_: int) -> None:
        """Keep the lease during a long run."""
        moment = self._now()
        if self._held_until is not None and self._held_until - moment < _LEASE / 2:
            self._storage.write(lambda tx: self._hold_until(tx, moment + _LEASE))

    def _hold_until(self, tx: Transaction, end: datetime) -> None:
        self._held_until = end
        value = json.dumps({"holder": self._holder, "until": end.isoformat()})
        told = f"The process that holds the schedule {self._name}"
        tx.save(
            Setting(
                key=self._lease,
                value=value,
                value_type=SettingType.JSON,
                description=told,
            )
        )

    def _finish(self, tx: Transaction, run: ScheduledRun) -> None:
        self._held_until = None
        lease = _lease_of(tx.get(Setting, self._lease, _EVERYWHERE))
        if lease is not None and lease.holder == self._holder:
            tx.delete(Setting, [self._lease], _EVERYWHERE)
        told, text = f"The last run of {self._name}", _text_of(run)
        tx.save(Setting(key=self._last_run, value=text, value_type=SettingType.JSON, description=told))


@dataclass(frozen=True, slots=True)
class CleanupRun:
    """The result of one cleanup, or its error."""

    started_at: datetime
    finished_at: datetime
    forgotten: int = 0
    purged: int = 0
    error: str | None = None


class CleanupScheduler:
    """Forgets, and purges what is past its retention, at an interval in a thread.

    Any number of processes may run one on the same store: one of them does each cleanup. With `retention=None` nothing
    is purged.
    """

    def __init__(
        self,
        storage: StorageBackend,
        engine: ForgettingEngine,
        interval: timedelta = timedelta(days=1),
        scope: Scope = _EVERYWHERE,
        retention: timedelta | None = None,
        now: Callable[[], datetime] = clock.now,
        wait: Wait | None = None,
    ) -> None:
        if retention is not None and (not isinstance(retention, timedelta) or retention < timedelta(0)):
            raise ValidationError("cleanup", "retention", retention, "must be a timedelta of at least 0, or None")
        if not isinstance(scope, Scope):
            raise ValidationError("cleanup", "scope", scope, "must be a Scope, as Scope(project_id='shop')")
        self._engine = checked_part(
            "cleanup", "engine", engine, ForgettingEngine, "a ForgettingEngine, as alma.forgetting"
        )
        self._scope = scope
        self._retention = retention
        name = "cleanup" if scope == _EVERYWHERE else f"cleanup.{_short_name(scope)}"
        self._schedule = Schedule(
            checked_storage("cleanup", storage), name, interval, self._clean, _BY, now=now, wait=wait
        )

    @property
    def last_run(self) -> CleanupRun | None:
        """The last cleanup of this scope, by any process."""
        return _cleanup_of(self._schedule.last_run)

    @property
    def next_run(self) -> datetime:
        """When the next cleanup is due; now, if there was none yet."""
        return self._schedule.next_run

    @property
    def is_running(self) -> bool:
        """Whether the thread is alive."""
        return self._schedule.is_running

    def start(self) -> None:
        """Start the thread; a second call changes nothing."""
        self._schedule.start()

    def stop(self) -> None:
        """Stop the thread, after a cleanup in progress."""
        self._schedule.stop()

    def run_once(self) -> CleanupRun | None:
        """Clean up now, due or not; None while another process does."""
        return _cleanup_of(self._schedule.run_once())

    def run_if_due(self) -> CleanupRun | None:
        """Clean up if it is due and no other process does."""
        return _cleanup_of(self._schedule.run_if_due())

    def _clean(self, counts: dict[str, int], renew: Callable[..., None]) -> None:
        counts.update(forgotten=0, purged=0)
        counts["forgotten"] = self._engine.prune(self._scope, by=_BY, progress=renew).total
        if self._retention is not None:
            renew()
            counts["purged"] = self._engine.purge(self._retention, self._scope, by=_BY)


def _cleanup_of(run: ScheduledRun | None) -> CleanupRun | None:
    if run is None:
        return None
    return CleanupRun(
        run.started_at, run.finished_at, run.counts.get("forgotten", 0), run.counts.get("purged", 0), run.error
    )


def _short_name(scope: Scope) -> str:
    """A name for a scope: each has its own lease and last run."""
    return hashlib.sha256(repr(scope).encode()).hexdigest()[:16]


class _Lease(NamedTuple):
    """The process that runs, and until when it holds the lease."""

    holder: str
    until: datetime


def _lease_of(noted: Setting | None) -> _Lease | None:
    """The stored lease; one that cannot be read is ignored."""
    with suppress(ValueError, TypeError, KeyError):
        values = json.loads(noted.value) if noted is not None else None
        return None if values is None else _Lease(values["holder"], _moment(values["until"]))
    return None


def _moment(text: str) -> datetime:
    return check_timestamp(datetime.fromisoformat(text))


def _text_of(run: ScheduledRun) -> str:
    times = {"started_at": run.started_at.isoformat(), "finished_at": run.finished_at.isoformat()}
    return json.dumps({**times, **run.counts, "error": run.error})


def _run_of(noted: Setting | None) -> ScheduledRun | None:
    """The stored run; None if it cannot be read."""
    with suppress(ValueError, TypeError, KeyError):
        values = json.loads(noted.value) if noted is not None else None
        if values is not None:
            started, finished = (_moment(values.pop(name)) for name in ("started_at", "finished_at"))
            error = values.pop("error", None)
            return ScheduledRun(started, finished, {name: int(count) for name, count in values.items()}, error)
    return None
