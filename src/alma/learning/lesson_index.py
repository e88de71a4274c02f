"""The lesson index: an in-memory index of the tasks that each agent met lately, and of its rules.

It only proposes: which lesson an outcome belongs to is read from the store. It follows the vector feed of the store, or
the newest outcomes and rules of an agent where the store has no feed, so it also knows what other processes wrote.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from alma.lazy import lazy_module
from alma.model.learning import Heuristic, Outcome
from alma.model.query import In, Order
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.storage.base import Capability, StorageBackend, StoredVector
from alma.storage.transaction import Transaction

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy_module("numpy")

Floats: TypeAlias = "NDArray[np.float32]"
Near = list[tuple[float, "Entry"]]

MOST_TASKS = 2_048
"""The tasks of an agent that a new task is compared with: those met last, so that the effort is constant."""
MOST_RULES = 1_024
_MOST_AGENTS = 16
# Reading all that an index needs costs about as much as three searches of the store.
_SEARCHES_BEFORE_READING = 3
_MOST_TO_FOLLOW = 4_096
_BATCH = 1_024
# Stores without a feed: how many of the newest records are looked at, and for how long an index is used.
_NEWEST_OUTCOMES, _NEWEST_RULES = 64, 16
_MAX_AGE_SECONDS = 300.0
_FIRST_ROOM = 64
_OUTCOME_FIELDS = ("id", "strategy_used", "lesson_id", "success")
_RULE_FIELDS = ("id", "strategy")
# BLAS multiplies up to this number of values in one thread; with more, it waits for busy processors.
_ONE_THREAD = 393_216
# Squares of components outside of these limits lose precision in float32.
_LEAST_SQUARE, _LARGEST_SQUARE = 1e-20, 1e30


class _Newest(NamedTuple):
    """Which records of a kind are looked at for what is new."""

    cls: type[Outcome] | type[Heuristic]
    time: str
    limit: int


_OUTCOMES = _Newest(Outcome, "timestamp", _NEWEST_OUTCOMES)
_RULES = _Newest(Heuristic, "created_at", _NEWEST_RULES)


class Entry(NamedTuple):
    """A strategy that was tried on a task, as its newest outcome says; or a rule."""

    id: str
    strategy: str
    lesson_id: str
    succeeded: bool = False
    failed: bool = False

    def merged(self, later: Entry) -> Entry:
        """The entry after the same strategy was tried on the same task again."""
        return later._replace(succeeded=self.succeeded or later.succeeded, failed=self.failed or later.failed)


class VectorTable:
    """Entries with their vectors; when it is full, the least recently used entry is replaced."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: list[Entry] = []
        self._rows: OrderedDict[str, int] = OrderedDict()
        self._vectors: Floats = np.zeros((0, 0), np.float32)

    def __contains__(self, entry_id: str) -> bool:
        return entry_id in self._rows

    def near(self, vector: Floats, least: float, most: int) -> Near:
        """The entries with at least this cosine, nearest first."""
        if not self._entries or len(vector) != self._vectors.shape[1]:
            return []
        cosines = _products(self._vectors[: len(self._entries)], vector)
        rows = (cosines >= least).nonzero()[0]
        rows = rows[(-cosines[rows]).argsort(kind="stable")[:most]].tolist()
        return [(float(cosines[row]), self._entries[row]) for row in rows]

    def put(self, vector: Floats, entry: Entry, repeats: str | None = None) -> None:
        """Add an entry, in the place of the one with the id `repeats` if that is still there."""
        row = self._rows.get(repeats or entry.id)
        if row is not None:
            del self._rows[self._entries[row].id]
            entry = self._entries[row].merged(entry)
        elif len(self._entries) < self._most:
            row = self._new_row(len(vector))
            self._entries.append(entry)
        else:
            _, row = self._rows.popitem(last=False)
        self._rows[entry.id] = row
        self._entries[row] = entry
        self._vectors[row] = vector

    def drop(self, entry_id: str) -> None:
        """Remove an entry that the store does not know."""
        row = self._rows.get(entry_id)
        if row is not None:
            # A zero vector is near nothing, and the row is the next to be replaced.
            self._vectors[row] = 0.0
            self._rows.move_to_end(entry_id, last=False)

    def _new_row(self, dims: int) -> int:
        row = len(self._entries)
        if row >= len(self._vectors):
            larger = np.zeros((min(max(2 * row, _FIRST_ROOM), self._most), dims), np.float32)
            larger[:row] = self._vectors[:row].reshape(row, dims)
            self._vectors = larger
        return row


class _AgentIndex:
    """The tasks and rules of one agent in one project; `version` counts its changes."""

    def __init__(self) -> None:
        self.tasks = VectorTable(MOST_TASKS)
        self.rules = VectorTable(MOST_RULES)
        self.version = 0
        self.seen: OrderedDict[str, None] = OrderedDict()
        self.read_at = time.monotonic()

    def see(self, ids: Iterable[str]) -> None:
        """Note the ids of records that the index has taken in, of the last few hundred."""
        self.seen.update(dict.fromkeys(ids))
        while len(self.seen) > 8 * _NEWEST_OUTCOMES:
            self.seen.popitem(last=False)


class LessonIndex:
    """The indexes of the agents that learned last.

    All are as of one position of the store's vector feed; in a store without a feed, each has a version of its own.
    """

    def __init__(self, storage: StorageBackend) -> None:
        self._storage = storage
        self.has_feed = Capability.VECTOR_FEED in storage.capabilities
        self._agents: OrderedDict[Scope, _AgentIndex] = OrderedDict()
        self._searches: OrderedDict[Scope, int] = OrderedDict()
        self._position: int | None = None
        self._lock = threading.RLock()

    @property
    def position(self) -> int | None:
        """The position of the feed up to which the index is current; None where nothing is indexed by the feed."""
        return self._position

    def indexes(self, scope: Scope) -> bool:
        """Whether the tasks of this agent are indexed."""
        return scope in self._agents

    def near(self, scope: Scope, vector: Floats, least: float, most: tuple[int, int]) -> tuple[Near, Near, int] | None:
        """The nearest tasks and rules with the version of the index; None where the agent is not indexed.

        `least` is the lowest cosine, `most` how many tasks and how many rules are wanted.
        """
        with self._lock:
            known = self._agents.get(scope)
            if known is None or (version := self._position if self.has_feed else known.version) is None:
                return None
            self._agents.move_to_end(scope)
            tasks, rules = known.tasks.near(vector, least, most[0]), known.rules.near(vector, least, most[1])
            return tasks, rules, version

    def follow(self, tx: Transaction, scope: Scope) -> int | None:
        """Add what any process wrote since; returns the version that the index has then, or None without one."""
        with self._lock:
            return self._follow_feed(tx) if self.has_feed else self._follow_newest(tx, scope)

    def _follow_feed(self, tx: Transaction) -> int | None:
        before = self._position
        if before is None or (position := tx.vector_position()) == before:
            return before
        if not before < position <= before + _MOST_TO_FOLLOW:
            # Another store took the place of this one, or reading all of it again is faster.
            self._agents.clear()
            self._position = None
            return None
        self._add(tx, tx.vectors_after(self._storage.embedding_model, before, _MOST_TO_FOLLOW))
        self._position = position
        return position

    def _follow_newest(self, tx: Transaction, scope: Scope) -> int | None:
        """Add the newest outcomes and rules of an agent that other processes wrote."""
        known = self._agents.get(scope)
        if known is None or time.monotonic() > known.read_at + _MAX_AGE_SECONDS:
            self._agents.pop(scope, None)
            return None
        outcomes, rules = self._unseen(tx, scope, known, _OUTCOMES), self._unseen(tx, scope, known, _RULES)
        if len(outcomes) == _NEWEST_OUTCOMES or len(rules) == _NEWEST_RULES:
            # There are more that the index lacks.
            del self._agents[scope]
            return None
        if outcomes or rules:
            self._add_entries(tx, scope, known, outcomes, rules)
        return known.version

    def _unseen(self, tx: Transaction, scope: Scope, known: _AgentIndex, of: _Newest) -> list[str]:
        """The ids of the newest outcomes or rules that the index has not taken in."""
        rows = tx.values(of.cls, ("id",), scope, order=(Order(of.time, "desc"),), limit=of.limit)
        return [key for (key,) in rows if key not in known.seen]

    def _add_entries(
        self, tx: Transaction, scope: Scope, known: _AgentIndex, outcomes: Sequence[str], rules: Sequence[str]
    ) -> None:
        if outcomes:
            tasks = list(_outcomes(tx.values(Outcome, _OUTCOME_FIELDS, scope, In("id", outcomes))))
            for entry, vector in self._with_vectors(tx, Outcome, tasks):
                known.tasks.put(vector, entry)
        if rules:
            found = list(_rules(tx.values(Heuristic, _RULE_FIELDS, scope, In("id", rules))))
            for entry, vector in self._with_vectors(tx, Heuristic, found):
                known.rules.put(vector, entry)
        known.see((*outcomes, *rules))
        known.version += 1

    def end(self, tx: Transaction) -> int | None:
        """The position of the feed at the end of a transaction; None in a store without a feed."""
        return tx.vector_position() if self.has_feed else None

    def add_committed(
        self,
        scope: Scope,
        tasks: Sequence[tuple[Floats, Entry]],
        rules: Sequence[tuple[Floats, Entry]],
        span: tuple[int | None, int | None, int],
        repeats: str | None = None,
    ) -> None:
        """Add what was just committed without reading it from the store.

        `span` is the version before and the position of the feed after the commit, and how many vectors it wrote.
        Where anything else was written to the feed in between, all of it is read from there.
        """
        before, after, count = span
        with self._lock:
            known = self._agents.get(scope)
            if known is None or before is None:
                return
            if self.has_feed:
                if before != self._position or after != before + count:
                    return
                self._position = after
            else:
                known.version += 1
                known.see(entry.id for _, entry in (*tasks, *rules))
            for vector, entry in tasks:
                known.tasks.put(vector, entry, repeats)
            for vector, rule in rules:
                known.rules.put(vector, rule)

    def has_rule(self, scope: Scope, rule_id: str) -> bool:
        known = self._agents.get(scope)
        return known is not None and rule_id in known.rules

    def drop(self, scope: Scope, entry_id: str) -> None:
        """Remove what the store does not know any more."""
        with self._lock:
            if scope in self._agents:
                self._agents[scope].tasks.drop(entry_id)
                self._agents[scope].rules.drop(entry_id)

    def searched(self, scope: Scope) -> None:
        """Note that the store had to be searched for this agent; after a few searches the agent is indexed."""
        with self._lock:
            self._searches[scope] = self._searches.pop(scope, 0) + 1
            if len(self._searches) > _MOST_AGENTS:
                self._searches.popitem(last=False)
            if self._searches[scope] >= _SEARCHES_BEFORE_READING:
                # The snapshot begins inside the lock, so that it is not older than the index.
                with self._storage.snapshot() as tx:
                    self._read(tx, scope)

    # ------------------------------------------------------------------ reading the store

    def _add(self, tx: Transaction, page: Sequence[StoredVector]) -> None:
        wanted = {each.record_id: each for each in page if each.part == 0 and _scope(each) in self._agents}
        everywhere = Scope.everywhere()
        outcomes = [key for key, each in wanted.items() if each.kind == Outcome.spec.kind]
        if outcomes:
            for entry in _outcomes(tx.values(Outcome, _OUTCOME_FIELDS, everywhere, In("id", outcomes))):
                self._agents[_scope(wanted[entry.id])].tasks.put(unit_of(wanted[entry.id].data), entry)
        rules = [key for key, each in wanted.items() if each.kind == Heuristic.spec.kind]
        if rules:
            for entry in _rules(tx.values(Heuristic, _RULE_FIELDS, everywhere, In("id", rules))):
                self._agents[_scope(wanted[entry.id])].rules.put(unit_of(wanted[entry.id].data), entry)

    def _read(self, tx: Transaction, scope: Scope) -> None:
        if self.has_feed and self._follow_feed(tx) is None:
            self._position = tx.vector_position()
        known = _AgentIndex()
        newest = (Order("timestamp", "desc"),)
        outcomes = list(_outcomes(tx.values(Outcome, _OUTCOME_FIELDS, scope, order=newest, limit=MOST_TASKS)))
        for entry, vector in self._with_vectors(tx, Outcome, outcomes):
            known.tasks.put(vector, entry)
        last = (Order("last_validated", "desc"),)
        rules = list(_rules(tx.values(Heuristic, _RULE_FIELDS, scope, order=last, limit=MOST_RULES)))
        for entry, vector in self._with_vectors(tx, Heuristic, rules):
            known.rules.put(vector, entry)
        if not self.has_feed:
            for of in (_OUTCOMES, _RULES):
                known.see(reversed(self._unseen(tx, scope, known, of)))
        self._agents[scope] = known
        self._searches.pop(scope, None)
        if len(self._agents) > _MOST_AGENTS:
            self._agents.popitem(last=False)

    def _with_vectors(
        self, tx: Transaction, cls: type[Outcome] | type[Heuristic], entries: Sequence[Entry]
    ) -> Iterator[tuple[Entry, Floats]]:
        """The entries that have a vector, the newest last."""
        for start in range(0, len(entries), _BATCH):
            part = entries[::-1][start : start + _BATCH]
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
    """The outcomes that belong to a lesson, as entries."""
    for key, strategy, lesson_id, success in rows:
        if lesson_id is not None:
            yield Entry(str(key), str(strategy or ""), str(lesson_id), bool(success), not success)


def _rules(rows: Iterable[Sequence[object]]) -> Iterator[Entry]:
    for key, strategy in rows:
        yield Entry(str(key), str(strategy), str(key))


# ---------------------------------------------------------------------- vectors


def _products(matrix: Floats, vector: Floats) -> Floats:
    """The product of each row with the vector."""
    step = max(1, _ONE_THREAD // len(vector))
    if len(matrix) <= step:
        product: Floats = matrix @ vector
        return product
    return np.concatenate([matrix[start : start + step] @ vector for start in range(0, len(matrix), step)])


def unit(vector: Vector) -> Floats:
    """The vector scaled to length one; a zero vector stays zero."""
    return unit_of(vector.to_bytes())


def unit_of(data: bytes) -> Floats:
    """The same, of the bytes of a vector."""
    raw: Floats = np.frombuffer(data, "<f4")
    square = float(raw.dot(raw))
    if _LEAST_SQUARE < square < _LARGEST_SQUARE:
        made: Floats = raw * np.float32(1 / math.sqrt(square))
        return made
    exact = raw.astype(np.float64)
    length = math.sqrt(exact.dot(exact))
    return (exact / length if length else exact).astype(np.float32)
