"""Nearest neighbours on PostgreSQL: by pgvector's index where a scope is large, by comparing each where it is small."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from alma.model.query import EVERYTHING, And, Predicate
from alma.model.record import RecordSpec
from alma.model.vector import Vector
from alma.storage.nearest import nearest
from alma.storage.postgres.counts import Owners, owned_by, owners_of
from alma.storage.postgres.types import floats, literal
from alma.storage.ranking import minute, without_expiry
from alma.storage.sql.clauses import Values

if TYPE_CHECKING:
    from alma.storage.postgres.backend import PostgresBackend

# Divided by a length in double precision: large numbers do not overflow, and a zero vector has cosine 0.
_DISTANCE = (
    "coalesce((alma_embeddings.embedding <#> %(wanted)s) / nullif(vector_norm(alma_embeddings.embedding), 0), 0)"
)
_NEAREST_FIRST = f"ORDER BY {_DISTANCE}, alma_embeddings.memory_id"
_INDEXED = "alma_embeddings.embedding::vector({dims}) <=> %(wanted)s::vector({dims})"
# Vectors are compared where they stand, and only those that are wanted are read from there.
_PLACE = "alma_embeddings.tableoid AS home, alma_embeddings.ctid AS place"
_VECTOR = "(SELECT vector_send(embedding) FROM alma_embeddings WHERE ctid = near.place AND tableoid = near.home)"
# Where all vectors stand that were compared, beside the first of those that are found; in partitions, a place is
# not enough to find a vector by.
_LEARNED = (
    ", CASE WHEN row_number() OVER () = 1 THEN (SELECT CASE WHEN bool_and(home = 'alma_embeddings'::regclass) "
    "THEN array_agg(place)::text END FROM compared) END"
)
_ONCE_ASKED = ""
_SPARE = 16
# Up to so many records are always compared one by one; an index finds fewer the rarer they are.
_FEW_RECORDS = 4_000
# Where the limit stands. It is spelled out: of one that it does not know the planner thinks the worst, and plans anew
# every time.
_MOST = "\x00"
# To send the vectors of more and compare them here takes longer than to find them; the server's cosine has seven right
# digits.
_SENT, _SENT_OF_FEW = 40, 500
# One round of the index takes as long as what it finds is much, and is never less thorough than this, nor more.
_LEAST_ROUND, _LARGEST_ROUND = 100, 1_000


Found = Sequence[Any]
"""What is known of a vector that was found: its cosine or the vector itself, and the key of its record."""


@dataclass(frozen=True, slots=True)
class Few:
    """The ids of a few records, at most so many, as a query with its values; whether each fulfils the predicate.

    `owners` says whose they are, where they are all that these have.
    """

    ids: str
    values: Mapping[str, Any]
    most: int
    are_all: bool = False
    owners: Owners = ()


@dataclass(frozen=True, slots=True)
class Compared:
    """The vectors of a few records and their distances: a table, what it is made by before, and where they stand."""

    table: str
    made_by: str = ""
    places: str = ""


class VectorSearch:
    """One question to the vectors that a model made of a kind's records."""

    def __init__(self, backend: PostgresBackend, spec: RecordSpec, model: str, where: Predicate) -> None:
        self._backend = backend
        self._spec = spec
        self._where = where
        self._table = backend.dialect.kind(spec).table
        # Spelled out because a partial index is only used where the kind and model are constants.
        self._of_model = f"alma_embeddings.memory_type = '{spec.kind}' AND alma_embeddings.model = {literal(model)}"

    @cached_property
    def _fulfilling(self) -> tuple[str, dict[str, Any]]:
        """The condition of the predicate, and its values."""
        return self._backend.dialect.kind(self._spec).condition(self._where)

    @cached_property
    def _for_one_owner(self) -> tuple[str, dict[str, Any]]:
        """The same with the owner spelled out: how much it has decides whether the index is used.

        The planner then knows what it must, and plans the statement once for each owner instead of every time.
        """
        return self._backend.dialect.kind(self._spec).condition(self._where, literal)

    def nearest(self, vector: Vector, limit: int, *, exact: bool) -> list[tuple[str, float]]:
        """The keys of the records nearest by their best vector, with their cosines."""
        if not exact:
            owned = self._records(self._where)
            if not owned:
                return []
            among = self._few(owned, self._most_looked_at(limit))
            found = self._by_index(vector, limit) if among is None else self._among(among, vector, limit)
            if among is not None or len(found) == limit:
                return found
        # The server computes in single precision, so a few more are taken and ranked here.
        condition, values = self._fulfilling
        near = f"(SELECT {_PLACE}, memory_id FROM {self._joined(condition)} {_NEAREST_FIRST} LIMIT {_MOST}) AS near"
        rows = self._found(f"SELECT {_VECTOR}, near.memory_id FROM {near}", values, vector, limit + _SPARE)
        return _compared(rows, vector, limit)

    def _most_looked_at(self, limit: int) -> int:
        """Looking at so many records takes as long as the index, which must pass over all that lie between."""
        return max(_FEW_RECORDS, math.isqrt(4 * limit * self._records(EVERYTHING)))

    def _few(self, owned: int, few: int) -> Few | None:
        """The few records of which all that fulfil the predicate are; None where these are many."""
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
        return Few(f"SELECT {self._spec.key} FROM {self._table} WHERE {self._fulfilling[0]}", {}, few, are_all=True)

    def _records(self, where: Predicate) -> int:
        return self._backend.word_search(self._spec, where).records()

    def _has_more(self, few: int) -> bool:
        """Whether more than a few records fulfil the predicate: as the planner takes it, or else counted.

        Either is remembered for a while. Where they have become few, the index finds all or too few; where they have
        become many, looking at each takes longer.
        """
        large_scopes = self._backend.cache.large_scopes
        key: Hashable = (self._spec.kind, few, without_expiry(self._where))
        known = large_scopes.get(key, minute())
        if known is not None:
            return known
        condition, values = self._fulfilling
        some = f"SELECT 1 FROM {self._table} WHERE {condition}"
        plan = self._backend.rows(f"EXPLAIN (FORMAT JSON) {some}", values)[0][0]
        if plan[0]["Plan"]["Plan Rows"] <= few:
            counting = f"SELECT count(*) FROM ({some} LIMIT %(most)s) AS few"
            if self._backend.rows(counting, {**values, "most": few + 1})[0][0] <= few:
                return large_scopes.put(key, minute(), False)
        return large_scopes.put(key, minute(), True)

    def _by_index(self, vector: Vector, limit: int) -> list[tuple[str, float]]:
        """The records that the index takes for the nearest, by the server's cosine."""
        self._backend.set_ef_search(_round_for(limit))
        distance = _INDEXED.format(dims=len(vector))
        condition, values = self._for_one_owner
        command = (
            f"SELECT 1 - ({distance}), alma_embeddings.memory_id FROM {self._joined(condition)} "
            f"ORDER BY {distance} LIMIT {_MOST}"
        )
        return _best(self._found(command, values, vector, limit + _SPARE), limit)

    def _among(self, few: Few, vector: Vector, limit: int) -> list[tuple[str, float]]:
        """The nearest by comparing the vectors of a few records.

        The rest of the predicate is checked on the nearest alone, and on the others only where too few fulfil it.
        """
        condition, values = self._fulfilling
        # A few are compared in this process, as exactly as possible.
        sent = limit <= _SENT or few.most <= _SENT_OF_FEW
        compared = self._vectors_of(few)
        told, first, records = (
            (_VECTOR, "home, place", limit + _SPARE) if sent else ("near.cosine", "-distance AS cosine", limit)
        )
        nearest_first = "ORDER BY distance, memory_id LIMIT %(looked_at)s"
        near = f"(SELECT {first}, memory_id FROM {compared.table} {nearest_first}) AS near"
        if not few.are_all:
            own = f"SELECT 1 FROM {self._table} WHERE {self._spec.key} = near.memory_id AND {condition}"
            near += f" CROSS JOIN LATERAL ({own} OFFSET 0) AS own"
        learned = _LEARNED if compared.made_by else ""
        command = f"{compared.made_by}SELECT {told}, near.memory_id{learned} FROM {near} LIMIT {_MOST}"
        given = {**values, **few.values, "places": compared.places}
        rows: list[Found] = []
        if few.most > records + _SPARE:
            looked_at = {**given, "looked_at": records + _SPARE, "wanted": _unit(vector)}
            rows = self._backend.rows(command.replace(_MOST, str(records)), looked_at)
        if _distinct(rows) < records:
            rows = self._found(command, {**given, "looked_at": None}, vector, records)
        found = self._places_kept(few, rows) if learned else rows
        return _compared(found, vector, limit) if sent else _best(found, limit)

    def _vectors_of(self, few: Few) -> Compared:
        """The vectors of a few records, by where they stand if that is known of all that an owner has.

        It is read with the second query for an owner in the same state of the database.
        """
        # The ids are looked up together, which is faster as those of neighbours stand together.
        by_ids = _distances(f"{self._of_model} AND memory_id = ANY(ARRAY({few.ids}))")
        state, known = self._backend.state, self._backend.cache.vector_places
        if state is None or not few.owners or few.most > _FEW_RECORDS:
            return Compared(_at_once(by_ids))
        places = known.get((self._of_model, few.owners), state)
        if places is None:
            known.put((self._of_model, few.owners), state, _ONCE_ASKED)
            return Compared(_at_once(by_ids))
        if places != _ONCE_ASKED:
            # There is no further condition: before a server has counted, it takes any other condition for a better way.
            return Compared(_at_once(_distances("ctid = ANY(%(places)s::tid[])")), places=places)
        return Compared("compared", f"WITH compared AS MATERIALIZED ({by_ids}) ")

    def _places_kept(self, few: Few, rows: Sequence[Found]) -> list[Found]:
        """What was found, without the places that stand behind one of them; these are kept."""
        places = next((row[-1] for row in rows if row[-1]), None)
        if places is not None and self._backend.state is not None:
            self._backend.cache.vector_places.put((self._of_model, few.owners), self._backend.state, places)
        return [row[:-1] for row in rows]

    def _joined(self, condition: str) -> str:
        """The vectors of the records that fulfil a condition, whichever is looked at first."""
        record = f"alma_embeddings.memory_id = {self._table}.{self._spec.key}"
        return f"{self._table} JOIN alma_embeddings ON {record} AND {self._of_model} WHERE {condition}"

    def _found(self, command: str, values: Mapping[str, Any], vector: Vector, records: int) -> list[Found]:
        """What a command finds nearest by the server's reckoning, of so many records; a record may have several."""
        given, most = {**values, "wanted": _unit(vector)}, records
        while True:
            rows = self._backend.rows(command.replace(_MOST, str(most)), given)
            if _are_enough(rows, most, records):
                return rows
            most *= 4


def _distances(condition: str) -> str:
    """What finds the distances of the vectors that fulfil a condition."""
    return f"SELECT {_PLACE}, memory_id, {_DISTANCE} AS distance FROM alma_embeddings WHERE {condition}"


def _at_once(distances: str) -> str:
    """A table of distances, each computed once, although it is both sorted by and returned."""
    return f"({distances} OFFSET 0) AS compared"


def _conditions(where: Predicate) -> int:
    """Of how many conditions a predicate consists."""
    return sum(map(_conditions, where.parts)) if isinstance(where, And) else 1


def _round_for(limit: int) -> int:
    """How many vectors a round of the index looks for: it finds these and some more, and hands over the nearest."""
    return min(max(limit + 2 * _SPARE, _LEAST_ROUND), _LARGEST_ROUND)


def _are_enough(rows: Sequence[Found], most: int, records: int) -> bool:
    """Whether so many records are among the vectors that were found, of which there may be no others."""
    return len(rows) < most or _distinct(rows) >= records


def _distinct(rows: Sequence[Found]) -> int:
    """How many records there are among these vectors."""
    return len({row[1] for row in rows})


def _compared(found: Sequence[Found], vector: Vector, limit: int) -> list[tuple[str, float]]:
    """Each record with the best of its cosines, best first, by its vectors."""
    vectors = floats([row[0] for row in found])
    return nearest(vector, zip([row[1] for row in found], vectors, strict=True), limit)


def _best(found: Sequence[Found], limit: int) -> list[tuple[str, float]]:
    """The same by the server's cosines."""
    best: dict[str, float] = {}
    for row in found:
        cosine, key = row[0], row[1]
        # With a vector of zeros there is no angle, and a number that is none is not equal to itself.
        if cosine != cosine:
            cosine = 0.0
        elif cosine > 1.0:
            cosine = 1.0
        if key not in best or cosine > best[key]:
            best[key] = cosine
    # Sorting is stable, and twice by one thing is faster than once by two.
    return sorted(sorted(best.items()), key=itemgetter(1), reverse=True)[:limit]


def _unit(vector: Vector) -> Vector:
    length = math.hypot(*vector)
    if length == 0:
        return vector
    # In double precision, as Python reckons, but without a step of the interpreter for each number.
    numbers = np.frombuffer(vector.to_bytes(), "<f4").astype(np.float64) / length
    return Vector.from_bytes(numbers.astype("<f4").tobytes())
