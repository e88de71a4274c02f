"""Searching one way alone: general memories by the cosine of their meaning, or by the words they share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from alma.model.memory import Memory
from alma.model.query import And, In
from alma.model.slice import Dropped, Explanation, MemorySlice
from alma.model.vector import Vector
from alma.retrieval.absent import Absent
from alma.retrieval.candidates import nearest
from alma.retrieval.ranked import Ranked
from alma.retrieval.router import Asked, Target
from alma.retrieval.supersession import put_current_first
from alma.storage.base import StorageBackend
from alma.vectors.base import VectorIndex

# How far behind the last place what superseded one of the others is still seen.
_LOOKED_BEHIND = 20

Mode = Literal["semantic", "keyword", "hybrid"]


def by_meaning(
    storage: StorageBackend, index: VectorIndex, targets: Sequence[Target], asked: Asked, vector: Vector
) -> MemorySlice:
    """The nearest memories, each with its cosine as the score."""
    least = -1.0 if asked.min_similarity is None else asked.min_similarity

    def near(target: Target) -> Iterator[Explanation]:
        most = asked.top_k + _LOOKED_BEHIND
        for key, cosine in nearest(index, Memory, vector, target.scope, target.where, most):
            if cosine >= least:
                yield Explanation("memory", key, cosine, {"meaning": cosine}, ("meaning",), similarity=cosine)

    with storage.snapshot():
        farther = Dropped("similarity", "others are nearer in meaning, or it is less similar than was asked for")
        return _best(storage, {target: list(near(target)) for target in targets}, asked, farther)


def by_words(storage: StorageBackend, targets: Sequence[Target], asked: Asked) -> MemorySlice:
    """The memories that share words with the question, each with its BM25 as the score."""

    def matching(target: Target) -> Iterator[Explanation]:
        most = asked.top_k + _LOOKED_BEHIND
        for key, score in storage.matching_ids(Memory, asked.query, target.scope, target.where, most):
            yield Explanation("memory", key, score, {"words": score}, ("words",))

    with storage.snapshot():
        fewer = Dropped("words", "it shares no word with the question, or others match it better")
        return _best(storage, {target: list(matching(target)) for target in targets}, asked, fewer)


def _best(
    storage: StorageBackend, found: Mapping[Target, Sequence[Explanation]], asked: Asked, behind: Dropped
) -> MemorySlice:
    """The best of all targets as storage has them; what it no longer shows is gone."""
    memories: dict[str, Memory] = {}
    for target, explained in found.items():
        named = And(target.where, In("id", [each.id for each in explained]))
        memories.update((memory.id, memory) for memory in storage.find(Memory, target.scope, named))
    every = (each for explained in found.values() for each in explained if each.id in memories)
    reasons: dict[str, Explanation] = {}
    for each in sorted(every, key=_best_first):
        reasons.setdefault(each.id, each)
    found_ones = [_ranked(memories[key], each) for key, each in reasons.items()]
    current = put_current_first(
        storage, found_ones, list(found), lambda record, by: Ranked(record, {}, tuple(by)), asked.now
    )
    chosen = sorted(current, key=lambda ranked: (-ranked.score, ranked.key))[: asked.top_k]
    return MemorySlice(
        memories=[ranked.record for ranked in chosen if isinstance(ranked.record, Memory)],
        query=asked.query,
        explanations={ranked.key: ranked.explained() for ranked in chosen},
        _why_not=Absent(storage, list(found), asked, behind),
    )


def _ranked(memory: Memory, found: Explanation) -> Ranked:
    return Ranked(memory, dict(found.terms), found.found_by, similarity=found.similarity)


def _best_first(each: Explanation) -> tuple[float, str]:
    return -each.score, each.id
