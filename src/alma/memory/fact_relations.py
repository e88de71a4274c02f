"""Relationships between facts: memories, domain knowledge and preferences of one kind that state something.

Relationships of general memories are `MemoryRelationship`s, those of other kinds `FactRelationship`s. Both have the
same fields, so the code is shared.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from alma import clock
from alma.errors import NotFoundError, ValidationError
from alma.memory.relation_detection import Evidence
from alma.memory.relationships import closes_cycle, evidence_of, lock_acyclic, relationship_id
from alma.model.governance import ANONYMOUS, Attribution
from alma.model.memory import FactRelationship, Memory, MemoryRelationship
from alma.model.query import EVERYTHING, And, In, Or, Predicate, matches
from alma.model.record import Record
from alma.model.relations import Ends, Relation, seen_from, stored_ends
from alma.model.scope import Scope
from alma.retrieval.scoring import moment_of
from alma.retrieval.supersession import EDGES, Edge
from alma.storage.base import StorageBackend, Transaction
from alma.storage.document import from_document, to_document

JUDGED = (Relation.SUPERSEDES, Relation.CONTRADICTS, Relation.BUILDS_ON)
"""The relations that the judge can find between two facts."""

_EVERYWHERE = Scope.everywhere()
# What two facts were to each other before they were marked as distinct, in the metadata of that relationship.
_REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class FactRelation:
    """A relationship as seen from one fact: "superseded_by" where the other end has "supersedes"."""

    relation: str
    other: Record
    edge: Edge

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The evidence if it was detected; empty if it was stated."""
        return evidence_of(self.edge)


@dataclass(frozen=True, slots=True)
class Distinguished:
    """The result of marking two facts as distinct: removed relations, and ids that were unmerged."""

    removed: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()


class FactRelations:
    """Reads, states and removes relationships between facts inside a scope."""

    def __init__(self, storage: StorageBackend) -> None:
        self._storage = storage

    def of(self, cls: type[Record], fact_id: str, scope: Scope, where: Predicate = EVERYTHING) -> list[FactRelation]:
        """The relationships of a fact to facts that exist, newest first."""
        with self._storage.snapshot() as tx:
            if not tx.find(cls, scope, And(In("id", [fact_id]), where)):
                raise NotFoundError(cls.spec.kind, fact_id)
            seen = [(seen_from(edge, fact_id), edge) for edge in edges_of(tx, cls, [fact_id])]
            others = tx.find(cls, scope, And(In("id", sorted({other for (_, other), _ in seen})), where))
        by_id = {str(other.key): other for other in others}
        found = [FactRelation(name, by_id[other], edge) for (name, other), edge in seen if other in by_id]
        return sorted(found, key=lambda each: (each.edge.created_at, each.edge.id), reverse=True)

    def mark_distinct(
        self,
        cls: type[Record],
        one_id: str,
        other_id: str,
        scope: Scope,
        *,
        where: Predicate = EVERYTHING,
        by: Attribution = ANONYMOUS,
    ) -> list[str]:
        """Mark two facts as distinct and remove judged relations between them; returns the removed relations.

        The judge does not relate them again.
        """

        def distinguish(tx: Transaction) -> list[str]:
            one, other = (_required(tx, cls, each, scope, where) for each in (one_id, other_id))
            removed = [
                edge
                for edge in edges_of(tx, cls, [one_id])
                if {edge.from_memory_id, edge.to_memory_id} == {one_id, other_id}
            ]
            removed = [edge for edge in removed if edge.relationship_type in JUDGED]
            tx.delete(EDGES[cls], [edge.id for edge in removed], _EVERYWHERE)
            apart = save_edge(tx, one, other, Relation.DISTINCT_FROM)
            if apart is not None and removed:
                tx.save(apart.replace(metadata={**apart.metadata, _REMOVED: list(map(to_document, removed))}))
            return sorted({edge.relationship_type for edge in removed})

        if one_id == other_id:
            raise ValidationError("distinguish", "other_id", other_id, "must be another fact than the first one")
        return self._storage.write(distinguish, by)

    def unmark_distinct(
        self,
        cls: type[Record],
        one_id: str,
        other_id: str,
        scope: Scope,
        *,
        where: Predicate = EVERYTHING,
        by: Attribution = ANONYMOUS,
    ) -> list[str]:
        """Take back that two facts are distinct: the relations that this removed are there again; returns them."""

        def undo(tx: Transaction) -> list[str]:
            one, other = (_required(tx, cls, each, scope, where) for each in (one_id, other_id))
            apart = _known(tx, cls, stored_ends(Relation.DISTINCT_FROM, str(one.key), str(other.key)))
            if apart is None:
                return []
            tx.delete(EDGES[cls], [apart.id], _EVERYWHERE)
            removed = [from_document(EDGES[cls], each) for each in apart.metadata.get(_REMOVED, ())]
            tx.save(*removed)
            return sorted({edge.relationship_type for edge in removed})

        return self._storage.write(undo, by)


def edges_of(reader: StorageBackend | Transaction, cls: type[Record], ids: Collection[str]) -> list[Edge]:
    """Every relationship of these facts."""
    wanted = sorted(ids)
    if not wanted:
        return []
    either = Or(In("from_memory_id", wanted), In("to_memory_id", wanted))
    return list(reader.find(EDGES[cls], _EVERYWHERE, either))


def save_edge(
    tx: Transaction,
    newer: Record,
    older: Record,
    relation: Relation,
    *,
    strength: float = 1.0,
    evidence: Sequence[Evidence] = (),
) -> Edge | None:
    """Store a relationship with the dates of both facts; returns None if the opposite is stored."""
    cls = type(newer)
    ends = stored_ends(relation, str(newer.key), str(older.key))
    if cls is Memory:
        lock_acyclic(tx, [ends.relation])
        if closes_cycle(tx, ends):
            return None
    elif relation == Relation.SUPERSEDES and _known(tx, cls, Ends(relation, ends.to_id, ends.from_id)):
        return None
    known = _known(tx, cls, ends)
    if known is not None and not known.auto_detected:
        return known
    edge = _new_edge(cls, newer, ends, tx.by.author).replace(
        strength=round(strength, 4),
        auto_detected=bool(evidence),
        metadata={
            "evidence": [each.to_json() for each in evidence],
            "dates": {str(each.key): _spelled(moment_of(each)) for each in (newer, older)},
        },
    )
    edge = edge if known is None else edge.replace(created_at=known.created_at, created_by=known.created_by)
    tx.save(edge)
    return edge


def restate(tx: Transaction, fact: Record) -> list[str]:
    """Make a restated fact supersede the facts that the judge took for newer; returns their ids."""
    cls, fact_id = type(fact), str(fact.key)
    replacing = And(In("to_memory_id", [fact_id]), In("relationship_type", [str(Relation.SUPERSEDES)]))
    later = [edge for edge in tx.find(EDGES[cls], _EVERYWHERE, replacing) if edge.auto_detected]
    tx.delete(EDGES[cls], [edge.id for edge in later], _EVERYWHERE)
    evidence = (Evidence("stated again", "it was stated again after what replaced it", 0.9),)
    overruled = sorted(edge.from_memory_id for edge in later)
    for other in tx.get_many(cls, overruled, _EVERYWHERE):
        save_edge(tx, fact, other, Relation.SUPERSEDES, strength=0.9, evidence=evidence)
    return overruled


def forget_judged(tx: Transaction, fact: Record) -> None:
    """Delete the judged relationships of a fact whose text has changed."""
    judged = [edge for edge in edges_of(tx, type(fact), [str(fact.key)]) if edge.auto_detected]
    judged = [edge for edge in judged if edge.relationship_type in JUDGED]
    tx.delete(EDGES[type(fact)], [edge.id for edge in judged], _EVERYWHERE)


def supersede(tx: Transaction, newer: Record, ids: Iterable[str], scope: Scope) -> None:
    """Store that a fact supersedes others, as stated by the caller; NotFoundError if one is outside the scope."""
    for older_id in ids:
        if older_id == str(newer.key):
            raise ValidationError(newer.spec.kind, "supersedes", older_id, "must be another fact, not the fact itself")
        older = _required(tx, type(newer), older_id, scope)
        apart = _known(tx, type(newer), stored_ends(Relation.DISTINCT_FROM, str(newer.key), older_id))
        if apart is not None:
            tx.delete(EDGES[type(newer)], [apart.id], _EVERYWHERE)
        save_edge(tx, newer, older, Relation.SUPERSEDES)


def _known(tx: Transaction, cls: type[Record], ends: Ends) -> Edge | None:
    found = tx.get_many(EDGES[cls], [relationship_id(ends)], _EVERYWHERE)
    return found[0] if found else None


def _required(tx: Transaction, cls: type[Record], fact_id: str, scope: Scope, where: Predicate = EVERYTHING) -> Record:
    for found in tx.lock(cls, [fact_id], scope):
        if matches(where, found):
            return found
    raise NotFoundError(cls.spec.kind, fact_id)


def _new_edge(cls: type[Record], owner: Record, ends: Ends, author: str | None) -> Edge:
    common: dict[str, Any] = {
        "id": relationship_id(ends),
        "from_memory_id": ends.from_id,
        "to_memory_id": ends.to_id,
        "relationship_type": ends.relation,
        "created_at": clock.now(),
        "created_by": author,
    }
    if cls is Memory:
        return MemoryRelationship(**common)
    owners: dict[str, Any] = {name: getattr(owner, name, None) for name in ("user_id", "project_id", "agent")}
    return FactRelationship(kind=cls.spec.kind, **owners, **common)


def _spelled(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
