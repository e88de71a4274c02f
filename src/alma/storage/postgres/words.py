"""Full-text search on PostgreSQL: BM25 over the `search` column.

PostgreSQL ranks by term frequency only. The inverse document frequency is computed here from word counts, and the
score in SQL: rare words for every record with one of them, common words only for the best of those. Pairs of common
words are looked up together to find further candidates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from alma.model.fields import FieldType
from alma.model.query import EVERYTHING, And, Has, Or, Predicate
from alma.model.record import RecordSpec
from alma.storage import ranking
from alma.storage.postgres.bm25 import (
    all_of,
    any_of,
    asked,
    room_for,
    score,
    weighed,
    weighing,
    weighted,
    worth,
)
from alma.storage.postgres.counts import WordCounts, owned_by, owners_of
from alma.storage.postgres.fulltext import COLUMNS, marks_of, quoted
from alma.storage.postgres.types import Floats
from alma.storage.ranking import K1, B, Pair, Selection, minute, rarity
from alma.storage.sql.clauses import Values, fields_of

if TYPE_CHECKING:
    from alma.storage.postgres.backend import PostgresBackend


_FEW = 20_000


def divided(spec: RecordSpec, where: Predicate) -> tuple[Predicate, Predicate]:
    """A predicate split into its condition on tags and the rest; both together are equivalent to it."""
    if _tags_of(spec, where):
        return EVERYTHING, where
    if isinstance(where, And):
        parts = [divided(spec, part) for part in where.parts]
        return And(*(plain for plain, _ in parts)), And(*(tagged for _, tagged in parts if tagged != EVERYTHING))
    return where, EVERYTHING


def rare_tags(backend: PostgresBackend, spec: RecordSpec, wanted: Predicate) -> tuple[str, ...]:
    """Rare tags of which every matching record must have one; empty if the predicate has none.

    Tag counts are cached for a minute: they choose the query plan, not the results.
    """
    return next((tags for tags in _alternatives(spec, wanted) if tagged(backend, tags) < _FEW), ())


def tagged(backend: PostgresBackend, tags: tuple[str, ...]) -> int:
    """The number of records with one of the tags, counted up to a limit."""
    known = backend.cache.tagged_records.get(tags, minute())
    if known is None:
        some = f"SELECT 1 FROM {backend.dialect.names.tags} WHERE tag = ANY(%(tags)s) LIMIT {_FEW}"
        [(count,)] = backend.rows(f"SELECT count(*) FROM ({some}) AS tagged", {"tags": list(tags)})
        known = backend.cache.tagged_records.put(tags, minute(), int(count))
    return known


def _alternatives(spec: RecordSpec, tagged: Predicate) -> list[tuple[str, ...]]:
    """Lists of tags; a matching record has at least one tag of each."""
    parts = tagged.parts if isinstance(tagged, And) else (tagged,)
    return [
        tags
        for part in parts
        for tags in (_alternatives(spec, part) if isinstance(part, And) else [_tags_of(spec, part)])
        if tags
    ]


def _tags_of(spec: RecordSpec, part: Predicate) -> tuple[str, ...]:
    """The tags of a predicate that requires any of some tags and nothing else."""
    match part:
        case Has(name, tag) if spec.by_name[name].type is FieldType.TAGS:
            return (tag,)
        case Or(parts) if parts and all(_tags_of(spec, each) for each in parts):
            return tuple(tag for each in parts for tag in _tags_of(spec, each))
    return ()


_FEWEST_RESCORED = 50
_MOST_RESCORED = 200
_LOOKED_AT = 2_000
_SPARE = 50
_ENOUGH = 10
# Lower than the budget of SQLite: scoring reads each record from its table, not only from the index.
_BUDGET = 800
_BUDGET_OF_PAIRS = 600
# Records that the average length is estimated from.
_SAMPLE = 2_000


class WordSearch:
    """One query on the `search` column of a kind."""

    def __init__(self, backend: PostgresBackend, spec: RecordSpec, where: Predicate) -> None:
        self._backend = backend
        self._spec = spec
        self._statements = backend.dialect.kind(spec)
        self._table = self._statements.table
        self._key = spec.key
        self._where = where
        self._owners = owners_of(where)
        self._counted = WordCounts(backend, spec, self._owners)

    @cached_property
    def _fulfilling(self) -> tuple[str, dict[str, Any]]:
        """The condition of the whole predicate, and its values."""
        return self._statements.condition(self._where)

    @cached_property
    def _divided(self) -> tuple[Predicate, Predicate]:
        """The predicate without its condition on tags, and that condition."""
        return divided(self._spec, self._where)

    @cached_property
    def rare_tags(self) -> tuple[str, ...]:
        """Rare tags of which a matching record must have one."""
        return rare_tags(self._backend, self._spec, self._divided[1])

    def records(self) -> int:
        """The number of the owner's records; above a limit the planner's estimate."""
        return self._counted.records()

    def counts(self, words: Sequence[str]) -> tuple[int, dict[str, int]]:
        """The approximate number of records in the scope, and of those with each word."""
        return self._counted.counts(words)

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
                return self._scored(weights, any_of(words), limit)
            return self._scored(weights, None, limit, keys=self._candidates(selection, weights, best, None))
        selection, pairs = self._selection(counts, records)
        found = self._best_of(selection, pairs, weights, max(best, limit + _SPARE), limit)
        # An inexact search already has the best records; finding the others is the slowest part.
        if len(found) >= min(limit, _ENOUGH) or not selection.left_out:
            return found
        if selection.chosen:
            keys = self._candidates(selection, weights, best, found)
        else:
            # Too few records have two of the words: look up single words.
            keys = self._candidates(ranking.select(counts, records), weights, best, None)
        return self._scored(weights, None, limit, keys=keys)

    def scores(self, words: Sequence[str], keys: Sequence[str]) -> dict[str, float]:
        """The scores of the records with these keys that contain any of the words."""
        records, counts = self.counts(words)
        if not records:
            return {}
        records = max(records, *counts.values())
        weights = {word: rarity(records, count) for word, count in counts.items()}
        return {key: score for key, score in self._scored(weights, None, len(keys), keys=keys) if score > 0}

    def _matching_few(self, words: Sequence[str], records: int, limit: int) -> list[tuple[str, float]]:
        """The best of a small scope, scored by all words; unknown word counts are computed in the same statement."""
        counted = self._counted.known_of_few(words)
        if len(counted) < len(words):
            return self._counted_and_scored(words, records, limit)
        return self._scored({word: rarity(records, counted[word]) for word in words}, any_of(words), limit)

    def _counted_and_scored(self, words: Sequence[str], records: int, limit: int) -> list[tuple[str, float]]:
        """The best of a small scope, with word counts and scores from one statement."""
        named = Values(self._backend.dialect.names, "owner")
        owned = self._statements.clauses.condition(owned_by(self._owners), named)
        condition, values = self._fulfilling
        room = room_for(words)
        rows = self._backend.rows(
            f"WITH found AS MATERIALIZED (SELECT {self._needed}, {self._norm} AS norm, {condition} AS fulfilling "
            f"FROM {self._table} WHERE {owned} AND {self._counted.any_of_words}), "
            f"weighed AS MATERIALIZED ({weighed(room)}) SELECT {score(room)}, {self._key}, met "
            f"FROM found AS {self._table} CROSS JOIN weighed WHERE fulfilling ORDER BY 1 DESC, 2 LIMIT {limit}",
            {
                **values,
                **named.values,
                **self._counted.in_index[1],
                "question": any_of(words),
                "words": list(map(quoted, words)),
                "worth": Floats(),
                "records": float(records),
                "mean": self._mean_length(),
            },
        )
        if rows:
            self._counted.remember_of_few(dict(zip(words, map(int, rows[0][-1].split(",")), strict=False)))
        return [(row[1], row[0]) for row in rows]

    def _selection(self, counts: Mapping[str, int], records: int) -> tuple[Selection, tuple[Pair, ...]]:
        """The words to look up one by one, and the pairs to look up together.

        If a rare tag restricts the records, nearly all words are looked up.
        """
        if self.rare_tags:
            share = min(1.0, tagged(self._backend, self.rare_tags) / records)
            counts = {word: math.ceil(count * share) for word, count in counts.items()}
        selection = ranking.select(counts, records, budget=_BUDGET)
        pairs = ranking.pairs(selection, counts, records, budget=_BUDGET_OF_PAIRS)
        if not selection.chosen and not pairs:
            # Look up one common word: finding records with several takes longer.
            selection = ranking.select(counts, records)
        return selection, pairs

    def _best_of(
        self, selection: Selection, pairs: Sequence[Pair], weights: Mapping[str, float], rescored: int, limit: int
    ) -> list[tuple[str, float]]:
        """The best by the chosen words and pairs; the words left out are added to the scores of the `rescored` best.

        The statement does not depend on the number of words, so the server plans it once.
        """
        if not selection.chosen and not pairs:
            return []
        condition, then, values = self._in_two_steps()
        having = self._counted.having(
            "(asked.word && %(marks)s::tsquery)" if self.rare_tags else "asked.word",
            (self._key, *COLUMNS, *fields_of(self._where)),
        )
        # The weights come first, so that no text is sorted.
        found = (
            f"SELECT {self._key}, place, {worth('weight', 'asked.word', self._norm)} AS worth, "
            f"promise / (1::float8 + {self._norm}) AS promise "
            f"FROM {weighted('chosen', 'promise')} CROSS JOIN LATERAL {having} WHERE {condition} OFFSET 0"
        )
        best = (
            f"SELECT {self._key}, place, sum(worth) AS score FROM ({found}) AS {self._table} "
            f"GROUP BY place, {self._key} ORDER BY sum(worth) + sum(promise) DESC, {self._key}"
        )
        if then:
            # Check the best first, until enough match.
            best = (
                f"SELECT {self._table}.* FROM ({best} OFFSET 0) AS {self._table} "
                f"CROSS JOIN LATERAL (SELECT 1 WHERE {then} OFFSET 0) AS fulfilled"
            )
        # A literal: with a LIMIT parameter the planner assumes the worst case and replans every time.
        best += f" LIMIT {rescored if selection.left_out else limit}"
        total = "best.score"
        if selection.left_out:
            more = f"SELECT sum({worth('weight', 'asked.word', self._norm)}) FROM {weighted('left_out')}"
            total += f" + coalesce(({more} WHERE search @@ asked.word), 0)"
        if selection.left_out:
            # Join by ctid, which is faster than by key; ctids are unique only within a partition.
            there = f"{self._table}.ctid = best.place AND {self._table}.{self._key} = best.{self._key}"
            best = f"({best}) AS best JOIN {self._table} ON {there}"
        else:
            best = f"({best}) AS best"
        return self._kept(
            f"SELECT {total}, best.{self._key} FROM {best} ORDER BY 1 DESC, 2 LIMIT {limit}",
            {
                **values,
                **self._counted.in_index[1],
                **weighing("chosen", selection.chosen, weights, pairs),
                **weighing("left_out", selection.left_out, weights),
                "mean": self._mean_length(),
                "marks": any_of(marks_of(self.rare_tags)),
            },
        )

    @property
    def _needed(self) -> str:
        """The columns that scores are computed from."""
        return ", ".join(f'"{name}"' for name in (self._key, *COLUMNS))

    def _kept(self, sql: str, values: Mapping[str, Any]) -> list[tuple[str, float]]:
        """The keys and scores from a statement."""
        return [(row[1], row[0]) for row in self._backend.rows(sql, values)]

    def _in_two_steps(self) -> tuple[str, str, dict[str, Any]]:
        """The conditions checked for every record with a word, and for the best only; and the values."""
        plain, tagged = self._divided
        if tagged == EVERYTHING or self.rare_tags:
            condition, values = self._fulfilling
            return condition, "", values
        condition, values = self._statements.condition(plain)
        further = Values(self._backend.dialect.names, "t")
        return condition, self._statements.clauses.condition(tagged, further), {**values, **further.values}

    @property
    def _norm(self) -> str:
        """The BM25 length normalisation of a record."""
        return f"({K1 * (1 - B)}::float8 + {K1 * B}::float8 * search_length / %(mean)s::float8)"

    def _candidates(
        self, selection: Selection, weights: Mapping[str, float], wanted: int, known: Sequence[tuple[str, float]] | None
    ) -> list[str]:
        """The best records by the chosen words; if too few, records with all of the other words, then with fewer.

        `known` has the records with one of the chosen words, if they were read already.
        """
        found: dict[str, float] = dict(known or ())
        if selection.chosen and known is None:
            chosen = {word: weights[word] for word in selection.chosen}
            found.update(self._scored(chosen, any_of(selection.chosen), wanted))
        for group in ranking.conjunctions(selection.left_out):
            if len(found) >= wanted:
                break
            found.update(self._scored({}, all_of(group), wanted, cut=_LOOKED_AT))
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
        """The matching records, or those with the keys, scored by the weights of their words."""
        wanted = f"{self._key} = ANY(%(keys)s)" if keys is not None else self._counted.any_of_words
        condition, values = self._fulfilling
        room = room_for(weights)
        return self._kept(
            f"SELECT {score(room)}, {self._key} FROM (SELECT *, {self._norm} AS norm "
            f"FROM {self._table} "
            f"WHERE {wanted} AND {condition} {'OFFSET 0' if cut is None else f'LIMIT {cut}'}) AS {self._table} "
            f"{f'CROSS JOIN {asked(room)}' if room else ''} "
            f"ORDER BY 1 DESC, 2 LIMIT %(most)s",
            {
                **values,
                "words": list(map(quoted, weights)),
                "worth": Floats(weight * (K1 + 1) for weight in weights.values()),
                "question": question,
                **self._counted.in_index[1],
                "keys": keys,
                "mean": self._mean_length() if weights else 1.0,
                "most": limit,
            },
        )

    def _mean_length(self) -> float:
        """The mean length of records in terms: exact in small tables, sampled in large ones, cached for a minute."""
        known = self._backend.cache.mean_lengths.get(self._table, minute())
        if known is not None:
            return known
        records = self._counted.all_records()
        if records <= _SAMPLE:
            return self._averaged("")
        # Sample the same pages every time, so that results are repeatable.
        sampled = self._averaged(f" TABLESAMPLE SYSTEM ({100 * _SAMPLE / records}) REPEATABLE (0)")
        return self._backend.cache.mean_lengths.put(self._table, minute(), sampled)

    def _averaged(self, sample: str) -> float:
        averaged = self._backend.rows(f"SELECT avg(search_length)::float8 FROM {self._table}{sample}", {})[0][0]
        if averaged is None and sample:
            # The server overestimated the number of records.
            return self._averaged("")
        return max(1.0, averaged or 0.0)
