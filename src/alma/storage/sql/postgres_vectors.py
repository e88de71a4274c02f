"""Nearest neighbours on PostgreSQL: by pgvector's index where a scope is large, by comparing each where it is small."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from functools import cached_property
from typing import Any, Protocol

from psycopg import sql

from alma.model.query import EVERYTHING, Predicate
from alma.model.record import RecordSpec
from alma.model.vector import Vector
from alma.storage.nearest import nearest
from alma.storage.ranking import minute, without_expiry
from alma.storage.sql.pgvector import floats
from alma.storage.sql.postgres_tags import divided, rare_tags
from alma.storage.sql.postgres_words import Reader, WordSearch

# Divided by a length in double precision: large numbers do not overflow, and a zero vector has cosine 0.
_EXACT = (
    "coalesce((alma_embeddings.embedding <#> %(wanted)s) / nullif(vector_norm(alma_embeddings.embedding), 0), 0), "
    "alma_embeddings.memory_id"
)
_INDEXED = "alma_embeddings.embedding::vector({dims}) <=> %(wanted)s::vector({dims})"
# Vectors are compared where they stand, and only those that are wanted are read from there.
_PLACES = "SELECT alma_embeddings.memory_id, alma_embeddings.ctid AS place"
_READ = "SELECT memory_id, (SELECT vector_send(embedding) FROM alma_embeddings WHERE ctid = near.place)"
_SPARE = 16
# Up to so many records are always looked at one by one; an index finds fewer the rarer they are.
_FEW_RECORDS = 4_000
# One round of the index takes as long as what it finds is much, and is never less thorough than this, nor more.
_LEAST_ROUND, _LARGEST_ROUND = 100, 1_000


class Searcher(Reader, Protocol):
    """What asks the database, and can say how thorough the index is to be."""

    def look_round(self, vectors: int) -> None: ...


class VectorSearch:
    """One question to the vectors that a model made of a kind's records."""

    def __init__(self, tx: Searcher, spec: RecordSpec, model: str, where: Predicate) -> None:
        self._tx = tx
        self._spec = spec
        self._where = where
        self._table = tx.dialect.kind(spec).table
        # Spelled out because a partial index is only used where the kind and model are constants.
        self._of_model = f"alma_embeddings.memory_type = '{spec.kind}' AND alma_embeddings.model = {_quoted(model)}"

    @cached_property
    def _fulfilling(self) -> tuple[str, dict[str, Any]]:
        """The condition of the predicate, and its values."""
        return self._tx.dialect.kind(self._spec).condition(self._where)

    @cached_property
    def _rare_tags(self) -> tuple[str, ...]:
        """Tags that few records have, one of which a record must have."""
        return rare_tags(self._tx, self._spec, divided(self._spec, self._where)[1])

    def nearest(self, vector: Vector, limit: int, *, exact: bool) -> list[tuple[str, float]]:
        """The keys of the records nearest by their best vector, with their cosines."""
        small = False
        if not exact:
            owned = self._records(self._where)
            if not owned:
                return []
            # Looking at each record takes as long as the index then, which must pass over all that lie between.
            few = max(_FEW_RECORDS, math.isqrt(4 * limit * self._records(EVERYTHING)))
            small = owned <= few or bool(self._rare_tags) or not self._has_more(few)
            if not small and len(found := self._by_index(vector, limit)) == limit:
                return found
        # The server computes in single precision, so a few more are taken and ranked here.
        rows = self._compared(vector, limit + _SPARE, small=small)
        return nearest(vector, zip([key for key, _ in rows], floats([sent for _, sent in rows]), strict=True), limit)

    def _records(self, where: Predicate) -> int:
        return WordSearch(self._tx, self._spec, where).records()

    def _has_more(self, few: int) -> bool:
        """Whether more than a few records fulfil the predicate: as the planner takes it, or else counted.

        Either is remembered for a while. Where they have become few, the index finds all or too few; where they have
        become many, looking at each takes longer.
        """
        large_scopes = self._tx.dialect.large_scopes
        key: Hashable = (self._spec.kind, few, repr(without_expiry(self._where)))
        known = large_scopes.get(key, minute())
        if known is not None:
            return known
        condition, values = self._fulfilling
        some = f"SELECT 1 FROM {self._table} WHERE {condition}"
        plan = self._tx.rows(f"EXPLAIN (FORMAT JSON) {some}", values)[0][0]
        if plan[0]["Plan"]["Plan Rows"] <= few:
            counting = f"SELECT count(*) FROM ({some} LIMIT %(most)s) AS few"
            if self._tx.rows(counting, {**values, "most": few + 1})[0][0] <= few:
                return large_scopes.put(key, minute(), False)
        return large_scopes.put(key, minute(), True)

    def _by_index(self, vector: Vector, limit: int) -> list[tuple[str, float]]:
        """The records that the index takes for the nearest, by the server's cosine."""
        distance = _INDEXED.format(dims=len(vector))
        # One round of the index finds these and some more, and hands over the nearest.
        self._tx.look_round(min(max(limit + 2 * _SPARE, _LEAST_ROUND), _LARGEST_ROUND))
        command = (
            f"SELECT alma_embeddings.memory_id, 1 - ({distance}) FROM {self._joined} ORDER BY {distance} LIMIT %(most)s"
        )
        best: dict[str, float] = {}
        for key, cosine in self._found(command, self._fulfilling[1], vector, limit + _SPARE):
            # With a vector of zeros there is no angle.
            best[key] = max(best.get(key, -1.0), 0.0 if math.isnan(cosine) else cosine)
        return sorted(best.items(), key=lambda found: (-found[1], found[0]))[:limit]

    def _compared(self, vector: Vector, records: int, *, small: bool) -> list[tuple[str, bytes]]:
        """The nearest by comparing the vectors of each record, and these vectors."""
        condition, values = self._fulfilling
        if self._rare_tags:
            ids = f"SELECT memory_id FROM {self._tx.dialect.names.tags} WHERE tag = ANY(%(tags)s)"
            own = f"SELECT 1 FROM {self._table} WHERE {self._spec.key} = near.memory_id AND {condition} OFFSET 0"
            # The nearest of those that have a tag are looked at until enough fulfil the rest.
            command = (
                f"{_READ} FROM ({_PLACES} FROM {self._among(ids)} ORDER BY {_EXACT} OFFSET 0) AS near "
                f"CROSS JOIN LATERAL ({own}) AS own LIMIT %(most)s"
            )
            return self._found(command, {**values, "tags": list(self._rare_tags)}, vector, records)
        # Of few records the ids are looked up together, which is faster as those of neighbours stand together.
        ids = f"SELECT {self._spec.key} FROM {self._table} WHERE {condition}"
        source = self._among(ids) if small else self._joined
        command = f"{_READ} FROM ({_PLACES} FROM {source} ORDER BY {_EXACT} LIMIT %(most)s) AS near"
        return self._found(command, values, vector, records)

    @property
    def _joined(self) -> str:
        """The vectors of the records that fulfil the predicate, whichever is looked at first."""
        record = f"alma_embeddings.memory_id = {self._table}.{self._spec.key}"
        return f"{self._table} JOIN alma_embeddings ON {record} AND {self._of_model} WHERE {self._fulfilling[0]}"

    def _among(self, ids: str) -> str:
        """The vectors of the records with these ids."""
        return f"alma_embeddings WHERE {self._of_model} AND alma_embeddings.memory_id = ANY(ARRAY({ids}))"

    def _found(self, command: str, values: Mapping[str, Any], vector: Vector, records: int) -> list[tuple[str, Any]]:
        """What a command finds nearest by the server's reckoning, of so many records; a record may have several."""
        most = records
        while True:
            rows = self._tx.rows(command, {**values, "wanted": _unit(vector), "most": most})
            if len(rows) < most or len({key for key, _ in rows}) >= records:
                return rows
            most *= 4


def _unit(vector: Vector) -> Vector:
    length = math.sqrt(math.fsum(value * value for value in vector))
    return vector if length == 0 else Vector([value / length for value in vector])


def _quoted(text: str) -> str:
    return sql.Literal(text).as_string(None).replace("%", "%%")
