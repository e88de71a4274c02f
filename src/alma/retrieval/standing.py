"""Standing instructions: which of them hold when a task is asked about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from alma.model.memory import Memory, MemoryRelationship
from alma.model.query import And, In, matches
from alma.model.record import Record
from alma.model.scope import Scope
from alma.retrieval.router import STANDING_TYPES, Asked, Target, holding_for
from alma.retrieval.scoring import moment_of
from alma.retrieval.supersession import successors_of
from alma.storage.base import StorageBackend
from alma.text.timeexpr.calendar import EARLIEST

# So that what does not hold keeps its order, long before everything that does.
_AGES = 1_000


def is_instruction(record: Record, asked: Asked) -> bool:
    """Whether a memory is a standing instruction for whoever asks: what somebody else carries along is none."""
    if not isinstance(record, Memory) or record.memory_type not in STANDING_TYPES:
        return False
    return matches(holding_for(getattr(asked, "user_id", None)), record)


def holds(record: Record, now: datetime) -> bool:
    """Whether what a memory says is said to hold now."""
    return begins_after(record, now) is None and _ended_before(record, now) is None


def begins_after(record: Record, now: datetime) -> datetime | None:
    """When a memory begins to hold that does not yet."""
    start: datetime | None = getattr(record, "valid_from", None)
    return start if start is not None and start > now else None


def _ended_before(record: Record, now: datetime) -> datetime | None:
    """Until when a memory held that no longer does."""
    end: datetime | None = getattr(record, "valid_until", None)
    return end if end is not None and end <= now else None


def out_of_force(record: Record, now: datetime) -> tuple[str, ...]:
    """What is to be known of a memory that no longer holds, or does not yet."""
    start, end = begins_after(record, now), _ended_before(record, now)
    if end is not None:
        return (f"held until {end:%Y-%m-%d}",)
    return () if start is None else (f"holds from {start:%Y-%m-%d}",)


def new_since(record: Record, now: datetime, *, ahead: bool) -> datetime | None:
    """Since when a memory says what is so; what does not hold is older than anything that does.

    Where it is asked what is `ahead`, what will hold counts as what holds.
    """
    moment = moment_of(record)
    if moment is None or holds(record, now) or (ahead and _ended_before(record, now) is None):
        return moment
    return EARLIEST + (moment - EARLIEST) / _AGES


def superseded(storage: StorageBackend, records: Iterable[Record], targets: Sequence[Target]) -> dict[str, str]:
    """The instructions among these records that others supersede which may be seen as well, each with one of those."""
    ids = [str(record.key) for record in records if isinstance(record, Memory)]
    # Many a store has no relationships.
    if not ids or not storage.values(MemoryRelationship, ("id",), Scope.everywhere(), limit=1):
        return {}
    later = {old: new for old, new in successors_of(storage, ids).items() if old in ids}
    seen = _seen(storage, sorted({each for new in later.values() for each in new}), targets)
    return {old: min(new & seen) for old, new in later.items() if new & seen}


def _seen(storage: StorageBackend, ids: Sequence[str], targets: Sequence[Target]) -> set[str]:
    return {
        str(key)
        for target in targets
        if ids and target.cls is Memory and target.searched
        for (key,) in storage.values(Memory, ("id",), target.scope, And(target.where, In("id", ids)))
    }


def in_force(
    storage: StorageBackend, records: Sequence[Record], targets: Sequence[Target], now: datetime
) -> list[Record]:
    """Those of the records that hold now and that nothing supersedes."""
    over = superseded(storage, records, targets)
    return [record for record in records if str(record.key) not in over and holds(record, now)]
