"""The outbox: marks for the changes of records that an index has not processed yet."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Mark:
    """A record that a projection has not caught up with; `generation` tells one change from the next."""

    projection: str
    kind: str
    record_id: str
    generation: int
    marked_at: datetime
    leased_until: datetime | None = None
    attempts: int = 0
    error: str | None = None
    parked: bool = False


class MarkTable(ABC):
    """The marks inside one transaction: which records each projection has yet to catch up with."""

    @abstractmethod
    def register(self, name: str, kinds: Sequence[str]) -> None: ...

    @abstractmethod
    def drop(self, name: str) -> None: ...

    @abstractmethod
    def mark(self, kind: str, keys: Sequence[str], moment: datetime) -> None:
        """Mark changed records for every projection of their kind; a mark that exists gets the next generation.

        Leases stay as they are.
        """

    @abstractmethod
    def claim(self, projection: str, limit: int, moment: datetime, until: datetime) -> list[Mark]:
        """Lease the oldest marks that are neither parked nor leased."""

    @abstractmethod
    def acknowledge(self, marks: Sequence[Mark]) -> int:
        """Delete marks of unchanged generation, end the lease of the others."""

    @abstractmethod
    def fail(self, mark: Mark, error: str, park_after: int) -> None: ...

    @abstractmethod
    def unpark(self, projection: str) -> int: ...

    @abstractmethod
    def pending(self, projection: str) -> list[Mark]: ...
