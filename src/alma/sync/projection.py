"""The projection port: the contract of an engine beside the store, so that the relay can keep it consistent."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from alma.closeable import Closeable
from alma.model.record import Record
from alma.storage.base import RecordVector


@dataclass(frozen=True, slots=True)
class Change:
    """The committed state of one record: the record with its vectors, or `record` None where it was deleted."""

    cls: type[Record]
    record_id: str
    record: Record | None
    vectors: tuple[RecordVector, ...] = ()


class Difference(StrEnum):
    """How an engine's entry of a record differs from the store's."""

    MISSING = "missing"
    STALE = "stale"
    ORPHANED = "orphaned"
    CORRUPTED = "corrupted"


@dataclass(frozen=True, slots=True)
class Mismatch:
    """An entry that differs, with a sentence that names the fields."""

    record_id: str
    difference: Difference
    details: str = ""


class Projection(Closeable):
    """Keeps one engine (Qdrant, Neo4j, Redis) equal to the records of some kinds; the store is the source of truth.

    * **Applying is idempotent.** The same change may arrive twice, from two relays at once, or after a newer one; the
      relay then applies the current state again, so the last state applied wins.
    * **It owns nothing.** Everything in the engine can be deleted with `clear` and made again from the store.
    * **Errors are the engine's.** A server that cannot be reached raises `StorageError` with one sentence; the relay
      retries. A record that the engine refuses raises `ValidationError`; the relay parks that record alone.
    """

    name: ClassVar[str]
    """The engine, which is also the name of the projection in the outbox."""

    kinds: ClassVar[tuple[type[Record], ...]]
    """The kinds whose changes are projected."""

    needs_vectors: ClassVar[bool] = False
    """Whether changes must carry the vectors of their records."""

    @abstractmethod
    def ping(self) -> None:
        """Raise `StorageError` if the server does not answer."""

    def is_lost(self) -> bool:
        """Whether what had entries is missing: the engine is new, or has lost them, and the relay fills it again.

        Changes nothing. The relay asks before `prepare`, which makes what is missing and so hides the loss.
        """
        return False

    @abstractmethod
    def prepare(self) -> None:
        """Create the collections, constraints and indexes that are missing; may be repeated."""

    @abstractmethod
    def apply(self, changes: Sequence[Change]) -> None:
        """Make the engine's entries equal to these states; all of them, or an error."""

    @abstractmethod
    def compare(self, expected: Sequence[Change]) -> list[Mismatch]:
        """The entries of these records that are missing, stale or corrupted, by ids, counts and content hashes.

        What is not part of a mark does not count: the read counters of a record change without one.
        """

    @abstractmethod
    def held(self, cls: type[Record], after: str | None, limit: int) -> list[str]:
        """The ids of the engine's entries of a kind, in order, from behind the id that is given."""

    @abstractmethod
    def count(self, cls: type[Record]) -> int:
        """How many records of a kind the engine has an entry of."""

    @abstractmethod
    def clear(self) -> None:
        """Delete everything that this projection put into the engine."""
