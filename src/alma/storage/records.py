"""The record store: the public calls on records, the same for every store."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from alma.errors import (
    UNNAMED_MODEL,
    ConfigurationError,
    ModelMismatchError,
    StorageError,
    UnsupportedOperation,
    ValidationError,
    shown,
)
from alma.model.common import checked_name
from alma.model.governance import ANONYMOUS, Attribution
from alma.model.memory import MemoryVersion
from alma.model.query import EVERYTHING, Cursor, Order, Predicate
from alma.model.record import Record, spec_of
from alma.model.scope import Scope
from alma.model.vector import wrong_dimension
from alma.storage.audit import ChainHead
from alma.storage.backend import Hit, Reads, RecordVector
from alma.storage.outbox import Backlog, Mark
from alma.storage.queries import named
from alma.storage.transactional import TransactionalStore
from alma.storage.traversal import Direction, Reached

if TYPE_CHECKING:
    from alma.config.settings import Settings


USUAL_DIMENSIONS = 384


def described(config: Mapping[str, Any]) -> Settings:
    """The settings with these keys, validated like a file: references are resolved, and unknown keys are errors."""
    # Only the loader knows the keys and resolves references.
    from alma.config.loader import settings_from

    if not isinstance(config, Mapping):
        raise ConfigurationError(f"the configuration of a store must be a dict of its keys, not {shown(config)}")
    return settings_from({"project_id": "default", **config})


T = TypeVar("T", bound=Record)

DEFAULT_MODEL = UNNAMED_MODEL


class Capability(StrEnum):
    """Optional capabilities of a store."""

    SERVER = "server"
    NATIVE_VECTORS = "native_vectors"
    VECTOR_INDEX = "vector_index"
    VECTOR_FEED = "vector_feed"
    PARTITIONS = "partitions"
    COPY = "copy"


class RecordStore(TransactionalStore):
    """The operations every store offers; each runs in the open transaction of this thread, or in a new one."""

    embedding_dim: int
    embedding_model: str

    def __init__(self, embedding_dim: int = 384, embedding_model: str = DEFAULT_MODEL) -> None:
        super().__init__()
        if wrong := wrong_dimension(embedding_dim):
            raise ValidationError("storage", "embedding_dim", embedding_dim, wrong)
        self.embedding_dim = embedding_dim
        self.embedding_model = checked_name("storage", "embedding_model", embedding_model)
        self._naming_lock = threading.Lock()

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The optional capabilities of this store."""
        return frozenset()

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for operators about this store, one sentence each."""
        return ()

    # ------------------------------------------------------------------ the model

    def name_model(self, model: str) -> None:
        """Set the embedding model of a store that was opened without one; an error if the store only has vectors of
        others. The name is stored with the first vector. The model of earlier vectors without a name is unknown: the
        caller must use the same one again.
        """
        if self.embedding_model != DEFAULT_MODEL:
            return
        name = checked_name("storage", "embedding_model", model)
        held = self.models()
        if held.keys() == {DEFAULT_MODEL}:
            return
        if held and name not in held:
            raise ModelMismatchError(name, held)
        with self._naming_lock:
            if self.embedding_model == DEFAULT_MODEL:
                self.embedding_model = name
        open_here = self._transaction_here()
        if open_here is not None:
            open_here.backend.embedding_model = self.embedding_model

    # ------------------------------------------------------------------ reading

    def get(self, cls: type[T], record_id: str, scope: Scope, as_of: datetime | None = None) -> T | None:
        """The record with this id inside the scope, or None; with `as_of`, as it was then."""
        with self.snapshot() as tx:
            return tx.get(cls, record_id, scope, as_of)

    def require(self, cls: type[T], record_id: str, scope: Scope) -> T:
        """The record with this id inside the scope, or NotFoundError."""
        with self.snapshot() as tx:
            return tx.require(cls, record_id, scope)

    def get_many(self, cls: type[T], record_ids: Iterable[str], scope: Scope) -> list[T]:
        """The records with these ids inside the scope, in the order of the ids; missing ones are left out."""
        with self.snapshot() as tx:
            return tx.get_many(cls, record_ids, scope)

    def find(
        self,
        cls: type[T],
        scope: Scope,
        where: Predicate = EVERYTHING,
        order: Sequence[Order] = (),
        limit: int | None = None,
        after: Cursor | None = None,
        as_of: datetime | None = None,
    ) -> list[T]:
        """The records inside the scope that match the predicate, in order, after the cursor."""
        with self.snapshot() as tx:
            return tx.find(cls, scope, where, order, limit, after, as_of)

    def iterate(
        self,
        cls: type[T],
        scope: Scope,
        where: Predicate = EVERYTHING,
        order: Sequence[Order] = (),
        page_size: int = 500,
    ) -> Iterator[T]:
        """All such records, read page by page; each page sees the state committed by then."""
        if page_size == 0:
            raise ValidationError("query", "page_size", page_size, "must be a whole number of at least 1")
        after: Cursor | None = None
        while True:
            page = self.find(cls, scope, where, order, page_size, after)
            yield from page
            if len(page) < page_size:
                return
            after = Cursor.after(page[-1], order)

    def values(
        self,
        cls: type[Record],
        names: Sequence[str],
        scope: Scope,
        where: Predicate = EVERYTHING,
        order: Sequence[Order] = (),
        limit: int | None = None,
    ) -> list[tuple[Any, ...]]:
        """These fields only, or `TEXT_LENGTH`, of the results of `find`, which is faster."""
        with self.snapshot() as tx:
            return tx.values(cls, names, scope, where, order, limit)

    def word_counts(
        self, cls: type[Record], words: Iterable[str], scope: Scope, where: Predicate = EVERYTHING
    ) -> tuple[int, dict[str, int]]:
        """The number of records, and the number with each term: exact in small scopes, estimated in large ones. A store
        may count the whole scope and ignore the rest of the predicate.
        """
        with self.snapshot() as tx:
            return tx.word_counts(cls, words, scope, where)

    def count(self, cls: type[Record], scope: Scope, where: Predicate = EVERYTHING) -> int:
        """The number of records inside the scope that match the predicate."""
        with self.snapshot() as tx:
            return tx.count(cls, scope, where)

    def size(self, cls: type[Record], scope: Scope, where: Predicate = EVERYTHING) -> int:
        """The approximate number of records in the scope, exact if they are few; the predicate may be ignored."""
        with self.snapshot() as tx:
            return tx.size(cls, scope, where)

    def matching_ids(
        self,
        cls: type[Record],
        query: str,
        scope: Scope,
        where: Predicate = EVERYTHING,
        limit: int = 10,
        exact: bool = True,
    ) -> list[tuple[str, float]]:
        """The ids and BM25 scores of the records inside the scope that share words with the query, best match first.
        Scores are above zero. Stop words (the, what, is) are ignored unless the query has no others, and of more than
        64 distinct words the rarest are used. The result is exact, with every word counting, while the words have at
        most about 4,000 postings in the scope, so always in a store of up to 3,000 records; beyond that the most common
        words may only affect the ranking, or be ignored. With `exact=False`, tie-breaking is arbitrary.
        """
        with self.snapshot() as tx:
            return tx.matching_ids(cls, query, scope, where, limit, exact)

    def word_scores(
        self, cls: type[Record], query: str, ids: Iterable[str], scope: Scope, where: Predicate = EVERYTHING
    ) -> dict[str, float]:
        """The scores of `matching_ids` for those of these records inside the scope that share words with the query.
        Every word counts, however common; for many records, only the beginning of long texts may be read.
        """
        with self.snapshot() as tx:
            return tx.word_scores(cls, query, ids, scope, where)

    def search_text(
        self, cls: type[T], query: str, scope: Scope, where: Predicate = EVERYTHING, limit: int = 10
    ) -> list[Hit[T]]:
        """The records of `matching_ids`, with their scores."""
        with self.snapshot() as tx:
            return tx.search_text(cls, query, scope, where, limit)

    def search_vector(
        self,
        cls: type[T],
        vector: Any,
        scope: Scope,
        where: Predicate = EVERYTHING,
        limit: int = 10,
        model: str | None = None,
        exact: bool = True,
    ) -> list[Hit[T]]:
        """The records inside the scope whose vectors have the highest cosine with this one.

        A record with passages counts once, with the best of its vectors. With `exact=False` a store may use an
        approximate index.
        """
        with self.snapshot() as tx:
            return tx.search_vector(cls, vector, scope, where, limit, model, exact)

    def nearest_ids(
        self,
        cls: type[Record],
        vector: Any,
        scope: Scope,
        where: Predicate = EVERYTHING,
        limit: int = 10,
        model: str | None = None,
        exact: bool = True,
    ) -> list[tuple[str, float]]:
        """The ids and cosines of `search_vector`, without reading the records."""
        with self.snapshot() as tx:
            return tx.nearest_ids(cls, vector, scope, where, limit, model, exact)

    def without_vector(
        self, cls: type[T], model: str, scope: Scope, limit: int = 100, after: str | None = None
    ) -> list[T]:
        """The records inside the scope without a vector of this model, by id, starting after the id `after`."""
        with self.snapshot() as tx:
            return tx.without_vector(cls, model, scope, limit, after)

    def count_without_vector(self, cls: type[Record], model: str, scope: Scope) -> int:
        """The number of records inside the scope without a vector of this model."""
        with self.snapshot() as tx:
            return tx.count_without_vector(cls, model, scope)

    def is_half_moved(self, cls: type[Record], model: str) -> bool:
        """Whether any record of the store has vectors of other models but none of this one."""
        with self.snapshot() as tx:
            return tx.is_half_moved(cls, model)

    def vectors_of(self, cls: type[Record], record_ids: Iterable[str]) -> list[RecordVector]:
        """All vectors of these records, of every model and with passages, by id, model and part."""
        with self.snapshot() as tx:
            return tx.vectors_of(cls, record_ids)

    def models(self) -> dict[str, int]:
        """The models with vectors, and the length of these."""
        with self.snapshot() as tx:
            return tx.models()

    def changed_since(self, cls: type[T], scope: Scope, where: Predicate, as_of: datetime) -> list[T]:
        """The records inside the scope that have changed or been deleted since, as they were then, by id, without
        vectors.
        """
        with self.snapshot() as tx:
            return tx.changed_since(cls, scope, where, as_of)

    def reachable(
        self,
        start_ids: Iterable[str],
        scope: Scope,
        where: Predicate = EVERYTHING,
        along: Predicate = EVERYTHING,
        direction: Direction = "both",
        max_depth: int = 1,
        limit: int = 1000,
    ) -> list[Reached]:
        """The memories reachable from these over relationships, nearest first, with the id for tie-breaking. Every
        memory on the way is inside the scope and matches `where`, every relationship matches `along`; "out" follows
        relationships from source to target, "in" in reverse; symmetric ones are followed both ways. Cycles are allowed.
        """
        with self.snapshot() as tx:
            return tx.reachable(start_ids, scope, where, along, direction, max_depth, limit)

    def audit_heads(self) -> list[ChainHead]:
        """The head of each audit hash chain; a copy kept elsewhere reveals a rewritten log."""
        with self.snapshot() as tx:
            return tx.audit_heads()

    def history(self, cls: type[Record], record_id: str, scope: Scope) -> list[MemoryVersion]:
        """The versions of a record that were inside the scope, oldest first; also of a deleted record."""
        with self.snapshot() as tx:
            return tx.history(cls, record_id, scope)

    # ------------------------------------------------------------------ writing

    def save(self, record: Record, by: Attribution = ANONYMOUS) -> str:
        """Store the record, new or changed, with its vector; returns its id."""
        self.write(lambda tx: tx.save(record), by)
        return str(record.key)

    def save_many(self, records: Iterable[Record], by: Attribution = ANONYMOUS) -> list[str]:
        """Store all of the records in one transaction; returns their ids."""
        if not isinstance(records, Iterable):
            raise ValidationError("storage", None, records, "can only save records, given as a list")
        batch = list(records)
        self.write(lambda tx: tx.save(*batch), by)
        return [record.key for record in batch]

    def update(
        self, cls: type[T], record_id: str, changes: Mapping[str, Any], scope: Scope, by: Attribution = ANONYMOUS
    ) -> T | None:
        """Change these fields of a record and return it, or None if there is none inside the scope."""
        return self.write(lambda tx: tx.update(cls, record_id, changes, scope), by)

    def increment(
        self,
        cls: type[T],
        record_id: str,
        counters: Mapping[str, int],
        scope: Scope,
        changes: Mapping[str, Any] | None = None,
        by: Attribution = ANONYMOUS,
    ) -> T | None:
        """Add to counters of a record atomically; returns it, or None if there is none."""
        return self.write(lambda tx: tx.increment(cls, record_id, counters, scope, changes), by)

    def count_reads(self, cls: type[Record], reads: Mapping[str, Reads]) -> None:
        """Add to the access counters of records atomically, without a version, audit event or mark."""
        self.write(lambda tx: tx.count_reads(cls, reads))

    def delete(self, cls: type[Record], record_ids: Iterable[str], scope: Scope, by: Attribution = ANONYMOUS) -> int:
        """Delete these records inside the scope with their dependents; returns the number of deleted records."""
        ids = named(spec_of(cls), record_ids)
        return self.write(lambda tx: tx.delete(cls, ids, scope), by)

    def delete_where(self, cls: type[Record], scope: Scope, where: Predicate, by: Attribution = ANONYMOUS) -> int:
        """Delete the records inside the scope that match the predicate; returns their number."""
        return self.write(lambda tx: tx.delete_where(cls, scope, where), by)

    def put_vectors(
        self, cls: type[Record], vectors: Mapping[str, Any], model: str, made_from: Mapping[str, str] | None = None
    ) -> int:
        """Store vectors of another model in addition to the records' own; the records must exist. Returns their number.
        `made_from` has the embedded texts: records that are deleted or have another text by now are skipped.
        """
        return self.write(lambda tx: tx.put_vectors(cls, vectors, model, made_from))

    def put_passages(self, cls: type[Record], passages: Mapping[str, Sequence[Any]], model: str | None = None) -> None:
        """Replace the passage vectors of each record; an empty list removes them. The records must exist. Passages are
        kept until the record is saved with another embedding, or deleted.
        """
        self.write(lambda tx: tx.put_passages(cls, passages, model))

    # ------------------------------------------------------------------ the outbox

    def register_projection(self, name: str, kinds: Iterable[type[Record]]) -> None:
        """Mark every change of these kinds for the named projection from now on."""
        chosen = tuple(cls.spec.kind for cls in kinds)
        self.write(lambda tx: tx.register_projection(name, chosen))

    def drop_projection(self, name: str) -> None:
        """Stop marking changes for the named projection and delete its marks."""
        self.write(lambda tx: tx.drop_projection(name))

    def claim(self, projection: str, limit: int = 100, lease_seconds: float = 60.0) -> list[Mark]:
        """Lease marks, oldest first; other workers do not get them until the lease ends."""
        return self.write(lambda tx: tx.claim(projection, limit, lease_seconds))

    def acknowledge(self, marks: Iterable[Mark], *, again: bool = True) -> int:
        """Clear the marks whose records did not change since they were claimed, free the others; returns how many.

        A record that another worker took over because the lease had ended is marked again, so that the newest state is
        also the last one written; `again=False` leaves it.
        """
        batch = list(marks)
        return self.write(lambda tx: tx.acknowledge(batch, again=again))

    def release(self, marks: Iterable[Mark], *, again: bool = True) -> None:
        """Give marks back as they were claimed, without counting an attempt."""
        batch = list(marks)
        self.write(lambda tx: tx.release(batch, again=again))

    def fail(
        self, mark: Mark, error: str, park_after: int = 5, pause_seconds: float = 0, *, again: bool = True
    ) -> None:
        """Give a mark back with its error, to be claimed again after a pause.

        After that many failures it is parked until `unpark`, or until its record changes.
        """
        self.write(lambda tx: tx.fail(mark, error, park_after, pause_seconds, again=again))

    def unpark(self, projection: str) -> int:
        """Make parked marks available again; returns their number."""
        return self.write(lambda tx: tx.unpark(projection))

    def pending(self, projection: str) -> list[Mark]:
        """All marks of the projection, including parked ones."""
        with self.snapshot() as tx:
            return tx.pending(projection)

    def backlog(self, projection: str) -> Backlog:
        """How many marks there are for the projection, how many of them are parked, and the oldest that is not."""
        with self.snapshot() as tx:
            return tx.backlog(projection)

    def projections(self) -> dict[str, tuple[str, ...]]:
        """The registered projections and the kinds they follow, by name."""
        with self.snapshot() as tx:
            return tx.projections()

    # ------------------------------------------------------------------ copies

    def copy_to(self, path: Path, on_progress: Callable[[int, int], object] = lambda done, total: None) -> None:
        """Write a snapshot of the store to a new file, without blocking writers; needs `Capability.COPY`."""
        raise UnsupportedOperation("this store cannot copy itself; export it instead")

    def copy_from(self, path: Path) -> None:
        """Replace the contents of the store by such a copy, atomically; needs `Capability.COPY`."""
        raise UnsupportedOperation("this store cannot restore a copy; import an export instead")

    # ------------------------------------------------------------------ life cycle

    def require_in_place(self) -> None:
        """Raise an error if the store's files were deleted or replaced; nothing to do for a server."""

    def scrub(self) -> None:
        """Remove the text of deleted records from the store's files, as far as the store can.

        It rewrites the whole store, so it is meant for after a purge or a permanent deletion, not for every deletion.
        Threads that call it at the same time share one run.
        """
        if self._transaction_here() is not None:
            raise StorageError("a store cannot be scrubbed inside a transaction")
        requested = time.monotonic()
        with self._scrubbing:
            # A run that began later, in another thread, has done the work of this call as well.
            if self._scrubbed_at <= requested:
                self._scrubbed_at = time.monotonic()
                self._scrub()

    def _scrub(self) -> None:
        """The implementation of `scrub`, outside of transactions; stores that rewrite their files with every change
        need none."""
