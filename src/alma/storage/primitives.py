"""Primitives: the few things a store must be able to do inside a transaction, and the values they take and give."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar

from alma.model.governance import Attribution
from alma.model.memory import Memory, MemoryRelationship, MemoryVersion
from alma.model.query import EVERYTHING, And, Compare, Cursor, In, Order, Predicate
from alma.model.record import Record, RecordSpec
from alma.model.vector import Vector
from alma.storage.chain import ChainTable
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
    """A parsed question a store can answer without looking at it again."""

    spec: RecordSpec
    where: Predicate = EVERYTHING
    order: tuple[Order, ...] = ()
    limit: int | None = None
    after: Cursor | None = None
    for_update: bool = False


class Primitives(ABC):
    """All that a store must provide; everything else is written on these."""

    def __init__(self, by: Attribution, embedding_dim: int, embedding_model: str, *, writable: bool) -> None:
        self.by = by if by.reason is None and by.user_agent is None else _without_secrets(by)
        self.writable = writable
        self.embedding_dim = embedding_dim
        self.embedding_model = embedding_model

    @abstractmethod
    def _select(self, query: Query) -> list[Record]:
        """The records that answer the query, with tags and the vector of the store's own model."""

    @abstractmethod
    def _values(self, query: Query, names: Sequence[str]) -> list[tuple[Any, ...]]:
        """These fields, or `TEXT_LENGTH`, of the records that answer the query."""

    @abstractmethod
    def _word_counts(self, spec: RecordSpec, words: Sequence[str], where: Predicate) -> tuple[int, dict[str, int]]:
        """How many records there are, and how many of them have each term; large numbers may be estimates."""

    @abstractmethod
    def _count(self, spec: RecordSpec, where: Predicate) -> int:
        """How many records fulfil the predicate."""

    def _size(self, spec: RecordSpec, where: Predicate) -> int:
        """About how many records lie in the scope of a predicate; a store may know without counting them."""
        return self._count(spec, where)

    @abstractmethod
    def _insert(self, spec: RecordSpec, records: Sequence[Record]) -> None:
        """Write new records with tags and full text; an id in use is a ConflictError."""

    @abstractmethod
    def _replace(self, spec: RecordSpec, records: Sequence[Record], previous: Sequence[Record]) -> None:
        """Overwrite existing records with tags and full text."""

    @abstractmethod
    def _remove(self, spec: RecordSpec, records: Sequence[Record]) -> None:
        """Delete records with their tags, full text and vectors of every model."""

    @abstractmethod
    def _put_vectors(self, spec: RecordSpec, vectors: Mapping[str, Vector], model: str) -> None:
        """Write the records' own vectors of one model, replacing those there are and leaving the passages."""

    @abstractmethod
    def _put_passages(self, spec: RecordSpec, passages: Mapping[str, Sequence[Vector]], model: str) -> None:
        """Write the passages of one model in place of those the records have."""

    @abstractmethod
    def _drop_vectors(self, spec: RecordSpec, record_ids: Collection[str], model: str) -> None:
        """Delete the vectors of one model, passages included."""

    @abstractmethod
    def _drop_other_vectors(self, spec: RecordSpec, record_ids: Collection[str], model: str) -> None:
        """Delete the vectors of every model but this one."""

    @abstractmethod
    def _vectors_of(self, spec: RecordSpec, record_ids: Collection[str]) -> list[RecordVector]:
        """Every vector of these records, of every model, passages in order."""

    @abstractmethod
    def _erase(self) -> None:
        """Delete everything the store holds: records, history, audit, vectors, models and marks."""

    @abstractmethod
    def _without_vector(
        self, spec: RecordSpec, model: str, where: Predicate, limit: int, after: str | None
    ) -> list[Record]:
        """The records that have no vector of the model, by id, from behind the id that is given."""

    @abstractmethod
    def _count_without_vector(self, spec: RecordSpec, model: str, where: Predicate) -> int:
        """How many records have no vector of the model."""

    @abstractmethod
    def _is_half_moved(self, spec: RecordSpec, model: str) -> bool:
        """Whether any record has vectors of other models and none of this one."""

    @abstractmethod
    def _models(self) -> list[str]:
        """The models of which this store has vectors, by name."""

    @abstractmethod
    def _dims_of(self, model: str, claim: int | None) -> int | None:
        """The vector length this store keeps for a model; where there is none yet, the claim becomes it."""

    @abstractmethod
    def _nearest(
        self, spec: RecordSpec, vector: Vector, model: str, where: Predicate, limit: int, *, exact: bool
    ) -> list[tuple[str, float]]:
        """The ids of the records by falling cosine of their best vector, ids breaking ties.

        A zero vector has cosine 0 with everything. Where `exact` is not asked for, an approximate index may answer.
        """

    @abstractmethod
    def _matching(
        self, spec: RecordSpec, words: Sequence[str], where: Predicate, limit: int, *, exact: bool
    ) -> list[tuple[str, float]]:
        """The keys of the records that contain at least one of the words, best match first, ids breaking ties.

        Where there are too many such records, the most common words may be left out; where `exact` is not asked for,
        ties may be broken in any way.
        """

    @abstractmethod
    def _word_scores(
        self, spec: RecordSpec, words: Sequence[str], keys: Sequence[str], where: Predicate
    ) -> dict[str, float]:
        """What `_matching` would score those of these records that have any of the words, each word counting."""

    @abstractmethod
    def _last_versions(self, kind: str, record_ids: Collection[str]) -> dict[str, MemoryVersion]:
        """The newest version of each of these records that has one."""

    @abstractmethod
    def _marks(self) -> MarkTable:
        """The outbox of this transaction."""

    @abstractmethod
    def _chains(self) -> ChainTable:
        """The heads of the audit chains."""

    def _unchanged_since(self, query: Query, moment: datetime) -> list[Record]:
        """The records that answer the query and have not changed since then, in order."""
        newest = {row.memory_id: row for row in self._versions_of(query.spec.kind)}
        then = {key for key, row in newest.items() if row.created_at <= moment}
        found = (record for record in self._select(replace(query, limit=None)) if record.key in then)
        return list(islice(found, query.limit))

    def _changed_since(self, kind: str, moment: datetime, keys: Collection[str] | None) -> list[MemoryVersion]:
        """What was the newest version then of every record, or of these, that has a newer one now."""
        newest = {row.memory_id: row for row in self._versions_of(kind)}
        then = {row.memory_id: row for row in self._versions_of(kind) if row.created_at <= moment}
        changed = (row for key, row in then.items() if newest[key].version_number > row.version_number)
        return [row for row in changed if keys is None or row.memory_id in keys]

    def _versions_of(self, kind: str) -> list[MemoryVersion]:
        """Every version of the kind's records, by number."""
        query = Query(MemoryVersion.spec, Compare("kind", "eq", kind), (Order("version_number"),))
        return [row for row in self._select(query) if isinstance(row, MemoryVersion)]

    def _reachable(self, walk: Walk) -> list[Reached]:
        """What a walk reaches besides its starts, nearest first, ids breaking ties: the meaning, step by step.

        A database says the same in one recursive statement.
        """
        memory, edge = Memory.spec, MemoryRelationship.spec

        def seen(ids: Collection[str]) -> set[str]:
            return {str(r.key) for r in self._select(Query(memory, And(walk.where, In(memory.key, sorted(ids)))))}

        here = seen(set(walk.starts))
        depths = dict.fromkeys(here, 0)
        for depth in range(1, walk.max_depth + 1):
            edges = self._select(Query(edge, walk.from_any(sorted(here)))) if here else []
            led = {end for each in edges if isinstance(each, MemoryRelationship) for end in walk.step(each, here)}
            here = seen(led - depths.keys())
            depths.update(dict.fromkeys(here, depth))
        reached = [Reached(key, depth) for key, depth in depths.items() if depth]
        return sorted(reached, key=lambda each: (each.depth, each.id))[: walk.limit]

    def _reserve(self, spec: RecordSpec, keys: Sequence[str]) -> None:  # noqa: B027 - most stores need nothing here
        """Hold off other writers of ids that may not exist yet, where the table's key alone does not."""

    def _hold(self, name: str) -> None:  # noqa: B027 - a store with one writer at a time needs nothing here
        """Let no other transaction go on that holds the same name, until this one ends."""


@lru_cache(maxsize=1024)
def _without_secrets(by: Attribution) -> Attribution:
    """Who acts, as it may stand in history and audit: what somebody gives as a reason may quote a secret."""
    from alma.redaction.redactor import redact_text

    clean = {
        name: redact_text(text).text for name in ("reason", "user_agent") if (text := getattr(by, name)) is not None
    }
    return replace(by, **clean)
