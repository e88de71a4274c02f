"""Relationships between general memories: stated by people and agents or detected, and traversing them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from alma import clock
from alma.errors import NotFoundError, ValidationError
from alma.graph.walks import Along, MemoryGraph
from alma.memory.path_search import Graph, Path
from alma.memory.relation_detection import LOOSE, DetectedRelation, Detector, Evidence, combined
from alma.memory.tuning import DETECTION
from alma.memory.updates import Screen, without_secrets
from alma.memory.walking import Walks
from alma.model.common import checked_name, checked_names, checked_whole
from alma.model.fields import JsonObject
from alma.model.governance import ANONYMOUS, Attribution, checked_by
from alma.model.memory import FactRelationship, Memory, MemoryRelationship
from alma.model.query import And, Compare, In, Or, Predicate
from alma.model.relations import (
    ACYCLIC,
    Ends,
    Relation,
    checked_relation,
    is_inverse,
    seen_from,
    stored_ends,
    stored_relation,
)
from alma.model.scope import Scope, visible
from alma.storage.base import Direction, StorageBackend, Transaction, checked_storage
from alma.storage.traversal import DEEPEST, checked_depth, checked_direction

_EVERYWHERE = Scope.everywhere()
_OPPOSITE: Mapping[Direction, Direction] = {"out": "in", "in": "out", "both": "both"}
RETRACTABLE = (Relation.SUPERSEDES, Relation.CONTRADICTS)
"""Relations whose removal is remembered, so that they are not detected again until they are stated."""

_MAX_NODES = 2_000
_MAX_PATHS = 100


@dataclass(frozen=True, slots=True)
class Related:
    """A relationship as seen from one of its ends: "resolved_by" where the other end has "resolves"."""

    relation: str
    memory: Memory
    edge: MemoryRelationship

    @property
    def strength(self) -> float:
        return self.edge.strength

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The evidence if it was detected; empty if it was stated."""
        return evidence_of(self.edge)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A memory reached over relationships: the distance, the last relation and the memory before it."""

    memory: Memory
    depth: int
    relation: str
    before_id: str


class Relationships:
    """The relationships between general memories.

    Nothing outside the scope is read, related or traversed; deleted, archived and expired memories and private memories
    of other users are invisible. The viewer is `by.user_id`, else the user of the scope. `judged` adds relationships
    that a judge finds to the detected ones. A `graph` server proposes what walks of several steps reach.
    """

    def __init__(
        self,
        storage: StorageBackend,
        screen: Screen = without_secrets,
        judged: Callable[[Memory], Sequence[DetectedRelation]] | None = None,
        graph: MemoryGraph | None = None,
    ) -> None:
        self._storage = checked_storage("relationships", storage)
        self._screen = screen
        self._detector = Detector(storage)
        self._judged = judged
        self._walks = Walks(graph)

    # ------------------------------------------------------------------ stating

    def relate(
        self,
        from_id: str,
        to_id: str,
        relation: str,
        scope: Scope,
        *,
        strength: float | None = None,
        context: str | None = None,
        by: Attribution = ANONYMOUS,
    ) -> MemoryRelationship:
        """State a relationship between two memories; returns its one stored row.

        Stating it again replaces strength and context if they are given; without a strength it becomes stronger.
        """
        for name, value in (("from_memory_id", from_id), ("to_memory_id", to_id)):
            checked_name("memory_relationship", name, value)
        ends = stored_ends(relation, from_id, to_id)

        def store(tx: Transaction) -> MemoryRelationship:
            self._require_both(tx, ends, scope, by)
            lock_acyclic(tx, [ends.relation])
            known = _known(tx, ends)
            if known is None:
                _refuse_cycle(tx, ends)
                edge = _new(ends, tx.by, strength=1.0 if strength is None else strength, context=context)
            else:
                again = 1.0 - (1.0 - known.strength) * (1.0 - DETECTION.restated)
                edge = known.replace(
                    strength=again if strength is None else strength,
                    context=known.context if context is None else context,
                    auto_detected=False,
                )
            edge = self._screen(edge)
            if edge != known:
                tx.save(edge)
            if ends.relation in RETRACTABLE and (
                apart := _known(tx, stored_ends(Relation.DISTINCT_FROM, from_id, to_id))
            ):
                tx.delete(MemoryRelationship, [apart.id], _EVERYWHERE)
            return edge

        return self._storage.write(store, by)

    def unrelate(self, from_id: str, to_id: str, relation: str, scope: Scope, by: Attribution = ANONYMOUS) -> bool:
        """Remove a relationship; returns whether there was one.

        The removal of a judged "supersedes" or "contradicts" is remembered, so that it is not found again.
        """
        ends = stored_ends(relation, from_id, to_id)

        def remove(tx: Transaction) -> bool:
            self._require_both(tx, ends, scope, by)
            known = _known(tx, ends)
            if known is None:
                return False
            tx.delete(MemoryRelationship, [known.id], _EVERYWHERE)
            if known.auto_detected and known.relationship_type in RETRACTABLE:
                # Otherwise it would be detected again.
                apart = stored_ends(Relation.DISTINCT_FROM, from_id, to_id)
                tx.save(_new(apart, tx.by) if (there := _known(tx, apart)) is None else there)
            return True

        return self._storage.write(remove, by)

    def detect(
        self, memory_id: str, scope: Scope, *, save: bool = True, by: Attribution = ANONYMOUS
    ) -> list[DetectedRelation]:
        """Detect the relationships of a memory with their evidence and, with `save`, store them.

        Detection is idempotent while the memories stay the same; new evidence makes a relationship stronger. Stated
        strengths are kept.
        """
        with self._storage.snapshot() as tx:
            shown = _shown(scope, by)
            memory = _required(tx, memory_id, scope, shown)
            found = _without_redundant(tx, self._detector.detect(memory, scope, shown))
        found = _joined(found, self._judged(memory) if self._judged is not None else ())
        if save and found:
            self._storage.write(lambda tx: self._save_detected(tx, found, scope), by)
        return found

    def _save_detected(self, tx: Transaction, found: Sequence[DetectedRelation], scope: Scope) -> None:
        there = {memory.id for memory in tx.get_many(Memory, {e for d in found for e in (d.from_id, d.to_id)}, scope)}
        lock_acyclic(tx, [each.relation for each in found])
        for each in found:
            ends = Ends(each.relation, each.from_id, each.to_id)
            # Either memory may be deleted since, or the opposite stated.
            if not {each.from_id, each.to_id} <= there or closes_cycle(tx, ends) or _was_retracted(tx, ends):
                continue
            known = _known(tx, ends)
            edge = _new(ends, tx.by, auto_detected=True) if known is None else known
            edge = _with_evidence(edge, each.evidence)
            if edge != known:
                tx.save(edge)

    # ------------------------------------------------------------------ reading

    def of(
        self,
        memory_id: str,
        scope: Scope,
        *,
        relations: Iterable[str] | None = None,
        min_strength: float = 0.0,
        limit: int = 100,
        by: Attribution = ANONYMOUS,
    ) -> list[Related]:
        """The relationships of a memory as seen from it, strongest first."""
        checked_whole("relationships", "limit", limit, 1, _MAX_NODES)
        wanted = None if relations is None else {checked_relation(name) for name in _names(relations)}
        shown = _shown(scope, by)
        with self._storage.snapshot() as tx:
            _required(tx, memory_id, scope, shown)
            ends = Or(Compare("from_memory_id", "eq", memory_id), Compare("to_memory_id", "eq", memory_id))
            along = _along(None if wanted is None else {stored_relation(name) for name in wanted}, min_strength)
            edges = [
                (seen_from(edge, memory_id), edge)
                for edge in tx.find(MemoryRelationship, _EVERYWHERE, And(ends, along.predicate))
            ]
            chosen = [(seen_as, edge) for seen_as, edge in edges if wanted is None or seen_as[0] in wanted]
            visible_ones = _visible_by_id(tx, {other for (_, other), _ in chosen}, scope, shown)
        found = [Related(name, visible_ones[other], edge) for (name, other), edge in chosen if other in visible_ones]
        return sorted(found, key=lambda each: (-each.strength, each.relation, each.memory.id))[:limit]

    def neighbours(
        self,
        memory_id: str,
        scope: Scope,
        *,
        relations: Iterable[str] | None = None,
        direction: Direction = "both",
        max_depth: int = 1,
        min_strength: float = 0.0,
        limit: int = 100,
        by: Attribution = ANONYMOUS,
    ) -> list[Neighbour]:
        """The memories reachable over up to `max_depth` relationships, nearest first."""
        checked_whole("neighbours", "limit", limit, 1, _MAX_NODES)
        along, turned = _wanted(relations, direction, min_strength)
        way, depth = checked_direction(turned), checked_depth(max_depth)
        shown = _shown(scope, by)
        proposed = self._walks.proposed(memory_id, scope, along, way, depth, limit)
        with self._storage.snapshot() as tx:
            _required(tx, memory_id, scope, shown)
            reached = self._walks.reachable(tx, memory_id, scope, shown, along, way, depth, limit, proposed)
            depths = {memory_id: 0, **{each.id: each.depth for each in reached}}
            graph = Graph(_edges_among(tx, list(depths), along), way)
            visible_ones = _visible_by_id(tx, {each.id for each in reached}, scope, shown)
        found: list[Neighbour] = []
        for each in reached:
            before, edge = graph.step_to(each.id, depths)
            found.append(Neighbour(visible_ones[each.id], each.depth, seen_from(edge, before)[0], before))
        return found

    def paths(
        self,
        from_id: str,
        to_id: str,
        scope: Scope,
        *,
        relations: Iterable[str] | None = None,
        direction: Direction = "both",
        max_depth: int = 4,
        min_strength: float = 0.0,
        limit: int = 10,
        by: Attribution = ANONYMOUS,
    ) -> list[Path]:
        """The simple paths from one memory to another, shortest first."""
        checked_whole("paths", "limit", limit, 1, _MAX_PATHS)
        along, turned = _wanted(relations, direction, min_strength)
        way, depth = checked_direction(turned), checked_depth(max_depth)
        shown = _shown(scope, by)
        ends = [(from_id, way), (to_id, _OPPOSITE[way])]
        proposed = [self._walks.proposed(start, scope, along, to, depth, _MAX_NODES) for start, to in ends]
        with self._storage.snapshot() as tx:
            for each in (from_id, to_id):
                _required(tx, each, scope, shown)
            there, back = (
                {start: 0, **{each.id: each.depth for each in reached}}
                for (start, to), some in zip(ends, proposed, strict=True)
                for reached in [self._walks.reachable(tx, start, scope, shown, along, to, depth, _MAX_NODES, some)]
            )
            between = [each for each in there if each in back and there[each] + back[each] <= max_depth]
            graph = Graph(_edges_among(tx, between, along), way)
        return graph.paths(from_id, to_id, {each: back[each] for each in between}, max_depth, limit)

    def _require_both(self, tx: Transaction, ends: Ends, scope: Scope, by: Attribution) -> None:
        for each in (ends.from_id, ends.to_id):
            _required(tx, each, scope, _shown(scope, by))


def evidence_of(edge: MemoryRelationship | FactRelationship) -> tuple[Evidence, ...]:
    """The stored evidence of a relationship."""
    stored = edge.metadata.get("evidence")
    found = stored if isinstance(stored, list) else []
    return tuple(Evidence.from_json(each) for each in found if isinstance(each, dict))


def relationship_id(ends: Ends) -> str:
    """The id of a relationship, computed from its ends, so that concurrent writers hit the same row."""
    return hashlib.sha256("\n".join(ends).encode()).hexdigest()[:32]


def _new(ends: Ends, by: Attribution, **fields: object) -> MemoryRelationship:
    values: JsonObject = {
        "id": relationship_id(ends),
        "from_memory_id": ends.from_id,
        "to_memory_id": ends.to_id,
        "relationship_type": ends.relation,
        "created_by": by.author,
    }
    return MemoryRelationship(**values, **fields)  # type: ignore[arg-type]


def _with_evidence(edge: MemoryRelationship, evidence: Iterable[Evidence]) -> MemoryRelationship:
    every = {(each.kind, each.detail): each for each in (*evidence_of(edge), *evidence)}
    metadata = {**edge.metadata, "evidence": [each.to_json() for _, each in sorted(every.items())]}
    strength = combined(every.values()) if edge.auto_detected else edge.strength
    return edge.replace(metadata=metadata, strength=strength)


def _known(tx: Transaction, ends: Ends) -> MemoryRelationship | None:
    same = And(
        Compare("from_memory_id", "eq", ends.from_id),
        Compare("to_memory_id", "eq", ends.to_id),
        Compare("relationship_type", "eq", ends.relation),
    )
    found = tx.find(MemoryRelationship, _EVERYWHERE, same, limit=1)
    return found[0] if found else None


def _was_retracted(tx: Transaction, ends: Ends) -> bool:
    """Whether the relationship was removed and the removal is remembered."""
    if ends.relation not in RETRACTABLE:
        return False
    return _known(tx, stored_ends(Relation.DISTINCT_FROM, ends.from_id, ends.to_id)) is not None


def _refuse_cycle(tx: Transaction, ends: Ends) -> None:
    if closes_cycle(tx, ends):
        raise ValidationError(
            "relationship",
            "relationship_type",
            ends.relation,
            f"would close a cycle: {ends.to_id} {ends.relation} {ends.from_id} already, directly or indirectly",
        )


def closes_cycle(tx: Transaction, ends: Ends) -> bool:
    """Whether storing the relationship would close a cycle of an acyclic relation."""
    if ends.relation not in ACYCLIC or _known(tx, ends) is not None:
        return False
    along = Compare("relationship_type", "eq", ends.relation)
    seen, starts = {ends.to_id}, [ends.to_id]
    while starts:
        reached = tx.reachable(starts, _EVERYWHERE, along=along, direction="out", max_depth=DEEPEST, limit=_MAX_NODES)
        fresh = [each for each in reached if each.id not in seen]
        seen.update(each.id for each in fresh)
        if ends.from_id in seen:
            return True
        # A traversal is limited in depth and size; continue from its ends.
        is_whole = len(reached) < _MAX_NODES
        starts = [each.id for each in fresh if each.depth == DEEPEST or not is_whole]
    return False


def lock_acyclic(tx: Transaction, relations: Iterable[str]) -> None:
    """Lock these relations, because two concurrent writers could each add half of a cycle."""
    for relation in sorted(ACYCLIC.intersection(relations)):
        tx.hold(f"cycle of {relation}")


def _joined(found: Sequence[DetectedRelation], judged: Sequence[DetectedRelation]) -> list[DetectedRelation]:
    """Merge detected and judged relationships; the evidence for the same relationship is combined."""
    known = {(each.relation, each.from_id, each.to_id): each for each in found}
    for each in judged:
        ends = each.relation, each.from_id, each.to_id
        evidence = (*(known[ends].evidence if ends in known else ()), *each.evidence)
        known[ends] = DetectedRelation(*ends, evidence)
    return sorted(known.values(), key=lambda each: (-each.strength, each.relation, each.from_id, each.to_id))


def _without_redundant(tx: Transaction, found: Sequence[DetectedRelation]) -> list[DetectedRelation]:
    """Leave out loose relations between memories that have a specific relation already."""
    loose = [each for each in found if each.relation in LOOSE]
    if not loose:
        return list(found)
    ids = sorted({end for each in loose for end in (each.from_id, each.to_id)})
    edges = tx.find(MemoryRelationship, _EVERYWHERE, And(In("from_memory_id", ids), In("to_memory_id", ids)))
    named = {frozenset((e.from_memory_id, e.to_memory_id)) for e in edges if e.relationship_type not in LOOSE}
    return [each for each in found if each.relation not in LOOSE or frozenset((each.from_id, each.to_id)) not in named]


def _shown(scope: Scope, by: Attribution) -> Predicate:
    return visible(scope, clock.now(), checked_by("relationships", by).user_id)


def _required(tx: Transaction, memory_id: str, scope: Scope, shown: Predicate) -> Memory:
    found = _visible_by_id(tx, {memory_id}, scope, shown)
    if memory_id not in found:
        raise NotFoundError("memory", memory_id)
    return found[memory_id]


def _visible_by_id(tx: Transaction, ids: set[str], scope: Scope, shown: Predicate) -> dict[str, Memory]:
    return {memory.id: memory for memory in tx.find(Memory, scope, And(In("id", sorted(ids)), shown))}


def _along(stored: Iterable[str] | None, min_strength: float) -> Along:
    if isinstance(min_strength, bool) or not isinstance(min_strength, int | float) or not 0 <= min_strength <= 1:
        raise ValidationError("traversal", "min_strength", min_strength, "must be a number between 0 and 1")
    return Along(None if stored is None else frozenset(stored), float(min_strength))


def _names(relations: Iterable[str]) -> list[str]:
    return checked_names("relationship", "relations", relations)


def _wanted(relations: Iterable[str] | None, direction: Direction, min_strength: float) -> tuple[Along, Direction]:
    """The stored relations to follow, and in which direction."""
    if relations is None:
        return _along(None, min_strength), direction
    wanted = [checked_relation(name) for name in _names(relations)]
    turned = {is_inverse(name) for name in wanted}
    if direction != "both" and len(turned) == 2:
        reason = "cannot mix relations and inverse relations with a direction; query them separately"
        raise ValidationError("traversal", "relations", wanted, reason)
    way = _OPPOSITE[direction] if turned == {True} and direction in _OPPOSITE else direction
    return _along({stored_relation(name) for name in wanted}, min_strength), way


def _edges_among(tx: Transaction, ids: Sequence[str], along: Along) -> list[MemoryRelationship]:
    inside = And(In("from_memory_id", ids), In("to_memory_id", ids), along.predicate)
    return tx.find(MemoryRelationship, _EVERYWHERE, inside) if ids else []
