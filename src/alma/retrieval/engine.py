"""The engine: from a task to the few memories worth knowing, step by step."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from alma import clock
from alma.cache.base import CacheBackend, NullCache, not_kept
from alma.cache.local import RetrievalCache
from alma.embeddings.base import EmbeddingProvider
from alma.errors import (
    ConfigurationError,
    FullTextMissingError,
    ProviderError,
    ScopeViolationError,
    StorageError,
    ValidationError,
)
from alma.model.common import checked_part
from alma.model.fields import check_timestamp
from alma.model.learning import EVIDENCE_HALF_LIFE_DAYS
from alma.model.memory import Memory
from alma.model.query import Predicate, parsed
from alma.model.record import Record
from alma.model.scope import MemoryScope, Scope, checked_scope
from alma.model.slice import Dropped, MemorySlice
from alma.model.vector import Vector
from alma.retrieval import router
from alma.retrieval.absent import Note
from alma.retrieval.asking import asks_by_words, asks_when
from alma.retrieval.candidates import gather
from alma.retrieval.context import add_context
from alma.retrieval.copies import Crowd, without_copies
from alma.retrieval.embedding import QuestionEmbedder
from alma.retrieval.focus import asked_part
from alma.retrieval.found import Ranking
from alma.retrieval.moving import Moving
from alma.retrieval.ranking import rank
from alma.retrieval.recent import most_recent
from alma.retrieval.relevance import default_relevance
from alma.retrieval.router import Asked, Request, Target
from alma.retrieval.scorer import Scorer
from alma.retrieval.scoring import MEMORY_WEIGHTS, ScoringWeights
from alma.retrieval.searching import Mode, by_meaning, by_words
from alma.retrieval.standing import holds
from alma.retrieval.times import add_times, asked_time, propose_moments
from alma.retrieval.writing import join_space
from alma.storage.base import StorageBackend, checked_storage
from alma.text.abbreviations import spelled_out
from alma.vectors.base import VectorIndex

# Every further one takes as long as the first.
_FURTHER_LOOKS = 5
# Each of them may be down.
_SOURCES = ("words", "vectors")


class _Found(NamedTuple):
    """What is found, the generation of what was stored then, and when it is no longer what would be found."""

    slice: MemorySlice
    generation: str
    changes_at: datetime | None = None


class _Embedded(NamedTuple):
    """The vectors of a request and of the part of it that asks, if there is one, and what was wrong with them."""

    vector: Vector | None
    part: str | None
    part_vector: Vector | None
    problems: tuple[str, ...]


class RetrievalEngine:
    """Finds memories by meaning, words and context inside a scope, ranks them, and can say why.

    `embedding_provider` is a provider or the name of one ("local", "openai", "azure", "mock"); `vector_index` is the
    index to ask, by default the one that suits the store.
    """

    def __init__(
        self,
        storage: StorageBackend,
        embedding_provider: EmbeddingProvider | str = "local",
        cache_ttl_seconds: float = 300,
        enable_cache: bool = True,
        max_cache_entries: int = 1000,
        scoring_weights: ScoringWeights | None = None,
        recency_half_life_days: float = 30.0,
        min_score_threshold: float = 0.2,
        *,
        memory_weights: ScoringWeights = MEMORY_WEIGHTS,
        vector_index: VectorIndex | None = None,
        cache: CacheBackend | None = None,
    ) -> None:
        self.storage = checked_storage("retrieval", storage)
        self.embedder = join_space(storage, _provider(embedding_provider))
        self._questions = QuestionEmbedder(self.embedder, storage)
        self._moving = Moving(storage)
        self.relevance = default_relevance()
        self.weights = _weights("scoring_weights", scoring_weights or ScoringWeights())
        self.memory_weights = _weights("memory_weights", memory_weights)
        self.half_life_days = _positive("recency_half_life_days", recency_half_life_days)
        # How evidence ages is a matter of learning: the facade puts here what its protocol weighs by.
        self.evidence_half_life_days = EVIDENCE_HALF_LIFE_DAYS
        self.min_score = _number("min_score_threshold", min_score_threshold)
        if cache is None:
            cache = RetrievalCache(max_cache_entries) if enable_cache else NullCache()
        self.cache = checked_part(
            "retrieval", "cache", cache, CacheBackend, 'a cache, as create_cache("memory") makes one'
        )
        self._ttl_seconds = _positive("cache_ttl_seconds", cache_ttl_seconds)
        index = _index_for(storage) if vector_index is None else vector_index
        self.index = checked_part(
            "retrieval", "vector_index", index, VectorIndex, "a vector index, with search and close"
        )

    def retrieve(
        self,
        query: str,
        agent: str,
        project_id: str,
        user_id: str | None = None,
        top_k: int = 5,
        scope: MemoryScope | None = None,
        bypass_cache: bool = False,
        include_shared: bool = True,
        *,
        session_id: str | None = None,
        kinds: Iterable[type[Record] | str] | None = None,
        now: datetime | None = None,
        memories_within: Scope | None = None,
        weak: bool = False,
    ) -> MemorySlice:
        """The memories worth knowing for this task: up to `top_k` of each kind, best first.

        `kinds` limits what is looked for. `now` is when the question is asked, for its time expressions and for
        recency. General memories can be limited to those of a user or an agent with `memories_within`. Weak lessons
        without a strong one are handed over, and weak items are in the prompt, only where `weak` asks for them.
        """
        started = time.perf_counter()
        request = self._request(
            query,
            agent,
            project_id,
            user_id,
            top_k,
            scope,
            include_shared,
            session_id,
            kinds,
            now,
            memories_within,
            weak,
        )
        key = self._cache_key(request)
        known = None if bypass_cache or now is not None else self.cache.get(key, self.storage.generation())
        if known is not None and _still_alive(known):
            return replace(
                known, retrieval_time_ms=_since(started), from_cache=True, _why_not=self._reasons(known, request)
            )
        found, generation, changes_at = self._ranked(request, router.route(request))
        if not found.degraded and now is None and not self.storage.is_writing:
            self.cache.put(key, generation, found, self._seconds_until(changes_at, request.now))
        return replace(found, retrieval_time_ms=_since(started))

    def search(
        self,
        query: str,
        places: Sequence[tuple[Scope, Predicate]],
        limit: int = 10,
        *,
        mode: Mode = "hybrid",
        min_similarity: float | None = None,
        narrowed: bool = False,
        now: datetime | None = None,
    ) -> MemorySlice:
        """The general memories that answer the question best, inside these scopes and fulfilling what holds in each.

        `hybrid` ranks as `retrieve` does, `semantic` by the cosine alone and `keyword` by words alone. Nothing is
        cached, and nothing comes by rule. `narrowed` says that few memories may fulfil what holds.
        """
        started = time.perf_counter()
        asked = Asked(
            query=router.checked_query(query),
            top_k=router.checked_top_k(limit),
            kinds=(Memory,),
            now=clock.now() if now is None else _checked_now(now),
            min_similarity=min_similarity,
            with_repetitions=True,
        )
        targets = [Target(Memory, scope, parsed(Memory.spec, where), narrowed=narrowed) for scope, where in places]
        if mode == "hybrid":
            found = self._ranked(asked, targets).slice
        elif mode == "keyword":
            found = self._by_words(asked, targets)
        elif mode == "semantic":
            found = self._by_meaning(asked, targets)
        else:
            raise ValidationError("search", "mode", mode, "must be 'semantic', 'keyword' or 'hybrid'")
        return replace(found, retrieval_time_ms=_since(started))

    def _by_meaning(self, asked: Asked, targets: Sequence[Target]) -> MemorySlice:
        vector, problems = self._questions.vector(asked.query)
        if vector is not None:
            try:
                found = by_meaning(self.storage, self.index, targets, asked, vector)
                return replace(found, degraded=self._partly())
            except ProviderError as exc:
                problems.append(f"the vector index is down ({exc})")
        return replace(by_words(self.storage, targets, asked), degraded=_sentence(problems, "found by words"))

    def _by_words(self, asked: Asked, targets: Sequence[Target]) -> MemorySlice:
        try:
            return by_words(self.storage, targets, asked)
        except StorageError as down:
            vector, problems = self._questions.vector(asked.query)
            problems.insert(0, f"full-text search is down ({down})")
            if vector is None:
                return self._newest(asked, targets, problems)
            found = by_meaning(self.storage, self.index, targets, asked, vector)
            return replace(found, degraded=_sentence(problems, "found by meaning"))

    def _reasons(self, known: MemorySlice, request: Request) -> Callable[[str], Dropped]:
        """What a remembered slice answers to `why_not`: where it was kept without that, the task is looked at again."""
        if known._why_not is not not_kept:
            return known._why_not

        def looked_at_again(record_id: str) -> Dropped:
            found = self._ranked(request, router.route(request)).slice
            return found.why_not(record_id) or Dropped("cache", "it was stored or changed since this was remembered")

        return looked_at_again

    def _cache_key(self, request: Request) -> str:
        """All that an answer depends on besides what is stored; when it is asked, to the hour."""
        asked = (request.query, request.agent, request.project_id, request.readable_agents, request.user_id)
        kinds = [cls.spec.kind for cls in request.kinds]
        # What "yesterday" means changes at midnight.
        hour = request.now.replace(minute=0, second=0, microsecond=0)
        wanted = (request.session_id, request.top_k, kinds, request.memories_within, request.weak, hour)
        half_lives = (self.half_life_days, self.evidence_half_life_days)
        ranked = _spelled(self.weights, self.memory_weights, half_lives, self.min_score, self.embedder.model)
        return repr((asked, wanted)) + ranked

    def close(self) -> None:
        """Release the index; the storage stays open."""
        self.index.close()

    # ------------------------------------------------------------------ the steps

    def _seconds_until(self, changes_at: datetime | None, now: datetime) -> float:
        """How long an answer may be remembered that is another one from some moment on."""
        return self._ttl_seconds if changes_at is None else min(self._ttl_seconds, (changes_at - now).total_seconds())

    def _ranked(self, request: Asked, targets: Sequence[Target]) -> _Found:
        vector, problems = self._questions.vector(spelled_out(request.query))
        part = asked_part(request.query)
        # Embedded before anything is read: a service may take its time, and a snapshot is not to wait for it.
        part_vector, further = (None, []) if part is None else self._questions.vector(part)
        embedded = _Embedded(vector, part, part_vector, (*problems, *further))
        for _ in _SOURCES:
            # On a server a statement that failed ended the transaction: all is looked for once more, without it.
            try:
                return self._found(request, targets, embedded)
            except FullTextMissingError as exc:
                request = replace(request, words_down=exc)
            except ProviderError as exc:
                request = replace(request, index_down=exc)
        return self._found(request, targets, embedded)

    def _found(self, request: Asked, targets: Sequence[Target], embedded: _Embedded) -> _Found:
        problems = [*embedded.problems]
        with self.storage.reading() as (_, generation):
            ranking = self._looked_beside_copies(request, targets, embedded.vector, problems)
            if ranking is not None and embedded.part is not None:
                # In all of a long task what it asks is lost among what is beside it.
                part = replace(request, query=embedded.part)
                by_part = self._looked_beside_copies(part, targets, embedded.part_vector, problems)
                ranking.join(by_part, request.top_k)
            if ranking is None or (problems and not ranking.found_something):
                return _Found(self._newest(request, targets, problems), generation)
        degraded = _sentence(problems, "found without it") if problems else self._partly()
        return _Found(ranking.to_slice(request, degraded), generation, ranking.changes_at)

    def _looked(
        self, request: Asked, targets: Sequence[Target], vector: Vector | None, problems: list[str]
    ) -> Ranking | None:
        """What is found in these places; nothing where too little could be searched to propose anything."""
        searched = [target for target in targets if target.searched]
        pool = gather(self.storage, self.index, searched, request, vector)
        # When an event was is told by a memory that words find.
        asked = asked_time(self.storage, request, searched if pool.has_words else ())
        propose_moments(self.storage, pool, asked, searched, request.top_k)
        problems.extend(pool.problems)
        if problems and not len(pool):
            return None
        add_context(self.storage, pool, request, asked)
        add_times(self.storage, pool, request, asked)
        scorer = Scorer(
            request,
            self.weights,
            self.memory_weights,
            self.half_life_days,
            self.evidence_half_life_days,
            wants_time=asks_when(request.query),
            by_passages=asks_by_words(request.query),
            window=asked.window,
        )
        return rank(
            self.storage,
            pool,
            request,
            targets,
            vector,
            scorer,
            # A search gives its best, however bad that is.
            self.min_score if isinstance(request, Request) else -math.inf,
            self.relevance,
            reads=self.embedder.reads,
            learned=self.embedder.speaks(request.query),
        )

    def _looked_beside_copies(
        self, request: Asked, targets: Sequence[Target], vector: Vector | None, problems: list[str]
    ) -> Ranking | None:
        ranking = self._looked(request, targets, vector, problems)
        if ranking is None or not ranking.crowd:
            return ranking
        return self._beside_copies(ranking, request, vector, problems)

    def _beside_copies(self, first: Ranking, request: Asked, vector: Vector | None, problems: list[str]) -> Ranking:
        """What is found where copies of the same do not stand before everything else."""
        found, crowd, dropped = first, Crowd(), dict[str, Note]()
        for _ in range(_FURTHER_LOOKS):
            crowd.add(found.crowd)
            further = self._looked(request, without_copies(first.targets, crowd), vector, problems)
            if further is None:
                break
            dropped, found = {**dropped, **found.dropped}, further
            if not found.crowd or not crowd.is_small:
                break
        found.targets, found.dropped = first.targets, {**dropped, **found.dropped}
        return found

    def _partly(self) -> str:
        """What is to be said where some memories have no vector to be found by."""
        problem = self._moving.problem()
        return problem and _sentence([problem], "that part is found by words only")

    def _newest(self, request: Asked, targets: Sequence[Target], problems: Sequence[str]) -> MemorySlice:
        """What is better than nothing where too little could be searched."""
        return most_recent(self.storage, targets, request, _sentence(problems, "the newest ones are given"))

    # ------------------------------------------------------------------ the request

    def _request(
        self,
        query: str,
        agent: str,
        project_id: str,
        user_id: str | None,
        top_k: int,
        scope: MemoryScope | None,
        include_shared: bool,
        session_id: str | None,
        kinds: Iterable[type[Record] | str] | None,
        now: datetime | None,
        memories_within: Scope | None,
        weak: bool,
    ) -> Request:
        agent = router.checked_owner("agent", agent)
        return Request(
            query=router.checked_query(query),
            agent=agent,
            project_id=router.checked_owner("project_id", project_id),
            readable_agents=_readable(agent, scope, include_shared),
            user_id=None if user_id is None else router.checked_owner("user_id", user_id),
            session_id=None if session_id is None else router.checked_owner("session_id", session_id),
            top_k=router.checked_top_k(top_k),
            kinds=router.checked_kinds(kinds),
            now=clock.now() if now is None else _checked_now(now),
            memories_within=None if memories_within is None else checked_scope("memories_within", memories_within),
            weak=router.checked_flag("weak", weak),
        )


@lru_cache(maxsize=16)
def _spelled(*ranked_by: Hashable) -> str:
    """What an engine ranks by, which is the same for every task."""
    return repr(ranked_by)


def _readable(agent: str, scope: MemoryScope | None, include_shared: bool) -> tuple[str, ...]:
    if scope is None:
        return (agent,)
    if not isinstance(scope, MemoryScope):
        raise ScopeViolationError("retrieve", "scope", scope, "must be a MemoryScope")
    if scope.agent_name != agent:
        raise ScopeViolationError("retrieve", "scope", scope.agent_name, f"must be the scope of the agent {agent!r}")
    return tuple(scope.get_readable_agents()) if include_shared else (agent,)


def _checked_now(now: datetime) -> datetime:
    try:
        check_timestamp(now)
    except ValueError as exc:
        raise ValidationError("retrieve", "now", now, str(exc)) from None
    # In its own time zone: whoever asks what was yesterday means the day there.
    return now


def _still_alive(found: MemorySlice) -> bool:
    """Whether nothing in a remembered slice has expired since, and every instruction still holds."""
    moment = clock.now()
    ends = (getattr(record, "expires_at", None) for record in found)
    if not all(end is None or end > moment for end in ends):
        return False
    return all(holds(record, moment) for record in found.instructions)


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1000


def _sentence(problems: Sequence[str], instead: str) -> str:
    return f"{'; '.join(dict.fromkeys(problems))}: {instead}"


def _positive(name: str, value: float) -> float:
    if _number(name, value) <= 0:
        raise ConfigurationError(f"{name} must be a number above 0, not {value!r}")
    return float(value)


def _number(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ConfigurationError(f"{name} must be a number, not {value!r}")
    return float(value)


def _weights(name: str, weights: ScoringWeights) -> ScoringWeights:
    if not isinstance(weights, ScoringWeights):
        raise ConfigurationError(
            f"{name} must be ScoringWeights, for example ScoringWeights(recency=0.1), not {weights!r}"
        )
    return weights


def _provider(provider: EmbeddingProvider | str) -> EmbeddingProvider:
    if not isinstance(provider, str):
        return provider
    # The documented constructor takes names; only the wiring knows what they stand for.
    from alma.bootstrap import create_embedder

    return create_embedder(provider)


def _index_for(storage: StorageBackend) -> VectorIndex:
    from alma.bootstrap import open_vector_index

    return open_vector_index(storage)
