"""Files: a store of plain JSON arrays, for tests, fallback and reading with other tools."""

from __future__ import annotations

import base64
import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from alma.errors import ConfigurationError, ConflictError, StorageError, ValidationError
from alma.model.fields import FieldType
from alma.model.governance import Attribution, AuditEvent, Setting, default_settings
from alma.model.kinds import KINDS
from alma.model.memory import MemoryVersion
from alma.model.query import Predicate, is_after, matches, sort_key
from alma.model.record import Record, RecordSpec
from alma.model.text import stored_terms
from alma.model.vector import Vector
from alma.paths import at_home
from alma.storage.base import (
    DEFAULT_MODEL,
    TEXT_LENGTH,
    ChainHead,
    ChainTable,
    Mark,
    MarkTable,
    Query,
    StorageBackend,
    Transaction,
)
from alma.storage.described import USUAL_DIMENSIONS, described
from alma.storage.document import from_document, timestamp_of, timestamp_text, to_document
from alma.storage.json_files import JsonFolder, Signature
from alma.storage.nearest import nearest
from alma.storage.primitives import RecordVector
from alma.storage.ranking import bm25

# The kind, the record, the model, and the part: 0 for the record's own vector, 1 and on for its passages.
VectorKey = tuple[str, str, str, int]
Table = dict[Any, Any]


@dataclass(frozen=True)
class _Format:
    """How one file's rows become values with keys, and back."""

    name: str
    read: Callable[[dict[str, Any]], tuple[Any, Any]]
    write: Callable[[Any, Any], dict[str, Any]]


class FileBasedStorage(StorageBackend):
    """A store in a folder with one JSON array for each kind; every write rewrites the files it changes."""

    storage_type = "file"

    def __init__(
        self,
        storage_dir: str | os.PathLike[str],
        embedding_dim: int = 384,
        embedding_model: str = DEFAULT_MODEL,
    ) -> None:
        super().__init__(embedding_dim, embedding_model)
        if not isinstance(storage_dir, str | os.PathLike) or not os.fspath(storage_dir):
            raise ConfigurationError(f"storage_dir must be the path of a folder, not {storage_dir!r}")
        folder = Path(storage_dir)
        if folder.exists() and not folder.is_dir():
            raise ConfigurationError(f"storage_dir {os.fspath(storage_dir)!r} is a file; name a folder")
        self._folder = JsonFolder(folder)
        self._cache: dict[str, tuple[Signature | None, Table]] = {}
        self._cache_lock = threading.Lock()
        self._closed = False
        if not self._is_furnished():
            with self._folder.writing():
                self._furnish()

    def _is_furnished(self) -> bool:
        with self._folder.reading():
            return self._folder.signature(Setting.spec.table) is not None

    def _furnish(self) -> None:
        """Write the documented settings, unless another process did while this one waited."""
        if not self._folder.read(Setting.spec.table):
            self._folder.commit({Setting.spec.table: [to_document(setting) for setting in default_settings()]})

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """The store that a configuration's `storage_dir` and `embedding_dim` describe."""
        settings = described(config)
        return cls(at_home(settings.storage_dir), embedding_dim=settings.embedding_dim or USUAL_DIMENSIONS)

    @contextmanager
    def _begin(self, by: Attribution, *, write: bool) -> Iterator[Transaction]:
        if self._closed:
            raise StorageError(f"the store {self._folder.folder} was closed")
        if not write:
            yield FileTransaction(self._tables(), by, self.embedding_dim, self.embedding_model, writable=False)
            return
        with self._folder.writing():
            tx = FileTransaction(self._tables(), by, self.embedding_dim, self.embedding_model, writable=True)
            yield tx
            tx.require_sound()
            if tx.changed:
                self._folder.commit({name: _rows(name, table) for name, table in tx.changed.items()})
                self._remember(tx.changed)

    def _generation(self) -> str:
        return repr([self._folder.signature(name) for name in _FORMATS])

    def _tables(self) -> dict[str, Table]:
        """The committed state of every file, read again only where a file changed."""
        # In this order: whoever waits for the folder must not keep the cache from the one it waits for.
        with self._folder.reading(), self._cache_lock:
            for format_ in _FORMATS.values():
                signature = self._folder.signature(format_.name)
                cached = self._cache.get(format_.name)
                if cached is None or cached[0] != signature:
                    self._cache[format_.name] = (signature, self._read(format_))
            return {name: table for name, (_, table) in self._cache.items()}

    def _remember(self, changed: Mapping[str, Table]) -> None:
        """What this process has just written need not be read again; no other can write until the lock is gone."""
        with self._cache_lock:
            self._cache.update({name: (self._folder.signature(name), table) for name, table in changed.items()})

    def _read(self, format_: _Format) -> Table:
        table: Table = {}
        for row in self._folder.read(format_.name):
            try:
                key, value = format_.read(row)
            except (ValidationError, KeyError, TypeError, ValueError) as exc:
                raise self._folder.damaged(format_.name, str(exc)) from exc
            if key in table:
                raise self._folder.damaged(format_.name, f"the id {key!r} occurs twice")
            table[key] = value
        return table

    def close(self) -> None:
        self._closed = True
        self._cache.clear()


class FileTransaction(Transaction):
    """A transaction on tables in memory; what changed is handed to the folder at the end."""

    def __init__(self, tables: dict[str, Table], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._tables = tables
        self.changed: dict[str, Table] = {}

    def table(self, name: str) -> Table:
        return self.changed.get(name, self._tables[name])

    def mutable(self, name: str) -> Table:
        """The table to change: a copy, so that other readers keep theirs."""
        if name not in self.changed:
            self.changed[name] = dict(self._tables[name])
        return self.changed[name]

    # ------------------------------------------------------------------ reading

    def _select(self, query: Query) -> list[Record]:
        found = sorted(self._fulfilling(query.spec, query.where), key=sort_key(query.order))
        if query.after is not None:
            found = [record for record in found if is_after(record, query.after, query.order)]
        return [self._with_vector(record) for record in found[: query.limit]]

    def _values(self, query: Query, names: Sequence[str]) -> list[tuple[Any, ...]]:
        return [
            tuple(len(record.text()) if name == TEXT_LENGTH else getattr(record, name) for name in names)
            for record in self._select(query)
        ]

    def _word_counts(self, spec: RecordSpec, words: Sequence[str], where: Predicate) -> tuple[int, dict[str, int]]:
        texts = [set(stored_terms(record.text())) for record in self._fulfilling(spec, where)]
        return len(texts), {word: sum(word in text for text in texts) for word in words}

    def _count(self, spec: RecordSpec, where: Predicate) -> int:
        return sum(1 for _ in self._fulfilling(spec, where))

    def _fulfilling(self, spec: RecordSpec, where: Predicate) -> Iterator[Record]:
        return (record for record in self.table(spec.table).values() if matches(where, record))

    def _with_vector(self, record: Record) -> Record:
        name = record.spec.vector_field
        if name is None:
            return _apart(record)
        return _apart(record, {name: self.table(_VECTORS).get((record.spec.kind, record.key, self.embedding_model, 0))})

    def _last_versions(self, kind: str, record_ids: Collection[str]) -> dict[str, MemoryVersion]:
        wanted = set(record_ids)
        last: dict[str, MemoryVersion] = {}
        for row in self.table(MemoryVersion.spec.table).values():
            if row.kind == kind and row.memory_id in wanted:
                known = last.get(row.memory_id)
                if known is None or known.version_number < row.version_number:
                    last[row.memory_id] = row
        return last

    def _matching(
        self, spec: RecordSpec, words: Sequence[str], where: Predicate, limit: int, *, exact: bool
    ) -> list[tuple[str, float]]:
        texts = {record.key: stored_terms(record.text()) for record in self._fulfilling(spec, where)}
        return bm25(texts, words)[:limit]

    def _word_scores(
        self, spec: RecordSpec, words: Sequence[str], keys: Sequence[str], where: Predicate
    ) -> dict[str, float]:
        scores = dict(self._matching(spec, words, where, len(self.table(spec.table)), exact=True))
        return {key: scores[key] for key in keys if key in scores}

    def _nearest(
        self, spec: RecordSpec, vector: Vector, model: str, where: Predicate, limit: int, *, exact: bool
    ) -> list[tuple[str, float]]:
        inside = {record.key for record in self._fulfilling(spec, where)}
        stored = self.table(_VECTORS).items()
        candidates = (
            (key, found.to_bytes())
            for (kind, key, of_model, _), found in stored
            if kind == spec.kind and of_model == model and key in inside
        )
        return nearest(vector, candidates, limit)

    # ------------------------------------------------------------------ writing

    def _insert(self, spec: RecordSpec, records: Sequence[Record]) -> None:
        table = self.mutable(spec.table)
        for record in records:
            stored = _numbered(record, table) if spec.numbered else record
            if stored.key in table:
                raise ConflictError(f"{spec.kind} {stored.key!r} exists already")
            table[stored.key] = _bare(stored)

    def _insert_first_versions(self, kind: str, keys: Sequence[str], moment: datetime) -> None:
        # Like the index of a database, which has a first version of each record once.
        for key in self._last_versions(kind, keys):
            raise ConflictError(f"{kind} {key!r} has a history already")
        super()._insert_first_versions(kind, keys, moment)

    def _replace(self, spec: RecordSpec, records: Sequence[Record], previous: Sequence[Record]) -> None:
        table = self.mutable(spec.table)
        for record in records:
            table[record.key] = _bare(record)

    def _remove(self, spec: RecordSpec, records: Sequence[Record]) -> None:
        table = self.mutable(spec.table)
        keys = {record.key for record in records}
        for key in keys:
            del table[key]
        gone = [each for each in self.table(_VECTORS) if each[0] == spec.kind and each[1] in keys]
        for each in gone:
            del self.mutable(_VECTORS)[each]

    def _put_vectors(self, spec: RecordSpec, vectors: Mapping[str, Vector], model: str) -> None:
        self.mutable(_VECTORS).update({(spec.kind, key, model, 0): vector for key, vector in vectors.items()})

    def _put_passages(self, spec: RecordSpec, passages: Mapping[str, Sequence[Vector]], model: str) -> None:
        self._forget_vectors(spec, passages, model, first_part=1)
        for key, vectors in passages.items():
            parts = enumerate(vectors, start=1)
            self.mutable(_VECTORS).update({(spec.kind, key, model, part): vector for part, vector in parts})

    def _drop_vectors(self, spec: RecordSpec, record_ids: Collection[str], model: str) -> None:
        self._forget_vectors(spec, record_ids, model, first_part=0)

    def _forget_vectors(self, spec: RecordSpec, keys: Collection[str], model: str, first_part: int) -> None:
        gone = [
            each
            for each in self.table(_VECTORS)
            if each[0] == spec.kind and each[1] in keys and each[2] == model and each[3] >= first_part
        ]
        for each in gone:
            del self.mutable(_VECTORS)[each]

    def _drop_other_vectors(self, spec: RecordSpec, record_ids: Collection[str], model: str) -> None:
        keys = set(record_ids)
        for each in [*self.table(_VECTORS)]:
            if each[0] == spec.kind and each[1] in keys and each[2] != model:
                del self.mutable(_VECTORS)[each]

    def _vectors_of(self, spec: RecordSpec, record_ids: Collection[str]) -> list[RecordVector]:
        keys = set(record_ids)
        found = [
            RecordVector(key, model, part, vector)
            for (kind, key, model, part), vector in self.table(_VECTORS).items()
            if kind == spec.kind and key in keys
        ]
        return sorted(found, key=lambda each: (each.record_id, each.model, each.part))

    def _erase(self) -> None:
        for name in _FORMATS:
            self.mutable(name).clear()

    def _without_vector(
        self, spec: RecordSpec, model: str, where: Predicate, limit: int, after: str | None
    ) -> list[Record]:
        lacking = sorted(self._lacking(spec, model, where), key=lambda record: record.key.encode())
        behind = (record for record in lacking if after is None or record.key.encode() > after.encode())
        return [self._with_vector(record) for record in islice(behind, limit)]

    def _count_without_vector(self, spec: RecordSpec, model: str, where: Predicate) -> int:
        return sum(1 for _ in self._lacking(spec, model, where))

    def _lacking(self, spec: RecordSpec, model: str, where: Predicate) -> Iterator[Record]:
        vectors = self.table(_VECTORS)
        return (each for each in self._fulfilling(spec, where) if (spec.kind, each.key, model, 0) not in vectors)

    def _is_half_moved(self, spec: RecordSpec, model: str) -> bool:
        if len(self.table(_MODELS)) < 2:
            return False
        vectors = self.table(_VECTORS)
        return any(kind == spec.kind and (kind, key, model, 0) not in vectors for kind, key, _, _ in vectors)

    def _models(self) -> list[str]:
        return sorted({each[2] for each in self.table(_VECTORS)})

    def _dims_of(self, model: str, claim: int | None) -> int | None:
        known: int | None = self.table(_MODELS).get(model)
        if known is None and claim is not None:
            self.mutable(_MODELS)[model] = claim
        return known if known is not None else claim

    def _marks(self) -> MarkTable:
        return FileMarks(self)

    def _chains(self) -> ChainTable:
        return FileChains(self)


class FileChains(ChainTable):
    """The head of the one audit chain as a file; a folder that has none yet begins it."""

    def __init__(self, tx: FileTransaction) -> None:
        self._tx = tx

    def take(self) -> ChainHead:
        known: ChainHead | None = self._tx.table(_CHAINS).get(1)
        return known or ChainHead(1, unchained=len(self._tx.table(AuditEvent.spec.table)))

    def move(self, head: ChainHead) -> None:
        self._tx.mutable(_CHAINS)[head.chain] = head

    def heads(self) -> list[ChainHead]:
        return [self.take()]


class FileMarks(MarkTable):
    """The outbox as a file."""

    def __init__(self, tx: FileTransaction) -> None:
        self._tx = tx

    def register(self, name: str, kinds: Sequence[str]) -> None:
        table = self._tx.mutable(_PROJECTIONS)
        for key in [key for key in table if key[0] == name]:
            del table[key]
        table.update({(name, kind): True for kind in kinds})

    def drop(self, name: str) -> None:
        for each in (_PROJECTIONS, _OUTBOX):
            table = self._tx.mutable(each)
            for key in [key for key in table if key[0] == name]:
                del table[key]

    def projections(self, kind: str) -> list[str]:
        return sorted(name for name, wanted in self._tx.table(_PROJECTIONS) if wanted == kind)

    def mark(self, projection: str, kind: str, keys: Sequence[str], moment: datetime) -> None:
        table = self._tx.mutable(_OUTBOX)
        for key in keys:
            known = table.get((projection, kind, key))
            generation, lease = (1, None) if known is None else (known.generation + 1, known.leased_until)
            table[projection, kind, key] = Mark(projection, kind, key, generation, moment, lease)

    def claim(self, projection: str, limit: int, moment: datetime, until: datetime) -> list[Mark]:
        free = [
            mark
            for mark in self.pending(projection)
            if not mark.parked and (mark.leased_until is None or mark.leased_until <= moment)
        ]
        claimed = [replace(mark, leased_until=until) for mark in free[:limit]]
        for mark in claimed:
            self._tx.mutable(_OUTBOX)[_mark_key(mark)] = mark
        return claimed

    def acknowledge(self, marks: Sequence[Mark]) -> int:
        table = self._tx.mutable(_OUTBOX)
        cleared = 0
        for mark in marks:
            known = table.get(_mark_key(mark))
            if known is not None and known.generation == mark.generation:
                del table[_mark_key(mark)]
                cleared += 1
            elif known is not None:
                table[_mark_key(mark)] = replace(known, leased_until=None)
        return cleared

    def fail(self, mark: Mark, error: str, park_after: int) -> None:
        table = self._tx.mutable(_OUTBOX)
        known = table.get(_mark_key(mark))
        if known is not None and known.generation == mark.generation:
            attempts = known.attempts + 1
            table[_mark_key(mark)] = replace(
                known, leased_until=None, attempts=attempts, error=error, parked=mark.attempts + 1 >= park_after
            )

    def unpark(self, projection: str) -> int:
        parked = [mark for mark in self.pending(projection) if mark.parked]
        for mark in parked:
            self._tx.mutable(_OUTBOX)[_mark_key(mark)] = replace(mark, parked=False, attempts=0, error=None)
        return len(parked)

    def pending(self, projection: str) -> list[Mark]:
        marks = [mark for key, mark in self._tx.table(_OUTBOX).items() if key[0] == projection]
        return sorted(marks, key=lambda mark: (mark.marked_at, mark.kind, mark.record_id))


# ---------------------------------------------------------------------- what the files hold

_VECTORS = "embeddings"
_MODELS = "embedding_models"
_PROJECTIONS = "projections"
_OUTBOX = "outbox"
_CHAINS = "audit_chains"


def _record_format(cls: type[Record]) -> _Format:
    def read(row: dict[str, Any]) -> tuple[Any, Record]:
        record = from_document(cls, row)
        return record.key, record

    return _Format(cls.spec.table, read, lambda _, record: to_document(record))


def _read_vector(row: dict[str, Any]) -> tuple[VectorKey, Vector]:
    vector = Vector.from_bytes(base64.b64decode(row["embedding"], validate=True))
    if len(vector) != row["dims"]:
        raise ValueError(f"the vector of {row['memory_id']!r} has {len(vector)} dimensions, not {row['dims']}")
    return (row["memory_type"], row["memory_id"], row["model"], row.get("part", 0)), vector


def _write_vector(key: VectorKey, vector: Vector) -> dict[str, Any]:
    encoded = base64.b64encode(vector.to_bytes()).decode()
    return {
        "memory_type": key[0],
        "memory_id": key[1],
        "model": key[2],
        "part": key[3],
        "dims": len(vector),
        "embedding": encoded,
    }


def _read_mark(row: dict[str, Any]) -> tuple[tuple[str, str, str], Mark]:
    lease = row.get("leased_until")
    times = {
        "marked_at": timestamp_of(row["marked_at"]),
        "leased_until": None if lease is None else timestamp_of(lease),
    }
    mark = Mark(**{**row, **times})
    return _mark_key(mark), mark


def _write_mark(_: Any, mark: Mark) -> dict[str, Any]:
    lease = mark.leased_until
    return {
        "projection": mark.projection,
        "kind": mark.kind,
        "record_id": mark.record_id,
        "generation": mark.generation,
        "marked_at": timestamp_text(mark.marked_at),
        "leased_until": None if lease is None else timestamp_text(lease),
        "attempts": mark.attempts,
        "error": mark.error,
        "parked": mark.parked,
    }


_FORMATS = {
    format_.name: format_
    for format_ in (
        *(_record_format(cls) for cls in KINDS),
        _Format(_VECTORS, _read_vector, _write_vector),
        _Format(_MODELS, lambda row: (row["model"], row["dims"]), lambda key, dims: {"model": key, "dims": dims}),
        _Format(
            _PROJECTIONS,
            lambda row: ((row["projection"], row["kind"]), True),
            lambda key, _: {"projection": key[0], "kind": key[1]},
        ),
        _Format(_OUTBOX, _read_mark, _write_mark),
        _Format(_CHAINS, lambda row: (row["chain"], ChainHead(**row)), lambda _, head: head._asdict()),
    )
}


def new_tables() -> dict[str, Table]:
    """The tables of a new store, empty but for the documented settings."""
    tables: dict[str, Table] = {name: {} for name in _FORMATS}
    tables[Setting.spec.table] = {setting.key: setting for setting in default_settings()}
    return tables


def _rows(name: str, table: Table) -> Iterable[dict[str, Any]]:
    write = _FORMATS[name].write
    return [write(key, value) for key, value in table.items()]


def _mark_key(mark: Mark) -> tuple[str, str, str]:
    return mark.projection, mark.kind, mark.record_id


def _numbered(record: Record, table: Table) -> Record:
    """The record with the next number as its id."""
    return type(record).trusted({**record.values(), record.spec.key: max(table, default=0) + 1})


def _bare(record: Record) -> Record:
    """The record without its vector, which has a file of its own."""
    name = record.spec.vector_field
    return _apart(record, {} if name is None else {name: None})


def _apart(record: Record, values: Mapping[str, Any] = MappingProxyType({})) -> Record:
    """The record with these values; whoever changes the inside of what one holds leaves the other as it is."""
    inside = {name: deepcopy(held) for name in _with_an_inside(record.spec) if (held := getattr(record, name))}
    return type(record).trusted({**record.values(), **inside, **values}) if inside or values else record


@cache
def _with_an_inside(spec: RecordSpec) -> tuple[str, ...]:
    return tuple(field.name for field in spec.fields if field.type is FieldType.JSON)
