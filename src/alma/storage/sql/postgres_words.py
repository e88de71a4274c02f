"""Full text on PostgreSQL: what the `search` column holds, and BM25 over it, which the server does not have itself.

The server ranks by how often a word occurs, not by how rare it is. So the rarity comes from counting here, the same
words are chosen as on SQLite, and the score is put together in SQL: the words chosen for every record that has one of
them, the words left out only for the best of these.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol

from alma.model.kinds import KINDS
from alma.model.query import And, In, Predicate
from alma.model.record import Record, RecordSpec
from alma.model.text import terms
from alma.storage import ranking
from alma.storage.ranking import COUNTED, K1, B, Remembered, Selection, idf
from alma.storage.sql.statements import Dialect

# A tsvector has less than a mebibyte, and the last term may take it a little further.
_MOST_BYTES = (1 << 20) - 1_000
_MOST_POSITIONS = 255
_LAST_POSITION = 16_383
_FEWEST_RESCORED = 50
_MOST_RESCORED = 200
_LOOKED_AT = 2_000
_LARGE = 20_000
# What is not among the common words of the statistics is not counted further than this.
_COUNTED = 100
_SPARE = 50
_ENOUGH = 10
# The server reads each record from its table to score it, which takes longer than to read an entry of an index.
_BUDGET = 2_500
_SAMPLE = 500
_BATCH = 1_000
# The server's rank of one word that occurs n times is 1 + 1/4 + … + 1/n², divided by what that sum tends to; from how
# much is missing, n can be told: it is nearly 1 / missing - 0.52.
_SUM = 1.64493406685
_SHARES = """
SELECT most_common_elems::text::text[], most_common_elem_freqs FROM pg_stats
WHERE schemaname = current_schema() AND tablename = %(table)s AND attname = 'search' AND most_common_elems IS NOT NULL
"""


class Reader(Protocol):
    """What asks the database."""

    dialect: Dialect
    writable: bool
    # How many records an owner has, and how many of them have each word, as far as this transaction has counted.
    counted_records: dict[Hashable, int]
    counted_words: dict[Hashable, dict[str, int]]

    def rows(self, sql: str, values: Mapping[str, Any]) -> list[Any]: ...


def entry(record: Record) -> str:
    """The terms of a record and where they stand, as a tsvector is written."""
    return written(record.text())


def written(text: str) -> str:
    """The terms of a text and where they stand, as a tsvector is written; as many as it has room for."""
    positions: dict[str, list[int]] = {}
    room = _MOST_BYTES
    for position, term in enumerate(terms(text), start=1):
        places = positions.setdefault(term, [])
        if len(places) < _MOST_POSITIONS:
            # A term is kept at an even place, with how many positions it has and two bytes for each.
            room -= 2 if places else len(term.encode()) + 5
            places.append(min(position, _LAST_POSITION))
            if room < 0:
                break
    return " ".join(f"'{term}':{','.join(map(str, places))}" for term, places in positions.items())


class WordSearch:
    """One question to the `search` column of a kind."""

    def __init__(self, tx: Reader, spec: RecordSpec, where: Predicate) -> None:
        statements = tx.dialect.kind(spec)
        self._tx = tx
        self._table = statements.table
        self._key = spec.key
        self._condition, self._values = statements.condition(where)
        self._owners = tuple(sorted(ranking.owners(where).items()))
        self._owned, self._owner_values = statements.condition(And(*(In(*owner) for owner in self._owners)))
        # A tsvector knows how many different terms it has, not how many; bytes are nearer, and known without reading.
        self._length = statements.text_length
        self._remembered: Remembered[int] = tx.dialect.word_counts

    def matching(self, words: Sequence[str], limit: int, *, exact: bool = True) -> list[tuple[str, float]]:
        """The keys of the records that match, with their scores, best first."""
        records, counts = self.counts(words)
        if not records:
            return []
        records = max(records, *counts.values())
        few = records <= ranking.BUDGET
        selection = ranking.select(counts, records, budget=ranking.BUDGET if exact or few else _BUDGET)
        if not selection.chosen:
            # One word is better than none, and looking for records with several common ones takes longer.
            selection = ranking.select(counts, records)
        weights = {word: idf(records, counts[word]) for word in words}
        if not selection.left_out and (exact or few):
            return self._scored(weights, _any_of(words), limit)
        best = max(limit, min(max(2 * limit, _FEWEST_RESCORED), _MOST_RESCORED))
        if not exact and selection.chosen:
            found = self._best_of(selection.chosen, weights, max(best, limit + _SPARE))
            # Whoever does not need them all has the best already, and looking for the others takes the longest.
            if len(found) >= min(limit, _ENOUGH) or not selection.left_out:
                return found[:limit]
        keys = self._candidates(selection, weights, best)
        return self._scored(weights, None, limit, keys=keys)

    def _best_of(self, chosen: Sequence[str], weights: Mapping[str, float], wanted: int) -> list[tuple[str, float]]:
        """The best by the words chosen, and of these the scores by all of the words.

        The statement is the same for any number of words, so that the server plans it once.
        """
        worth = {word: weight * (K1 + 1) for word, weight in weights.items()}
        having = (
            f"SELECT {self._key} AS key, sum({_worth('weight', 'asked.word', self._norm)}) AS rough "
            f"FROM unnest(%(chosen)s::text[]::tsquery[], %(chosen_worth)s::float8[]) AS asked(word, weight) "
            # With an offset the server looks the words up first, whatever else it could look up by.
            f"CROSS JOIN LATERAL (SELECT * FROM {self._table} WHERE search @@ asked.word OFFSET 0) AS {self._table} "
            f"WHERE {self._condition} GROUP BY {self._key} ORDER BY rough DESC, key LIMIT %(wanted)s"
        )
        return self._tx.rows(
            f"SELECT {self._key}, sum({_worth('asked.weight', 'asked.word', self._norm)}) AS score "
            f"FROM ({having}) AS found JOIN {self._table} ON {self._key} = found.key "
            f"JOIN unnest(%(words)s::text[]::tsquery[], %(worth)s::float8[]) AS asked(word, weight) "
            f"ON search @@ asked.word GROUP BY {self._key} ORDER BY score DESC, {self._key}",
            {
                **self._values,
                "chosen": list(map(_quoted, chosen)),
                "chosen_worth": [worth[word] for word in chosen],
                "words": list(map(_quoted, weights)),
                "worth": list(worth.values()),
                "mean": self._mean_length(),
                "wanted": wanted,
            },
        )

    @property
    def _norm(self) -> str:
        """What the length of a record counts."""
        return f"({K1 * (1 - B)}::float8 + {K1 * B}::float8 * ({self._length}) / %(mean)s::float8)"

    def _candidates(self, selection: Selection, weights: Mapping[str, float], wanted: int) -> list[str]:
        """The best by the words chosen; where these are too few, some that have all of the others, then fewer."""
        found: dict[str, float] = {}
        if selection.chosen:
            chosen = {word: weights[word] for word in selection.chosen}
            found.update(self._scored(chosen, _any_of(selection.chosen), wanted))
        for group in ranking.conjunctions(selection.left_out):
            if len(found) >= wanted:
                break
            found.update(self._scored({}, _all_of(group), wanted, cut=_LOOKED_AT))
        return list(found)

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
        wanted = "search @@ %(question)s::tsquery" if keys is None else f"{self._key} = ANY(%(keys)s)"
        words = {f"word{i}": _quoted(word) for i, word in enumerate(weights)}
        worth = {f"weight{i}": weight * (K1 + 1) for i, weight in enumerate(weights.values())}
        score = " + ".join(map(_worth_if_there, words, worth)) or "0.0::float8"
        return self._tx.rows(
            f"SELECT {self._key}, {score} AS score FROM (SELECT {self._key}, search, {self._norm} AS norm "
            f"FROM {self._table} "
            f"WHERE {wanted} AND {self._condition} {'' if cut is None else f'LIMIT {cut}'}) AS found "
            f"ORDER BY score DESC, {self._key} LIMIT %(most)s",
            {
                **self._values,
                **words,
                **worth,
                "question": question,
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
        """How many records of a small scope have each word: one look at each record for all of the words."""
        each = ", ".join(f"count(*) FILTER (WHERE search @@ %(word{i})s::tsquery)" for i in range(len(words)))
        asked = {f"word{i}": _quoted(word) for i, word in enumerate(words)}
        rows = self._tx.rows(f"SELECT {each} FROM {self._table} WHERE {self._owned}", {**self._owner_values, **asked})
        return dict(zip(words, rows[0], strict=True))

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
        found = self._tx.rows(
            f"SELECT few.count, few.reached, pg_relation_size('{self._table}') / current_setting('block_size')::int "
            f"FROM unnest(%(words)s::text[]::tsquery[]) WITH ORDINALITY AS asked(word, place) CROSS JOIN LATERAL "
            f"(SELECT count(*), max((place::text::point)[0]) AS reached FROM (SELECT ctid AS place FROM {self._table} "
            f"WHERE search @@ asked.word AND {self._owned} LIMIT {most}) AS met) AS few ORDER BY asked.place",
            {**self._owner_values, "words": list(map(_quoted, words))},
        )
        return [
            # Each partition has pages of its own, and the whole none.
            count if count < most else max(count, round(count * pages / (reached + 1)))
            for count, reached, pages in found
        ]

    def records(self) -> int:
        """How many records the owner has, beyond a limit as the planner takes it."""
        key = (self._table, self._owners)
        known = self._tx.counted_records.get(key, self._remembered.get(key, minute()))
        if known is not None:
            return known
        some = f"SELECT 1 FROM {self._table} WHERE {self._owned}"
        count = int(self._tx.rows(f"SELECT count(*) FROM ({some} LIMIT {_LARGE}) AS s", self._owner_values)[0][0])
        if count == _LARGE:
            plan = self._tx.rows(f"EXPLAIN (FORMAT JSON) {some}", self._owner_values)[0][0]
            count = self._remembered.put(key, minute(), max(count, int(plan[0]["Plan"]["Plan Rows"])))
        self._tx.counted_records[key] = count
        return count

    def _mean_length(self) -> float:
        """How many bytes of text a record has, by a sample; remembered once the sample is full."""
        key = (self._table, "length")
        known = self._remembered.get(key, minute())
        if known is not None:
            return known
        sample = f"SELECT {self._length} AS bytes FROM {self._table} LIMIT {_SAMPLE}"
        count, mean = self._tx.rows(f"SELECT count(*), coalesce(avg(bytes), 1)::float8 FROM ({sample}) AS s", {})[0]
        return max(1, self._remembered.put(key, minute(), round(mean)) if count == _SAMPLE else mean)


def index_everything(connection: Any) -> None:
    """Write the `search` column of every record anew."""
    for spec in (cls.spec for cls in KINDS if cls.spec.text):
        columns = ", ".join((spec.key, *spec.text))
        with connection.cursor(name="alma_words") as reader, connection.cursor() as writer:
            reader.itersize = _BATCH
            reader.execute(f"SELECT {columns} FROM {spec.postgres_table}")
            while batch := reader.fetchmany(_BATCH):
                writer.executemany(
                    f"UPDATE {spec.postgres_table} SET search = %s WHERE {spec.key} = %s",
                    [(written("\n".join(filter(None, texts))), key) for key, *texts in batch],
                )


def _worth_if_there(word: str, weight: str) -> str:
    """What a bound word is worth in a record, nothing where it is not there.

    Everything is bound, so that the server need not read the statement anew for every question.
    """
    there = f"search @@ %({word})s::tsquery"
    return f"CASE WHEN {there} THEN {_worth(f'%({weight})s::float8', f'%({word})s::tsquery', 'norm')} ELSE 0 END"


def _worth(weight: str, word: str, norm: str) -> str:
    """What a word is worth in a record: BM25's saturation, with the frequency told from the server's rank."""
    missing = f"{_SUM}::float8 - {_SUM}::float8 * ts_rank('{{1,1,1,1}}', search, {word})"
    # Every number is said to be one of the machine's; the server would reckon with decimals, ten times as long.
    return f"{weight} / (1::float8 + {norm} / (1::float8 / greatest({missing}, 1e-6::float8) - 0.52::float8))"


def _quoted(word: str) -> str:
    """A word that leaves nothing for the server to interpret."""
    return "'" + word.replace("\\", "\\\\").replace("'", "''") + "'"


def _any_of(words: Sequence[str]) -> str:
    return " | ".join(map(_quoted, words))


def _all_of(words: Sequence[str]) -> str:
    return " & ".join(map(_quoted, words))


def minute() -> int:
    """The minute: a table's size is not known here without counting, so that counts last as long as that."""
    return int(time.monotonic() // 60)
