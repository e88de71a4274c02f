"""The port of vector indexes, and the contract that each of them fulfils."""

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
    """Finds the records whose vectors of one model have the highest cosine with a given vector.

    The contract:

    * **Scope inside the search.** The search returns only records inside the scope that fulfil the predicate, and up to
      the limit of them, however many nearer records there are outside. Deleted records are not returned.
    * **It is never stale.** A search sees every commit that any process has acknowledged before the call. Inside an
      open transaction of its store it sees what that transaction sees.
    * **Scores are exact.** The set of results may be approximate in a large store, but the cosine of each is that of
      its stored vector; that of a zero vector is 0. A record with passages is returned once, with its best passage.
    * **Order is total**: highest cosine first, with the id for tie-breaking.
    * **It owns nothing.** Its data can be deleted and is rebuilt from the storage; damaged files, a full disk or a
      read-only folder make it slower, not wrong.
    * **It is thread-safe.** After `close`, which may be called twice, searches fail.

    It does not read records, rank by anything but the cosine, or write to the storage.
    """

    def search(
        self, cls: type[Record], vector: Any, scope: Scope, where: Predicate = EVERYTHING, limit: int = 10
    ) -> list[Nearest]:
        """The nearest records inside the scope that fulfil the predicate.

        Raises the errors of the storage: `ValidationError` for a vector of the wrong length, a
        predicate that does not fit or a bad limit, `ScopeViolationError` without a scope, `UnsupportedOperation` for a
        kind that has no vectors.
        """
        ...

    def close(self) -> None:
        """Release every resource; the storage stays open."""
        ...
