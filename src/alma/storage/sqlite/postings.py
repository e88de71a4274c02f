"""The words of a scope, and BM25 from the entries of each word.

FTS5 lists entries three times as fast as its own function scores them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from alma.model.query import Predicate
from alma.model.record import RecordSpec
from alma.storage import ranking
from alma.storage.ranking import K1, B, CountCache, rarity
from alma.storage.sqlite.fulltext import owner_tokens

if TYPE_CHECKING:
    from alma.storage.sqlite.backend import SQLiteBackend


SMALL_SCOPE = 20_000
COUNTED = 1_500
"""A word is not counted further; beyond that its frequency is estimated from how far so many entries reach."""
# A word is counted inside so small a scope; in a larger one it is about as common as everywhere.
_FEW_INSIDE = 1_000
# Where its records have more of the words than that on average, seeking is slower than listing.
_ENTRIES_OF_EACH = 1.5


class ScopedWords:
    """The full-text table of a kind, as far as it concerns one scope."""

    def __init__(self, backend: SQLiteBackend, spec: RecordSpec, where: Predicate) -> None:
        self._backend = backend
        self._table = backend.dialect.names.table(spec)
        self._fts = backend.dialect.names.fts_table(spec)
        self._counts: CountCache[int] = backend.cache.word_counts
        matching = f"FROM {self._fts} WHERE {self._fts} MATCH :question LIMIT"
        self._counting = f"SELECT count(*) FROM (SELECT 1 {matching} :most)"
        self._reaching = f"SELECT rowid {matching} 1 OFFSET :most - 1"
        self._records, self._mean_length = self._totals()
        # Most kinds have no records in most stores, and need no further query.
        self._newest = self._records and backend.rows(f'SELECT coalesce(max(seq), 0) FROM "{self._table}"', {})[0][0]
        self._scope = _scope_expression(where)
        everything = not self._scope or not self._records
        self.inside = self._records if everything else self._counted(self._scope, SMALL_SCOPE)
        # A condition on the owner inside the index pays while it has few entries to seek.
        self._narrowed = bool(self._scope) and self.inside < SMALL_SCOPE

    def counts(self, words: Sequence[str]) -> tuple[int, dict[str, int]]:
        """How many records a small scope has and how many of them each word; of a larger one, how many anywhere."""
        if not self._records:
            return 0, dict.fromkeys(words, 0)
        small = self._narrowed and self.inside <= _FEW_INSIDE
        scope = self._scope if small else ""
        counts = {word: self._counted(all_of((quoted(word), scope)), COUNTED) for word in words}
        return self.inside if small else self._records, counts

    def _totals(self) -> tuple[int, float]:
        """How many records the full-text table has, and how many terms each on average, as FTS5 keeps them itself."""
        rows = self._backend.rows(f"SELECT block FROM {self._fts}_data WHERE id = 1", {})
        records, *lengths = varints(rows[0][0]) if rows and rows[0][0] else (0,)
        return records, sum(lengths) / max(records, 1)

    def _counted(self, expression: str, most: int) -> int:
        """How many entries an expression has; beyond `most` estimated by how far so many reached."""
        known = self._counts.get((self._fts, expression), self._records)
        if known is not None:
            return known
        values = {"question": expression, "most": most}
        count: int = self._backend.rows(self._counting, values)[0][0]
        if count == most:
            # Few words are as common; to note the row of every entry would take half as long again.
            last: int = self._backend.rows(self._reaching, values)[0][0]
            count = max(count, round(count * self._newest / last))
        return self._counts.put((self._fts, expression), self._records, count)

    def _few_inside_with(self, words: Sequence[str]) -> list[Numbers] | None:
        """The records of the owner that have each word, unless they have too many of the words."""
        room = round(_ENTRIES_OF_EACH * self.inside)
        if sum(map(self._supposed_inside, words)) > room:
            return None
        lists = []
        for word in words:
            expression = self._inside_with(word)
            found = listed(self._backend, self._fts, expression, room + 1)
            room -= len(found)
            if room < 0:
                return None
            self._counts.put((self._fts, expression), self._records, len(found))
            lists.append(found)
        return lists

    def _inside_with(self, word: str) -> str:
        """What finds the records of the scope that have a word."""
        return all_of((quoted(word), self._scope))

    def _supposed_inside(self, word: str) -> float:
        """How many records of the owner have a word, if it is as common among them as everywhere; 0 if unknown."""
        everywhere = self._counts.get((self._fts, quoted(word)), self._records) or 0
        return everywhere * self.inside / self._records


def _scope_expression(where: Predicate) -> str:
    """The FTS5 expression of a scope; empty where it has no owner."""
    tokens = owner_tokens(ranking.owners(where))
    if "agent" in tokens:
        # The token of an agent includes its project, whose own token has the longer list of entries.
        del tokens["project_id"]
    return all_of(any_of(map(quoted, each)) for each in tokens.values())


def quoted(word: str) -> str:
    """A word that leaves nothing for FTS5 to interpret."""
    return '"' + word.replace('"', '""') + '"'


def any_of(expressions: Iterable[str]) -> str:
    return f"({' OR '.join(expressions)})"


def all_of(expressions: Iterable[str]) -> str:
    return " AND ".join(filter(None, expressions))


Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]


class Entries(NamedTuple):
    """Every word in every record that has it: the place of the record in a list, the count and the weight."""

    places: Numbers
    often: Floats
    weights: Floats

    def scores(self, records: int, norms: Floats | float) -> Floats:
        """BM25 of each record; `norms` is what the length of the record counts, for each entry."""
        worth = self.weights * (K1 + 1) * self.often / (self.often + norms)
        return np.bincount(self.places, worth, minlength=records).astype(np.float64, copy=False)

    def of_those(self, slots: Numbers) -> Entries:
        """The entries of some records alone, at their places in another list; -1 leaves one out."""
        places = slots[self.places]
        kept = places >= 0
        return Entries(places[kept], self.often[kept], self.weights[kept])


class Ranked(NamedTuple):
    """The records with any of the words, ascending, and their BM25 as if all were of average length.

    `order` has their places in the list, best first.
    """

    seqs: Numbers
    scores: Floats
    entries: Entries
    order: Numbers

    def has(self, seqs: Sequence[int]) -> list[bool]:
        """Which of the records have any of the words."""
        having: list[bool] = _is_among(np.array(seqs, np.int64), self.seqs).tolist()
        return having

    def among(self, seqs: Numbers) -> Ranked:
        """Only those of the records that are in an ascending list."""
        return self._replace(order=self.order[_is_among(self.seqs, seqs)[self.order]])

    def measured(self, sizes: Sequence[bytes], mean_length: float) -> Ranked:
        """By the true length of each of the records, of which FTS5's notes are given in the order of their ranks."""
        norms = np.full(len(self.seqs), K1)
        norms[self.order] = _norms(sizes, mean_length)
        scores = self.entries.scores(len(self.seqs), norms[self.entries.places])
        return self._replace(scores=scores, order=self.order[np.argsort(-scores[self.order], kind="stable")])

    def end_of_ties(self, rank: int) -> int:
        """The first rank from this one on whose record scores less than the one before it."""
        scores = self.scores[self.order[rank - 1 :]]
        less = np.flatnonzero(scores < scores[:1])
        return rank + int(less[0]) - 1 if len(less) else len(self.order)

    def part(self, start: int, stop: int) -> tuple[list[int], list[float]]:
        """Some of the records, from one rank up to another, and their scores."""
        chosen = self.order[start:stop]
        return self.seqs[chosen].tolist(), self.scores[chosen].tolist()

    def exact(self, seqs: Sequence[int], sizes: Sequence[bytes], mean_length: float) -> list[float]:
        """The BM25 of some of the records, of which FTS5's notes of their lengths are given."""
        if not seqs:
            return []
        slots = np.full(len(self.seqs), -1)
        slots[np.searchsorted(self.seqs, np.array(seqs, np.int64))] = np.arange(len(seqs))
        near = self.entries.of_those(slots)
        norms = _norms(sizes, mean_length)
        scores: list[float] = near.scores(len(seqs), norms[near.places]).tolist()
        return scores


def ranked(
    backend: SQLiteBackend, fts: str, words: Sequence[str], records: int, inside: Numbers | None = None
) -> Ranked:
    """The records with any of the words, ranked; only those `inside`, if given, by how rare a word is among them."""
    return _in_order(*_entries(backend, fts, words, records, inside))


def ranked_by_lists(lists: Sequence[Numbers], inside: int) -> Ranked:
    """The records with any of the words, ranked as if each had a word once.

    The lists tell of each word which records of a scope have it, which has so many `inside`.
    """
    having = [len(found) for found in lists]
    weights = np.repeat([rarity(inside, count) for count in having], having)
    seqs, places = np.unique(np.concatenate(lists), return_inverse=True)
    return _in_order(seqs, Entries(places, np.ones(len(places)), weights))


def listed(backend: SQLiteBackend, fts: str, expression: str, most: int = -1) -> Numbers:
    """The records that an expression finds, ascending; so many of them, if a number is given."""
    found = f"SELECT rowid FROM {fts} WHERE {fts} MATCH :question ORDER BY rowid LIMIT :most"
    rows = backend.rows(f"SELECT group_concat(rowid) FROM ({found})", {"question": expression, "most": most})
    return np.fromstring(rows[0][0] or "", np.int64, sep=",")


def mean_length(sizes: Sequence[bytes]) -> float:
    """How many terms records have on average, of which FTS5's notes of their lengths are given."""
    return float(_lengths(sizes).mean()) if sizes else 0.0


def _in_order(seqs: Numbers, entries: Entries) -> Ranked:
    scores = entries.scores(len(seqs), K1)
    return Ranked(seqs, scores, entries, np.argsort(-scores, kind="stable"))


def _entries(
    backend: SQLiteBackend, fts: str, words: Sequence[str], records: int, inside: Numbers | None
) -> tuple[Numbers, Entries]:
    """The records that have any of the words, ascending, and the entries of the words in them."""
    # It belongs to the connection and holds nothing itself.
    vocabulary = f"temp.{fts}_instances USING fts5vocab('main', '{fts}', 'instance')"
    backend.rows(f"CREATE VIRTUAL TABLE IF NOT EXISTS {vocabulary}", {})
    # As one text: making a row of each occurrence would take longer than to find them.
    sql = f"SELECT group_concat(doc) FROM temp.{fts}_instances WHERE term = :word"
    lists = [found for word in words if (found := backend.rows(sql, {"word": word})[0][0])]
    every = np.fromstring(",".join(lists), np.int64, sep=",")
    ends = np.cumsum([found.count(",") + 1 for found in lists], dtype=np.int64)
    # Occurrences are listed by record, so that those of one word in one record stand together.
    first = np.ones(len(every), np.bool_)
    np.not_equal(every[1:], every[:-1], out=first[1:])
    first[ends[:-1]] = True
    starts = np.flatnonzero(first)
    often = np.diff(starts, append=len(every)).astype(np.float64)
    of_word = np.searchsorted(ends, starts, side="right")
    if inside is not None:
        kept = _is_among(every[starts], inside)
        starts, often, of_word, records = starts[kept], often[kept], of_word[kept], len(inside)
    having = np.bincount(of_word, minlength=len(lists))
    weights = np.array([rarity(records, count) for count in having.tolist()])
    seqs, places = np.unique(every[starts], return_inverse=True)
    return seqs, Entries(places, often, weights[of_word])


def _is_among(numbers: Numbers, ascending: Numbers) -> NDArray[np.bool_]:
    """Which of the numbers are in an ascending list."""
    if not len(ascending):
        return np.zeros(len(numbers), np.bool_)
    places = np.minimum(np.searchsorted(ascending, numbers), len(ascending) - 1)
    found: NDArray[np.bool_] = ascending[places] == numbers
    return found


def _norms(sizes: Sequence[bytes], mean_length: float) -> Floats:
    """What the length of each record counts."""
    norms: Floats = K1 * (1 - B + B * _lengths(sizes) / max(mean_length, 1.0))
    return norms


def _lengths(sizes: Sequence[bytes]) -> Floats:
    """How many terms each record has, by the lengths of its columns."""
    joined = b"".join(sizes)
    if joined.isascii():
        # Every number is a byte, and every record has as many columns.
        lengths: Floats = np.frombuffer(joined, np.uint8).reshape(len(sizes), -1).sum(axis=1, dtype=np.float64)
        return lengths
    return np.array([sum(varints(block)) for block in sizes], np.float64)


def varints(block: bytes) -> list[int]:
    """The whole numbers in a record of FTS5: seven bits in each byte, the highest bit says that more follow."""
    numbers, number = [], 0
    for byte in block:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(number)
            number = 0
    return numbers
