"""Searching the journal: what a question finds inside a scope, through every filter, and why."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from alma import clock
from alma.errors import ValidationError
from alma.memory.filters import MemoryFilter, checked_filter, seen_from_here, viewer
from alma.memory.layers import LayerPlan, route_layers
from alma.model.governance import Attribution, checked_by
from alma.model.memory import Memory
from alma.model.query import And, Compare, Predicate
from alma.model.scope import Scope
from alma.model.slice import Dropped, Explanation, MemorySlice
from alma.retrieval.engine import RetrievalEngine
from alma.retrieval.searching import Mode

MOST_RESULTS = 100


@dataclass(frozen=True, slots=True)
class Found:
    """A memory that was found, its score and why it has it."""

    memory: Memory
    explanation: Explanation

    @property
    def score(self) -> float:
        return self.explanation.score

    @property
    def similarity(self) -> float | None:
        """The cosine of its meaning and the question's, where it was measured."""
        return self.explanation.similarity

    @property
    def relevance(self) -> float | None:
        """The probability that it has to do with the question, where that was measured."""
        return self.explanation.relevance

    def explain(self) -> str:
        """The terms that add up to the score, and what led to the memory."""
        return str(self.explanation)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What was found, best first; `degraded` is empty, or says what was down and what was done instead.

    `plan` says which layers were looked into where the router chose them.
    """

    hits: tuple[Found, ...]
    query: str
    mode: Mode
    degraded: str = ""
    plan: LayerPlan | None = None
    _slice: MemorySlice = dataclasses.field(default_factory=MemorySlice, repr=False, compare=False)

    @property
    def memories(self) -> tuple[Memory, ...]:
        return tuple(hit.memory for hit in self.hits)

    def __iter__(self) -> Iterator[Found]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def explain(self) -> list[Explanation]:
        """For every memory the terms that add up to its score, best first."""
        return [hit.explanation for hit in self.hits]

    def why_not(self, memory_id: str) -> Dropped | None:
        """At which stage a memory was dropped, or None when it was found."""
        if any(hit.memory.id == memory_id for hit in self.hits):
            return None
        return self._slice.why_not(memory_id)


def search(
    retrieval: RetrievalEngine,
    query: str,
    scope: Scope,
    by: Attribution,
    *,
    mode: Mode = "hybrid",
    where: MemoryFilter | None = None,
    min_similarity: float | None = None,
    limit: int = 10,
    routed: bool = False,
    now: datetime | None = None,
) -> SearchResult:
    """The memories that answer the question, out of those the caller may see and the filter lets through.

    In a project these are the project's, and those of the global layer that the caller carries from other projects.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST_RESULTS:
        raise ValidationError("search", "limit", limit, f"must be a whole number from 1 to {MOST_RESULTS}")
    checked_by("search", by)
    wanted, moment = checked_filter("search", where), now or clock.now()
    plan = _plan(query, scope, by, moment) if routed and not wanted.layers else None
    seen = seen_from_here(scope, by, wanted)
    if plan is not None:
        wanted = dataclasses.replace(wanted, layers=plan.layers)
    fulfilling = wanted.predicate(moment)
    places = [(scope, And(seen, fulfilling)), *_carried(scope, by, fulfilling)]
    found = retrieval.search(
        query,
        places,
        limit,
        mode=mode,
        min_similarity=_cosine(min_similarity),
        narrowed=wanted.narrows,
        now=now,
    )
    hits = tuple(Found(memory, found.explanation_of(memory.id)) for memory in found.memories)
    return SearchResult(hits, query, mode, found.degraded, plan, found)


def _carried(scope: Scope, by: Attribution, fulfilling: Predicate) -> list[tuple[Scope, Predicate]]:
    user_id = viewer(scope, by)
    if user_id is None or scope.project_id is None or scope.session_id is not None or scope.sealed:
        return []
    return [(Scope(user_id=user_id), And(fulfilling, Compare("layer_global", "eq", True)))]


def _plan(query: str, scope: Scope, by: Attribution, now: datetime) -> LayerPlan:
    return route_layers(
        query,
        user_id=viewer(scope, by),
        project_id=scope.project_id,
        session_id=by.session_id or scope.session_id,
        now=now,
    )


def _cosine(least: float | None) -> float | None:
    if least is None:
        return None
    if isinstance(least, bool) or not isinstance(least, int | float) or not -1 <= least <= 1:
        raise ValidationError("search", "min_similarity", least, "must be a number from -1 to 1")
    return float(least)
