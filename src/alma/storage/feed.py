"""The vector feed: how an index outside of a store follows its vectors, for stores that offer it."""

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
    """A vector that is still stored; `data` is None where its record does not fulfil the query."""

    position: int
    record_id: str
    data: bytes | None


@dataclass(frozen=True, slots=True)
class VectorQuery:
    """A vector search with every part checked: the vector, its model, and the predicate."""

    spec: RecordSpec
    vector: Vector
    model: str
    where: Predicate
    limit: int


class VectorFeed:
    """Every vector ever stored, in the order it was stored; a position is never given twice.

    A vector that changes, and the vectors of a record that changes its owner, are stored again at the end; their old
    positions and those of deleted vectors no longer exist. A store without a feed refuses all of this;
    `Capability.VECTOR_FEED` says which has one.
    """

    def name(self) -> str:
        """The unique name of this store's feed; a copy of the store has the same one."""
        raise _unsupported()

    def position(self) -> int:
        """The last position that was given; 0 before the first."""
        raise _unsupported()

    def after(self, model: str, position: int, limit: int) -> list[StoredVector]:
        """Up to so many of a model's vectors behind a position, in order."""
        raise _unsupported()

    def at(self, question: VectorQuery, positions: Sequence[int]) -> list[FoundVector]:
        """Those of these positions that still hold a vector of the query's kind and model, in no order."""
        raise _unsupported()

    def inside(self, question: VectorQuery, most: int, *, known: bool = False) -> Sequence[int] | None:
        """The positions of all vectors whose records fulfil the query, in no order; expired ones may be among them.

        None where there are more than `most`, and with `known` where they are not cached.
        """
        raise _unsupported()

    def held(self, model: str) -> list[int]:
        """Every position that still holds a vector of the model, in no order."""
        raise _unsupported()


NO_FEED = VectorFeed()


def changes_owner(old: Record, new: Record) -> bool:
    """Whether a record has got another owner."""
    return any(getattr(old, name) != getattr(new, name) for name in OWNERS if name in new.spec.by_name)


def _unsupported() -> UnsupportedOperation:
    return UnsupportedOperation("this store has no feed of its vectors; ask it with search_vector instead")
