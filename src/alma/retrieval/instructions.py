"""Preferences and standing instructions, which every slice includes, whatever the query is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime

from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.memory import Memory
from alma.model.query import And, In, Order
from alma.model.record import Record
from alma.retrieval.deduplication import deduplicated
from alma.retrieval.explain import DropReason
from alma.retrieval.packing import Results
from alma.retrieval.reranking import statements_of
from alma.retrieval.router import SearchRequest, Target, is_instruction
from alma.retrieval.scoring import ScoredRecord, Scorer
from alma.retrieval.supersession import current_first, holds, holds_from, successors_of
from alma.retrieval.tuning import TUNING
from alma.storage.base import StorageBackend

NEWEST: dict[type[Record], str] = {
    Heuristic: "last_validated",
    AntiPattern: "last_seen",
    UserPreference: "timestamp",
    DomainKnowledge: "last_verified",
    Outcome: "timestamp",
    Memory: "created_at",
}
"""The field by which the records of each kind are newest first."""


def add_always_included(storage: StorageBackend, results: Results, scorer: Scorer) -> None:
    """Add preferences and standing instructions: those that match the query first, then the newest."""
    request = scorer.request
    always = [target for target in results.targets if target.always]
    most = max(request.top_k, TUNING.always_included)
    _separate_instructions(storage, results, request)
    for cls in dict.fromkeys(target.cls for target in always):
        items = results.instructions if cls is Memory else results.chosen[cls]
        known = {scored.key for scored in (*items, *results.chosen[cls])}
        records = newest(storage, [target for target in always if target.cls is cls], most)
        added = [scorer.record(record, {}, ("rule",)) for record in records if str(record.key) not in known]
        items.extend(_in_force(storage, added, results, request))
        kept = deduplicated(items, statements_of(items, frozenset(), request.now), results.dropped)
        items[:] = _current_first(storage, kept, results, scorer)
        for scored in items[most:]:
            results.drop(scored.key, "rank", "{:,} others are handed over by rule", most)
        del items[most:]
        for scored in items:
            scored.strength = "strong"
            results.dropped.pop(scored.key, None)


def instructions_in_force(
    storage: StorageBackend, records: Sequence[Record], targets: Sequence[Target], now: datetime
) -> list[Record]:
    """The instructions that hold now and are not superseded."""
    over = _superseded(storage, records, targets)
    return [record for record in records if str(record.key) not in over and holds(record, now)]


def newest(storage: StorageBackend, targets: Sequence[Target], limit: int) -> list[Record]:
    """The newest records of targets of one kind, each once."""
    found: dict[str, Record] = {}
    for target in targets:
        by_age = (Order(NEWEST[target.cls], "desc"),)
        for record in storage.find(target.cls, target.scope, target.where, by_age, limit=limit):
            found.setdefault(str(record.key), record)
    return sorted(found.values(), key=_age)[:limit] if len(targets) > 1 else list(found.values())


def _age(record: Record) -> float:
    moment = getattr(record, NEWEST[type(record)])
    return math.inf if moment is None else -moment.timestamp()


def _current_first(
    storage: StorageBackend, items: Sequence[ScoredRecord], results: Results, scorer: Scorer
) -> list[ScoredRecord]:
    """The same in their order, what is no longer true behind what replaced it."""
    for scored in items:
        scored.notes = ()
    current = current_first(
        storage, items, results.targets, lambda record, _: scorer.record(record, {}, ("rule",)), scorer.request.now
    )
    noted = any(scored.notes for scored in current)
    return sorted(current, key=lambda scored: -scored.score) if noted else current


def _separate_instructions(storage: StorageBackend, results: Results, request: SearchRequest) -> None:
    """Move the standing instructions among the memories that were found into their own list."""
    found = results.chosen[Memory]
    instructions = [scored for scored in found if is_instruction(scored.record, request)]
    results.instructions.extend(_in_force(storage, instructions, results, request))
    separate = {scored.key for scored in results.instructions}
    results.chosen[Memory] = [scored for scored in found if scored.key not in separate][: request.top_k]


def _in_force(
    storage: StorageBackend, items: Sequence[ScoredRecord], results: Results, request: SearchRequest
) -> list[ScoredRecord]:
    """The items that hold now and are not superseded; the others are dropped."""
    over = _superseded(storage, [scored.record for scored in items], results.targets)
    kept: list[ScoredRecord] = []
    for scored in items:
        if scored.key in over:
            results.dropped[scored.key] = DropReason("rule", "it was superseded by {}", (over[scored.key],))
        elif holds(scored.record, request.now):
            kept.append(scored)
        else:
            results.dropped[scored.key] = DropReason("rule", "it does not hold at this time")
            begins = holds_from(scored.record, request.now)
            results.changes_at = min(filter(None, (results.changes_at, begins)), default=None)
    return kept


def _superseded(storage: StorageBackend, records: Sequence[Record], targets: Sequence[Target]) -> dict[str, str]:
    """The general memories among these records that a visible one supersedes, each with one of those."""
    ids = [str(record.key) for record in records if isinstance(record, Memory)]
    later = successors_of(storage, ids) if ids else {}
    named = In("id", sorted({new for ends in later.values() for new in ends}))
    visible = {
        str(key)
        for target in targets
        if later and target.cls is Memory and target.searched
        for (key,) in storage.values(Memory, ("id",), target.scope, And(target.where, named))
    }
    return {old: min(new & visible) for old, new in later.items() if old in ids and new & visible}
