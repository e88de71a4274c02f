"""The retrieval engine: embed, search, rank and pack, with a cache of results."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from alma import clock
from alma.cache.base import Activity, CacheBackend, NullCache, Searched, dropped_unknown
from alma.cache.local import RetrievalCache
from alma.embeddings.base import EmbeddingProvider, as_provider
from alma.errors import (
    ConfigurationError,
    FullTextMissingError,
    ProviderError,
    StorageError,
    ValidationError,
)
from alma.model.common import checked_name, checked_part
from alma.model.fields import check_timestamp
from alma.model.learning import EVIDENCE_HALF_LIFE_DAYS
from alma.model.memory import Memory
from alma.model.query import Predicate, parsed
from alma.model.record import Record
from alma.model.scope import MemoryScope, Scope, checked_scope
from alma.model.slice import Dropped, MemorySlice
from alma.model.vector import Vector
from alma.retrieval import router
from alma.retrieval.candidates import gather
from alma.retrieval.context import add_context
from alma.retrieval.earlier import EarlierCalls
from alma.retrieval.packing import DropReason, Duplicates, Results, without
from alma.retrieval.query_text import QueryEmbedder, question_of
from alma.retrieval.ranking import Ranker
from alma.retrieval.relevance import Query, default_relevance
from alma.retrieval.router import RetrievalRequest, SearchRequest, Target
from alma.retrieval.scoring import MEMORY_WEIGHTS, Scorer, ScoringWeights
from alma.retrieval.simple_search import Mode, newest_memories, search_by_meaning, search_by_words
from alma.retrieval.supersession import next_change, still_valid
from alma.retrieval.time_filters import apply_time, propose_of_time, time_filter
from alma.retrieval.tuning import TUNING
from alma.retrieval.writing import join_space
from alma.storage.base import StorageBackend, Transaction, checked_storage
from alma.storage.earlier import NamedMethodsStorage, has_only_named_methods
from alma.text.tokens import compounds_of, query_terms
from alma.text.word_forms import spelled_out
from alma.vectors.base import VectorIndex


class _Found(NamedTuple):
    """A slice, the generation of the store that it was read from, and when it changes without a write."""

    slice: MemorySlice
    generation: str
    changes_at: datetime | None = None


class _EmbeddedQuery(NamedTuple):
    """The vectors of a query and of the question inside it, if it is long, and the problems of embedding them."""

    vector: Vector | None
    question: str | None
    question_vector: Vector | None
    problems: tuple[str, ...]


class RetrievalEngine(EarlierCalls):
    """Finds memories by meaning, words and context inside a scope, ranks them, and explains why.

    `embedding_provider` is a provider or the name of one ("local", "openai", "azure", "mock"); `vector_index` is the
    index to search, by default that of the store.
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
        searches: CacheBackend | None = None,
        activity: Activity | None = None,
    ) -> None:
        is_copied = has_only_named_methods(storage)
        if not is_copied:
            checked_storage("retrieval", storage)
        embedder = as_provider(_provider(embedding_provider))
        if is_copied:
            storage = NamedMethodsStorage(storage, embedder.dimension, embedder.model, embedder.encode_batch)
        self.storage = storage
        self.embedder = join_space(storage, embedder)
        self._queries = QueryEmbedder(self.embedder, storage)
        self.relevance = default_relevance()
        self.weights = _weights("scoring_weights", scoring_weights or ScoringWeights())
        self.memory_weights = _weights("memory_weights", memory_weights)
        self.half_life_days = _positive("recency_half_life_days", recency_half_life_days)
        # The facade sets the half-life that its learning protocol uses.
        self.evidence_half_life_days = EVIDENCE_HALF_LIFE_DAYS
        self.min_score = _number("min_score_threshold", min_score_threshold)
        if cache is None:
            cache = RetrievalCache(max_cache_entries) if enable_cache else NullCache()
        self.cache = checked_part(
            "retrieval", "cache", cache, CacheBackend, 'a cache, as create_cache("memory") makes one'
        )
        self._ttl_seconds = _positive("cache_ttl_seconds", cache_ttl_seconds)
        self.searches = NullCache() if searches is None else searches
        self.activity = Activity() if activity is None else activity
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

        `kinds` limits what is searched. `now` is the time of the query, for its time expressions and for recency.
        `memories_within` limits general memories to those of a user or an agent. `weak` returns weak lessons even
        without a strong one, and includes weak items in the prompt.
        """
        started = time.perf_counter()
        agent = checked_name("retrieve", "agent", agent)
        request = RetrievalRequest(
            query=router.checked_query(query),
            agent=agent,
            project_id=checked_name("retrieve", "project_id", project_id),
            readable_agents=router.readable_agents(agent, scope, include_shared),
            user_id=None if user_id is None else checked_name("retrieve", "user_id", user_id),
            session_id=None if session_id is None else checked_name("retrieve", "session_id", session_id),
            top_k=router.checked_top_k(top_k),
            kinds=router.checked_kinds(kinds),
            now=clock.now() if now is None else _checked_now(now),
            memories_within=None if memories_within is None else checked_scope("memories_within", memories_within),
            weak=router.checked_flag("weak", weak),
        )
        if isinstance(self.storage, NamedMethodsStorage):
            self.storage.refresh(project_id, request.readable_agents, user_id)
        key = self._cache_key(request)
        cached = None if bypass_cache or now is not None else self.cache.get(key, self.storage.generation())
        if cached is not None and still_valid(cached):
            reasons = self._cached_reasons(cached, request, router.route(request))
            cached = replace(cached, retrieval_time_ms=_since(started), from_cache=True, _why_not=reasons)
            return self._published(request, key, cached)
        found, generation, changes_at = self._find(request, router.route(request))
        if not found.degraded and now is None and not self.storage.is_writing:
            seconds = math.inf if changes_at is None else (changes_at - request.now).total_seconds()
            self.cache.put(key, generation, found, min(self._ttl_seconds, seconds))
        return self._published(request, key, replace(found, retrieval_time_ms=_since(started)))

    def _published(self, request: RetrievalRequest, key: str, found: MemorySlice) -> MemorySlice:
        """The slice, after other programs were told of it."""
        milliseconds = found.retrieval_time_ms or 0.0
        told = Searched(request.query, "retrieve", request.user_id, found.memories, milliseconds, key)
        self.activity.searched(told)
        return found

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
        key: str = "",
    ) -> MemorySlice:
        """The general memories that match the query best, inside these scopes and their predicates.

        `hybrid` ranks as `retrieve` does, `semantic` by the cosine alone and `keyword` by words alone. Preferences and
        instructions are not added. With `narrowed`, few memories may fulfil the predicates. The answer is cached in
        `searches` if `key` says everything that it depends on besides the store and the engine.
        """
        started = time.perf_counter()
        request = SearchRequest(
            query=router.checked_query(query),
            top_k=router.checked_top_k(limit),
            kinds=(Memory,),
            now=clock.now() if now is None else _checked_now(now),
            min_similarity=min_similarity,
            keep_duplicates=True,
        )
        targets = [Target(Memory, scope, parsed(Memory.spec, where), selective=narrowed) for scope, where in places]
        if not key or now is not None:
            return replace(self._searched(request, targets, mode), retrieval_time_ms=_since(started))
        key += _hour(request.now).isoformat() + self._settings()
        cached = self.searches.get(key, self.storage.generation())
        if cached is not None and still_valid(cached):
            reasons = self._cached_reasons(cached, request, targets)
            return replace(cached, retrieval_time_ms=_since(started), from_cache=True, _why_not=reasons)
        with self.storage.reading() as (tx, generation):
            found = self._searched(request, targets, mode)
            changes_at = None if found.degraded else next_change(tx, found.memories, request.now)
        if not found.degraded and not self.storage.is_writing:
            seconds = math.inf if changes_at is None else (changes_at - request.now).total_seconds()
            self.searches.put(key, generation, found, seconds)
        return replace(found, retrieval_time_ms=_since(started))

    def _searched(self, request: SearchRequest, targets: Sequence[Target], mode: Mode) -> MemorySlice:
        if mode == "hybrid":
            return self._find(request, targets).slice
        if mode == "keyword":
            return self._by_words(request, targets)
        if mode == "semantic":
            return self._by_meaning(request, targets)
        raise ValidationError("search", "mode", mode, "must be 'semantic', 'keyword' or 'hybrid'")

    def close(self) -> None:
        """Release the index; the storage stays open."""
        self.index.close()

    # ------------------------------------------------------------------ the steps

    def _find(self, request: SearchRequest, targets: Sequence[Target]) -> _Found:
        """Embed the query and search, without full-text search or the index once one of them has failed."""
        vector, problems = self._queries.vector(spelled_out(request.query))
        question = question_of(request.query)
        # Both are embedded before the snapshot begins: a provider may take seconds.
        question_vector, further = (None, []) if question is None else self._queries.vector(question)
        embedded = _EmbeddedQuery(vector, question, question_vector, (*problems, *further))
        while True:
            # On a server a failed statement aborts the transaction, so the search is repeated in a new one.
            try:
                return self._find_in_snapshot(request, targets, embedded)
            except FullTextMissingError as exc:
                if request.text_search_error is not None:
                    raise
                request = replace(request, text_search_error=exc)
            except ProviderError as exc:
                if request.index_error is not None:
                    raise
                request = replace(request, index_error=exc)

    def _find_in_snapshot(self, request: SearchRequest, targets: Sequence[Target], embedded: _EmbeddedQuery) -> _Found:
        problems = [*embedded.problems]
        with self.storage.reading() as (tx, generation):
            results = self._search_beside_duplicates(tx, request, targets, embedded.vector, problems)
            if results is not None and embedded.question is not None:
                # A long task outweighs its question, so the question is searched for separately as well.
                asked = replace(request, query=embedded.question)
                second = self._search_beside_duplicates(tx, asked, targets, embedded.question_vector, problems)
                if second is not None:
                    results.join(second, request.top_k)
            if results is None or (problems and not results.found_something):
                degraded = _sentence(problems, "the newest ones are given")
                return _Found(newest_memories(self.storage, targets, request, degraded), generation)
        degraded = _sentence(problems, "found without it") if problems else self._without_some_vectors()
        return _Found(results.to_slice(self.storage, request, degraded), generation, results.changes_at)

    def _search_beside_duplicates(
        self,
        tx: Transaction,
        request: SearchRequest,
        targets: Sequence[Target],
        vector: Vector | None,
        problems: list[str],
    ) -> Results | None:
        """Search, and if duplicates displaced other texts, search again without the duplicates."""
        results = self._search(tx, request, targets, vector, problems)
        duplicates, dropped = Duplicates(), dict[str, DropReason]()
        for _ in range(TUNING.searches_beside_duplicates):
            if results is None or not results.duplicates or len(duplicates.spellings) > TUNING.duplicate_texts:
                break
            duplicates.add(results.duplicates)
            further = self._search(tx, request, without(targets, duplicates), vector, problems)
            if further is None:
                break
            dropped = {**dropped, **results.dropped}
            further.targets, further.dropped = targets, {**dropped, **further.dropped}
            results = further
        return results

    def _search(
        self,
        tx: Transaction,
        request: SearchRequest,
        targets: Sequence[Target],
        vector: Vector | None,
        problems: list[str],
    ) -> Results | None:
        """One search: candidates, time range, context, then the ranking; None if nothing could be searched."""
        searched = [target for target in targets if target.searched]
        pool = gather(tx, self.index, searched, request, vector)
        times = time_filter(tx, request, searched if pool.has_words else ())
        propose_of_time(tx, pool, times, searched, request.top_k)
        problems.extend(pool.problems)
        if problems and not len(pool):
            return None
        add_context(tx, pool, request, times)
        apply_time(tx, pool, request, times)
        half_lives = self.half_life_days, self.evidence_half_life_days
        scorer = Scorer(request, self.weights, self.memory_weights, *half_lives, window=times.window)
        # A search, unlike a retrieval, returns its best results with any score.
        min_score = self.min_score if isinstance(request, RetrievalRequest) else -math.inf
        ranker = Ranker(tx, request, scorer, self.relevance, min_score)
        return ranker.rank(pool, targets, self._query(request, vector))

    def _query(self, request: SearchRequest, vector: Vector | None) -> Query:
        """The features of the query for the comparison with records."""
        understood = self.embedder.reads(request.query)
        return Query(
            vector,
            frozenset(query_terms(request.query)),
            learned=self.embedder.speaks(request.query),
            compounds=compounds_of(request.query),
            reads=self.embedder.reads if understood else None,
            understood=understood,
        )

    # ------------------------------------------------------------------ search by one source

    def _by_meaning(self, request: SearchRequest, targets: Sequence[Target]) -> MemorySlice:
        vector, problems = self._queries.vector(request.query)
        if vector is not None:
            try:
                found = search_by_meaning(self.storage, self.index, targets, request, vector)
                return replace(found, degraded=self._without_some_vectors())
            except ProviderError as exc:
                problems.append(f"the vector index is down ({exc})")
        return replace(search_by_words(self.storage, targets, request), degraded=_sentence(problems, "found by words"))

    def _by_words(self, request: SearchRequest, targets: Sequence[Target]) -> MemorySlice:
        try:
            return search_by_words(self.storage, targets, request)
        except StorageError as exc:
            vector, problems = self._queries.vector(request.query)
            problems.insert(0, f"full-text search is down ({exc})")
            if vector is None:
                degraded = _sentence(problems, "the newest ones are given")
                return newest_memories(self.storage, targets, request, degraded)
            found = search_by_meaning(self.storage, self.index, targets, request, vector)
            return replace(found, degraded=_sentence(problems, "found by meaning"))

    def _without_some_vectors(self) -> str:
        problem = self._queries.missing_vectors()
        return problem and _sentence([problem], "that part is found by words only")

    # ------------------------------------------------------------------ the cache

    def _cache_key(self, request: RetrievalRequest) -> str:
        """The cache key: everything that a slice depends on besides the store; the time is rounded to the hour."""
        asked = (request.query, request.agent, request.project_id, request.readable_agents, request.user_id)
        kinds = [cls.spec.kind for cls in request.kinds]
        hour = _hour(request.now)
        wanted = (request.session_id, request.top_k, kinds, request.memories_within, request.weak, hour)
        return repr((asked, wanted)) + self._settings()

    def _settings(self) -> str:
        half_lives = (self.half_life_days, self.evidence_half_life_days)
        return _repr(self.weights, self.memory_weights, half_lives, self.min_score, self.embedder.model)

    def _cached_reasons(
        self, cached: MemorySlice, request: SearchRequest, targets: Sequence[Target]
    ) -> Callable[[str], Dropped]:
        """The answer of `why_not` for a cached slice; an external cache has no reasons, so the search is repeated."""
        if cached._why_not is not dropped_unknown:
            return cached._why_not

        def search_again(record_id: str) -> Dropped:
            found = self._find(request, targets).slice
            return found.why_not(record_id) or Dropped("cache", "it was stored or changed after this result was cached")

        return search_again


def _hour(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)


@lru_cache(maxsize=16)
def _repr(*settings: Hashable) -> str:
    """The settings of the engine as text, for cache keys."""
    return repr(settings)


def _checked_now(now: datetime) -> datetime:
    """The time in its own zone, which decides what "yesterday" is."""
    try:
        check_timestamp(now)
    except ValueError as exc:
        raise ValidationError("retrieve", "now", now, str(exc)) from None
    return now


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
    # The documented constructor accepts provider names, which alma.bootstrap resolves.
    from alma.bootstrap import create_embedder

    return create_embedder(provider)


def _index_for(storage: StorageBackend) -> VectorIndex:
    from alma.bootstrap import open_vector_index

    return open_vector_index(storage)
