"""Full text on PostgreSQL: BM25 over the `search` column, which the server does not have itself.

The server ranks by how often a word occurs, not by how rare it is. So the rarity comes from counting here, and
the score is put together in SQL: the rarer words for every record that has one of them, the words left out only for the
best of these. Which are the best is told by pairs of words as well: who has two of them is found by looking both up.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, NamedTuple, Protocol

from alma.model.kinds import KINDS
from alma.model.memory import Memory, MemoryRelationship
from alma.model.query import EVERYTHING, And, In, Predicate
from alma.model.record import RecordSpec
from alma.storage import ranking
from alma.storage.primitives import Query
from alma.storage.ranking import COUNTED, K1, B, Pair, Remembered, Selection, minute, rarity, rarity_in_sql
from alma.storage.sql.clauses import Values, fields_of
from alma.storage.sql.foreseen import Foreseen
from alma.storage.sql.postgres_entries import marks_of, quoted
from alma.storage.sql.postgres_tags import divided, rare_tags, tagged
from alma.storage.sql.postgres_wire import Floats, literal
from alma.storage.sql.statements import Dialect

_FEWEST_RESCORED = 50
_MOST_RESCORED = 200
_LOOKED_AT = 2_000
_LARGE = 20_000
# What is not among the common words of the statistics is not counted further than this.
_COUNTED = 100
_SPARE = 50
_ENOUGH = 10
# The server reads each record from its table to score it, which takes longer than to read an entry of an index.
_BUDGET = 800
_BUDGET_OF_PAIRS = 600
_SAMPLE = 500
# Finding which of a word's records are an owner's takes about as long as reading one in four of them.
_ONE_IN = 4
# A statement has room for so many words, so that the server knows it already whatever the number of words.
_ROOM = (0, 12, 24, 48, 96)
# The server's rank of one word that occurs n times is 1 + 1/4 + … + 1/n², divided by what that sum tends to; from how
# much is missing, n can be told: it is nearly 1 / missing - 0.52.
_SUM = 1.64493406685
_SHARES = """
SELECT most_common_elems::text::text[], most_common_elem_freqs FROM pg_stats
WHERE schemaname = current_schema() AND tablename = %(table)s AND attname = 'search' AND most_common_elems IS NOT NULL
"""


Owners = tuple[tuple[str, tuple[str, ...]], ...]
"""The fields that say whose a record is, each with the values that it may have."""
Counted = tuple[str, Hashable]
"""What was counted: the records of a table by whose they are, or of a kind by the predicate that they fulfil."""


class Reader(Protocol):
    """What asks the database."""

    dialect: Dialect
    writable: bool
    # How many records an owner has, and how many of them have each word, as far as this transaction has counted.
    counted_records: dict[Counted, int]
    counted_words: dict[Hashable, dict[str, int]]
    # Which state of the database it sees, if that stays: another after every commit of anybody.
    state: int | None
    # What was said to be asked for; it holds the predicates, which are known by their ids.
    expected: list[Query]

    def rows(self, sql: str, values: Mapping[str, Any]) -> list[Any]: ...

    def condition_of(self, spec: RecordSpec, where: Predicate) -> tuple[str, dict[str, Any]]: ...

    def foreseen(self, spec: RecordSpec) -> Foreseen | None: ...


class _Owned(NamedTuple):
    """Records of a kind that are counted: whose they are and what else they are, perhaps only whether there are any."""

    spec: RecordSpec
    owners: Owners
    narrowed: str = ""
    any_at_all: bool = False

    def statement(self, owned: str) -> str:
        """The records to be counted, by the condition that they are the owner's."""
        conditions = " AND ".join(filter(None, (owned, self.narrowed)))
        some = f"SELECT 1 FROM {self.spec.postgres_table} WHERE {conditions}"
        return f"SELECT 1 FROM ({some} LIMIT 1) AS found" if self.any_at_all else some


class WordSearch:
    """One question to the `search` column of a kind."""

    def __init__(self, tx: Reader, spec: RecordSpec, where: Predicate) -> None:
        self._tx = tx
        self._spec = spec
        self._statements = tx.dialect.kind(spec)
        self._table = self._statements.table
        self._key = spec.key
        self._where = where
        self._owners = owners_of(where)
        # A tsvector knows how many different terms it has, not how many; bytes are nearer, and known without reading.
        self._length = self._statements.text_length
        self._remembered: Remembered[int] = tx.dialect.word_counts

    @cached_property
    def _fulfilling(self) -> tuple[str, dict[str, Any]]:
        """The condition of the whole predicate, and its values."""
        return self._tx.condition_of(self._spec, self._where)

    @cached_property
    def _owned(self) -> tuple[str, dict[str, Any]]:
        """The condition that a record is the owner's, and its values."""
        return self._statements.condition(owned_by(self._owners))

    @cached_property
    def _spelled_owner(self) -> tuple[str, dict[str, Any]]:
        """The same with the owner spelled out: how much it has decides on a plan, which is made once for each then."""
        return self._statements.condition(owned_by(self._owners), literal)

    @cached_property
    def _divided(self) -> tuple[Predicate, Predicate]:
        """What the predicate says besides of tags, and what it says of tags."""
        return divided(self._spec, self._where)

    @cached_property
    def rare_tags(self) -> tuple[str, ...]:
        """Tags that few records have, one of which a record must have."""
        return rare_tags(self._tx, self._spec, self._divided[1])

    @cached_property
    def _in_index(self) -> tuple[str, dict[str, Any]]:
        """What lets the index of words find an owner's records alone, where these are few among all; and the values."""
        names = self._tx.dialect.names
        indexed = [values for name, values in self._owners if name in names.owner_columns(self._spec)]
        few = indexed and self.records() * _ONE_IN <= self._all_records()
        given = {f"whose{place}": list(values) for place, values in enumerate(indexed if few else ())}
        return "".join(f" AND {names.owners(self._spec)} && %({name})s::text[]" for name in given), given

    def _having(self, asked: str, fields: Iterable[str]) -> str:
        """The records that have what is asked for, by some of their fields, and their places.

        It is a table beside that of the words.
        """
        # Each column takes its time for each of thousands of records, even one that nobody asks for.
        stored = self._spec.stored_names
        columns = ", ".join(f'"{name}"' for name in dict.fromkeys(fields) if name in stored or name == "search")
        # With an offset the server looks the words up first, whatever else it could look up by.
        met = f"search @@ {asked}{self._in_index[0]}"
        return f"(SELECT {columns}, ctid AS place FROM {self._table} WHERE {met} OFFSET 0) AS {self._table}"

    def matching(self, words: Sequence[str], limit: int, *, exact: bool = True) -> list[tuple[str, float]]:
        """The keys of the records that match, with their scores, best first."""
        records = self.records()
        if not records:
            return []
        if records <= ranking.BUDGET:
            return self._matching_few(words, records, limit)
        _, counts = self.counts(words)
        records = max(records, *counts.values())
        weights = {word: rarity(records, counts[word]) for word in words}
        best = max(limit, min(max(2 * limit, _FEWEST_RESCORED), _MOST_RESCORED))
        if exact:
            selection = ranking.select(counts, records, budget=ranking.BUDGET)
            if not selection.left_out:
                return self._scored(weights, _any_of(words), limit)
            return self._scored(weights, None, limit, keys=self._candidates(selection, weights, best, None))
        selection, pairs = self._selection(counts, records)
        found = self._best_of(selection, pairs, weights, max(best, limit + _SPARE), limit)
        # Whoever does not need them all has the best already, and looking for the others takes the longest.
        if len(found) >= min(limit, _ENOUGH) or not selection.left_out:
            return found
        if selection.chosen:
            keys = self._candidates(selection, weights, best, found)
        else:
            # Too few have two of the words, so that one of them must do.
            keys = self._candidates(ranking.select(counts, records), weights, best, None)
        return self._scored(weights, None, limit, keys=keys)

    def scores(self, words: Sequence[str], keys: Sequence[str]) -> dict[str, float]:
        """What those of the records with these keys score that have any of the words."""
        records, counts = self.counts(words)
        if not records:
            return {}
        records = max(records, *counts.values())
        weights = {word: rarity(records, count) for word, count in counts.items()}
        return {key: score for key, score in self._scored(weights, None, len(keys), keys=keys) if score > 0}

    def _matching_few(self, words: Sequence[str], records: int, limit: int) -> list[tuple[str, float]]:
        """The best among so few records that every word counts; where it is not known how often, in the same look."""
        counted = self._known_of_few(words)
        if len(counted) < len(words):
            return self._counted_and_scored(words, records, limit)
        return self._scored({word: rarity(records, counted[word]) for word in words}, _any_of(words), limit)

    def _counted_and_scored(self, words: Sequence[str], records: int, limit: int) -> list[tuple[str, float]]:
        """The best of a few records, with each word weighing by how many of them have it."""
        named = Values(self._tx.dialect.names, "owner")
        owned = self._statements.clauses.condition(owned_by(self._owners), named)
        condition, values = self._fulfilling
        room = _room_for(words)
        rows = self._tx.rows(
            f"WITH found AS MATERIALIZED (SELECT {self._needed}, {self._norm} AS norm, {condition} AS fulfilling "
            f"FROM {self._table} WHERE {owned} AND {self._any_of_words}), weighed AS MATERIALIZED ({_weighed(room)}) "
            f"SELECT {_score(room)}, {self._key}{self._foreseen_columns}, met "
            f"FROM found AS {self._table} CROSS JOIN weighed WHERE fulfilling ORDER BY 1 DESC, 2 LIMIT {limit}",
            {
                **values,
                **named.values,
                **self._in_index[1],
                "question": _any_of(words),
                "words": list(map(quoted, words)),
                "worth": Floats(),
                "records": float(records),
                "mean": self._mean_length(),
            },
        )
        if rows:
            self._remember_of_few(dict(zip(words, map(int, rows[0][-1].split(",")), strict=False)))
        return self._noted([row[:-1] for row in rows])

    def _selection(self, counts: Mapping[str, int], records: int) -> tuple[Selection, tuple[Pair, ...]]:
        """Which words are looked up, and which only together with another.

        Where only the records with a rare tag are scored, nearly all are.
        """
        if self.rare_tags:
            share = min(1.0, tagged(self._tx, self.rare_tags) / records)
            counts = {word: math.ceil(count * share) for word, count in counts.items()}
        selection = ranking.select(counts, records, budget=_BUDGET)
        pairs = ranking.pairs(selection, counts, records, budget=_BUDGET_OF_PAIRS)
        if not selection.chosen and not pairs:
            # One word is better than none, and looking for records with several common ones takes longer.
            selection = ranking.select(counts, records)
        return selection, pairs

    def _best_of(
        self, selection: Selection, pairs: Sequence[Pair], weights: Mapping[str, float], rescored: int, limit: int
    ) -> list[tuple[str, float]]:
        """The best by the words chosen and by pairs, with what the words left out add to the `rescored` best.

        The statement is the same for any number of words, so that the server plans it once.
        """
        if not selection.chosen and not pairs:
            return []
        condition, then, values = self._in_two_steps()
        having = self._having(
            "(asked.word && %(marks)s::tsquery)" if self.rare_tags else "asked.word",
            (self._key, "search", *self._spec.text, *fields_of(self._where)),
        )
        # What each word is worth is told first, so that no text has to be sorted.
        found = (
            f"SELECT {self._key}, place, {_worth('weight', 'asked.word', self._norm)} AS worth, "
            f"promise / (1::float8 + {self._norm}) AS promise "
            f"FROM {_weighted('chosen', 'promise')} CROSS JOIN LATERAL {having} WHERE {condition} OFFSET 0"
        )
        best = (
            f"SELECT {self._key}, place, sum(worth) AS score FROM ({found}) AS {self._table} "
            f"GROUP BY place, {self._key} ORDER BY sum(worth) + sum(promise) DESC, {self._key}"
        )
        if then:
            # Best first, until there are enough that fulfil it.
            best = (
                f"SELECT {self._table}.* FROM ({best} OFFSET 0) AS {self._table} "
                f"CROSS JOIN LATERAL (SELECT 1 WHERE {then} OFFSET 0) AS fulfilled"
            )
        # Spelled out: of a limit that it does not know the planner thinks the worst, and plans anew every time.
        best += f" LIMIT {rescored if selection.left_out else limit}"
        score, further = "best.score", self._foreseen_columns
        if selection.left_out:
            more = f"SELECT sum({_worth('weight', 'asked.word', self._norm)}) FROM {_weighted('left_out')}"
            score += f" + coalesce(({more} WHERE search @@ asked.word), 0)"
        if selection.left_out or further:
            # By where they stand, which is nearer than their keys; each part of a divided table has places of its own.
            there = f"{self._table}.ctid = best.place AND {self._table}.{self._key} = best.{self._key}"
            best = f"({best}) AS best JOIN {self._table} ON {there}"
        else:
            best = f"({best}) AS best"
        return self._kept(
            f"SELECT {score}, best.{self._key}{further} FROM {best} ORDER BY 1 DESC, 2 LIMIT {limit}",
            {
                **values,
                **self._in_index[1],
                **_weighing("chosen", selection.chosen, weights, pairs),
                **_weighing("left_out", selection.left_out, weights),
                "mean": self._mean_length(),
                "marks": _any_of(marks_of(self.rare_tags)),
            },
        )

    @property
    def _needed(self) -> str:
        """The columns that scores and what is foreseen are told from."""
        foreseen = self._tx.foreseen(self._spec)
        names = () if foreseen is None else foreseen.names
        stored = (name for name in (*self._spec.text, *names) if name in self._spec.stored_names)
        return ", ".join(f'"{name}"' for name in dict.fromkeys((self._key, "search", *stored)))

    @property
    def _foreseen_columns(self) -> str:
        """What is read of the records that are found because it will be asked for, behind other columns."""
        foreseen = self._tx.foreseen(self._spec)
        return "" if foreseen is None else f", {foreseen.columns}"

    def _kept(self, sql: str, values: Mapping[str, Any]) -> list[tuple[str, float]]:
        """The keys and scores that a statement finds; what was foreseen is kept."""
        return self._noted(self._tx.rows(sql, values))

    def _noted(self, rows: Sequence[Sequence[Any]]) -> list[tuple[str, float]]:
        """The keys and scores that were found."""
        foreseen = self._tx.foreseen(self._spec)
        if foreseen is not None:
            foreseen.found(self._where, rows)
        return [(row[1], row[0]) for row in rows]

    def _in_two_steps(self) -> tuple[str, str, dict[str, Any]]:
        """What every record that has a word must fulfil, what only the best of these are asked for, and the values."""
        plain, tagged = self._divided
        if tagged == EVERYTHING or self.rare_tags:
            condition, values = self._fulfilling
            return condition, "", values
        condition, values = self._statements.condition(plain)
        further = Values(self._tx.dialect.names, "t")
        return condition, self._statements.clauses.condition(tagged, further), {**values, **further.values}

    @property
    def _norm(self) -> str:
        """What the length of a record counts."""
        return f"({K1 * (1 - B)}::float8 + {K1 * B}::float8 * ({self._length}) / %(mean)s::float8)"

    def _candidates(
        self, selection: Selection, weights: Mapping[str, float], wanted: int, known: Sequence[tuple[str, float]] | None
    ) -> list[str]:
        """The best by the words chosen; where these are too few, some that have all of the others, then fewer.

        All that have one of the words chosen may be known already.
        """
        found: dict[str, float] = dict(known or ())
        if selection.chosen and known is None:
            chosen = {word: weights[word] for word in selection.chosen}
            found.update(self._scored(chosen, _any_of(selection.chosen), wanted))
        for group in ranking.conjunctions(selection.left_out):
            if len(found) >= wanted:
                break
            found.update(self._scored({}, _all_of(group), wanted, cut=_LOOKED_AT))
        return list(found)

    @property
    def _any_of_words(self) -> str:
        """That a record answers the question: with the owner in the index, whatever the question is."""
        few = self._in_index[0]
        # Hidden from the planner, which would else look up every word in its statistics, each time anew.
        return f"search @@ (SELECT %(question)s::tsquery){few}" if few else "search @@ %(question)s::tsquery"

    def _scored(
        self,
        weights: Mapping[str, float],
        question: str | None,
        limit: int,
        *,
        keys: Sequence[str] | None = None,
        cut: int | None = None,
    ) -> list[tuple[str, float]]:
        """The records that answer the question, or those with the keys, by what the weighted words are worth."""
        wanted = f"{self._key} = ANY(%(keys)s)" if keys is not None else self._any_of_words
        condition, values = self._fulfilling
        room = _room_for(weights)
        return self._kept(
            f"SELECT {_score(room)}, {self._key}{self._foreseen_columns} FROM (SELECT *, {self._norm} AS norm "
            f"FROM {self._table} "
            f"WHERE {wanted} AND {condition} {'OFFSET 0' if cut is None else f'LIMIT {cut}'}) AS {self._table} "
            f"{f'CROSS JOIN {_asked(room)}' if room else ''} "
            f"ORDER BY 1 DESC, 2 LIMIT %(most)s",
            {
                **values,
                "words": list(map(quoted, weights)),
                "worth": Floats(weight * (K1 + 1) for weight in weights.values()),
                "question": question,
                **self._in_index[1],
                "keys": keys,
                "mean": self._mean_length() if weights else 1.0,
                "most": limit,
            },
        )

    # ------------------------------------------------------------------ counting

    def counts(self, words: Sequence[str]) -> tuple[int, dict[str, int]]:
        """How many records the scope has, and how many of them have each word, about."""
        records = self.records()
        if not records:
            return 0, dict.fromkeys(words, 0)
        counted = self._tx.counted_words.setdefault((self._table, self._owners), {})
        unknown = [word for word in words if word not in counted]
        if unknown:
            few = records <= ranking.BUDGET
            counted.update(self._counts_of_few(unknown) if few else self._counts(unknown, records))
        return records, {word: counted[word] for word in words}

    def _counts_of_few(self, words: Sequence[str]) -> dict[str, int]:
        """How many records of a small scope have each word."""
        known = self._known_of_few(words)
        unknown = [word for word in words if word not in known]
        if unknown:
            counted = self._counted_of_few(unknown) if len(unknown) <= _ROOM[-1] else self._many_counted_of_few(unknown)
            self._remember_of_few(counted)
            known.update(counted)
        return known

    def _known_of_few(self, words: Sequence[str]) -> dict[str, int]:
        """The words of which that is known, for as long as nobody has written anything since."""
        state, here = self._tx.state, self._tx.counted_words.get((self._table, self._owners), {})
        known: dict[str, int] = {}
        for word in words:
            count = here.get(word)
            if count is None and state is not None:
                count = self._remembered.get((self._table, self._owners, word, "few"), state)
            if count is not None:
                known[word] = count
        return known

    def _remember_of_few(self, counted: Mapping[str, int]) -> None:
        self._tx.counted_words.setdefault((self._table, self._owners), {}).update(counted)
        if self._tx.state is not None:
            for word, count in counted.items():
                self._remembered.put((self._table, self._owners, word, "few"), self._tx.state, count)

    def _counted_of_few(self, words: Sequence[str]) -> dict[str, int]:
        """One look at each record for all of the words."""
        owned, values = self._owned
        room = _room_for(words)
        among = f" AND {self._any_of_words}" if self._in_index[0] else ""
        rows = self._tx.rows(
            f"SELECT {_met(room)} FROM {self._table} CROSS JOIN {_asked(room)} WHERE {owned}{among}",
            {
                **values,
                **self._in_index[1],
                "question": _any_of(words),
                "words": list(map(quoted, words)),
                "worth": Floats(),
            },
        )
        return dict(zip(words, rows[0], strict=False))

    def _many_counted_of_few(self, words: Sequence[str]) -> dict[str, int]:
        """One look at each term of the records: a statement has no column for each of thousands of words."""
        owned, values = self._owned
        rows = self._tx.rows(
            f"SELECT term, count(*) FROM (SELECT unnest(tsvector_to_array(search)) AS term FROM {self._table} "
            f"WHERE {owned}) AS said WHERE term = ANY(%(words)s::text[]) GROUP BY term",
            {**values, "words": list(words)},
        )
        return {**dict.fromkeys(words, 0), **dict(rows)}

    def _counts(self, words: Sequence[str], records: int) -> dict[str, int]:
        """How many of so many records of the scope have each word: of common ones as the server's statistics say."""
        shares = self._shares()
        known = {word: round(shares[word] * records) if word in shares else self._known(word) for word in words}
        unknown = [word for word, count in known.items() if count is None]
        if unknown:
            for word, count in zip(unknown, self._counted(unknown, with_statistics=bool(shares)), strict=True):
                known[word] = self._remembered.put((self._table, self._owners, word), minute(), count)
        return {word: count for word, count in known.items() if count is not None}

    def _known(self, word: str) -> int | None:
        """What was counted within the last minute; a transaction that writes must see what it wrote."""
        return None if self._tx.writable else self._remembered.get((self._table, self._owners, word), minute())

    def _shares(self) -> Mapping[str, float]:
        """What share of all records has each of the most common terms; nothing before they were ever analysed.

        Counting a word means reading every record that has it, which takes longer than the search itself.
        """
        known = self._tx.dialect.term_shares.get(self._table, minute())
        if known is not None:
            return known
        found = self._tx.rows(_SHARES, {"table": self._table})
        # Behind the shares of the terms stand three numbers about all of them.
        shares = dict(zip(*found[0], strict=False)) if found else {}
        return self._tx.dialect.term_shares.put(self._table, minute(), shares)

    def _counted(self, words: Sequence[str], *, with_statistics: bool) -> list[int]:
        """How many records have each word; beyond a limit told from how far into the table so many reached."""
        most = _COUNTED if with_statistics else COUNTED
        owned, values = self._spelled_owner
        having = self._having("asked.word", (self._key, *(name for name, _ in self._owners)))
        found = self._tx.rows(
            f"SELECT few.count, few.reached, "
            # Asked of the file system, and once is enough.
            f"(SELECT pg_relation_size('{self._table}') / current_setting('block_size')::int) "
            f"FROM unnest({_hidden('words')}) WITH ORDINALITY AS asked(word, place) CROSS JOIN LATERAL "
            f"(SELECT count(*), (max(place)::text::point)[0] AS reached FROM (SELECT place "
            f"FROM {having} WHERE {owned} LIMIT {most}) AS met) AS few ORDER BY asked.place",
            {**values, **self._in_index[1], "words": list(map(quoted, words))},
        )
        return [
            # Each partition has pages of its own, and the whole none.
            count if count < most else max(count, round(count * pages / (reached + 1)))
            for count, reached, pages in found
        ]

    def records(self) -> int:
        """How many records the owner has, beyond a limit as the planner takes it."""
        key = (self._table, self._owners)
        known = self._known_records(key)
        if known is None:
            self._count_records()
            known = self._tx.counted_records[key]
        return known

    def _all_records(self) -> int:
        """How many records the table has, as of the last minute: it decides on the way to what is found."""
        key = (self._table, "all")
        known = self._remembered.get(key, minute())
        if known is None:
            known = self._remembered.put(key, minute(), WordSearch(self._tx, self._spec, EVERYTHING).records())
        return known

    def _known_records(self, key: Counted) -> int | None:
        known = self._tx.counted_records.get(key)
        return self._remembered.get(key, minute()) if known is None else known

    def _count_records(self) -> None:
        """Those of the kinds that are mostly asked for next as well: in one round trip.

        What was counted in the same state of the database, as nobody has written anything since, need not be again.
        """
        # What a transaction writes makes it count anew, and it rarely asks for several kinds.
        alone = self._tx.writable or not self._owners
        own: dict[Counted, _Owned] = {(self._table, self._owners): _Owned(self._spec, self._owners)}
        unknown: dict[Counted, _Owned] = {}
        for key, owned in (own if alone else self._asked_for_next()).items():
            known = self._known_records(key)
            if known is None and self._tx.state is not None:
                known = self._remembered.get(owned, self._tx.state)
            if known is None:
                unknown[key] = owned
            else:
                self._tx.counted_records[key] = known
        if unknown:
            self._ask_how_many(unknown)

    def _ask_how_many(self, unknown: Mapping[Counted, _Owned]) -> None:
        values: dict[str, Any] = {}
        some: list[str] = []
        for place, owned in enumerate(unknown.values()):
            named = Values(self._tx.dialect.names, f"owner{place}_")
            condition = self._tx.dialect.kind(owned.spec).clauses.condition(owned_by(owned.owners), named)
            some.append(owned.statement(condition))
            values |= named.values
        counting = ", ".join(f"(SELECT count(*) FROM ({sql} LIMIT {_LARGE}) AS s)" for sql in some)
        counts = self._tx.rows(f"SELECT {counting}", values)[0]
        for (key, owned), sql, count in zip(unknown.items(), some, counts, strict=True):
            if count == _LARGE:
                plan = self._tx.rows(f"EXPLAIN (FORMAT JSON) {sql}", values)[0][0]
                count = self._remembered.put(key, minute(), max(count, int(plan[0]["Plan"]["Plan Rows"])))
            elif self._tx.state is not None:
                self._remembered.put(owned, self._tx.state, count)
            self._tx.counted_records[key] = count

    def _asked_for_next(self) -> dict[Counted, _Owned]:
        """The kinds that have the same owners as this one, the memories of their project, and what is expected."""
        found: dict[Counted, _Owned] = {
            (spec.postgres_table, self._owners): _Owned(spec, self._owners) for spec in _kindred(self._spec)
        }
        project = tuple(owner for owner in self._owners if owner[0] == "project_id")
        if project and "agent" in self._spec.by_name:
            found[Memory.spec.postgres_table, project] = _Owned(Memory.spec, project)
        # Many a store has no relationships, and who asks for them asks more than once.
        found[MemoryRelationship.spec.postgres_table, ()] = _Owned(MemoryRelationship.spec, (), any_at_all=True)
        for query in self._tx.expected:
            if narrowed := _narrowed(query):
                found[query.spec.kind, id(query.where)] = _Owned(query.spec, owners_of(query.where), narrowed, True)
        return found

    def _mean_length(self) -> float:
        """How many bytes of text a record has, by a sample; remembered once the sample is full."""
        key = (self._table, "length")
        known = self._remembered.get(key, minute())
        if known is not None:
            return known
        sample = f"SELECT {self._length} AS bytes FROM {self._table} LIMIT {_SAMPLE}"
        count, mean = self._tx.rows(f"SELECT count(*), coalesce(avg(bytes), 1)::float8 FROM ({sample}) AS s", {})[0]
        return max(1, self._remembered.put(key, minute(), round(mean)) if count == _SAMPLE else mean)


@cache
def _score(room: int) -> str:
    """What the words that a record has are worth together."""
    return " + ".join(map(_worth_if_there, range(room))) or "0.0::float8"


@cache
def _met(room: int) -> str:
    """How many records have each of the words."""
    return ", ".join(f"count(*) FILTER (WHERE search @@ word{i}) AS met{i}" for i in range(room))


@cache
def _weighed(room: int) -> str:
    """The words that are asked for, what each is worth by how many of the found records have it, and how many have."""
    each = range(room)
    words, met = (", ".join(f"{name}{i}" for i in each) for name in ("word", "met"))
    counted = f"SELECT {_met(room)} FROM found CROSS JOIN {_asked(room)}"
    weights = ", ".join(f"{rarity_in_sql('%(records)s::float8', f'met{i}')} * {K1 + 1} AS weight{i}" for i in each)
    return (
        f"SELECT {words}, {weights}, concat_ws(',', {met}) AS met "
        f"FROM ({counted} OFFSET 0) AS counted CROSS JOIN {_asked(room)}"
    )


def _worth_if_there(place: int) -> str:
    """What the word at a place is worth in a record, nothing where it is not there."""
    return f"CASE WHEN search @@ word{place} THEN {_worth(f'weight{place}', f'word{place}', 'norm')} ELSE 0 END"


def _weighted(name: str, *further: str) -> str:
    """A list of words and what each is worth, as rows; and further numbers about them."""
    lists = _hidden(name), *(_hidden(f"{name}_{each}", "float8[]") for each in ("weight", *further))
    return f"unnest({', '.join(lists)}) AS asked({', '.join(('word', 'weight', *further))})"


def _weighing(
    name: str, words: Sequence[str], weights: Mapping[str, float], pairs: Sequence[Pair] = ()
) -> dict[str, Any]:
    """The values of such a list.

    Pairs of words behind them are worth nothing by themselves, but promise what those of their words are worth that are
    not in the list.
    """
    listed = set(words)
    promises = (sum(weights[word] for word in pair if word not in listed) for pair in pairs)
    return {
        name: [*map(quoted, words), *map(_all_of, pairs)],
        f"{name}_weight": Floats([*(weights[word] * (K1 + 1) for word in words), *(0.0 for _ in pairs)]),
        f"{name}_promise": Floats([*(0.0 for _ in words), *(promise * (K1 + 1) for promise in promises)]),
    }


@cache
def _asked(room: int) -> str:
    """The words that are asked for and what each is worth, as columns of one row, NULL in the rest of the room.

    They are bound as two lists, so that the server knows the statement already, and neither list is read twice.
    """
    each = (f"words[{i + 1}] AS word{i}, worth[{i + 1}] AS weight{i}" for i in range(room))
    given = "SELECT %(words)s::text[]::tsquery[] AS words, %(worth)s::float8[] AS worth OFFSET 0"
    return f"(SELECT {', '.join(each)} FROM ({given}) AS given OFFSET 0) AS asked"


def _worth(weight: str, word: str, norm: str) -> str:
    """What a word is worth in a record: BM25's saturation, with the frequency told from the server's rank."""
    missing = f"{_SUM}::float8 - {_SUM}::float8 * ts_rank('{{1,1,1,1}}', search, {word})"
    # Every number is said to be one of the machine's; the server would reckon with decimals, ten times as long.
    return f"{weight} / (1::float8 + {norm} / (1::float8 / greatest({missing}, 1e-6::float8) - 0.52::float8))"


def owners_of(where: Predicate) -> Owners:
    """Whose records a predicate asks for, always in the same order."""
    return tuple(sorted(ranking.owners(where).items()))


def owned_by(owners: Owners) -> Predicate:
    """That a record is one of these owners'."""
    return And(*(In(*owner) for owner in owners))


def _narrowed(query: Query) -> str:
    """What a query wants to be one of some texts, besides its owners; these are spelled out for the planner to know."""
    return " AND ".join(
        f'"{part.field}" IN ({", ".join(literal(str(value)) for value in part.values)})'
        for part in _parts(query.where)
        if isinstance(part, In) and part.field not in ranking.OWNERS and _are_texts(part.values)
    )


def _are_texts(values: Sequence[Any]) -> bool:
    return bool(values) and all(isinstance(value, str) for value in values)


def _parts(where: Predicate) -> Iterator[Predicate]:
    """The conditions that all must be fulfilled."""
    for part in where.parts if isinstance(where, And) else ():
        yield from _parts(part) if isinstance(part, And) else (part,)


@cache
def _kindred(spec: RecordSpec) -> tuple[RecordSpec, ...]:
    """The searchable kinds that have the same columns for their owners as this one."""
    searchable = (cls.spec for cls in KINDS if cls.spec.text)
    return tuple(other for other in searchable if _owner_columns(other) == _owner_columns(spec))


def _owner_columns(spec: RecordSpec) -> set[str]:
    return {name for name in ranking.OWNERS if name in spec.by_name}


def _hidden(name: str, kind: str = "text[]::tsquery[]") -> str:
    """A list whose length the planner does not see: it would take that for a reason to plan anew every time."""
    return f"(SELECT %({name})s::{kind})"


def _room_for(words: Collection[str]) -> int:
    return next((room for room in _ROOM if room >= len(words)), len(words))


def _any_of(words: Sequence[str]) -> str:
    return " | ".join(map(quoted, words))


def _all_of(words: Sequence[str]) -> str:
    return " & ".join(map(quoted, words))
