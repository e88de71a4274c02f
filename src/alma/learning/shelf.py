"""Shelves: what was tried on which tasks, found by the vectors of these, nearest first.

All that stands on a shelf is compared with every new task, and reading its vectors takes longer than the arithmetic. So
their sketches are compared first: what is left of them on a few directions that were once chosen at random. Whatever
may be near by its sketch is compared as a whole, so a cosine is always exact; but one in thirty thousand that lies at
the very limit of what is looked for is missed. Of what is farther away only that is looked for which shares most of its
words; there one in six is missed at the limit.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from alma.learning.tasks import SIMILAR_IN_WORDS, UNWORDED, Wording
from alma.model.vector import Vector

Floats = NDArray[np.float32]
Rows = NDArray[np.intp]
Marks = NDArray[np.uint64]

_FIRST_ROOM = 64
# So many numbers at once are multiplied by one thread; more would wait for others.
_MULTIPLIED_AT_ONCE = 393_216
# A full shelf of sketches leaves room for everything else in the cache of a processor.
_SKETCHED_DIMS = 64
# Sketches pay for vectors that are longer by so much, and while they leave no more than a part of the shelf.
_WORTH_SKETCHING = 6
_MOST_LEFT = 4
# So few are compared as a whole, and gone through one by one.
_FEW = 128
# How many standard deviations a sketch may be wrong by.
_DOUBT = 4.0
# The same of what shares its words: these are many that lie far away.
_DOUBT_OF_WORDS = 1.0
_ALMOST_ONE = 0.999_999
_LEAST_SQUARE, _LARGEST_SQUARE = 1e-20, 1e30
_cosine = itemgetter(0)


@dataclass(slots=True)
class Entry:
    """A strategy that was tried on a task, as the newest outcome of its kind has it; or a rule."""

    id: str
    strategy: str
    lesson_id: str
    task_type: str | None = None
    succeeded: bool = False
    failed: bool = False
    wording: Wording = UNWORDED

    def met_again(self, later: Entry) -> Entry:
        """The entry after the same strategy was tried on the same task once more."""
        return Entry(
            later.id,
            later.strategy,
            later.lesson_id,
            later.task_type,
            self.succeeded or later.succeeded,
            self.failed or later.failed,
            later.wording,
        )


class Shelf:
    """Entries with their vectors; when it is full, the one that was met longest ago makes room."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: list[Entry] = []
        # By their ids, those that were met longest ago first.
        self._rows: OrderedDict[str, int] = OrderedDict()
        self._vectors: Floats = np.zeros((0, 0), np.float32)
        self._sketches: Floats = np.zeros((0, 0), np.float32)
        self._marks: Marks = np.zeros(0, np.uint64)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, entry_id: str) -> bool:
        return entry_id in self._rows

    def near(self, vector: Floats, least: float, most: int, wording: Wording = UNWORDED) -> list[tuple[float, Entry]]:
        """The entries with at least this cosine, or a lower one and the words of this wording; nearest first."""
        if not self._entries or len(vector) != self._vectors.shape[1]:
            return []
        rows, cosines = self._compared(vector, least, wording)
        farthest = min(least, SIMILAR_IN_WORDS) if wording.words else least
        if len(rows) > _FEW:
            near = (cosines >= farthest).nonzero()[0]
            rows, cosines = rows[near], cosines[near]
        entries, compared = self._entries, zip(cosines.tolist(), rows.tolist(), strict=True)
        found = [
            (cosine, entries[row])
            for cosine, row in compared
            if cosine >= least or (cosine >= farthest and cosine >= wording.similar_from(entries[row].wording))
        ]
        found.sort(key=_cosine, reverse=True)
        return found[:most]

    def _compared(self, vector: Floats, least: float, wording: Wording) -> tuple[Rows, Floats]:
        """The rows that may be near enough, with their cosines."""
        count = len(self._entries)
        if count > _FEW and is_sketched(len(vector)):
            alike = _product(self._sketches[:count], sketch(vector))
            likely = alike >= _likely(least, len(vector), _DOUBT)
            if wording.words:
                likely |= self._worded_alike(wording) & (
                    alike >= _likely(SIMILAR_IN_WORDS, len(vector), _DOUBT_OF_WORDS)
                )
            rows = likely.nonzero()[0]
            if _MOST_LEFT * len(rows) <= count:
                return rows, self._vectors.take(rows, axis=0).dot(vector)
        return np.arange(count), _product(self._vectors[:count], vector)

    def _worded_alike(self, wording: Wording) -> NDArray[np.bool_]:
        """Which rows may share most of their words with a task, by their marks."""
        shared = self._marks[: len(self._entries)] & np.uint64(wording.marks)
        return _ones(shared) >= wording.fewest_marks

    def put(self, vector: Floats, entry: Entry, like: str | None = None) -> None:
        """Add an entry, in the place of the one with the id `like` where it is still there."""
        row = self._rows.get(entry.id if like is None else like)
        if row is not None:
            del self._rows[self._entries[row].id]
            self._entries[row] = self._entries[row].met_again(entry)
        elif len(self._entries) < self._most:
            row = self._new_row(entry, len(vector))
        else:
            _, row = self._rows.popitem(last=False)
            self._entries[row] = entry
        self._rows[entry.id] = row
        self._vectors[row] = vector
        self._marks[row] = entry.wording.marks
        if is_sketched(len(vector)):
            self._sketches[row] = sketch(vector)

    def drop(self, entry_id: str) -> None:
        """Forget an entry that the store does not know."""
        row = self._rows.get(entry_id)
        if row is not None:
            # It points nowhere, so it is near nothing, and it is the first to make room.
            self._vectors[row] = 0.0
            self._sketches[row] = 0.0
            self._rows.move_to_end(entry_id, last=False)

    def _new_row(self, entry: Entry, dims: int) -> int:
        row = len(self._entries)
        if row >= len(self._vectors):
            room = min(max(2 * row, _FIRST_ROOM), self._most)
            self._vectors = _with_room(self._vectors, row, (room, dims))
            self._sketches = _with_room(self._sketches, row, (room, _SKETCHED_DIMS if is_sketched(dims) else 0))
            self._marks = np.concatenate([self._marks, np.zeros(room - row, np.uint64)])
        self._entries.append(entry)
        return row


def _with_room(held: Floats, rows: int, shape: tuple[int, int]) -> Floats:
    """A larger array with the rows that were held."""
    made = np.zeros(shape, np.float32)
    made[:rows] = held[:rows].reshape(rows, shape[1])
    return made


def _ones(marks: Marks) -> NDArray[np.uint8]:
    """How many marks each row has."""
    if hasattr(np, "bitwise_count"):
        counted: NDArray[np.uint8] = np.bitwise_count(marks)
        return counted
    bits = np.unpackbits(marks.view(np.uint8).reshape(len(marks), 8), axis=1)
    ones: NDArray[np.uint8] = bits.sum(axis=1, dtype=np.uint8)
    return ones


def _product(matrix: Floats, vector: Floats) -> Floats:
    """The product of each row with the vector."""
    count, dims = matrix.shape
    step = max(1, _MULTIPLIED_AT_ONCE // dims)
    if count <= step:
        at_once: Floats = matrix.dot(vector)
        return at_once
    products = np.empty(count, np.float32)
    for start in range(0, count, step):
        np.dot(matrix[start : start + step], vector, out=products[start : start + step])
    return products


# ---------------------------------------------------------------------- sketches


def is_sketched(dims: int) -> bool:
    """Whether vectors of so many dimensions have sketches."""
    return dims >= _WORTH_SKETCHING * _SKETCHED_DIMS


class _LastSketch:
    """A vector is sketched to be looked for and again to be put down, as a rule one right after the other."""

    def __init__(self) -> None:
        self._last: tuple[Floats, Floats] | None = None

    def __call__(self, vector: Floats) -> Floats:
        """What is left of a vector on the directions that were chosen, of length one."""
        last = self._last
        if last is not None and last[0] is vector:
            return last[1]
        left: Floats = np.dot(_directions(len(vector)), vector)
        length = math.sqrt(left.dot(left))
        made = left / np.float32(length) if length else left
        self._last = (vector, made)
        return made


sketch = _LastSketch()


@lru_cache(maxsize=8)
def _directions(dims: int) -> Floats:
    """Directions at right angles to each other, chosen at random, but the same whenever they are asked for."""
    drawn = np.random.default_rng(dims).normal(size=(dims, _SKETCHED_DIMS))
    return np.ascontiguousarray(np.linalg.qr(drawn)[0].T, np.float32)


@lru_cache(maxsize=64)
def _likely(least: float, dims: int, doubt: float) -> float:
    """The cosine of sketches from which on the vectors may have this one.

    It varies as the correlation of a sample does: its inverse hyperbolic tangent by √((1 - s/d) / s), where s and d are
    the dimensions of sketches and vectors.
    """
    varies = math.sqrt((1 - _SKETCHED_DIMS / dims) / _SKETCHED_DIMS)
    return math.tanh(math.atanh(min(least, _ALMOST_ONE)) - doubt * varies)


# ---------------------------------------------------------------------- vectors


def unit(vector: Vector) -> Floats:
    """A vector of length one that points the same way; a zero vector stays zero."""
    return unit_of(vector.to_bytes())


def unit_of(data: bytes) -> Floats:
    """The same, of the bytes of a vector."""
    raw: Floats = np.frombuffer(data, "<f4")
    square = float(raw.dot(raw))
    if not _LEAST_SQUARE < square < _LARGEST_SQUARE:
        return _unit_of_extremes(raw)
    made: Floats = raw * np.float32(1 / math.sqrt(square))
    return made


def _unit_of_extremes(raw: Floats) -> Floats:
    """The squares of very large or small numbers have no room in single precision."""
    exact = raw.astype(np.float64)
    length = math.sqrt(exact.dot(exact))
    return (exact / length if length else exact).astype(np.float32)
