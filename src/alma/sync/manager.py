"""DataSyncManager: run, verify, repair and rebuild the engines beside a store."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from alma import clock
from alma.closeable import Closeable
from alma.errors import ConfigurationError, StorageError, ValidationError
from alma.model.memory import Memory
from alma.model.record import Record
from alma.storage.base import Backlog, Mark, StorageBackend, Transaction, checked_storage
from alma.storage.document import timestamp_of, timestamp_text
from alma.sync.options import RelayOptions
from alma.sync.projection import Projection
from alma.sync.reading import EVERYWHERE, changes_of
from alma.sync.rebuilding import BY, OTHERS, Progress, prepare, progress_of, read_note, rebuild_of, register, write_note
from alma.sync.relay import Batch, Relay
from alma.sync.results import (
    ConsistencyIssue,
    EngineReport,
    EngineStatus,
    EngineSync,
    Ran,
    RepairResult,
    SyncResult,
    ValidationReport,
    Verified,
)
from alma.sync.verification import still_differs, verify_engine

if TYPE_CHECKING:
    from alma.sync.background import Relays

OnProgress = Callable[[str, Progress], object]

_PAUSE_SECONDS = 0.1
_NO_ENGINE = (
    "no engine is configured beside the store: add qdrant.url, neo4j.uri, or redis.url with redis.projection: true to "
    "the configuration"
)


def _ignore(engine: str, progress: Progress) -> None: ...


class DataSyncManager(Closeable):
    """Keeps the engines beside a store (Qdrant, Neo4j, Redis) equal to it.

    The store is the system of record: every committed change leaves a mark in its outbox, from where `run`, or the
    relays of a service, carry it to the engines. An engine that is down makes nothing fail; it catches up afterwards.
    """

    def __init__(
        self,
        storage: StorageBackend,
        projections: Iterable[Projection] = (),
        options: RelayOptions | None = None,
    ) -> None:
        self.storage = checked_storage("sync", storage)
        self.projections = tuple(projections)
        for each in self.projections:
            if not isinstance(each, Projection):
                raise ValidationError("sync", "projections", each, "must be projections, as alma.sync.Projection")
        self.options = options or RelayOptions()
        self._relays: Relays | None = None

    # ------------------------------------------------------------------ relays

    def start(self, engine: str | None = None) -> None:
        """Keep the engines, or one of them, up to date in the background, until `stop` or `close`; services do so."""
        chosen = self._chosen(engine)
        if self._relays is None and chosen:
            from alma.sync.background import Relays

            self._relays = Relays(self.storage, chosen, self.options)
            self._relays.start()

    def stop(self) -> None:
        """Stop what `start` started; what is left waits for the next run."""
        relays, self._relays = self._relays, None
        if relays is not None:
            relays.close()

    def close(self) -> None:
        """Stop, and close the connections to the engines; the store stays open."""
        self.stop()
        for each in self.projections:
            each.close()

    def run(
        self,
        engine: str | None = None,
        on_progress: OnProgress = _ignore,
        until: Callable[[], bool] = bool,
        *,
        wait_seconds: float = 0.0,
    ) -> list[Ran]:
        """Carry what waits to the engines; one that does not answer is reported and does not keep the others.

        What another relay holds, or what failed and pauses, is left to it unless `wait_seconds` are waited for it.
        """
        ended = time.monotonic() + wait_seconds
        return [self._run(each, on_progress, until, ended) for each in self._chosen(engine)]

    def _run(
        self,
        projection: Projection,
        on_progress: OnProgress = _ignore,
        until: Callable[[], bool] = bool,
        ended: float = 0.0,
    ) -> Ran:
        relay, done, problem = Relay(self.storage, projection, self.options), Batch(), None

        def count(batch: Batch) -> None:
            nonlocal done
            done = Batch(done.applied + batch.applied, done.failed + batch.failed)
            on_progress(projection.name, relay.progress())

        try:
            relay.run(count, until)
            marked = clock.now()
            while not until() and time.monotonic() < ended:
                left, is_rebuilding = self._left(projection)
                if is_rebuilding:
                    marked = clock.now()
                elif left.oldest is None or left.oldest > marked:
                    break
                time.sleep(_PAUSE_SECONDS)
                relay.run(count, until)
        except StorageError as exc:
            problem = str(exc)
        with self.storage.snapshot() as tx:
            left, rebuild = tx.backlog(projection.name), rebuild_of(tx, projection.name)
            waiting = left.pending
            if rebuild is not None:
                reached, total = progress_of(tx, projection)
                waiting = max(waiting, total - reached)
        return Ran(projection.name, done.applied, done.failed, waiting - left.parked, left.parked, problem)

    def _left(self, projection: Projection) -> tuple[Backlog, bool]:
        """The pending marks, and whether a rebuild has more records to mark; after a run, other relays carry them."""
        with self.storage.snapshot() as tx:
            return tx.backlog(projection.name), rebuild_of(tx, projection.name) is not None

    def rebuild(self, engine: str, on_progress: Callable[[Progress], object] = lambda _: None) -> Ran:
        """Drop everything an engine has of this store and rebuild it, while others read and write.

        An interrupted rebuild is continued by the next run. Raises `StorageError` if the engine does not answer before
        anything was dropped.
        """
        projection = self.require(engine)
        Relay(self.storage, projection, self.options).clear()
        ended = time.monotonic() + self.options.lease_seconds
        return self._run(projection, lambda _, progress: on_progress(progress), ended=ended)

    def retry_parked(self, engine: str | None = None) -> int:
        """Retry parked records in the next run; returns how many."""
        return sum(self.storage.unpark(each.name) for each in self._chosen(engine))

    def drop(self, engine: str) -> None:
        """Forget an engine: no changes are marked for it any more. What it holds is left as it is."""
        known = [name for name in self.storage.projections() if not name.startswith(OTHERS)]
        if engine not in known:
            reason = f"must be one of the engines that this store marks changes for: {', '.join(known) or 'none'}"
            raise ValidationError("sync", "engine", engine, reason)

        def forget(tx: Transaction) -> None:
            tx.drop_projection(engine)
            for what in ("rebuild", "verified"):
                write_note(tx, engine, what, None)

        self.storage.write(forget, BY)

    # ------------------------------------------------------------------ status

    def status(self, *, ping: bool = True) -> list[EngineStatus]:
        """Every engine of the configuration, and those registered in the store that this configuration lacks.

        Without `ping`, no engine is asked: a problem is what the last attempt of the background met.
        """
        with self.storage.snapshot() as tx:
            known = {each.name: each for each in self.projections}
            others = [name for name in tx.projections() if name not in known and not name.startswith(OTHERS)]
            found = [_status(tx, name, known.get(name)) for name in (*known, *others)]
        if not ping:
            met = {} if self._relays is None else self._relays.problems
            return [replace(each, problem=met.get(each.engine)) for each in found]
        return [replace(each, problem=_problem(known.get(each.engine))) for each in found]

    # ------------------------------------------------------------------ consistency

    def sync_memory_across_storages(self, memory_id: str) -> SyncResult:
        """Bring one record to every engine that follows its kind now, whatever waits before it."""
        found = self._find(memory_id)
        followed = {each: [found] if found in each.kinds else [] for each in self.projections}
        if found is None:
            followed = {each: list(each.kinds) for each in self.projections}
        engines = tuple(self._sync(each, kinds, memory_id) for each, kinds in followed.items() if kinds)
        return SyncResult(memory_id, None if found is None else found.spec.kind, found is not None, engines)

    def validate_data_integrity(
        self, engine: str | None = None, on_page: Callable[[int], object] = lambda _: None
    ) -> ValidationReport:
        """Compare every entry of the engines with the store: missing, stale, orphaned and corrupted ones are issues."""
        reports = tuple(verify_engine(self.storage, each, on_page) for each in self._chosen(engine))
        report = ValidationReport(clock.now(), reports)
        self.storage.write(lambda tx: _note(tx, report), BY)
        return report

    def repair_inconsistencies(self, issues: Iterable[ConsistencyIssue]) -> RepairResult:
        """Bring the current state of these records to their engines, and verify them again."""
        found = list(issues)
        for each in found:
            if not isinstance(each, ConsistencyIssue):
                raise ValidationError("sync", "issues", each, "must be issues, as validate_data_integrity reports them")
        given = sorted(found, key=attrgetter("engine", "kind", "record_id"))
        results = [self._repair(name, list(some)) for name, some in groupby(given, attrgetter("engine"))]
        return RepairResult(
            tuple(issue for result in results for issue in result.repaired),
            tuple(issue for result in results for issue in result.remaining),
            {name: problem for result in results for name, problem in result.problems.items()},
        )

    def repair(self, engine: str | None = None, on_page: Callable[[int], object] = lambda _: None) -> RepairResult:
        """Carry what waits, parked records included, verify, and repair what differs."""
        self.retry_parked(engine)
        self.run(engine)
        report = self.validate_data_integrity(engine, on_page)
        result = self.repair_inconsistencies(report.issues)
        down = {each.engine: each.problem for each in report.engines if each.problem is not None}
        return replace(result, problems={**down, **result.problems})

    def _repair(self, engine: str, issues: list[ConsistencyIssue]) -> RepairResult:
        projection = self.require(engine)
        followed = [cls.spec.kind for cls in projection.kinds]
        for kind in {each.kind for each in issues}.difference(followed):
            raise ValidationError(
                "sync", "kind", kind, f"must be one of those that {engine} has: {', '.join(followed)}"
            )
        register(self.storage, projection)
        self.storage.write(lambda tx: _mark(tx, issues), BY)
        ran = self._run(projection)
        if ran.problem is not None:
            return RepairResult(remaining=tuple(issues), problems={engine: ran.problem})
        self._await_others(projection, issues)
        left = {(each.kind, each.record_id): each for each in still_differs(self.storage, projection, issues)}
        done = tuple(each for each in issues if (each.kind, each.record_id) not in left)
        return RepairResult(done, tuple(left.values()))

    def _await_others(self, projection: Projection, issues: Sequence[ConsistencyIssue]) -> None:
        """Wait for the relays that took some of these records over, for as long as they may hold them."""
        ended = time.monotonic() + self.options.lease_seconds
        while time.monotonic() < ended and _leased(self.storage, projection.name, issues):
            time.sleep(_PAUSE_SECONDS)
            self._run(projection)

    # ------------------------------------------------------------------ one record

    def _find(self, record_id: str) -> type[Record] | None:
        with self.storage.snapshot() as tx:
            return next((cls for cls in self._kinds() if tx.get(cls, record_id, EVERYWHERE) is not None), None)

    def _kinds(self) -> list[type[Record]]:
        return list(dict.fromkeys((Memory, *(cls for each in self.projections for cls in each.kinds))))

    def _sync(self, projection: Projection, kinds: Sequence[type[Record]], record_id: str) -> EngineSync:
        names = [(cls.spec.kind, record_id) for cls in kinds]
        register(self.storage, projection)

        def mark(tx: Transaction) -> list[Mark]:
            for kind, key in names:
                tx.mark_again(projection.name, kind, [key])
            return [mark for kind, key in names for mark in tx.marks_of(projection.name, kind, [key])]

        # The marks stay if this process dies between the engine's answer and the acknowledgement.
        marks = self.storage.write(mark)
        with self.storage.snapshot() as tx:
            changes = changes_of(tx, projection, names)
        try:
            prepare(self.storage, projection)
            projection.apply(changes)
        except (StorageError, ValidationError) as exc:
            return EngineSync(projection.name, synced=False, problem=str(exc))
        self.storage.acknowledge(marks)
        return EngineSync(projection.name, synced=True)

    # ------------------------------------------------------------------ names

    def size(self, engine: str | None = None) -> int:
        """How many records the engines follow, each counted once for every engine."""
        with self.storage.snapshot() as tx:
            return sum(tx.count(cls, EVERYWHERE) for each in self._chosen(engine) for cls in each.kinds)

    def _chosen(self, engine: str | None) -> Sequence[Projection]:
        return self.projections if engine is None else [self.require(engine)]

    def require_engines(self) -> None:
        """Raise `ConfigurationError` if no engine is configured."""
        if not self.projections:
            raise ConfigurationError(_NO_ENGINE)

    def require(self, engine: str) -> Projection:
        """The projection of a configured engine, or an error that names those that are."""
        for each in self.projections:
            if each.name == engine:
                return each
        known = ", ".join(each.name for each in self.projections) or "none"
        raise ValidationError("sync", "engine", engine, f"must be one of the configured engines: {known}")


def _problem(projection: Projection | None) -> str | None:
    try:
        if projection is not None:
            projection.ping()
    except StorageError as exc:
        return str(exc)
    return None


def _status(tx: Transaction, name: str, projection: Projection | None) -> EngineStatus:
    backlog, rebuild = tx.backlog(name), rebuild_of(tx, name)
    parked = (mark.error for mark in tx.pending(name) if mark.parked) if backlog.parked else iter(())
    return EngineStatus(
        name,
        projection is not None,
        name in tx.projections(),
        pending=backlog.pending - backlog.parked,
        parked=backlog.parked,
        parked_error=next(parked, None),
        lag_seconds=0.0 if backlog.oldest is None else max(0.0, (clock.now() - backlog.oldest).total_seconds()),
        rebuilding=None if projection is None or rebuild is None else progress_of(tx, projection),
        verified=_verified(tx, name),
    )


def _verified(tx: Transaction, name: str) -> Verified | None:
    noted = read_note(tx, name, "verified")
    return None if noted is None else Verified(timestamp_of(noted["at"]), noted["is_consistent"], noted["issues"])


def _note(tx: Transaction, report: ValidationReport) -> None:
    for each in report.engines:
        write_note(tx, each.engine, "verified", _verification_note(report, each))


def _verification_note(report: ValidationReport, engine: EngineReport) -> dict[str, object]:
    return {
        "at": timestamp_text(report.verified_at),
        "is_consistent": engine.is_consistent,
        "issues": len(engine.issues),
    }


def _leased(storage: StorageBackend, engine: str, issues: Iterable[ConsistencyIssue]) -> bool:
    with storage.snapshot() as tx:
        return any(
            mark.leased_until is not None and not mark.parked and not mark.attempts
            for kind, found in groupby(issues, attrgetter("kind"))
            for mark in tx.marks_of(engine, kind, [each.record_id for each in found])
        )


def _mark(tx: Transaction, issues: Iterable[ConsistencyIssue]) -> None:
    for (engine, kind), found in groupby(issues, attrgetter("engine", "kind")):
        tx.mark_again(engine, kind, [each.record_id for each in found])
