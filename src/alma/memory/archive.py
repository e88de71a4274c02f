"""The archive: memories that are out of use, and how they are restored or purged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import groupby

from alma import clock
from alma.cache.base import CacheBackend
from alma.errors import NotFoundError, UnsupportedOperation, ValidationError
from alma.memory.erasure import Compactable, Traces, dependents_of, erase, erase_copies
from alma.model.common import checked_names
from alma.model.fields import check_timestamp
from alma.model.governance import (
    ANONYMOUS,
    ArchiveCause,
    ArchivedRecord,
    Attribution,
    AuditEvent,
    audit_event,
    checked_by,
)
from alma.model.kinds import KINDS, kind_named
from alma.model.memory import Memory
from alma.model.query import EVERYTHING, And, Compare, Cursor, In, Or, Order, Predicate, matches
from alma.model.record import Record, spec_of
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.storage.base import RecordVector, StorageBackend, Transaction, checked_storage
from alma.storage.bundles import Bundle, pack, unpack
from alma.storage.document import unpacked_record
from alma.storage.tombstones import Because, lift_tombstones, note_tombstones
from alma.vectors.base import VectorIndex

ARCHIVABLE: tuple[type[Record], ...] = tuple(cls for cls in KINDS if cls.spec.embeds)
"""The kinds that can be archived."""

NEWEST_FIRST = (Order("archived_at", "desc"),)

_EVERYWHERE = Scope.everywhere()
_BATCH_SIZE = 200


class Archive:
    """Archives memories of every kind and restores them.

    Each call is one transaction (`purge` uses one for each batch), stays inside its scope and is audited under the kind
    of the memory as "archive", "restore" or "purge". `index` is an external vector index and `cache` the cache of
    answers, if there are any: a purge clears them as well.
    """

    def __init__(
        self,
        storage: StorageBackend,
        index: Compactable | VectorIndex | None = None,
        cache: CacheBackend | None = None,
    ) -> None:
        self._storage = checked_storage("archive", storage)
        self._traces = Traces(storage, index, cache)

    def put(
        self,
        cls: type[Record],
        ids: str | Iterable[str],
        scope: Scope,
        cause: ArchiveCause | str = ArchiveCause.ARCHIVED,
        reason: str | None = None,
        by: Attribution = ANONYMOUS,
        only_if: Callable[[Record], bool] = lambda _: True,
        deleted: bool = False,
    ) -> list[str]:
        """Archive records with their vectors and dependents; returns the archive ids.

        Records outside of the scope are skipped, and those for which `only_if` is false once they are locked. What is
        `deleted` on request, rather than put away by a rule, does not return by extraction, import or merge.
        """
        _archivable(cls)
        wanted = _id_list(ids)
        because = _checked_cause(cause)

        def move(tx: Transaction) -> list[str]:
            records = [record for record in tx.lock(cls, wanted, scope) if only_if(record)]
            bundles = self._bundles(tx, cls, records)
            tx.delete(cls, [record.key for record in records], scope, action="archive")
            if deleted:
                note_tombstones(tx, records, Because.DELETED)
            # After the deletion, so that the versions it created are not newer.
            moment = clock.now()
            archived = [pack(bundle, because, self._masked(reason), tx.by.author, moment) for bundle in bundles]
            tx.create(*archived)
            return [each.id for each in archived]

        return self._storage.write(move, _with_reason(by, reason))

    def _masked(self, reason: str | None) -> str | None:
        return None if reason is None else self._storage.masked(reason)

    def add(
        self,
        record: Record,
        cause: ArchiveCause | str,
        reason: str | None = None,
        by: Attribution = ANONYMOUS,
        passages: Sequence[Vector] = (),
    ) -> str:
        """Archive a record that was never stored, with its embedding and those of its passages; returns the id."""
        _archivable(type(record))
        because = _checked_cause(cause)
        key, model = str(record.key), self._storage.embedding_model
        own = getattr(record, record.spec.vector_field or "", None)
        parts = [*([(0, own)] if own is not None else ()), *enumerate(passages, start=1)]
        vectors = tuple(RecordVector(key, model, part, Vector(vector)) for part, vector in parts)
        bundle = Bundle(record, vectors, ())

        def keep(tx: Transaction) -> str:
            (archive_id,) = archive_unstored(tx, [(bundle, self._masked(reason))], because)
            return archive_id

        return self._storage.write(keep, _with_reason(by, reason))

    def restore(
        self,
        ids: str | Iterable[str],
        scope: Scope,
        by: Attribution = ANONYMOUS,
        cls: type[Record] | None = None,
    ) -> list[Record]:
        """Restore records exactly as they were, by archive ids or record ids; returns them.

        If a record was archived several times, the newest is restored. If a record with the same id exists,
        AlreadyExistsError is raised and nothing is restored, except that a quarantined newer version replaces the older
        one.
        """
        wanted = _id_list(ids)

        def bring(tx: Transaction) -> list[Record]:
            taken = [self._taken(tx, each, scope, cls) for each in wanted]
            bundles = [unpack(archived) for archived in taken]
            gone = (each.cause in (ArchiveCause.REJECTED, ArchiveCause.FORGOTTEN) for each in taken)
            lift_tombstones(tx, [bundle.record for bundle, was in zip(bundles, gone, strict=True) if was])
            for archived, bundle in zip(taken, bundles, strict=True):
                _unpack_into(tx, bundle, archived.cause)
            for bundle in bundles:
                self._bring_dependents(tx, bundle)
            return [tx.require(type(bundle.record), bundle.record.key, _EVERYWHERE) for bundle in bundles]

        return self._storage.write(bring, _with_reason(by, "restored from the archive"))

    def get(self, archive_id: str, scope: Scope) -> ArchivedRecord | None:
        """The archived record with this archive id inside the scope, or None."""
        return self._storage.get(ArchivedRecord, archive_id, scope)

    def find(
        self,
        scope: Scope,
        cls: type[Record] | None = None,
        cause: ArchiveCause | str | None = None,
        record_ids: Iterable[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int | None = 100,
        after: Cursor | None = None,
    ) -> list[ArchivedRecord]:
        """Archived records, newest first, filtered by kind, cause, record ids and time."""
        where = _where(cls, cause, record_ids, since, until)
        return self._storage.find(ArchivedRecord, scope, where, NEWEST_FIRST, limit, after)

    def count(
        self,
        scope: Scope,
        cls: type[Record] | None = None,
        cause: ArchiveCause | str | None = None,
        until: datetime | None = None,
    ) -> int:
        """The number of archived records."""
        return self._storage.count(ArchivedRecord, scope, _where(cls, cause, None, None, until))

    def record(self, archived: ArchivedRecord) -> Record:
        """The record that was archived, without its vectors."""
        return unpacked_record(archived)

    def purge(
        self,
        older_than: timedelta | datetime,
        scope: Scope,
        by: Attribution = ANONYMOUS,
        cls: type[Record] | None = None,
        cause: ArchiveCause | str | None = None,
        ids: Iterable[str] | None = None,
        scrub: bool = True,
        soft_deleted: bool = True,
    ) -> int:
        """Delete permanently what was archived or soft-deleted before a retention period; returns the number of
        records.

        History and all copies of the text are erased too (see `alma.memory.erasure`). `older_than` is an age or a
        moment. `ids` limits the purge to some archive ids, and `cause` to what was archived for it, which excludes
        soft-deleted memories. Unless `scrub` is False, the files of the store are rewritten, so that no text is left in
        them (see `StorageBackend.scrub`).
        """
        moment = _moment_of(older_than)
        where = _where(cls, cause, None, None, moment)
        if ids is not None:
            where = And(where, In("id", list(ids)))
        purged = 0
        while rows := self._storage.find(ArchivedRecord, scope, where, limit=_BATCH_SIZE):
            purged += self._storage.write(lambda tx, rows=rows: self._purge(tx, rows, scope), by)  # type: ignore[misc]
        if soft_deleted and ids is None and cause is None and cls in (None, Memory):
            purged += self._purge_deleted(moment, scope, by)
        if purged and scrub:
            self._traces.clear()
        return purged

    # ------------------------------------------------------------------ internals

    def _bundles(self, tx: Transaction, cls: type[Record], records: Sequence[Record]) -> list[Bundle]:
        keys = [str(record.key) for record in records]
        vectors: dict[str, list[RecordVector]] = {key: [] for key in keys}
        for each in tx.vectors_of(cls, keys):
            vectors[each.record_id].append(each)
        dependents = dependents_of(tx, cls, keys)
        return [Bundle(r, tuple(vectors[str(r.key)]), tuple(dependents.get(str(r.key), ()))) for r in records]

    def _taken(self, tx: Transaction, wanted: str, scope: Scope, cls: type[Record] | None) -> ArchivedRecord:
        """Take the archived record with this archive or record id out of the archive."""
        meant = Or(Compare("id", "eq", wanted), Compare("record_id", "eq", wanted))
        found = tx.find(ArchivedRecord, scope, And(meant, _where(cls, None, None, None, None)), NEWEST_FIRST)
        found = [each for each in found if each.id == wanted] or found
        kinds = sorted({each.kind for each in found})
        if len(kinds) > 1:
            raise ValidationError("archive", "id", wanted, f"is ambiguous: name the kind, {' or '.join(kinds)}")
        # Another process may have restored it since.
        if not found or not tx.delete(ArchivedRecord, [found[0].id], scope):
            raise NotFoundError("archived record", wanted)
        return found[0]

    def _bring_dependents(self, tx: Transaction, bundle: Bundle) -> None:
        for dependent in bundle.dependents:
            missing = _missing_target(tx, dependent)
            if missing is not None:
                _attach_or_drop(tx, dependent, *missing)
            elif not tx.lock(type(dependent), [dependent.key], _EVERYWHERE):
                tx.create(dependent, action="restore")

    def _purge(self, tx: Transaction, rows: Sequence[ArchivedRecord], scope: Scope) -> int:
        held = tx.lock(ArchivedRecord, [row.id for row in rows], scope)
        bundles = [unpack(row) for row in held]
        gone = [(b.record, *b.dependents) for b in bundles]
        # A newer record may have the same id; its history is kept.
        until = [row.archived_at for row, each in zip(held, gone, strict=True) for _ in each]
        erase_copies(tx, [record for each in gone for record in each], until)
        tx.delete(ArchivedRecord, [row.id for row in held], scope)
        tx.save(*_events("purge", held, tx.by))
        return len(held)

    def _purge_deleted(self, until: datetime, scope: Scope, by: Attribution) -> int:
        """Erase memories that were soft-deleted before a moment, in batches."""
        old = And(Compare("is_active", "eq", False), Compare("updated_at", "le", until))
        ids = [str(key) for (key,) in self._storage.values(Memory, ("id",), scope, old)]
        purged = 0

        def purge(tx: Transaction, batch: Sequence[str]) -> int:
            # The deletion may have been undone since.
            held = [memory for memory in tx.lock(Memory, batch, scope) if matches(old, memory)]
            erase(tx, held, scope, action="purge")
            return len(held)

        for start in range(0, len(ids), _BATCH_SIZE):
            batch = ids[start : start + _BATCH_SIZE]
            purged += self._storage.write(lambda tx, batch=batch: purge(tx, batch), by)  # type: ignore[misc]
        return purged


def archive_unstored(tx: Transaction, bundles: Iterable[tuple[Bundle, str | None]], cause: ArchiveCause) -> list[str]:
    """Archive records that were never stored, each with its reason; returns the archive ids."""
    rows = [pack(bundle, cause, reason, tx.by.author, clock.now()) for bundle, reason in bundles]
    tx.create(*rows)
    tx.save(*_events("quarantine" if cause is ArchiveCause.QUARANTINED else "archive", rows, tx.by))
    return [row.id for row in rows]


def attach_dependents(tx: Transaction, archived: ArchivedRecord, dependents: Iterable[Record]) -> None:
    """Attach dependents to an archived record, to be restored with it."""
    bundle = unpack(archived)
    waiting = replace(bundle, dependents=(*bundle.dependents, *dependents))
    tx.save(pack(waiting, archived.cause, archived.reason, archived.archived_by, archived.archived_at, archived.id))


def _unpack_into(tx: Transaction, bundle: Bundle, cause: ArchiveCause) -> None:
    """Store a record with its vectors; the vector of the store's own model is part of the record."""
    record, cls, key = bundle.record, type(bundle.record), str(bundle.record.key)
    name = cls.spec.vector_field
    own = [each.vector for each in bundle.vectors if each.model == tx.embedding_model and each.part == 0]
    whole = record.replace(**{name: own[0]}) if own and name is not None else record
    if cause is ArchiveCause.QUARANTINED and _is_newer_version(tx, record):
        with tx.audited_as("restore"):
            tx.save(whole)
    else:
        tx.create(whole, action="restore")
    for model, group in groupby(bundle.vectors, key=lambda each: each.model):
        parts = {each.part: each.vector for each in group}
        if 0 in parts and model != tx.embedding_model:
            tx.put_vectors(cls, {key: parts[0]}, model)
        passages = [vector for part, vector in sorted(parts.items()) if part > 0]
        if passages:
            tx.put_passages(cls, {key: passages}, model)


def _is_newer_version(tx: Transaction, record: Record) -> bool:
    """Whether an older version of the record is stored."""
    changed_at: datetime | None = record.values().get("updated_at")
    stored = tx.lock(type(record), [record.key], _EVERYWHERE) if changed_at is not None else []
    return any(changed_at > each.values()["updated_at"] for each in stored)


def _missing_target(tx: Transaction, dependent: Record) -> tuple[str, str] | None:
    """The kind and id of a referenced record that does not exist."""
    for reference in dependent.spec.references:
        target = getattr(dependent, reference.field)
        if reference.must_exist and not tx.lock(kind_named(reference.kind), [target], _EVERYWHERE):
            return reference.kind, target
    return None


def _attach_or_drop(tx: Transaction, dependent: Record, kind: str, record_id: str) -> None:
    """Attach a relation to its other end if that is archived; otherwise drop it."""
    other_end = And(Compare("kind", "eq", kind), Compare("record_id", "eq", record_id))
    for archived in tx.find(ArchivedRecord, _EVERYWHERE, other_end, NEWEST_FIRST, limit=1):
        attach_dependents(tx, archived, [dependent])


def _events(action: str, rows: Sequence[ArchivedRecord], by: Attribution) -> list[AuditEvent]:
    """Audit events for archived records."""
    ordered = sorted(rows, key=lambda row: row.kind)
    details = None if by.reason is None else {"reason": by.reason}
    groups = groupby(ordered, lambda row: row.kind)
    return [
        audit_event(by, action, kind, [row.record_id for row in group], details_json=details) for kind, group in groups
    ]


def _where(
    cls: type[Record] | None,
    cause: ArchiveCause | str | None,
    record_ids: Iterable[str] | None,
    since: datetime | None,
    until: datetime | None,
) -> Predicate:
    parts: list[Predicate] = []
    if cls is not None:
        parts.append(Compare("kind", "eq", _archivable(cls)))
    if cause is not None:
        parts.append(Compare("cause", "eq", _checked_cause(cause)))
    if record_ids is not None:
        parts.append(In("record_id", checked_names("archive", "record_ids", record_ids)))
    if since is not None:
        parts.append(Compare("archived_at", "ge", since))
    if until is not None:
        parts.append(Compare("archived_at", "le", until))
    return And(*parts) if parts else EVERYTHING


def _archivable(cls: type[Record]) -> str:
    """The name of the kind, if it can be archived."""
    if spec_of(cls) not in [each.spec for each in ARCHIVABLE]:
        names = ", ".join(each.spec.kind for each in ARCHIVABLE)
        raise UnsupportedOperation(f"{cls.spec.kind} records cannot be archived; those of {names} can")
    return cls.spec.kind


def _checked_cause(cause: ArchiveCause | str) -> ArchiveCause:
    try:
        return ArchiveCause(cause)
    except ValueError:
        raise ValidationError("archive", "cause", cause, f"must be one of {', '.join(ArchiveCause)}") from None


def _id_list(ids: str | Iterable[str]) -> list[str]:
    if not isinstance(ids, Iterable):
        raise ValidationError("archive", "ids", ids, "must be an id or a list of ids")
    return [ids] if isinstance(ids, str) else list(dict.fromkeys(ids))


def moment_before(moment: datetime, period: timedelta, act: str, name: str) -> datetime:
    """A moment minus a period; `act` and `name` are used in errors."""
    if period < timedelta(0):
        raise ValidationError(act, name, period, "must not be negative")
    try:
        return moment - period
    except OverflowError:
        raise ValidationError(act, name, period, "is before the first date that can be stored") from None


def _moment_of(older_than: timedelta | datetime) -> datetime:
    if isinstance(older_than, timedelta):
        return moment_before(clock.now(), older_than, "purge", "older_than")
    try:
        return check_timestamp(older_than)
    except ValueError as exc:
        raise ValidationError("purge", "older_than", older_than, f"{exc}, or a timedelta") from None


def _with_reason(by: Attribution, reason: str | None) -> Attribution:
    """The attribution with the reason of the operation, unless it has one."""
    checked_by("archive", by)
    return by if by.reason is not None or not reason or not reason.strip() else replace(by, reason=reason)
