"""Lessons: which earlier outcomes a new one belongs together with.

A lesson is one strategy on similar tasks. Its outcomes share a `lesson_id`, which is also the id of the heuristic that
the lesson becomes, so that there is never a second one.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from alma.embeddings.base import EmbeddingProvider
from alma.learning.strategies import same_strategy, strategy_key
from alma.model.learning import Heuristic, Outcome
from alma.model.query import In
from alma.model.scope import Scope
from alma.model.text import query_terms
from alma.model.vector import Vector
from alma.storage.base import StorageBackend
from alma.storage.nearest import cosines
from alma.vectors.base import VectorIndex

_LOOKED_AT = 24
_KNOWN_RULES_LOOKED_AT = 8
_STRATEGIES_REMEMBERED, _TASKS_REMEMBERED = 500, 32
# How alike two tasks are that the same strategy is compared on, by meaning, or by words where there are no vectors.
_SIMILAR_TASKS, _SIMILAR_TASKS_OF_A_TYPE, _SIMILAR_WORDS = 0.65, 0.5, 0.5


class Seen(NamedTuple):
    """What counts of an outcome when it is compared with others."""

    id: str
    lesson_id: str | None
    task_type: str | None
    task_description: str
    strategy_used: str | None
    success: bool
    error_message: str | None
    timestamp: datetime | None


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """What is known around a new outcome: its lesson, and the outcomes on similar tasks, nearest first.

    A success of a lesson that was met just before says nothing new about its neighbours, so they are left out.
    """

    lesson_id: str
    neighbours: Sequence[Seen] = ()


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
        self._recent = _RecentLessons()

    def around(self, outcome: Outcome) -> Neighbourhood:
        """The lesson of an outcome, new or known, and what happened on similar tasks."""
        familiar = self._recent.lesson_of(outcome)
        if familiar is not None:
            return Neighbourhood(familiar, () if outcome.success else self._neighbours(outcome))
        found = self._searched(outcome)
        self._recent.note(outcome, found.lesson_id)
        return found

    def _searched(self, outcome: Outcome) -> Neighbourhood:
        neighbours = self._neighbours(outcome)
        strategy = outcome.strategy_used or ""
        for seen in neighbours:
            if seen.lesson_id is not None and self.same(strategy, seen.strategy_used or ""):
                return Neighbourhood(seen.lesson_id, neighbours)
        return Neighbourhood(self._known_rule(outcome) or new_lesson_id(outcome), neighbours)

    def same(self, one: str, other: str) -> bool:
        """Whether two strategies are the same, in words or by meaning."""
        if same_strategy(one, other):
            return True
        # Most pairs are different whatever they mean, and meaning costs most to find out.
        return same_strategy(one, other, 1.0) and same_strategy(one, other, self.cosine(one, other))

    def cosine(self, one: str, other: str) -> float | None:
        """How alike two texts are by meaning; unknown where they cannot be embedded."""
        if not one.strip() or not other.strip():
            return None
        left, right = self._embedder.encode_batch([one, other])
        return cosines(left, [right.to_bytes()])[0]

    def _neighbours(self, outcome: Outcome) -> list[Seen]:
        vector = outcome.embedding
        if vector is None:
            return self._by_words(outcome)
        near = self._index.search(Outcome, vector, scope_of(outcome), limit=_LOOKED_AT)
        similarity = {found.record_id: found.cosine for found in near if found.cosine >= _SIMILAR_TASKS_OF_A_TYPE}
        rows = self._storage.values(Outcome, Seen._fields, scope_of(outcome), In("id", list(similarity)))
        similar = [
            seen
            for seen in map(Seen._make, rows)
            if similarity[seen.id] >= _threshold(outcome.task_type, seen.task_type)
        ]
        return sorted(similar, key=lambda seen: -similarity[seen.id])

    def _by_words(self, outcome: Outcome) -> list[Seen]:
        """The similar tasks of an outcome that has no vector: those that share most of their words."""
        words = set(query_terms(outcome.task_description))
        found = self._storage.matching_ids(Outcome, outcome.task_description, scope_of(outcome), limit=_LOOKED_AT)
        ids = [record_id for record_id, _ in found]
        rows = map(Seen._make, self._storage.values(Outcome, Seen._fields, scope_of(outcome), In("id", ids)))
        return [seen for seen in rows if _overlap(words, query_terms(seen.task_description)) >= _SIMILAR_WORDS]

    def _known_rule(self, outcome: Outcome) -> str | None:
        """The heuristic that says so already, whoever wrote it."""
        strategy = outcome.strategy_used or ""
        return next((rule.id for rule in self.rules_near(outcome) if self.same(strategy, rule.strategy)), None)

    def rules_near(self, outcome: Outcome) -> list[Heuristic]:
        """The heuristics for tasks like this one."""
        vector = outcome.embedding
        if vector is None:
            return []
        near = self._index.search(Heuristic, vector, scope_of(outcome), limit=_KNOWN_RULES_LOOKED_AT)
        likely = [found.record_id for found in near if found.cosine >= _SIMILAR_TASKS_OF_A_TYPE]
        return self._storage.get_many(Heuristic, likely, scope_of(outcome))


class _RecentLessons:
    """The lessons that outcomes were evidence for lately: most outcomes are like one that came just before.

    It only proposes. What a lesson holds is read from the storage, where another process may have changed it.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[Scope, str], deque[tuple[bytes, str | None, str]]] = OrderedDict()
        self._lock = threading.Lock()

    def lesson_of(self, outcome: Outcome) -> str | None:
        if not isinstance(outcome.embedding, Vector):
            return None
        with self._lock:
            known = list(self._known.get(_doing(outcome), ()))
        if not known:
            return None
        similarities = cosines(outcome.embedding, [vector for vector, _, _ in known])
        for similarity, (_, task_type, lesson_id) in zip(similarities, known, strict=True):
            if similarity >= _threshold(outcome.task_type, task_type):
                return lesson_id
        return None

    def note(self, outcome: Outcome, lesson_id: str) -> None:
        if not isinstance(outcome.embedding, Vector):
            return
        with self._lock:
            known = self._known.setdefault(_doing(outcome), deque(maxlen=_TASKS_REMEMBERED))
            known.appendleft((outcome.embedding.to_bytes(), outcome.task_type, lesson_id))
            self._known.move_to_end(_doing(outcome))
            if len(self._known) > _STRATEGIES_REMEMBERED:
                self._known.popitem(last=False)


def _doing(outcome: Outcome) -> tuple[Scope, str]:
    return scope_of(outcome), strategy_key(outcome.strategy_used or "")


def _threshold(one: str | None, other: str | None) -> float:
    """How alike two tasks of these types must be."""
    return _SIMILAR_TASKS_OF_A_TYPE if one is not None and one == other else _SIMILAR_TASKS


def scope_of(outcome: Outcome) -> Scope:
    """Where an outcome is compared with others: its agent's in its project."""
    return Scope(project_id=outcome.project_id, agent=outcome.agent)


def _overlap(words: set[str], others: Iterable[str]) -> float:
    theirs = set(others)
    return len(words & theirs) / len(words | theirs) if words | theirs else 0.0
