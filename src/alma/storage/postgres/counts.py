"""Document counts of words within a scope on PostgreSQL: counted, cached, or estimated from statistics."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from alma.model.kinds import KINDS
from alma.model.memory import Memory, MemoryRelationship
from alma.model.query import And, In, Predicate
from alma.model.record import RecordSpec
from alma.storage import ranking
from alma.storage.postgres.bm25 import ROOM, any_of, asked, having_each, hidden, room_for
from alma.storage.postgres.fulltext import COLUMNS, quoted
from alma.storage.postgres.types import Floats, literal
from alma.storage.ranking import COUNTED, CountCache, minute
from alma.storage.sql.clauses import Values

if TYPE_CHECKING:
    from alma.storage.postgres.backend import PostgresBackend


# Records are counted up to this; above it the planner's estimate is used.
_LARGE = 20_000

Owners = tuple[tuple[str, tuple[str, ...]], ...]
"""The owner fields of a scope, each with its allowed values."""
Counted = tuple[str, Hashable]
"""A cache key: a table with the owners, or a kind with the predicate, whose records were counted."""


class _Owned(NamedTuple):
    """Records of a kind to count, by owner; with `any_at_all`, only whether there are any."""

    spec: RecordSpec
    owners: Owners
    any_at_all: bool = False

    def statement(self, owned: str) -> str:
        """The statement that selects the records to count, given the condition on their owner."""
        some = f"SELECT 1 FROM {self.spec.postgres_table} WHERE {owned}"
        return f"SELECT 1 FROM ({some} LIMIT 1) AS found" if self.any_at_all else some


class OwnedRecords:
    """Counts the records of a kind that belong to some owners."""

    def __init__(self, backend: PostgresBackend, spec: RecordSpec, owners: Owners) -> None:
        self._backend = backend
        self._spec = spec
        self._table = spec.postgres_table
        self._owners = owners
        self._remembered: CountCache[int] = backend.cache.word_counts

    def count(self) -> int:
        """The number of the owners' records; above a limit the planner's estimate."""
        key = (self._table, self._owners)
        known = self._known(key)
        if known is None:
            self._count()
            known = self._backend.counted_records[key]
        return known

    def count_all(self) -> int:
        """The number of records in the table, up to a minute old: it chooses the query plan, not the results."""
        key = (self._table, "all")
        known = self._remembered.get(key, minute())
        if known is None:
            known = self._remembered.put(key, minute(), OwnedRecords(self._backend, self._spec, ()).count())
        return known

    def _known(self, key: Counted) -> int | None:
        known = self._backend.counted_records.get(key)
        return self._remembered.get(key, minute()) if known is None else known

    def _count(self) -> None:
        """Includes the kinds that are usually counted next, in one round trip.

        Counts from the same state of the database are reused.
        """
        # Counts are invalid after a write in the same transaction, and writers rarely search several kinds.
        alone = self._backend.writable or not self._owners
        own: dict[Counted, _Owned] = {(self._table, self._owners): _Owned(self._spec, self._owners)}
        unknown: dict[Counted, _Owned] = {}
        for key, owned in (own if alone else self._counted_next()).items():
            known = self._known(key)
            if known is None and self._backend.state is not None:
                known = self._remembered.get(owned, self._backend.state)
            if known is None:
                unknown[key] = owned
            else:
                self._backend.counted_records[key] = known
        if unknown:
            self._ask_how_many(unknown)

    def _ask_how_many(self, unknown: Mapping[Counted, _Owned]) -> None:
        values: dict[str, Any] = {}
        some: list[str] = []
        for place, owned in enumerate(unknown.values()):
            named = Values(self._backend.dialect.names, f"owner{place}_")
            condition = self._backend.dialect.kind(owned.spec).clauses.condition(owned_by(owned.owners), named)
            some.append(owned.statement(condition))
            values |= named.values
        counting = ", ".join(f"(SELECT count(*) FROM ({sql} LIMIT {_LARGE}) AS s)" for sql in some)
        counts = self._backend.rows(f"SELECT {counting}", values)[0]
        for (key, owned), sql, count in zip(unknown.items(), some, counts, strict=True):
            if count == _LARGE:
                plan = self._backend.rows(f"EXPLAIN (FORMAT JSON) {sql}", values)[0][0]
                count = self._remembered.put(key, minute(), max(count, int(plan[0]["Plan"]["Plan Rows"])))
            elif self._backend.state is not None:
                self._remembered.put(owned, self._backend.state, count)
            self._backend.counted_records[key] = count

    def _counted_next(self) -> dict[Counted, _Owned]:
        """The kinds with the same owner fields as this one, and the memories of the project."""
        found: dict[Counted, _Owned] = {
            (spec.postgres_table, self._owners): _Owned(spec, self._owners) for spec in _kindred(self._spec)
        }
        project = tuple(owner for owner in self._owners if owner[0] == "project_id")
        if project and "agent" in self._spec.by_name:
            found[Memory.spec.postgres_table, project] = _Owned(Memory.spec, project)
        # Many stores have no relationships, and a search asks for them several times.
        found[MemoryRelationship.spec.postgres_table, ()] = _Owned(MemoryRelationship.spec, (), any_at_all=True)
        return found


def owners_of(where: Predicate) -> Owners:
    """The owners that a predicate requires, sorted."""
    return tuple(sorted(ranking.owners(where).items()))


def owned_by(owners: Owners) -> Predicate:
    """The predicate that a record belongs to these owners."""
    return And(*(In(*owner) for owner in owners))


@cache
def _kindred(spec: RecordSpec) -> tuple[RecordSpec, ...]:
    """The searchable kinds with the same owner columns as this one."""
    searchable = (cls.spec for cls in KINDS if cls.spec.text)
    return tuple(other for other in searchable if _owner_columns(other) == _owner_columns(spec))


def _owner_columns(spec: RecordSpec) -> set[str]:
    return {name for name in ranking.OWNERS if name in spec.by_name}


# Words that are not among the most common elements of the statistics are counted up to this.
_COUNTED = 100
# Filtering the postings of a word by owner costs about as much as reading a quarter of its records.
_ONE_IN = 4
_SHARES = """
SELECT most_common_elems::text::text[], most_common_elem_freqs FROM pg_stats
WHERE schemaname = current_schema() AND tablename = %(table)s AND attname = 'search' AND most_common_elems IS NOT NULL
"""


class WordCounts:
    """Document counts of words among the records of a kind that belong to some owners."""

    def __init__(self, backend: PostgresBackend, spec: RecordSpec, owners: Owners) -> None:
        self._backend = backend
        self._spec = spec
        self._statements = backend.dialect.kind(spec)
        self._table = self._statements.table
        self._owners = owners
        self._records = OwnedRecords(backend, spec, owners)
        self._remembered: CountCache[int] = backend.cache.word_counts

    def records(self) -> int:
        """The number of records; above a limit the planner's estimate."""
        return self._records.count()

    def all_records(self) -> int:
        """The number of records in the table, of all owners."""
        return self._records.count_all()

    def counts(self, words: Sequence[str]) -> tuple[int, dict[str, int]]:
        """The approximate number of records in the scope, and of those with each word."""
        records = self.records()
        if not records:
            return 0, dict.fromkeys(words, 0)
        counted = self._backend.counted_words.setdefault((self._table, self._owners), {})
        unknown = [word for word in words if word not in counted]
        if unknown:
            few = records <= ranking.BUDGET
            counted.update(self._counts_of_few(unknown) if few else self._counts(unknown, records))
        return records, {word: counted[word] for word in words}

    def known_of_few(self, words: Sequence[str]) -> dict[str, int]:
        """The counts that are cached for this state of the database."""
        state, here = self._backend.state, self._backend.counted_words.get((self._table, self._owners), {})
        known: dict[str, int] = {}
        for word in words:
            count = here.get(word)
            if count is None and state is not None:
                count = self._remembered.get((self._table, self._owners, word, "few"), state)
            if count is not None:
                known[word] = count
        return known

    def remember_of_few(self, counted: Mapping[str, int]) -> None:
        self._backend.counted_words.setdefault((self._table, self._owners), {}).update(counted)
        if self._backend.state is not None:
            for word, count in counted.items():
                self._remembered.put((self._table, self._owners, word, "few"), self._backend.state, count)

    @cached_property
    def in_index(self) -> tuple[str, dict[str, Any]]:
        """A condition on the owner inside the full-text index, if the owner has few of the records; and its values."""
        names = self._backend.dialect.names
        indexed = [values for name, values in self._owners if name in names.owner_columns(self._spec)]
        few = indexed and self.records() * _ONE_IN <= self._records.count_all()
        given = {f"whose{place}": list(values) for place, values in enumerate(indexed if few else ())}
        return "".join(f" AND {names.owners(self._spec)} && %({name})s::text[]" for name in given), given

    def having(self, asked: str, fields: Iterable[str]) -> str:
        """A subquery of the matching records: some of their fields, and their ctid."""
        # Each column costs time for thousands of records, even an unused one.
        stored = self._spec.stored_names
        columns = ", ".join(f'"{name}"' for name in dict.fromkeys(fields) if name in stored or name in COLUMNS)
        # OFFSET 0 makes the server use the full-text index first.
        met = f"search @@ {asked}{self.in_index[0]}"
        return f"(SELECT {columns}, ctid AS place FROM {self._table} WHERE {met} OFFSET 0) AS {self._table}"

    @property
    def any_of_words(self) -> str:
        """The condition that a record has any of the query's words, with the owner if the index filters by it."""
        few = self.in_index[0]
        # In a subquery, so that the planner does not look up every word in its statistics.
        return f"search @@ (SELECT %(question)s::tsquery){few}" if few else "search @@ %(question)s::tsquery"

    def _counts_of_few(self, words: Sequence[str]) -> dict[str, int]:
        """The number of records of a small scope with each word."""
        known = self.known_of_few(words)
        unknown = [word for word in words if word not in known]
        if unknown:
            counted = self._counted_of_few(unknown) if len(unknown) <= ROOM[-1] else self._many_counted_of_few(unknown)
            self.remember_of_few(counted)
            known.update(counted)
        return known

    @cached_property
    def _owned(self) -> tuple[str, dict[str, Any]]:
        """The condition that a record belongs to the owners, and its values."""
        return self._statements.condition(owned_by(self._owners))

    @cached_property
    def _spelled_owner(self) -> tuple[str, dict[str, Any]]:
        """The same with literals: the plan depends on the owner's number of records."""
        return self._statements.condition(owned_by(self._owners), literal)

    def _counted_of_few(self, words: Sequence[str]) -> dict[str, int]:
        """Count all words in one pass over the records."""
        owned, values = self._owned
        room = room_for(words)
        among = f" AND {self.any_of_words}" if self.in_index[0] else ""
        rows = self._backend.rows(
            f"SELECT {having_each(room)} FROM {self._table} CROSS JOIN {asked(room)} WHERE {owned}{among}",
            {
                **values,
                **self.in_index[1],
                "question": any_of(words),
                "words": list(map(quoted, words)),
                "worth": Floats(),
            },
        )
        return dict(zip(words, rows[0], strict=False))

    def _many_counted_of_few(self, words: Sequence[str]) -> dict[str, int]:
        """Count thousands of words, more than a statement has columns for, in one pass over the terms."""
        owned, values = self._owned
        rows = self._backend.rows(
            f"SELECT term, count(*) FROM (SELECT unnest(tsvector_to_array(search)) AS term FROM {self._table} "
            f"WHERE {owned}) AS said WHERE term = ANY(%(words)s::text[]) GROUP BY term",
            {**values, "words": list(words)},
        )
        return {**dict.fromkeys(words, 0), **dict(rows)}

    def _counts(self, words: Sequence[str], records: int) -> dict[str, int]:
        """The number of records of a large scope with each word; common words are estimated from the statistics."""
        shares = self._shares()
        known = {word: round(shares[word] * records) if word in shares else self._known(word) for word in words}
        unknown = [word for word, count in known.items() if count is None]
        if unknown:
            for word, count in zip(unknown, self._counted(unknown, with_statistics=bool(shares)), strict=True):
                known[word] = self._remembered.put((self._table, self._owners, word), minute(), count)
        return {word: count for word, count in known.items() if count is not None}

    def _known(self, word: str) -> int | None:
        """The count of the last minute; None in a write transaction, which must see its own writes."""
        return None if self._backend.writable else self._remembered.get((self._table, self._owners, word), minute())

    def _shares(self) -> Mapping[str, float]:
        """The share of records with each of the most common terms; empty before the first ANALYZE.

        Counting a word reads every record with it, which takes longer than the search.
        """
        known = self._backend.cache.term_shares.get(self._table, minute())
        if known is not None:
            return known
        found = self._backend.rows(_SHARES, {"table": self._table})
        # The list of shares ends with three numbers about all terms.
        shares = dict(zip(*found[0], strict=False)) if found else {}
        return self._backend.cache.term_shares.put(self._table, minute(), shares)

    def _counted(self, words: Sequence[str], *, with_statistics: bool) -> list[int]:
        """The number of records with each word; above a limit estimated from the last page reached."""
        most = _COUNTED if with_statistics else COUNTED
        owned, values = self._spelled_owner
        having = self.having("asked.word", (self._spec.key, *(name for name, _ in self._owners)))
        found = self._backend.rows(
            f"SELECT few.count, few.reached, "
            # Reads the file size, so only once.
            f"(SELECT pg_relation_size('{self._table}') / current_setting('block_size')::int) "
            f"FROM unnest({hidden('words')}) WITH ORDINALITY AS asked(word, place) CROSS JOIN LATERAL "
            f"(SELECT count(*), (max(place)::text::point)[0] AS reached FROM (SELECT place "
            f"FROM {having} WHERE {owned} LIMIT {most}) AS met) AS few ORDER BY asked.place",
            {**values, **self.in_index[1], "words": list(map(quoted, words))},
        )
        return [
            # Partitions have pages; the partitioned table has none.
            count if count < most else max(count, round(count * pages / (reached + 1)))
            for count, reached, pages in found
        ]
