"""The outbox's value: one mark says that an index has yet to learn of a record's change."""

from __future__ import annotations

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
