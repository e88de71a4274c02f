"""The import engine: read rows, redact, screen, plan and store them in batches; interrupted runs can be repeated."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from alma.embeddings.base import EmbeddingProvider, Encoded
from alma.errors import ValidationError
from alma.importers.base import (
    Importer,
    ImportOptions,
    ImportReport,
    Item,
    Rejected,
    RowRefused,
    Skipped,
)
from alma.importers.planning import Entry, Plan, Planner, QuarantinedRecord, quarantined_records
from alma.importers.records import IMPORT, SOURCE, build_memory
from alma.importers.sources import Source
from alma.ingest.screening import injection_in, injection_in_record
from alma.memory.archive import ARCHIVABLE, archive_unstored, attach_dependents
from alma.memory.settings import SystemSettings
from alma.model.governance import ArchiveCause, Attribution
from alma.model.record import Record
from alma.redaction.nested import Masked, Redacted
from alma.redaction.redactor import DEFAULT_REDACTOR, Redactor, checked_redactor, redact_record, redact_text
from alma.retrieval.writing import join_space
from alma.storage.base import RecordVector, StorageBackend, Transaction
from alma.storage.bundles import Bundle
from alma.storage.deleted_values import DeletedValues
from alma.storage.tombstones import Tombstone
from alma.transfer.arrival import put_vectors
from alma.transfer.lines import Limits
from alma.transfer.parcels import TransferReport

DEFAULT_BATCH = 1000
DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class ImportProgress:
    """The number of rows read, and the fraction of the source, from 0 to 1."""

    rows: int
    fraction: float


OnImportProgress = Callable[[ImportProgress], object]


def import_rows(
    storage: StorageBackend,
    source: str | os.PathLike[str],
    importer: Importer,
    *,
    options: ImportOptions | None = None,
    dry_run: bool = False,
    embedder: EmbeddingProvider | None = None,
    prepare: Callable[[Record], Record] | None = None,
    redactor: Redactor | None = DEFAULT_REDACTOR,
    trusted: bool = False,
    batch_size: int = DEFAULT_BATCH,
    by: Attribution | None = None,
    limits: Limits = DEFAULT_LIMITS,
    on_progress: OnImportProgress = lambda progress: None,
) -> ImportReport:
    """Import a file of another system; see `alma.importers.import_into`.

    Records that look like prompt injections are quarantined, unless the file is `trusted`. A file that exceeds the
    `limits` is refused before anything is stored.
    """
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise ValidationError("import", "batch_size", batch_size, "must be a whole number of at least 1")
    if embedder is not None:
        embedder = join_space(storage, embedder)
    run = _Import(storage, importer, options or ImportOptions(), dry_run, embedder, prepare, redactor, trusted, by)
    rows = Source(source, importer, limits)
    rows.check()
    for stage in importer.stages:
        for batch in _batches(run.entries(rows, stage), batch_size):
            run.take(batch)
            on_progress(ImportProgress(run.report.rows, rows.fraction))
    on_progress(ImportProgress(run.report.rows, 1.0))
    return run.report


class _Import:
    """One import: reads entries, plans batches and stores them."""

    def __init__(
        self,
        storage: StorageBackend,
        importer: Importer,
        options: ImportOptions,
        dry_run: bool,
        embedder: EmbeddingProvider | None,
        prepare: Callable[[Record], Record] | None,
        redactor: Redactor | None,
        trusted: bool,
        by: Attribution | None,
    ) -> None:
        self.report = ImportReport(importer.name, dry_run)
        self._storage = storage
        self._importer = importer
        settings = SystemSettings(storage).read(options.user_id)
        self._options = replace(options, decay_rate=options.decay_rate or settings.default_decay_rate)
        self._embedder = embedder
        self._redactor = checked_redactor("import", redactor)
        self._quarantine = None if trusted else InjectionScreening(importer, options)
        self._by = by or Attribution(reason=f"imported from {importer.name}")
        self._lengths: dict[str, int] = {**storage.models(), storage.embedding_model: storage.embedding_dim}
        self._planner = Planner(dry_run=dry_run, prepare=prepare)

    # ------------------------------------------------------------------ rows

    def entries(self, source: Source, stage: str) -> Iterator[Entry]:
        """The entries made from the rows; rejected ones are added to the report."""
        first = stage == self._importer.stages[0]
        for row in source.rows():
            self.report.rows += first
            if isinstance(row, Rejected):
                if first:
                    self._refuse(row.where, row.id, row.reason)
                continue
            try:
                found = list(self._importer.items(row, self._options, stage))
            except (RowRefused, ValidationError) as exc:
                self._refuse(row.where, self._named(row.data), str(exc))
                continue
            except RecursionError:
                self._refuse(row.where, self._named(row.data), "it is nested too deeply")
                continue
            for each in found:
                if isinstance(each, Rejected):
                    self._refuse(each.where, each.id, each.reason)
                elif isinstance(each, Skipped):
                    self.report.left_out[each.reason] += 1
                else:
                    yield from self._screened(row.where, self._without_secrets(each))

    def _refuse(self, where: str, row_id: str | None, reason: str) -> None:
        # The reason quotes the row, which may contain a secret.
        self.report.rejected.append(Rejected(where, row_id, redact_text(reason).text))

    def _without_secrets(self, item: Item) -> Item:
        """The item without secrets; vectors made from a text with a secret are dropped."""
        if self._redactor is None:
            return item
        record, masked = redact_record(item.record, self._redactor)
        instead = tuple(redact_record(each, self._redactor)[0] for each in item.instead)
        if not masked:
            return item if instead == item.instead else replace(item, instead=instead)
        self.report.masked.update(each.kind for each in masked)
        return replace(item, record=record, instead=instead, vectors={})

    def _screened(self, where: str, item: Item) -> Iterator[Entry]:
        if self._quarantine is None:
            yield Entry(where, item)
        else:
            yield from (Entry(where, each, suspected) for each, suspected in self._quarantine.screened(item))

    def _named(self, data: Any) -> str | None:
        """The id of a rejected row, if it has one."""
        name = data.get(self._importer.key) if isinstance(data, Mapping) and self._importer.key else None
        # Invalid Unicode cannot be printed in a report.
        return str(name).encode("utf-8", "replace").decode() if isinstance(name, str | int) else None

    # ------------------------------------------------------------------ batches

    def take(self, batch: Sequence[Entry]) -> None:
        """Store a batch, or only plan it in a dry run."""
        fitting = self._of_one_length(batch)
        gone = self._gone(fitting)
        if self.report.dry_run:
            with self._storage.snapshot() as tx:
                plan = self._planner.planned(tx, fitting, gone)
        elif self._embedder is None:
            plan = self._storage.write(lambda tx: self._stored(tx, fitting, {}, gone), self._by)
        else:
            with self._storage.snapshot() as tx:
                wanted = self._planner.planned(tx, fitting, gone)
            encoded = self._encoded(wanted, self._embedder)
            plan = self._storage.write(lambda tx: self._stored(tx, fitting, encoded, gone), self._by)
        self._note(plan, batch)

    def _gone(self, batch: Sequence[Entry]) -> Mapping[str, Tombstone]:
        """The tombstones of new records that say what was deleted here, by their ids."""
        items = [entry.item for entry in batch]
        model = self._storage.embedding_model
        vectors = {str(item.record.key): item.vectors[model] for item in items if model in item.vectors}
        return DeletedValues(self._storage).among_new([item.record for item in items], vectors)

    def _note(self, plan: Plan, batch: Sequence[Entry]) -> None:
        report = self.report
        report.new.update(kind for kind, _ in plan.new)
        report.changed.update(kind for kind, _ in plan.changed)
        report.unchanged.update(plan.unchanged)
        report.left_out.update(plan.deleted)
        report.quarantined.update(kind for kind, _ in plan.quarantined)
        report.quarantined.update(kind for waiting in plan.waiting.values() for kind, _ in waiting)
        report.vectors.update(model for vectors in plan.vectors.values() for model in vectors)
        report.rejected.extend(plan.rejected)
        self._planner.note(plan, batch)

    def _of_one_length(self, batch: Sequence[Entry]) -> list[Entry]:
        """The entries without vectors of a different length than others of their model."""
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

    # ------------------------------------------------------------------ storing

    def _stored(
        self,
        tx: Transaction,
        batch: Sequence[Entry],
        encoded: Mapping[tuple[str, str], Encoded],
        gone: Mapping[str, Tombstone],
    ) -> Plan:
        # Two concurrent imports of one system would both insert the same rows.
        tx.hold(f"import of {self._importer.name}")
        plan = self._planner.planned(tx, batch, gone)
        self._put_aside(tx, plan, encoded)
        records = plan.records()
        if not records:
            return plan
        tx.save(*records)
        for cls in {type(record) for record in records if record.spec.embeds}:
            put_vectors(tx, cls, list(_parts(cls, plan, encoded, tx.embedding_model)), TransferReport())
        return plan

    def _put_aside(self, tx: Transaction, plan: Plan, encoded: Mapping[tuple[str, str], Encoded]) -> None:
        """Quarantine suspicious records, and keep their dependents with them."""
        if plan.quarantined:
            bundles = ((_bundle(key, each, encoded, tx), each.reason) for key, each in plan.quarantined.items())
            archive_unstored(tx, bundles, ArchiveCause.QUARANTINED)
        for end, archived in quarantined_records(tx, plan.waiting).items():
            attach_dependents(tx, archived, plan.waiting.get(end, {}).values())

    def _encoded(self, plan: Plan, embedder: EmbeddingProvider) -> dict[tuple[str, str], Encoded]:
        """Vectors for records without one of the store's model; encoded outside of the write transaction."""
        own = self._storage.embedding_model
        texts = {
            (record.spec.kind, record.key): record.text()
            for record in plan.records()
            if record.spec.embeds and own not in plan.vectors.get((record.spec.kind, record.key), {})
        }
        texts |= {key: each.record.text() for key, each in plan.quarantined.items() if own not in each.vectors}
        said = {key: text for key, text in texts.items() if text.strip()}
        return dict(zip(said, embedder.encode_texts(said.values()), strict=True))


def _batches(entries: Iterable[Entry], size: int) -> Iterator[list[Entry]]:
    rest = iter(entries)
    while batch := list(islice(rest, size)):
        yield batch


def _bundle(
    key: tuple[str, str], each: QuarantinedRecord, encoded: Mapping[tuple[str, str], Encoded], tx: Transaction
) -> Bundle:
    given = (RecordVector(key[1], model, 0, vector) for model, vector in each.vectors.items())
    made = _made(key[1], encoded[key], tx.embedding_model) if key in encoded else ()
    return Bundle(each.record, (*given, *made), ())


def _parts(
    cls: type[Record], plan: Plan, encoded: Mapping[tuple[str, str], Encoded], own_model: str
) -> Iterator[RecordVector]:
    for (kind, key), vectors in plan.vectors.items():
        if kind == cls.spec.kind:
            yield from (RecordVector(key, model, 0, vector) for model, vector in vectors.items())
    written = {**plan.new, **plan.changed}
    for (kind, key), made in encoded.items():
        if kind == cls.spec.kind and (kind, key) in written:
            yield from _made(key, made, own_model)


def _made(key: str, made: Encoded, model: str) -> Iterator[RecordVector]:
    yield from (RecordVector(key, model, part, each) for part, each in enumerate((made.vector, *made.passages)))


PLACE = "[quarantined]"
"""Replaces injected text in records that cannot be archived, such as sessions."""

Screened = tuple[Item, str | None]


class InjectionScreening:
    """Screens the items of one import for prompt injections."""

    def __init__(self, importer: Importer, options: ImportOptions) -> None:
        self._importer = importer
        self._options = options

    def screened(self, item: Item) -> Iterator[Screened]:
        """The item with the reason to quarantine it, or None; records that cannot be archived lose the text instead."""
        reason = injection_in_record(item.record, SOURCE)
        if reason is None:
            yield item, None
        elif isinstance(item.record, ARCHIVABLE):
            yield item, reason
        else:
            yield from self._apart(item, reason)

    def _apart(self, item: Item, reason: str) -> Iterator[Screened]:
        orders = _InjectionRedactor()
        clean = redact_record(item.record, orders)[0]
        instead = tuple(redact_record(each, _InjectionRedactor())[0] for each in item.instead)
        yield Item(clean, item.vectors, item.changed_at, item.mention, instead), None
        if orders.found:
            yield Item(self._note(item.record, "\n".join(orders.found), item), changed_at=item.changed_at), reason

    def _note(self, record: Record, said: str, item: Item) -> Record:
        """A memory with the text taken out of a record that cannot be archived."""
        kind, values = record.spec.kind, record.values()
        return build_memory(
            self._options,
            system=self._importer.name,
            id=self._importer.derived_id("quarantined", kind, record.key, said),
            external_id=str(record.key)[:200],
            title=f"From the {kind} {record.key}"[:200],
            memory_type="note",
            content=said,
            context_json={IMPORT: {"system": self._importer.name, "kind": kind, "id": str(record.key)}},
            user_id=values.get("user_id"),
            project_id=values.get("project_id"),
            created_at=item.changed_at or values.get("created_at"),
        )


class _InjectionRedactor:
    """A redactor for prompt injections instead of secrets, which keeps what it removes."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def redact(self, text: str, name: str = "") -> Redacted:
        if text == PLACE or injection_in([text]) is None:
            return Redacted(text)
        self.found.append(text)
        return Redacted(PLACE, (Masked("orders", name),))
