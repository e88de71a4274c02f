"""The results of the sync operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from alma.sync.projection import Difference
from alma.sync.rebuilding import Progress


@dataclass(frozen=True, slots=True)
class ConsistencyIssue:
    """An entry of an engine that differs from the store, although no change of its record is waiting."""

    engine: str
    kind: str
    record_id: str
    difference: Difference
    details: str = ""


@dataclass(frozen=True, slots=True)
class KindCount:
    """How many records of a kind the store has, and of how many the engine has an entry."""

    kind: str
    stored: int
    held: int


@dataclass(frozen=True, slots=True)
class EngineReport:
    """The verification of one engine; `behind` counts entries whose change still waits in the outbox."""

    engine: str
    checked: int = 0
    behind: int = 0
    parked: int = 0
    counts: tuple[KindCount, ...] = ()
    issues: tuple[ConsistencyIssue, ...] = ()
    problem: str | None = None

    @property
    def is_consistent(self) -> bool:
        """Whether nothing differs but what waits."""
        return not self.issues and not self.parked and self.problem is None


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """The verification of every engine."""

    verified_at: datetime
    engines: tuple[EngineReport, ...]

    @property
    def issues(self) -> tuple[ConsistencyIssue, ...]:
        """The issues of every engine."""
        return tuple(issue for engine in self.engines for issue in engine.issues)

    @property
    def is_consistent(self) -> bool:
        """Whether every engine answered and is equal to the store, but for what waits."""
        return all(engine.is_consistent for engine in self.engines)


@dataclass(frozen=True, slots=True)
class RepairResult:
    """Which issues were repaired and which remain, and why an engine could not be repaired."""

    repaired: tuple[ConsistencyIssue, ...] = ()
    remaining: tuple[ConsistencyIssue, ...] = ()
    problems: Mapping[str, str] = field(default_factory=dict)

    @property
    def success(self) -> bool:
        """Whether every engine could be repaired, and no issue remains."""
        return not self.remaining and not self.problems


@dataclass(frozen=True, slots=True)
class EngineSync:
    """Whether an engine has the current state of a record, or why not."""

    engine: str
    synced: bool
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class SyncResult:
    """Every engine that follows the kind of a record; one that is deleted is deleted there as well."""

    record_id: str
    kind: str | None
    exists: bool
    engines: tuple[EngineSync, ...] = ()

    @property
    def success(self) -> bool:
        """Whether every engine has the current state."""
        return all(engine.synced for engine in self.engines)


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of a run of the relay for one engine, and the marks that are still pending."""

    engine: str
    applied: int = 0
    failed: int = 0
    pending: int = 0
    parked: int = 0
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Verified:
    """When an engine was last verified, and with what result."""

    at: datetime
    is_consistent: bool
    issues: int


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """An engine as it is now: whether it answers, what waits for it, and its last verification.

    One that is registered in the store, but not configured here, has `is_configured` False: nothing carries its marks.
    One that is configured, but not registered, has `is_registered` False: the first run fills it.
    """

    engine: str
    is_configured: bool = True
    is_registered: bool = True
    problem: str | None = None
    pending: int = 0
    parked: int = 0
    parked_error: str | None = None
    lag_seconds: float = 0.0
    rebuilding: Progress | None = None
    verified: Verified | None = None

    @property
    def state(self) -> str:
        """One word: ok, behind, rebuilding, parked, degraded, new before its first run, unused if not configured."""
        conditions = (
            ("unused", not self.is_configured),
            ("degraded", self.problem is not None),
            ("new", not self.is_registered),
            ("rebuilding", self.rebuilding is not None),
            ("parked", self.parked > 0),
            ("behind", self.pending > 0),
        )
        return next((name for name, holds in conditions if holds), "ok")
