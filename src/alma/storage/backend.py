"""Backend: the primitives that a store implements inside one transaction, and their value types."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar

from alma.model.governance import Attribution
from alma.model.memory import ChangeType, Memory, MemoryRelationship, MemoryVersion
from alma.model.query import EVERYTHING, And, Compare, Cursor, In, Order, Predicate
from alma.model.record import Record, RecordSpec
from alma.model.vector import Vector
from alma.storage.audit import ChainTable
from alma.storage.feed import NO_FEED, VectorFeed
from alma.storage.outbox import MarkTable
from alma.storage.traversal import Reached, Walk

T = TypeVar("T", bound=Record)

TEXT_LENGTH = "text length"
"""An additional field of `values`: the length of the searchable text in characters or bytes."""


@dataclass(frozen=True, slots=True)
class Hit(Generic[T]):
    """A search result: a record and its score."""

    record: T
    score: float


class RecordVector(NamedTuple):
    """A vector of a record: its model and its part, which is 0 for the record's own vector and 1 and up for
    passages."""

    record_id: str
    model: str
    part: int
    vector: Vector


@dataclass(frozen=True, slots=True)
class Reads:
    """The number of reads of a record, and the time of the last one."""

    count: int
    last: datetime


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed and scoped query."""

    spec: RecordSpec
    where: Predicate = EVERYTHING
    order: tuple[Order, ...] = ()
    limit: int | None = None
    after: Cursor | None = None
    for_update: bool = False


class Backend(ABC):
    """The primitives of one open transaction, on which `Transaction` implements every operation.

    Arguments are validated before: predicates are parsed and limited to a scope, vectors have the right length, and
    writes are allowed. A store must implement the abstract methods. The others have a default implementation, which a
    database may replace by a faster one.
    """

    def __init__(self, embedding_dim: int, embedding_model: str, *, writable: bool) -> None:
        self.embedding_dim = embedding_dim
        self.embedding_model = embedding_model
        self.writable = writable

    # ------------------------------------------------------------------ reading

    @abstractmethod
    def select(self, query: Query) -> list[Record]:
        """The records that match the query, with tags and the vector of the store's own model."""

    @abstractmethod
    def values(self, query: Query, names: Sequence[str]) -> list[tuple[Any, ...]]:
        """These fields, or `TEXT_LENGTH`, of the records that match the query."""

    @abstractmethod
    def count(self, spec: RecordSpec, where: Predicate) -> int:
        """The number of records that match the predicate."""

    def size(self, spec: RecordSpec, where: Predicate) -> int:
        """The approximate number of records in the scope of a predicate, which a store may estimate."""
        return self.count(spec, where)

    def lock(self, spec: RecordSpec, keys: Sequence[str], where: Predicate) -> list[Record]:
        """The records with these keys that match the predicate, locked until the end of the transaction."""
        return self.select(Query(spec, And(where, In(spec.key, keys)), for_update=True)) if keys else []

    # ------------------------------------------------------------------ searching

    @abstractmethod
    def word_counts(self, spec: RecordSpec, words: Sequence[str], where: Predicate) -> tuple[int, dict[str, int]]:
        """The number of records, and the number of those with each term; large numbers may be estimates."""

    @abstractmethod
    def matching(
        self, spec: RecordSpec, words: Sequence[str], where: Predicate, limit: int, *, exact: bool
    ) -> list[tuple[str, float]]:
        """The keys and BM25 scores of the records with at least one of the words, best first, then by id. If too many
        records match, the most common words may be left out. Without `exact`, tie-breaking is arbitrary.
        """

    @abstractmethod
    def word_scores(
        self, spec: RecordSpec, words: Sequence[str], keys: Sequence[str], where: Predicate
    ) -> dict[str, float]:
        """The scores of `matching` for those of these records that have any of the words, counting every word."""

    @abstractmethod
    def nearest(
        self, spec: RecordSpec, vector: Vector, model: str, where: Predicate, limit: int, *, exact: bool
    ) -> list[tuple[str, float]]:
        """The ids of the records by descending cosine of their best vector, then by id. A zero vector has cosine 0 with
        everything. Without `exact`, an approximate index may be used.
        """

    # ------------------------------------------------------------------ writing

    @abstractmethod
    def insert(self, spec: RecordSpec, records: Sequence[Record]) -> None:
        """Write new records with tags and full text.

        A `numbered` kind gets the next number as its id. An existing id, or an existing version number of a record, is
        a ConflictError.
        """

    @abstractmethod
    def replace(self, spec: RecordSpec, records: Sequence[Record], previous: Sequence[Record]) -> None:
        """Overwrite existing records with tags and full text."""

    @abstractmethod
    def remove(self, spec: RecordSpec, records: Sequence[Record]) -> None:
        """Delete records with their tags, full text and vectors of every model."""

    @abstractmethod
    def erase(self) -> None:
        """Delete everything in the store: records, history, audit, vectors, models and marks."""

    def count_reads(self, spec: RecordSpec, reads: Mapping[str, Reads]) -> None:
        """Add to the access counters of these records."""
        known = self.lock(spec, list(reads), EVERYTHING)
        self.replace(spec, [_with_reads(record, reads[record.key]) for record in known], known)

    # ------------------------------------------------------------------ vectors

    @abstractmethod
    def put_vectors(self, spec: RecordSpec, vectors: Mapping[str, Vector], model: str) -> None:
        """Write the records' own vectors of one model, replacing existing ones; passages are not changed."""

    @abstractmethod
    def put_passages(self, spec: RecordSpec, passages: Mapping[str, Sequence[Vector]], model: str) -> None:
        """Replace the passages of one model."""

    @abstractmethod
    def drop_vectors(self, spec: RecordSpec, record_ids: Collection[str], model: str) -> None:
        """Delete the vectors of one model, passages included."""

    @abstractmethod
    def drop_other_vectors(self, spec: RecordSpec, record_ids: Collection[str], model: str) -> None:
        """Delete the vectors of every model but this one."""

    @abstractmethod
    def vectors_of(self, spec: RecordSpec, record_ids: Collection[str]) -> list[RecordVector]:
        """All vectors of these records, of every model, with passages in order."""

    @abstractmethod
    def without_vector(
        self, spec: RecordSpec, model: str, where: Predicate, limit: int, after: str | None
    ) -> list[Record]:
        """The records without a vector of the model, by id, starting after the given id."""

    @abstractmethod
    def count_without_vector(self, spec: RecordSpec, model: str, where: Predicate) -> int:
        """The number of records without a vector of the model."""

    @abstractmethod
    def is_half_moved(self, spec: RecordSpec, model: str) -> bool:
        """Whether any record has vectors of other models but none of this one."""

    @abstractmethod
    def models(self) -> list[str]:
        """The models with vectors in this store, by name."""

    @abstractmethod
    def dims_of(self, model: str, claim: int | None) -> int | None:
        """The vector length of a model; if there is none yet, the claim is stored and returned."""

    # ------------------------------------------------------------------ history, audit, outbox, feed

    @abstractmethod
    def last_versions(self, kind: str, record_ids: Collection[str]) -> dict[str, MemoryVersion]:
        """The newest version of each of these records, if it has one."""

    @property
    @abstractmethod
    def chains(self) -> ChainTable:
        """The heads of the audit hash chains."""

    @property
    @abstractmethod
    def outbox(self) -> MarkTable:
        """The outbox: the marks for external indexes."""

    @property
    def feed(self) -> VectorFeed:
        """The vector feed, for stores with `Capability.VECTOR_FEED`."""
        return NO_FEED

    def supersede(
        self, record: Record, previous: Record, by: Attribution, moment: datetime, change: ChangeType | None
    ) -> bool:
        """A faster way to write the version of a changed record; returns False if the database has none."""
        return False

    def begin_history(
        self, kind: str, keys: Sequence[str], by: Attribution, moment: datetime, change: ChangeType
    ) -> bool:
        """A faster way to write the first versions of new records; returns False if the database has none."""
        return False

    def append_event(self, event: Mapping[str, Any]) -> bool:
        """A faster way to append an audit event to a free chain; returns False if the database has none."""
        return False

    def unchanged_since(self, query: Query, moment: datetime) -> list[Record]:
        """The records that match the query and have not changed since then, in order."""
        newest = {row.memory_id: row for row in self._versions_of(query.spec.kind)}
        then = {key for key, row in newest.items() if row.created_at <= moment}
        found = (record for record in self.select(replace(query, limit=None)) if record.key in then)
        return list(islice(found, query.limit))

    def changed_since(self, kind: str, moment: datetime, keys: Collection[str] | None) -> list[MemoryVersion]:
        """The version at that time of every record, or of these, that has a newer version now."""
        newest = {row.memory_id: row for row in self._versions_of(kind)}
        then = {row.memory_id: row for row in self._versions_of(kind) if row.created_at <= moment}
        changed = (row for key, row in then.items() if newest[key].version_number > row.version_number)
        return [row for row in changed if keys is None or row.memory_id in keys]

    def _versions_of(self, kind: str) -> list[MemoryVersion]:
        """Every version of the kind's records, by number."""
        query = Query(MemoryVersion.spec, Compare("kind", "eq", kind), (Order("version_number"),))
        return [row for row in self.select(query) if isinstance(row, MemoryVersion)]

    # ------------------------------------------------------------------ relationships

    def reachable(self, walk: Walk) -> list[Reached]:
        """The memories that a traversal reaches, nearest first, then by id, by one query per step. Databases use one
        recursive statement.
        """
        memory, edge = Memory.spec, MemoryRelationship.spec

        def seen(ids: Collection[str]) -> set[str]:
            return {str(r.key) for r in self.select(Query(memory, And(walk.where, In(memory.key, sorted(ids)))))}

        here = seen(set(walk.starts))
        depths = dict.fromkeys(here, 0)
        for depth in range(1, walk.max_depth + 1):
            edges = self.select(Query(edge, walk.from_any(sorted(here)))) if here else []
            led = {end for each in edges if isinstance(each, MemoryRelationship) for end in walk.step(each, here)}
            here = seen(led - depths.keys())
            depths.update(dict.fromkeys(here, depth))
        reached = [Reached(key, depth) for key, depth in depths.items() if depth]
        return sorted(reached, key=lambda each: (each.depth, each.id))[: walk.limit]

    # ------------------------------------------------------------------ concurrency

    def reserve(self, spec: RecordSpec, keys: Sequence[str]) -> None:  # noqa: B027 - most stores need nothing here
        """Lock ids that may not exist yet, if the primary key alone does not make concurrent inserts wait."""

    def hold(self, name: str) -> None:  # noqa: B027 - a store with one writer at a time needs nothing here
        """Lock a name until the transaction ends; other transactions that lock it wait."""

    def pipeline(self, records: int) -> AbstractContextManager[Any]:
        """Pipeline the statements of a write of this many records, if that saves round trips."""
        return nullcontext()

    def translating(self) -> AbstractContextManager[None]:
        """Translate driver errors into ALMA's, for callers that handle an error inside the transaction."""
        return nullcontext()


def _with_reads(record: Any, reads: Reads) -> Record:
    counted: Record = record.replace(
        access_count=record.access_count + reads.count, last_accessed_at=max(record.last_accessed_at, reads.last)
    )
    return counted
