"""Standing instructions: which of them hold when a task is asked about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from alma.model.memory import Memory, MemoryRelationship
from alma.model.query import And, In
from alma.model.record import Record
from alma.model.scope import Scope
from alma.retrieval.router import STANDING_TYPES, Target
from alma.retrieval.successors import successors_of
from alma.storage.base import StorageBackend


def is_instruction(record: Record) -> bool:
    """Whether a memory is a standing instruction."""
    return isinstance(record, Memory) and record.memory_type in STANDING_TYPES


def holds(record: Record, now: datetime) -> bool:
    """Whether what a memory says is said to hold now."""
    start, end = getattr(record, "valid_from", None), getattr(record, "valid_until", None)
    return (start is None or start <= now) and (end is None or end > now)


def ended(record: Record, now: datetime) -> tuple[str, ...]:
    """What is to be known of a memory that no longer holds."""
    end = getattr(record, "valid_until", None)
    return () if end is None or end > now else (f"held until {end:%Y-%m-%d}",)


def superseded(storage: StorageBackend, records: Iterable[Record], targets: Sequence[Target]) -> dict[str, str]:
    """The instructions among these records that others supersede which may be seen as well, each with one of those."""
    ids = [str(record.key) for record in records if is_instruction(record)]
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
