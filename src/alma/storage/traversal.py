"""Walks along relationships: their parameters and results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from alma.errors import ValidationError
from alma.model.memory import MemoryRelationship
from alma.model.query import EVERYTHING, And, In, Or, Predicate
from alma.model.relations import SYMMETRIC

Direction = Literal["out", "in", "both"]
DEEPEST = 16
_EITHER_WAY = In("relationship_type", sorted(SYMMETRIC))
_ENDS = ("from_memory_id", "to_memory_id")


@dataclass(frozen=True, slots=True)
class Reached:
    """A memory that a walk came to, and over how many relationships at least."""

    id: str
    depth: int


@dataclass(frozen=True, slots=True)
class Walk:
    """A parsed walk: from where, over which relationships and which memories, how far.

    `where` holds the scope: a walk neither starts from, passes through nor ends at a memory outside of it. A relation
    that holds both ways is followed both ways, whatever the direction.
    """

    starts: tuple[str, ...]
    where: Predicate = EVERYTHING
    along: Predicate = EVERYTHING
    direction: Direction = "both"
    max_depth: int = 1
    limit: int = 1000

    def from_any(self, ids: list[str]) -> Predicate:
        """The relationships that lead away from any of these memories, in the walk's direction."""
        out, back = (In(name, ids) for name in _ENDS)
        ends: dict[Direction, Predicate] = {
            "out": Or(out, And(back, _EITHER_WAY)),
            "in": Or(back, And(out, _EITHER_WAY)),
            "both": Or(out, back),
        }
        return And(self.along, ends[self.direction])

    def step(self, edge: MemoryRelationship, ids: set[str]) -> list[str]:
        """Where a relationship leads from these memories."""
        led: list[str] = []
        either_way = edge.relationship_type in SYMMETRIC
        if (self.direction != "in" or either_way) and edge.from_memory_id in ids:
            led.append(edge.to_memory_id)
        if (self.direction != "out" or either_way) and edge.to_memory_id in ids:
            led.append(edge.from_memory_id)
        return led


def checked_direction(direction: str) -> Direction:
    for known in get_args(Direction):
        if direction == known:
            chosen: Direction = known
            return chosen
    raise ValidationError("traversal", "direction", direction, f"must be one of {', '.join(get_args(Direction))}")


def checked_depth(depth: int) -> int:
    if isinstance(depth, bool) or not isinstance(depth, int) or not 1 <= depth <= DEEPEST:
        raise ValidationError("traversal", "max_depth", depth, f"must be a whole number from 1 to {DEEPEST}")
    return depth
