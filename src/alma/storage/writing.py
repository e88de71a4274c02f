"""Writing: how records are written and deleted with everything that must agree with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from operator import attrgetter
from types import TracebackType
from typing import Any, TypeVar

from alma import clock
from alma.errors import StorageError, UniquenessError, ValidationError
from alma.model.kinds import kind_named, references_to
from alma.model.memory import MemoryVersion
from alma.model.query import And, Compare, In, Missing
from alma.model.record import OnDelete, Record, RecordSpec, Unique
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.storage.primitives import Query
from alma.storage.reading import EVERYWHERE
from alma.storage.recording import Recording

T = TypeVar("T", bound=Record)

_CHANGED_AT = "updated_at"
_LEAST = timedelta(microseconds=1)
_ONE_BY_ONE: AbstractContextManager[None] = nullcontext()


class Writing(Recording):
    """Writes all of it or nothing: after a write that failed half-way the transaction cannot be committed."""

    _failure: BaseException | None = None

    def require_sound(self) -> None:
        """Refuse to commit after a write that failed half-way, even if somebody swallowed its error."""
        if self._failure is not None:
            raise StorageError("an earlier write of this transaction failed, so all of it was rolled back") from (
                self._failure
            )

    def _require_writable(self) -> None:
        if not self.writable:
            raise StorageError("a write was tried inside a read-only snapshot")

    def _writing(self) -> AbstractContextManager[None]:
        """Holds every write: one that fails leaves nothing of its transaction to be committed."""
        self._require_writable()
        return _Guarded(self)

    def failed(self, why: BaseException) -> None:
        """Remember that a write failed half-way."""
        self._failure = why

    def _translating(self) -> AbstractContextManager[None]:
        """Turns a driver's errors into ours, for callers that handle an error inside the transaction."""
        return nullcontext()

    def _together(self, records: int) -> AbstractContextManager[Any]:
        """Lets a store far away be told in one go what belongs to the write of so many records."""
        return _ONE_BY_ONE

    # ------------------------------------------------------------------ records

    def _write(
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
            self._check_unique(spec, records)
        if spec.references:
            self._check_references(spec, records)
        key_of = spec.key_of
        new = [record for record in records if key_of(record) not in previous] if previous else records
        changed = [record for record in records if key_of(record) in previous] if previous else []
        with self._writing(), self._together(len(records)):
            if new:
                self._insert(spec, new)
            if changed:
                self._replace(spec, changed, [previous[record.key] for record in changed])
            self._write_vectors(spec, records, vectors, previous)
            moment = clock.now()
            if spec.versioned:
                self._write_history(spec, records, previous, last, moment)
            self._follow_up(spec, new, changed, action, moment)

    def _follow_up(
        self, spec: RecordSpec, new: Sequence[Record], changed: Sequence[Record], action: str, moment: datetime
    ) -> None:
        """What follows from every write: audit, and marks for the indexes."""
        if spec.audited:
            for act, records in ((action, new), (self._action, changed)):
                if records:
                    self._write_audit(spec, act, records, moment)
        self._mark(spec, [*map(spec.key_of, new), *map(spec.key_of, changed)])

    def _delete_records(self, spec: RecordSpec, records: Sequence[Record], action: str = "delete") -> None:
        if not records:
            return
        keys = [record.key for record in records]
        for dependent, reference in references_to(spec.kind):
            self._release(dependent, reference.field, reference.on_delete, keys)
        with self._writing():
            self._remove(spec, records)
            if spec.versioned:
                self._write_history_of_deleted(spec, records)
            if spec.audited:
                self._write_audit(spec, action, records, clock.now())
            self._mark(spec, keys)

    def _release(self, spec: RecordSpec, field: str, on_delete: OnDelete, keys: Sequence[str]) -> None:
        dependents = self._select(Query(spec, In(field, keys), for_update=True))
        if on_delete is OnDelete.CASCADE:
            self._delete_records(spec, dependents)
        elif dependents:
            cleared = [record.replace(**{field: None}) for record in dependents]
            self._write(spec, cleared, {record.key: record for record in dependents})

    # ------------------------------------------------------------------ what is held against other writers

    def hold(self, name: str) -> None:
        """Wait for every other transaction that holds this name, and make others wait until this one ends."""
        with self._writing():
            self._hold(name)

    def _locked(self, spec: RecordSpec, keys: Sequence[str], scope: Scope) -> dict[str, Record]:
        """Those of these keys that exist, held against other writers; a store may know sooner that none does."""
        return self._held(spec, keys, scope)

    def _held(self, spec: RecordSpec, keys: Sequence[str], scope: Scope) -> dict[str, Record]:
        """The existing records with these keys, held against other writers until the transaction ends."""
        self._require_writable()
        if not keys:
            return {}
        where = And(scope.predicate(spec), In(spec.key, keys))
        return {record.key: record for record in self._select(Query(spec, where, for_update=True))}

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
                if len(vector) != self.embedding_dim:
                    raise self._wrong_length(spec, vector, self.embedding_dim)
            self._require_first_or_own_model()
            self._fitting(spec, next(iter(found.values())), self.embedding_model, claim=True)
        return found

    def _require_first_or_own_model(self) -> None:
        """Refuse vectors of a further model; of two who bring the first ones at once, the second waits to be told."""
        if self._dims_of(self.embedding_model, None) is None:
            self.hold("the first vectors")
        self._require_own_model()

    def _write_vectors(
        self,
        spec: RecordSpec,
        records: Sequence[Record],
        vectors: Mapping[str, Vector],
        previous: Mapping[str, Record],
    ) -> None:
        if spec.vector_field is None:
            return
        if previous:
            vector_of = attrgetter(spec.vector_field)
            bare = {record.key for record in records if vector_of(record) is None}
            # Passages of another text must not outlive it, so a changed vector goes as a whole.
            stale = [
                key for key, old in previous.items() if key in vectors or (key in bare and vector_of(old) is not None)
            ]
            if stale:
                self._drop_vectors(spec, stale, self.embedding_model)
            changed = ((record, previous[record.key]) for record in records if record.key in previous)
            reworded = [record.key for record, old in changed if _says_something_else(record, old)]
            if reworded:
                # Vectors of other models were made from what the records no longer say.
                self._drop_other_vectors(spec, reworded, self.embedding_model)
        if vectors:
            self._put_vectors(spec, vectors, self.embedding_model)

    # ------------------------------------------------------------------ constraints

    def _check_unique(self, spec: RecordSpec, records: Sequence[Record]) -> None:
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
        return self._count(spec, And(*same, Compare(spec.key, "ne", key))) > 0

    def _check_references(self, spec: RecordSpec, records: Sequence[Record]) -> None:
        for reference in spec.references:
            if not reference.must_exist:
                continue
            wanted = {getattr(record, reference.field) for record in records} - {None}
            target = kind_named(reference.kind)
            known = self._locked(target.spec, sorted(wanted), EVERYWHERE)
            for key in sorted(wanted):
                if key not in known:
                    raise ValidationError(spec.kind, reference.field, key, f"must be the id of a {reference.kind}")


def in_order(record: T, previous: Record | None) -> T:
    """The record with a time of change that is no earlier than the one before: clocks may be set back."""
    if previous is None or (changed := getattr(record, _CHANGED_AT, None)) is None:
        return record
    before: datetime = getattr(previous, _CHANGED_AT)
    return record if changed >= before else record.replace(**{_CHANGED_AT: before + _LEAST})


class _Guarded:
    """One write of a transaction; there are several in most, so that it is no generator."""

    def __init__(self, tx: Writing) -> None:
        self._tx = tx

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        if exc is None:
            return
        self._tx.failed(exc)
        translating = self._tx._translating()
        translating.__enter__()
        try:
            translating.__exit__(kind, exc, trace)
        except BaseException as ours:
            self._tx.failed(ours)
            raise


def _says_something_else(record: Record, previous: Record) -> bool:
    """Whether a vector of the one is none of the other."""
    texts_of = record.spec.embedded_texts_of
    # Nearly always the texts are the same ones, so they need not be put together.
    return texts_of(record) != texts_of(previous) and record.embedded_text() != previous.embedded_text()
