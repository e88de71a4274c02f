"""The last resort: when nothing can be searched, the newest memories are better than none."""

from __future__ import annotations

from collections.abc import Sequence

from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.memory import Memory
from alma.model.query import Order
from alma.model.record import Record
from alma.model.slice import Dropped, Explanation, MemorySlice
from alma.retrieval.absent import Absent
from alma.retrieval.router import Asked, Target
from alma.storage.base import StorageBackend

_NEWEST: dict[type[Record], str] = {
    Heuristic: "last_validated",
    AntiPattern: "last_seen",
    UserPreference: "timestamp",
    DomainKnowledge: "last_verified",
    Outcome: "timestamp",
    Memory: "created_at",
}


def newest(storage: StorageBackend, target: Target, limit: int) -> list[Record]:
    """The newest records of a target."""
    by_age = (Order(_NEWEST[target.cls], "desc"),)
    return list(storage.find(target.cls, target.scope, target.where, by_age, limit=limit))


def most_recent(storage: StorageBackend, targets: Sequence[Target], request: Asked, degraded: str) -> MemorySlice:
    """The newest memories of each kind inside the scope."""
    found: dict[type[Record], list[Record]] = {cls: [] for cls in _NEWEST}
    standing: list[Record] = []
    for target in targets:
        records = newest(storage, target, request.top_k)
        (standing if target.by_rule and target.cls is Memory else found[target.cls]).extend(records)
    instructions = {str(record.key) for record in standing}
    different = {str(record.key): record for record in found[Memory] if str(record.key) not in instructions}
    found[Memory] = list(different.values())[: request.top_k]
    everything = [record for records in (*found.values(), standing) for record in records]
    return MemorySlice.of(
        found,
        instructions=tuple(standing),
        query=request.query,
        agent=request.agent,
        degraded=degraded,
        explanations={str(r.key): Explanation(r.spec.kind, str(r.key), 0.0, {}, ("recency",)) for r in everything},
        _why_not=Absent(
            storage, targets, request, Dropped("recency", "nothing could be searched, and others are newer")
        ),
    )
