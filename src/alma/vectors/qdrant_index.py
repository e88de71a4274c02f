"""The vector index on Qdrant: its collections propose, and the store decides."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

from alma.errors import IndexUnavailable, StorageError, ValidationError
from alma.model.query import EVERYTHING, And, In, Predicate
from alma.model.record import Record
from alma.model.scope import Scope
from alma.model.secret import Secret
from alma.storage.base import StorageBackend, Transaction, VectorQuery
from alma.sync.rebuilding import rebuild_of
from alma.vectors.base import Nearest
from alma.vectors.qdrant_collections import Collections
from alma.vectors.qdrant_points import KINDS, any_of, but, condition_of, unit_of
from alma.vectors.qdrant_server import MissingCollectionError, QdrantError, QdrantServer
from alma.vectors.qdrant_server import models as m

_PROJECTION = "qdrant"
_SPARE = 4
# How often a search looks at more points, by which factor, and up to how many.
_LOOKS, _MORE, _MOST_POINTS = 5, 3, 5_000
# With more changes waiting than this, the store searches its own vectors.
_MOST_WAITING = 1_000
_LEAST_CANDIDATES = 128
# A server that took longer than this to fail is left alone for a while: a search must not wait for it each time.
_SLOW_SECONDS, _PAUSE_SECONDS = 1.0, 5.0
# Larger than the error of single precision.
_TOLERANCE = 1e-5


class QdrantIndex:
    """A `VectorIndex` on the collections that `QdrantProjection` fills.

    Scope and predicate are part of the search in Qdrant, as far as payloads have their fields. The store confirms every
    hit, computes its cosine, and is asked for the records whose changes still wait in the outbox: so a search sees
    every commit at once. While Qdrant has not been filled, and inside a transaction that writes, the store searches
    alone. `IndexUnavailable` says that no node answers.
    """

    def __init__(
        self,
        storage: StorageBackend,
        url: str | Sequence[str] = "http://localhost:6333",
        api_key: str | Secret | None = None,
        prefix: str = "",
        timeout_seconds: float = 10.0,
        *,
        model: str | None = None,
    ) -> None:
        self._storage = storage
        self._named_model = model
        self._server = QdrantServer(url, api_key, timeout_seconds)
        self._collections = Collections(self._server, prefix)
        self._closed = False
        self._down = (0.0, "")

    def search(
        self,
        cls: type[Record],
        vector: Any,
        scope: Scope,
        where: Predicate = EVERYTHING,
        limit: int = 10,
        score_threshold: float | None = None,
    ) -> list[Nearest]:
        """The nearest records inside the scope that fulfil the predicate, with at least the cosine that is given."""
        if self._closed:
            raise StorageError("the vector index was closed")
        with self._storage.snapshot() as tx:
            query = tx.vector_query(cls, vector, scope, where, limit, self._named_model)
            if tx.writable or not limit:
                found = _from_store(tx, query)
            else:
                found = self._searched(tx, cls, query, score_threshold)
        return [each for each in found if score_threshold is None or each.cosine >= score_threshold]

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._server.close()

    # ------------------------------------------------------------------ searching

    def _searched(
        self, tx: Transaction, cls: type[Record], query: VectorQuery, threshold: float | None
    ) -> list[Nearest]:
        begun = time.monotonic()
        until, problem = self._down
        if begun < until:
            raise IndexUnavailable(problem)
        try:
            found = self._proposed(tx, cls, query, threshold)
        except QdrantError as exc:
            if time.monotonic() - begun > _SLOW_SECONDS:
                self._down = (time.monotonic() + _PAUSE_SECONDS, str(exc))
            raise IndexUnavailable(str(exc)) from exc
        return _from_store(tx, query) if found is None else found

    def _proposed(
        self, tx: Transaction, cls: type[Record], query: VectorQuery, threshold: float | None
    ) -> list[Nearest] | None:
        """The results found through Qdrant; None if the store has to search."""
        waiting = _waiting(tx, cls)
        if waiting is None:
            self._server.ping()
            return None
        try:
            return _Search(self._server, self._collections, tx, cls, query, threshold).run(waiting)
        except MissingCollectionError:
            return None


class _Search:
    """One search: looks at more and more points until the store has confirmed enough of them."""

    def __init__(
        self,
        server: QdrantServer,
        collections: Collections,
        tx: Transaction,
        cls: type[Record],
        query: VectorQuery,
        threshold: float | None,
    ) -> None:
        self._server = server
        self._alias = collections.name(cls, query.model)
        self._tx = tx
        self._key = KINDS[cls].key
        self._query = query
        self._unit = unit_of(query.vector)
        self._condition = condition_of(cls, query.where)
        self._threshold = None if threshold is None else threshold - _TOLERANCE
        self._best: dict[str, float] = {}

    def run(self, waiting: Sequence[str]) -> list[Nearest] | None:
        """The nearest records; None if the store has to search."""
        limit, seen = self._query.limit, set(waiting)
        self._confirm(waiting)
        asked, exact = limit + max(_SPARE, limit // 4), False
        for _ in range(_LOOKS):
            hits = self._hits(seen, asked, exact=exact)
            fresh = [key for key, _ in hits]
            self._confirm(fresh)
            seen.update(fresh)
            found = self._first()
            if len(hits) < asked and (exact or len(found) == limit):
                return found
            if len(found) == limit and found[-1].cosine > hits[-1][1] + _TOLERANCE:
                return found
            # A graph may end before everything that passes the filter was reached.
            exact = len(hits) < asked
            asked = min(asked * _MORE, _MOST_POINTS)
            if len(seen) > _MOST_POINTS:
                break
        return None

    def _hits(self, seen: Iterable[str], count: int, *, exact: bool) -> list[tuple[str, float]]:
        """The ids and scores of the nearest points, without those of records that were seen."""
        passed = list(seen)
        inside = [] if self._condition is None else [self._condition]
        chosen = but(inside, [any_of(self._key, passed)]) if passed else m.Filter(must=inside)
        parameters = m.SearchParams(exact=exact, hnsw_ef=max(_LEAST_CANDIDATES, 2 * count))
        try:
            found = self._server.call(
                lambda client: client.query_points(
                    self._alias,
                    query=self._unit,
                    query_filter=chosen,
                    search_params=parameters,
                    limit=count,
                    score_threshold=self._threshold,
                    with_payload=[self._key],
                )
            )
        except ValidationError as exc:
            raise QdrantError(str(exc)) from exc
        return [(str((point.payload or {}).get(self._key, point.id)), point.score) for point in found.points]

    def _confirm(self, keys: Sequence[str]) -> None:
        """Add those of these records that the store finds inside the query, with their exact cosines."""
        if keys:
            among = In(self._query.spec.key, list(dict.fromkeys(keys)))
            asked = replace(self._query, where=And(self._query.where, among))
            self._best.update(self._tx.answer(asked))

    def _first(self) -> list[Nearest]:
        ordered = sorted(sorted(self._best.items()), key=itemgetter(1), reverse=True)
        return [Nearest(key, cosine) for key, cosine in ordered[: self._query.limit]]


def _waiting(tx: Transaction, cls: type[Record]) -> list[str] | None:
    """The ids of the records of a kind that Qdrant has not caught up with; None if it has too much to catch up."""
    kind = cls.spec.kind
    if kind not in tx.projections().get(_PROJECTION, ()) or rebuild_of(tx, _PROJECTION) is not None:
        return None
    if not (pending := tx.backlog(_PROJECTION).pending):
        return []
    if pending > _MOST_WAITING:
        return None
    return [mark.record_id for mark in tx.pending(_PROJECTION) if mark.kind == kind]


def _from_store(tx: Transaction, query: VectorQuery) -> list[Nearest]:
    return [Nearest(key, cosine) for key, cosine in tx.answer(query)]
