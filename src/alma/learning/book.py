"""The book of lessons: on which tasks which strategies were tried lately, in this process, and how far it is written.

A book only proposes: what an outcome that it names is evidence for is read from the store. But a book that is complete
may also say that there is nothing, and then nothing else is searched. So it follows the store's vector feed, by which
it learns what other processes wrote, before it is asked.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence

from alma.learning.shelf import Entry, Floats, Shelf, unit, unit_of
from alma.learning.tasks import Wording, wording_of
from alma.model.learning import Heuristic, Outcome
from alma.model.query import In, Order
from alma.model.scope import Scope
from alma.storage.base import Capability, StorageBackend, StoredVector, Transaction

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
