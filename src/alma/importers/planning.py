"""Import planning: decide for each entry of a batch whether it is new, changed, unchanged, quarantined or rejected."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from alma.importers.base import Item, Rejected
from alma.importers.records import is_mention
from alma.model.governance import ArchiveCause, ArchivedRecord
from alma.model.kinds import KINDS, kind_named
from alma.model.memory import Memory
from alma.model.query import And, Compare, In, Order
from alma.model.record import Record, Reference
from alma.model.scope import Scope
from alma.storage.base import Transaction
from alma.storage.bundles import unpack
from alma.storage.tombstones import Tombstone, tombstones_of
from alma.transfer.arrival import holders_of, unique_values

_EVERYWHERE = Scope.everywhere()
_ORDER = {cls.spec.kind: number for number, cls in enumerate(KINDS)}
_OWNERS = ("user_id", "project_id")
# Compared fields besides the text.
_SAID = ("content_json", "tags", "expires_at", "metadata", "summary", "preferences_json", "state_data")


@dataclass(frozen=True, slots=True)
class Entry:
    """An item and its row; `suspected` is the reason to quarantine it, or None."""

    where: str
    item: Item
    suspected: str | None = None


@dataclass(frozen=True, slots=True)
class QuarantinedRecord:
    """A record to quarantine, with its vectors and the reason."""

    record: Record
    vectors: Mapping[str, Any]
    reason: str


@dataclass(slots=True)
class Plan:
    """The records to write, and what happens to the others.

    `quarantined` are the records to quarantine, and `waiting` the dependents of quarantined records, by their key.
    """

    new: dict[tuple[str, str], Record] = field(default_factory=dict)
    changed: dict[tuple[str, str], Record] = field(default_factory=dict)
    unchanged: Counter[str] = field(default_factory=Counter)
    vectors: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    quarantined: dict[tuple[str, str], QuarantinedRecord] = field(default_factory=dict)
    waiting: dict[tuple[str, str], dict[tuple[str, str], Record]] = field(default_factory=dict)
    rejected: list[Rejected] = field(default_factory=list)
    deleted: Counter[str] = field(default_factory=Counter)
    met: set[tuple[str, str]] = field(default_factory=set)
    mentioned: set[int] = field(default_factory=set)

    def records(self) -> list[Record]:
        """All records to write, referenced ones first."""
        return sorted((*self.new.values(), *self.changed.values()), key=lambda record: _ORDER[record.spec.kind])


class Planner:
    """Plans the batches of one import.

    It remembers the ids of the run (as hashes), to distinguish a duplicate row from a row of an earlier import.
    In a dry run it also remembers what would be stored by now.
    """

    def __init__(self, *, dry_run: bool, prepare: Callable[[Record], Record] | None) -> None:
        self._dry_run = dry_run
        self._prepare = prepare
        self._seen: set[int] = set()
        self._mentioned: set[int] = set()
        self._quarantined: set[int] = set()
        self._taken: dict[tuple[str, tuple[Any, ...]], str] = {}

    def note(self, plan: Plan, batch: Sequence[Entry]) -> None:
        """Remember a batch that was stored, or would have been."""
        self._seen.update(_number(entry.item.record) for entry in batch if not entry.item.mention)
        self._mentioned |= plan.mentioned
        if self._dry_run:
            self._seen.update(map(_number, plan.new.values()))
            self._quarantined.update(hash(key) for key in plan.quarantined)
            for record in plan.new.values():
                self._taken.update(dict.fromkeys(_unique(record), record.key))

    def planned(self, tx: Transaction, batch: Sequence[Entry], deleted: Mapping[str, Tombstone]) -> Plan:
        """The plan of a batch, given the stored records; the `deleted` ones stay away."""
        plan = Plan()
        known = _stored_records(tx, batch)
        taken = _taken(tx, batch)
        taken.update(self._taken)
        ends = _ends(tx, batch)
        away = quarantined_records(tx, _may_be_away(batch))
        gone = {**deleted, **tombstones_of(tx, [entry.item.record for entry in batch])}
        for entry in batch:
            if (tombstone := gone.get(str(entry.item.record.key))) is not None:
                plan.deleted[f"{entry.item.record.spec.kind} that {tombstone} here"] += 1
                continue
            if not self._leads_somewhere(entry, known, ends, away, plan):
                continue
            for record in self._fitting(entry, known, taken, plan):
                if not entry.item.mention:
                    self._decide(entry, record, known, away, plan)
                    plan.met.add((record.spec.kind, record.key))
                elif _number(record) not in self._mentioned and _number(record) not in plan.mentioned:
                    # A record that several rows mention is planned once.
                    self._decide(entry, record, known, away, plan)
                    plan.mentioned.add(_number(record))
        return plan

    def _fitting(
        self,
        entry: Entry,
        known: Mapping[tuple[str, str], Record],
        taken: dict[tuple[str, tuple[Any, ...]], str],
        plan: Plan,
    ) -> Iterator[Record]:
        """The records to store for an entry, with free unique values."""
        record = entry.item.record
        key = (record.spec.kind, record.key)
        if key in known and type(known[key]).spec.unique:
            # Imported before, under the unique values that were free then.
            yield record if not entry.item.instead else record.replace(**_own_unique(known[key]))
            return
        values = _unique(record)
        if any(taken.get(value, record.key) != record.key for value in values):
            if not entry.item.instead:
                plan.rejected.append(Rejected(entry.where, record.key, f"its {_spelled(record)} is taken already"))
            yield from entry.item.instead
            return
        taken.update(dict.fromkeys(values, record.key))
        yield record

    def _decide(
        self,
        entry: Entry,
        record: Record,
        known: dict[tuple[str, str], Record],
        away: Mapping[tuple[str, str], ArchivedRecord],
        plan: Plan,
    ) -> None:
        key = (record.spec.kind, record.key)
        old = known.get(key)
        if entry.suspected is not None or entry.item.mention:
            # A quarantined record counts as stored.
            old = _quarantined(key, away, plan) or old
        if old is None:
            if self._dry_run and _number(record) in self._seen:
                plan.unchanged[record.spec.kind] += 1
                return
            self._take(entry, record, key, known, plan)
            return
        reason = None if entry.item.mention else _clash(old, record)
        if reason is not None:
            plan.rejected.append(Rejected(entry.where, record.key, reason))
        elif self._is_later(entry.item, old):
            self._take(entry, record, key, known, plan)
        elif not entry.item.mention and self._repeats(record, old, key, plan):
            reason = "an earlier row with the same id says something else"
            plan.rejected.append(Rejected(entry.where, record.key, reason))
        else:
            plan.unchanged[record.spec.kind] += 1

    def _take(
        self, entry: Entry, record: Record, key: tuple[str, str], known: dict[tuple[str, str], Record], plan: Plan
    ) -> None:
        ready = record if self._prepare is None else self._prepare(record)
        vectors = entry.item.vectors if record is entry.item.record else {}
        if entry.suspected is not None:
            plan.quarantined[key] = QuarantinedRecord(ready, vectors, entry.suspected)
            return
        is_new = key in plan.new or key not in known
        (plan.new if is_new else plan.changed)[key] = known[key] = ready
        if vectors:
            plan.vectors[key] = vectors

    def _is_later(self, item: Item, old: Record) -> bool:
        if item.mention:
            return False
        if is_mention(old):
            return True
        stored_at: datetime | None = old.values().get("updated_at")
        return item.changed_at is not None and stored_at is not None and item.changed_at > stored_at

    def _repeats(self, record: Record, old: Record, key: tuple[str, str], plan: Plan) -> bool:
        if key not in plan.met and _number(record) not in self._seen:
            return False
        return _says_else(old, record if self._prepare is None else self._prepare(record))

    def _leads_somewhere(
        self,
        entry: Entry,
        known: Mapping[tuple[str, str], Record],
        ends: set[tuple[str, str]],
        away: Mapping[tuple[str, str], ArchivedRecord],
        plan: Plan,
    ) -> bool:
        record = entry.item.record
        for reference in _required(record):
            end = (reference.kind, getattr(record, reference.field))
            if end in known or end in ends:
                continue
            if end in plan.quarantined or end in away or hash(end) in self._quarantined:
                _let_wait(record, end, away.get(end), plan)
                return False
            if self._dry_run and hash(end) in self._seen:
                continue
            shown = record.values().get("metadata", {}).get(reference.field.partition("_")[0], end[1])
            plan.rejected.append(Rejected(entry.where, record.key, f"there is no {reference.kind} for {shown!r}"))
            return False
        return True


def quarantined_records(tx: Transaction, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], ArchivedRecord]:
    """The newest quarantined copy of each of these records."""
    ids = {record_id for _, record_id in keys}
    if not ids:
        return {}
    where = And(In("record_id", ids), Compare("cause", "eq", ArchiveCause.QUARANTINED))
    rows = tx.find(ArchivedRecord, _EVERYWHERE, where, (Order("archived_at", "asc"),))
    return {(row.kind, row.record_id): row for row in rows}


def _may_be_away(batch: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    """Records of a batch, and records that it references, which may be in quarantine."""
    for entry in batch:
        record = entry.item.record
        if entry.suspected is not None or entry.item.mention:
            yield record.spec.kind, record.key
        yield from ((reference.kind, getattr(record, reference.field)) for reference in _required(record))


def _quarantined(key: tuple[str, str], away: Mapping[tuple[str, str], ArchivedRecord], plan: Plan) -> Record | None:
    if key in plan.quarantined:
        return plan.quarantined[key].record
    return unpack(away[key]).record if key in away else None


def _let_wait(record: Record, end: tuple[str, str], archived: ArchivedRecord | None, plan: Plan) -> None:
    """Keep a record with the quarantined one that it depends on."""
    key = (record.spec.kind, record.key)
    waits = () if archived is None else unpack(archived).dependents
    if any((each.spec.kind, each.key) == key for each in waits) or key in plan.waiting.get(end, {}):
        plan.unchanged[record.spec.kind] += 1
    else:
        plan.waiting.setdefault(end, {})[key] = record


def _stored_records(tx: Transaction, batch: Sequence[Entry]) -> dict[tuple[str, str], Record]:
    """The stored records among the batch's records and their alternatives."""
    keys: dict[type[Record], list[str]] = defaultdict(list)
    for entry in batch:
        for record in (entry.item.record, *entry.item.instead):
            keys[type(record)].append(record.key)
    return {
        (cls.spec.kind, record.key): record
        for cls, some in keys.items()
        for record in tx.get_many(cls, some, _EVERYWHERE)
    }


def _required(record: Record) -> Iterator[Reference]:
    return (reference for reference in record.spec.references if reference.must_exist)


def _ends(tx: Transaction, batch: Sequence[Entry]) -> set[tuple[str, str]]:
    """The stored records that the batch references."""
    wanted: dict[str, set[str]] = defaultdict(set)
    for entry in batch:
        for reference in _required(entry.item.record):
            wanted[reference.kind].add(getattr(entry.item.record, reference.field))
    found: set[tuple[str, str]] = set()
    for kind, keys in wanted.items():
        cls = kind_named(kind)
        found.update((kind, key) for (key,) in tx.values(cls, [cls.spec.key], _EVERYWHERE, In(cls.spec.key, keys)))
    return found


def _taken(tx: Transaction, batch: Sequence[Entry]) -> dict[tuple[str, tuple[Any, ...]], str]:
    """The holders of unique values among the stored records."""
    found: dict[tuple[str, tuple[Any, ...]], str] = {}
    classes = {type(entry.item.record) for entry in batch if entry.item.record.spec.unique}
    for cls in classes:
        records = [entry.item.record for entry in batch if type(entry.item.record) is cls]
        for rule in cls.spec.unique:
            held = holders_of(tx, cls, rule, records)
            found.update({(rule.name, values): key for values, key in held.items()})
    return found


def _unique(record: Record) -> list[tuple[str, tuple[Any, ...]]]:
    found = ((rule.name, unique_values(rule, record)) for rule in record.spec.unique)
    return [(name, values) for name, values in found if values]


def _own_unique(stored: Record) -> dict[str, Any]:
    return {name: getattr(stored, name) for rule in stored.spec.unique for name in rule.fields}


def _spelled(record: Record) -> str:
    names = dict.fromkeys(name for rule in record.spec.unique for name in rule.fields)
    return ", ".join(f"{name} {getattr(record, name)!r}" for name in names if getattr(record, name) is not None)


def _clash(old: Record, new: Record) -> str | None:
    """Why the stored record with this id is a different one, or None."""
    if isinstance(old, Memory) and isinstance(new, Memory) and old.external_id != new.external_id:
        return "its id is taken by a memory that did not come from this source"
    for name in _OWNERS:
        mine, theirs = old.values().get(name), new.values().get(name)
        if mine is not None and theirs is not None and mine != theirs:
            return f"its id is taken by a {old.spec.kind} of {name} {mine!r}"
    return None


def _says_else(old: Record, new: Record) -> bool:
    """Whether the new record contradicts the stored one; missing values do not count."""
    if new.text() != old.text():
        return True
    mine, theirs = old.values(), new.values()
    return any(theirs[name] and theirs[name] != mine[name] for name in _SAID if name in theirs)


def _number(record: Record) -> int:
    return hash((record.spec.kind, record.key))
