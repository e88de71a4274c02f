"""Full-text search on SQLite: a query of many words stays fast in a store of millions of records.

FTS5 scores about a record per microsecond, and before the first it counts every entry of each word in the whole table.
So a search has up to three steps, each bounded:

1. Its rarest words are looked up and scored by BM25: ours, from the entries of each word. In a scope that is a small
   part of a large table only the entries inside are looked up, where it has short texts; otherwise FTS5 scores, as it
   does while something is written. In a small store, or while the words are rare, these are all the words.
2. In a small scope, records join them that have one of the other words, if only few have it there. Where there are
   still too few, the newest join them that have all of the other words, then fewer of them.
3. The best of these get what the words left out in step 1 add to their score, counted in their text.
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

# FTS5 counts every entry of a word in the whole table before it scores the first; so much of scoring that costs.
_COUNTING = 0.03
# So many entries may be listed and scored for one question, which takes a millisecond or two.
_BUDGET = 6_000
# The cost of seeking the next entry of a word inside a small scope.
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
# FTS5 lets a word weigh nothing that half of the records have.
_COMMON = 0.45
_ENOUGH = 10
_SMALLEST_SCORE = 1e-9
# So many seeks from one record of an owner with a word to the next take 7 ms, and a fifth of that if few have it.
_SEEKS = 10_000
# In terms: in texts no longer than that words hardly stand more than once.
_SAID_ONCE = 60

# The row number of a record, its key and its score.
Candidate = tuple[int, str, float]


class WordSearch(ScopedWords):
    """One search in the full-text table of a kind."""

    def __init__(self, backend: SQLiteBackend, spec: RecordSpec, where: Predicate) -> None:
        super().__init__(backend, spec, where)
        self._spec = spec
        self._where = where
        # The owner's column weighs nothing.
        self._score = f"-bm25({self._fts}, {'1.0, ' * len(spec.text)}0.0)"
        # Where a good part of a word's entries lies inside they are listed all.
        self._lists = not backend.writable and (not self._narrowed or self.inside >= _LISTED_SHARE * self._records)
        # And only those inside are ranked, by how rare the words are there, where it takes little to list these and
        # words may be rarer or more common than everywhere.
        self._lists_inside = self._narrowed and self.inside <= min(_FEW_LISTED, _NEARLY_ALL * self._records)
        self._condition, self._values = backend.dialect.kind(spec).condition(where) if self._records else ("false", {})
        # The words whose entries were listed last, and what was found by them.
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
        # An inexact search has the best already, and searching for the others takes the longest.
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
        # Of the newest that a filter leaves it was not known whether they have any of the words.
        others = [each for each in others if each[0] in more or added.get(each[0])]
        ranked = [(key, score + added.get(seq, 0.0)) for seq, key, score in (*found, *others)]
        return sorted(ranked, key=lambda pair: (-pair[1], pair[0]))[:limit]

    def scores(self, words: Sequence[str], keys: Sequence[str]) -> dict[str, float]:
        """What those of the records with these keys score that have any of the words."""
        if not self._records:
            return {}
        looked_up, roughly = self._looked_up
        if roughly is not None and looked_up == frozenset(words):
            return self._scores_by_postings(roughly, keys)
        return self._scores_by_texts(words, keys)

    def _scores_by_postings(self, roughly: sqlite_postings.Ranked, keys: Sequence[str]) -> dict[str, float]:
        """By the entries that were listed when the words were looked up."""
        rows = self._named(keys, f'"{self._table}".seq', {})
        having = roughly.has([seq for *_, seq in rows])
        rows = [row for row, has in zip(rows, having, strict=True) if has]
        scores = roughly.exact([seq for *_, seq in rows], [size for _, size, _ in rows], self._mean_length)
        return {key: score for (key, *_), score in zip(rows, scores, strict=True)}

    def _scores_by_texts(self, words: Sequence[str], keys: Sequence[str]) -> dict[str, float]:
        """By what is counted in the beginnings of their texts."""
        weights = {f" {word} ": worth for word, worth in self._rarities(words).items()}
        rows = self._named(keys, self._beginnings, {"most": self._characters_for(len(keys))})
        scores = {key: self._weight_of(spaced_terms(text), weights, sum(varints(size))) for key, size, text in rows}
        return {key: score for key, score in scores.items() if score}

    def _named(self, keys: Sequence[str], column: str, values: Mapping[str, Any]) -> list[Any]:
        """The keys of those of the records that lie inside, FTS5's notes of their lengths, and a column."""
        key = f'"{self._table}"."{self._spec.key}"'
        return self._backend.rows(
            f"SELECT {key}, sizes.sz, {column} FROM json_each(:keys) AS wanted "
            f'CROSS JOIN "{self._table}" ON {key} = wanted.value '
            f'CROSS JOIN {self._fts}_docsize AS sizes ON sizes.id = "{self._table}".seq WHERE {self._condition}',
            {**self._values, **values, "keys": json.dumps(keys)},
        )

    def _rarities(self, words: Sequence[str]) -> dict[str, float]:
        """The weight of each word: by its rarity inside, where only the records inside are ranked."""
        everywhere = {word: self._counted(quoted(word), COUNTED) for word in words}
        if not (self._lists_inside and (self._lists or self._are_few(everywhere))):
            return {word: rarity(self._records, count) for word, count in everywhere.items()}
        inside = {word: self._counted(self._inside_with(word), COUNTED) for word in words}
        return {word: rarity(self.inside, count) for word, count in inside.items()}

    def _are_few(self, everywhere: Mapping[str, int]) -> bool:
        """Whether all entries of the words may be listed, though few of them lie inside."""
        small = self._lists_inside and self._records <= _SMALL_TABLE and not self._backend.writable
        return small and sum(everywhere.values()) <= _BUDGET

    def _rare_here(
        self, weights: dict[str, float], everywhere: Mapping[str, int]
    ) -> tuple[dict[int, str], Sequence[str]]:
        """The records of a small scope that have a word which is common elsewhere, and the words that are common here.

        A word is weighted by its rarity in this scope. Otherwise an agent's one record about deployment would not be
        found because all the others deploy.
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
        # Nearly all lie inside, so it is enough to read the rows of the best.
        found = self._inside_of(best)
        complete = len(best) < most
        # Where the cut went through records of one score, their keys must decide which of them are first.
        settled = len(found) >= limit and (not exact or found[limit - 1][2] > best[-1][1])
        return found[:limit] if complete or settled else self._best_inside(question, limit)

    def _best_by_seeking(self, words: Sequence[str], limit: int) -> list[Candidate] | None:
        """The best of a small owner in a large table, by the records that FTS5 seeks for each word.

        None where that would take too long, and in long texts, where it matters how often they have a word.
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
        """Whether few records of a small part of a large table may have the words, however many have them elsewhere."""
        small_part = self._lists_inside and not self._lists and self._records > _SMALL_TABLE
        return small_part and 0 < self.inside * len(words) <= _SEEKS

    def _scored_by_postings(self, words: Sequence[str], limit: int, *, exact: bool) -> list[Candidate]:
        """By BM25, best first, and so far down as it takes to find enough that lie inside."""
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
        """Of what was found by words, what a filter leaves, where it is known to leave few."""
        few = self._backend.feed.listing(self._spec, self._where)
        return found if few is None else found.among(few.seqs)

    def _sizes(self, roughly: sqlite_postings.Ranked) -> list[bytes]:
        """the lengths that FTS5 stores of all of the records, in the order of their ranks."""
        sql = (
            f"SELECT sizes.sz FROM json_each(:seqs) AS wanted "
            f"CROSS JOIN {self._fts}_docsize AS sizes ON sizes.id = wanted.value ORDER BY wanted.key"
        )
        seqs, _ = roughly.part(0, len(roughly.order))
        return [size for (size,) in self._backend.rows(sql, {"seqs": self._listed(seqs)})]

    def _best_measured(self, measured: sqlite_postings.Ranked, limit: int) -> list[Candidate]:
        """The best whose scores are exact, keys breaking ties."""
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
        """Those of the first that lie inside, with their lengths."""
        return self._read_inside(roughly.part(0, self._first_read_for(limit))[0])

    def _first_read_for(self, limit: int) -> int:
        return self._read_for(limit, min(_SPARE, max(limit // 2, _RESCORED - limit)))

    def _best_of_many(self, roughly: sqlite_postings.Ranked, first: Sequence[Any], limit: int) -> list[Candidate]:
        """The lengths of the first are known; the others are taken for as long as the average."""
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
        """Of a large scope's matches its share of all records is expected to lie inside, and somewhat more are read."""
        by_scope = self._lists_inside or (self._narrowed and not self._lists)
        share = 1.0 if by_scope else min(1.0, self.inside / self._records)
        return round((limit + spare) / max(share, _LEAST_SHARE))

    def _read_inside(self, seqs: Sequence[int], *, measured: bool = True) -> list[Any]:
        """Those of these records that lie inside: the row number, the key, and the length that FTS5 stores."""
        beside = f"CROSS JOIN {self._fts}_docsize AS sizes ON sizes.id = wanted.value " if measured else ""
        return self._backend.rows(
            f'SELECT "{self._table}".seq, "{self._table}"."{self._spec.key}", '
            f"{'sizes.sz' if measured else 'NULL'} "
            f'FROM json_each(:seqs) AS wanted CROSS JOIN "{self._table}" ON "{self._table}".seq = wanted.value '
            f"{beside}WHERE {self._condition}",
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
        """Every record is checked before it is ranked: for conditions that few fulfil, and for equal scores."""
        key = f'"{self._table}"."{self._spec.key}"'
        return self._backend.rows(
            f'SELECT "{self._table}".seq, {key}, {self._score} AS score '
            # A cross join keeps SQLite from walking the records and asking the full-text table about each.
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
        """Only so far back as the shortest list has few entries: words and owners that never meet cost no more."""
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

    # ------------------------------------------------------------------ scoring what was left out

    def _added(self, seqs: Sequence[int], weights: Mapping[str, float]) -> dict[int, float]:
        """What further words add to the scores of records, counted in the beginning of their texts."""
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
        """How many characters of each text are read, for so many records."""
        return _RESCORED_CHARACTERS // records // len(self._spec.text)

    def _weight_of(self, found: str, spaced: Mapping[str, float], length: int) -> float:
        """BM25 of some words in a text; each is between spaces, so that parts of other words do not match."""
        # Twice as many, so that neighbours do not share one.
        apart = f" {found.replace(' ', '  ')} "
        counts = {word: count for word in spaced if (count := apart.count(word))}
        return sum(spaced[word] * saturation(count, length, self._mean_length) for word, count in counts.items())

    def _listed(self, seqs: Sequence[int]) -> str:
        # Written as JSON writes it.
        return str(list(seqs))
