"""Nearest neighbours on PostgreSQL: pgvector's HNSW index for large scopes, an exact scan for small ones."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from alma.lazy import lazy_module
from alma.model.query import EVERYTHING, And, Predicate
from alma.model.record import RecordSpec
from alma.model.vector import Vector
from alma.storage.nearest import nearest
from alma.storage.postgres.counts import Owners, owned_by, owners_of
from alma.storage.postgres.types import floats, literal
from alma.storage.ranking import minute, without_expiry
from alma.storage.sql.clauses import Values

if TYPE_CHECKING:
    import numpy as np

    from alma.storage.postgres.backend import PostgresBackend
else:
    np = lazy_module("numpy")

# The norm is in double precision, so large values do not overflow; a zero vector has cosine 0.
_DISTANCE = (
    "coalesce((alma_embeddings.embedding <#> %(wanted)s) / nullif(vector_norm(alma_embeddings.embedding), 0), 0)"
)
_NEAREST_FIRST = f"ORDER BY {_DISTANCE}, alma_embeddings.memory_id"
_INDEXED = "alma_embeddings.embedding::vector({dims}) <=> %(wanted)s::vector({dims})"
# Distances are computed in place; only the vectors of the result are read, by their physical location (ctid).
_LOCATION = "alma_embeddings.tableoid AS part, alma_embeddings.ctid AS location"
_VECTOR = "(SELECT vector_send(embedding) FROM alma_embeddings WHERE ctid = near.location AND tableoid = near.part)"
# The locations of all compared vectors, in the first row of the result; None for partitions, in which a ctid is not
# unique.
_LOCATIONS = (
    ", CASE WHEN row_number() OVER () = 1 THEN (SELECT CASE WHEN bool_and(part = 'alma_embeddings'::regclass) "
    "THEN array_agg(location)::text END FROM compared) END"
)
# The cache entry of an owner that was queried once in the present state of the database.
_QUERIED_ONCE = ""
_SPARE = 16
# Scopes up to this size are always scanned; the recall of an HNSW index falls with the share of matching rows.
_SCANNED_RECORDS = 4_000
# Placeholder of the limit, which is written into the statement: with a LIMIT parameter the planner assumes the worst
# case and replans every time.
_LIMIT = "\x00"
# Up to these numbers of results and records, vectors are fetched and compared exactly in this process. The server's
# cosine has seven correct digits.
_FETCHED_RESULTS, _FETCHED_RECORDS = 40, 500
# Bounds of hnsw.ef_search.
_LEAST_EF_SEARCH, _MOST_EF_SEARCH = 100, 1_000


Row = Sequence[Any]
"""A row of a result: the cosine or the vector itself, and the key of its record."""


@dataclass(frozen=True, slots=True)
class Few:
    """A query for the ids of at most `most` records.

    `are_all` says that each of them matches the predicate; `owners` are set if these are all records of the owners.
    """

    ids: str
    values: Mapping[str, Any]
    most: int
    are_all: bool = False
    owners: Owners = ()


@dataclass(frozen=True, slots=True)
class Compared:
    """A table of vectors with distances, the WITH clause that makes it, and the known locations of the vectors."""

    table: str
    with_clause: str = ""
    locations: str = ""


class VectorSearch:
    """One search among the vectors that a model made of the records of a kind."""

    def __init__(self, backend: PostgresBackend, spec: RecordSpec, model: str, where: Predicate) -> None:
        self._backend = backend
        self._spec = spec
        self._where = where
        self._table = backend.dialect.kind(spec).table
        # Spelled out because a partial index is only used where the kind and model are constants.
        self._of_model = f"alma_embeddings.memory_type = '{spec.kind}' AND alma_embeddings.model = {literal(model)}"

    @cached_property
    def _condition(self) -> tuple[str, dict[str, Any]]:
        """The condition of the predicate, and its values."""
        return self._backend.dialect.kind(self._spec).condition(self._where)

    @cached_property
    def _literal_condition(self) -> tuple[str, dict[str, Any]]:
        """The condition with literal values instead of parameters.

        The planner then knows the owner, on whose size the choice of the index depends, and plans once for each owner.
        """
        return self._backend.dialect.kind(self._spec).condition(self._where, literal)

    def nearest(self, vector: Vector, limit: int, *, exact: bool) -> list[tuple[str, float]]:
        """The keys of the records nearest by their best vector, with their cosines."""
        if not exact:
            owned = self._records(self._where)
            if not owned:
                return []
            among = self._few(owned, self._scan_limit(limit))
            found = self._by_index(vector, limit) if among is None else self._among(among, vector, limit)
            if among is not None or len(found) == limit:
                return found
        # The server computes in single precision, so a few more are fetched and ranked here.
        condition, values = self._condition
        near = f"(SELECT {_LOCATION}, memory_id FROM {self._joined(condition)} {_NEAREST_FIRST} LIMIT {_LIMIT}) AS near"
        rows = self._found(f"SELECT {_VECTOR}, near.memory_id FROM {near}", values, vector, limit + _SPARE)
        return _compared(rows, vector, limit)

    def _scan_limit(self, limit: int) -> int:
        """The number of records up to which a scan is as fast as the index, which skips rows of other owners."""
        return max(_SCANNED_RECORDS, math.isqrt(4 * limit * self._records(EVERYTHING)))

    def _few(self, owned: int, few: int) -> Few | None:
        """The records to scan, which include all that match the predicate; None if there are too many."""
        rare_tags = self._backend.word_search(self._spec, self._where).rare_tags
        if rare_tags:
            ids = f"SELECT memory_id FROM {self._backend.dialect.names.tags} WHERE tag = ANY(%(tags)s)"
            return Few(ids, {"tags": list(rare_tags)}, owned)
        if owned <= few:
            named = Values(self._backend.dialect.names, "owner")
            clauses = self._backend.dialect.kind(self._spec).clauses
            owners = owners_of(self._where)
            ids = f"SELECT {self._spec.key} FROM {self._table} WHERE {clauses.condition(owned_by(owners), named)}"
            return Few(ids, named.values, owned, are_all=len(owners) == _conditions(self._where), owners=owners)
        if self._has_more(few):
            return None
        return Few(f"SELECT {self._spec.key} FROM {self._table} WHERE {self._condition[0]}", {}, few, are_all=True)

    def _records(self, where: Predicate) -> int:
        return self._backend.word_search(self._spec, where).records()

    def _has_more(self, few: int) -> bool:
        """Whether more records match the predicate: by the planner's estimate, or counted if that is low.

        The answer is cached for a while. An outdated one costs time, not results: if the index finds too few records,
        they are scanned.
        """
        large_scopes = self._backend.cache.large_scopes
        key: Hashable = (self._spec.kind, few, without_expiry(self._where))
        known = large_scopes.get(key, minute())
        if known is not None:
            return known
        condition, values = self._condition
        some = f"SELECT 1 FROM {self._table} WHERE {condition}"
        plan = self._backend.rows(f"EXPLAIN (FORMAT JSON) {some}", values)[0][0]
        if plan[0]["Plan"]["Plan Rows"] <= few:
            counting = f"SELECT count(*) FROM ({some} LIMIT %(most)s) AS few"
            if self._backend.rows(counting, {**values, "most": few + 1})[0][0] <= few:
                return large_scopes.put(key, minute(), False)
        return large_scopes.put(key, minute(), True)

    def _by_index(self, vector: Vector, limit: int) -> list[tuple[str, float]]:
        """The nearest records of the index, by the server's cosine."""
        self._backend.set_ef_search(_ef_search(limit))
        distance = _INDEXED.format(dims=len(vector))
        condition, values = self._literal_condition
        command = (
            f"SELECT 1 - ({distance}), alma_embeddings.memory_id FROM {self._joined(condition)} "
            f"ORDER BY {distance} LIMIT {_LIMIT}"
        )
        return _best(self._found(command, values, vector, limit + _SPARE), limit)

    def _among(self, few: Few, vector: Vector, limit: int) -> list[tuple[str, float]]:
        """The nearest by an exact scan.

        The rest of the predicate is checked on the nearest records first, and on the others if too few match.
        """
        condition, values = self._condition
        # Small results are compared in this process, which is exact.
        is_fetched = limit <= _FETCHED_RESULTS or few.most <= _FETCHED_RECORDS
        compared = self._vectors_of(few)
        column, inner, records = (
            (_VECTOR, "part, location", limit + _SPARE) if is_fetched else ("near.cosine", "-distance AS cosine", limit)
        )
        nearest_first = "ORDER BY distance, memory_id LIMIT %(scanned)s"
        near = f"(SELECT {inner}, memory_id FROM {compared.table} {nearest_first}) AS near"
        if not few.are_all:
            own = f"SELECT 1 FROM {self._table} WHERE {self._spec.key} = near.memory_id AND {condition}"
            near += f" CROSS JOIN LATERAL ({own} OFFSET 0) AS own"
        locations = _LOCATIONS if compared.with_clause else ""
        command = f"{compared.with_clause}SELECT {column}, near.memory_id{locations} FROM {near} LIMIT {_LIMIT}"
        given = {**values, **few.values, "locations": compared.locations}
        rows: list[Row] = []
        if few.most > records + _SPARE:
            scanned = {**given, "scanned": records + _SPARE, "wanted": _unit(vector)}
            rows = self._backend.rows(command.replace(_LIMIT, str(records)), scanned)
        if _distinct(rows) < records:
            rows = self._found(command, {**given, "scanned": None}, vector, records)
        found = self._keep_locations(few, rows) if locations else rows
        return _compared(found, vector, limit) if is_fetched else _best(found, limit)

    def _vectors_of(self, few: Few) -> Compared:
        """The vectors of a few records; by their locations if those of all records of the owner are cached.

        The second query for an owner in the same state of the database caches the locations.
        """
        # One array of ids: neighbouring ids are on the same pages of the index.
        by_ids = _distances(f"{self._of_model} AND memory_id = ANY(ARRAY({few.ids}))")
        state, known = self._backend.state, self._backend.cache.vector_places
        if state is None or not few.owners or few.most > _SCANNED_RECORDS:
            return Compared(_computed_once(by_ids))
        locations = known.get((self._of_model, few.owners), state)
        if locations is None:
            known.put((self._of_model, few.owners), state, _QUERIED_ONCE)
            return Compared(_computed_once(by_ids))
        if locations != _QUERIED_ONCE:
            # No further condition: without statistics the planner would choose any other condition first.
            return Compared(_computed_once(_distances("ctid = ANY(%(locations)s::tid[])")), locations=locations)
        return Compared("compared", f"WITH compared AS MATERIALIZED ({by_ids}) ")

    def _keep_locations(self, few: Few, rows: Sequence[Row]) -> list[Row]:
        """Cache the locations that one of the rows carries, and return the rows without that column."""
        locations = next((row[-1] for row in rows if row[-1]), None)
        if locations is not None and self._backend.state is not None:
            self._backend.cache.vector_places.put((self._of_model, few.owners), self._backend.state, locations)
        return [row[:-1] for row in rows]

    def _joined(self, condition: str) -> str:
        """A join of the records that match a condition with their vectors."""
        record = f"alma_embeddings.memory_id = {self._table}.{self._spec.key}"
        return f"{self._table} JOIN alma_embeddings ON {record} AND {self._of_model} WHERE {condition}"

    def _found(self, command: str, values: Mapping[str, Any], vector: Vector, records: int) -> list[Row]:
        """The rows of the nearest `records` records by the server's cosine; a record may have several vectors."""
        given, most = {**values, "wanted": _unit(vector)}, records
        while True:
            rows = self._backend.rows(command.replace(_LIMIT, str(most)), given)
            if _are_enough(rows, most, records):
                return rows
            most *= 4


def _distances(condition: str) -> str:
    """A query for the distances of the vectors that match a condition."""
    return f"SELECT {_LOCATION}, memory_id, {_DISTANCE} AS distance FROM alma_embeddings WHERE {condition}"


def _computed_once(distances: str) -> str:
    """A subquery that computes each distance once, although it is both sorted by and returned."""
    return f"({distances} OFFSET 0) AS compared"


def _conditions(where: Predicate) -> int:
    """The number of conditions in a predicate."""
    return sum(map(_conditions, where.parts)) if isinstance(where, And) else 1


def _ef_search(limit: int) -> int:
    """The number of candidates that an index search keeps."""
    return min(max(limit + 2 * _SPARE, _LEAST_EF_SEARCH), _MOST_EF_SEARCH)


def _are_enough(rows: Sequence[Row], most: int, records: int) -> bool:
    """Whether the rows contain enough records, or all there are."""
    return len(rows) < most or _distinct(rows) >= records


def _distinct(rows: Sequence[Row]) -> int:
    """The number of records among these rows."""
    return len({row[1] for row in rows})


def _compared(found: Sequence[Row], vector: Vector, limit: int) -> list[tuple[str, float]]:
    """Each record with its best cosine, best first, computed from the vectors."""
    vectors = floats([row[0] for row in found])
    return nearest(vector, zip([row[1] for row in found], vectors, strict=True), limit)


def _best(found: Sequence[Row], limit: int) -> list[tuple[str, float]]:
    """Each record with its best cosine, best first, as the server computed it."""
    best: dict[str, float] = {}
    for row in found:
        cosine, key = row[0], row[1]
        # The cosine of a zero vector is NaN, which is not equal to itself.
        if cosine != cosine:
            cosine = 0.0
        elif cosine > 1.0:
            cosine = 1.0
        if key not in best or cosine > best[key]:
            best[key] = cosine
    # Two stable sorts by one key are faster than one by two.
    return sorted(sorted(best.items()), key=itemgetter(1), reverse=True)[:limit]


def _unit(vector: Vector) -> Vector:
    length = math.hypot(*vector)
    if length == 0:
        return vector
    # In double precision, as Python computes.
    numbers = np.frombuffer(vector.to_bytes(), "<f4").astype(np.float64) / length
    return Vector.from_bytes(numbers.astype("<f4").tobytes())
