"""Writer and recorder: write records with their vectors and references, versions, audit events and outbox marks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from operator import attrgetter
from types import TracebackType
from typing import Any, TypeVar

from alma import clock
from alma.errors import StorageError, UniquenessError, ValidationError
from alma.model.governance import Attribution, AuditEvent
from alma.model.kinds import kind_named, references_to
from alma.model.memory import ChangeType, MemoryVersion
from alma.model.query import EVERYTHING, And, Compare, In, Missing
from alma.model.record import OnDelete, Record, RecordSpec, Unique
from alma.model.vector import Vector
from alma.storage import history
from alma.storage.audit import ChainHead, audit_events, chained
from alma.storage.backend import Backend, Query
from alma.storage.queries import VectorModels

T = TypeVar("T", bound=Record)

_CHANGED_AT = "updated_at"
_LEAST = timedelta(microseconds=1)


class Writer:
    """Writes and deletes records with everything that must agree with them.

    All of it or nothing: after a write that failed half-way the transaction cannot be committed.
    """

    def __init__(self, backend: Backend, by: Attribution) -> None:
        self._backend = backend
        self.recorder = Recorder(backend, by)
        self._models = VectorModels(backend)
        self._failure: BaseException | None = None

    def require_sound(self) -> None:
        """Refuse to commit after a write that failed half-way, even if its error was swallowed."""
        if self._failure is not None:
            raise StorageError("an earlier write of this transaction failed, so all of it was rolled back") from (
                self._failure
            )

    def writing(self) -> AbstractContextManager[None]:
        """Guard a write: one that fails keeps the whole transaction from being committed."""
        return _Guarded(self, self._backend)

    def failed(self, why: BaseException) -> None:
        """Remember that a write failed half-way."""
        self._failure = why

    # ------------------------------------------------------------------ records

    def write(
        self,
        spec: RecordSpec,
        records: Sequence[Record],
        previous: Mapping[str, Record],
        last: Mapping[str, MemoryVersion] | None = None,
        action: str = "create",
    ) -> None:
        """Write records and everything that must agree with them.

        `previous` holds those that exist already, `last` their newest versions where those are known.
        """
        if previous and _CHANGED_AT in spec.by_name:
            records = [in_order(record, previous.get(record.key)) for record in records]
        vectors = self._changed_vectors(spec, records, previous)
        if spec.unique:
            self.check_unique(spec, records)
        if spec.references:
            self.check_references(spec, records)
        key_of = spec.key_of
        new = [record for record in records if key_of(record) not in previous] if previous else records
        changed = [record for record in records if key_of(record) in previous] if previous else []
        with self.writing(), self._backend.pipeline(len(records)):
            if new:
                self._backend.insert(spec, new)
            if changed:
                self._backend.replace(spec, changed, [previous[record.key] for record in changed])
            self._write_vectors(spec, records, vectors, previous)
            moment = clock.now()
            if spec.versioned:
                self.recorder.write_history(spec, records, previous, last, moment)
            self.follow_up(spec, new, changed, action, moment)

    def follow_up(
        self, spec: RecordSpec, new: Sequence[Record], changed: Sequence[Record], action: str, moment: datetime
    ) -> None:
        """Write the audit events and marks for the indexes that belong to every write."""
        if new:
            self.recorder.audit(spec, action, new, moment)
        if changed:
            self.recorder.audit(spec, self.recorder.action, changed, moment)
        self.recorder.mark(spec, [*map(spec.key_of, new), *map(spec.key_of, changed)], moment)

    def delete(self, spec: RecordSpec, records: Sequence[Record], action: str = "delete") -> None:
        """Delete records, with those that refer to them or their references."""
        if not records:
            return
        keys = [record.key for record in records]
        for dependent, reference in references_to(spec.kind):
            self._release(dependent, reference.field, reference.on_delete, keys)
        with self.writing():
            self._backend.remove(spec, records)
            if spec.versioned:
                self.recorder.write_deletions(spec, records)
            self.recorder.audit(spec, action, records, clock.now())
            self.recorder.mark(spec, keys, clock.now())

    def _release(self, spec: RecordSpec, field: str, on_delete: OnDelete, keys: Sequence[str]) -> None:
        dependents = self._backend.select(Query(spec, In(field, keys), for_update=True))
        if on_delete is OnDelete.CASCADE:
            self.delete(spec, dependents)
        elif dependents:
            cleared = [record.replace(**{field: None}) for record in dependents]
            self.write(spec, cleared, {record.key: record for record in dependents})

    # ------------------------------------------------------------------ vectors

    def _changed_vectors(
        self, spec: RecordSpec, records: Sequence[Record], previous: Mapping[str, Record]
    ) -> dict[str, Vector]:
        """The vectors that are new or other than before, all of the right length."""
        name = spec.vector_field
        if name is None:
            return {}
        key_of, vector_of = spec.key_of, attrgetter(name)
        found = {key_of(record): vector for record in records if (vector := vector_of(record)) is not None}
        for key, old in previous.items():
            if key in found and vector_of(old) == found[key]:
                del found[key]
        if found:
            for vector in found.values():
                self._models.require_own_length(spec, vector)
            if self._backend.dims_of(self._backend.embedding_model, None) is None:
                with self.writing():
                    # Of two writers with the first vectors at once, the second waits.
                    self._backend.hold("the first vectors")
            self._models.require_own()
            self._models.fitting(spec, next(iter(found.values())), self._backend.embedding_model, claim=True)
        return found

    def _write_vectors(
        self,
        spec: RecordSpec,
        records: Sequence[Record],
        vectors: Mapping[str, Vector],
        previous: Mapping[str, Record],
    ) -> None:
        if spec.vector_field is None:
            return
        model = self._backend.embedding_model
        if previous:
            vector_of = attrgetter(spec.vector_field)
            bare = {record.key for record in records if vector_of(record) is None}
            # Passages of another text must not outlive it, so a changed vector goes as a whole.
            stale = [
                key for key, old in previous.items() if key in vectors or (key in bare and vector_of(old) is not None)
            ]
            if stale:
                self._backend.drop_vectors(spec, stale, model)
            changed = ((record, previous[record.key]) for record in records if record.key in previous)
            reworded = [record.key for record, old in changed if _says_something_else(record, old)]
            if reworded:
                # Vectors of other models were made from the earlier text of the records.
                self._backend.drop_other_vectors(spec, reworded, model)
        if vectors:
            self._backend.put_vectors(spec, vectors, model)

    # ------------------------------------------------------------------ constraints

    def check_unique(self, spec: RecordSpec, records: Sequence[Record]) -> None:
        for rule in spec.unique:
            taken: dict[tuple[Any, ...], str] = {}
            for record in records:
                values = tuple(getattr(record, name) for name in rule.fields)
                if None in values and not rule.nulls_equal:
                    continue
                other = taken.setdefault(values, record.key)
                if other != record.key or self._is_taken(spec, rule, values, record.key):
                    raise UniquenessError(spec.kind, rule.fields, values)

    def _is_taken(self, spec: RecordSpec, rule: Unique, values: tuple[Any, ...], key: str) -> bool:
        same = (
            Missing(name) if value is None else Compare(name, "eq", value)
            for name, value in zip(rule.fields, values, strict=True)
        )
        return self._backend.count(spec, And(*same, Compare(spec.key, "ne", key))) > 0

    def check_references(self, spec: RecordSpec, records: Sequence[Record]) -> None:
        for reference in spec.references:
            if not reference.must_exist:
                continue
            wanted = {getattr(record, reference.field) for record in records} - {None}
            target = kind_named(reference.kind)
            known = {record.key for record in self._backend.lock(target.spec, sorted(wanted), EVERYTHING)}
            for key in sorted(wanted):
                if key not in known:
                    raise ValidationError(spec.kind, reference.field, key, f"must be the id of a {reference.kind}")


def in_order(record: T, previous: Record | None) -> T:
    """The record with a time of change not earlier than the previous one: clocks may be set back."""
    if previous is None or (changed := getattr(record, _CHANGED_AT, None)) is None:
        return record
    before: datetime = getattr(previous, _CHANGED_AT)
    return record if changed >= before else record.replace(**{_CHANGED_AT: before + _LEAST})


class _Guarded:
    """One write of a transaction; there are several in most, so it is a class and no generator."""

    def __init__(self, writer: Writer, backend: Backend) -> None:
        self._writer = writer
        self._backend = backend

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        if exc is None:
            return
        self._writer.failed(exc)
        translating = self._backend.translating()
        translating.__enter__()
        try:
            translating.__exit__(kind, exc, trace)
        except BaseException as ours:
            self._writer.failed(ours)
            raise


def _says_something_else(record: Record, previous: Record) -> bool:
    """Whether a vector of the one is none of the other."""
    texts_of = record.spec.embedded_texts_of
    # Nearly always the texts are the same ones, so they need not be put together.
    return texts_of(record) != texts_of(previous) and record.embedded_text() != previous.embedded_text()


Act = tuple[str, RecordSpec, Sequence[Record]]
"""An action in the words of the audit log, and its records."""


class Recorder:
    """Records what is done to records, in the transaction that does it."""

    def __init__(self, backend: Backend, by: Attribution) -> None:
        self._backend = backend
        self._by = by
        self._chain_head: ChainHead | None = None
        self._change: ChangeType | None = None
        # What the audit log calls a change.
        self.action = "update"
        # What was done to records, for stores with a subscriber.
        self.acts: list[Act] | None = None

    @contextmanager
    def known_as(self, change: ChangeType) -> Iterator[None]:
        """Record the versions written inside as this kind of change."""
        before, self._change = self._change, change
        try:
            yield
        finally:
            self._change = before

    @contextmanager
    def audited_as(self, action: str) -> Iterator[None]:
        """Record the changes made inside as this action in the audit log."""
        before, self.action = self.action, action
        try:
            yield
        finally:
            self.action = before

    @contextmanager
    def without_reason(self) -> Iterator[None]:
        """Record the changes made inside without the reason, which may quote what is deleted."""
        before, self._by = self._by, replace(self._by, reason=None)
        try:
            yield
        finally:
            self._by = before

    def reset(self) -> None:
        """Begin new audit chains after everything was erased."""
        self._chain_head = None

    # ------------------------------------------------------------------ history

    def write_history(
        self,
        spec: RecordSpec,
        records: Sequence[Record],
        previous: Mapping[str, Record],
        last: Mapping[str, MemoryVersion] | None,
        moment: datetime,
    ) -> None:
        """Write the versions that saving these records makes; `last` holds the newest ones where they are known."""
        if last is None and len(previous) == len(records) == 1:
            (old,) = previous.values()
            if self._backend.supersede(records[0], old, self._by, moment, self._change):
                return
        keys = list(map(spec.key_of, records))
        last = self._backend.last_versions(spec.kind, keys) if last is None else last
        if not previous and not last:
            created = self._change or ChangeType.CREATED
            if self._backend.begin_history(spec.kind, keys, self._by, moment, created):
                return
        rows = [
            history.next_version(record, key, previous.get(key), last.get(key), self._by, moment, self._change)
            for key, record in zip(keys, records, strict=True)
        ]
        self._backend.insert(MemoryVersion.spec, rows)
        self._fill_superseded(list(previous.values()), last)

    def write_deletions(self, spec: RecordSpec, records: Sequence[Record]) -> None:
        """Write the versions that say that these records are gone."""
        moment = clock.now()
        last = self._backend.last_versions(spec.kind, [record.key for record in records])
        rows = [history.deletion(spec.kind, record.key, last.get(record.key), self._by, moment) for record in records]
        self._backend.insert(MemoryVersion.spec, rows)
        self._fill_superseded(records, last)

    def _fill_superseded(self, records: Sequence[Record], last: Mapping[str, MemoryVersion]) -> None:
        """Give the versions that just ceased to be the newest the content that only the record held until now."""
        ceased = [(last[record.key], record) for record in records if record.key in last]
        if ceased:
            filled = [history.with_content(version, record) for version, record in ceased]
            self._backend.replace(MemoryVersion.spec, filled, [version for version, _ in ceased])

    # ------------------------------------------------------------------ audit

    def audit(self, spec: RecordSpec, action: str, records: Sequence[Record], moment: datetime) -> None:
        """Say in the audit log, and to subscribers after the commit, what was done."""
        if spec.audited:
            self.append_events(audit_events(spec, action, records, self._by, moment))
            if self.acts is not None:
                self.acts.append((action, spec, records))

    def append_events(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Write audit events behind each other into a chain that is this transaction's until it ends."""
        every = list(events)
        if len(every) == 1 and self._backend.append_event(every[0]):
            # The chain may now be longer than this transaction remembers.
            self._chain_head = None
            return
        chains = self._backend.chains
        placed, self._chain_head = chained(every, chains.take() if self._chain_head is None else self._chain_head)
        self._backend.insert(AuditEvent.spec, list(map(AuditEvent.trusted, placed)))
        chains.move(self._chain_head)

    # ------------------------------------------------------------------ marks

    def mark(self, spec: RecordSpec, keys: Sequence[str], moment: datetime) -> None:
        """Mark changed records for the indexes that follow their kind."""
        self._backend.outbox.mark(spec.kind, keys, moment)
