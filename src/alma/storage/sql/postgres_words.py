"""Full text on PostgreSQL: what the `search` column holds, and BM25 over it, which the server does not have itself.

The server ranks by how often a word occurs, not by how rare it is. So the rarity comes from counting here, the same
words are chosen as on SQLite, and the score is put together in SQL: the words chosen for every record that has one of
them, the words left out only for the best of these.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol

from alma.model.kinds import KINDS
from alma.model.query import And, In, Predicate
from alma.model.record import Record, RecordSpec
from alma.model.text import terms
from alma.storage import ranking
from alma.storage.ranking import COUNTED, K1, B, Remembered, Selection, idf
from alma.storage.sql.statements import Dialect

_MOST_POSITIONS = 255
_LAST_POSITION = 16_383
_FEWEST_RESCORED = 50
_MOST_RESCORED = 200
_LOOKED_AT = 2_000
_LARGE = 20_000
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
    # How many records have each word, as far as this transaction has counted.
    counted_words: dict[Hashable, dict[str, int]]

    def rows(self, sql: str, values: Mapping[str, Any]) -> list[Any]: ...


def entry(record: Record) -> str:
    """The terms of a record and where they stand, as a tsvector is written."""
    return written(record.text())


def written(text: str) -> str:
    """The terms of a text and where they stand, as a tsvector is written."""
    positions: dict[str, list[int]] = defaultdict(list)
    for position, term in enumerate(terms(text), start=1):
        if len(positions[term]) < _MOST_POSITIONS:
            positions[term].append(min(position, _LAST_POSITION))
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

    def matching(self, words: Sequence[str], limit: int) -> list[tuple[str, float]]:
        """The keys of the records that match, with their scores, best first."""
        records, counts = self.counts(words)
        if not records:
            return []
        records = max(records, *counts.values())
        selection = ranking.select(counts, records)
        weights = {word: idf(records, counts[word]) for word in words}
        if not selection.left_out:
            return self._scored(weights, _any_of(words), limit)
        best = max(limit, min(max(2 * limit, _FEWEST_RESCORED), _MOST_RESCORED))
        found = self._candidates(selection, weights, best)
        return self._scored(weights, None, limit, keys=found)

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
        score = " + ".join(map(_worth, words, worth)) or "0.0::float8"
        return self._tx.rows(
            f"SELECT {self._key}, {score} AS score FROM (SELECT {self._key}, search, "
            f"{K1} * ({1 - B} + {B} * ({self._length}) / %(mean)s) AS norm FROM {self._table} "
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
        records = self._records()
        if not records:
            return 0, dict.fromkeys(words, 0)
        return records, self._counts_of_few(words) if records <= ranking.BUDGET else self._counts(words, records)

    def _counts_of_few(self, words: Sequence[str]) -> dict[str, int]:
        """How many records of a small scope have each word: one look at each record for all of the words."""
        each = ", ".join(f"count(*) FILTER (WHERE search @@ %(word{i})s::tsquery)" for i in range(len(words)))
        asked = {f"word{i}": _quoted(word) for i, word in enumerate(words)}
        rows = self._tx.rows(f"SELECT {each} FROM {self._table} WHERE {self._owned}", {**self._owner_values, **asked})
        return dict(zip(words, rows[0], strict=True))

    def _counts(self, words: Sequence[str], records: int) -> dict[str, int]:
        """How many of so many records of the scope have each word: of common ones as the server's statistics say."""
        shares = self._shares()
        known = {word: round(shares[word] * records) for word in words if word in shares}
        counted = self._tx.counted_words.setdefault((self._table, self._owners), {})
        unknown = [word for word in words if word not in known and word not in counted]
        if unknown:
            counted.update(zip(unknown, self._counted(unknown), strict=True))
        return {word: known[word] if word in known else counted[word] for word in words}

    def _shares(self) -> Mapping[str, float]:
        """What share of all records has each of the most common terms; nothing before they were ever analysed.

        Counting a word means reading every record that has it, which takes longer than the search itself.
        """
        known = self._tx.dialect.term_shares.get(self._table, _now())
        if known is not None:
            return known
        found = self._tx.rows(_SHARES, {"table": self._table})
        # Behind the shares of the terms stand three numbers about all of them.
        shares = dict(zip(*found[0], strict=False)) if found else {}
        return self._tx.dialect.term_shares.put(self._table, _now(), shares)

    def _counted(self, words: Sequence[str]) -> list[int]:
        each = ", ".join(
            f"(SELECT count(*) FROM (SELECT 1 FROM {self._table} "
            f"WHERE search @@ %(word{i})s::tsquery AND {self._owned} LIMIT {COUNTED}) AS few)"
            for i in range(len(words))
        )
        asked = {f"word{i}": _quoted(word) for i, word in enumerate(words)}
        counts = self._tx.rows(f"SELECT {each}", {**self._owner_values, **asked})[0]
        return [count if count < COUNTED else self._estimated(word) for word, count in zip(words, counts, strict=True)]

    def _estimated(self, word: str) -> int:
        """What the planner takes a common word's number of records for; it keeps statistics of such words."""
        sql = f"EXPLAIN (FORMAT JSON) SELECT 1 FROM {self._table} WHERE search @@ %(word)s::tsquery AND {self._owned}"
        plan = self._tx.rows(sql, {**self._owner_values, "word": _quoted(word)})[0][0]
        return max(COUNTED, int(plan[0]["Plan"]["Plan Rows"]))

    def _records(self) -> int:
        """How many records the scope has, beyond a limit as the planner takes it."""
        key = (self._table, self._owners)
        known = self._remembered.get(key, _now())
        if known is not None:
            return known
        some = f"SELECT 1 FROM {self._table} WHERE {self._owned}"
        count = int(self._tx.rows(f"SELECT count(*) FROM ({some} LIMIT {_LARGE}) AS s", self._owner_values)[0][0])
        if count < _LARGE:
            return count
        plan = self._tx.rows(f"EXPLAIN (FORMAT JSON) {some}", self._owner_values)[0][0]
        return self._remembered.put(key, _now(), max(count, int(plan[0]["Plan"]["Plan Rows"])))

    def _mean_length(self) -> float:
        """How many bytes of text a record has, by a sample; remembered once the sample is full."""
        key = (self._table, "length")
        known = self._remembered.get(key, _now())
        if known is not None:
            return known
        sample = f"SELECT {self._length} AS bytes FROM {self._table} LIMIT {_SAMPLE}"
        count, mean = self._tx.rows(f"SELECT count(*), coalesce(avg(bytes), 1)::float8 FROM ({sample}) AS s", {})[0]
        return max(1, self._remembered.put(key, _now(), round(mean)) if count == _SAMPLE else mean)


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


def _worth(word: str, weight: str) -> str:
    """What a word is worth in a record: BM25's saturation, with the frequency told from the server's rank.

    Everything is bound, so that the server need not read the statement anew for every question.
    """
    missing = f"({_SUM} - {_SUM} * ts_rank('{{1,1,1,1}}', search, %({word})s::tsquery)::float8)"
    frequency = f"(1 - 0.52 * {missing})"
    saturated = f"%({weight})s::float8 * {frequency} / ({frequency} + norm * {missing})"
    return f"CASE WHEN search @@ %({word})s::tsquery THEN {saturated} ELSE 0 END"


def _quoted(word: str) -> str:
    """A word that leaves nothing for the server to interpret."""
    return "'" + word.replace("\\", "\\\\").replace("'", "''") + "'"


def _any_of(words: Sequence[str]) -> str:
    return " | ".join(map(_quoted, words))


def _all_of(words: Sequence[str]) -> str:
    return " & ".join(map(_quoted, words))


def _now() -> int:
    """The minute: a table's size is not known here without counting, so that counts last as long as that."""
    return int(time.monotonic() // 60)
