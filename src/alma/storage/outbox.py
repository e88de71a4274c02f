"""The outbox: marks for changed records that a projection has not processed yet."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

MarkKey = tuple[str, str, str]
"""The identity of a mark: projection, kind and record."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A record that a projection has not caught up with; `generation` and `marked_at` tell one change from the next."""

    projection: str
    kind: str
    record_id: str
    generation: int
    marked_at: datetime
    leased_until: datetime | None = None
    attempts: int = 0
    error: str | None = None
    parked: bool = False

    @property
    def key(self) -> MarkKey:
        """The identity of the mark."""
        return self.projection, self.kind, self.record_id

    def is_of_change(self, other: Mark) -> bool:
        """Whether both marks are of the same change; a new mark of the same record starts at generation 1 again."""
        return (self.generation, self.marked_at) == (other.generation, other.marked_at)


@dataclass(frozen=True, slots=True)
class Backlog:
    """How far a projection is behind: its marks, those of them that are parked, and the oldest that is not."""

    pending: int = 0
    parked: int = 0
    oldest: datetime | None = None


class MarkTable(ABC):
    """The marks inside one transaction: which records each projection has yet to catch up with.

    A worker claims marks with a lease, which it holds as long as the `leased_until` of its mark is that of the table.
    """

    # ------------------------------------------------------------------ implemented by a store

    @abstractmethod
    def register(self, name: str, kinds: Sequence[str]) -> None:
        """Mark changes of exactly these kinds for a projection from now on."""

    @abstractmethod
    def drop(self, name: str) -> None:
        """Forget a projection and its marks."""

    @abstractmethod
    def registered(self) -> dict[str, tuple[str, ...]]:
        """The projections and their kinds, by name."""

    @abstractmethod
    def mark(self, kind: str, keys: Sequence[str], moment: datetime, only: str | None = None) -> None:
        """Mark changed records for every projection of their kind, or for one of them.

        A mark that exists gets the next generation and is unparked; leases stay as they are.
        """

    @abstractmethod
    def claim(self, projection: str, limit: int, moment: datetime, until: datetime) -> list[Mark]:
        """Lease the oldest marks that are neither parked nor leased."""

    @abstractmethod
    def of_records(self, projection: str, kind: str, keys: Collection[str]) -> list[Mark]:
        """The marks of these records, locked against other writers in a transaction that writes."""

    @abstractmethod
    def put(self, marks: Sequence[Mark]) -> None:
        """Replace marks that exist."""

    @abstractmethod
    def remove(self, marks: Sequence[Mark]) -> None:
        """Delete marks."""

    @abstractmethod
    def pending(self, projection: str) -> list[Mark]:
        """Every mark of a projection, oldest first."""

    @abstractmethod
    def backlog(self, projection: str) -> Backlog:
        """How far a projection is behind."""

    @abstractmethod
    def can_claim(self, projection: str, moment: datetime) -> bool:
        """Whether `claim` would find a mark."""

    # ------------------------------------------------------------------ written on these

    def current(self, marks: Iterable[Mark]) -> dict[MarkKey, Mark]:
        """The current rows of these marks."""
        found = (mark for group in by_kind(marks) for mark in self.of_records(*group))
        return {mark.key: mark for mark in found}

    def acknowledge(self, marks: Sequence[Mark], again: datetime | None = None) -> int:
        """Delete the marks of unchanged records; returns how many.

        A record that changed since is free to be claimed. With `again`, a record that another worker took over in the
        meantime is marked again at that time, as the older of the two states may have been written last.
        """
        current = self.current(marks)
        mine = [mark for mark in marks if _is_held(mark, current)]
        done = [mark for mark in mine if mark.is_of_change(current[mark.key])]
        self.remove(done)
        self._free(mine, done, current)
        if again is not None:
            self._mark_overtaken(marks, current, again)
        return len(done)

    def release(self, marks: Sequence[Mark], again: datetime | None = None) -> None:
        """Give marks back, without counting an attempt."""
        current = self.current(marks)
        self._free([mark for mark in marks if _is_held(mark, current)], (), current)
        if again is not None:
            self._mark_overtaken(marks, current, again)

    def fail(
        self, mark: Mark, error: str, park_after: int, until: datetime | None = None, again: datetime | None = None
    ) -> None:
        """Give a mark back with its error, to be claimed from `until` on; after `park_after` failures it is parked."""
        current = self.current([mark])
        known = current.get(mark.key)
        if known is None or not mark.is_of_change(known) or not _is_held(mark, current):
            self.release([mark], again)
            return
        tried = known.attempts + 1
        parked = tried >= park_after
        # A change of the record unparks it, and is then not kept waiting by the pause.
        pause = None if parked else until
        self.put([replace(known, leased_until=pause, attempts=tried, error=error, parked=parked)])

    def unpark(self, projection: str) -> int:
        """Make parked marks claimable again; returns how many."""
        parked = [mark for mark in self.pending(projection) if mark.parked]
        self.put([replace(mark, parked=False, attempts=0, error=None, leased_until=None) for mark in parked])
        return len(parked)

    def _free(self, mine: Sequence[Mark], done: Collection[Mark], current: Mapping[MarkKey, Mark]) -> None:
        left = set(mine).difference(done)
        self.put([replace(current[mark.key], leased_until=None) for mark in left])

    def _mark_overtaken(self, marks: Sequence[Mark], current: Mapping[MarkKey, Mark], moment: datetime) -> None:
        """Mark the records again whose marks are gone or, for another change, in the hands of another worker."""
        followed = self.registered()
        for mark in marks:
            known = current.get(mark.key)
            if known is not None and (_is_held(mark, current) or mark.is_of_change(known)):
                continue
            if mark.kind in followed.get(mark.projection, ()):
                self.mark(mark.kind, [mark.record_id], moment, only=mark.projection)


def _is_held(mark: Mark, current: Mapping[MarkKey, Mark]) -> bool:
    """Whether the worker that claimed the mark still has its lease."""
    known = current.get(mark.key)
    return known is not None and known.leased_until == mark.leased_until


def by_kind(marks: Iterable[Mark]) -> list[tuple[str, str, list[str]]]:
    """The ids of the marked records of each projection and kind, in order."""
    groups: dict[tuple[str, str], list[str]] = {}
    for projection, kind, key in sorted(mark.key for mark in marks):
        groups.setdefault((projection, kind), []).append(key)
    return [(*group, keys) for group, keys in groups.items()]
