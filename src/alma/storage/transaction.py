"""Transaction: every operation of the contract, written once on the few things a store must be able to do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime, timedelta
from operator import attrgetter
from types import TracebackType
from typing import Any, TypeVar, cast

from alma import clock
from alma.errors import (
    AlreadyExistsError,
    ConflictError,
    NotFoundError,
    ScopeViolationError,
    StorageError,
    UniquenessError,
    UnsupportedOperation,
    ValidationError,
)
from alma.model.common import checked_name
from alma.model.fields import FieldType
from alma.model.governance import Attribution, AuditEvent, Setting, default_settings
from alma.model.kinds import kind_named, references_to
from alma.model.memory import ChangeType, MemoryVersion
from alma.model.query import And, Compare, In, Missing, Predicate
from alma.model.record import OnDelete, Record, RecordSpec, Unique, spec_of
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.storage import versions
from alma.storage.audit import audit_events
from alma.storage.chain import ChainHead, placed
from alma.storage.changes import Act
from alma.storage.outbox import Mark
from alma.storage.primitives import Query, Reads
from alma.storage.reading import EVERYWHERE, Reading, embedding, inside, named, required_limit

T = TypeVar("T", bound=Record)

_OWNERS = ("user_id", "project_id", "agent")
_ONE_BY_ONE: AbstractContextManager[None] = nullcontext()


class Transaction(Reading):
    """What can be done inside a transaction: the questions of `Reading`, and every kind of write.

    A `cautious` one takes nothing for granted about what is stored; it is tried when a first attempt collided.
    """

    def __init__(self, by: Attribution, embedding_dim: int, embedding_model: str, *, writable: bool) -> None:
        super().__init__(by, embedding_dim, embedding_model, writable=writable)
        self.cautious = False
        # What was done to records, kept where somebody wants to be told of it after the commit.
        self.acts: list[Act] | None = None
        # What the transaction before this one left behind, and what this one leaves.
        self.found_behind: object = None
        self.left_behind: object = None
        self._failure: BaseException | None = None
        self._chain_head: ChainHead | None = None
        self._change: ChangeType | None = None
        self._action = "update"

    def save(self, *records: Record) -> None:
        """Store records of any kinds; all of them, or on error none."""
        for spec, batch in _by_kind(records):
            self._save_batch(spec, batch)

    def insert(self, *records: Record) -> None:
        """Store records that must be new; one that is there already is a ConflictError, and `write` tries again.

        So what was decided because a record was missing is decided anew, instead of being written over it.
        """
        try:
            self.create(*records)
        except AlreadyExistsError as exc:
            raise ConflictError(str(exc)) from exc

    def add(self, *records: Record) -> None:
        """Store records whose ids were made just now, so that nobody can have used them; nothing is looked up first.

        One that is there nevertheless is a ConflictError, and `write` tries again with a look.
        """
        if self.cautious:
            self.insert(*records)
            return
        for spec, batch in _by_kind(records):
            self._reserve(spec, [record.key for record in batch])
            self._write(spec, batch, {}, {})

    @contextmanager
    def known_as(self, change: ChangeType) -> Iterator[None]:
        """What is saved inside is remembered as this kind of change."""
        before, self._change = self._change, change
        try:
            yield
        finally:
            self._change = before

    @contextmanager
    def audited_as(self, action: str) -> Iterator[None]:
        """What is changed inside is called so by the audit log."""
        before, self._action = self._action, action
        try:
            yield
        finally:
            self._action = before

    def create(self, *records: Record, action: str = "create") -> None:
        """Store records whose ids must not be in use; `action` is what the audit log calls it."""
        for spec, batch in _by_kind(records):
            keys = [record.key for record in batch]
            self._reserve(spec, keys)
            for key in self._locked(spec, keys, EVERYWHERE):
                raise AlreadyExistsError(spec.kind, spec.key, key)
            self._write(spec, batch, {}, action=action)

    def adopt(self, records: Iterable[Record], versions: Iterable[MemoryVersion] = ()) -> None:
        """Store new records with the history they bring from elsewhere, instead of beginning one here.

        A version may belong to a record that is gone; it must be new here as well.
        """
        for spec, batch in _by_kind(records):
            keys = list(map(spec.key_of, batch))
            self._reserve(spec, keys)
            self._check_unique(spec, batch)
            self._check_references(spec, batch)
            with self._writing():
                self._insert(spec, batch)
                self._follow_up(spec, batch, (), "create", clock.now())
        rows = [version.replace(id=None) for version in versions]
        if rows:
            with self._writing():
                self._insert(MemoryVersion.spec, rows)

    def erase(self) -> None:
        """Become a new store: forget everything, the history and the audit log too; only a restore has reason to."""
        with self._writing():
            self._erase()
            self._chain_head = None
            self._insert(Setting.spec, default_settings())

    def claim_model(self) -> None:
        """Say that the store's own model is its model, although it has vectors of none yet."""
        if not self._models():
            with self._writing():
                self._dims_of(self.embedding_model, self.embedding_dim)

    def update(self, cls: type[T], record_id: str, changes: Mapping[str, Any], scope: Scope) -> T | None:
        if not isinstance(changes, Mapping):
            raise ValidationError(spec_of(cls).kind, None, changes, "can only be updated with a dict of fields")
        for name in changes:
            spec_of(cls).field(name)
        if spec_of(cls).key in changes and changes[spec_of(cls).key] != record_id:
            raise ValidationError(spec_of(cls).kind, spec_of(cls).key, changes[spec_of(cls).key], "cannot be changed")
        return self.change(cls, record_id, scope, lambda found: found.replace(**changes))

    def change(self, cls: type[T], record_id: str, scope: Scope, changed: Callable[[T], T]) -> T | None:
        """Replace a record by what is made of it as it is now; gives that, or None where there is none in the scope."""
        spec = spec_of(cls)
        _refuse_append_only(spec)
        found = self._held(spec, _checked_keys(spec, [record_id]), scope).get(record_id)
        if found is None:
            return None
        made = changed(cast(T, found))
        self.revise(found, made)
        return made

    def revise(self, held: Record, made: Record) -> None:
        """Replace a record that this transaction holds, as `lock` gives it, by what was made of it."""
        if made.key != held.key:
            raise ValidationError(held.spec.kind, held.spec.key, made.key, "cannot be changed")
        self._write(held.spec, [made], {held.key: held})

    def increment(
        self,
        cls: type[T],
        record_id: str,
        counters: Mapping[str, int],
        scope: Scope,
        changes: Mapping[str, Any] | None = None,
    ) -> T | None:
        if not isinstance(counters, Mapping):
            raise ValidationError(spec_of(cls).kind, None, counters, "can only be counted with a dict of numbers")
        for name, by in counters.items():
            if spec_of(cls).field(name).type not in (FieldType.INTEGER, FieldType.FLOAT):
                raise ValidationError(spec_of(cls).kind, name, by, "is no number and cannot be added to")
            if isinstance(by, bool) or not isinstance(by, int | float):
                raise ValidationError(spec_of(cls).kind, name, by, "can only be added a number")

        def counted(found: T) -> T:
            added = {name: (getattr(found, name) or 0) + by for name, by in counters.items()}
            return found.replace(**added, **(changes or {}))

        return self.change(cls, record_id, scope, counted)

    def count_reads(self, cls: type[Record], reads: Mapping[str, Reads]) -> None:
        """Add to the `access_count` of records and set when they were last read; unknown ids are passed over.

        Reading changes nothing that is remembered: there is no version of it, no audit event and no mark.
        """
        spec = spec_of(cls)
        for name in ("access_count", "last_accessed_at"):
            spec.field(name)
        # Sorted, so that two batches over the same records take their row locks in the same order.
        keys = sorted(_checked_keys(spec, reads))
        if keys:
            with self._writing():
                self._count_reads(spec, {key: reads[key] for key in keys})

    def _count_reads(self, spec: RecordSpec, reads: Mapping[str, Reads]) -> None:
        """Write the counters; a database may know a shorter way."""
        known = self._locked(spec, list(reads), EVERYWHERE)
        counted = [_with_reads(record, reads[key]) for key, record in known.items()]
        self._replace(spec, counted, list(known.values()))

    def delete(self, cls: type[Record], record_ids: Iterable[str], scope: Scope, action: str = "delete") -> int:
        """Delete records with all that hangs on them; `action` is what the audit log calls it."""
        _refuse_append_only(spec_of(cls))
        found = list(self._locked(spec_of(cls), _checked_keys(spec_of(cls), record_ids), scope).values())
        self._delete_records(spec_of(cls), found, action)
        return len(found)

    def delete_where(self, cls: type[Record], scope: Scope, where: Predicate) -> int:
        _refuse_append_only(spec_of(cls))
        self._require_writable()
        found = self._select(Query(spec_of(cls), inside(spec_of(cls), scope, where), for_update=True))
        self._delete_records(spec_of(cls), found)
        return len(found)

    def erase_history(self, cls: type[Record], record_id: str, until: datetime) -> int:
        """Delete the versions that a record had up to a moment, contents and all; returns how many."""
        kind = spec_of(cls).kind
        self._require_writable()
        of_record = And(Compare("kind", "eq", kind), Compare("memory_id", "eq", record_id))
        found = self._select(Query(MemoryVersion.spec, And(of_record, Compare("created_at", "le", until))))
        with self._writing():
            self._remove(MemoryVersion.spec, found)
        return len(found)

    def lock(self, cls: type[T], record_ids: Iterable[str], scope: Scope) -> list[T]:
        """The records with these ids inside the scope, as they are now, held against other writers until the end.

        What is decided from them still holds when it is written. They come in the order asked for.
        """
        wanted = _checked_keys(spec_of(cls), record_ids)
        if not isinstance(scope, Scope):
            raise ScopeViolationError(spec_of(cls).kind, None, scope, "needs a Scope; Scope.everywhere() sees all")
        found = self._held(spec_of(cls), wanted, scope)
        return [cast(T, found[key]) for key in wanted if key in found]

    def leave_behind(self, what: object) -> None:
        """Leave something that the next transaction finds in `found_behind`, if it follows this one directly.

        That is known only where a store can tell that nobody at all wrote in between; elsewhere nothing is found. So
        what was read here, and what was made of it, need not be read again. Whoever leaves it answers for what was
        written in this transaction.
        """
        self.left_behind = what

    def hold(self, name: str) -> None:
        """Wait for every other transaction that holds this name, and make others wait until this one ends."""
        with self._writing():
            self._hold(name)

    def put_vectors(
        self, cls: type[Record], vectors: Mapping[str, Any], model: str, made_from: Mapping[str, str] | None = None
    ) -> int:
        spec = embedding(spec_of(cls))
        checked_name("vectors", "model", model)
        fitting = {key: self._fitting(spec, Vector(vector), model, claim=True) for key, vector in vectors.items()}
        known = self._locked(spec, _checked_keys(spec, fitting), EVERYWHERE)
        if made_from is not None:
            fitting = {k: v for k, v in fitting.items() if k in known and known[k].embedded_text() == made_from[k]}
        for key in fitting:
            if key not in known:
                raise NotFoundError(spec.kind, key)
        with self._writing():
            self._put_vectors(spec, fitting, model)
            self._mark(spec, list(fitting))
        return len(fitting)

    def put_passages(self, cls: type[Record], passages: Mapping[str, Sequence[Any]], model: str | None = None) -> None:
        spec = embedding(spec_of(cls))
        chosen = self.embedding_model if model is None else checked_name("vectors", "model", model)
        if not isinstance(passages, Mapping):
            raise ValidationError(spec.kind, None, passages, "needs the vectors of its passages as {id: [vector, …]}")
        fitting = {key: self._fitting_passages(spec, vectors, chosen) for key, vectors in passages.items()}
        self._require_all(spec, fitting)
        with self._writing():
            self._put_passages(spec, fitting, chosen)
            self._mark(spec, list(fitting))

    def _fitting_passages(self, spec: RecordSpec, vectors: Sequence[Any], model: str) -> list[Vector]:
        if isinstance(vectors, str) or not isinstance(vectors, Sequence):
            raise ValidationError(spec.kind, None, vectors, "needs the vectors of its passages as a list")
        return [self._fitting(spec, Vector(vector), model, claim=True) for vector in vectors]

    def _require_all(self, spec: RecordSpec, keys: Iterable[str]) -> None:
        wanted = _checked_keys(spec, keys)
        known = self._locked(spec, wanted, EVERYWHERE)
        for key in wanted:
            if key not in known:
                raise NotFoundError(spec.kind, key)

    # ------------------------------------------------------------------ the outbox

    def register_projection(self, name: str, kinds: Iterable[str]) -> None:
        chosen = tuple(kind_named(kind).spec.kind for kind in kinds)
        checked_name("projection", "name", name)
        with self._writing():
            self._marks().register(name, chosen)

    def drop_projection(self, name: str) -> None:
        with self._writing():
            self._marks().drop(name)

    def claim(self, projection: str, limit: int, lease_seconds: float) -> list[Mark]:
        moment = clock.now()
        most = required_limit(limit)
        with self._writing():
            return self._marks().claim(projection, most, moment, moment + timedelta(seconds=lease_seconds))

    def acknowledge(self, marks: Sequence[Mark]) -> int:
        with self._writing():
            return self._marks().acknowledge(marks)

    def fail(self, mark: Mark, error: str, park_after: int) -> None:
        with self._writing():
            self._marks().fail(mark, error, park_after)

    def unpark(self, projection: str) -> int:
        with self._writing():
            return self._marks().unpark(projection)

    def pending(self, projection: str) -> list[Mark]:
        return self._marks().pending(projection)

    # ------------------------------------------------------------------ how a write is done

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
        return _Writing(self)

    def failed(self, why: BaseException) -> None:
        """Remember that a write failed half-way."""
        self._failure = why

    def _translating(self) -> AbstractContextManager[None]:
        """Turns a driver's errors into ours, for callers that handle an error inside the transaction."""
        return nullcontext()

    def _together(self, records: int) -> AbstractContextManager[Any]:
        """Lets a store far away be told in one go what belongs to the write of so many records."""
        return _ONE_BY_ONE

    def _save_batch(self, spec: RecordSpec, batch: Sequence[Record]) -> None:
        if spec.append_only:
            with self._writing():
                self._append(spec, batch)
            return
        self._require_writable()
        latest = dict(zip(map(spec.key_of, batch), batch, strict=True))
        keys = list(latest)
        self._reserve(spec, keys)
        last = self._last_versions(spec.kind, keys) if spec.versioned else None
        previous = self._locked(spec, self._possibly_stored(keys, last), EVERYWHERE)
        for key, old in previous.items():
            _refuse_other_owner(latest[key], old)
        # Of a record that exists, the versions must be read again now that nobody else can add one.
        self._write(spec, list(latest.values()), previous, None if previous else last)

    def _possibly_stored(self, keys: list[str], last: Mapping[str, MemoryVersion] | None) -> list[str]:
        """The ids worth looking for: a record that was never versioned does not exist, unless someone wrote past us."""
        if last is None or self.cautious:
            return keys
        return [key for key in last if last[key].change_type is not ChangeType.DELETED]

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

    # ------------------------------------------------------------------ history, audit, marks

    def _write_history(
        self,
        spec: RecordSpec,
        records: Sequence[Record],
        previous: Mapping[str, Record],
        last: Mapping[str, MemoryVersion] | None,
        moment: datetime,
    ) -> None:
        keys = list(map(spec.key_of, records))
        if (
            last is None
            and len(previous) == len(records) == 1
            and self._supersede(records[0], previous[keys[0]], moment)
        ):
            return
        last = self._last_versions(spec.kind, keys) if last is None else last
        if not previous and not last:
            self._insert_first_versions(spec.kind, keys, moment)
            return
        rows = [
            versions.next_version(record, key, previous.get(key), last.get(key), self.by, moment, self._change)
            for key, record in zip(keys, records, strict=True)
        ]
        self._insert(MemoryVersion.spec, rows)
        self._fill_superseded(list(previous.values()), last)

    def _supersede(self, record: Record, previous: Record, moment: datetime) -> bool:
        """Write the version that a change of one record makes, where a database knows a short way; says whether."""
        return False

    def _insert_first_versions(self, kind: str, keys: Sequence[str], moment: datetime) -> None:
        """Write that these records were created; a database may know a shorter way to say so of many."""
        rows = [versions.creation(kind, key, self.by, moment) for key in keys]
        self._insert(MemoryVersion.spec, rows)

    def _write_history_of_deleted(self, spec: RecordSpec, records: Sequence[Record]) -> None:
        moment = clock.now()
        last = self._last_versions(spec.kind, [record.key for record in records])
        rows = [versions.deletion(spec.kind, record.key, last.get(record.key), self.by, moment) for record in records]
        self._insert(MemoryVersion.spec, rows)
        self._fill_superseded(records, last)

    def _fill_superseded(self, records: Sequence[Record], last: Mapping[str, MemoryVersion]) -> None:
        """Give the versions that just ceased to be the newest the content that only the record held until now."""
        ceased = [(last[record.key], record) for record in records if record.key in last]
        if ceased:
            filled = [versions.with_content(version, record) for version, record in ceased]
            self._replace(MemoryVersion.spec, filled, [version for version, _ in ceased])

    def _write_audit(self, spec: RecordSpec, action: str, records: Sequence[Record], moment: datetime) -> None:
        self._audit(spec, action, records, moment)
        if self.acts is not None:
            self.acts.append((action, spec, records))

    def _audit(self, spec: RecordSpec, action: str, records: Sequence[Record], moment: datetime) -> None:
        """Say in the audit log what was done; a database may know a shorter way to say it of one record."""
        self._append_events(audit_events(spec, action, records, self.by, moment))

    def _append(self, spec: RecordSpec, batch: Sequence[Record]) -> None:
        if spec is AuditEvent.spec:
            self._append_events(event.values() for event in batch)
        else:
            self._insert(spec, batch)

    def _append_events(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Write audit events behind each other into a chain that is this transaction's until it ends."""
        chained, self._chain_head = placed(events, self._take_head())
        self._insert_events(chained)
        self._chains().move(self._chain_head)

    def _take_head(self) -> ChainHead:
        """Where the transaction's chain ends."""
        return self._chains().take() if self._chain_head is None else self._chain_head

    def _insert_events(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Write events that have their places; a database may know a shorter way."""
        self._insert(AuditEvent.spec, list(map(AuditEvent.trusted, events)))

    def _mark(self, spec: RecordSpec, keys: Sequence[str]) -> None:
        marks = self._marks()
        for projection in marks.projections(spec.kind):
            marks.mark(projection, spec.kind, keys, clock.now())


class _Writing:
    """One write of a transaction; there are several in most, so that it is no generator."""

    def __init__(self, tx: Transaction) -> None:
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


def _checked_keys(spec: RecordSpec, keys: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(spec.checked(spec.key, key) for key in named(spec, keys)))


def _by_kind(records: Iterable[Record]) -> list[tuple[RecordSpec, Sequence[Record]]]:
    if isinstance(records, tuple) and len(records) == 1 and isinstance(records[0], Record):
        return [(records[0].spec, records)]
    batches: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        if not isinstance(record, Record):
            raise ValidationError("storage", None, record, "can only save records")
        batches[record.spec.kind].append(record)
    return [(batch[0].spec, batch) for batch in batches.values()]


def _refuse_append_only(spec: RecordSpec) -> None:
    if spec.append_only:
        raise UnsupportedOperation(f"{spec.kind} records are kept and cannot be changed or deleted")


def _refuse_other_owner(record: Record, stored: Record) -> None:
    """Ids are chosen by callers, so two projects may choose the same one: the second must not overwrite the first."""
    for name in _OWNERS:
        if name in record.spec.by_name:
            mine, theirs = getattr(record, name), getattr(stored, name)
            if mine is not None and theirs is not None and mine != theirs:
                raise ScopeViolationError(
                    record.spec.kind, name, mine, f"differs from that of the stored record with id {record.key!r}"
                )


def _says_something_else(record: Record, previous: Record) -> bool:
    """Whether a vector of the one is none of the other."""
    texts_of = record.spec.embedded_texts_of
    # Nearly always the texts are the same ones, so they need not be put together.
    return texts_of(record) != texts_of(previous) and record.embedded_text() != previous.embedded_text()


def _with_reads(record: Any, reads: Reads) -> Record:
    counted: Record = record.replace(
        access_count=record.access_count + reads.count, last_accessed_at=max(record.last_accessed_at, reads.last)
    )
    return counted
