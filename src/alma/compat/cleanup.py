"""Health and cleanup jobs as in alma-memory 0.4, by project."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from statistics import fmean
from typing import Any

from alma.clock import now
from alma.compat.decay import ConfidenceDecayer, DecayResult
from alma.compat.forgetting import ForgettingEngine, PrunePolicy, PruneSummary
from alma.errors import ValidationError
from alma.learning import health, policy
from alma.learning.pruning import size_of
from alma.learning.schedule import Schedule
from alma.model.governance import ANONYMOUS
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome
from alma.model.scope import Scope
from alma.storage.earlier import LESSONS, store_of
from alma.storage.in_memory import InMemoryStorage

NAMES = (
    "CleanupJob",
    "CleanupResult",
    "CleanupScheduler",
    "HealthAlert",
    "HealthThresholds",
    "MemoryHealthMetrics",
    "MemoryHealthMonitor",
)
_DAY_SECONDS = 86_400.0


@dataclass
class MemoryHealthMetrics:
    """Numbers about the memories of a project."""

    total_items: int = 0
    heuristic_count: int = 0
    outcome_count: int = 0
    knowledge_count: int = 0
    anti_pattern_count: int = 0
    avg_heuristic_confidence: float = 0.0
    avg_heuristic_age_days: float = 0.0
    stale_heuristic_count: int = 0
    low_confidence_count: int = 0
    storage_bytes: int = 0
    agents_count: int = 0
    timestamp: datetime = field(default_factory=now)

    def to_dict(self) -> dict[str, Any]:
        """The numbers as JSON can hold them."""
        return {**asdict(self), "timestamp": self.timestamp.isoformat()}


@dataclass
class HealthAlert:
    """A number beyond its limit."""

    level: str
    category: str
    message: str
    current_value: Any
    threshold: Any
    timestamp: datetime = field(default_factory=now)


@dataclass
class HealthThresholds:
    """The limits for alerts."""

    max_total_items_warning: int = 5000
    max_stale_percentage_warning: float = 0.3
    min_avg_confidence_warning: float = 0.5
    max_agent_items_warning: int = 500
    max_total_items_critical: int = 10_000
    max_stale_percentage_critical: float = 0.5
    min_avg_confidence_critical: float = 0.3
    max_storage_bytes_critical: int = 100 * 1024 * 1024


class MemoryHealthMonitor:
    """Collects numbers about the memories of a project, and says which are beyond their limits."""

    def __init__(
        self,
        storage: Any,
        thresholds: HealthThresholds | None = None,
        stale_days: float = 60,
        low_confidence_threshold: float = 0.3,
    ) -> None:
        self.storage = storage
        self.thresholds = thresholds or HealthThresholds()
        self._limits = policy.PrunePolicy({Heuristic: stale_days}, {Heuristic: low_confidence_threshold})
        self._handlers: list[Callable[[HealthAlert], None]] = []
        self._history: dict[str, list[MemoryHealthMetrics]] = {}

    def add_alert_handler(self, handler: Callable[[HealthAlert], None]) -> None:
        """A function to call with each alert."""
        self._handlers.append(handler)

    def collect_metrics(self, project_id: str) -> MemoryHealthMetrics:
        """The numbers of today."""
        store, scope = store_of(self.storage, project_id), Scope(project_id=project_id)
        kinds = {each.kind: each for each in health.MemoryHealthMonitor(store, self._limits).report(scope).kinds}
        counts = {cls: kinds[cls.spec.kind].total for cls in LESSONS}
        rules, moment = list(store.iterate(Heuristic, scope)), now()
        ages = [(moment - rule.created_at).total_seconds() / _DAY_SECONDS for rule in rules if rule.created_at]
        metrics = MemoryHealthMetrics(
            total_items=sum(counts.values()),
            heuristic_count=counts[Heuristic],
            outcome_count=counts[Outcome],
            knowledge_count=counts[DomainKnowledge],
            anti_pattern_count=counts[AntiPattern],
            avg_heuristic_confidence=_mean([rule.confidence for rule in rules]),
            avg_heuristic_age_days=_mean(ages),
            stale_heuristic_count=kinds[Heuristic.spec.kind].stale,
            low_confidence_count=kinds[Heuristic.spec.kind].low_confidence,
            storage_bytes=sum(size_of(record) for cls in LESSONS for record in store.iterate(cls, scope)),
            agents_count=len({name for cls in LESSONS for (name,) in store.values(cls, ("agent",), scope)}),
            timestamp=moment,
        )
        self._history.setdefault(project_id, []).append(metrics)
        return metrics

    def check_health(self, project_id: str) -> list[HealthAlert]:
        """The numbers that are beyond their limits; the handlers are called with each."""
        alerts = list(self._alerts(self.collect_metrics(project_id)))
        for alert in alerts:
            for handler in self._handlers:
                handler(alert)
        return alerts

    def _alerts(self, metrics: MemoryHealthMetrics) -> Iterator[HealthAlert]:
        limits, rules = self.thresholds, metrics.heuristic_count
        stale = metrics.stale_heuristic_count / rules if rules else 0.0
        sure = metrics.avg_heuristic_confidence
        yield from _above(
            "total_items",
            "many memories",
            metrics.total_items,
            limits.max_total_items_warning,
            limits.max_total_items_critical,
        )
        yield from _above(
            "staleness",
            "many stale heuristics",
            stale,
            limits.max_stale_percentage_warning,
            limits.max_stale_percentage_critical,
        )
        if rules and sure < limits.min_avg_confidence_warning:
            least = limits.min_avg_confidence_critical
            level, limit = ("critical", least) if sure < least else ("warning", limits.min_avg_confidence_warning)
            yield HealthAlert(level, "confidence", f"heuristics are trusted little: {level}", sure, limit)
        if metrics.storage_bytes > limits.max_storage_bytes_critical:
            most = limits.max_storage_bytes_critical
            yield HealthAlert("critical", "storage", "the memories take much space", metrics.storage_bytes, most)

    def get_growth_trend(self, project_id: str) -> dict[str, Any]:
        """The growth between the first and the last numbers that were collected."""
        known = self._history.get(project_id, [])
        if len(known) < 2:
            return {"status": "insufficient_data", "samples": len(known)}
        first, last = known[0], known[-1]
        days = (last.timestamp - first.timestamp).total_seconds() / _DAY_SECONDS
        growth = last.total_items - first.total_items
        return {
            "status": "ok",
            "samples": len(known),
            "time_span_days": days,
            "total_growth": growth,
            "growth_per_day": growth / days if days else 0.0,
            "first_total": first.total_items,
            "last_total": last.total_items,
            "confidence_trend": last.avg_heuristic_confidence - first.avg_heuristic_confidence,
        }


@dataclass
class CleanupJob:
    """A project, or an agent of it, to clean up at an interval."""

    name: str
    project_id: str
    interval_hours: float
    agent: str | None = None
    policy: PrunePolicy | None = None
    apply_decay: bool = True
    last_run: datetime | None = None
    next_run: datetime | None = None
    enabled: bool = True


@dataclass
class CleanupResult:
    """What a job did, or its error."""

    job_name: str
    project_id: str
    started_at: datetime
    completed_at: datetime
    prune_summary: PruneSummary | None = None
    decay_result: DecayResult | None = None
    alerts: list[HealthAlert] = field(default_factory=list)
    success: bool = True
    error: str | None = None


class CleanupScheduler:
    """Runs jobs when they are due, in the background or when it is told to."""

    def __init__(
        self,
        storage: Any,
        forgetting_engine: ForgettingEngine | None = None,
        decayer: ConfidenceDecayer | None = None,
        health_monitor: MemoryHealthMonitor | None = None,
    ) -> None:
        self.storage = storage
        self.forgetting_engine = forgetting_engine
        self.decayer = decayer or ConfidenceDecayer(storage)
        self.health_monitor = health_monitor or MemoryHealthMonitor(storage)
        self._jobs: dict[str, CleanupJob] = {}
        self._history: list[CleanupResult] = []
        self._background: Schedule | None = None

    def register_job(self, job: CleanupJob) -> None:
        """Add a job, or replace the one of its name; it is due after its interval."""
        job.next_run = job.next_run or now() + timedelta(hours=job.interval_hours)
        self._jobs[job.name] = job

    def unregister_job(self, name: str) -> bool:
        """Drop a job; says whether there was one."""
        return self._jobs.pop(name, None) is not None

    def run_job(self, name: str, dry_run: bool = False) -> CleanupResult:
        """Run a job now, due or not."""
        if name not in self._jobs:
            raise ValidationError("cleanup", "job", name, f"was not found among {', '.join(self._jobs) or 'no jobs'}")
        return self._run(self._jobs[name], dry_run)

    def run_all_due(self) -> list[CleanupResult]:
        """Run the enabled jobs that are due."""
        jobs = [job for job in self._jobs.values() if job.enabled and (job.next_run is None or job.next_run <= now())]
        return [self._run(job, dry_run=False) for job in jobs]

    def _run(self, job: CleanupJob, dry_run: bool) -> CleanupResult:
        started = now()
        result = CleanupResult(job.name, job.project_id, started, started)
        try:
            engine = self.forgetting_engine
            if engine is None or job.policy is not None:
                engine = ForgettingEngine(self.storage, job.policy)
            result.prune_summary = engine.prune(job.project_id, agent=job.agent, dry_run=dry_run)
            if job.apply_decay:
                result.decay_result = self.decayer.apply_decay(job.project_id, job.agent, dry_run)
            result.alerts = self.health_monitor.check_health(job.project_id)
        except Exception as exc:  # noqa: BLE001 - whatever a job raises, the others run
            result.success, result.error = False, str(exc)
        result.completed_at = job.last_run = now()
        job.next_run = job.last_run + timedelta(hours=job.interval_hours)
        self._history.append(result)
        return result

    def start_background(self, check_interval_seconds: float = 60) -> None:
        """Look for due jobs at an interval in a thread."""
        if self._background is None:
            interval = timedelta(seconds=check_interval_seconds)
            # The due times are those of this object, so its lease concerns no other process.
            self._background = Schedule(InMemoryStorage(), "cleanup", interval, self._run_due, ANONYMOUS)
        self._background.start()

    def _run_due(self, counts: dict[str, int], renew: Callable[..., None]) -> None:
        counts["jobs"] = len(self.run_all_due())

    def stop_background(self) -> None:
        """Stop the thread, after a job in progress."""
        if self._background is not None:
            self._background.stop()
            self._background = None

    def get_jobs(self) -> list[dict[str, Any]]:
        """The jobs, and when each ran and will run."""
        return [
            {
                "name": job.name,
                "project_id": job.project_id,
                "interval_hours": job.interval_hours,
                "agent": job.agent,
                "enabled": job.enabled,
                "last_run": job.last_run and job.last_run.isoformat(),
                "next_run": job.next_run and job.next_run.isoformat(),
            }
            for job in self._jobs.values()
        ]

    def get_history(self, limit: int = 10) -> list[dict[str, Any]]:
        """The last runs, newest last."""
        return [_run_as_dict(each) for each in self._history[-limit:]]


def _run_as_dict(run: CleanupResult) -> dict[str, Any]:
    return {
        "job_name": run.job_name,
        "project_id": run.project_id,
        "started_at": run.started_at.isoformat(),
        "completed_at": run.completed_at.isoformat(),
        "duration_ms": int((run.completed_at - run.started_at).total_seconds() * 1000),
        "success": run.success,
        "items_pruned": run.prune_summary.total_pruned if run.prune_summary else 0,
        "items_decayed": run.decay_result.items_updated if run.decay_result else 0,
        "alerts": len(run.alerts),
        "error": run.error,
    }


def _mean(values: list[float]) -> float:
    return fmean(values) if values else 0.0


def _above(category: str, what: str, value: float, warning: float, critical: float) -> Iterator[HealthAlert]:
    level, limit = ("critical", critical) if value >= critical else ("warning", warning)
    if value >= limit:
        yield HealthAlert(level, category, f"there are {what}: {level}", value, limit)
