"""The last resort: when nothing can be searched, the newest memories are better than none."""

from __future__ import annotations

import math
from collections.abc import Sequence

from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.memory import Memory
from alma.model.query import Order
from alma.model.record import Record
from alma.model.slice import Dropped, Explanation, MemorySlice, by_id
from alma.retrieval.absent import Absent
from alma.retrieval.router import Asked, Target
from alma.retrieval.standing import in_force, is_instruction
from alma.storage.base import StorageBackend

# How much room there is in a prompt is for its budget to say; this many are read for each task.
MOST_BY_RULE = 50
_NEWEST: dict[type[Record], str] = {
    Heuristic: "last_validated",
    AntiPattern: "last_seen",
    UserPreference: "timestamp",
    DomainKnowledge: "last_verified",
    Outcome: "timestamp",
    Memory: "created_at",
}


def newest(storage: StorageBackend, targets: Sequence[Target], limit: int) -> list[Record]:
    """The newest records of targets of one kind, each once."""
    found: dict[str, Record] = {}
    for target in targets:
        by_age = (Order(_NEWEST[target.cls], "desc"),)
        for record in storage.find(target.cls, target.scope, target.where, by_age, limit=limit):
            found.setdefault(str(record.key), record)
    return sorted(found.values(), key=_age)[:limit] if len(targets) > 1 else list(found.values())


def _age(record: Record) -> float:
    """How long ago a record was new, beside others; one that does not say is the oldest."""
    moment = getattr(record, _NEWEST[type(record)])
    return math.inf if moment is None else -moment.timestamp()


def _newest_of(storage: StorageBackend, cls: type[Record], targets: Sequence[Target], request: Asked) -> list[Record]:
    """The newest records of a kind, and of a user's preferences as many as ever; standing instructions come apart."""
    chosen = [target for target in targets if target.cls is cls and target.searched]
    most = max(request.top_k, MOST_BY_RULE) if any(target.by_rule for target in chosen) else request.top_k
    records = newest(storage, chosen, most + (MOST_BY_RULE if cls is Memory else 0))
    return [each for each in records if not is_instruction(each, request)][:most]


def most_recent(storage: StorageBackend, targets: Sequence[Target], request: Asked, degraded: str) -> MemorySlice:
    """The newest memories of each kind inside the scope."""
    found = {cls: _newest_of(storage, cls, targets, request) for cls in _NEWEST}
    by_rule = newest(storage, [each for each in targets if each.cls is Memory and each.by_rule], MOST_BY_RULE)
    standing = in_force(storage, by_rule, targets, request.now)
    everything = [record for records in (*found.values(), standing) for record in records]
    return MemorySlice.of(
        found,
        instructions=tuple(standing),
        query=request.query,
        agent=request.agent,
        degraded=degraded,
        explanations=by_id(Explanation(r.spec.kind, str(r.key), 0.0, {}, ("recency",)) for r in everything),
        _why_not=Absent(
            storage, targets, request, Dropped("recency", "nothing could be searched, and others are newer")
        ),
    )
