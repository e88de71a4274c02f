"""Lessons: which earlier outcomes a new one belongs together with.

A lesson is one strategy on similar tasks. Its outcomes share a `lesson_id`, which is also the id of the heuristic that
the lesson becomes, so that there is never a second one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from alma.embeddings.base import EmbeddingProvider
from alma.learning.strategies import same_strategy, strategy_key
from alma.model.learning import Heuristic, Outcome
from alma.model.scope import Scope
from alma.model.text import query_terms
from alma.storage.base import StorageBackend
from alma.storage.nearest import cosines
from alma.vectors.base import VectorIndex

_LOOKED_AT = 24
_KNOWN_RULES_LOOKED_AT = 8
# How alike two tasks are that the same strategy is compared on, by meaning, or by words where there are no vectors.
_SIMILAR_TASKS, _SIMILAR_TASKS_OF_A_TYPE, _SIMILAR_WORDS = 0.65, 0.5, 0.5


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An earlier outcome on a similar task, and how similar that is."""

    outcome: Outcome
    similarity: float


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """What is known around a new outcome: its lesson, and the outcomes on similar tasks, nearest first."""

    lesson_id: str
    neighbours: Sequence[Neighbour] = ()


def new_lesson_id(outcome: Outcome) -> str:
    """The id of the lesson that begins with this outcome: the same whoever sees it first."""
    parts = (
        outcome.project_id,
        outcome.agent,
        strategy_key(outcome.strategy_used or ""),
        strategy_key(outcome.task_description),
    )
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:32]


def anti_pattern_id(lesson_id: str) -> str:
    """The id of the anti-pattern that a lesson becomes when its strategy fails."""
    return hashlib.sha256(f"anti_pattern\x1f{lesson_id}".encode()).hexdigest()[:32]


class LessonFinder:
    """Finds the lesson that an outcome is evidence for, by what was done and on which task."""

    def __init__(self, storage: StorageBackend, index: VectorIndex, embedder: EmbeddingProvider) -> None:
        self._storage = storage
        self._index = index
        self._embedder = embedder

    def around(self, outcome: Outcome) -> Neighbourhood:
        """The lesson of an outcome, new or known, and what happened on similar tasks."""
        neighbours = self._neighbours(outcome)
        same = next(
            (n for n in neighbours if n.outcome.lesson_id and self.is_same(outcome.strategy_used, n.outcome)), None
        )
        if same is not None and same.outcome.lesson_id is not None:
            return Neighbourhood(same.outcome.lesson_id, neighbours)
        return Neighbourhood(self._known_rule(outcome) or new_lesson_id(outcome), neighbours)

    def is_same(self, strategy: str | None, other: Outcome) -> bool:
        """Whether the strategy is that of the other outcome."""
        return self.same(strategy or "", other.strategy_used or "")

    def same(self, one: str, other: str) -> bool:
        """Whether two strategies are the same, in words or by meaning."""
        return same_strategy(one, other) or same_strategy(one, other, self.cosine(one, other))

    def cosine(self, one: str, other: str) -> float | None:
        """How alike two texts are by meaning; unknown where they cannot be embedded."""
        if not one.strip() or not other.strip():
            return None
        left, right = self._embedder.encode_batch([one, other])
        return next(cosines(left, [right.to_bytes()]))

    def _neighbours(self, outcome: Outcome) -> list[Neighbour]:
        vector = outcome.embedding
        if vector is None:
            return self._by_words(outcome)
        near = self._index.search(Outcome, vector, _scope_of(outcome), limit=_LOOKED_AT)
        similarity = {found.record_id: found.cosine for found in near if found.cosine >= _SIMILAR_TASKS_OF_A_TYPE}
        records = self._storage.get_many(Outcome, similarity, _scope_of(outcome))
        pairs = (Neighbour(record, similarity[record.id]) for record in records if record.id != outcome.id)
        return [pair for pair in pairs if pair.similarity >= _needed(outcome, pair.outcome)]

    def _by_words(self, outcome: Outcome) -> list[Neighbour]:
        """The similar tasks of an outcome that has no vector: those that share most of their words."""
        words = set(query_terms(outcome.task_description))
        hits = self._storage.search_text(Outcome, outcome.task_description, _scope_of(outcome), limit=_LOOKED_AT)
        pairs = (Neighbour(hit.record, _overlap(words, query_terms(hit.record.task_description))) for hit in hits)
        return [pair for pair in pairs if pair.similarity >= _SIMILAR_WORDS]

    def _known_rule(self, outcome: Outcome) -> str | None:
        """The heuristic that says so already, whoever wrote it."""
        vector = outcome.embedding
        if vector is None:
            return None
        near = self._index.search(Heuristic, vector, _scope_of(outcome), limit=_KNOWN_RULES_LOOKED_AT)
        likely = [found.record_id for found in near if found.cosine >= _SIMILAR_TASKS_OF_A_TYPE]
        rules = self._storage.get_many(Heuristic, likely, _scope_of(outcome))
        return next((rule.id for rule in rules if self.same(outcome.strategy_used or "", rule.strategy)), None)


def _needed(one: Outcome, other: Outcome) -> float:
    of_a_type = one.task_type is not None and one.task_type == other.task_type
    return _SIMILAR_TASKS_OF_A_TYPE if of_a_type else _SIMILAR_TASKS


def _scope_of(outcome: Outcome) -> Scope:
    return Scope(project_id=outcome.project_id, agent=outcome.agent)


def _overlap(words: set[str], others: Iterable[str]) -> float:
    theirs = set(others)
    return len(words & theirs) / len(words | theirs) if words | theirs else 0.0
