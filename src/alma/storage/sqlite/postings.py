"""BM25 from the entries of each word: FTS5 lists them three times as fast as its own function scores them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from alma.storage.ranking import K1, B, rarity

if TYPE_CHECKING:
    from alma.storage.sqlite.backend import SQLiteBackend

Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]


class Entries(NamedTuple):
    """Every word in every record that has it: which record of a list, how often it stands there, what it weighs."""

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
