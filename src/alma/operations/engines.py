"""Operations on the engines beside the store: status, run, verify, repair, rebuild."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import Field

from alma.operations.access import Caller, Right
from alma.operations.base import Input, Limit, Name, Operation, Output, operation
from alma.sync.manager import DataSyncManager
from alma.sync.projection import Difference
from alma.sync.rebuilding import Progress
from alma.sync.results import ConsistencyIssue, EngineReport, EngineStatus

_EXAMPLE_ID = "01a1e0a2b81e7fc49d0ec9b96de703e8"
_ENGINE = Field(None, description="Only this engine: qdrant, neo4j or redis; default: all configured ones.")
_WAIT = Field(0.0, ge=0, le=3600, description="Seconds to wait for records that another relay holds or that failed.")


class OneEngine(Input):
    engine: Name | None = _ENGINE


class LastVerified(Output):
    at: datetime
    is_consistent: bool
    issues: int


class Rebuilding(Output):
    done: int
    total: int


class EngineState(Output):
    engine: str
    state: str = Field(
        description="ok, behind, parked, rebuilding, degraded, new before its first run, or unused if not configured."
    )
    is_configured: bool
    pending: int = Field(description="The number of records whose change has not reached the engine.")
    parked: int = Field(description="The number of records that failed too often and wait for sync_retry_parked.")
    lag_seconds: float = Field(description="The age of the oldest change that has not reached the engine.")
    parked_error: str | None = None
    problem: str | None = None
    rebuilding: Rebuilding | None = None
    verified: LastVerified | None = None


class EngineStates(Output):
    engines: Sequence[EngineState]


UNWELL = frozenset({"degraded", "parked"})
"""The states of an engine that an operator has to look at."""


def states_of(found: Sequence[EngineStatus]) -> list[EngineState]:
    """Each engine as it is shown to callers."""
    return [EngineState.from_result(each) for each in found]


@operation("sync", Right.READ, example={})
def sync_status(caller: Caller, request: OneEngine) -> EngineStates:
    """Show the engines beside the store: whether they answer, their lag, parked records and last verification."""
    caller.require_unlimited("the state of the engines")
    sync = caller.store.sync
    if request.engine is not None and request.engine not in {each.engine for each in sync.status(ping=False)}:
        sync.require(request.engine)
    return EngineStates(engines=states_of([each for each in sync.status() if request.engine in (None, each.engine)]))


class RunSync(OneEngine):
    wait_seconds: float = _WAIT


class EngineRun(Output):
    engine: str
    applied: int
    failed: int
    pending: int
    parked: int
    problem: str | None = None


class SyncRan(Output):
    engines: Sequence[EngineRun]


@operation("sync", Right.ADMIN, takes_long=True, idempotent=True, example={})
def sync_run(caller: Caller, request: RunSync) -> SyncRan:
    """Carry the changes that wait in the outbox to the engines, and continue interrupted rebuilds.

    A running service does this by itself. An engine that does not answer is reported and does not hold up the others.
    """
    caller.require_unlimited("the synchronization")
    progress = _Total(caller)
    ran = _configured(caller).run(request.engine, progress.of_engine, wait_seconds=request.wait_seconds)
    return SyncRan(engines=[EngineRun.from_result(each) for each in ran])


class VerifySync(OneEngine):
    limit: Limit = Field(100, description="The maximum number of issues to list; all are counted.")


class KindCounted(Output):
    kind: str
    stored: int
    held: int


class EngineVerified(Output):
    engine: str
    is_consistent: bool
    checked: int
    behind: int = Field(description="Entries that differ because their change still waits.")
    parked: int
    counts: Sequence[KindCounted]
    differences: Mapping[str, int] = Field(description="The number of missing, stale, orphaned, corrupted entries.")
    problem: str | None = None


class Issue(Output):
    engine: str
    kind: str
    record_id: str
    difference: Difference
    details: str = ""


class SyncVerified(Output):
    is_consistent: bool
    verified_at: datetime
    engines: Sequence[EngineVerified]
    issues: Sequence[Issue]


@operation("sync", Right.ADMIN, takes_long=True, idempotent=True, example={})
def sync_verify(caller: Caller, request: VerifySync) -> SyncVerified:
    """Compare every entry of the engines with the store, and list what differs.

    Compared are counts, ids, generations and content hashes, in batches, while others write. An issue is an entry that
    is missing, stale, orphaned or corrupted although no change of its record waits. Only the time and the result of the
    verification are written.
    """
    caller.require_unlimited("the verification")
    sync, progress = _configured(caller), _Total(caller)
    total = sync.size(request.engine)
    report = sync.validate_data_integrity(request.engine, lambda checked: progress.more(checked, total))
    return SyncVerified(
        is_consistent=report.is_consistent,
        verified_at=report.verified_at,
        engines=list(map(_verified, report.engines)),
        issues=[Issue.from_result(each) for each in report.issues[: request.limit]],
    )


def _verified(report: EngineReport) -> EngineVerified:
    return EngineVerified(
        engine=report.engine,
        is_consistent=report.is_consistent,
        checked=report.checked,
        behind=report.behind,
        parked=report.parked,
        counts=[KindCounted.from_result(each) for each in report.counts],
        differences=Counter(each.difference.value for each in report.issues),
        problem=report.problem,
    )


class FoundIssue(Input):
    engine: Name
    kind: Name
    record_id: Name
    difference: Difference = Difference.STALE
    details: str = ""


class RepairSync(OneEngine):
    issues: Sequence[FoundIssue] | None = Field(
        None, max_length=1_000, description="Only these issues, as sync_verify lists them; default: whatever differs."
    )


class SyncRepaired(Output):
    success: bool = Field(description="Whether every engine could be repaired, and no issue remains.")
    repaired: int
    remaining: Sequence[Issue]
    problems: Mapping[str, str] = Field(description="Why an engine could not be repaired, by its name.")


@operation("sync", Right.ADMIN, takes_long=True, idempotent=True, example={})
def sync_repair(caller: Caller, request: RepairSync) -> SyncRepaired:
    """Verify the engines, and bring the current state of every record that differs to them.

    Parked records are tried again as well.
    """
    caller.require_unlimited("the repair")
    sync, progress = _configured(caller), _Total(caller)
    if request.issues is None:
        total = sync.size(request.engine)
        result = sync.repair(request.engine, lambda checked: progress.more(checked, total))
    else:
        given = [
            ConsistencyIssue(each.engine, each.kind, each.record_id, each.difference, each.details)
            for each in request.issues
            if request.engine in (None, each.engine)
        ]
        result = sync.repair_inconsistencies(given)
    return SyncRepaired(
        success=result.success,
        repaired=len(result.repaired),
        remaining=[Issue.from_result(each) for each in result.remaining[:1_000]],
        problems=result.problems,
    )


class Retried(Output):
    retried: int = Field(description="The number of records that the next run tries again.")


@operation("sync", Right.ADMIN, idempotent=True, example={})
def sync_retry_parked(caller: Caller, request: OneEngine) -> Retried:
    """Retry records that failed too often in the next run."""
    caller.require_unlimited("the synchronization")
    return Retried(retried=_configured(caller).retry_parked(request.engine))


class NamedEngine(Input):
    engine: Name = Field(description="The engine: qdrant, neo4j or redis.")


@operation("sync", Right.ADMIN, takes_long=True, idempotent=True, example={"engine": "qdrant"})
def sync_rebuild(caller: Caller, request: NamedEngine) -> EngineRun:
    """Delete everything an engine has of this store and make it again, while others read and write.

    The records come from the store. An interrupted rebuild is continued by the next run.
    """
    caller.require_unlimited("the rebuild")
    progress = _Total(caller)
    ran = _configured(caller).rebuild(request.engine, lambda step: progress.of_engine(request.engine, step))
    return EngineRun.from_result(ran)


class Dropped(Output):
    engine: str
    dropped: bool


@operation("sync", Right.ADMIN, idempotent=True, example={"engine": "qdrant"})
def sync_drop(caller: Caller, request: NamedEngine) -> Dropped:
    """Forget an engine that is no longer used: no changes are kept for it any more.

    What it holds stays there. An engine that is still configured is filled anew by the next run.
    """
    caller.require_unlimited("the synchronization")
    caller.store.sync.drop(request.engine)
    return Dropped(engine=request.engine, dropped=True)


class OneRecord(Input):
    memory_id: Name = Field(description="The id of a memory, or of another record that the engines follow.")


class EngineSynced(Output):
    engine: str
    synced: bool
    problem: str | None = None


class MemorySynced(Output):
    record_id: str
    kind: str | None = None
    exists: bool
    success: bool
    engines: Sequence[EngineSynced]


@operation("sync", Right.ADMIN, idempotent=True, example={"memory_id": _EXAMPLE_ID})
def sync_memory(caller: Caller, request: OneRecord) -> MemorySynced:
    """Bring one memory to every engine now, whatever waits before it.

    One that was deleted is deleted there.
    """
    caller.require_unlimited("the synchronization")
    return MemorySynced.from_result(_configured(caller).sync_memory_across_storages(request.memory_id))


def _configured(caller: Caller) -> DataSyncManager:
    sync = caller.store.sync
    sync.require_engines()
    return sync


class _Total:
    """The progress of all engines together, for a caller who wants to know."""

    def __init__(self, caller: Caller) -> None:
        self._tell = caller.progress
        self._engines: dict[str, Progress] = {}
        self._checked = 0

    def of_engine(self, engine: str, progress: Progress) -> None:
        """Report how far one engine is."""
        self._engines[engine] = progress
        if self._tell is not None:
            done, total = map(sum, zip(*self._engines.values(), strict=True))
            self._tell(done, total)

    def more(self, checked: int, total: int) -> None:
        """Report that more records were checked."""
        self._checked += checked
        if self._tell is not None:
            self._tell(min(self._checked, total), total)


SYNC: tuple[Operation[Any, Any], ...] = (
    sync_status,
    sync_run,
    sync_verify,
    sync_repair,
    sync_retry_parked,
    sync_rebuild,
    sync_drop,
    sync_memory,
)
