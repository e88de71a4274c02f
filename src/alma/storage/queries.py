"""Queries: every read of the contract, implemented on the primitives of a backend."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Any, TypeVar, cast

from alma.errors import ModelMismatchError, NotFoundError, UnsupportedOperation, ValidationError
from alma.model import query as q
from alma.model.fields import check_timestamp
from alma.model.governance import Attribution
from alma.model.memory import Memory, MemoryRelationship, MemoryVersion
from alma.model.query import EVERYTHING, And, Compare, Cursor, In, Order, Predicate
from alma.model.record import Record, RecordSpec, spec_of
from alma.model.scope import Scope, checked_scope
from alma.model.vector import Vector
from alma.storage import history
from alma.storage.audit import ChainHead
from alma.storage.backend import TEXT_LENGTH, Backend, Hit, Query, RecordVector
from alma.storage.feed import FoundVector, StoredVector, VectorQuery
from alma.storage.traversal import Direction, Reached, Walk, checked_depth, checked_direction
from alma.text.tokens import searched_terms

T = TypeVar("T", bound=Record)

EVERYWHERE = Scope.everywhere()
_MOST_TERMS = 64
_MOST_COUNTED = 20_000
# More than any store has, and within the limits of every database.
_MOST_RECORDS = 2**31 - 1


class Queries:
    """The reads of a transaction: every query is parsed and limited to its scope before the backend runs it."""

    def __init__(self, backend: Backend, by: Attribution) -> None:
        self.backend = backend
        self.by = by if by.reason is None and by.user_agent is None else _without_secrets(by)
        self._models = VectorModels(backend)

    @property
    def writable(self) -> bool:
        """Whether the transaction may write."""
        return self.backend.writable

    @property
    def embedding_dim(self) -> int:
        """The length of the store's own vectors."""
        return self.backend.embedding_dim

    @property
    def embedding_model(self) -> str:
        """The model of the store's own vectors."""
        return self.backend.embedding_model

    def get(self, cls: type[T], record_id: str, scope: Scope, as_of: datetime | None = None) -> T | None:
        if as_of is not None:
            found = self._past(cls, scope, Compare(spec_of(cls).key, "eq", record_id), as_of)
        else:
            found = self.find(cls, scope, Compare(spec_of(cls).key, "eq", record_id), limit=1)
        return found[0] if found else None

    def require(self, cls: type[T], record_id: str, scope: Scope) -> T:
        found = self.get(cls, record_id, scope)
        if found is None:
            raise NotFoundError(spec_of(cls).kind, record_id)
        return found

    def get_many(self, cls: type[T], record_ids: Iterable[str], scope: Scope) -> list[T]:
        wanted = named(spec_of(cls), record_ids)
        found = {record.key: record for record in self.find(cls, scope, In(spec_of(cls).key, wanted))}
        return [found[key] for key in wanted if key in found]

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
        spec = spec_of(cls)
        order = q.parsed_order(spec, order)
        cursor = None if after is None else q.parsed_cursor(spec, order, after)
        if as_of is not None:
            return self._past(cls, scope, where, as_of, order, limit, cursor)
        query = Query(spec, inside(spec, scope, where), order, _checked_limit(limit), cursor)
        return cast(list[T], self.backend.select(query))

    def values(
        self,
        cls: type[Record],
        names: Sequence[str],
        scope: Scope,
        where: Predicate = EVERYTHING,
        order: Sequence[Order] = (),
        limit: int | None = None,
        after: Cursor | None = None,
    ) -> list[tuple[Any, ...]]:
        spec = spec_of(cls)
        if not isinstance(names, list | tuple) or not names:
            raise ValidationError("query", "names", names, "must be a list of at least one field")
        _require_readable(spec, tuple(names))
        ordered = q.parsed_order(spec, order)
        cursor = None if after is None else q.parsed_cursor(spec, ordered, after)
        query = Query(spec, inside(spec, scope, where), ordered, _checked_limit(limit), cursor)
        return self.backend.values(query, names)

    def word_counts(
        self, cls: type[Record], words: Iterable[str], scope: Scope, where: Predicate = EVERYTHING
    ) -> tuple[int, dict[str, int]]:
        spec = _searchable(spec_of(cls))
        return self.backend.word_counts(spec, list(dict.fromkeys(words)), inside(spec, scope, where))

    def count(self, cls: type[Record], scope: Scope, where: Predicate = EVERYTHING) -> int:
        return self.backend.count(spec_of(cls), inside(spec_of(cls), scope, where))

    def size(self, cls: type[Record], scope: Scope, where: Predicate = EVERYTHING) -> int:
        return self.backend.size(spec_of(cls), inside(spec_of(cls), scope, where))

    def matching_ids(
        self,
        cls: type[Record],
        query: str,
        scope: Scope,
        where: Predicate = EVERYTHING,
        limit: int = 10,
        exact: bool = True,
    ) -> list[tuple[str, float]]:
        spec = _searchable(spec_of(cls))
        bounded = inside(spec, scope, where)
        words = self._looked_up(spec, query, bounded)
        limit = required_limit(limit)
        return self.backend.matching(spec, words, bounded, limit, exact=exact) if words and limit else []

    def word_scores(
        self, cls: type[Record], query: str, ids: Iterable[str], scope: Scope, where: Predicate = EVERYTHING
    ) -> dict[str, float]:
        spec = _searchable(spec_of(cls))
        bounded = inside(spec, scope, where)
        words, keys = self._looked_up(spec, query, bounded), list(dict.fromkeys(ids))
        return self.backend.word_scores(spec, words, keys, bounded) if words and keys else {}

    def _looked_up(self, spec: RecordSpec, query: str, bounded: Predicate) -> list[str]:
        """The words of a query that are searched: the rarest of a long query."""
        words = _words_of(query)
        if len(words) <= _MOST_TERMS:
            return words
        _, counts = self.backend.word_counts(spec, words, bounded)
        return sorted(filter(counts.__getitem__, words), key=counts.__getitem__)[:_MOST_TERMS]

    def search_text(
        self, cls: type[T], query: str, scope: Scope, where: Predicate = EVERYTHING, limit: int = 10
    ) -> list[Hit[T]]:
        return self._hits(cls, self.matching_ids(cls, query, scope, where, limit))

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
        return self._hits(cls, self.nearest_ids(cls, vector, scope, where, limit, model, exact))

    def _hits(self, cls: type[T], found: Sequence[tuple[str, float]]) -> list[Hit[T]]:
        """The records with these ids, which are inside the scope."""
        if not found:
            return []
        spec = spec_of(cls)
        records = {r.key: r for r in self.backend.select(Query(spec, In(spec.key, [key for key, _ in found])))}
        return [Hit(cast(T, records[key]), score) for key, score in found]

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
        return self.answer(self.vector_query(cls, vector, scope, where, limit, model), exact)

    def vector_query(
        self, cls: type[Record], vector: Any, scope: Scope, where: Predicate, limit: int, model: str | None = None
    ) -> VectorQuery:
        """The validated vector query."""
        spec = embedding(spec_of(cls))
        bounded = inside(spec, scope, where)
        chosen = model or self.embedding_model
        wanted = self._models.fitting(spec, Vector(vector), chosen)
        if chosen == self.embedding_model:
            self._models.require_own()
        return VectorQuery(spec, wanted, chosen, bounded, required_limit(limit))

    def answer(self, question: VectorQuery, exact: bool = True) -> list[tuple[str, float]]:
        """The result of `nearest_ids` for a validated query."""
        if not question.limit:
            return []
        return self.backend.nearest(
            question.spec, question.vector, question.model, question.where, question.limit, exact=exact
        )

    def without_vector(
        self, cls: type[T], model: str, scope: Scope, limit: int = 100, after: str | None = None
    ) -> list[T]:
        bounded = inside(embedding(spec_of(cls)), scope, EVERYTHING)
        return cast(list[T], self.backend.without_vector(cls.spec, model, bounded, required_limit(limit), after))

    def count_without_vector(self, cls: type[Record], model: str, scope: Scope) -> int:
        return self.backend.count_without_vector(embedding(spec_of(cls)), model, inside(cls.spec, scope, EVERYTHING))

    def is_half_moved(self, cls: type[Record], model: str) -> bool:
        """Whether any record of the store has vectors of other models but none of this one."""
        return self.backend.is_half_moved(embedding(spec_of(cls)), model)

    def vectors_of(self, cls: type[Record], record_ids: Iterable[str]) -> list[RecordVector]:
        """All vectors of these records, of every model and with passages, by id, model and part."""
        wanted = named(spec_of(cls), record_ids)
        found = self.backend.vectors_of(embedding(spec_of(cls)), wanted) if wanted else []
        return sorted(found, key=lambda each: each[:3])

    def models(self) -> dict[str, int]:
        """The models with vectors, and the length of these."""
        return self._models.known()

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
        walk = Walk(
            tuple(dict.fromkeys(Memory.spec.checked("id", each) for each in start_ids)),
            inside(Memory.spec, scope, where),
            q.parsed(MemoryRelationship.spec, along),
            checked_direction(direction),
            checked_depth(max_depth),
            required_limit(limit),
        )
        return self.backend.reachable(walk) if walk.starts else []

    def audit_heads(self) -> list[ChainHead]:
        return self.backend.chains.heads()

    def history(self, cls: type[Record], record_id: str, scope: Scope) -> list[MemoryVersion]:
        _require_versioned(spec_of(cls))
        of_record = And(Compare("kind", "eq", spec_of(cls).kind), Compare("memory_id", "eq", record_id))
        rows = self.find(MemoryVersion, EVERYWHERE, of_record, order=(Order("version_number"),))
        current = self.get(cls, record_id, EVERYWHERE)
        return history.within(history.filled(rows, current), cls, inside(spec_of(cls), scope, EVERYTHING))

    def changed_since(self, cls: type[T], scope: Scope, where: Predicate, as_of: datetime) -> list[T]:
        """The records inside the scope that have changed or been deleted since, as they were then, by id, without
        vectors.
        """
        return self._changed(cls, inside(spec_of(cls), scope, where), _checked_moment(as_of))

    def _past(
        self,
        cls: type[T],
        scope: Scope,
        where: Predicate,
        as_of: datetime,
        order: tuple[Order, ...] = (),
        limit: int | None = None,
        after: Cursor | None = None,
    ) -> list[T]:
        """The records as they were recorded then, without vectors. Unchanged records are read from their table, and
        those changed since from their versions.
        """
        _require_versioned(spec_of(cls))
        bounded = inside(spec_of(cls), scope, where)
        moment = _checked_moment(as_of)
        query = Query(spec_of(cls), bounded, order, _checked_limit(limit), after)
        unchanged = [history.without_vector(record) for record in self.backend.unchanged_since(query, moment)]
        return _page([*cast(list[T], unchanged), *self._changed(cls, bounded, moment)], order, limit, after)

    def _changed(self, cls: type[T], bounded: Predicate, moment: datetime) -> list[T]:
        rows = self.backend.changed_since(spec_of(cls).kind, moment, _keys_in(bounded, spec_of(cls).key))
        newest = {row.memory_id: row for row in sorted(rows, key=lambda row: row.version_number)}
        past = (history.record_of(row, cls, None) for _, row in sorted(newest.items()))
        return [record for record in past if record is not None and q.matches(bounded, record)]

    # ------------------------------------------------------------------ the vector feed

    def feed_name(self) -> str:
        """The unique name of the store's vector feed."""
        return self.backend.feed.name()

    def vector_position(self) -> int:
        """The last position of the feed; 0 if there is none."""
        return self.backend.feed.position()

    def vectors_after(self, model: str, position: int, limit: int) -> list[StoredVector]:
        """Up to `most` vectors of a model after a position of the feed, in order."""
        return self.backend.feed.after(model, position, limit)

    def vectors_at(self, question: VectorQuery, positions: Sequence[int]) -> list[FoundVector]:
        """Those of these positions that still have a vector of the query's kind and model."""
        return self.backend.feed.at(question, positions)

    def positions_inside(self, question: VectorQuery, most: int, *, known: bool = False) -> Sequence[int] | None:
        """The positions of all vectors whose records match the query; None if there are more than `most`."""
        return self.backend.feed.inside(question, most, known=known)

    def positions_held(self, model: str) -> list[int]:
        """All positions that still have a vector of the model."""
        return self.backend.feed.held(model)


class VectorModels:
    """The models with vectors in a store, and the length of these."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def known(self) -> dict[str, int]:
        """The models with vectors, and the length of these."""
        found = ((model, self._backend.dims_of(model, None)) for model in self._backend.models())
        return {model: dims for model, dims in found if dims is not None}

    def fitting(self, spec: RecordSpec, vector: Vector, model: str, *, claim: bool = False) -> Vector:
        """The vector, if it has the length of this store's vectors of that model."""
        if model == self._backend.embedding_model:
            self.require_own_length(spec, vector)
        dims = self._backend.dims_of(model, len(vector) if claim else None)
        if dims is not None and dims != len(vector):
            raise _wrong_length(spec, vector, dims)
        return vector

    def require_own_length(self, spec: RecordSpec, vector: Vector) -> None:
        """Reject a vector whose length differs from the embedding_dim of the store."""
        if len(vector) != self._backend.embedding_dim:
            raise _wrong_length(spec, vector, self._backend.embedding_dim)

    def require_own(self) -> None:
        """Raise an error if the store has vectors, but none of this model."""
        own = self._backend.embedding_model
        if self._backend.dims_of(own, None) is not None:
            return
        others = self.known()
        # Another writer may have claimed this model between the two reads.
        if others and own not in others:
            raise ModelMismatchError(own, others)


def _wrong_length(spec: RecordSpec, vector: Vector, dims: int) -> ValidationError:
    return ValidationError(
        spec.kind,
        spec.vector_field,
        vector,
        f"must have {dims} dimensions, as this store's vectors do, not {len(vector)}; "
        f"open the store with the embedding_dim of its model, or move it to another one with  alma reembed",
    )


@lru_cache(maxsize=1024)
def _without_secrets(by: Attribution) -> Attribution:
    """The attribution for history and audit log, with secrets in the reason masked."""
    from alma.redaction.redactor import redact_text

    clean = {
        name: redact_text(text).text for name in ("reason", "user_agent") if (text := getattr(by, name)) is not None
    }
    return replace(by, **clean)


def named(spec: RecordSpec, record_ids: Iterable[Any]) -> list[Any]:
    """The ids, each once; a text is one id and not a list of letters."""
    if isinstance(record_ids, str):
        return [record_ids]
    try:
        return list(dict.fromkeys(record_ids))
    except TypeError:
        raise ValidationError(spec.kind, spec.key, record_ids, "must be given as a list of ids") from None


def inside(spec: RecordSpec, scope: Scope, where: Predicate) -> Predicate:
    """The parsed predicate, limited to the scope, which is required."""
    within = checked_scope(spec.kind, scope).predicate(spec)
    return within if where is EVERYTHING else And(within, q.parsed(spec, where))


@lru_cache(maxsize=256)
def _require_readable(spec: RecordSpec, names: tuple[str, ...]) -> None:
    for name in names:
        if name == TEXT_LENGTH:
            _searchable(spec)
        elif spec.field(name).name not in spec.stored_names:
            raise ValidationError(spec.kind, name, name, "is stored outside of the record and cannot be read alone")


def _checked_limit(limit: int | None) -> int | None:
    if limit is None:
        return None
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
        raise ValidationError("query", "limit", limit, "must be a whole number of at least 0")
    return min(limit, _MOST_RECORDS)


def required_limit(limit: int) -> int:
    checked = _checked_limit(limit)
    if checked is None:
        raise ValidationError("query", "limit", limit, "must be given")
    return checked


def _checked_moment(moment: datetime) -> datetime:
    try:
        return check_timestamp(moment)
    except ValueError as exc:
        raise ValidationError("query", "as_of", moment, str(exc)) from None


def _keys_in(predicate: Predicate, key: str) -> tuple[str, ...] | None:
    """The ids that a predicate allows; None if it allows any."""
    match predicate:
        case Compare(name, "eq", value) if name == key:
            return (value,)
        case In(name, values) if name == key:
            return values
        case And(parts):
            return next((found for part in parts if (found := _keys_in(part, key)) is not None), None)
    return None


def _page(records: list[T], order: tuple[Order, ...], limit: int | None, after: Cursor | None) -> list[T]:
    ordered = sorted(records, key=q.sort_key(order))
    if after is not None:
        ordered = [record for record in ordered if q.is_after(record, after, order)]
    return ordered[: _checked_limit(limit)]


def _words_of(query: str) -> list[str]:
    """The distinct terms of a query, up to a limit."""
    if not isinstance(query, str):
        raise ValidationError("search", "query", query, "must be text")
    return searched_terms(query)[:_MOST_COUNTED]


def _searchable(spec: RecordSpec) -> RecordSpec:
    if not spec.text:
        raise UnsupportedOperation(f"{spec.kind} has no searchable text")
    return spec


def embedding(spec: RecordSpec) -> RecordSpec:
    """The specification of a kind with vectors, or an error for one without."""
    if not spec.embeds:
        raise UnsupportedOperation(f"{spec.kind} has no vectors")
    return spec


def _require_versioned(spec: RecordSpec) -> None:
    if not spec.versioned:
        raise UnsupportedOperation(f"{spec.kind} has no history")
