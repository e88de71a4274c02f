"""Counters of records that two stores kept apart: each store's share is remembered, so nothing is added twice."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from alma.model.fields import FieldType
from alma.model.governance import MergeMark
from alma.model.memory import MemoryVersion
from alma.model.query import And, Compare, In
from alma.model.record import Record, RecordSpec
from alma.model.scope import Scope
from alma.storage.base import Transaction
from alma.transfer.parcels import digest

Shares = dict[str, dict[str, float]]
"""For each store, how much of each counter came from it."""

_EVERYWHERE = Scope.everywhere()
_NUMBERS = (FieldType.INTEGER, FieldType.FLOAT)
READ_AT = ("last_accessed_at", "last_active_at")
"""Reading changes these; that is no change of what a record says."""


@cache
def counters_of(spec: RecordSpec) -> tuple[str, ...]:
    """The fields that count how often or how long something happened: `*_count` and `time_spent_ms`."""
    return tuple(
        each.name
        for each in spec.stored
        if each.type in _NUMBERS and (each.name.endswith("_count") or each.name == "time_spent_ms")
    )


def content_digest(record: Record) -> str:
    """What a record says, apart from how often and when it was used."""
    return digest(record, without={*counters_of(record.spec), *READ_AT})


@dataclass(frozen=True, slots=True)
class Joined:
    """What the counters of a record add up to, and what to remember of where they came from."""

    totals: Mapping[str, float]
    shares: Shares


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks of some records in one store, by record and by the store that they are about."""

    by_record: Mapping[str, Mapping[str, MergeMark]] = field(default_factory=dict)

    def of(self, key: str) -> Mapping[str, MergeMark]:
        return self.by_record.get(key, {})

    def shares(self, key: str) -> Shares:
        return {origin: dict(mark.counters) for origin, mark in self.of(key).items()}


def marks_of(tx: Transaction, kind: str, keys: Sequence[str]) -> Marks:
    """What a store remembers of these records' merges."""
    found: dict[str, dict[str, MergeMark]] = defaultdict(dict)
    where = And(In("record_id", keys), Compare("kind", "eq", kind))
    for mark in tx.find(MergeMark, _EVERYWHERE, where):
        found[mark.record_id][mark.origin] = mark
    return Marks(found)


def mark_id(kind: str, key: str, origin: str) -> str:
    """The id of the one mark that a record has about another store."""
    return hashlib.sha256("\x00".join((kind, key, origin)).encode()).hexdigest()[:32]


def joined(
    target_id: str,
    source_id: str,
    old: Record | None,
    new: Record,
    of_target: Shares,
    of_source: Shares,
    base: Record | None,
) -> Joined:
    """The counters of a record that stands in both stores, or so far in the source alone.

    Every store's share only grows, so the larger of two statements about it is the later one, in whatever order and how
    often stores are merged. `base` is what the record was when the two stores last were one, where that is known: that
    part is in both and counts once.
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
    """The newest version that both histories of a record have, as theirs has it: when the two stores were one."""
    known = {_identity(row) for row in mine}
    return next((row for row in reversed(theirs) if _identity(row) in known), None)


def _identity(row: MemoryVersion) -> tuple[int, str, str]:
    return row.version_number, str(row.change_type), row.created_at.isoformat()


def _with_own(store_id: str, record: Record, marks: Shares, names: Iterable[str]) -> Shares:
    """Every store's share, the own one being what the others leave of the total."""
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
