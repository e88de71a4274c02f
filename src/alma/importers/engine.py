"""Importing: rows become records in batches, each stored at once, so that a run that was killed is just repeated."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any

from alma.embeddings.base import EmbeddingProvider, Encoded
from alma.errors import ValidationError
from alma.importers.base import (
    Importer,
    ImportOptions,
    ImportReport,
    Item,
    LeftOut,
    Rejected,
    RowRefused,
)
from alma.importers.said import is_mention
from alma.importers.sources import Source
from alma.model.governance import Attribution
from alma.model.kinds import KINDS, kind_named
from alma.model.memory import Memory
from alma.model.query import In
from alma.model.record import Record, Reference
from alma.model.scope import Scope
from alma.storage.base import StorageBackend, Transaction, VectorPart
from alma.transfer.arrival import put_vectors
from alma.transfer.names import holders_of, unique_values
from alma.transfer.report import TransferReport

_EVERYWHERE = Scope.everywhere()
_ORDER = {cls.spec.kind: number for number, cls in enumerate(KINDS)}
_OWNERS = ("user_id", "project_id")
DEFAULT_BATCH = 1000


@dataclass(frozen=True, slots=True)
class ImportProgress:
    """How many rows were read, and how much of the source that is, from 0 to 1."""

    rows: int
    fraction: float


OnImportProgress = Callable[[ImportProgress], object]


@dataclass(frozen=True, slots=True)
class _Entry:
    """An item and the row it came from."""

    where: str
    item: Item


@dataclass(slots=True)
class _Plan:
    """What a batch comes to: records to write, and what is said about the others."""

    new: dict[tuple[str, str], Record] = field(default_factory=dict)
    changed: dict[tuple[str, str], Record] = field(default_factory=dict)
    unchanged: Counter[str] = field(default_factory=Counter)
    vectors: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    rejected: list[Rejected] = field(default_factory=list)

    def records(self) -> list[Record]:
        return sorted((*self.new.values(), *self.changed.values()), key=lambda record: _ORDER[record.spec.kind])


def import_rows(
    storage: StorageBackend,
    source: str | os.PathLike[str],
    importer: Importer,
    *,
    options: ImportOptions | None = None,
    dry_run: bool = False,
    embedder: EmbeddingProvider | None = None,
    prepare: Callable[[Record], Record] | None = None,
    batch_size: int = DEFAULT_BATCH,
    by: Attribution | None = None,
    on_progress: OnImportProgress = lambda progress: None,
) -> ImportReport:
    """Import a file of another system; see `alma.importers.import_into`."""
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise ValidationError("import", "batch_size", batch_size, "must be a whole number of at least 1")
    run = _Import(storage, importer, options or ImportOptions(), dry_run, embedder, prepare, by)
    rows = Source(source, importer)
    for stage in importer.stages:
        for batch in _batches(run.entries(rows, stage), batch_size):
            run.take(batch)
            on_progress(ImportProgress(run.report.rows, rows.fraction))
    on_progress(ImportProgress(run.report.rows, 1.0))
    return run.report


class _Import:
    """One run: reads entries, plans batches and stores them."""

    def __init__(
        self,
        storage: StorageBackend,
        importer: Importer,
        options: ImportOptions,
        dry_run: bool,
        embedder: EmbeddingProvider | None,
        prepare: Callable[[Record], Record] | None,
        by: Attribution | None,
    ) -> None:
        self.report = ImportReport(importer.name, dry_run)
        self._storage = storage
        self._importer = importer
        self._options = options
        self._embedder = embedder
        self._prepare = prepare
        self._by = by or Attribution(reason=f"imported from {importer.name}")
        self._lengths: dict[str, int] = {**storage.models(), storage.embedding_model: storage.embedding_dim}
        # Ids of this run, as short numbers: a second row with the same one is told from a row of an earlier run.
        self._seen: set[int] = set()
        self._taken: dict[tuple[str, tuple[Any, ...]], str] = {}

    # ------------------------------------------------------------------ rows

    def entries(self, source: Source, stage: str) -> Iterator[_Entry]:
        """What the rows become; what they cannot become goes into the report."""
        first = stage == self._importer.stages[0]
        for row in source.rows():
            self.report.rows += first
            if isinstance(row, Rejected):
                if first:
                    self.report.rejected.append(row)
                continue
            try:
                found = list(self._importer.items(row, self._options, stage))
            except (RowRefused, ValidationError) as exc:
                self.report.rejected.append(Rejected(row.where, self._named(row.data), str(exc)))
                continue
            for each in found:
                if isinstance(each, Rejected):
                    self.report.rejected.append(each)
                elif isinstance(each, LeftOut):
                    self.report.left_out[each.reason] += 1
                else:
                    yield _Entry(row.where, each)

    def _named(self, data: Any) -> str | None:
        """The id of a row that cannot come, as far as it has one."""
        name = data.get(self._importer.key) if isinstance(data, Mapping) and self._importer.key else None
        return str(name) if isinstance(name, str | int) else None

    # ------------------------------------------------------------------ batches

    def take(self, batch: Sequence[_Entry]) -> None:
        """Store a batch, or on a dry run only find out what would become of it."""
        fitting = self._of_one_length(batch)
        if self.report.dry_run:
            with self._storage.snapshot() as tx:
                plan = self._planned(tx, fitting)
        elif self._embedder is None:
            plan = self._storage.write(lambda tx: self._stored(tx, fitting, {}), self._by)
        else:
            with self._storage.snapshot() as tx:
                wanted = self._planned(tx, fitting)
            encoded = self._encoded(wanted, self._embedder)
            plan = self._storage.write(lambda tx: self._stored(tx, fitting, encoded), self._by)
        self._note(plan, batch)

    def _note(self, plan: _Plan, batch: Sequence[_Entry]) -> None:
        report = self.report
        report.new.update(kind for kind, _ in plan.new)
        report.changed.update(kind for kind, _ in plan.changed)
        report.unchanged.update(plan.unchanged)
        report.vectors.update(model for vectors in plan.vectors.values() for model in vectors)
        report.rejected.extend(plan.rejected)
        self._seen.update(_number(entry.item.record) for entry in batch if not entry.item.mention)
        if report.dry_run:
            self._seen.update(map(_number, plan.new.values()))
            for record in plan.new.values():
                self._taken.update(dict.fromkeys(_unique(record), record.key))

    def _of_one_length(self, batch: Sequence[_Entry]) -> list[_Entry]:
        """The entries without those whose vector is of another length than the other vectors of its model."""
        lengths: dict[str, Counter[int]] = defaultdict(Counter)
        for entry in batch:
            for model, vector in entry.item.vectors.items():
                lengths[model][len(vector)] += 1
        for model, found in lengths.items():
            usual = self._options.embedding_dim or found.most_common(1)[0][0]
            self._lengths.setdefault(model, usual)
        refused = {
            entry.where: f"embedding has {len(vector)} dimensions, those of {model} have {self._lengths[model]}"
            for entry in batch
            for model, vector in entry.item.vectors.items()
            if len(vector) != self._lengths[model]
        }
        for entry in batch:
            if entry.where in refused and not entry.item.mention:
                self.report.rejected.append(Rejected(entry.where, entry.item.record.key, refused[entry.where]))
        return [entry for entry in batch if entry.where not in refused]

    # ------------------------------------------------------------------ what becomes of a batch

    def _planned(self, tx: Transaction, batch: Sequence[_Entry]) -> _Plan:
        plan = _Plan()
        known = _stored_records(tx, batch)
        taken = _taken(tx, batch)
        taken.update(self._taken)
        ends = _ends(tx, batch)
        for entry in batch:
            if not self._leads_somewhere(entry, known, ends, plan):
                continue
            for record in self._fitting(entry, known, taken, plan):
                self._decide(entry, record, known, plan)
        return plan

    def _fitting(
        self,
        entry: _Entry,
        known: Mapping[tuple[str, str], Record],
        taken: dict[tuple[str, tuple[Any, ...]], str],
        plan: _Plan,
    ) -> Iterator[Record]:
        """The records to store for an entry, whose unique values nobody else has."""
        record = entry.item.record
        key = (record.spec.kind, record.key)
        if key in known and type(known[key]).spec.unique:
            # It came before, under whatever unique values were free then.
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

    def _decide(self, entry: _Entry, record: Record, known: dict[tuple[str, str], Record], plan: _Plan) -> None:
        key = (record.spec.kind, record.key)
        old = known.get(key)
        if old is None:
            if self.report.dry_run and _number(record) in self._seen:
                plan.unchanged[record.spec.kind] += 1
                return
            ready = record if self._prepare is None else self._prepare(record)
            plan.new[key] = known[key] = ready
            if record is entry.item.record and entry.item.vectors:
                plan.vectors[key] = entry.item.vectors
            return
        reason = None if entry.item.mention else _clash(old, record)
        if reason is not None:
            plan.rejected.append(Rejected(entry.where, record.key, reason))
        elif self._is_later(entry.item, old):
            ready = record if self._prepare is None else self._prepare(record)
            (plan.new if key in plan.new else plan.changed)[key] = known[key] = ready
            if entry.item.vectors:
                plan.vectors[key] = entry.item.vectors
        elif not entry.item.mention and self._repeats(record, old, key, plan):
            reason = "a row with the same id came before it and says something else"
            plan.rejected.append(Rejected(entry.where, record.key, reason))
        else:
            plan.unchanged[record.spec.kind] += 1

    def _is_later(self, item: Item, old: Record) -> bool:
        if item.mention:
            return False
        if is_mention(old):
            return True
        stored_at: datetime | None = old.values().get("updated_at")
        return item.changed_at is not None and stored_at is not None and item.changed_at > stored_at

    def _repeats(self, record: Record, old: Record, key: tuple[str, str], plan: _Plan) -> bool:
        return (key in plan.new or _number(record) in self._seen) and record.text() != old.text()

    def _leads_somewhere(
        self, entry: _Entry, known: Mapping[tuple[str, str], Record], ends: set[tuple[str, str]], plan: _Plan
    ) -> bool:
        record = entry.item.record
        for reference in _required(record):
            end = (reference.kind, getattr(record, reference.field))
            if end in known or end in ends or (self.report.dry_run and hash(end) in self._seen):
                continue
            shown = record.values().get("metadata", {}).get(reference.field.partition("_")[0], end[1])
            plan.rejected.append(Rejected(entry.where, record.key, f"there is no {reference.kind} for {shown!r}"))
            return False
        return True

    # ------------------------------------------------------------------ storing

    def _stored(self, tx: Transaction, batch: Sequence[_Entry], encoded: Mapping[tuple[str, str], Encoded]) -> _Plan:
        plan = self._planned(tx, batch)
        records = plan.records()
        if not records:
            return plan
        tx.save(*records)
        for cls in {type(record) for record in records if record.spec.embeds}:
            put_vectors(tx, cls, list(_parts(cls, plan, encoded, tx.embedding_model)), TransferReport())
        return plan

    def _encoded(self, plan: _Plan, embedder: EmbeddingProvider) -> dict[tuple[str, str], Encoded]:
        """The vectors of what has none of the store's own model; made before a transaction holds up other writers."""
        own = self._storage.embedding_model
        texts = {
            (record.spec.kind, record.key): record.text()
            for record in plan.records()
            if record.spec.embeds and own not in plan.vectors.get((record.spec.kind, record.key), {})
        }
        said = {key: text for key, text in texts.items() if text.strip()}
        return dict(zip(said, embedder.encode_texts(said.values()), strict=True))


def _batches(entries: Iterable[_Entry], size: int) -> Iterator[list[_Entry]]:
    rest = iter(entries)
    while batch := list(islice(rest, size)):
        yield batch


def _stored_records(tx: Transaction, batch: Sequence[_Entry]) -> dict[tuple[str, str], Record]:
    """Those of the batch's records, and of what may be stored instead, that are stored already."""
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


def _ends(tx: Transaction, batch: Sequence[_Entry]) -> set[tuple[str, str]]:
    """The stored records that the batch's records cannot do without."""
    wanted: dict[str, set[str]] = defaultdict(set)
    for entry in batch:
        for reference in _required(entry.item.record):
            wanted[reference.kind].add(getattr(entry.item.record, reference.field))
    found: set[tuple[str, str]] = set()
    for kind, keys in wanted.items():
        cls = kind_named(kind)
        found.update((kind, key) for (key,) in tx.values(cls, [cls.spec.key], _EVERYWHERE, In(cls.spec.key, keys)))
    return found


def _taken(tx: Transaction, batch: Sequence[_Entry]) -> dict[tuple[str, tuple[Any, ...]], str]:
    """Which stored record has which of the values that must be unique."""
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
    """Why the stored record with this id cannot be the one that comes."""
    if isinstance(old, Memory) and isinstance(new, Memory) and old.external_id != new.external_id:
        return "its id is taken by a memory that did not come from this source"
    for name in _OWNERS:
        mine, theirs = old.values().get(name), new.values().get(name)
        if mine is not None and theirs is not None and mine != theirs:
            return f"its id is taken by a {old.spec.kind} of {name} {mine!r}"
    return None


def _parts(
    cls: type[Record], plan: _Plan, encoded: Mapping[tuple[str, str], Encoded], own_model: str
) -> Iterator[VectorPart]:
    for (kind, key), vectors in plan.vectors.items():
        if kind == cls.spec.kind:
            yield from (VectorPart(key, model, 0, vector) for model, vector in vectors.items())
    written = {**plan.new, **plan.changed}
    for (kind, key), made in encoded.items():
        if kind == cls.spec.kind and (kind, key) in written:
            yield VectorPart(key, own_model, 0, made.vector)
            yield from (VectorPart(key, own_model, part, each) for part, each in enumerate(made.passages, start=1))


def _number(record: Record) -> int:
    return hash((record.spec.kind, record.key))
