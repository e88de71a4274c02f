"""Transaction: every operation of the contract, written once on the primitives of a backend."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, TypeVar, cast

from alma import clock
from alma.errors import (
    AlreadyExistsError,
    ConflictError,
    NotFoundError,
    ScopeViolationError,
    StorageError,
    UnsupportedOperation,
    ValidationError,
)
from alma.model.common import checked_name
from alma.model.fields import FieldType
from alma.model.governance import AuditEvent, Setting, default_settings
from alma.model.kinds import kind_named
from alma.model.memory import ChangeType, MemoryVersion
from alma.model.query import And, Compare, Predicate
from alma.model.record import Record, RecordSpec, spec_of
from alma.model.scope import Scope, checked_scope
from alma.model.vector import Vector
from alma.storage.audit import without_details
from alma.storage.backend import Query, Reads
from alma.storage.history import with_content
from alma.storage.outbox import Backlog, Mark
from alma.storage.queries import EVERYWHERE, Queries, embedding, inside, named, required_limit
from alma.storage.writer import Act, Writer, in_order

T = TypeVar("T", bound=Record)

_OWNERS = ("user_id", "project_id", "agent")


class Transaction(Queries):
    """Every operation of the contract, on the primitives of a `Backend`: the reads of `Queries` and the writes here.

    A `Writer` writes records with all that must agree with them, and its `Recorder` their versions, audit events and
    marks. A `cautious` transaction assumes nothing about what is stored; `write` uses one after a conflict.
    """

    cautious = False

    @cached_property
    def _writer(self) -> Writer:
        return Writer(self.backend, self.by)

    @property
    def _checked(self) -> Writer:
        """The writer, refused inside a read-only snapshot."""
        if not self.backend.writable:
            raise StorageError("a write was tried inside a read-only snapshot")
        return self._writer

    def writing(self) -> AbstractContextManager[None]:
        """Guard a write: one that fails keeps the whole transaction from being committed."""
        return self._checked.writing()

    def require_sound(self) -> None:
        """Refuse to commit after a write that failed half-way, even if its error was swallowed."""
        self._writer.require_sound()

    # ------------------------------------------------------------------ what is recorded

    @property
    def acts(self) -> list[Act]:
        """The changes of records since `watch`, in order."""
        return self._writer.recorder.acts or []

    def watch(self) -> None:
        """Keep what is done to records, for `acts`."""
        self._writer.recorder.acts = []

    def known_as(self, change: ChangeType) -> AbstractContextManager[None]:
        """Record the versions written inside as this kind of change."""
        return self._writer.recorder.known_as(change)

    def audited_as(self, action: str) -> AbstractContextManager[None]:
        """Record the changes made inside as this action in the audit log."""
        return self._writer.recorder.audited_as(action)

    def without_reason(self) -> AbstractContextManager[None]:
        """Record the changes made inside without the reason, which may quote what is deleted."""
        return self._writer.recorder.without_reason()

    # ------------------------------------------------------------------ saving

    def save(self, *records: Record) -> None:
        """Store records of any kinds; all of them, or on error none."""
        for spec, batch in _by_kind(records):
            self._save_batch(spec, batch)

    def _save_batch(self, spec: RecordSpec, batch: Sequence[Record]) -> None:
        writer = self._checked
        if spec.append_only:
            with writer.writing():
                self._append(spec, batch)
            return
        latest = dict(zip(map(spec.key_of, batch), batch, strict=True))
        keys = list(latest)
        self.backend.reserve(spec, keys)
        last = self.backend.last_versions(spec.kind, keys) if spec.versioned else None
        previous = self._locked(spec, self._possibly_stored(keys, last))
        for key, old in previous.items():
            _refuse_other_owner(latest[key], old)
        # The versions of a record that exists must be read again now that it is locked.
        writer.write(spec, list(latest.values()), previous, None if previous else last)

    def _append(self, spec: RecordSpec, batch: Sequence[Record]) -> None:
        if spec is AuditEvent.spec:
            self._writer.recorder.append_events(event.values() for event in batch)
        else:
            self.backend.insert(spec, batch)

    def _possibly_stored(self, keys: list[str], last: Mapping[str, MemoryVersion] | None) -> list[str]:
        """The ids to look for: a record without a version does not exist, unless another program wrote it."""
        if last is None or self.cautious:
            return keys
        return [key for key in last if last[key].change_type is not ChangeType.DELETED]

    def _locked(self, spec: RecordSpec, keys: Sequence[str], scope: Scope = EVERYWHERE) -> dict[str, Record]:
        """The existing records with these keys, locked against other writers until the transaction ends."""
        if not self.writable:
            raise StorageError("a write was tried inside a read-only snapshot")
        found = self.backend.lock(spec, keys, scope.predicate(spec)) if keys else []
        return {record.key: record for record in found}

    def hold(self, name: str) -> None:
        """Lock a name until the transaction ends: other transactions that lock it wait."""
        with self.writing():
            self.backend.hold(name)

    def insert(self, *records: Record) -> None:
        """Store records that must be new; one that exists is a ConflictError, and `write` retries.

        So a decision made because a record was missing is made again, instead of overwriting the record.
        """
        try:
            self.create(*records)
        except AlreadyExistsError as exc:
            raise ConflictError(str(exc)) from exc

    def add(self, *records: Record) -> None:
        """Store records with freshly generated ids, without looking them up first.

        An id in use is a ConflictError, and `write` retries with a lookup.
        """
        if self.cautious:
            self.insert(*records)
            return
        for spec, batch in _by_kind(records):
            self.backend.reserve(spec, [record.key for record in batch])
            self._checked.write(spec, batch, {}, {})

    def create(self, *records: Record, action: str = "create") -> None:
        """Store records whose ids must not be in use; `action` is what the audit log calls it."""
        for spec, batch in _by_kind(records):
            keys = [record.key for record in batch]
            self.backend.reserve(spec, keys)
            for key in self._locked(spec, keys):
                raise AlreadyExistsError(spec.kind, spec.key, key)
            self._checked.write(spec, batch, {}, action=action)

    def adopt(self, records: Iterable[Record], versions: Iterable[MemoryVersion] = ()) -> None:
        """Store new records with the history they bring from elsewhere, instead of beginning one here.

        A version may belong to a record that is gone; it must be new here as well.
        """
        for spec, batch in _by_kind(records):
            writer = self._checked
            self.backend.reserve(spec, list(map(spec.key_of, batch)))
            writer.check_unique(spec, batch)
            writer.check_references(spec, batch)
            with self.writing():
                self.backend.insert(spec, batch)
                writer.follow_up(spec, batch, (), "create", clock.now())
        rows = [version.replace(id=None) for version in versions]
        if rows:
            with self.writing():
                self.backend.insert(MemoryVersion.spec, rows)

    # ------------------------------------------------------------------ changing what is there

    def lock(self, cls: type[T], record_ids: Iterable[str], scope: Scope) -> list[T]:
        """The records with these ids inside the scope, as they are now, locked until the transaction ends.

        So a decision based on them still holds when it is written. They come in the order of the ids.
        """
        spec = spec_of(cls)
        wanted = _checked_keys(spec, record_ids)
        found = self._locked(spec, wanted, checked_scope(spec.kind, scope))
        return [cast(T, found[key]) for key in wanted if key in found]

    def update(self, cls: type[T], record_id: str, changes: Mapping[str, Any], scope: Scope) -> T | None:
        spec = spec_of(cls)
        if not isinstance(changes, Mapping):
            raise ValidationError(spec.kind, None, changes, "can only be updated with a dict of fields")
        for name in changes:
            spec.field(name)
        if spec.key in changes and changes[spec.key] != record_id:
            raise ValidationError(spec.kind, spec.key, changes[spec.key], "cannot be changed")
        return self.change(cls, record_id, scope, lambda found: found.replace(**changes))

    def change(self, cls: type[T], record_id: str, scope: Scope, changed: Callable[[T], T]) -> T | None:
        """Replace a record by a function of its current state; returns the new one, or None where there is none."""
        spec = spec_of(cls)
        _refuse_append_only(spec)
        held = self._locked(spec, _checked_keys(spec, [record_id]), checked_scope(spec.kind, scope))
        found = held.get(record_id)
        if found is None:
            return None
        made = in_order(changed(cast(T, found)), found)
        self.revise(found, made)
        return made

    def revise(self, held: Record, made: Record) -> None:
        """Replace a record that this transaction has locked."""
        if made.key != held.key:
            raise ValidationError(held.spec.kind, held.spec.key, made.key, "cannot be changed")
        self._checked.write(held.spec, [made], {held.key: held})

    def increment(
        self,
        cls: type[T],
        record_id: str,
        counters: Mapping[str, int],
        scope: Scope,
        changes: Mapping[str, Any] | None = None,
    ) -> T | None:
        _check_counters(spec_of(cls), counters)

        def counted(found: T) -> T:
            added = {name: (getattr(found, name) or 0) + by for name, by in counters.items()}
            return found.replace(**added, **(changes or {}))

        return self.change(cls, record_id, scope, counted)

    def count_reads(self, cls: type[Record], reads: Mapping[str, Reads]) -> None:
        """Add to the `access_count` of records and set when they were last read; unknown ids are passed over.

        Reading is no change: there is no version of it, no audit event and no mark.
        """
        spec = spec_of(cls)
        for name in ("access_count", "last_accessed_at"):
            spec.field(name)
        # Sorted, so that two batches over the same records take their row locks in the same order.
        keys = sorted(_checked_keys(spec, reads))
        if keys:
            with self.writing():
                self.backend.count_reads(spec, {key: reads[key] for key in keys})

    def delete(self, cls: type[Record], record_ids: Iterable[str], scope: Scope, action: str = "delete") -> int:
        """Delete records with their dependents; `action` is what the audit log calls it."""
        spec = spec_of(cls)
        _refuse_append_only(spec)
        held = self._locked(spec, _checked_keys(spec, record_ids), checked_scope(spec.kind, scope))
        found = list(held.values())
        self._checked.delete(spec, found, action)
        return len(found)

    def delete_where(self, cls: type[Record], scope: Scope, where: Predicate) -> int:
        spec = spec_of(cls)
        _refuse_append_only(spec)
        writer = self._checked
        found = self.backend.select(Query(spec, inside(spec, scope, where), for_update=True))
        writer.delete(spec, found)
        return len(found)

    def erase_history(self, cls: type[Record], record_id: str, until: datetime | None = None) -> int:
        """Delete the versions of a record, up to a moment where one is given, contents and all; returns how many."""
        kind = spec_of(cls).kind
        of_record = And(Compare("kind", "eq", kind), Compare("memory_id", "eq", record_id))
        where = of_record if until is None else And(of_record, Compare("created_at", "le", until))
        found = self.backend.select(Query(MemoryVersion.spec, where))
        with self.writing():
            self.backend.remove(MemoryVersion.spec, found)
        return len(found)

    def leave_owner(self, blank: Record) -> None:
        """Insert a version with only the owner before the last one of a deleted record.

        So its owner still sees in the history that it was deleted. It is never current, so no query of the past finds
        it.
        """
        gone = self.backend.last_versions(blank.spec.kind, [blank.key])[blank.key]
        whose = with_content(gone.replace(id=None, change_type=ChangeType.UPDATED, change_reason=None), blank)
        with self.writing():
            self.backend.remove(MemoryVersion.spec, [gone])
            last = gone.replace(id=None, version_number=gone.version_number + 1)
            self.backend.insert(MemoryVersion.spec, [whose, last])

    def erase_details(self, events: Sequence[AuditEvent]) -> list[AuditEvent]:
        """Erase the details and error messages of audit events; the rest of the event and the chain stay."""
        erased = [without_details(event) for event in events]
        with self.writing():
            self.backend.replace(AuditEvent.spec, erased, events)
        return erased

    def delete_events(self, events: Sequence[AuditEvent]) -> None:
        """Delete audit events; the caller records the ends of the chains that begin after them."""
        with self.writing():
            self.backend.remove(AuditEvent.spec, events)

    # ------------------------------------------------------------------ vectors

    def put_vectors(
        self, cls: type[Record], vectors: Mapping[str, Any], model: str, made_from: Mapping[str, str] | None = None
    ) -> int:
        spec = embedding(spec_of(cls))
        checked_name("vectors", "model", model)
        given = {key: Vector(vector) for key, vector in vectors.items()}
        fitting = {key: self._models.fitting(spec, vector, model, claim=True) for key, vector in given.items()}
        known = self._locked(spec, _checked_keys(spec, fitting))
        if made_from is not None:
            fitting = {k: v for k, v in fitting.items() if k in known and known[k].embedded_text() == made_from[k]}
        _require_all(spec, fitting, known)
        with self.writing():
            self.backend.put_vectors(spec, fitting, model)
            self._writer.recorder.mark(spec, list(fitting), clock.now())
        return len(fitting)

    def put_passages(self, cls: type[Record], passages: Mapping[str, Sequence[Any]], model: str | None = None) -> None:
        spec = embedding(spec_of(cls))
        chosen = self.embedding_model if model is None else checked_name("vectors", "model", model)
        if not isinstance(passages, Mapping):
            raise ValidationError(spec.kind, None, passages, "needs the vectors of its passages as {id: [vector, …]}")
        fitting = {key: self._fitting_passages(spec, vectors, chosen) for key, vectors in passages.items()}
        _require_all(spec, fitting, self._locked(spec, _checked_keys(spec, fitting)))
        with self.writing():
            self.backend.put_passages(spec, fitting, chosen)
            self._writer.recorder.mark(spec, list(fitting), clock.now())

    def _fitting_passages(self, spec: RecordSpec, vectors: Sequence[Any], model: str) -> list[Vector]:
        if isinstance(vectors, str) or not isinstance(vectors, Sequence):
            raise ValidationError(spec.kind, None, vectors, "needs the vectors of its passages as a list")
        return [self._models.fitting(spec, Vector(vector), model, claim=True) for vector in vectors]

    def claim_model(self) -> None:
        """Say that the store's own model is its model, although it has vectors of none yet."""
        if not self.backend.models():
            with self.writing():
                self.backend.dims_of(self.embedding_model, self.embedding_dim)

    # ------------------------------------------------------------------ the outbox

    def register_projection(self, name: str, kinds: Iterable[str]) -> None:
        chosen = tuple(kind_named(kind).spec.kind for kind in kinds)
        checked_name("projection", "name", name)
        with self.writing():
            self.backend.outbox.register(name, chosen)

    def drop_projection(self, name: str) -> None:
        with self.writing():
            self.backend.outbox.drop(name)

    def projections(self) -> dict[str, tuple[str, ...]]:
        return self.backend.outbox.registered()

    def mark_again(self, projection: str, kind: str, record_ids: Sequence[str]) -> None:
        with self.writing():
            self.backend.outbox.mark(kind, record_ids, clock.now(), only=projection)

    def claim(self, projection: str, limit: int, lease_seconds: float) -> list[Mark]:
        moment = clock.now()
        most = required_limit(limit)
        with self.writing():
            return self.backend.outbox.claim(projection, most, moment, moment + timedelta(seconds=lease_seconds))

    def acknowledge(self, marks: Sequence[Mark], *, again: bool = True) -> int:
        with self.writing():
            return self.backend.outbox.acknowledge(marks, clock.now() if again else None)

    def release(self, marks: Sequence[Mark], *, again: bool = True) -> None:
        with self.writing():
            self.backend.outbox.release(marks, clock.now() if again else None)

    def fail(self, mark: Mark, error: str, park_after: int, pause_seconds: float = 0, *, again: bool = True) -> None:
        moment = clock.now()
        until = moment + timedelta(seconds=pause_seconds) if pause_seconds else None
        with self.writing():
            self.backend.outbox.fail(mark, error, park_after, until, moment if again else None)

    def unpark(self, projection: str) -> int:
        with self.writing():
            return self.backend.outbox.unpark(projection)

    def pending(self, projection: str) -> list[Mark]:
        return self.backend.outbox.pending(projection)

    def backlog(self, projection: str) -> Backlog:
        return self.backend.outbox.backlog(projection)

    def marks_of(self, projection: str, kind: str, record_ids: Collection[str]) -> list[Mark]:
        return self.backend.outbox.of_records(projection, kind, record_ids)

    def can_claim(self, projection: str) -> bool:
        return self.backend.outbox.can_claim(projection, clock.now())

    # ------------------------------------------------------------------ the store as a whole

    def erase(self) -> None:
        """Delete everything, history and audit log included, as a restore does."""
        with self.writing():
            self.backend.erase()
            self._writer.recorder.reset()
            self.backend.insert(Setting.spec, default_settings())


def _by_kind(records: Iterable[Record]) -> list[tuple[RecordSpec, Sequence[Record]]]:
    if isinstance(records, tuple) and len(records) == 1 and isinstance(records[0], Record):
        return [(records[0].spec, records)]
    batches: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        if not isinstance(record, Record):
            raise ValidationError("storage", None, record, "can only save records")
        batches[record.spec.kind].append(record)
    return [(batch[0].spec, batch) for batch in batches.values()]


def _refuse_other_owner(record: Record, stored: Record) -> None:
    """Refuse to overwrite a record of another owner: two projects may choose the same id."""
    for name in _OWNERS:
        if name in record.spec.by_name:
            mine, theirs = getattr(record, name), getattr(stored, name)
            if mine is not None and theirs is not None and mine != theirs:
                raise ScopeViolationError(
                    record.spec.kind, name, mine, f"differs from that of the stored record with id {record.key!r}"
                )


def _checked_keys(spec: RecordSpec, keys: Iterable[Any]) -> list[Any]:
    return [spec.checked(spec.key, key) for key in named(spec, keys)]


def _refuse_append_only(spec: RecordSpec) -> None:
    if spec.append_only:
        raise UnsupportedOperation(f"{spec.kind} records are kept and cannot be changed or deleted")


def _check_counters(spec: RecordSpec, counters: Mapping[str, int]) -> None:
    if not isinstance(counters, Mapping):
        raise ValidationError(spec.kind, None, counters, "can only be counted with a dict of numbers")
    for name, by in counters.items():
        if spec.field(name).type not in (FieldType.INTEGER, FieldType.FLOAT):
            raise ValidationError(spec.kind, name, by, "is not a number and cannot be added to")
        if isinstance(by, bool) or not isinstance(by, int | float):
            raise ValidationError(spec.kind, name, by, "can only be added a number")


def _require_all(spec: RecordSpec, keys: Iterable[str], known: Mapping[str, Record]) -> None:
    for key in keys:
        if key not in known:
            raise NotFoundError(spec.kind, key)
