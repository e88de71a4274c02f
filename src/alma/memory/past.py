"""Searching the past: what held at a time, and what a search would have found then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Literal, TypeVar

from alma.embeddings.base import EmbeddingProvider
from alma.errors import ConfigurationError, UnsupportedOperation, ValidationError
from alma.model.fields import Refused, check_timestamp
from alma.model.query import And, Compare, In, Missing, Or, Predicate
from alma.model.record import Record, spec_of
from alma.model.relations import Relation
from alma.model.scope import Scope
from alma.retrieval.supersession import EDGES, true_from
from alma.storage.base import Hit, StorageBackend, Transaction
from alma.storage.nearest import cosines
from alma.storage.ranking import bm25
from alma.text.tokens import searched_terms, stored_terms

Mode = Literal["keyword", "semantic", "hybrid"]
T = TypeVar("T", bound=Record)

_EVERYWHERE = Scope.everywhere()
_ENCODED_ANEW = 200
_FIRST_LOOK, _LAST_LOOK = 50, 10_000
# How much later places in a ranking count less when two are joined.
_JOINED = 60


@dataclass(frozen=True, slots=True)
class Search(Generic[T]):
    """A parsed question about the past."""

    cls: type[T]
    query: str
    scope: Scope
    where: Predicate
    limit: int
    known_at: datetime | None
    true_at: datetime | None


class PastSearch:
    """Answers searches from what is stored now and from the versions of what has changed since."""

    def __init__(self, storage: StorageBackend, embedder: EmbeddingProvider | None) -> None:
        self._storage = storage
        self._embedder = embedder

    def search(self, asked: Search[T], mode: Mode) -> list[Hit[T]]:
        """The best records, with scores above zero: BM25, a cosine, or what both places in the two rankings give."""
        if not isinstance(asked.query, str) or not asked.query.strip():
            raise ValidationError("search", "query", asked.query, "must be a text")
        if mode not in ("keyword", "semantic", "hybrid"):
            raise ValidationError("search", "mode", mode, "must be keyword, semantic or hybrid")
        if not spec_of(asked.cls).text:
            raise UnsupportedOperation(f"{asked.cls.spec.kind} has no searchable text")
        with self._storage.snapshot() as tx:
            past = self._changed(tx, asked)
            rankings = []
            if mode != "semantic":
                rankings.append(self._by_words(tx, asked, past))
            if mode != "keyword":
                rankings.append(self._by_meaning(tx, asked, past))
        joined = rankings[0] if len(rankings) == 1 else _joined(rankings)
        return joined[: asked.limit]

    # ------------------------------------------------------------------ the two rankings

    def _by_words(self, tx: Transaction, asked: Search[T], past: Mapping[str, T]) -> list[Hit[T]]:
        words = searched_terms(asked.query)
        found = dict(past)
        looked = max(_FIRST_LOOK, 4 * asked.limit)
        while True:
            hits = tx.matching_ids(asked.cls, asked.query, asked.scope, asked.where, looked)
            found.update(self._as_then(tx, asked, [key for key, _ in hits if key not in past]))
            ranked = bm25({key: stored_terms(record.text()) for key, record in found.items()}, words)
            # Of what is found today some was not there then; if too little is left, look further.
            if len(ranked) >= asked.limit or len(hits) < looked or looked >= _LAST_LOOK:
                return [Hit(found[key], score) for key, score in ranked]
            looked *= 4

    def _by_meaning(self, tx: Transaction, asked: Search[T], past: Mapping[str, T]) -> list[Hit[T]]:
        if self._embedder is None:
            raise ConfigurationError("a search by meaning needs an embedder: History(storage, embedder)")
        wanted = self._embedder.encode(asked.query)
        looked = max(_FIRST_LOOK, 4 * asked.limit)
        while True:
            nearest = dict(tx.nearest_ids(asked.cls, wanted, asked.scope, asked.where, looked))
            then = self._as_then(tx, asked, [key for key in nearest if key not in past])
            if len(then) >= asked.limit or len(nearest) < looked or looked >= _LAST_LOOK:
                break
            looked *= 4
        same = self._saying_the_same(tx, asked, past)
        hits = [Hit(record, nearest[key]) for key, record in then.items()]
        rest = _likeliest([record for key, record in past.items() if key not in same], asked.query)
        texts = [record.text() for record in rest]
        encoded = [each.vector.to_bytes() for each in self._embedder.encode_texts(texts)] if texts else []
        hits += [Hit(record, score) for record, score in zip(rest, cosines(wanted, encoded), strict=True)]
        hits += [Hit(past[key], cosines(wanted, [vector])[0]) for key, vector in same.items()]
        return sorted((hit for hit in hits if hit.score > 0), key=lambda hit: (-hit.score, str(hit.record.key)))

    def _saying_the_same(self, tx: Transaction, asked: Search[T], past: Mapping[str, T]) -> dict[str, bytes]:
        """Of what has changed, what says the same today, with today's vector."""
        today = tx.get_many(asked.cls, past, _EVERYWHERE)
        same = (record for record in today if record.text() == past[str(record.key)].text())
        vectors = {str(record.key): getattr(record, record.spec.vector_field or "", None) for record in same}
        return {key: vector.to_bytes() for key, vector in vectors.items() if vector is not None}

    # ------------------------------------------------------------------ what was there then

    def _changed(self, tx: Transaction, asked: Search[T]) -> dict[str, T]:
        if asked.known_at is None:
            return {}
        found = tx.changed_since(asked.cls, asked.scope, self._where(asked), asked.known_at)
        return {str(record.key): record for record in self._true(tx, asked, found)}

    def _as_then(self, tx: Transaction, asked: Search[T], keys: Sequence[str]) -> dict[str, T]:
        """The records with these ids as they were then, in the order of the ids; those not there then are left out."""
        where = And(self._where(asked), In(asked.cls.spec.key, keys))
        found = tx.find(asked.cls, asked.scope, where, as_of=asked.known_at) if keys else []
        there = {str(record.key): record for record in self._true(tx, asked, found)}
        return {key: there[key] for key in keys if key in there}

    def _where(self, asked: Search[T]) -> Predicate:
        if asked.true_at is None:
            return asked.where
        return And(asked.where, true_at_predicate(asked.cls, asked.true_at))

    def _true(self, tx: Transaction, asked: Search[T], found: list[T]) -> list[T]:
        if asked.true_at is None:
            return found
        return still_true(tx, found, asked.scope, asked.known_at, asked.true_at)


def true_at_predicate(cls: type[Record], moment: datetime) -> Predicate:
    """What began to hold by then and had not ended; kinds without a time of their own hold since they were made."""
    names = [name for name in ("valid_from", "event_time", "created_at", "timestamp") if name in cls.spec.by_name]
    # What tells no time holds always.
    begun: Predicate = Or() if names else And()
    for name in reversed(names):
        begun = Or(Compare(name, "le", moment), And(Missing(name), begun))
    if "valid_until" not in cls.spec.by_name:
        return begun
    return And(begun, Or(Missing("valid_until"), Compare("valid_until", "gt", moment)))


def still_true(
    tx: Transaction, found: Sequence[T], scope: Scope, known_at: datetime | None, true_at: datetime
) -> list[T]:
    """Without what had been superseded by then, as far as was known: a successor holds from when it is true."""
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
    """A moment with a time zone, in UTC."""
    try:
        return check_timestamp(moment)
    except Refused as exc:
        raise ValidationError("history", name, moment, str(exc)) from None


def _likeliest(records: Sequence[T], query: str) -> list[T]:
    """Those worth encoding: the ones that share words with the query, then the others."""
    if len(records) <= _ENCODED_ANEW:
        return list(records)
    by_key = {str(record.key): record for record in records}
    sharing = [key for key, _ in bm25({k: stored_terms(r.text()) for k, r in by_key.items()}, searched_terms(query))]
    return [by_key[key] for key in dict.fromkeys((*sharing, *sorted(by_key, reverse=True)))][:_ENCODED_ANEW]


def _joined(rankings: Iterable[Sequence[Hit[T]]]) -> list[Hit[T]]:
    """What stands high in either ranking, higher still in both."""
    scores: dict[str, float] = {}
    records: dict[str, T] = {}
    for ranking in rankings:
        for place, hit in enumerate(ranking, start=1):
            key = str(hit.record.key)
            records[key] = hit.record
            scores[key] = scores.get(key, 0.0) + 1 / (_JOINED + place)
    return [Hit(records[key], scores[key]) for key in sorted(scores, key=lambda key: (-scores[key], key))]
