"""The port of a vector index: what every index promises, in words."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

from alma.model.query import EVERYTHING, Predicate
from alma.model.record import Record
from alma.model.scope import Scope


class Nearest(NamedTuple):
    """A record near a vector: its id, and the cosine of the nearest of its vectors."""

    record_id: str
    cosine: float


@runtime_checkable
class VectorIndex(Protocol):
    """Finds the records whose vectors of one model point most nearly the same way as a given one.

    What an index promises:

    * **Scope inside the search.** However many nearer records lie outside the scope or fail the predicate, those
      inside are found, up to the limit; and nothing else ever is. A record that is deleted is not found.
    * **It is never behind.** A search sees every commit that any process has acknowledged before the call. Inside an
      open transaction of its store it sees what that transaction sees.
    * **Scores are exact.** Which records are found may be approximate where there are many; the cosine returned with
      each is that of its stored vector, a zero vector's being 0. A record with passages is found once, by its best.
    * **Order is total**: best first, ids breaking ties.
    * **It owns nothing.** Whatever it keeps can be thrown away and is made anew from the storage; damage to its files,
      a full disk or a read-only folder makes it slower, not wrong.
    * **Threads share it.** After `close`, which may be called twice, it answers no more.

    What it does not do: read records, rank by anything but the cosine, or write to the storage.
    """

    def search(
        self, cls: type[Record], vector: Any, scope: Scope, where: Predicate = EVERYTHING, limit: int = 10
    ) -> list[Nearest]:
        """The nearest records inside the scope that fulfil the predicate.

        Raises what the storage raises for such a question: `ValidationError` for a vector of the wrong length, a
        predicate that does not fit or a bad limit, `ScopeViolationError` without a scope, `UnsupportedOperation` for a
        kind that has no vectors.
        """
        ...

    def close(self) -> None:
        """Release every resource; the storage stays open."""
        ...
