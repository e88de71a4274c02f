"""The maintenance policy: each task, its interval, and its age limit in days."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import timedelta
from pathlib import Path

from alma.errors import ValidationError
from alma.learning.policy import PrunePolicy


@dataclass(frozen=True, slots=True)
class MaintenancePolicy:
    """The tasks of maintenance; a number of days that is None switches its task off.

    * `decay`: archive general memories whose strength decayed below `min_strength`, and lower the confidence of lessons
      that were not validated for a while. The setting `memory_decay_enabled` switches it off for the store or a user.
    * `cleanup`: archive what `prune` says: outcomes after 90 days, lessons not used for a year, rules of low
      confidence.
    * `benefit`: demote the lessons and facts that are measured to harm, and withhold more often those that probably do;
      `alma.benefit.reinstate` undoes a demotion.
    * `deleted_days`: archive memories that were soft-deleted longer ago than this.
    * `purge_days`: delete for good what was archived longer ago than this.
    * `session_days`: move the memories of sessions that ended longer ago than this to cold storage.
    * `outbox_days`: drop the marks of readers that have read nothing for longer than this.
    * `audit_days`: delete audit events that are so old.

    `enabled` is whether services run it at the interval. `cold_storage_dir` is the folder of cold storage.
    """

    enabled: bool = True
    interval: timedelta = timedelta(days=1)
    decay: bool = True
    min_strength: float = 0.05
    cleanup: bool = True
    prune: PrunePolicy = field(default_factory=PrunePolicy)
    benefit: bool = True
    deleted_days: float | None = 30.0
    purge_days: float | None = None
    session_days: float | None = None
    outbox_days: float | None = 30.0
    audit_days: float | None = None
    cold_storage_dir: Path | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.interval, timedelta) or self.interval <= timedelta(0):
            raise ValidationError("maintenance", "interval", self.interval, "must be a timedelta above 0")
        for each in fields(self):
            days = getattr(self, each.name)
            if each.name.endswith("_days") and days is not None and not _is_days(days):
                raise ValidationError("maintenance", each.name, days, "must be a number of days above 0, or None")


def _is_days(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1_000_000
