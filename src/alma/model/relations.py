"""Relationships of memories: the known relations, their inverses, and the stored form of each.

A relation and its inverse are one row, in the direction of the relation; a symmetric relation is stored from the lower
id to the higher. So "a resolved_by b" and "b resolves a" are the same row.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from alma.errors import ValidationError
from alma.lazy import lazy_regex
from alma.model.memory import FactRelationship, MemoryRelationship


class Relation(StrEnum):
    """The known relations; any other name is a custom, directed relation."""

    RELATES_TO = "relates_to"
    CONTRADICTS = "contradicts"
    SAME_CONTEXT = "same_context"
    BUILDS_ON = "builds_on"
    RESOLVES = "resolves"
    SUPERSEDES = "supersedes"
    REPLY_TO = "reply_to"
    REFERENCES = "references"
    FOLLOW_UP = "follow_up"
    TEMPORAL_BEFORE = "temporal_before"
    # Marked by a user as neither repeating, superseding nor contradicting: it is not detected again.
    DISTINCT_FROM = "distinct_from"
    # The inverse relations.
    BUILT_ON_BY = "built_on_by"
    RESOLVED_BY = "resolved_by"
    SUPERSEDED_BY = "superseded_by"
    HAS_REPLY = "has_reply"
    REFERENCED_BY = "referenced_by"
    FOLLOWED_UP_BY = "followed_up_by"
    TEMPORAL_AFTER = "temporal_after"


SYMMETRIC = frozenset((Relation.RELATES_TO, Relation.CONTRADICTS, Relation.SAME_CONTEXT, Relation.DISTINCT_FROM))
ACYCLIC = frozenset((Relation.SUPERSEDES, Relation.TEMPORAL_BEFORE))
"""Relations that must not form cycles."""

_INVERSE: dict[str, str] = {
    Relation.BUILT_ON_BY: Relation.BUILDS_ON,
    Relation.RESOLVED_BY: Relation.RESOLVES,
    Relation.SUPERSEDED_BY: Relation.SUPERSEDES,
    Relation.HAS_REPLY: Relation.REPLY_TO,
    Relation.REFERENCED_BY: Relation.REFERENCES,
    Relation.FOLLOWED_UP_BY: Relation.FOLLOW_UP,
    Relation.TEMPORAL_AFTER: Relation.TEMPORAL_BEFORE,
}
_INVERSE_OF = {stored: inverse for inverse, stored in _INVERSE.items()}
_NAME = lazy_regex(r"[^\W\d_]\w{0,63}")


class Ends(NamedTuple):
    """A relation in its stored direction."""

    relation: str
    from_id: str
    to_id: str


def checked_relation(name: str) -> str:
    """The normalized name of a relation: lower case, with underscores."""
    spelled = re.sub(r"[\s\-]+", "_", name.strip().lower()) if isinstance(name, str) else ""
    if _NAME.fullmatch(spelled) is None:
        reason = "must be a name of letters, digits and underscores, for example relates_to or depends_on"
        raise ValidationError("relationship", "relationship_type", name, reason)
    return spelled


def is_inverse(relation: str) -> bool:
    """Whether this is the name of an inverse relation."""
    return relation in _INVERSE


def stored_relation(relation: str) -> str:
    """The stored name of a relation or an inverse relation."""
    return str(_INVERSE.get(relation, relation))


def stored_ends(relation: str, from_id: str, to_id: str) -> Ends:
    """The stored form of a relation between two memories."""
    name = checked_relation(relation)
    if name in _INVERSE:
        return Ends(stored_relation(name), to_id, from_id)
    if name in SYMMETRIC and to_id < from_id:
        return Ends(name, to_id, from_id)
    return Ends(name, from_id, to_id)


def seen_from(edge: MemoryRelationship | FactRelationship, memory_id: str) -> tuple[str, str]:
    """The name of a stored relationship seen from one end, and the other end. Custom relations have no inverse and keep
    their name.
    """
    name = edge.relationship_type
    if memory_id == edge.from_memory_id:
        return name, edge.to_memory_id
    return str(_INVERSE_OF.get(name, name)), edge.from_memory_id
