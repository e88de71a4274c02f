"""How many of an owner's records have a word, on PostgreSQL: counted, cached, or estimated by statistics."""

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


# Records are not counted further than this; how many more there are the planner tells.
_LARGE = 20_000

Owners = tuple[tuple[str, tuple[str, ...]], ...]
"""The fields that say whose a record is, each with the values that it may have."""
Counted = tuple[str, Hashable]
"""What was counted: the records of a table by whose they are, or of a kind by the predicate that they fulfil."""


class _Owned(NamedTuple):
    """Records of a kind that are counted: whose they are, perhaps only whether there are any."""

    spec: RecordSpec
    owners: Owners
    any_at_all: bool = False

    def statement(self, owned: str) -> str:
        """The records to be counted, by the condition that they are the owner's."""
        some = f"SELECT 1 FROM {self.spec.postgres_table} WHERE {owned}"
        return f"SELECT 1 FROM ({some} LIMIT 1) AS found" if self.any_at_all else some


class OwnedRecords:
    """The records of a kind that some owners have, to be counted."""

    def __init__(self, backend: PostgresBackend, spec: RecordSpec, owners: Owners) -> None:
        self._backend = backend
        self._spec = spec
        self._table = spec.postgres_table
        self._owners = owners
        self._remembered: CountCache[int] = backend.cache.word_counts

    def count(self) -> int:
        """How many records the owners have, beyond a limit as the planner takes it."""
        key = (self._table, self._owners)
        known = self._known(key)
        if known is None:
            self._count()
            known = self._backend.counted_records[key]
        return known

    def count_all(self) -> int:
        """How many records the table has, as of the last minute: it decides on the way to what is found."""
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
        # What a transaction writes makes it count anew, and it rarely asks for several kinds.
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
        """The kinds that have the same owners as this one, and the memories of their project."""
        found: dict[Counted, _Owned] = {
            (spec.postgres_table, self._owners): _Owned(spec, self._owners) for spec in _kindred(self._spec)
        }
        project = tuple(owner for owner in self._owners if owner[0] == "project_id")
        if project and "agent" in self._spec.by_name:
            found[Memory.spec.postgres_table, project] = _Owned(Memory.spec, project)
        # Many a store has no relationships, and who asks for them asks more than once.
        found[MemoryRelationship.spec.postgres_table, ()] = _Owned(MemoryRelationship.spec, (), any_at_all=True)
        return found


def owners_of(where: Predicate) -> Owners:
    """Whose records a predicate asks for, always in the same order."""
    return tuple(sorted(ranking.owners(where).items()))


def owned_by(owners: Owners) -> Predicate:
    """That a record is one of these owners'."""
    return And(*(In(*owner) for owner in owners))


@cache
def _kindred(spec: RecordSpec) -> tuple[RecordSpec, ...]:
    """The searchable kinds that have the same columns for their owners as this one."""
    searchable = (cls.spec for cls in KINDS if cls.spec.text)
    return tuple(other for other in searchable if _owner_columns(other) == _owner_columns(spec))


def _owner_columns(spec: RecordSpec) -> set[str]:
    return {name for name in ranking.OWNERS if name in spec.by_name}


# What is not among the common words of the statistics is not counted further than this.
_COUNTED = 100
# Finding which of a word's records are an owner's takes about as long as reading one in four of them.
_ONE_IN = 4
_SHARES = """
SELECT most_common_elems::text::text[], most_common_elem_freqs FROM pg_stats
WHERE schemaname = current_schema() AND tablename = %(table)s AND attname = 'search' AND most_common_elems IS NOT NULL
"""


class WordCounts:
    """The words of the records of a kind that some owners have."""

    def __init__(self, backend: PostgresBackend, spec: RecordSpec, owners: Owners) -> None:
        self._backend = backend
        self._spec = spec
        self._statements = backend.dialect.kind(spec)
        self._table = self._statements.table
        self._owners = owners
        self._records = OwnedRecords(backend, spec, owners)
        self._remembered: CountCache[int] = backend.cache.word_counts

    def records(self) -> int:
        """How many records there are, beyond a limit as the planner takes it."""
        return self._records.count()

    def all_records(self) -> int:
        """How many records the table has, of all owners."""
        return self._records.count_all()

    def counts(self, words: Sequence[str]) -> tuple[int, dict[str, int]]:
        """How many records the scope has, and how many of them have each word, about."""
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
        """The words whose count is cached for this state of the database."""
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
        """What lets the index of words find an owner's records alone, where these are few among all; and the values."""
        names = self._backend.dialect.names
        indexed = [values for name, values in self._owners if name in names.owner_columns(self._spec)]
        few = indexed and self.records() * _ONE_IN <= self._records.count_all()
        given = {f"whose{place}": list(values) for place, values in enumerate(indexed if few else ())}
        return "".join(f" AND {names.owners(self._spec)} && %({name})s::text[]" for name in given), given

    def having(self, asked: str, fields: Iterable[str]) -> str:
        """The records that match, by some of their fields, and their places.

        It is a table beside that of the words.
        """
        # Each column costs time for each of thousands of records, even an unused one.
        stored = self._spec.stored_names
        columns = ", ".join(f'"{name}"' for name in dict.fromkeys(fields) if name in stored or name in COLUMNS)
        # With an offset the server looks the words up first, whatever else it could look up by.
        met = f"search @@ {asked}{self.in_index[0]}"
        return f"(SELECT {columns}, ctid AS place FROM {self._table} WHERE {met} OFFSET 0) AS {self._table}"

    @property
    def any_of_words(self) -> str:
        """That a record answers the question: with the owner in the index, whatever the question is."""
        few = self.in_index[0]
        # Hidden from the planner, which would else look up every word in its statistics, each time anew.
        return f"search @@ (SELECT %(question)s::tsquery){few}" if few else "search @@ %(question)s::tsquery"

    def _counts_of_few(self, words: Sequence[str]) -> dict[str, int]:
        """How many records of a small scope have each word."""
        known = self.known_of_few(words)
        unknown = [word for word in words if word not in known]
        if unknown:
            counted = self._counted_of_few(unknown) if len(unknown) <= ROOM[-1] else self._many_counted_of_few(unknown)
            self.remember_of_few(counted)
            known.update(counted)
        return known

    @cached_property
    def _owned(self) -> tuple[str, dict[str, Any]]:
        """The condition that a record is the owner's, and its values."""
        return self._statements.condition(owned_by(self._owners))

    @cached_property
    def _spelled_owner(self) -> tuple[str, dict[str, Any]]:
        """The same with the owner spelled out: how much it has decides on a plan, which is made once for each then."""
        return self._statements.condition(owned_by(self._owners), literal)

    def _counted_of_few(self, words: Sequence[str]) -> dict[str, int]:
        """One look at each record for all of the words."""
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
        """One look at each term of the records: a statement has no column for each of thousands of words."""
        owned, values = self._owned
        rows = self._backend.rows(
            f"SELECT term, count(*) FROM (SELECT unnest(tsvector_to_array(search)) AS term FROM {self._table} "
            f"WHERE {owned}) AS said WHERE term = ANY(%(words)s::text[]) GROUP BY term",
            {**values, "words": list(words)},
        )
        return {**dict.fromkeys(words, 0), **dict(rows)}

    def _counts(self, words: Sequence[str], records: int) -> dict[str, int]:
        """How many of so many records of the scope have each word; common ones by the server's statistics."""
        shares = self._shares()
        known = {word: round(shares[word] * records) if word in shares else self._known(word) for word in words}
        unknown = [word for word, count in known.items() if count is None]
        if unknown:
            for word, count in zip(unknown, self._counted(unknown, with_statistics=bool(shares)), strict=True):
                known[word] = self._remembered.put((self._table, self._owners, word), minute(), count)
        return {word: count for word, count in known.items() if count is not None}

    def _known(self, word: str) -> int | None:
        """What was counted within the last minute; a transaction that writes must see what it wrote."""
        return None if self._backend.writable else self._remembered.get((self._table, self._owners, word), minute())

    def _shares(self) -> Mapping[str, float]:
        """What share of all records has each of the most common terms; nothing before they were ever analysed.

        Counting a word means reading every record that has it, which takes longer than the search itself.
        """
        known = self._backend.cache.term_shares.get(self._table, minute())
        if known is not None:
            return known
        found = self._backend.rows(_SHARES, {"table": self._table})
        # Behind the shares of the terms stand three numbers about all of them.
        shares = dict(zip(*found[0], strict=False)) if found else {}
        return self._backend.cache.term_shares.put(self._table, minute(), shares)

    def _counted(self, words: Sequence[str], *, with_statistics: bool) -> list[int]:
        """How many records have each word; beyond a limit estimated from how far into the table so many reached."""
        most = _COUNTED if with_statistics else COUNTED
        owned, values = self._spelled_owner
        having = self.having("asked.word", (self._spec.key, *(name for name, _ in self._owners)))
        found = self._backend.rows(
            f"SELECT few.count, few.reached, "
            # Asked of the file system, and once is enough.
            f"(SELECT pg_relation_size('{self._table}') / current_setting('block_size')::int) "
            f"FROM unnest({hidden('words')}) WITH ORDINALITY AS asked(word, place) CROSS JOIN LATERAL "
            f"(SELECT count(*), (max(place)::text::point)[0] AS reached FROM (SELECT place "
            f"FROM {having} WHERE {owned} LIMIT {most}) AS met) AS few ORDER BY asked.place",
            {**values, **self.in_index[1], "words": list(map(quoted, words))},
        )
        return [
            # Each partition has pages of its own, and the whole none.
            count if count < most else max(count, round(count * pages / (reached + 1)))
            for count, reached, pages in found
        ]
