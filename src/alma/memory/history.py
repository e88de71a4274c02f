"""History: the versions of records, restoring them, and queries about the past.

There are two clocks. `known_at` is a recording time: the answer is what the store contained then. `true_at` is a time
in the world: a record holds from `valid_from`, else `event_time`, else `created_at`, until `valid_until` or until the
record that superseded it began to hold, whichever is earlier.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

from alma import clock
from alma.embeddings.base import EmbeddingProvider, Encoded
from alma.errors import ConfigurationError, NotFoundError, UnsupportedOperation, ValidationError
from alma.memory.search import checked_cosine
from alma.memory.settings import SystemSettings
from alma.model.fields import JsonValue, Refused, check_timestamp
from alma.model.governance import ANONYMOUS, Attribution
from alma.model.memory import ChangeType, Memory, MemoryVersion
from alma.model.query import EVERYTHING, And, Compare, Cursor, In, Missing, Or, Order, Predicate, matches
from alma.model.record import Record, spec_of
from alma.model.relations import Relation
from alma.model.scope import Scope, open_to, visible
from alma.retrieval.supersession import EDGES, true_from
from alma.retrieval.writing import join_space
from alma.storage import history
from alma.storage.base import Hit, StorageBackend, Transaction, checked_storage
from alma.storage.document import to_document
from alma.storage.nearest import cosines
from alma.storage.ranking import bm25
from alma.text.tokens import searched_terms, stored_terms

T = TypeVar("T", bound=Record)
# Usage counters are not part of a version.
_COUNTERS = ("access_count", "last_accessed_at")
_MIN_PAGE_SIZE = 50
Mode = Literal["keyword", "semantic", "hybrid"]
_EVERYWHERE = Scope.everywhere()
_MAX_ENCODED = 200
_MIN_HITS, _MAX_HITS = 50, 10_000
# The constant of reciprocal rank fusion (Cormack et al. 2009).
_RRF_CONSTANT = 60


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field before and after a change, None where it had no value."""

    field: str
    before: JsonValue
    after: JsonValue

    def lines(self) -> list[str]:
        """The change of a text as a diff, line by line."""
        before, after = (str(value or "").splitlines() for value in (self.before, self.after))
        return [
            line for line in difflib.unified_diff(before, after, lineterm="", n=1) if line[:3] not in ("---", "+++")
        ]


@dataclass(frozen=True, slots=True)
class Version(Generic[T]):
    """A record after one of its changes: what, who, why and when, and the difference from the version before.

    `record` is None if the change was its deletion.
    """

    number: int
    change: ChangeType
    reason: str | None
    author: str | None
    recorded_at: datetime
    record: T | None
    changes: tuple[FieldChange, ...]


class History:
    """The versions of records, and queries about the past; with an embedder, the past can be searched by meaning."""

    def __init__(self, storage: StorageBackend, embedder: EmbeddingProvider | None = None) -> None:
        self._storage = checked_storage("history", storage)
        if embedder is not None:
            join_space(storage, embedder)
        self._embedder = embedder

    # ------------------------------------------------------------------ versions

    def versions(self, cls: type[T], record_id: str, scope: Scope) -> list[Version[T]]:
        """The versions of a record inside the scope, oldest first; also of a deleted record."""
        rows = self._storage.history(cls, record_id, scope)
        records = [history.record_of(row, cls, None) for row in rows]
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
        """The fields in which two versions differ."""
        found = {version.number: version for version in self.versions(cls, record_id, scope)}
        for number in (first, second):
            if number not in found:
                raise NotFoundError(f"version {number} of the {spec_of(cls).kind}", record_id)
        return list(_changes(cls, found[first].record, found[second].record))

    def restore(
        self, cls: type[T], record_id: str, number: int, scope: Scope, reason: str, by: Attribution = ANONYMOUS
    ) -> T:
        """Restore the content of a version; this creates a new version with the reason.

        A deleted record is created again. Usage counters keep their current values.
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
        """The vectors of a record without one, computed before the transaction because encoding is slow."""
        if self._embedder is None or not record.spec.embeds or not record.text().strip():
            return None
        return (
            None if getattr(record, "embedding", None) is not None else self._embedder.encode_texts([record.text()])[0]
        )

    # ------------------------------------------------------------------ queries about the past

    def get(
        self,
        cls: type[T],
        record_id: str,
        scope: Scope,
        *,
        known_at: datetime | None = None,
        true_at: datetime | None = None,
    ) -> T | None:
        """The record as it was known then, or None; with `true_at`, only if it held at that time."""
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
        """The records inside the scope as they were known then; with `true_at`, those that held at that time."""
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
        min_similarity: float | None = None,
    ) -> list[Hit[T]]:
        """What a search would have found then, best first: "keyword", "semantic" or "hybrid".

        `min_similarity` is the least cosine of what is found by meaning; in mode "semantic" the default is the setting
        `semantic_search_threshold`.

        Past vectors are not stored. Records with unchanged text use the current vector; of changed or deleted ones, the
        200 most likely are encoded again.
        """
        known = None if known_at is None else checked_moment("known_at", known_at)
        then = None if true_at is None else checked_moment("true_at", true_at)
        where = And(where, visible(scope, known or clock.now())) if cls is Memory else where
        least = checked_cosine(min_similarity)
        if least is None and mode == "semantic":
            least = SystemSettings(self._storage).threshold(scope.user_id)
        return PastSearch(self._storage, self._embedder).search(
            Search(cls, query, scope, where, limit, known, then, least), mode
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
    """Read pages until there are enough records that were not superseded by then."""
    size = None if limit is None else max(_MIN_PAGE_SIZE, 2 * limit)
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
    # Reads are counted without creating a version.
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


# ---------------------------------------------------------------------- searching the past


@dataclass(frozen=True, slots=True)
class Search(Generic[T]):
    """A parsed query about the past."""

    cls: type[T]
    query: str
    scope: Scope
    where: Predicate
    limit: int
    known_at: datetime | None
    true_at: datetime | None
    min_similarity: float | None = None


class PastSearch:
    """Searches the stored records and the versions of those that have changed since."""

    def __init__(self, storage: StorageBackend, embedder: EmbeddingProvider | None) -> None:
        self._storage = storage
        self._embedder = embedder

    def search(self, query: Search[T], mode: Mode) -> list[Hit[T]]:
        """The best records with scores above zero: BM25, cosine, or reciprocal rank fusion of both."""
        if not isinstance(query.query, str) or not query.query.strip():
            raise ValidationError("search", "query", query.query, "must be a text")
        if mode not in ("keyword", "semantic", "hybrid"):
            raise ValidationError("search", "mode", mode, "must be keyword, semantic or hybrid")
        if not spec_of(query.cls).text:
            raise UnsupportedOperation(f"{query.cls.spec.kind} has no searchable text")
        with self._storage.snapshot() as tx:
            past = self._changed(tx, query)
            rankings = []
            if mode != "semantic":
                rankings.append(self._by_words(tx, query, past))
            if mode != "keyword":
                rankings.append(self._by_meaning(tx, query, past))
        joined = rankings[0] if len(rankings) == 1 else _fused(rankings)
        return joined[: query.limit]

    # ------------------------------------------------------------------ rankings

    def _by_words(self, tx: Transaction, query: Search[T], past: Mapping[str, T]) -> list[Hit[T]]:
        words = searched_terms(query.query)
        found = dict(past)
        depth = max(_MIN_HITS, 4 * query.limit)
        while True:
            hits = tx.matching_ids(query.cls, query.query, query.scope, query.where, depth)
            found.update(self._at_that_time(tx, query, [key for key, _ in hits if key not in past]))
            ranked = bm25({key: stored_terms(record.text()) for key, record in found.items()}, words)
            # Some of these records did not exist then; search deeper if too few are left.
            if len(ranked) >= query.limit or len(hits) < depth or depth >= _MAX_HITS:
                return [Hit(found[key], score) for key, score in ranked]
            depth *= 4

    def _by_meaning(self, tx: Transaction, query: Search[T], past: Mapping[str, T]) -> list[Hit[T]]:
        if self._embedder is None:
            raise ConfigurationError("a search by meaning needs an embedder: History(storage, embedder)")
        wanted = self._embedder.encode(query.query)
        depth = max(_MIN_HITS, 4 * query.limit)
        while True:
            nearest = dict(tx.nearest_ids(query.cls, wanted, query.scope, query.where, depth))
            then = self._at_that_time(tx, query, [key for key in nearest if key not in past])
            if len(then) >= query.limit or len(nearest) < depth or depth >= _MAX_HITS:
                break
            depth *= 4
        same = self._unchanged_text(tx, query, past)
        hits = [Hit(record, nearest[key]) for key, record in then.items()]
        rest = _likeliest([record for key, record in past.items() if key not in same], query.query)
        texts = [record.text() for record in rest]
        encoded = [each.vector.to_bytes() for each in self._embedder.encode_texts(texts)] if texts else []
        hits += [Hit(record, score) for record, score in zip(rest, cosines(wanted, encoded), strict=True)]
        hits += [Hit(past[key], cosines(wanted, [vector])[0]) for key, vector in same.items()]
        least = query.min_similarity or 0.0
        return sorted(
            (hit for hit in hits if hit.score > 0 and hit.score >= least),
            key=lambda hit: (-hit.score, str(hit.record.key)),
        )

    def _unchanged_text(self, tx: Transaction, query: Search[T], past: Mapping[str, T]) -> dict[str, bytes]:
        """Changed records whose text is the same today, with their current vectors."""
        today = tx.get_many(query.cls, past, _EVERYWHERE)
        same = (record for record in today if record.text() == past[str(record.key)].text())
        vectors = {str(record.key): getattr(record, record.spec.vector_field or "", None) for record in same}
        return {key: vector.to_bytes() for key, vector in vectors.items() if vector is not None}

    # ------------------------------------------------------------------ past records

    def _changed(self, tx: Transaction, query: Search[T]) -> dict[str, T]:
        if query.known_at is None:
            return {}
        found = tx.changed_since(query.cls, query.scope, self._where(query), query.known_at)
        return {str(record.key): record for record in self._true(tx, query, found)}

    def _at_that_time(self, tx: Transaction, query: Search[T], keys: Sequence[str]) -> dict[str, T]:
        """The records with these ids as they were then, in the order of the ids."""
        where = And(self._where(query), In(query.cls.spec.key, keys))
        found = tx.find(query.cls, query.scope, where, as_of=query.known_at) if keys else []
        there = {str(record.key): record for record in self._true(tx, query, found)}
        return {key: there[key] for key in keys if key in there}

    def _where(self, query: Search[T]) -> Predicate:
        if query.true_at is None:
            return query.where
        return And(query.where, true_at_predicate(query.cls, query.true_at))

    def _true(self, tx: Transaction, query: Search[T], found: list[T]) -> list[T]:
        if query.true_at is None:
            return found
        return still_true(tx, found, query.scope, query.known_at, query.true_at)


def true_at_predicate(cls: type[Record], moment: datetime) -> Predicate:
    """Records that had begun to hold and had not ended; kinds without times hold from their creation."""
    names = [name for name in ("valid_from", "event_time", "created_at", "timestamp") if name in cls.spec.by_name]
    # Kinds without any time always hold.
    begun: Predicate = Or() if names else And()
    for name in reversed(names):
        begun = Or(Compare(name, "le", moment), And(Missing(name), begun))
    if "valid_until" not in cls.spec.by_name:
        return begun
    return And(begun, Or(Missing("valid_until"), Compare("valid_until", "gt", moment)))


def still_true(
    tx: Transaction, found: Sequence[T], scope: Scope, known_at: datetime | None, true_at: datetime
) -> list[T]:
    """Leave out records that had been superseded by then, as far as was known; successors count from when they hold."""
    edges = EDGES.get(type(found[0])) if found else None
    if edges is None:
        return list(found)
    cls, ids = type(found[0]), [str(record.key) for record in found]
    where = And(In("to_memory_id", ids), Compare("relationship_type", "eq", Relation.SUPERSEDES))
    known = tx.find(edges, _EVERYWHERE, where, as_of=known_at)
    newer = sorted({edge.from_memory_id for edge in known})
    begun = tx.find(cls, scope, In("id", newer), as_of=known_at) if newer else []
    holding = {str(each.key) for each in begun if true_from(each) <= true_at}
    replaced = {edge.to_memory_id for edge in known if edge.from_memory_id in holding}
    return [record for record in found if str(record.key) not in replaced]


def checked_moment(name: str, moment: datetime) -> datetime:
    """A time with a time zone, in UTC."""
    try:
        return check_timestamp(moment)
    except Refused as exc:
        raise ValidationError("history", name, moment, str(exc)) from None


def _likeliest(records: Sequence[T], query: str) -> list[T]:
    """The records worth encoding: those that share words with the query first."""
    if len(records) <= _MAX_ENCODED:
        return list(records)
    by_key = {str(record.key): record for record in records}
    sharing = [key for key, _ in bm25({k: stored_terms(r.text()) for k, r in by_key.items()}, searched_terms(query))]
    return [by_key[key] for key in dict.fromkeys((*sharing, *sorted(by_key, reverse=True)))][:_MAX_ENCODED]


def _fused(rankings: Iterable[Sequence[Hit[T]]]) -> list[Hit[T]]:
    """Reciprocal rank fusion of the rankings."""
    scores: dict[str, float] = {}
    records: dict[str, T] = {}
    for ranking in rankings:
        for place, hit in enumerate(ranking, start=1):
            key = str(hit.record.key)
            records[key] = hit.record
            scores[key] = scores.get(key, 0.0) + 1 / (_RRF_CONSTANT + place)
    return [Hit(records[key], scores[key]) for key in sorted(scores, key=lambda key: (-scores[key], key))]
