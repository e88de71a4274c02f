"""History: what a record was, who changed it and why; bringing a version back; and asking about the past.

There are two clocks. `known_at` is when something was recorded: the answer is what this store could have said then.
`true_at` is when something held in the world: from `valid_from`, else `event_time`, else `created_at`, until
`valid_until` or until what superseded it began to hold, whichever came first.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Generic, TypeVar

from alma import clock
from alma.embeddings.base import EmbeddingProvider, Encoded
from alma.errors import NotFoundError
from alma.memory.past import Mode, PastSearch, Search, checked_moment, still_true, true_at_predicate
from alma.model.fields import JsonValue
from alma.model.governance import ANONYMOUS, Attribution
from alma.model.memory import ChangeType, Memory, MemoryVersion
from alma.model.query import EVERYTHING, And, Compare, Cursor, Order, Predicate, matches
from alma.model.record import Record, spec_of
from alma.model.scope import Scope, open_to, visible
from alma.retrieval.writing import join_space
from alma.storage import versions
from alma.storage.base import Hit, StorageBackend, Transaction, checked_storage
from alma.storage.document import to_document

T = TypeVar("T", bound=Record)

# What counts the use of a record is no part of what it said.
_COUNTERS = ("access_count", "last_accessed_at")
_FEWEST_READ = 50


@dataclass(frozen=True, slots=True)
class FieldChange:
    """What a field was and what it became, None where it had no value."""

    field: str
    before: JsonValue
    after: JsonValue

    def lines(self) -> list[str]:
        """The change of a text line by line, as diff writes it."""
        before, after = (str(value or "").splitlines() for value in (self.before, self.after))
        return [
            line for line in difflib.unified_diff(before, after, lineterm="", n=1) if line[:3] not in ("---", "+++")
        ]


@dataclass(frozen=True, slots=True)
class Version(Generic[T]):
    """A record after one of its changes: what, who, why, when, and how it differs from the version before.

    `record` is None where the change was its deletion.
    """

    number: int
    change: ChangeType
    reason: str | None
    author: str | None
    recorded_at: datetime
    record: T | None
    changes: tuple[FieldChange, ...]


class History:
    """The versions of records, and questions about the past; an embedder lets the past be searched by meaning."""

    def __init__(self, storage: StorageBackend, embedder: EmbeddingProvider | None = None) -> None:
        self._storage = checked_storage("history", storage)
        if embedder is not None:
            join_space(storage, embedder)
        self._embedder = embedder

    # ------------------------------------------------------------------ versions

    def versions(self, cls: type[T], record_id: str, scope: Scope) -> list[Version[T]]:
        """Every version of a record that lay inside the scope, oldest first; also of one that was deleted."""
        rows = self._storage.history(cls, record_id, scope)
        records = [versions.record_of(row, cls, None) for row in rows]
        if cls is Memory and any(record is not None and not matches(open_to(scope), record) for record in records):
            return []
        before = [None, *records[:-1]]
        return [_version(row, record, old) for row, record, old in zip(rows, records, before, strict=False)]

    def require(self, cls: type[T], record_id: str, number: int, scope: Scope) -> Version[T]:
        """The version with this number, or NotFoundError."""
        for version in self.versions(cls, record_id, scope):
            if version.number == number:
                return version
        raise NotFoundError(f"version {number} of the {spec_of(cls).kind}", record_id)

    def compare(self, cls: type[T], record_id: str, first: int, second: int, scope: Scope) -> list[FieldChange]:
        """How one version differs from another, field by field."""
        found = {version.number: version for version in self.versions(cls, record_id, scope)}
        for number in (first, second):
            if number not in found:
                raise NotFoundError(f"version {number} of the {spec_of(cls).kind}", record_id)
        return list(_changes(cls, found[first].record, found[second].record))

    def restore(
        self, cls: type[T], record_id: str, number: int, scope: Scope, reason: str, by: Attribution = ANONYMOUS
    ) -> T:
        """Make a record say again what it said in this version; that is a new version, with its reason.

        A record that was deleted comes back. How often it was read is kept as it is now.
        """
        version = self.require(cls, record_id, number, scope)
        if version.record is None:
            raise NotFoundError(f"content in version {number} of the {spec_of(cls).kind}", record_id)
        current = self._storage.get(cls, record_id, scope)
        wanted = _restored(version.record, current)
        vectors = self._encoded(wanted)
        if vectors is not None:
            wanted = wanted.replace(embedding=vectors.vector)
        why = replace(by, reason=reason)

        def bring(tx: Transaction) -> T:
            with tx.known_as(ChangeType.RESTORED):
                tx.save(wanted)
            if vectors is not None and vectors.passages:
                tx.put_passages(cls, {record_id: vectors.passages})
            return wanted

        return self._storage.write(bring, why)

    def _encoded(self, record: Record) -> Encoded | None:
        """The vectors of a record that has none, made before the transaction: encoding takes its time."""
        if self._embedder is None or not record.spec.embeds or not record.text().strip():
            return None
        return (
            None if getattr(record, "embedding", None) is not None else self._embedder.encode_texts([record.text()])[0]
        )

    # ------------------------------------------------------------------ the past

    def get(
        self,
        cls: type[T],
        record_id: str,
        scope: Scope,
        *,
        known_at: datetime | None = None,
        true_at: datetime | None = None,
    ) -> T | None:
        """The record as it was known then, or None; where `true_at` is given, only if it held at that time."""
        found = self.find(cls, scope, Compare(spec_of(cls).key, "eq", record_id), known_at=known_at, true_at=true_at)
        return found[0] if found else None

    def find(
        self,
        cls: type[T],
        scope: Scope,
        where: Predicate = EVERYTHING,
        order: Sequence[Order] = (),
        limit: int | None = None,
        *,
        known_at: datetime | None = None,
        true_at: datetime | None = None,
    ) -> list[T]:
        """The records inside the scope as they were known then and, where `true_at` is given, held at that time."""
        known = None if known_at is None else checked_moment("known_at", known_at)
        where = And(where, open_to(scope)) if cls is Memory else where
        with self._storage.snapshot() as tx:
            if true_at is None:
                return tx.find(cls, scope, where, order, limit, as_of=known)
            then = checked_moment("true_at", true_at)
            wanted = And(where, true_at_predicate(cls, then))
            return _true_page(tx, cls, scope, wanted, order, limit, known, then)

    def search(
        self,
        cls: type[T],
        query: str,
        scope: Scope,
        where: Predicate = EVERYTHING,
        limit: int = 10,
        *,
        mode: Mode = "keyword",
        known_at: datetime | None = None,
        true_at: datetime | None = None,
    ) -> list[Hit[T]]:
        """What a search would have found then, best first: by keyword, by meaning ("semantic") or by both ("hybrid").

        Vectors of the past are not kept. What says the same today is found by today's vector; of what has changed or
        gone since, the most likely 200 are encoded anew.
        """
        known = None if known_at is None else checked_moment("known_at", known_at)
        then = None if true_at is None else checked_moment("true_at", true_at)
        where = And(where, visible(scope, known or clock.now())) if cls is Memory else where
        return PastSearch(self._storage, self._embedder).search(
            Search(cls, query, scope, where, limit, known, then), mode
        )


def _true_page(
    tx: Transaction,
    cls: type[T],
    scope: Scope,
    where: Predicate,
    order: Sequence[Order],
    limit: int | None,
    known: datetime | None,
    then: datetime,
) -> list[T]:
    """What was superseded by then leaves an answer after it was read, so pages are read until there is enough."""
    size = None if limit is None else max(_FEWEST_READ, 2 * limit)
    kept: list[T] = []
    after: Cursor | None = None
    while True:
        page = tx.find(cls, scope, where, order, size, after, as_of=known)
        kept += still_true(tx, page, scope, known, then)
        if limit is None or size is None or len(kept) >= limit or len(page) < size:
            return kept[:limit]
        after = Cursor.after(page[-1], order)


def _version(row: MemoryVersion, record: T | None, before: T | None) -> Version[T]:
    cls: Any = type(record) if record is not None else type(before)
    changes = tuple(_changes(cls, before, record)) if record is not None and before is not None else ()
    return Version(
        row.version_number, row.change_type, row.change_reason, row.created_by, row.created_at, record, changes
    )


def _changes(cls: type[Record], before: Record | None, after: Record | None) -> Sequence[FieldChange]:
    old, new = ({} if each is None else to_document(each) for each in (before, after))
    # Reading counts without making a version, so what it counted is nobody's change.
    apart = {cls.spec.vector_field, cls.spec.key, *_COUNTERS}
    names = (field.name for field in cls.spec.primary if field.name not in apart)
    return [FieldChange(name, old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)]


def _restored(past: T, current: T | None) -> T:
    names = past.spec.field_names
    changes: dict[str, Any] = {"updated_at": clock.now()} if "updated_at" in names else {}
    if current is not None:
        changes.update((name, getattr(current, name)) for name in _COUNTERS if name in names)
        if past.spec.vector_field is not None and past.text() == current.text():
            changes[past.spec.vector_field] = getattr(current, past.spec.vector_field)
    return past.replace(**changes)
