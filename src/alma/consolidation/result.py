"""What a consolidation found and did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MergedGroup:
    """Memories that say the same: the one that stays, and for each other one why it is merged into it."""

    memory_type: str
    kept_id: str
    kept_text: str
    merged: Mapping[str, str]

    @property
    def merged_ids(self) -> tuple[str, ...]:
        """The ids of those that go to the archive."""
        return tuple(self.merged)

    def __str__(self) -> str:
        others = "; ".join(f"{record_id} ({why})" for record_id, why in self.merged.items())
        return f"{self.memory_type} {self.kept_id} takes in {others}"


@dataclass(frozen=True, slots=True)
class ConsolidationResult:
    """The groups that were merged, or in a dry run would be, and how many memories were looked at."""

    groups: tuple[MergedGroup, ...]
    memories_processed: int
    dry_run: bool

    @property
    def groups_found(self) -> int:
        """How many groups there are."""
        return len(self.groups)

    @property
    def merged_count(self) -> int:
        """How many memories were merged into others, or would be."""
        return sum(len(group.merged) for group in self.groups)

    def __str__(self) -> str:
        done = "would be merged" if self.dry_run else "were merged"
        others = "other" if self.groups_found == 1 else "others"
        return f"{self.merged_count} of {self.memories_processed} memories {done} into {self.groups_found} {others}"
