"""Store arriving records (from an import or a merge): new and newer ones, conflicts, and unique names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from alma.model.governance import ANONYMOUS, Attribution, Setting, default_settings
from alma.model.kinds import kind_named
from alma.model.memory import ChangeType, MemoryVersion
from alma.model.query import And, Compare, In
from alma.model.record import Record, RecordSpec, Unique
from alma.storage import history
from alma.storage.base import RecordVector, StorageBackend, Transaction
from alma.storage.deleted_values import DeletedValues
from alma.storage.document import to_document
from alma.storage.tombstones import KEY, Tombstone, lift_tombstones, of_another_store, tombstones_of
from alma.transfer.ledger import NO_LEDGER, READ_AT, Entry, Ledger, content_digest, counters_of, shared_version
from alma.transfer.parcels import EVERYWHERE, Conflict, Parcel, Refused, Renamed, TransferReport, versions_of

_CHANGED_AT = (
    "updated_at",
    "timestamp",
    "last_validated",
    "last_verified",
    "last_seen",
    "last_used_at",
    "added_at",
    "created_at",
)
_OWNERS = ("user_id", "project_id", "agent")
_NEVER = datetime.min.replace(tzinfo=UTC)
_DEFAULTS = {setting.key: setting.value for setting in default_settings()}


def last_changed_at(record: Record) -> datetime:
    """When a record was last changed, according to its own fields."""
    if isinstance(record, Setting) and record.updated_by is None and record.value == _DEFAULTS.get(record.key):
        # Default settings are in every store; they never win over a changed value.
        return _NEVER
    if "updated_at" in record.spec.by_name:
        moment: datetime | None = record.values()["updated_at"]
        return moment or _NEVER
    moments = (getattr(record, name) for name in _CHANGED_AT if name in record.spec.by_name)
    return max((moment for moment in moments if moment is not None), default=_NEVER)


def is_active(record: Record) -> bool:
    """Whether a record is in use; a deleted one may arrive, as it brings nothing back."""
    return bool(getattr(record, "is_active", True))


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The decision about a record that exists in both stores."""

    record: Record
    conflict: bool
    taken: str


class Arrival:
    """Stores arriving records; each call is one transaction."""

    def __init__(
        self,
        storage: StorageBackend,
        by: Attribution = ANONYMOUS,
        ledger: Ledger = NO_LEDGER,
        *,
        deleted: bool = False,
    ) -> None:
        self._deleted = deleted
        self.report = TransferReport()
        self._storage = storage
        self._by = by
        self._ledger = ledger
        self._names = Names()

    def take(self, cls: type[Record], parcels: Sequence[Parcel]) -> None:
        """Store records of one kind; records that they reference must have arrived before."""
        gone = self._gone(cls, parcels)
        names, report = self._storage.write(lambda tx: self._take(tx, cls, parcels, gone), self._by)
        self._names = names
        self.report.add(report)

    def take_history(self, rows: Sequence[MemoryVersion]) -> None:
        """Store the history of a deleted record, unless this store has one."""

        def take(tx: Transaction) -> bool:
            where = And(Compare("kind", "eq", rows[0].kind), Compare("memory_id", "eq", rows[0].memory_id))
            if tx.count(MemoryVersion, EVERYWHERE, where):
                return False
            tx.adopt((), rows)
            return True

        taken = self._storage.write(take, self._by)
        (self.report.new if taken else self.report.unchanged)[MemoryVersion.spec.kind] += 1

    def _gone(self, cls: type[Record], parcels: Sequence[Parcel]) -> Mapping[str, Tombstone]:
        """The tombstones of new records that say what was deleted here, by their ids."""
        if self._deleted or cls is Setting:
            return {}
        model = self._storage.embedding_model
        own = {str(v.record_id): v.vector for each in parcels for v in each.vectors if v.part == 0 and v.model == model}
        return DeletedValues(self._storage).among_new([p.record for p in parcels if is_active(p.record)], own)

    def _take(
        self, tx: Transaction, cls: type[Record], parcels: Sequence[Parcel], gone: Mapping[str, Tombstone]
    ) -> tuple[Names, TransferReport]:
        report = TransferReport()
        names = self._names.copy()
        known = names.settled(tx, cls, parcels, report)
        keys = [parcel.record.key for parcel in known]
        entries = self._ledger.entries(tx, cls.spec, known)
        stored = {record.key: record for record in tx.get_many(cls, keys, EVERYWHERE)}
        fitting = _referring(tx, cls.spec, known, report)
        fresh = [parcel for parcel in fitting if parcel.record.key not in stored]
        self._add(tx, cls, fresh, entries, report, gone)
        self._change(tx, cls, [parcel for parcel in fitting if parcel.record.key in stored], stored, entries, report)
        return names, report

    # ------------------------------------------------------------------ new records

    def _add(
        self,
        tx: Transaction,
        cls: type[Record],
        parcels: Sequence[Parcel],
        entries: Mapping[str, Entry],
        report: TransferReport,
        deleted: Mapping[str, Tombstone],
    ) -> None:
        had = _last_versions(tx, cls.spec, [parcel.record.key for parcel in parcels])
        if not self._ledger.undoes_deletions:
            gone = {p.record.key for p in parcels if _deleted_since(had.get(p.record.key), p.record)}
            report.kept[cls.spec.kind] += len(gone)
            parcels = [parcel for parcel in parcels if parcel.record.key not in gone]
        parcels = self._returning(tx, cls, parcels, report, deleted)
        ready = {parcel.record.key: entries[parcel.record.key].counted(None, parcel.record, None) for parcel in parcels}
        # A record deleted here has a history already; its return is added to it.
        adopted = [p for p in parcels if p.versions and p.record.key not in had]
        begun = [ready[p.record.key] for p in parcels if not p.versions or p.record.key in had]
        if begun:
            tx.save(*begun)
        if adopted:
            tx.adopt([ready[p.record.key] for p in adopted], [row for p in adopted for row in p.versions])
        report.vectors += put_vectors(tx, cls, [part for p in parcels for part in p.vectors], report)
        report.new[cls.spec.kind] += len(parcels)
        # Versioned kinds have their history as the common base of later merges.
        telling = cls.spec.versioned or "updated_at" not in cls.spec.by_name
        self._ledger.note(
            tx, cls.spec, {key: (record, record) for key, record in ready.items()}, entries, () if telling else ready
        )

    def _returning(
        self,
        tx: Transaction,
        cls: type[Record],
        parcels: Sequence[Parcel],
        report: TransferReport,
        deleted: Mapping[str, Tombstone],
    ) -> list[Parcel]:
        """The parcels without what was deleted or rejected here; tombstones of another store do not replace these."""
        if cls is Setting:
            foreign = of_another_store(tx, (parcel.record.key for parcel in parcels))
            return [parcel for parcel in parcels if parcel.record.key not in foreign]
        active = [parcel.record for parcel in parcels if is_active(parcel.record)]
        gone = {} if self._deleted else {**deleted, **tombstones_of(tx, active)}
        gone = {key: tombstone for key, tombstone in gone.items() if key in {str(each.key) for each in active}}
        if self._deleted:
            lift_tombstones(tx, active)
        for key, tombstone in gone.items():
            report.refused.append(Refused(cls.spec.kind, key, f"it {tombstone} (in this store); --deleted restores it"))
        return [parcel for parcel in parcels if str(parcel.record.key) not in gone]

    # ------------------------------------------------------------------ existing records

    def _change(
        self,
        tx: Transaction,
        cls: type[Record],
        parcels: Sequence[Parcel],
        stored: Mapping[str, Record],
        entries: Mapping[str, Entry],
        report: TransferReport,
    ) -> None:
        rows = versions_of(tx, cls.spec, [parcel.record.key for parcel in parcels])
        changed: dict[str, Record] = {}
        vectors: list[RecordVector] = []
        noted: dict[str, tuple[Record, Record]] = {}
        for parcel in parcels:
            key, old = parcel.record.key, stored[parcel.record.key]
            if cls is Setting and key == KEY:
                continue
            if (reason := _other_owner(old, parcel.record)) is not None:
                report.refused.append(Refused(cls.spec.kind, key, reason))
                continue
            outcome = self._decided(old, parcel, rows.get(key, ()), entries[key])
            if outcome.conflict:
                report.conflicts.append(_conflict(old, parcel.record, outcome))
            if outcome.record == old:
                (report.unchanged if outcome.taken == "both" else report.kept)[cls.spec.kind] += 1
            else:
                changed[key] = outcome.record
            if outcome.taken != "stored":
                vectors.extend(parcel.vectors)
            noted[key] = (parcel.record, outcome.record)
        if changed:
            tx.save(*changed.values())
            report.changed[cls.spec.kind] += len(changed)
        report.vectors += put_vectors(tx, cls, _missing(tx, cls, vectors, changed, stored), report)
        self._ledger.note(tx, cls.spec, noted, entries, changed)

    def _decided(self, old: Record, parcel: Parcel, rows: Sequence[MemoryVersion], entry: Entry) -> _Outcome:
        """Take the only changed record, or the later one if both changed."""
        new = parcel.record
        shared = shared_version(rows, parcel.versions)
        base = None if shared is None else history.record_of(shared, type(new), new)
        if content_digest(old) == content_digest(new):
            return _Outcome(entry.counted(old, new, base, keep=old), conflict=False, taken="both")
        only_here = entry.is_source_unchanged(new) or (shared is not None and shared == parcel.versions[-1])
        only_there = entry.is_target_unchanged(old) or (
            shared is not None and bool(rows) and shared.version_number == rows[-1].version_number
        )
        if only_here != only_there:
            taken = "stored" if only_here else "arriving"
        else:
            taken = "arriving" if _is_later(parcel, old, rows) else "stored"
        keep = old if taken == "stored" else _with_vector_of(old, new)
        conflict = not (only_here or only_there) and bool(_differing(old, new))
        return _Outcome(entry.counted(old, new, base, keep=keep), conflict, taken)


def put_vectors(tx: Transaction, cls: type[Record], parts: Sequence[RecordVector], report: TransferReport) -> int:
    """Store vectors of any models; vectors of the wrong length are refused."""
    lengths = {**tx.models(), tx.embedding_model: tx.embedding_dim}
    own: dict[str, dict[str, Any]] = defaultdict(dict)
    passages: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    count = 0
    for part in parts:
        dims = lengths.setdefault(part.model, len(part.vector))
        if dims != len(part.vector):
            reason = f"its vector of {part.model} has {len(part.vector)} dimensions, those of the store have {dims}"
            report.refused.append(Refused(cls.spec.kind, part.record_id, reason))
            continue
        count += 1
        if part.part == 0:
            own[part.model][part.record_id] = part.vector
        else:
            passages[part.model][part.record_id].append(part.vector)
    if count and tx.embedding_model not in {*own, *passages}:
        tx.claim_model()
    for model, vectors in own.items():
        tx.put_vectors(cls, vectors, model)
    for model, by_record in passages.items():
        tx.put_passages(cls, by_record, model)
    return count


def _missing(
    tx: Transaction,
    cls: type[Record],
    parts: Sequence[RecordVector],
    changed: Mapping[str, Record],
    stored: Mapping[str, Record],
) -> list[RecordVector]:
    """The vectors that the store lacks, and those of records with a new text."""
    if not parts:
        return []
    reworded = {key for key, record in changed.items() if record.text() != stored[key].text()}
    had = {(part.record_id, part.model) for part in tx.vectors_of(cls, {part.record_id for part in parts})}
    return [part for part in parts if part.record_id in reworded or (part.record_id, part.model) not in had]


def _with_vector_of(old: Record, new: Record) -> Record:
    """The arriving record, with the stored vector if the text is the same."""
    name = new.spec.vector_field
    if name is None or new.text() != old.text():
        return new
    return type(new).trusted({**new.values(), name: getattr(old, name)})


def _is_later(parcel: Parcel, old: Record, rows: Sequence[MemoryVersion]) -> bool:
    """Whether the arriving record was changed later; the stored one wins ties."""
    mine, theirs = last_changed_at(old), last_changed_at(parcel.record)
    if mine == theirs and rows and parcel.versions:
        mine, theirs = rows[-1].created_at, parcel.versions[-1].created_at
    return theirs > mine


def _differing(old: Record, new: Record) -> dict[str, tuple[Any, Any]]:
    """The fields in which two records differ, except counters and times."""
    apart = {*counters_of(old.spec), *READ_AT, *_CHANGED_AT, old.spec.vector_field or ""}
    mine, theirs = to_document(old, without=apart), to_document(new, without=apart)
    return {
        name: (mine.get(name), theirs.get(name)) for name in {**mine, **theirs} if mine.get(name) != theirs.get(name)
    }


def _conflict(old: Record, new: Record, outcome: _Outcome) -> Conflict:
    differing = _differing(old, new)
    return Conflict(
        old.spec.kind,
        old.key,
        {name: mine for name, (mine, _) in differing.items()},
        {name: theirs for name, (_, theirs) in differing.items()},
        outcome.taken,
    )


def _other_owner(old: Record, new: Record) -> str | None:
    for name in _OWNERS:
        if name in old.spec.by_name:
            mine, theirs = getattr(old, name), getattr(new, name)
            if mine is not None and theirs is not None and mine != theirs:
                return f"the store has a record with this id that belongs to {name} {mine!r}, not {theirs!r}"
    return None


def _referring(
    tx: Transaction, spec: RecordSpec, parcels: Sequence[Parcel], report: TransferReport
) -> Sequence[Parcel]:
    """The records whose references exist."""
    lost: dict[str, str] = {}
    for reference in spec.references:
        if not reference.must_exist:
            continue
        target = kind_named(reference.kind)
        wanted = {getattr(parcel.record, reference.field) for parcel in parcels}
        found = {key for (key,) in tx.values(target, [target.spec.key], EVERYWHERE, In(target.spec.key, wanted))}
        for parcel in parcels:
            if getattr(parcel.record, reference.field) not in found:
                lost[parcel.record.key] = f"there is no {reference.kind} {getattr(parcel.record, reference.field)!r}"
    report.refused.extend(Refused(spec.kind, key, reason) for key, reason in lost.items())
    return [parcel for parcel in parcels if parcel.record.key not in lost]


def _last_versions(tx: Transaction, spec: RecordSpec, keys: Sequence[str]) -> dict[str, MemoryVersion]:
    return {key: rows[-1] for key, rows in versions_of(tx, spec, keys).items()}


def _deleted_since(last: MemoryVersion | None, record: Record) -> bool:
    return last is not None and last.change_type is ChangeType.DELETED and last.created_at > last_changed_at(record)


class _TakenBackError(Exception):
    """Rolls back a dry run."""


@contextmanager
def rolled_back(storage: StorageBackend, by: Attribution, *, only_if: bool) -> Iterator[None]:
    """Roll back everything stored inside, if this is a dry run."""
    if not only_if:
        yield
        return
    try:
        with storage.transaction(by):
            yield
            raise _TakenBackError
    except _TakenBackError:
        return


_HOLDS = {"user_id": "user", "created_by": "user", "updated_by": "user", "project_id": "project"}
"""Reference fields to kinds with unique names."""


class Names:
    """The stored ids of arriving ids."""

    def __init__(self, ids: Mapping[str, Mapping[str, str]] | None = None) -> None:
        self._ids = {kind: dict(some) for kind, some in (ids or {}).items()}

    def copy(self) -> Names:
        return Names(self._ids)

    def settled(
        self, tx: Transaction, cls: type[Record], parcels: Sequence[Parcel], report: TransferReport
    ) -> list[Parcel]:
        """The parcels with their ids in this store; conflicting ones are refused."""
        known = [self._readdressed(parcel) for parcel in parcels]
        holders = {
            rule.name: holders_of(tx, cls, rule, [parcel.record for parcel in known]) for rule in cls.spec.unique
        }
        settled: dict[str, Parcel] = {}
        for parcel in known:
            fitting = self._settled(cls.spec, parcel, holders, report)
            if fitting is not None:
                settled.setdefault(fitting.record.key, fitting)
        return list(settled.values())

    def _readdressed(self, parcel: Parcel) -> Parcel:
        record = parcel.record
        changes: dict[str, Any] = {}
        for name, kind in _HOLDS.items():
            if name in record.spec.by_name:
                other = self._ids.get(kind, {}).get(getattr(record, name))
                if other is not None:
                    changes[name] = other
        return replace(parcel, record=record.replace(**changes)) if changes else parcel

    def _settled(
        self,
        spec: RecordSpec,
        parcel: Parcel,
        holders: Mapping[str, Mapping[tuple[Any, ...], str]],
        report: TransferReport,
    ) -> Parcel | None:
        chosen: str | None = None
        for rule in spec.unique:
            holder = holders[rule.name].get(unique_values(rule, parcel.record))
            if holder is None or holder == (chosen or parcel.record.key):
                continue
            if chosen is None:
                parcel, chosen = self._under(spec, parcel, holder, rule, report), holder
            elif all(spec.by_name[name].nullable for name in rule.fields):
                report.refused.append(Refused(spec.kind, parcel.record.key, _taken(rule, parcel.record, holder)))
                parcel = replace(parcel, record=parcel.record.replace(**dict.fromkeys(rule.fields)))
            else:
                report.refused.append(Refused(spec.kind, parcel.record.key, _taken(rule, parcel.record, holder)))
                return None
        return parcel

    def _under(self, spec: RecordSpec, parcel: Parcel, holder: str, rule: Unique, report: TransferReport) -> Parcel:
        record = parcel.record
        self._ids.setdefault(spec.kind, {})[record.key] = holder
        by = {name: getattr(record, name) for name in rule.fields}
        report.renamed.append(Renamed(spec.kind, record.key, holder, by))
        vectors = tuple(RecordVector(holder, part.model, part.part, part.vector) for part in parcel.vectors)
        return Parcel(record.replace(**{spec.key: holder}), vectors, left_as=record.key)


def holders_of(
    tx: Transaction, cls: type[Record], rule: Unique, records: Iterable[Record]
) -> Mapping[tuple[Any, ...], str]:
    """The stored records that hold the arriving unique values."""
    wanted = {values for record in records if (values := unique_values(rule, record))}
    if not wanted:
        return {}
    names = [*rule.fields, cls.spec.key]
    where = In(rule.fields[0], {values[0] for values in wanted})
    rows = tx.values(cls, names, EVERYWHERE, where)
    return {row[:-1]: row[-1] for row in rows if row[:-1] in wanted}


def unique_values(rule: Unique, record: Record) -> tuple[Any, ...]:
    """The unique values of a record; empty if one is missing."""
    values = tuple(getattr(record, name) for name in rule.fields)
    return () if None in values and not rule.nulls_equal else values


def _taken(rule: Unique, record: Record, holder: str) -> str:
    said = ", ".join(f"{name} {getattr(record, name)!r}" for name in rule.fields)
    return f"its {said} belongs to {holder!r} in this store"
