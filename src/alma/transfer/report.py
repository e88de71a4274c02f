"""The report of an import or merge: counts, conflicts, renamed and refused records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from alma.model.fields import JsonObject

OnProgress = Callable[[int, int], object]
"""Progress callback: records done, and the total."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """A record that both stores changed, with both contents and which one was taken."""

    kind: str
    id: str
    stored: JsonObject
    arriving: JsonObject
    taken: str


@dataclass(frozen=True, slots=True)
class Renamed:
    """A record identified with a stored one by a unique name."""

    kind: str
    id: str
    stored_id: str
    by: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Refused:
    """A record, or a vector of it, that was refused, and why."""

    kind: str
    id: str
    reason: str


@dataclass(slots=True)
class TransferReport:
    """Counts of new, changed, unchanged and kept records by kind, and lists of special cases."""

    new: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)
    unchanged: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    vectors: int = 0
    conflicts: list[Conflict] = field(default_factory=list)
    renamed: list[Renamed] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    dry_run: bool = False

    def add(self, other: TransferReport) -> None:
        """Add the report of a batch."""
        for name in ("new", "changed", "unchanged", "kept"):
            getattr(self, name).update(+getattr(other, name))
        self.vectors += other.vectors
        for name in ("conflicts", "renamed", "refused"):
            getattr(self, name).extend(getattr(other, name))

    def to_dict(self) -> JsonObject:
        """The report as JSON."""
        counts = {name: dict(getattr(self, name)) for name in ("new", "changed", "unchanged", "kept")}
        lists = {name: [asdict(each) for each in getattr(self, name)] for name in ("conflicts", "renamed", "refused")}
        return {"dry_run": self.dry_run, **counts, "vectors": self.vectors, **lists}
