"""Import an export file into a store, merge one store into another, and back up and restore a store."""

from __future__ import annotations

import base64
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alma.errors import ConfigurationError, ConflictError, TransferError, ValidationError
from alma.model.governance import Attribution, AuditEvent, MergeMark, Setting
from alma.model.kinds import kind_named
from alma.model.memory import MemoryVersion
from alma.model.query import In
from alma.model.record import Record
from alma.model.vector import Vector
from alma.storage.audit import statement
from alma.storage.base import Capability, RecordVector, StorageBackend, Transaction
from alma.storage.document import from_document
from alma.sync.rebuilding import request_rebuilds
from alma.transfer.arrival import Arrival, rolled_back
from alma.transfer.exporting import FORMAT, FORMAT_VERSION, export_store
from alma.transfer.ledger import MergeLedger, rename_store, store_id
from alma.transfer.lines import UNLIMITED, Limits, atomic_write, read_lines
from alma.transfer.parcels import (
    EVERYWHERE,
    PAGE,
    STAYING,
    TRAVELLING,
    OnProgress,
    Parcel,
    TransferReport,
    count,
    histories_of_the_deleted,
    pages,
)

_LIMITS = Limits()
IMPORTING = Attribution(reason="imported from an export file")


@dataclass(frozen=True, slots=True)
class ExportHeader:
    """The header of an export file whose lines were all verified."""

    path: Path
    lines: int
    embedding_model: str
    embedding_dim: int
    models: Mapping[str, int]
    counts: Mapping[str, int]


def verify_export(path: str | os.PathLike[str], limits: Limits = _LIMITS) -> ExportHeader:
    """Verify every line of the file; an error names the first bad line."""
    file = Path(path)
    header: dict[str, Any] = {}
    end: dict[str, Any] | None = None
    number = 0
    for number, line in read_lines(file, limits):
        if number == 1:
            header = _checked_header(file, line)
        elif end is not None:
            raise TransferError(file, number, "it comes after the line that says the file ends")
        end = line.get("end", end)
    if end is None:
        raise TransferError(file, number + 1, "the file ends without its last line: it is truncated")
    return ExportHeader(
        file, number, header["embedding_model"], header["embedding_dim"], header["models"], end["counts"]
    )


def import_store(
    storage: StorageBackend,
    path: str | os.PathLike[str],
    *,
    dry_run: bool = False,
    by: Attribution = IMPORTING,
    limits: Limits = _LIMITS,
    on_progress: OnProgress = lambda done, total: None,
    deleted: bool = False,
) -> TransferReport:
    """Import an export file.

    The whole file is verified before anything is written. New records arrive with their history; an existing record is
    replaced if the arriving one was changed later. Importing twice changes nothing. A dry run is rolled back. What was
    deleted or rejected in this store stays away, unless `deleted` is true.
    """
    header = verify_export(path, limits)
    with rolled_back(storage, by, only_if=dry_run):
        arrival = Arrival(storage, by, deleted=deleted)
        for number, take in _steps(header.path, limits, arrival, storage, by):
            try:
                take()
            except ValidationError as exc:
                raise TransferError(header.path, number, str(exc)) from exc
            on_progress(number, header.lines)
    arrival.report.dry_run = dry_run
    return arrival.report


def _steps(
    path: Path, limits: Limits, arrival: Arrival, storage: StorageBackend, by: Attribution
) -> Iterator[tuple[int, Callable[[], None]]]:
    """The steps of the import, one batch of one kind at a time, with the number of its last line."""
    for kind, number, lines in _batches(path, limits):
        cls = kind_named(kind)
        if "history" in lines[0]:
            for line in lines:
                rows = [from_document(MemoryVersion, row) for row in line["history"]]
                yield number, lambda rows=rows: arrival.take_history(rows)  # type: ignore[misc]
        elif cls is AuditEvent:
            events = [from_document(AuditEvent, line["record"]) for line in lines]
            yield number, lambda events=events: _take_events(storage, events, by, arrival.report)  # type: ignore[misc]
        else:
            parcels = [_parcel(cls, line) for line in lines]
            yield number, lambda cls=cls, parcels=parcels: arrival.take(cls, parcels)  # type: ignore[misc]


def _batches(path: Path, limits: Limits) -> Iterator[tuple[str, int, list[dict[str, Any]]]]:
    """The lines between header and footer, in batches of one kind."""
    batch: list[dict[str, Any]] = []
    group: tuple[str, bool] | None = None
    number = 0
    for number, line in read_lines(path, limits):
        if number == 1:
            continue
        new = None if "end" in line else _group(path, number, line)
        if batch and group is not None and (new != group or len(batch) >= PAGE):
            yield group[0], number - 1, batch
            batch = []
        group = new
        if new is not None:
            batch.append(line)


def _group(path: Path, number: int, line: Mapping[str, Any]) -> tuple[str, bool]:
    try:
        cls = kind_named(line["kind"])
    except (KeyError, ValidationError) as exc:
        raise TransferError(path, number, f"unknown kind of record: {exc}") from exc
    if cls in STAYING:
        # An export file must not be able to create API keys.
        raise TransferError(path, number, f"records of kind {line['kind']} belong to one store and are not imported")
    return line["kind"], "history" in line


def _checked_header(path: Path, line: Mapping[str, Any]) -> dict[str, Any]:
    if line.get("format") != FORMAT:
        raise TransferError(path, 1, "the file is not an export of ALMA")
    if line.get("version") != FORMAT_VERSION:
        raise TransferError(
            path, 1, f"the export has format version {line.get('version')}, this ALMA reads {FORMAT_VERSION}"
        )
    return dict(line)


def _parcel(cls: type[Record], line: Mapping[str, Any]) -> Parcel:
    record = from_document(cls, line["record"])
    vectors = tuple(
        RecordVector(record.key, part["model"], part["part"], Vector.from_bytes(base64.b64decode(part["data"])))
        for part in line.get("vectors", ())
    )
    return Parcel(record, vectors, tuple(from_document(MemoryVersion, row) for row in line.get("versions", ())))


def _take_events(
    storage: StorageBackend, events: Sequence[AuditEvent], by: Attribution, report: TransferReport
) -> None:
    """Append the events that the audit log lacks; numbers and hash chains are not imported."""

    def take(tx: Transaction) -> int:
        moments = {event.created_at for event in events}
        had = Counter(map(_facts, tx.find(AuditEvent, EVERYWHERE, In("created_at", moments))))
        missing = []
        for event in events:
            if had[_facts(event)]:
                had[_facts(event)] -= 1
            else:
                missing.append(event)
        if missing:
            tx.save(*missing)
        return len(missing)

    new = storage.write(take, by)
    done = TransferReport()
    done.new[AuditEvent.spec.kind] = new
    done.unchanged[AuditEvent.spec.kind] = len(events) - new
    report.add(done)


def _facts(event: AuditEvent) -> str:
    return statement(event.values())


MERGING = Attribution(reason="merged from another store")


def merge_stores(
    source: StorageBackend,
    target: StorageBackend,
    *,
    dry_run: bool = False,
    by: Attribution = MERGING,
    on_progress: OnProgress = lambda done, total: None,
) -> TransferReport:
    """Merge the source into the target; the source is only read.

    Of a record in both stores the later change wins, and counters add up: each store's share is remembered, so that
    merging again, in either direction, counts nothing twice. A record with a unique name is identified with the
    target's record of that name. The audit log and the settings of the source are not merged.
    """
    if source is target:
        raise ConfigurationError("a store cannot be merged into itself")
    with rolled_back(target, by, only_if=dry_run):
        arrival = Arrival(target, by, _ledger(source, target, dry_run=dry_run))
        with source.snapshot() as tx:
            _bring(tx, arrival, on_progress)
    arrival.report.dry_run = dry_run
    return arrival.report


def _bring(tx: Transaction, arrival: Arrival, on_progress: OnProgress) -> None:
    kinds = [cls for cls in TRAVELLING if cls is not MergeMark and cls.spec.kind != "setting"]
    total = sum(count(tx, cls, EVERYWHERE) for cls in kinds)
    done = 0
    for cls in kinds:
        for page in pages(tx, cls, EVERYWHERE):
            arrival.take(cls, page)
            done += len(page)
            on_progress(done, max(done, total))
    for rows in histories_of_the_deleted(tx, EVERYWHERE):
        arrival.take_history(rows)


def _ledger(source: StorageBackend, target: StorageBackend, *, dry_run: bool) -> MergeLedger:
    mine = store_id(target)
    theirs = store_id(source, make=not dry_run)
    # The copy of a store has the name of its original and needs a new one.
    return MergeLedger(rename_store(target) if mine == theirs else mine, source, theirs)


RESTORING = Attribution(reason="restored from a backup")
_DATABASE = b"SQLite format 3\x00"


@dataclass(frozen=True, slots=True)
class BackedUp:
    """A written backup: a copy of the database, or an export."""

    path: Path
    form: str
    size_bytes: int


def is_database(path: Path) -> bool:
    """Whether a backup is an SQLite database and not an export."""
    try:
        with path.open("rb") as file:
            return file.read(len(_DATABASE)) == _DATABASE
    except FileNotFoundError:
        raise ConfigurationError(f"there is no file {path}") from None
    except OSError as exc:
        raise ConfigurationError(f"{path} cannot be read: {exc.strerror}") from exc


def backup_store(
    storage: StorageBackend,
    path: str | os.PathLike[str],
    *,
    force: bool = False,
    on_progress: OnProgress = lambda done, total: None,
) -> BackedUp:
    """Write a consistent backup while the store is in use; the file appears when it is complete.

    The backup of an SQLite store is an SQLite file that can be opened; other stores are exported. Index files are not
    included, because they are rebuilt from the vectors.
    """
    target = Path(path)
    if Capability.COPY not in storage.capabilities:
        export_store(storage, target, force=force, on_progress=on_progress)
        return BackedUp(target, "export", target.stat().st_size)
    with atomic_write(target, force=force) as new:
        storage.copy_to(new, on_progress)
    return BackedUp(target, "database", target.stat().st_size)


def restore_store(
    path: str | os.PathLike[str],
    storage: StorageBackend,
    *,
    force: bool = False,
    on_progress: OnProgress = lambda done, total: None,
) -> None:
    """Replace the contents of a store with a backup, in one transaction, after checking the backup.

    A store that is not empty is only replaced with `force`.
    """
    source = Path(path)
    if is_database(source):
        if Capability.COPY not in storage.capabilities:
            raise ConfigurationError(f"{source} is a copy of an SQLite store, which this store cannot restore")
        _refuse_to_overwrite(storage, force)
        storage.copy_from(source)
        storage.write(request_rebuilds, RESTORING)
        return
    verify_export(source, UNLIMITED)
    _refuse_to_overwrite(storage, force)
    with _emptied(storage):
        import_store(storage, source, by=RESTORING, limits=UNLIMITED, on_progress=on_progress)


@contextmanager
def _emptied(storage: StorageBackend) -> Iterator[None]:
    """Empty the store; other readers see the change when the block is complete."""
    with storage.transaction(RESTORING) as tx:
        tx.erase()
        yield


def _refuse_to_overwrite(storage: StorageBackend, force: bool) -> None:
    if not force and holds_anything(storage):
        raise ConflictError("the store is not empty; restore into a new one, or replace what it holds with --force")


def holds_anything(storage: StorageBackend) -> bool:
    """Whether a store has more than default settings."""
    with storage.snapshot() as tx:
        kinds = (cls for cls in TRAVELLING if cls is not Setting)
        return any(tx.find(cls, EVERYWHERE, limit=1) for cls in (*kinds, MemoryVersion))
