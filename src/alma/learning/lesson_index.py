"""The book of lessons: on which tasks which strategies were tried lately, in this process, and how far it is written.

A book only proposes: what an outcome that it names is evidence for is read from the store. But a book that is complete
may also say that there is nothing, and then nothing else is searched. So it follows the store's vector feed, by which
it learns what other processes wrote, before it is asked.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from alma.learning.task_similarity import SIMILAR_IN_WORDS, UNWORDED, Wording, wording_of
from alma.model.learning import Heuristic, Outcome
from alma.model.query import In, Order
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.storage.base import Capability, StorageBackend, StoredVector, Transaction

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


MOST_TASKS = 2_048
"""So many different tasks of an agent are compared with a new one, those that were met last; a constant effort."""
MOST_RULES = 1_024

_MOST_BOOKS = 16
# A few searches are cheaper than reading all that a book needs.
_SEARCHES_BEFORE_FILLING = 8
_MOST_TO_CATCH_UP = 4_096
_READ_AT_ONCE = 1_024
_OUTCOME_FIELDS = ("id", "task_type", "strategy_used", "lesson_id", "success", "task_description")
_RULE_FIELDS = ("id", "strategy", "condition")


class Book:
    """What an agent tried in a project, and its rules; `complete` where nothing newer than its oldest entry lacks."""

    def __init__(self) -> None:
        self.tasks = Shelf(MOST_TASKS)
        self.rules = Shelf(MOST_RULES)
        self.complete = False
        self.searches = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known, which is not the same as knowing that there is nothing."""
        return not self.complete and not len(self.tasks)


class Books:
    """The books of the agents that learned last, all written as far as one position of the store's feed."""

    def __init__(self, storage: StorageBackend) -> None:
        self._storage = storage
        self._follows = Capability.VECTOR_FEED in storage.capabilities
        self._books: OrderedDict[Scope, Book] = OrderedDict()
        self._position: int | None = None
        self._lock = threading.RLock()

    def of(self, scope: Scope) -> Book:
        """The book of a scope, as far as it is known here."""
        with self._lock:
            book = self._books.get(scope)
            if book is None:
                book = self._books[scope] = Book()
                if len(self._books) > _MOST_BOOKS:
                    self._books.popitem(last=False)
            self._books.move_to_end(scope)
            return book

    def is_complete(self, scope: Scope) -> bool:
        return self.of(scope).complete

    def near(
        self, tx: Transaction | None, scope: Scope, vector: Floats, wording: Wording, least: float, most: int
    ) -> tuple[list[tuple[float, Entry]], bool]:
        """The tasks near a vector or a wording, and whether there can be no others.

        With a transaction, as far as that sees; without one, as far as this process knows already.
        """
        with self._lock:
            if tx is not None:
                self._follow(tx)
            book = self.of(scope)
            return book.tasks.near(vector, least, most, wording), book.complete

    def rules_near(
        self, scope: Scope, vector: Floats, wording: Wording, least: float, most: int
    ) -> list[tuple[float, Entry]]:
        """The rules near a vector or a wording, as of the last call of `near`."""
        with self._lock:
            return self.of(scope).rules.near(vector, least, most, wording)

    @property
    def position(self) -> int | None:
        """How far of the feed is taken in; None where no book is complete, so that none follows it."""
        return self._position

    def end_of_feed(self, tx: Transaction) -> int | None:
        """Where the feed ends for a transaction, if anything follows it."""
        return None if self._position is None else tx.vector_position()

    def note(
        self,
        scope: Scope,
        vector: Floats,
        entry: Entry,
        like: str | None,
        rules: Iterable[tuple[Floats, Entry]],
        span: tuple[int | None, int | None, int],
    ) -> None:
        """Write down what was just committed, if nothing else was between its two positions of the feed.

        `span` is these, and how many vectors it had. Otherwise it is read from the feed, with what else there is.
        """
        before, after, count = span
        with self._lock:
            if self._position is not None:
                if before is None or after is None or self._position != before or after != before + count:
                    return
                self._position = after
            book = self.of(scope)
            book.tasks.put(vector, entry, like)
            for rule_vector, rule in rules:
                book.rules.put(rule_vector, rule)

    def drop(self, scope: Scope, entry: Entry) -> None:
        """Forget what the store does not know any more."""
        with self._lock:
            self.of(scope).tasks.drop(entry.id)
            self.of(scope).rules.drop(entry.id)

    def searched(self, scope: Scope) -> None:
        """Note that the store was searched for want of a complete book; after a few times it becomes one."""
        if not self._follows or self._storage.is_writing:
            return
        with self._lock:
            book = self.of(scope)
            book.searches += 1
            if not book.complete and book.searches >= _SEARCHES_BEFORE_FILLING:
                # The snapshot is taken inside the lock, so that it is no older than what is known already.
                with self._storage.snapshot() as tx:
                    self._fill(tx, scope)

    # ------------------------------------------------------------------ reading the store

    def _follow(self, tx: Transaction) -> None:
        """Take in what was written since, by whichever process."""
        known = self._position
        if known is None or (position := tx.vector_position()) == known:
            return
        if position < known or position - known > _MOST_TO_CATCH_UP:
            # Another store was put in its place, or it would take longer than to begin again.
            self._books.clear()
            self._position = None
            return
        self._take_in(tx, tx.vectors_after(self._storage.embedding_model, known, _MOST_TO_CATCH_UP))
        self._position = position

    def _take_in(self, tx: Transaction, page: Sequence[StoredVector]) -> None:
        wanted = {vector.record_id: vector for vector in page if vector.part == 0 and _scope(vector) in self._books}
        everywhere = Scope.everywhere()
        outcomes = [key for key, vector in wanted.items() if vector.kind == Outcome.spec.kind]
        if outcomes:
            for entry in _outcomes(tx.values(Outcome, _OUTCOME_FIELDS, everywhere, In("id", outcomes))):
                self._book_of(wanted[entry.id]).tasks.put(unit_of(wanted[entry.id].data), entry)
        rules = [key for key, vector in wanted.items() if vector.kind == Heuristic.spec.kind]
        if rules:
            for entry in _rules(tx.values(Heuristic, _RULE_FIELDS, everywhere, In("id", rules))):
                self._book_of(wanted[entry.id]).rules.put(unit_of(wanted[entry.id].data), entry)

    def _book_of(self, vector: StoredVector) -> Book:
        return self._books[_scope(vector)]

    def _fill(self, tx: Transaction, scope: Scope) -> None:
        # Where the others are too far behind, they are forgotten, and this one is the first again.
        self._follow(tx)
        self._position = tx.vector_position()
        book = self._books[scope] = Book()
        newest = (Order("timestamp", "desc"),)
        outcomes = list(_outcomes(tx.values(Outcome, _OUTCOME_FIELDS, scope, order=newest, limit=MOST_TASKS)))
        for entry, vector in self._with_vectors(tx, Outcome, outcomes):
            book.tasks.put(vector, entry)
        last = (Order("last_validated", "desc"),)
        rules = list(_rules(tx.values(Heuristic, _RULE_FIELDS, scope, order=last, limit=MOST_RULES)))
        for entry, vector in self._with_vectors(tx, Heuristic, rules):
            book.rules.put(vector, entry)
        book.complete = True

    def _with_vectors(
        self, tx: Transaction, cls: type[Outcome] | type[Heuristic], entries: Sequence[Entry]
    ) -> Iterator[tuple[Entry, Floats]]:
        """The entries that have a vector, the newest last."""
        for start in range(0, len(entries), _READ_AT_ONCE):
            part = entries[::-1][start : start + _READ_AT_ONCE]
            vectors = {
                each.record_id: each.vector
                for each in tx.vectors_of(cls, [entry.id for entry in part])
                if each.model == self._storage.embedding_model and each.part == 0
            }
            for entry in part:
                if entry.id in vectors:
                    yield entry, unit(vectors[entry.id])


def _scope(vector: StoredVector) -> Scope:
    if vector.project_id is None or vector.agent is None:
        return Scope.everywhere()
    return Scope(project_id=vector.project_id, agent=vector.agent)


def _outcomes(rows: Iterable[Sequence[object]]) -> Iterator[Entry]:
    """Outcomes that belong to a lesson, as entries."""
    for key, task_type, strategy, lesson_id, success, task in rows:
        if lesson_id is not None:
            kind = None if task_type is None else str(task_type)
            wording = wording_of(str(task))
            yield Entry(str(key), str(strategy or ""), str(lesson_id), kind, bool(success), not success, wording)


def _rules(rows: Iterable[Sequence[object]]) -> Iterator[Entry]:
    for key, strategy, condition in rows:
        yield Entry(str(key), str(strategy), str(key), wording=wording_of(str(condition)))
