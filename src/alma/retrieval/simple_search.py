"""Search by a single source: the cosine, words, or the newest memories if nothing can be searched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from alma.model.memory import Memory
from alma.model.query import And, In
from alma.model.record import Record
from alma.model.slice import Dropped, Explanation, MemorySlice, by_id
from alma.model.vector import Vector
from alma.retrieval.candidates import nearest
from alma.retrieval.packing import WhyNot, best_first
from alma.retrieval.ranking import NEWEST, instructions_in_force, newest
from alma.retrieval.router import SearchRequest, Target, is_instruction
from alma.retrieval.scoring import ScoredRecord
from alma.retrieval.supersession import current_first
from alma.retrieval.tuning import TUNING
from alma.storage.base import StorageBackend, Transaction
from alma.vectors.base import VectorIndex

Mode = Literal["semantic", "keyword", "hybrid"]


def search_by_meaning(
    storage: StorageBackend, index: VectorIndex, targets: Sequence[Target], request: SearchRequest, vector: Vector
) -> MemorySlice:
    """The nearest general memories, each with its cosine as the score."""
    least = -1.0 if request.min_similarity is None else request.min_similarity
    most = request.top_k + TUNING.looked_behind
    farther = Dropped("similarity", f"others have a higher cosine, or its cosine is below {least:g}")
    with storage.snapshot() as tx:
        found = {
            target: {
                key: cosine
                for key, cosine in nearest(index, Memory, vector, target.scope, target.where, most)
                if cosine >= least
            }
            for target in targets
        }
        why_not = WhyNot(storage, list(found), request, farther)
        return _best(tx, found, request, "meaning", why_not)


def search_by_words(storage: StorageBackend, targets: Sequence[Target], request: SearchRequest) -> MemorySlice:
    """The general memories that share words with the query, each with its BM25 as the score."""
    most = request.top_k + TUNING.looked_behind
    fewer = Dropped("words", "it shares no word with the query, or others match it better")
    with storage.snapshot() as tx:
        found = {
            target: dict(tx.matching_ids(Memory, request.query, target.scope, target.where, most)) for target in targets
        }
        why_not = WhyNot(storage, list(found), request, fewer)
        return _best(tx, found, request, "words", why_not)


def newest_memories(
    storage: StorageBackend, targets: Sequence[Target], request: SearchRequest, degraded: str
) -> MemorySlice:
    """The newest memories of each kind inside the scope, with all preferences and standing instructions."""
    always = [target for target in targets if target.cls is Memory and target.always]
    with storage.snapshot() as tx:
        found = {cls: _newest_of(tx, cls, targets, request) for cls in NEWEST}
        instructions = instructions_in_force(tx, newest(tx, always, TUNING.always_included), targets, request.now)
    every = [record for records in (*found.values(), instructions) for record in records]
    behind = Dropped("recency", "nothing could be searched, and others are newer")
    return MemorySlice.of(
        found,
        instructions=tuple(instructions),
        query=request.query,
        agent=request.agent,
        degraded=degraded,
        explanations=by_id(Explanation(r.spec.kind, str(r.key), 0.0, {}, ("recency",)) for r in every),
        _why_not=WhyNot(storage, targets, request, behind),
    )


def _newest_of(tx: Transaction, cls: type[Record], targets: Sequence[Target], request: SearchRequest) -> list[Record]:
    chosen = [target for target in targets if target.cls is cls and target.searched]
    always = any(target.always for target in chosen)
    most = max(request.top_k, TUNING.always_included) if always else request.top_k
    records = newest(tx, chosen, most + (TUNING.always_included if cls is Memory else 0))
    return [record for record in records if not is_instruction(record, request)][:most]


def _best(
    tx: Transaction,
    found: Mapping[Target, Mapping[str, float]],
    request: SearchRequest,
    source: str,
    why_not: WhyNot,
) -> MemorySlice:
    """The best of all targets that are visible in the snapshot."""
    scored: dict[str, ScoredRecord] = {}
    for target, scores in found.items():
        for memory in tx.find(Memory, target.scope, And(target.where, In("id", list(scores)))):
            score = scores[memory.id]
            similarity = score if source == "meaning" else None
            known = ScoredRecord(memory, {source: score}, (source,), similarity=similarity)
            if memory.id not in scored or scored[memory.id].score < score:
                scored[memory.id] = known
    current = current_first(
        tx,
        sorted(scored.values(), key=best_first),
        list(found),
        lambda record, by: ScoredRecord(record, {}, tuple(by)),
        request.now,
    )
    chosen = sorted(current, key=best_first)[: request.top_k]
    return MemorySlice(
        memories=[each.record for each in chosen if isinstance(each.record, Memory)],
        query=request.query,
        explanations={each.key: each.explanation() for each in chosen},
        _why_not=why_not,
    )
