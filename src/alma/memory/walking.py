"""Walks along relationships in the store, which read the proposals of a graph server in one query."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from alma.graph.walks import Along, MemoryGraph
from alma.model.memory import Memory, MemoryRelationship
from alma.model.query import And, Compare, In, Predicate
from alma.model.relations import SYMMETRIC
from alma.model.scope import Scope
from alma.storage.base import Direction, Transaction
from alma.storage.traversal import Reached, Walk
from alma.sync.rebuilding import rebuild_of

_EVERYWHERE = Scope.everywhere()
_IN_GRAPH = And(Compare("is_active", "eq", True), Compare("is_archived", "eq", False))
_ENDS = ("from_memory_id", "to_memory_id", "relationship_type")


class Walks:
    """The memories reachable from a memory.

    Each step reads the relationships of the memories before it. With a graph server, those of all that it proposes are
    read in one query. The walk itself follows what the store has in its snapshot, and reads what the proposal lacks. So
    the answer is that of the store alone, whatever the server says; one that lags costs queries.
    """

    def __init__(self, graph: MemoryGraph | None = None) -> None:
        self._graph = graph

    def proposed(
        self, start_id: str, scope: Scope, along: Along, direction: Direction, max_depth: int, limit: int
    ) -> Sequence[str]:
        """The proposals of a graph server, requested before the snapshot begins."""
        Memory.spec.checked("id", start_id)
        # The relationships of the last memories are not followed, and those of the first are read in any case.
        if self._graph is None or max_depth < 2:
            return ()
        return self._graph.around(start_id, scope, along, direction, max_depth - 1, limit) or ()

    def reachable(
        self,
        tx: Transaction,
        start_id: str,
        scope: Scope,
        shown: Predicate,
        along: Along,
        direction: Direction,
        max_depth: int,
        limit: int,
        proposed: Sequence[str],
    ) -> list[Reached]:
        """As `Transaction.reachable`, in the order of distance and id, but ends as soon as `limit` are reached."""
        steps = _Steps(tx, scope, shown, Walk((start_id,), along=along.predicate, direction=direction))
        steps.load([start_id, *proposed])
        found, reached, frontier = list[Reached](), {start_id}, [start_id]
        for depth in range(1, max_depth + 1):
            frontier = sorted(steps.beyond(frontier) - reached)
            reached.update(frontier)
            found += [Reached(each, depth) for each in frontier]
            if not frontier or len(found) >= limit:
                break
        return found[:limit]


class _Steps:
    """The relationships in a snapshot, with those of proposed memories read at once."""

    def __init__(self, tx: Transaction, scope: Scope, shown: Predicate, walk: Walk) -> None:
        self._tx, self._scope, self._shown, self._walk = tx, scope, shown, walk
        self._next: dict[str, set[str]] = {}
        self._checked: set[str] = set()
        self._visible: set[str] = set()

    def beyond(self, ids: Collection[str]) -> set[str]:
        """The visible memories that are one step away from these."""
        self.load(each for each in ids if each not in self._next)
        return {end for each in ids for end in self._next[each] if end in self._visible}

    def load(self, ids: Iterable[str]) -> None:
        """Read the relationships of these memories, and which of their ends are visible."""
        wanted = list(dict.fromkeys(ids))
        if not wanted:
            return
        led: dict[str, set[str]] = {each: set() for each in wanted}
        where = self._walk.from_any(wanted)
        for edge in self._tx.values(MemoryRelationship, _ENDS, _EVERYWHERE, where):
            for near, far in self._led(*edge):
                if near in led:
                    led[near].add(far)
        self._next |= led
        self._check({end for ends in led.values() for end in ends} - self._checked)

    def _led(self, source: str, target: str, relation: str) -> Iterator[tuple[str, str]]:
        either_way = relation in SYMMETRIC
        if self._walk.direction != "in" or either_way:
            yield source, target
        if self._walk.direction != "out" or either_way:
            yield target, source

    def _check(self, ids: set[str]) -> None:
        if ids:
            self._checked |= ids
            where = And(In("id", sorted(ids)), self._shown)
            self._visible.update(key for (key,) in self._tx.values(Memory, ("id",), self._scope, where))


def related_among(
    tx: Transaction, graph: MemoryGraph | None, user_id: str, relations: Collection[str]
) -> list[MemoryRelationship] | None:
    """The relationships of these types between the memories of a user, found by a graph server that has caught up.

    None without such a server. The records are those of the store.
    """
    if graph is None or not _has_caught_up(tx, graph.name):
        return None
    found = graph.among(user_id, relations)
    # A server that lost its data has nothing waiting for it.
    if found is None or found[0] != tx.count(Memory, Scope(user_id=user_id), _IN_GRAPH):
        return None
    chosen = And(In("id", list(found[1])), In("relationship_type", sorted(relations)))
    return tx.find(MemoryRelationship, _EVERYWHERE, chosen) if found[1] else []


def _has_caught_up(tx: Transaction, engine: str) -> bool:
    """Whether an engine has every memory and relationship of this snapshot."""
    followed = set(tx.projections().get(engine, ()))
    if not {Memory.spec.kind, MemoryRelationship.spec.kind} <= followed:
        return False
    return tx.backlog(engine).pending == 0 and rebuild_of(tx, engine) is None
