"""The port of graph servers that walk along the relationships of memories; the store confirms their proposals."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from alma.model.query import And, Compare, In, Predicate
from alma.model.scope import Scope
from alma.storage.traversal import Direction


@dataclass(frozen=True, slots=True)
class Along:
    """The relationships that a walk follows: of these stored relations, or all, and at least this strong."""

    relations: frozenset[str] | None = None
    min_strength: float = 0.0

    @property
    def predicate(self) -> Predicate:
        """The same for the store."""
        parts: list[Predicate] = []
        if self.relations is not None:
            parts.append(In("relationship_type", sorted(self.relations)))
        if self.min_strength > 0:
            parts.append(Compare("strength", "ge", self.min_strength))
        return And(*parts)


class MemoryGraph(Protocol):
    """A server that holds a copy of the memories' relationships, which may lag behind the store.

    Its answers are proposals: they may lack what the store has, and contain what the store has no longer or what the
    caller must not see. None means that the server does not answer. No call raises an error of the server, and none
    takes longer than a few seconds.
    """

    name: ClassVar[str]
    """The projection that fills it."""

    def around(
        self, start_id: str, scope: Scope, along: Along, direction: Direction, max_depth: int, limit: int
    ) -> Sequence[str] | None:
        """The memories up to this number of relationships away, nearest first, at least until `limit` were found."""
        ...

    def among(self, user_id: str, relations: Collection[str]) -> tuple[int, Sequence[str]] | None:
        """How many memories the user has, and the ids of the relationships of these types between them."""
        ...

    def close(self) -> None: ...
