"""Full-text search on SQLite, with bounded cost for long queries over millions of records.

FTS5 scores about one record per microsecond, and first counts the postings of each query word in the whole table. A
search therefore has up to three bounded steps:

1. The rarest words are looked up and scored with BM25, computed here from the posting lists. In a small scope of a
   large table with short texts, only postings inside the scope are read; otherwise, and inside a write transaction,
   FTS5 computes the scores. In small stores, and when all words are rare, this step covers the whole query.
2. In a small scope, records with one of the remaining words are added if that word is rare in the scope. If there are
   still too few results, the newest records with all remaining words are added, then with fewer of them.
3. The best candidates get the score of the words that step 1 left out, counted in their text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from alma.model.query import Predicate
from alma.model.record import RecordSpec
from alma.storage import ranking
from alma.storage.ranking import rarity, saturation
from alma.storage.sqlite import postings as sqlite_postings
from alma.storage.sqlite.postings import COUNTED, SMALL_SCOPE, ScopedWords, all_of, any_of, quoted, varints
from alma.text.tokens import spaced_terms

if TYPE_CHECKING:
    from alma.storage.sqlite.backend import SQLiteBackend

# Cost of counting one posting of a word, which FTS5 does for the whole table first, relative to scoring one.
_COUNTING = 0.03
# Postings that one query may list and score: one to two milliseconds.
_BUDGET = 6_000
# Cost of seeking the next posting of a word inside a small scope, relative to scoring one.
_SEEKING = 0.1
_SPARE = 50
_RESCORED = 60
_FEW = 50
_RESCORED_CHARACTERS = 100_000
_MOST_READ = 1_000
_LEAST_SHARE = 0.1
_LISTED_SHARE = 0.25
_SMALL_TABLE = 20_000
_FEW_LISTED, _NEARLY_ALL = 5_000, 0.75
# FTS5 gives no weight to a word that half of the records contain.
_COMMON = 0.45
_ENOUGH = 10
_SMALLEST_SCORE = 1e-9
# Seeks per query; this many take 7 ms, or a fifth of that if few records contain the words.
_SEEKS = 10_000
# Mean length in terms up to which a text rarely contains a word twice.
_SAID_ONCE = 60

# The row number of a record, its key and its score.
Candidate = tuple[int, str, float]


class WordSearch(ScopedWords):
    """One search in the full-text table of a kind."""

    def __init__(self, backend: SQLiteBackend, spec: RecordSpec, where: Predicate) -> None:
        super().__init__(backend, spec, where)
        self._spec = spec
        self._where = where
        # The owner's column has weight 0.
        self._score = f"-bm25({self._fts}, {'1.0, ' * len(spec.text)}0.0)"
        # List whole posting lists if a large share of them is inside the scope.
        self._lists = not backend.writable and (not self._narrowed or self.inside >= _LISTED_SHARE * self._records)
        # Rank by the rarity of words inside the scope if its records are cheap to list and its word frequencies may
        # differ from those of the whole table.
        self._lists_inside = self._narrowed and self.inside <= min(_FEW_LISTED, _NEARLY_ALL * self._records)
        self._condition, self._values = backend.dialect.kind(spec).condition(where) if self._records else ("false", {})
        # The words looked up last, with their ranked records.
        self._looked_up: tuple[frozenset[str], sqlite_postings.Ranked | None] = frozenset(), None

    def matching(self, words: Sequence[str], limit: int, *, exact: bool = True) -> list[tuple[str, float]]:
        """The keys of the records that match, with their scores, best first."""
        if not self._records:
            return []
        sought = None if exact else self._best_by_seeking(words, limit)
        if sought is not None:
            return [(key, score) for _, key, score in sought]
        everywhere = {word: self._counted(quoted(word), COUNTED) for word in words}
        share = min(1.0, self.inside / max(self._records, 1)) if self._narrowed else 1.0
        inside = {word: round(count * share) for word, count in everywhere.items()}
        seeks = self.inside * _SEEKING if self._narrowed else 0.0
        overhead = {word: count * _COUNTING + min(count * _SEEKING, seeks) for word, count in everywhere.items()}
        selection = ranking.select(inside, self.inside, overhead, _BUDGET)
        scored = self._scored_by_postings if self._lists or self._are_few(everywhere) else self._scored
        if scored == self._scored:
            selection = selection.without_common(everywhere, _COMMON * self._records)
        if not selection.left_out:
            return [(key, score) for _, key, score in scored(selection.chosen, limit, exact=exact)]
        found = scored(selection.chosen, max(limit, _RESCORED), exact=False)
        weights = {word: rarity(self._records, everywhere[word]) for word in selection.left_out}
        more, common = self._rare_here(weights, everywhere)
        # An inexact search already has the best records; finding the others is the slowest part.
        newest: dict[int, str] = {}
        if common and len(found) + len(more) < (limit if exact else min(limit, _ENOUGH)):
            few = None if exact else self._backend.feed.listing(self._spec, self._where)
            if few is None:
                more.update(self._newest_with(common, everywhere, max(limit, _RESCORED)))
            else:
                newest = self._keys_inside(few.seqs[-max(limit, _RESCORED) :].tolist())
        known = {seq for seq, *_ in found}
        others = [(seq, key, _SMALLEST_SCORE) for seq, key in (newest | more).items() if seq not in known]
        added = self._added([seq for seq, *_ in (*found[:_RESCORED], *others)], weights)
        # The newest records of a filtered listing may contain none of the words.
        others = [each for each in others if each[0] in more or added.get(each[0])]
        ranked = [(key, score + added.get(seq, 0.0)) for seq, key, score in (*found, *others)]
        return sorted(ranked, key=lambda pair: (-pair[1], pair[0]))[:limit]

    def scores(self, words: Sequence[str], keys: Sequence[str]) -> dict[str, float]:
        """The scores of the records with these keys that contain any of the words."""
        if not self._records:
            return {}
        looked_up, roughly = self._looked_up
        if roughly is not None and looked_up == frozenset(words):
            return self._scores_by_postings(roughly, keys)
        return self._scores_by_texts(words, keys)

    def _scores_by_postings(self, roughly: sqlite_postings.Ranked, keys: Sequence[str]) -> dict[str, float]:
        """Scores from the posting lists that were read when the words were looked up."""
        rows = self._named(keys, f'"{self._table}".seq', {})
        having = roughly.has([seq for *_, seq in rows])
        rows = [row for row, has in zip(rows, having, strict=True) if has]
        scores = roughly.exact([seq for *_, seq in rows], [size for _, size, _ in rows], self._mean_length)
        return {key: score for (key, *_), score in zip(rows, scores, strict=True)}

    def _scores_by_texts(self, words: Sequence[str], keys: Sequence[str]) -> dict[str, float]:
        """Scores from word counts in the beginnings of the texts."""
        weights = {f" {word} ": worth for word, worth in self._rarities(words).items()}
        rows = self._named(keys, self._beginnings, {"most": self._characters_for(len(keys))})
        scores = {key: self._weight_of(spaced_terms(text), weights, sum(varints(size))) for key, size, text in rows}
        return {key: score for key, score in scores.items() if score}

    def _named(self, keys: Sequence[str], column: str, values: Mapping[str, Any]) -> list[Any]:
        """The keys of the records inside the scope, with their FTS5 length blobs and one more column."""
        key = f'"{self._table}"."{self._spec.key}"'
        return self._backend.rows(
            f"SELECT {key}, sizes.sz, {column} FROM json_each(:keys) AS wanted "
            f'CROSS JOIN "{self._table}" ON {key} = wanted.value '
            f'CROSS JOIN {self._fts}_docsize AS sizes ON sizes.id = "{self._table}".seq WHERE {self._condition}',
            {**self._values, **values, "keys": json.dumps(keys)},
        )

    def _rarities(self, words: Sequence[str]) -> dict[str, float]:
        """The inverse document frequency of each word, inside the scope if only that is ranked."""
        everywhere = {word: self._counted(quoted(word), COUNTED) for word in words}
        if not (self._lists_inside and (self._lists or self._are_few(everywhere))):
            return {word: rarity(self._records, count) for word, count in everywhere.items()}
        inside = {word: self._counted(self._inside_with(word), COUNTED) for word in words}
        return {word: rarity(self.inside, count) for word, count in inside.items()}

    def _are_few(self, everywhere: Mapping[str, int]) -> bool:
        """Whether the whole posting lists are short enough to read, although few postings are inside the scope."""
        small = self._lists_inside and self._records <= _SMALL_TABLE and not self._backend.writable
        return small and sum(everywhere.values()) <= _BUDGET

    def _rare_here(
        self, weights: dict[str, float], everywhere: Mapping[str, int]
    ) -> tuple[dict[int, str], Sequence[str]]:
        """The records with a word that is rare in a small scope, and the words that are common in it.

        Words are weighted by their rarity in the scope: an agent's only record about deployment must be found even if
        all other agents write about deployments.
        """
        if not self._narrowed:
            return {}, list(weights)
        rare: dict[int, str] = {}
        common: list[str] = []
        for word in weights:
            expression = self._inside_with(word)
            if (self._counts.get((self._fts, expression), self._records) or 0) >= _FEW:
                common.append(word)
                continue
            records = self._newest_with_all((word,), everywhere[word], _FEW)
            self._counts.put((self._fts, expression), self._records, len(records))
            if len(records) < _FEW:
                rare.update(records)
                weights[word] = max(weights[word], rarity(self.inside, len(records)))
            else:
                common.append(word)
        return rare, common

    # ------------------------------------------------------------------ looking up

    def _scored(self, words: Sequence[str], limit: int, *, exact: bool) -> list[Candidate]:
        """The records with any of the words, by FTS5's BM25."""
        if not words:
            return []
        question = any_of(map(quoted, words))
        if self._narrowed:
            question = f"{question} AND {self._scope}"
        most = self._read_for(limit)
        best = self._best(question, most)
        # Nearly all matches are inside the scope, so reading the rows of the best is enough.
        found = self._inside_of(best)
        complete = len(best) < most
        # If the limit cuts through equal scores, the keys decide which records are first.
        settled = len(found) >= limit and (not exact or found[limit - 1][2] > best[-1][1])
        return found[:limit] if complete or settled else self._best_inside(question, limit)

    def _best_by_seeking(self, words: Sequence[str], limit: int) -> list[Candidate] | None:
        """The best records of a small owner in a large table, by seeking each word inside the scope.

        None if that would take too long, or for long texts, whose scores depend on term frequencies.
        """
        long_texts = (self._fts, self._scope, "long")
        if not self._can_seek(words) or self._counts.get(long_texts, self._records):
            return None
        lists = self._few_inside_with(words)
        if lists is None:
            return None
        found = sqlite_postings.ranked_by_lists(lists, self.inside)
        roughly = self._left_by_filter(found)
        first = self._first_of_many(roughly, limit)
        if sqlite_postings.mean_length([row[2] for row in first]) > _SAID_ONCE:
            self._counts.put(long_texts, self._records, 1)
            return None
        self._looked_up = frozenset(words), found
        return self._best_of_many(roughly, first, limit)

    def _can_seek(self, words: Sequence[str]) -> bool:
        """Whether the scope is small enough to seek the words in it, however common they are elsewhere."""
        small_part = self._lists_inside and not self._lists and self._records > _SMALL_TABLE
        return small_part and 0 < self.inside * len(words) <= _SEEKS

    def _scored_by_postings(self, words: Sequence[str], limit: int, *, exact: bool) -> list[Candidate]:
        """The records by BM25, best first, down to the rank where enough are inside the scope."""
        if not words:
            return []
        inside = sqlite_postings.listed(self._backend, self._fts, self._scope) if self._lists_inside else None
        found = sqlite_postings.ranked(self._backend, self._fts, words, self._records, inside)
        self._looked_up = frozenset(words), found
        roughly = self._left_by_filter(found)
        if not len(roughly.order):
            return []
        if exact or (self._records <= SMALL_SCOPE and len(roughly.order) <= _MOST_READ):
            return self._best_measured(roughly.measured(self._sizes(roughly), self._mean_length), limit)
        return self._best_of_many(roughly, self._first_of_many(roughly, limit), limit)

    def _left_by_filter(self, found: sqlite_postings.Ranked) -> sqlite_postings.Ranked:
        """The ranked records that pass the filter, if the records that pass it are known and few."""
        few = self._backend.feed.listing(self._spec, self._where)
        return found if few is None else found.among(few.seqs)

    def _sizes(self, roughly: sqlite_postings.Ranked) -> list[bytes]:
        """The FTS5 length blobs of all ranked records, by rank."""
        sql = (
            f"SELECT sizes.sz FROM json_each(:seqs) AS wanted "
            f"CROSS JOIN {self._fts}_docsize AS sizes ON sizes.id = wanted.value ORDER BY wanted.key"
        )
        seqs, _ = roughly.part(0, len(roughly.order))
        return [size for (size,) in self._backend.rows(sql, {"seqs": self._listed(seqs)})]

    def _best_measured(self, measured: sqlite_postings.Ranked, limit: int) -> list[Candidate]:
        """The best records by exact score; keys break ties."""
        found: list[Candidate] = []
        start, most = 0, self._read_for(limit, 0)
        while start < len(measured.order) and len(found) < limit:
            stop = measured.end_of_ties(start + most)
            seqs, scores = measured.part(start, stop)
            keys = {row[0]: row[1] for row in self._read_inside(seqs)}
            inside = [(seq, keys[seq], score) for seq, score in zip(seqs, scores, strict=True) if seq in keys]
            found += sorted(inside, key=lambda each: (-each[2], each[1]))
            start, most = stop, 2 * most
        return found[:limit]

    def _first_of_many(self, roughly: sqlite_postings.Ranked, limit: int) -> list[Any]:
        """The first ranked records that are inside the scope, with their lengths."""
        return self._read_inside(roughly.part(0, self._first_read_for(limit))[0])

    def _first_read_for(self, limit: int) -> int:
        return self._read_for(limit, min(_SPARE, max(limit // 2, _RESCORED - limit)))

    def _best_of_many(self, roughly: sqlite_postings.Ranked, first: Sequence[Any], limit: int) -> list[Candidate]:
        """The best records; the first have exact lengths, the others are assumed to be of average length."""
        start = most = self._first_read_for(limit)
        exact = roughly.exact([row[0] for row in first], [row[2] for row in first], self._mean_length)
        scored = sorted([(-score, row[1], row[0]) for score, row in zip(exact, first, strict=True)])
        found = [(seq, key, -less) for less, key, seq in scored[:limit]]
        # The others cannot rank above those that were read.
        last = found[-1][2] if found else math.inf
        while start < len(roughly.order) and len(found) < limit:
            seqs, scores = roughly.part(start, start + most)
            found += self._inside_of([(seq, min(score, last)) for seq, score in zip(seqs, scores, strict=True)])
            start, most = start + most, 2 * most
        return found[:limit]

    def _read_for(self, limit: int, spare: int = _SPARE) -> int:
        """How many ranked records to read so that about `limit` of them are inside the scope, with some to spare."""
        by_scope = self._lists_inside or (self._narrowed and not self._lists)
        share = 1.0 if by_scope else min(1.0, self.inside / self._records)
        return round((limit + spare) / max(share, _LEAST_SHARE))

    def _read_inside(self, seqs: Sequence[int], *, measured: bool = True) -> list[Any]:
        """The records inside the scope: row number, key and FTS5 length blob."""
        lengths = f"CROSS JOIN {self._fts}_docsize AS sizes ON sizes.id = wanted.value " if measured else ""
        return self._backend.rows(
            f'SELECT "{self._table}".seq, "{self._table}"."{self._spec.key}", '
            f"{'sizes.sz' if measured else 'NULL'} "
            f'FROM json_each(:seqs) AS wanted CROSS JOIN "{self._table}" ON "{self._table}".seq = wanted.value '
            f"{lengths}WHERE {self._condition}",
            {**self._values, "seqs": self._listed(seqs)},
        )

    def _inside_of(self, best: Sequence[tuple[int, float]]) -> list[Candidate]:
        keys = self._keys_inside([seq for seq, _ in best])
        found = sorted([(-score, keys[seq], seq) for seq, score in best if seq in keys])
        return [(seq, key, -less) for less, key, seq in found]

    def _best(self, question: str, limit: int) -> list[tuple[int, float]]:
        return self._backend.rows(
            f"SELECT rowid, {self._score} AS score FROM {self._fts} WHERE {self._fts} MATCH :question "
            f"ORDER BY score DESC LIMIT :most",
            {"question": question, "most": limit},
        )

    def _best_inside(self, question: str, limit: int) -> list[Candidate]:
        """The best records, filtered before ranking: for selective conditions and equal scores."""
        key = f'"{self._table}"."{self._spec.key}"'
        return self._backend.rows(
            f'SELECT "{self._table}".seq, {key}, {self._score} AS score '
            # A cross join makes SQLite start from the full-text table instead of probing it for each record.
            f'FROM {self._fts} CROSS JOIN "{self._table}" ON "{self._table}".seq = {self._fts}.rowid '
            f"WHERE {self._fts} MATCH :question AND {self._condition} ORDER BY score DESC, {key} LIMIT :most",
            {**self._values, "question": question, "most": limit},
        )

    def _keys_inside(self, seqs: Sequence[int]) -> dict[int, str]:
        return {row[0]: row[1] for row in self._read_inside(seqs, measured=False)}

    def _newest_with(self, words: Sequence[str], counts: Mapping[str, int], wanted: int) -> dict[int, str]:
        """The newest records with all of the words, then with the rarer half, then with one of them."""
        found: dict[int, str] = {}
        for group in ranking.conjunctions(words):
            if len(found) >= wanted:
                break
            found.update(self._newest_with_all(group, counts[group[0]], wanted))
        return found

    def _newest_with_all(self, words: Sequence[str], rarest: int, wanted: int) -> list[tuple[int, str]]:
        """The newest records with all of the words, within a range of rows that bounds the cost of a miss."""
        question = all_of((*map(quoted, words), self._scope))
        shortest = min(rarest, self.inside) if self._scope else rarest
        reach = self._newest if shortest <= _MOST_READ else round(self._newest * _MOST_READ / shortest)
        return self._backend.rows(
            f'SELECT newest.seq, "{self._table}"."{self._spec.key}" FROM '
            f"(SELECT rowid AS seq FROM {self._fts} WHERE {self._fts} MATCH :question "
            f"AND rowid > :oldest ORDER BY rowid DESC LIMIT {_MOST_READ}) AS newest "
            f'CROSS JOIN "{self._table}" ON "{self._table}".seq = newest.seq WHERE {self._condition} LIMIT :most',
            {**self._values, "question": question, "oldest": self._newest - reach, "most": wanted},
        )

    # ------------------------------------------------------------------ scoring the remaining words

    def _added(self, seqs: Sequence[int], weights: Mapping[str, float]) -> dict[int, float]:
        """The additional scores of further words, counted in the beginnings of the texts."""
        if not seqs:
            return {}
        sql = f'SELECT seq, {self._beginnings} FROM "{self._table}" WHERE seq IN (SELECT value FROM json_each(:seqs))'
        rows = self._backend.rows(sql, {"seqs": self._listed(seqs), "most": self._characters_for(len(seqs))})
        spaced = {f" {word} ": weight for word, weight in weights.items()}
        found = ((seq, spaced_terms(text)) for seq, text in rows)
        return {seq: self._weight_of(terms, spaced, terms.count(" ") + 1) for seq, terms in found}

    @property
    def _beginnings(self) -> str:
        """The beginnings of the searchable texts of a record, as one column."""
        return " || ' ' || ".join(
            f'substr(coalesce("{self._table}"."{name}", \'\'), 1, :most)' for name in self._spec.text
        )

    def _characters_for(self, records: int) -> int:
        """How many characters of each text to read for this number of records."""
        return _RESCORED_CHARACTERS // records // len(self._spec.text)

    def _weight_of(self, found: str, spaced: Mapping[str, float], length: int) -> float:
        """BM25 of words in a text; spaces around each word keep it from matching inside other words."""
        # Double the spaces, so that adjacent words do not share one.
        apart = f" {found.replace(' ', '  ')} "
        counts = {word: count for word in spaced if (count := apart.count(word))}
        return sum(spaced[word] * saturation(count, length, self._mean_length) for word, count in counts.items())

    def _listed(self, seqs: Sequence[int]) -> str:
        # The repr of a list of integers is JSON.
        return str(list(seqs))
