"""Absent: why a memory is not in a slice, told only of those that the agent may know of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from alma.errors import shown
from alma.model.query import And, In
from alma.model.record import Record
from alma.model.slice import Dropped
from alma.retrieval.router import Asked, Target
from alma.storage.base import StorageBackend

BEHIND = Dropped("candidates", "others resemble the task more, by meaning and by words")
_OUTSIDE = Dropped("scope", "it is deleted, archived, expired or of another layer")


@dataclass(frozen=True, slots=True)
class Absent:
    """Answers `why_not`: with what was noted of a memory, or else that it was `behind` others or out of sight.

    Of what the agent may not see, not even that it exists: an index or a relationship may have proposed it.
    """

    storage: StorageBackend
    targets: Sequence[Target]
    asked: Asked
    behind: Dropped = BEHIND
    dropped: Mapping[str, Dropped] = field(default_factory=dict)

    def __call__(self, record_id: str) -> Dropped:
        with self.storage.snapshot() as tx:
            for target in self.targets:
                if tx.find(target.cls, target.scope, And(target.where, In("id", [record_id]))):
                    return self.dropped.get(record_id, self.behind)
            for target in self.targets:
                record = tx.get(target.cls, record_id, target.scope)
                if record is not None and self._may_know(record, target):
                    return self.dropped.get(record_id, _OUTSIDE)
        return Dropped("scope", f"there is no memory {shown(record_id)} that this agent may see")

    def _may_know(self, record: Record, target: Target) -> bool:
        """Whether a record out of sight may be spoken of: all but what is private to somebody else."""
        owners = (getattr(self.asked, "user_id", None), target.scope.user_id)
        return not getattr(record, "is_private", False) or getattr(record, "user_id", None) in owners
