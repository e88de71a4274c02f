"""Export parcels (a record with its vectors and its history) and the report of a transfer."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from alma.model.fields import JsonObject
from alma.model.governance import ApiKey, AuditEvent, KeptAnswer, Setting, StoredWebhook
from alma.model.kinds import KINDS, kind_named
from alma.model.memory import ChangeType, MemoryVersion
from alma.model.query import EVERYTHING, And, Compare, Cursor, In, Order, Predicate
from alma.model.record import Record, RecordSpec
from alma.model.scope import Scope
from alma.storage import history
from alma.storage.base import RecordVector, Transaction
from alma.storage.document import to_document

PAGE = 500
EVERYWHERE = Scope.everywhere()
STORE_ID = "store_id"
# The store's own id is not exported, or the other store would take itself for this one.
_STAYS = Compare("key", "ne", STORE_ID)
_OWNERS = {"user_id": "user", "project_id": "project", "session_id": "session"}


@dataclass(frozen=True, slots=True)
class Parcel:
    """A record without its vector field, its vectors of all models, and its versions, oldest first.

    `left_as` is its id in the source store, if that differs.
    """

    record: Record
    vectors: tuple[RecordVector, ...] = ()
    versions: tuple[MemoryVersion, ...] = ()
    left_as: str | None = None


def digest(record: Record, without: Iterable[str] = ()) -> str:
    """A hash that is equal for records with equal content, without some fields."""
    document = to_document(record, without={*without, *_vector_fields(record.spec)})
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:32]


def bare(record: Record) -> Record:
    """The record without its vector, which is exported separately."""
    name = record.spec.vector_field
    if name is None or getattr(record, name) is None:
        return record
    return type(record).trusted({**record.values(), name: None})


def pages(
    tx: Transaction, cls: type[Record], scope: Scope, *, history: bool = True, vectors: bool = True
) -> Iterator[list[Parcel]]:
    """The records of one kind in the scope, by id, in pages."""
    where = belonging(cls.spec, scope)
    if where is None:
        return
    after: Cursor | None = None
    while True:
        page = tx.find(cls, EVERYWHERE, where, limit=PAGE, after=after)
        kept = [record for record in page if _is_whole(tx, record, scope)]
        if kept:
            yield _packed(tx, cls, kept, scope, history=history, vectors=vectors)
        if len(page) < PAGE:
            return
        after = Cursor.after(page[-1])


def count(tx: Transaction, cls: type[Record], scope: Scope) -> int:
    """The number of records of one kind in the scope."""
    where = belonging(cls.spec, scope)
    if where is None:
        return 0
    if scope.unlimited or not _hangs_on_others(cls.spec, scope):
        return tx.count(cls, EVERYWHERE, where)
    return sum(len(page) for page in pages(tx, cls, scope, history=False, vectors=False))


def histories_of_the_deleted(tx: Transaction, scope: Scope) -> Iterator[list[MemoryVersion]]:
    """The histories of deleted records."""
    deleted = Compare("change_type", "eq", str(ChangeType.DELETED))
    after: Cursor | None = None
    while True:
        page = tx.find(MemoryVersion, EVERYWHERE, deleted, limit=PAGE, after=after)
        for kind, ended in _by_kind(page).items():
            yield from _histories_that_ended(tx, kind_named(kind), ended, scope)
        if len(page) < PAGE:
            return
        after = Cursor.after(page[-1])


def _histories_that_ended(
    tx: Transaction, cls: type[Record], ended: Sequence[MemoryVersion], scope: Scope
) -> Iterator[list[MemoryVersion]]:
    rows = versions_of(tx, cls.spec, [row.memory_id for row in ended])
    for row in ended:
        # A record that was deleted several times has one history.
        if rows[row.memory_id][-1].id == row.id:
            inside = _seen(cls, rows[row.memory_id], None, scope)
            if inside:
                yield inside


def audit_pages(tx: Transaction) -> Iterator[list[AuditEvent]]:
    """The whole audit log in order."""
    after: Cursor | None = None
    while page := tx.find(AuditEvent, EVERYWHERE, limit=PAGE, after=after):
        yield page
        after = Cursor.after(page[-1])


# API keys and stored responses belong to one store.
STAYING: tuple[type[Record], ...] = (ApiKey, KeptAnswer, StoredWebhook)
TRAVELLING: tuple[type[Record], ...] = tuple(cls for cls in KINDS if not cls.spec.append_only and cls not in STAYING)


# ---------------------------------------------------------------------- records of a scope


def belonging(spec: RecordSpec, scope: Scope) -> Predicate | None:
    """The predicate for records of a kind in a scope; None if no record of the kind can be.

    A kind belongs to a scope by its own fields, users, projects and sessions by being the named one, and dependent
    kinds such as relationships by the records they reference (see `_is_whole`).
    """
    if scope.unlimited:
        return _STAYS if spec.kind == Setting.spec.kind else EVERYTHING
    parts: list[Predicate] = []
    for name in ("user_id", "project_id", "session_id", "agent"):
        value = getattr(scope, name)
        if value is None:
            continue
        if spec.kind == _OWNERS.get(name):
            parts.append(Compare(spec.key, "eq", value))
        elif name in spec.by_name:
            parts.append(In(name, value) if isinstance(value, tuple) else Compare(name, "eq", value))
        elif spec.references:
            return EVERYTHING
        else:
            return None
    return And(*parts)


def _hangs_on_others(spec: RecordSpec, scope: Scope) -> bool:
    named = (name for name in (*_OWNERS, "agent") if getattr(scope, name) is not None)
    return any(name not in spec.by_name and spec.kind != _OWNERS.get(name) for name in named)


def _is_whole(tx: Transaction, record: Record, scope: Scope) -> bool:
    """Whether all records that a record depends on are in the scope as well."""
    spec = record.spec
    if scope.unlimited or not _hangs_on_others(spec, scope):
        return True
    ends = [(kind_named(each.kind), getattr(record, each.field)) for each in spec.references]
    named = [(cls, key) for cls, key in ends if key is not None]
    return bool(named) and all(_belongs(tx, cls, key, scope) for cls, key in named)


def _belongs(tx: Transaction, cls: type[Record], key: str, scope: Scope) -> bool:
    where = belonging(cls.spec, scope)
    return where is not None and tx.count(cls, EVERYWHERE, And(Compare(cls.spec.key, "eq", key), where)) > 0


# ---------------------------------------------------------------------- data of a record


def _packed(
    tx: Transaction, cls: type[Record], records: Sequence[Record], scope: Scope, *, history: bool, vectors: bool
) -> list[Parcel]:
    keys = [record.key for record in records]
    parts: dict[str, list[RecordVector]] = defaultdict(list)
    for part in tx.vectors_of(cls, keys) if vectors and cls.spec.embeds else ():
        parts[part.record_id].append(part)
    rows = versions_of(tx, cls.spec, keys) if history else {}
    return [
        Parcel(
            bare(record),
            tuple(parts.get(record.key, ())),
            tuple(_seen(cls, rows.get(record.key, []), record, scope)),
        )
        for record in records
    ]


def versions_of(tx: Transaction, spec: RecordSpec, keys: Sequence[str]) -> Mapping[str, list[MemoryVersion]]:
    """The versions of records, oldest first; none for kinds without history."""
    found: dict[str, list[MemoryVersion]] = defaultdict(list)
    if not spec.versioned or not keys:
        return found
    where = And(Compare("kind", "eq", spec.kind), In("memory_id", keys))
    for row in tx.find(MemoryVersion, EVERYWHERE, where, order=(Order("version_number"),)):
        found[row.memory_id].append(row)
    return found


def _seen(
    cls: type[Record], rows: Sequence[MemoryVersion], current: Record | None, scope: Scope
) -> list[MemoryVersion]:
    """The versions of a record that were in the scope."""
    if scope.unlimited:
        return list(rows)
    where = belonging(cls.spec, scope)
    if where is None:
        return []
    inside = {row.version_number for row in history.within(history.filled(rows, current), cls, where)}
    return [row for row in rows if row.version_number in inside]


def _by_kind(rows: Iterable[MemoryVersion]) -> dict[str, list[MemoryVersion]]:
    found: dict[str, list[MemoryVersion]] = defaultdict(list)
    for row in rows:
        found[row.kind].append(row)
    return found


def _vector_fields(spec: RecordSpec) -> tuple[str, ...]:
    return () if spec.vector_field is None else (spec.vector_field,)


OnProgress = Callable[[int, int], object]
"""Progress callback: records done, and the total."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """A record that both stores changed, with both contents and which one was taken."""

    kind: str
    id: str
    stored: JsonObject
    arriving: JsonObject
    taken: str


@dataclass(frozen=True, slots=True)
class Renamed:
    """A record identified with a stored one by a unique name."""

    kind: str
    id: str
    stored_id: str
    by: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Refused:
    """A record, or a vector of it, that was refused, and why."""

    kind: str
    id: str
    reason: str


@dataclass(slots=True)
class TransferReport:
    """Counts of new, changed, unchanged and kept records by kind, and lists of special cases."""

    new: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)
    unchanged: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    vectors: int = 0
    conflicts: list[Conflict] = field(default_factory=list)
    renamed: list[Renamed] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    dry_run: bool = False

    def add(self, other: TransferReport) -> None:
        """Add the report of a batch."""
        for name in ("new", "changed", "unchanged", "kept"):
            getattr(self, name).update(+getattr(other, name))
        self.vectors += other.vectors
        for name in ("conflicts", "renamed", "refused"):
            getattr(self, name).extend(getattr(other, name))

    def to_dict(self) -> JsonObject:
        """The report as JSON."""
        counts = {name: dict(getattr(self, name)) for name in ("new", "changed", "unchanged", "kept")}
        lists = {name: [asdict(each) for each in getattr(self, name)] for name in ("conflicts", "renamed", "refused")}
        return {"dry_run": self.dry_run, **counts, "vectors": self.vectors, **lists}
