"""Backend: what a store must be able to do inside one transaction, and the values this takes and gives."""

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
"""What `values` takes beside fields: how long the searchable text is, in characters or bytes."""


@dataclass(frozen=True, slots=True)
class Hit(Generic[T]):
    """A record a search found and how well it matches."""

    record: T
    score: float


class RecordVector(NamedTuple):
    """One of a record's vectors: of which model, and whether its own (part 0) or that of a passage (1 and on)."""

    record_id: str
    model: str
    part: int
    vector: Vector


@dataclass(frozen=True, slots=True)
class Reads:
    """How often a record was read, and when last."""

    count: int
    last: datetime


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query that a backend can run as it is."""

    spec: RecordSpec
    where: Predicate = EVERYTHING
    order: tuple[Order, ...] = ()
    limit: int | None = None
    after: Cursor | None = None
    for_update: bool = False


class Backend(ABC):
    """The primitives of one open transaction; every operation of `Transaction` is written on these.

    A backend trusts what it is given: predicates are parsed and bounded by a scope, vectors have the right length, and
    whether the transaction may write was checked. The abstract methods are what a store must provide. The others have
    a definition in terms of these, which a database may replace by a faster one.
    """

    def __init__(self, embedding_dim: int, embedding_model: str, *, writable: bool) -> None:
        self.embedding_dim = embedding_dim
        self.embedding_model = embedding_model
        self.writable = writable

    # ------------------------------------------------------------------ reading

    @abstractmethod
    def select(self, query: Query) -> list[Record]:
        """The records that fulfil the query, with tags and the vector of the store's own model."""

    @abstractmethod
    def values(self, query: Query, names: Sequence[str]) -> list[tuple[Any, ...]]:
        """These fields, or `TEXT_LENGTH`, of the records that fulfil the query."""

    @abstractmethod
    def count(self, spec: RecordSpec, where: Predicate) -> int:
        """How many records fulfil the predicate."""

    def size(self, spec: RecordSpec, where: Predicate) -> int:
        """About how many records lie in the scope of a predicate; a store may know without counting them."""
        return self.count(spec, where)

    def lock(self, spec: RecordSpec, keys: Sequence[str], where: Predicate) -> list[Record]:
        """The records with these keys that fulfil the predicate, locked against other writers until the end."""
        return self.select(Query(spec, And(where, In(spec.key, keys)), for_update=True)) if keys else []

    # ------------------------------------------------------------------ searching

    @abstractmethod
    def word_counts(self, spec: RecordSpec, words: Sequence[str], where: Predicate) -> tuple[int, dict[str, int]]:
        """How many records there are, and how many of them have each term; large numbers may be estimates."""

    @abstractmethod
    def matching(
        self, spec: RecordSpec, words: Sequence[str], where: Predicate, limit: int, *, exact: bool
    ) -> list[tuple[str, float]]:
        """The keys of the records that contain at least one of the words with BM25 scores, best first, then by id.

        Where there are too many such records, the most common words may be left out. Without `exact`, ties may be
        broken in any way.
        """

    @abstractmethod
    def word_scores(
        self, spec: RecordSpec, words: Sequence[str], keys: Sequence[str], where: Predicate
    ) -> dict[str, float]:
        """What `matching` would score those of these records that have any of the words, each word counting."""

    @abstractmethod
    def nearest(
        self, spec: RecordSpec, vector: Vector, model: str, where: Predicate, limit: int, *, exact: bool
    ) -> list[tuple[str, float]]:
        """The ids of the records by falling cosine of their best vector, then by id.

        A zero vector has cosine 0 with everything. Without `exact`, an approximate index may answer.
        """

    # ------------------------------------------------------------------ writing

    @abstractmethod
    def insert(self, spec: RecordSpec, records: Sequence[Record]) -> None:
        """Write new records with tags and full text.

        A kind that is `numbered` gets the next number as its id. An id in use is a ConflictError, and so is a version
        number that a record has already.
        """

    @abstractmethod
    def replace(self, spec: RecordSpec, records: Sequence[Record], previous: Sequence[Record]) -> None:
        """Overwrite existing records with tags and full text."""

    @abstractmethod
    def remove(self, spec: RecordSpec, records: Sequence[Record]) -> None:
        """Delete records with their tags, full text and vectors of every model."""

    @abstractmethod
    def erase(self) -> None:
        """Delete everything the store holds: records, history, audit, vectors, models and marks."""

    def count_reads(self, spec: RecordSpec, reads: Mapping[str, Reads]) -> None:
        """Add to the access counters of these records."""
        known = self.lock(spec, list(reads), EVERYTHING)
        self.replace(spec, [_with_reads(record, reads[record.key]) for record in known], known)

    # ------------------------------------------------------------------ vectors

    @abstractmethod
    def put_vectors(self, spec: RecordSpec, vectors: Mapping[str, Vector], model: str) -> None:
        """Write the records' own vectors of one model, replacing those there are and leaving the passages."""

    @abstractmethod
    def put_passages(self, spec: RecordSpec, passages: Mapping[str, Sequence[Vector]], model: str) -> None:
        """Write the passages of one model in place of those the records have."""

    @abstractmethod
    def drop_vectors(self, spec: RecordSpec, record_ids: Collection[str], model: str) -> None:
        """Delete the vectors of one model, passages included."""

    @abstractmethod
    def drop_other_vectors(self, spec: RecordSpec, record_ids: Collection[str], model: str) -> None:
        """Delete the vectors of every model but this one."""

    @abstractmethod
    def vectors_of(self, spec: RecordSpec, record_ids: Collection[str]) -> list[RecordVector]:
        """Every vector of these records, of every model, passages in order."""

    @abstractmethod
    def without_vector(
        self, spec: RecordSpec, model: str, where: Predicate, limit: int, after: str | None
    ) -> list[Record]:
        """The records that have no vector of the model, by id, from behind the id that is given."""

    @abstractmethod
    def count_without_vector(self, spec: RecordSpec, model: str, where: Predicate) -> int:
        """How many records have no vector of the model."""

    @abstractmethod
    def is_half_moved(self, spec: RecordSpec, model: str) -> bool:
        """Whether any record has vectors of other models and none of this one."""

    @abstractmethod
    def models(self) -> list[str]:
        """The models of which this store has vectors, by name."""

    @abstractmethod
    def dims_of(self, model: str, claim: int | None) -> int | None:
        """The vector length this store keeps for a model; where there is none yet, the claim becomes it."""

    # ------------------------------------------------------------------ history, audit, outbox, feed

    @abstractmethod
    def last_versions(self, kind: str, record_ids: Collection[str]) -> dict[str, MemoryVersion]:
        """The newest version of each of these records that has one."""

    @property
    @abstractmethod
    def chains(self) -> ChainTable:
        """The heads of the audit chains."""

    @property
    @abstractmethod
    def outbox(self) -> MarkTable:
        """The marks for the indexes beside the store."""

    @property
    def feed(self) -> VectorFeed:
        """Every vector in the order it was stored, for stores with `Capability.VECTOR_FEED`."""
        return NO_FEED

    def supersede(
        self, record: Record, previous: Record, by: Attribution, moment: datetime, change: ChangeType | None
    ) -> bool:
        """Write the version of a changed record in fewer steps, where the database can; says whether it did."""
        return False

    def begin_history(
        self, kind: str, keys: Sequence[str], by: Attribution, moment: datetime, change: ChangeType
    ) -> bool:
        """Write the first versions of new records in fewer steps, where the database can; says whether it did."""
        return False

    def append_event(self, event: Mapping[str, Any]) -> bool:
        """Add an audit event to a free chain in one step, where the database can; says whether it did."""
        return False

    def unchanged_since(self, query: Query, moment: datetime) -> list[Record]:
        """The records that fulfil the query and have not changed since then, in order."""
        newest = {row.memory_id: row for row in self._versions_of(query.spec.kind)}
        then = {key for key, row in newest.items() if row.created_at <= moment}
        found = (record for record in self.select(replace(query, limit=None)) if record.key in then)
        return list(islice(found, query.limit))

    def changed_since(self, kind: str, moment: datetime, keys: Collection[str] | None) -> list[MemoryVersion]:
        """What was the newest version then of every record, or of these, that has a newer one now."""
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
        """What a walk reaches besides its starts, nearest first, then by id, step by step.

        A database says the same in one recursive statement.
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
        """Lock ids that may not exist yet, where the table's key alone does not keep others from using them."""

    def hold(self, name: str) -> None:  # noqa: B027 - a store with one writer at a time needs nothing here
        """Lock a name until the transaction ends; others who lock it wait."""

    def pipeline(self, records: int) -> AbstractContextManager[Any]:
        """Send the statements of one write of so many records together, where that saves round trips."""
        return nullcontext()

    def translating(self) -> AbstractContextManager[None]:
        """Turn a driver's errors into ours, for callers that handle an error inside the transaction."""
        return nullcontext()


def _with_reads(record: Any, reads: Reads) -> Record:
    counted: Record = record.replace(
        access_count=record.access_count + reads.count, last_accessed_at=max(record.last_accessed_at, reads.last)
    )
    return counted
