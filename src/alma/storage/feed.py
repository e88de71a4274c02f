"""The vector feed: lets an external index follow the vectors of a store that supports it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from alma.errors import UnsupportedOperation
from alma.model.query import Predicate
from alma.model.record import Record, RecordSpec
from alma.model.vector import Vector

OWNERS = ("user_id", "project_id", "session_id", "agent")


class StoredVector(NamedTuple):
    """One vector of the feed: its position, its owners, and its little-endian 32-bit floats."""

    position: int
    kind: str
    record_id: str
    part: int
    user_id: str | None
    project_id: str | None
    session_id: str | None
    agent: str | None
    data: bytes


class FoundVector(NamedTuple):
    """A vector that is still stored; `data` is None if its record does not match the query."""

    position: int
    record_id: str
    data: bytes | None


@dataclass(frozen=True, slots=True)
class VectorQuery:
    """A validated vector search: the vector, its model, and the predicate."""

    spec: RecordSpec
    vector: Vector
    model: str
    where: Predicate
    limit: int


class VectorFeed:
    """All vectors in the order in which they were stored; positions are never reused.

    A changed vector, and the vectors of a record that changes its owner, get new positions at the end; their old
    positions and those of deleted vectors no longer exist. A store without `Capability.VECTOR_FEED` raises an error.
    """

    def name(self) -> str:
        """The unique name of this store's feed; a copy of the store has the same one."""
        raise _unsupported()

    def position(self) -> int:
        """The last assigned position; 0 if there is none."""
        raise _unsupported()

    def after(self, model: str, position: int, limit: int) -> list[StoredVector]:
        """Up to `most` vectors of a model after a position, in order."""
        raise _unsupported()

    def at(self, question: VectorQuery, positions: Sequence[int]) -> list[FoundVector]:
        """Those of these positions that still have a vector of the query's kind and model, unordered."""
        raise _unsupported()

    def inside(self, question: VectorQuery, most: int, *, known: bool = False) -> Sequence[int] | None:
        """The positions of all vectors whose records match the query, unordered, possibly including expired ones. None
        if there are more than `most`, or with `known` if they are not cached.
        """
        raise _unsupported()

    def held(self, model: str) -> list[int]:
        """All positions that still have a vector of the model, unordered."""
        raise _unsupported()


NO_FEED = VectorFeed()


def changes_owner(old: Record, new: Record) -> bool:
    """Whether the owner of a record has changed."""
    return any(getattr(old, name) != getattr(new, name) for name in OWNERS if name in new.spec.by_name)


def _unsupported() -> UnsupportedOperation:
    return UnsupportedOperation("this store has no vector feed; use search_vector instead")
