"""The merge ledger: each store's share of counters, and the state of records at the last merge."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from alma.clock import new_id
from alma.model.fields import FieldType
from alma.model.governance import MergeMark, Setting
from alma.model.memory import MemoryVersion
from alma.model.query import And, Compare, In
from alma.model.record import Record, RecordSpec
from alma.model.scope import Scope
from alma.storage.base import StorageBackend, Transaction
from alma.transfer.parcels import STORE_ID, Parcel, digest

_EVERYWHERE = Scope.everywhere()


def store_id(storage: StorageBackend, *, make: bool = True) -> str:
    """The id of a store in merges, created on first use; a temporary one if it must not be stored."""
    known = storage.get(Setting, STORE_ID, _EVERYWHERE)
    if known is not None or not make:
        return new_id() if known is None else known.value

    def name(tx: Transaction) -> str:
        there = tx.get(Setting, STORE_ID, _EVERYWHERE)
        if there is None:
            there = Setting(key=STORE_ID, value=new_id(), description="What other stores call this one in merges")
            tx.save(there)
        return there.value

    return storage.write(name)


def rename_store(storage: StorageBackend) -> str:
    """Give a copied store a new id."""
    named = Setting(key=STORE_ID, value=new_id(), description="What other stores call this one in merges")
    storage.save(named)
    return named.value


class Entry:
    """Nothing is known about the record: the counters of the stored record are used (import)."""

    def counted(self, old: Record | None, new: Record, base: Record | None, keep: Record | None = None) -> Record:
        """The record to store, with its counters."""
        return new if keep is None else keep

    def is_source_unchanged(self, new: Record) -> bool:
        return False

    def is_target_unchanged(self, old: Record) -> bool:
        return False


class Ledger:
    """No ledger (import): arriving records are stored even if they were deleted here."""

    undoes_deletions = True

    def entries(self, tx: Transaction, spec: RecordSpec, parcels: Sequence[Parcel]) -> Mapping[str, Entry]:
        """The ledger entries of these records, by their id in the target store."""
        return {parcel.record.key: _PLAIN for parcel in parcels}

    def note(
        self,
        tx: Transaction,
        spec: RecordSpec,
        merged: Mapping[str, tuple[Record, Record]],
        entries: Mapping[str, Entry],
        changed: Collection[str],
    ) -> None:
        """Record the state of merged records; `changed` are those without a common history."""


_PLAIN = Entry()
NO_LEDGER = Ledger()


@dataclass(slots=True)
class MergeEntry(Entry):
    """The entries of both stores for one record."""

    target_id: str
    source_id: str
    of_target: Shares
    of_source: Shares
    mark: MergeMark | None
    shares: Shares | None = None

    def counted(self, old: Record | None, new: Record, base: Record | None, keep: Record | None = None) -> Record:
        result = new if keep is None else keep
        if not counters_of(new.spec):
            return result
        if base is None and old is not None and _same_birth(old, new):
            base = _lower(old, new)
        sums = join_counters(self.target_id, self.source_id, old, new, self.of_target, self.of_source, base)
        self.shares = sums.shares
        totals = {name: _number(result.spec, name, value) for name, value in sums.totals.items()}
        if all(getattr(result, name) == value for name, value in totals.items()):
            return result
        return result.replace(**totals)

    def is_source_unchanged(self, new: Record) -> bool:
        return self.mark is not None and self.mark.source_digest == content_digest(new)

    def is_target_unchanged(self, old: Record) -> bool:
        return self.mark is not None and self.mark.result_digest == content_digest(old)


class MergeLedger(Ledger):
    """The ledger of a merge; records deleted here later stay deleted."""

    undoes_deletions = False

    def __init__(self, target_id: str, source: StorageBackend, source_id: str) -> None:
        self._target_id = target_id
        self._source = source
        self._source_id = source_id

    def entries(self, tx: Transaction, spec: RecordSpec, parcels: Sequence[Parcel]) -> Mapping[str, Entry]:
        left_as = {parcel.record.key: parcel.left_as or parcel.record.key for parcel in parcels}
        mine = marks_of(tx, spec.kind, list(left_as))
        with self._source.snapshot() as there:
            theirs = marks_of(there, spec.kind, list(left_as.values()))
        return {
            key: MergeEntry(
                self._target_id,
                self._source_id,
                mine.shares(key),
                theirs.shares(there_key),
                mine.of(key).get(self._source_id),
            )
            for key, there_key in left_as.items()
        }

    def note(
        self,
        tx: Transaction,
        spec: RecordSpec,
        merged: Mapping[str, tuple[Record, Record]],
        entries: Mapping[str, Entry],
        changed: Collection[str],
    ) -> None:
        marks: list[MergeMark] = []
        for key, (arrived, stored) in merged.items():
            entry = entries[key]
            assert isinstance(entry, MergeEntry)
            marks.extend(self._marks(spec, key, entry, arrived, stored, key in changed))
        if marks:
            tx.save(*marks)

    def _marks(
        self, spec: RecordSpec, key: str, entry: MergeEntry, arrived: Record, stored: Record, changed: bool
    ) -> list[MergeMark]:
        """Only new marks: a merge without changes writes nothing."""
        shares: dict[str, dict[str, float]] = dict(entry.shares or {})
        said, result = content_digest(arrived), content_digest(stored)
        if changed or said != result or entry.mark is not None:
            shares.setdefault(self._source_id, {})
        found: list[MergeMark] = []
        for origin, share in shares.items():
            mine = origin == self._source_id
            facts: dict[str, Any] = {
                "counters": share,
                "source_digest": said if mine else None,
                "result_digest": result if mine else None,
            }
            known = entry.mark if mine else None
            if known is not None and all(getattr(known, name) == value for name, value in facts.items()):
                continue
            if not mine and entry.of_target.get(origin) == share:
                continue
            found.append(
                MergeMark(id=mark_id(spec.kind, key, origin), kind=spec.kind, record_id=key, origin=origin, **facts)
            )
        return found


def _same_birth(old: Record, new: Record) -> bool:
    """Whether two records with one id were created by the same write, as in a copied store."""
    born = getattr(old, "created_at", None)
    return born is not None and not old.spec.versioned and born == getattr(new, "created_at", None)


def _lower(old: Record, new: Record) -> Record:
    """For a kind without history: the lower counters, as the state when the stores were one."""
    low = {name: min(getattr(old, name) or 0, getattr(new, name) or 0) for name in counters_of(old.spec)}
    return old.replace(**low)


def _number(spec: RecordSpec, name: str, value: float) -> float:
    return int(value) if spec.by_name[name].type is FieldType.INTEGER else value


Shares = dict[str, dict[str, float]]
"""Each store's share of the counters."""
_NUMBERS = (FieldType.INTEGER, FieldType.FLOAT)
READ_AT = ("last_accessed_at", "last_active_at")
"""Fields that reading changes; not a change of content."""


@cache
def counters_of(spec: RecordSpec) -> tuple[str, ...]:
    """The counter fields: `*_count` and `time_spent_ms`."""
    return tuple(
        each.name
        for each in spec.stored
        if each.type in _NUMBERS and (each.name.endswith("_count") or each.name == "time_spent_ms")
    )


def content_digest(record: Record) -> str:
    """A hash of a record's content, without counters and access times."""
    return digest(record, without={*counters_of(record.spec), *READ_AT})


@dataclass(frozen=True, slots=True)
class Joined:
    """The joined counters of a record, and the shares to remember."""

    totals: Mapping[str, float]
    shares: Shares


@dataclass(frozen=True, slots=True)
class Marks:
    """The merge marks of records, by record and store."""

    by_record: Mapping[str, Mapping[str, MergeMark]] = field(default_factory=dict)

    def of(self, key: str) -> Mapping[str, MergeMark]:
        return self.by_record.get(key, {})

    def shares(self, key: str) -> Shares:
        return {origin: dict(mark.counters) for origin, mark in self.of(key).items()}


def marks_of(tx: Transaction, kind: str, keys: Sequence[str]) -> Marks:
    """The merge marks of these records."""
    found: dict[str, dict[str, MergeMark]] = defaultdict(dict)
    where = And(In("record_id", keys), Compare("kind", "eq", kind))
    for mark in tx.find(MergeMark, _EVERYWHERE, where):
        found[mark.record_id][mark.origin] = mark
    return Marks(found)


def mark_id(kind: str, key: str, origin: str) -> str:
    """The id of a record's mark about another store."""
    return hashlib.sha256("\x00".join((kind, key, origin)).encode()).hexdigest()[:32]


def join_counters(
    target_id: str,
    source_id: str,
    old: Record | None,
    new: Record,
    of_target: Shares,
    of_source: Shares,
    base: Record | None,
) -> Joined:
    """Join the counters of a record from two stores.

    Each store's share only grows, so the larger of two values is the later one, in any order and number of merges.
    `base` is the record at the time when the stores were one, if known: this part counts once.
    """
    names = counters_of(new.spec)
    known = _with_own(source_id, new, of_source, names)
    mine = _with_own(target_id, old, of_target, names) if old is not None else {}
    if old is not None and base is not None and source_id not in of_target and target_id not in of_source:
        mine[target_id] = {name: max(0, mine[target_id][name] - (getattr(base, name) or 0)) for name in names}
    shares: Shares = {
        origin: {name: max(_share(mine, origin, name), _share(known, origin, name)) for name in names}
        for origin in {*mine, *known}
    }
    totals = {name: sum(share[name] for share in shares.values()) for name in names}
    others = {origin: _nonzero(share) for origin, share in shares.items() if origin != target_id}
    return Joined(totals, {origin: share for origin, share in others.items() if share})


def shared_version(mine: Sequence[MemoryVersion], theirs: Sequence[MemoryVersion]) -> MemoryVersion | None:
    """The newest version that both histories have, which is the common base of the two stores."""
    known = {_identity(row) for row in mine}
    return next((row for row in reversed(theirs) if _identity(row) in known), None)


def _identity(row: MemoryVersion) -> tuple[int, str, str]:
    return row.version_number, str(row.change_type), row.created_at.isoformat()


def _with_own(store_id: str, record: Record, marks: Shares, names: Iterable[str]) -> Shares:
    """All shares; a store's own share is the total minus the others."""
    shares = {origin: share for origin, share in marks.items() if origin != store_id}
    own = {
        name: max(0, (getattr(record, name) or 0) - sum(share.get(name, 0) for share in shares.values()))
        for name in names
    }
    return {**shares, store_id: own}


def _share(shares: Shares, origin: str, name: str) -> float:
    return shares.get(origin, {}).get(name, 0)


def _nonzero(share: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in share.items() if value}
