"""CosmosBackend: the primitives of a transaction on the containers of one database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from alma.errors import ConflictError
from alma.model.governance import AuditEvent
from alma.model.memory import MemoryVersion
from alma.model.query import EVERYTHING, And, Compare, In, Missing, Order, Predicate, is_after, matches, sort_key
from alma.model.record import Record, RecordSpec
from alma.model.vector import Vector
from alma.storage.audit import ChainHead, ChainTable
from alma.storage.backend import TEXT_LENGTH, Backend, Query, RecordVector
from alma.storage.cosmos import words
from alma.storage.cosmos.documents import EMBEDDING, OURS, PARTITION, TABLES, partition_field, partition_of
from alma.storage.cosmos.marks import CosmosMarks
from alma.storage.cosmos.queries import KEY, Condition, behind, column, condition, keys_in, present
from alma.storage.cosmos.vectors import Vectors
from alma.storage.cosmos.view import Seen, View
from alma.storage.outbox import MarkTable
from alma.storage.ranking import owners

_KEYS_AT_ONCE = 100


class CosmosBackend(Backend):
    """Reads and writes of one transaction; the store commits what the view has changed."""

    def __init__(self, view: View, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.view = view
        self._vectors = Vectors(self)

    # ------------------------------------------------------------------ reading

    def select(self, query: Query) -> list[Record]:
        spec = query.spec
        found = [self.with_vector(seen, spec) for seen in self._selected(query)]
        return self._vectors.attached(spec, found)

    def with_vector(self, seen: Seen, spec: RecordSpec) -> Record:
        """The record of a document, as a copy, with the embedding in it if that is of the store's own model."""
        record = seen.record(spec.cls)
        name = spec.vector_field
        if name is None:
            return record.apart()
        embedding = (
            (seen.document or {}).get(EMBEDDING) if self._vectors.is_in_documents(self.embedding_model) else None
        )
        return record.apart({name: None if embedding is None else Vector(embedding)})

    def values(self, query: Query, names: Sequence[str]) -> list[tuple[Any, ...]]:
        return [
            tuple(len(record.text()) if name == TEXT_LENGTH else getattr(record, name) for name in names)
            for record in (seen.record(query.spec.cls) for seen in self._selected(query))
        ]

    def count(self, spec: RecordSpec, where: Predicate) -> int:
        asked = condition(spec, where)
        if not asked.exact:
            return len(self._selected(Query(spec, where)))
        return self.view.count(spec.table, asked, self.fits(spec, where), self.partition(spec, where))

    def last_versions(self, kind: str, record_ids: Collection[str]) -> dict[str, MemoryVersion]:
        last: dict[str, MemoryVersion] = {}
        keys = list(record_ids)
        for start in range(0, len(keys), _KEYS_AT_ONCE):
            where = And(Compare("kind", "eq", kind), In("memory_id", keys[start : start + _KEYS_AT_ONCE]))
            for row in self.select(Query(MemoryVersion.spec, where)):
                assert isinstance(row, MemoryVersion)
                known = last.get(row.memory_id)
                if known is None or known.version_number < row.version_number:
                    last[row.memory_id] = row
        return last

    def partition(self, spec: RecordSpec, where: Predicate) -> str | None:
        """The only partition in which records can match a predicate; None for several."""
        name = partition_field(spec)
        if name is None or spec is AuditEvent.spec:
            return None
        listed = words.listed(where, name) if name == "memory_id" else owners(where).get(name)
        return listed[0] if listed is not None and len(set(listed)) == 1 else None

    def seen(self, spec: RecordSpec, where: Predicate, asked: Condition | None = None, **options: Any) -> list[Seen]:
        """The documents that match a predicate, and a further condition."""
        asked = condition(spec, where) if asked is None else asked
        fits = self.fits(spec, where)
        keys = keys_in(spec, where)
        found: list[Seen] = []
        if keys is not None and len(keys) > _KEYS_AT_ONCE:
            for start in range(0, len(keys), _KEYS_AT_ONCE):
                part = And(where, In(spec.key, keys[start : start + _KEYS_AT_ONCE]))
                found += self.seen(spec, _without_list(part, spec), **options)
            return found
        found = self.view.documents(
            spec.table, asked, fits, keys=keys, partition=self.partition(spec, where), **options
        )
        return found if asked.exact else [seen for seen in found if fits(seen)]

    def fits(self, spec: RecordSpec, where: Predicate) -> Callable[[Seen], bool]:
        """Whether the record of a document matches a predicate."""
        return lambda seen: matches(where, seen.record(spec.cls))

    def _selected(self, query: Query) -> list[Seen]:
        spec, order = query.spec, query.order
        where = query.where if query.after is None else And(query.where, behind(spec, query.after, order))
        asked = condition(spec, where)
        if query.limit is None or not asked.exact or keys_in(spec, where) is not None:
            found = self.seen(spec, where, asked)
        else:
            found = self._first(spec, where, asked, order, query.limit) if query.limit else []
        rank = sort_key(order)
        cursor = query.after
        ranked = sorted(found, key=lambda seen: rank(seen.record(spec.cls)))
        behind_cursor = (seen for seen in ranked if cursor is None or is_after(seen.record(spec.cls), cursor, order))
        return list(islice(behind_cursor, query.limit))

    def _first(
        self, spec: RecordSpec, where: Predicate, asked: Condition, order: Sequence[Order], limit: int
    ) -> list[Seen]:
        """A superset of the first records in an order: the service sorts by the first term, and gives all of those
        that are equal to the last."""
        if not order:
            return self.seen(spec, where, asked, order=KEY, top=limit)
        term = order[0]
        path = column(spec, term.field)
        direction = "ASC" if term.direction == "asc" else "DESC"
        found = self.seen(spec, where, asked.also(present(spec, term.field)), order=f"{path} {direction}", top=limit)
        found = [seen for seen in found if getattr(seen.record(spec.cls), term.field) is not None]
        if len(found) < limit:
            return found + (self.seen(spec, And(where, Missing(term.field))) if self._may_lack(spec, term) else [])
        rank = sort_key((term,))
        last = sorted(found, key=lambda seen: rank(seen.record(spec.cls)))[limit - 1].record(spec.cls)
        equal = self.seen(spec, And(where, Compare(term.field, "eq", getattr(last, term.field))))
        known = {seen.record(spec.cls).key for seen in equal}
        return equal + [seen for seen in found if seen.record(spec.cls).key not in known]

    def _may_lack(self, spec: RecordSpec, term: Order) -> bool:
        return spec.by_name[term.field].nullable

    # ------------------------------------------------------------------ searching

    def word_counts(self, spec: RecordSpec, words_: Sequence[str], where: Predicate) -> tuple[int, dict[str, int]]:
        return words.counts(self, spec, words_, where)

    def matching(
        self, spec: RecordSpec, words_: Sequence[str], where: Predicate, limit: int, *, exact: bool
    ) -> list[tuple[str, float]]:
        return words.best(self, spec, words_, where)[:limit]

    def word_scores(
        self, spec: RecordSpec, words_: Sequence[str], keys: Sequence[str], where: Predicate
    ) -> dict[str, float]:
        scores = dict(words.best(self, spec, words_, where, keys))
        return {key: scores[key] for key in keys if key in scores}

    def nearest(
        self, spec: RecordSpec, vector: Vector, model: str, where: Predicate, limit: int, *, exact: bool
    ) -> list[tuple[str, float]]:
        return self._vectors.nearest(spec, vector, model, where, limit, exact=exact)

    # ------------------------------------------------------------------ writing

    def lock(self, spec: RecordSpec, keys: Sequence[str], where: Predicate) -> list[Record]:
        found = super().lock(spec, keys, EVERYTHING)
        self.view.absent(spec.table, keys)
        return [record for record in found if matches(where, record)]

    def insert(self, spec: RecordSpec, records: Sequence[Record]) -> None:
        if spec.numbered:
            records = self._numbered(spec, records)
        else:
            self._require_new(spec, [record.key for record in records])
        if spec is MemoryVersion.spec:
            self._require_new_versions(records)
        for record in records:
            self.view.put_record(record, None)

    def _require_new(self, spec: RecordSpec, keys: Sequence[str]) -> None:
        taken = self.seen(spec, In(spec.key, keys))
        if taken or len(set(keys)) < len(keys):
            known = taken[0].record(spec.cls).key if taken else keys[0]
            raise ConflictError(f"{spec.kind} {known!r} exists already")

    def _numbered(self, spec: RecordSpec, records: Sequence[Record]) -> list[Record]:
        last = self.view.state["numbers"].get(spec.kind, 0)
        self.view.state["numbers"][spec.kind] = last + len(records)
        return [
            type(record).trusted({**record.values(), spec.key: number})
            for number, record in enumerate(records, start=last + 1)
        ]

    def _require_new_versions(self, versions: Sequence[Record]) -> None:
        by_kind: dict[str, list[MemoryVersion]] = {}
        for version in versions:
            assert isinstance(version, MemoryVersion)
            by_kind.setdefault(version.kind, []).append(version)
        for kind, rows in by_kind.items():
            last = {
                key: row.version_number
                for key, row in self.last_versions(kind, {row.memory_id for row in rows}).items()
            }
            for row in sorted(rows, key=lambda row: row.version_number):
                if row.version_number <= last.get(row.memory_id, 0):
                    self._require_free(row)
                last[row.memory_id] = max(row.version_number, last.get(row.memory_id, 0))

    def _require_free(self, row: MemoryVersion) -> None:
        same = (Compare(name, "eq", getattr(row, name)) for name in ("kind", "memory_id", "version_number"))
        if self.count(MemoryVersion.spec, And(*same)):
            raise ConflictError(f"version {row.version_number} of {row.kind} {row.memory_id!r} exists already")

    def replace(self, spec: RecordSpec, records: Sequence[Record], previous: Sequence[Record]) -> None:
        self.load(spec, [record.key for record in records])
        for record in records:
            document = self.view.current(spec.table, record.key) or {}
            self.view.put_record(record, document.get(EMBEDDING))
            if document and document[PARTITION] != partition_of(record):
                self._vectors.move(spec, record.key, partition_of(record))

    def load(self, spec: RecordSpec, keys: Iterable[str]) -> None:
        """Read the documents of these keys that this transaction has not read yet."""
        unknown = [key for key in keys if self.view.current(spec.table, key) is None]
        if unknown:
            self.seen(spec, In(spec.key, unknown))

    def remove(self, spec: RecordSpec, records: Sequence[Record]) -> None:
        keys = [record.key for record in records]
        self.load(spec, keys)
        self._vectors.forget(spec, keys)
        for key in keys:
            self.view.delete(spec.table, key)

    def erase(self) -> None:
        for table in TABLES:
            for seen in self.view.documents(table, Condition(), lambda _: True):
                self.view.delete(table, (seen.document or {})[OURS]["key"])
        self.view.state.update(new_state())

    # ------------------------------------------------------------------ vectors

    def put_vectors(self, spec: RecordSpec, vectors: Mapping[str, Vector], model: str) -> None:
        self._vectors.put(spec, vectors, model)

    def put_passages(self, spec: RecordSpec, passages: Mapping[str, Sequence[Vector]], model: str) -> None:
        self._vectors.put_passages(spec, passages, model)

    def drop_vectors(self, spec: RecordSpec, record_ids: Collection[str], model: str) -> None:
        self._vectors.drop(spec, record_ids, lambda held: held == model)

    def drop_other_vectors(self, spec: RecordSpec, record_ids: Collection[str], model: str) -> None:
        self._vectors.drop(spec, record_ids, lambda held: held != model)

    def vectors_of(self, spec: RecordSpec, record_ids: Collection[str]) -> list[RecordVector]:
        return self._vectors.of(spec, record_ids)

    def without_vector(
        self, spec: RecordSpec, model: str, where: Predicate, limit: int, after: str | None
    ) -> list[Record]:
        lacking = self._lacking(spec, model, where, after)
        rank = sort_key(())
        found = sorted((self.with_vector(seen, spec) for seen in lacking), key=rank)[:limit]
        return self._vectors.attached(spec, found)

    def count_without_vector(self, spec: RecordSpec, model: str, where: Predicate) -> int:
        return len(self._lacking(spec, model, where, None))

    def _lacking(self, spec: RecordSpec, model: str, where: Predicate, after: str | None) -> list[Seen]:
        if after is not None:
            where = And(where, Compare(spec.key, "gt", after))
        asked = condition(spec, where)
        if self._vectors.is_in_documents(model):
            asked = asked.also("NOT IS_DEFINED(c.embedding)")
        apart = self._vectors.keys_apart(spec, model)
        return [
            seen
            for seen in self.seen(spec, where, asked)
            if seen.record(spec.cls).key not in apart and not self._vectors.is_held(seen, model)
        ]

    def is_half_moved(self, spec: RecordSpec, model: str) -> bool:
        return self._vectors.is_half_moved(spec, model)

    def models(self) -> list[str]:
        return sorted(name for name, number in self.view.state["vectors"].items() if number)

    def dims_of(self, model: str, claim: int | None) -> int | None:
        return self._vectors.dims_of(model, claim)

    # ------------------------------------------------------------------ audit, outbox

    @property
    def chains(self) -> ChainTable:
        return CosmosChain(self.view)

    @property
    def outbox(self) -> MarkTable:
        return CosmosMarks(self.view)


class CosmosChain(ChainTable):
    """The head of the single audit chain, in the state of the store."""

    def __init__(self, view: View) -> None:
        self._view = view

    def take(self) -> ChainHead:
        return ChainHead(*self._view.state["chain"])

    def move(self, head: ChainHead) -> None:
        self._view.state["chain"] = list(head)

    def heads(self) -> list[ChainHead]:
        return [self.take()]


def new_state() -> dict[str, Any]:
    """The state of an empty store."""
    return {"models": {}, "vectors": {}, "apart": {}, "projections": {}, "numbers": {}, "chain": list(ChainHead(1))}


def _without_list(predicate: And, spec: RecordSpec) -> And:
    """A predicate whose last part lists fewer keys than another list inside: that one is left out."""
    *parts, keys = predicate.parts
    return And(*(_unlisted(part, spec) for part in parts), keys)


def _unlisted(predicate: Predicate, spec: RecordSpec) -> Predicate:
    match predicate:
        case In(name, _) if name == spec.key:
            return EVERYTHING
        case And(parts):
            return And(*(_unlisted(part, spec) for part in parts))
    return predicate
