"""Successors: what superseded a memory stands before it, and memories that contradict each other say so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from alma.model.memory import Memory, MemoryRelationship
from alma.model.query import And, In, Or
from alma.model.relations import Relation
from alma.model.scope import Scope
from alma.retrieval.candidates import Pool, Standing
from alma.storage.base import StorageBackend

_LOOKED_AT = 100
_LONGEST_LINE = 16
_MOST_EDGES = 1_000
# Just enough to stand before what was superseded.
_NEARLY = 1e-6


def add_successors(storage: StorageBackend, pool: Pool) -> None:
    """Propose what superseded a candidate, with all that speaks for the candidate, and what contradicts it."""
    best = {candidate.id: candidate for candidate in pool.of(Memory)[:_LOOKED_AT]}
    pool.standing = _standing(storage, list(best))
    for old, origin in best.items():
        # That it happened in the time that was asked for speaks for what was true then alone.
        inherited = origin.total - origin.relevance.get("time", 0.0)
        for new in sorted(pool.standing.successors.get(old, ())):
            candidate = pool.propose(origin.target, new, f"supersedes {old}")
            candidate.add("related", inherited - candidate.total)
        for other in sorted(pool.standing.contradictions.get(old, ())):
            if pool.get(Memory, other) is None:
                pool.propose(origin.target, other, f"contradicts {old}").add("related", origin.total / 2)


def _standing(storage: StorageBackend, ids: Sequence[str]) -> Standing:
    standing = Standing()
    direct: dict[str, set[str]] = defaultdict(set)
    frontier = list(ids)
    for _ in range(_LONGEST_LINE):
        if not frontier:
            break
        found = _edges(storage, frontier)
        frontier = []
        for edge in found:
            if edge.relationship_type == Relation.CONTRADICTS:
                standing.contradictions.setdefault(edge.from_memory_id, set()).add(edge.to_memory_id)
                standing.contradictions.setdefault(edge.to_memory_id, set()).add(edge.from_memory_id)
            elif edge.from_memory_id not in direct[edge.to_memory_id]:
                direct[edge.to_memory_id].add(edge.from_memory_id)
                frontier.append(edge.from_memory_id)
    standing.successors = {old: _all_after(old, direct) for old in list(direct)}
    return standing


def _edges(storage: StorageBackend, ids: Sequence[str]) -> list[MemoryRelationship]:
    """What supersedes these memories, and what contradicts them."""
    contradicts = In("relationship_type", [Relation.CONTRADICTS])
    where = Or(
        And(In("to_memory_id", ids), In("relationship_type", [Relation.SUPERSEDES, Relation.CONTRADICTS])),
        And(In("from_memory_id", ids), contradicts),
    )
    # What these lead to is checked against the scope when it is read, as all candidates are.
    return storage.find(MemoryRelationship, Scope.everywhere(), where, limit=_MOST_EDGES)


def _all_after(old: str, direct: Mapping[str, Iterable[str]]) -> set[str]:
    found: set[str] = set()
    frontier = [old]
    while frontier:
        after = {new for each in frontier for new in direct.get(each, ())} - found - {old}
        found |= after
        frontier = list(after)
    return found


def successors_of(storage: StorageBackend, ids: Sequence[str]) -> Mapping[str, set[str]]:
    """What superseded these memories, directly or over others, whether or not it is still there to see."""
    return _standing(storage, ids).successors


def put_successors_before(storage: StorageBackend, scores: Mapping[str, dict[str, float]]) -> None:
    """`put_before` for memories of which nothing is known but their scores."""
    put_before(scores, _standing(storage, list(scores)))


def put_before(scores: Mapping[str, dict[str, float]], standing: Standing) -> None:
    """Let every successor score above what it superseded; `scores` are the terms of each memory.

    Where the question asks how things stood then, what was true then stays where it is.
    """
    # A line of several is put in order from its end: at most as many rounds as it is long.
    for _ in range(_LONGEST_LINE):
        changed = [_exchanged(scores[old], scores[new]) for old, new in _pairs(scores, standing)]
        if not any(changed):
            return


def _pairs(scores: Mapping[str, object], standing: Standing) -> list[tuple[str, str]]:
    return sorted(
        (old, new) for old, later in standing.successors.items() if old in scores for new in later if new in scores
    )


def _exchanged(old: dict[str, float], new: dict[str, float]) -> bool:
    gap = sum(old.values()) - sum(new.values())
    if gap < 0 or old.get("time", 0.0) > new.get("time", 0.0):
        return False
    new["supersedes"] = new.get("supersedes", 0.0) + gap + _NEARLY
    old["superseded"] = old.get("superseded", 0.0) - gap - _NEARLY
    return True
