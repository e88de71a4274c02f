"""In-memory storage: a store that lasts as long as the object."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from itertools import islice, product
from typing import Any

from alma.clock import new_id
from alma.errors import ConflictError, StorageError
from alma.model.governance import AuditEvent, Setting, default_settings
from alma.model.kinds import KINDS
from alma.model.memory import MemoryVersion
from alma.model.query import Predicate, is_after, matches, sort_key
from alma.model.record import Record, RecordSpec
from alma.model.vector import Vector
from alma.storage.audit import ChainHead, ChainTable
from alma.storage.backend import TEXT_LENGTH, Backend, Query, RecordVector
from alma.storage.base import DEFAULT_MODEL, StorageBackend
from alma.storage.nearest import nearest
from alma.storage.outbox import Backlog, Mark, MarkTable
from alma.storage.ranking import bm25
from alma.text.tokens import stored_terms

# The kind, the record, the model, and the part: 0 for the record's own vector, 1 and on for its passages.
VectorKey = tuple[str, str, str, int]
Table = dict[Any, Any]

VECTORS = "embeddings"
MODELS = "embedding_models"
PROJECTIONS = "projections"
OUTBOX = "outbox"
CHAINS = "audit_chains"
TABLES = (*(cls.spec.table for cls in KINDS), VECTORS, MODELS, PROJECTIONS, OUTBOX, CHAINS)


class InMemoryStorage(StorageBackend):
    """A store without files, with the tables of the file store."""

    storage_type = "memory"

    def __init__(self, embedding_dim: int = 384, embedding_model: str = DEFAULT_MODEL) -> None:
        super().__init__(embedding_dim, embedding_model)
        self._tables = new_tables()
        self._writer = threading.Lock()
        self._committed = new_id()
        self._closed = False

    @contextmanager
    def _begin(self, *, write: bool) -> Iterator[Backend]:
        if self._closed:
            raise StorageError("the store in memory was closed, and its contents are gone")
        if not write:
            yield TableBackend(self._tables, self.embedding_dim, self.embedding_model, writable=False)
            return
        with self._writer:
            backend = TableBackend(self._tables, self.embedding_dim, self.embedding_model, writable=True)
            yield backend
            if backend.changed:
                # A new dictionary, so that concurrent readers keep their snapshot.
                self._tables = {**self._tables, **backend.changed}
                self._committed = new_id()

    def _generation(self) -> str:
        return self._committed

    def close(self) -> None:
        self._closed = True
        self._tables = {}


def new_tables() -> dict[str, Table]:
    """The tables of a new store, with the documented settings."""
    tables: dict[str, Table] = {name: {} for name in TABLES}
    tables[Setting.spec.table] = {setting.key: setting for setting in default_settings()}
    return tables


class TableBackend(Backend):
    """Reads and writes tables in memory; the store commits the `changed` tables when the transaction ends."""

    def __init__(self, tables: dict[str, Table], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._tables = tables
        self.changed: dict[str, Table] = {}

    def table(self, name: str) -> Table:
        return self.changed.get(name, self._tables[name])

    def mutable(self, name: str) -> Table:
        """A copy of the table for writing, so that other readers keep their snapshot."""
        if name not in self.changed:
            self.changed[name] = dict(self._tables[name])
        return self.changed[name]

    # ------------------------------------------------------------------ reading

    def select(self, query: Query) -> list[Record]:
        found = sorted(self._fulfilling(query.spec, query.where), key=sort_key(query.order))
        if query.after is not None:
            found = [record for record in found if is_after(record, query.after, query.order)]
        return [self._with_vector(record) for record in found[: query.limit]]

    def values(self, query: Query, names: Sequence[str]) -> list[tuple[Any, ...]]:
        return [
            tuple(len(record.text()) if name == TEXT_LENGTH else getattr(record, name) for name in names)
            for record in self.select(query)
        ]

    def word_counts(self, spec: RecordSpec, words: Sequence[str], where: Predicate) -> tuple[int, dict[str, int]]:
        records, wanted = 0, set(words)
        counts = Counter[str]()
        for record in self._fulfilling(spec, where):
            records += 1
            counts.update(wanted.intersection(stored_terms(record.text())))
        return records, {word: counts[word] for word in words}

    def count(self, spec: RecordSpec, where: Predicate) -> int:
        return sum(1 for _ in self._fulfilling(spec, where))

    def _fulfilling(self, spec: RecordSpec, where: Predicate) -> Iterator[Record]:
        return (record for record in self.table(spec.table).values() if matches(where, record))

    def _with_vector(self, record: Record) -> Record:
        name = record.spec.vector_field
        if name is None:
            return record.apart()
        return record.apart({name: self.table(VECTORS).get((record.spec.kind, record.key, self.embedding_model, 0))})

    def last_versions(self, kind: str, record_ids: Collection[str]) -> dict[str, MemoryVersion]:
        wanted = set(record_ids)
        last: dict[str, MemoryVersion] = {}
        for row in self.table(MemoryVersion.spec.table).values():
            if row.kind == kind and row.memory_id in wanted:
                known = last.get(row.memory_id)
                if known is None or known.version_number < row.version_number:
                    last[row.memory_id] = row
        return last

    def matching(
        self, spec: RecordSpec, words: Sequence[str], where: Predicate, limit: int, *, exact: bool
    ) -> list[tuple[str, float]]:
        texts = {record.key: stored_terms(record.text()) for record in self._fulfilling(spec, where)}
        return bm25(texts, words)[:limit]

    def word_scores(
        self, spec: RecordSpec, words: Sequence[str], keys: Sequence[str], where: Predicate
    ) -> dict[str, float]:
        scores = dict(self.matching(spec, words, where, len(self.table(spec.table)), exact=True))
        return {key: scores[key] for key in keys if key in scores}

    def nearest(
        self, spec: RecordSpec, vector: Vector, model: str, where: Predicate, limit: int, *, exact: bool
    ) -> list[tuple[str, float]]:
        inside = {record.key for record in self._fulfilling(spec, where)}
        stored = self.table(VECTORS).items()
        candidates = (
            (key, found.to_bytes())
            for (kind, key, of_model, _), found in stored
            if kind == spec.kind and of_model == model and key in inside
        )
        return nearest(vector, candidates, limit)

    # ------------------------------------------------------------------ writing

    def insert(self, spec: RecordSpec, records: Sequence[Record]) -> None:
        table = self.mutable(spec.table)
        taken = {_version(row) for row in table.values()} if spec is MemoryVersion.spec else set()
        for record in records:
            stored = _numbered(record, table) if spec.numbered else record
            if stored.key in table or _version(stored) in taken:
                raise ConflictError(f"{spec.kind} {stored.key!r} exists already")
            table[stored.key] = _bare(stored)

    def replace(self, spec: RecordSpec, records: Sequence[Record], previous: Sequence[Record]) -> None:
        table = self.mutable(spec.table)
        for record in records:
            table[record.key] = _bare(record)

    def remove(self, spec: RecordSpec, records: Sequence[Record]) -> None:
        table = self.mutable(spec.table)
        keys = {record.key for record in records}
        for key in keys:
            del table[key]
        self._forget_vectors(lambda kind, key, model, part: kind == spec.kind and key in keys)

    def put_vectors(self, spec: RecordSpec, vectors: Mapping[str, Vector], model: str) -> None:
        self.mutable(VECTORS).update({(spec.kind, key, model, 0): vector for key, vector in vectors.items()})

    def put_passages(self, spec: RecordSpec, passages: Mapping[str, Sequence[Vector]], model: str) -> None:
        self._forget_vectors(
            lambda kind, key, of_model, part: kind == spec.kind and key in passages and of_model == model and part > 0
        )
        for key, vectors in passages.items():
            parts = enumerate(vectors, start=1)
            self.mutable(VECTORS).update({(spec.kind, key, model, part): vector for part, vector in parts})

    def drop_vectors(self, spec: RecordSpec, record_ids: Collection[str], model: str) -> None:
        keys = set(record_ids)
        self._forget_vectors(lambda kind, key, of_model, part: kind == spec.kind and key in keys and of_model == model)

    def drop_other_vectors(self, spec: RecordSpec, record_ids: Collection[str], model: str) -> None:
        keys = set(record_ids)
        self._forget_vectors(lambda kind, key, of_model, part: kind == spec.kind and key in keys and of_model != model)

    def _forget_vectors(self, gone: Callable[[str, str, str, int], bool]) -> None:
        for each in [each for each in self.table(VECTORS) if gone(*each)]:
            del self.mutable(VECTORS)[each]

    def vectors_of(self, spec: RecordSpec, record_ids: Collection[str]) -> list[RecordVector]:
        keys = set(record_ids)
        found = [
            RecordVector(key, model, part, vector)
            for (kind, key, model, part), vector in self.table(VECTORS).items()
            if kind == spec.kind and key in keys
        ]
        return sorted(found, key=lambda each: (each.record_id, each.model, each.part))

    def erase(self) -> None:
        for name in TABLES:
            self.mutable(name).clear()

    def without_vector(
        self, spec: RecordSpec, model: str, where: Predicate, limit: int, after: str | None
    ) -> list[Record]:
        lacking = sorted(self._lacking(spec, model, where), key=lambda record: record.key.encode())
        behind = (record for record in lacking if after is None or record.key.encode() > after.encode())
        return [self._with_vector(record) for record in islice(behind, limit)]

    def count_without_vector(self, spec: RecordSpec, model: str, where: Predicate) -> int:
        return sum(1 for _ in self._lacking(spec, model, where))

    def _lacking(self, spec: RecordSpec, model: str, where: Predicate) -> Iterator[Record]:
        vectors = self.table(VECTORS)
        return (each for each in self._fulfilling(spec, where) if (spec.kind, each.key, model, 0) not in vectors)

    def is_half_moved(self, spec: RecordSpec, model: str) -> bool:
        if len(self.table(MODELS)) < 2:
            return False
        vectors = self.table(VECTORS)
        return any(kind == spec.kind and (kind, key, model, 0) not in vectors for kind, key, _, _ in vectors)

    def models(self) -> list[str]:
        return sorted({each[2] for each in self.table(VECTORS)})

    def dims_of(self, model: str, claim: int | None) -> int | None:
        known: int | None = self.table(MODELS).get(model)
        if known is None and claim is not None:
            self.mutable(MODELS)[model] = claim
        return known if known is not None else claim

    @property
    def outbox(self) -> MarkTable:
        return TableMarks(self)

    @property
    def chains(self) -> ChainTable:
        return TableChains(self)


def _version(row: Record) -> tuple[str, str, int] | None:
    """The unique key of a version."""
    return (row.kind, row.memory_id, row.version_number) if isinstance(row, MemoryVersion) else None


def _numbered(record: Record, table: Table) -> Record:
    """The record with the next number as its id."""
    return type(record).trusted({**record.values(), record.spec.key: max(table, default=0) + 1})


def _bare(record: Record) -> Record:
    """The record without its vector, which is in a separate table."""
    name = record.spec.vector_field
    return record.apart({} if name is None else {name: None})


class TableChains(ChainTable):
    """The head of the single audit chain as a table; created on first use."""

    def __init__(self, backend: TableBackend) -> None:
        self._backend = backend

    def take(self) -> ChainHead:
        known: ChainHead | None = self._backend.table(CHAINS).get(1)
        return known or ChainHead(1, unchained=len(self._backend.table(AuditEvent.spec.table)))

    def move(self, head: ChainHead) -> None:
        self._backend.mutable(CHAINS)[head.chain] = head

    def heads(self) -> list[ChainHead]:
        return [self.take()]


class TableMarks(MarkTable):
    """The outbox as a table in memory."""

    def __init__(self, backend: TableBackend) -> None:
        self._backend = backend

    def register(self, name: str, kinds: Sequence[str]) -> None:
        self._delete_all(PROJECTIONS, name)
        self._backend.mutable(PROJECTIONS).update({(name, kind): True for kind in kinds})

    def drop(self, name: str) -> None:
        for table in (PROJECTIONS, OUTBOX):
            self._delete_all(table, name)

    def _delete_all(self, name: str, projection: str) -> None:
        table = self._backend.mutable(name)
        for key in [key for key in table if key[0] == projection]:
            del table[key]

    def registered(self) -> dict[str, tuple[str, ...]]:
        found = sorted(self._backend.table(PROJECTIONS))
        return {name: tuple(kind for each, kind in found if each == name) for name, _ in found}

    def mark(self, kind: str, keys: Sequence[str], moment: datetime, only: str | None = None) -> None:
        followers = (name for name, wanted in self._backend.table(PROJECTIONS) if wanted == kind)
        projections = sorted(name for name in followers if only in (None, name))
        if not projections:
            return
        table = self._backend.mutable(OUTBOX)
        for projection, key in product(projections, keys):
            known = table.get((projection, kind, key))
            generation, lease = (1, None) if known is None else (known.generation + 1, known.leased_until)
            table[projection, kind, key] = Mark(projection, kind, key, generation, moment, lease)

    def claim(self, projection: str, limit: int, moment: datetime, until: datetime) -> list[Mark]:
        free = (mark for mark in self.pending(projection) if _is_free(mark, moment))
        claimed = [replace(mark, leased_until=until) for mark in islice(free, limit)]
        self.put(claimed)
        return claimed

    def of_records(self, projection: str, kind: str, keys: Collection[str]) -> list[Mark]:
        table = self._backend.table(OUTBOX)
        return [table[projection, kind, key] for key in keys if (projection, kind, key) in table]

    def put(self, marks: Sequence[Mark]) -> None:
        self._backend.mutable(OUTBOX).update((mark.key, mark) for mark in marks)

    def remove(self, marks: Sequence[Mark]) -> None:
        table = self._backend.mutable(OUTBOX)
        for mark in marks:
            del table[mark.key]

    def pending(self, projection: str) -> list[Mark]:
        marks = [mark for key, mark in self._backend.table(OUTBOX).items() if key[0] == projection]
        return sorted(marks, key=lambda mark: (mark.marked_at, mark.kind, mark.record_id))

    def backlog(self, projection: str) -> Backlog:
        marks = self.pending(projection)
        waiting = [mark.marked_at for mark in marks if not mark.parked]
        return Backlog(len(marks), len(marks) - len(waiting), waiting[0] if waiting else None)

    def can_claim(self, projection: str, moment: datetime) -> bool:
        return any(_is_free(mark, moment) for mark in self.pending(projection))


def _is_free(mark: Mark, moment: datetime) -> bool:
    return not mark.parked and (mark.leased_until is None or mark.leased_until <= moment)
