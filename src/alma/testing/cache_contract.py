"""The cache contract as tests: subclass the suite and add a `cache` fixture.

class TestMyCache(CacheContract):
    @pytest.fixture
    def cache(self):
        return MyCache()

A cache that forgets whatever it likes, as it may, passes `ForgetfulCacheContract`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from alma.cache.base import CacheBackend
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.memory import Memory
from alma.model.slice import Explanation, MemorySlice
from alma.testing import builders as make
from alma.testing.strategies import records, texts

NOON = datetime(2026, 5, 3, 12, tzinfo=UTC)
_PATIENCE_SECONDS = 10.0


def a_slice(text: str = "the build moved") -> MemorySlice:
    """A slice with a memory of every kind and values in all fields."""
    memory = make.a_memory(content=text, tags=["a", "ä"], embedding=[0.1, -2.5, 0, 1e-30], event_time=NOON)
    heuristic = make.a_heuristic(strategy=text, metadata={"deep": [1, {"x": None}]}, confidence=1 / 3)
    explanation = Explanation("memory", memory.id, 0.7, {"meaning": 0.6, "recency": 0.1}, ("meaning", "words"))
    return MemorySlice(
        heuristics=[heuristic],
        outcomes=[make.an_outcome(error_message=text)],
        preferences=[make.a_preference(category=None)],
        domain_knowledge=[make.some_knowledge(domain="日本語")],
        anti_patterns=[make.an_anti_pattern(why_bad="😀")],
        memories=[memory],
        instructions=[make.a_memory(memory_type="instruction")],
        query=text,
        agent="helena",
        retrieval_time_ms=1.5,
        degraded="the index is down: found without it",
        explanations={memory.id: explanation},
    )


class ForgetfulCacheContract:
    """The contract of every cache, even one that stores nothing."""

    def test_an_unknown_key_is_a_miss(self, cache: CacheBackend) -> None:
        assert cache.get("q", "g") is None

    def test_a_slice_is_never_given_for_another_generation(self, cache: CacheBackend) -> None:
        cache.put("q", "one", a_slice(), 60)
        assert cache.get("q", "two") is None
        assert cache.get("q", "") is None

    def test_a_slice_is_never_given_for_another_key(self, cache: CacheBackend) -> None:
        cache.put("q", "g", a_slice(), 60)
        assert cache.get("Q", "g") is None
        assert cache.get("qg", "") is None
        assert cache.get("", "gq") is None

    @pytest.mark.parametrize("seconds", [0, -1, 0.0])
    def test_a_slice_without_time_to_live_is_never_given(self, cache: CacheBackend, seconds: float) -> None:
        cache.put("q", "g", a_slice(), seconds)
        assert cache.get("q", "g") is None

    def test_clear_removes_everything(self, cache: CacheBackend) -> None:
        for key in ("a", "b"):
            cache.put(key, "g", a_slice(), 60)
        cache.clear()
        assert cache.get("a", "g") is cache.get("b", "g") is None
        assert cache.stats().entries == 0

    def test_a_lookup_without_result_counts_as_a_miss(self, cache: CacheBackend) -> None:
        before = cache.stats()
        cache.get("q", "g")
        after = cache.stats()
        assert (after.hits - before.hits, after.misses - before.misses) == (0, 1)

    def test_threads_may_share_a_cache(self, cache: CacheBackend) -> None:
        slices = [a_slice(str(number)) for number in range(4)]

        def use(turn: int) -> bool:
            number = turn % 4
            cache.put(str(number), "g", slices[number], 60)
            found = cache.get(str(number), "g")
            return found is None or found == slices[number]

        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(use, range(80)))


class CacheContract(ForgetfulCacheContract):
    """The contract of caches that store results."""

    def test_a_slice_comes_back_as_it_was_put(self, cache: CacheBackend) -> None:
        found = a_slice()
        cache.put("q", "g", found, 60)
        kept = cache.get("q", "g")
        assert kept == found
        assert kept is not None
        assert kept.retrieval_time_ms == 1.5
        assert kept.to_prompt() == found.to_prompt()
        assert kept.explain() == found.explain()

    def test_changes_of_a_returned_slice_do_not_reach_the_cache(self, cache: CacheBackend) -> None:
        put, untouched = a_slice(), a_slice().heuristics[0].metadata
        assert put.outcomes[0].metadata == {}
        cache.put("q", "g", put, 60)
        for _ in range(2):
            given = cache.get("q", "g")
            assert given is not None
            assert given.heuristics[0].metadata == untouched
            assert given.outcomes[0].metadata == {}
            assert [list(each.terms) for each in given.explain()] == [["meaning", "recency"]]
            for mine in (put, given):
                mine.heuristics[0].metadata["deep"].append("mine")
                mine.outcomes[0].metadata["whose"] = "mine"
                for each in mine.explanations.values():
                    each.terms.clear()  # type: ignore[attr-defined]
                mine.explanations.clear()  # type: ignore[attr-defined]

    def test_an_empty_slice_comes_back_as_well(self, cache: CacheBackend) -> None:
        cache.put("q", "g", MemorySlice(), 60)
        assert cache.get("q", "g") == MemorySlice()

    @pytest.mark.parametrize("key", ["", " ", "a\x00b", "日本語", "😀", "'\"\\{}*?[x]", "x" * 100_000, "\n", "\ud800"])
    def test_any_text_is_a_key(self, cache: CacheBackend, key: str) -> None:
        found = MemorySlice(query="q")
        cache.put(key, key, found, 60)
        assert cache.get(key, key) == found

    def test_the_last_slice_put_is_the_one_that_counts(self, cache: CacheBackend) -> None:
        first, second = a_slice("first"), a_slice("second")
        cache.put("q", "g", first, 60)
        cache.put("q", "g", second, 60)
        assert cache.get("q", "g") == second

    def test_a_slice_expires(self, cache: CacheBackend) -> None:
        cache.put("q", "g", a_slice(), 0.05)
        assert any(cache.get("q", "g") is None for _ in _patiently())

    def test_a_slice_that_lives_for_ever_is_put_all_the_same(self, cache: CacheBackend) -> None:
        cache.put("q", "g", MemorySlice(), float("inf"))
        assert cache.get("q", "g") == MemorySlice()

    def test_entries_are_counted(self, cache: CacheBackend) -> None:
        before = cache.stats()
        for key in ("a", "b"):
            cache.put(key, "g", MemorySlice(), 60)
        cache.get("a", "g")
        after = cache.stats()
        assert (after.hits - before.hits, after.misses - before.misses) == (1, 0)
        assert after.entries == 2

    @settings(
        max_examples=50,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[
            HealthCheck.function_scoped_fixture,
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
            # One test uses several caches.
            HealthCheck.differing_executors,
        ],
    )
    @given(data=st.data())
    def test_whatever_the_memories_are_they_come_back(self, cache: CacheBackend, data: st.DataObject) -> None:
        kinds: dict[str, Any] = {
            "heuristics": Heuristic,
            "outcomes": Outcome,
            "preferences": UserPreference,
            "domain_knowledge": DomainKnowledge,
            "anti_patterns": AntiPattern,
            "memories": Memory,
        }
        name = data.draw(st.sampled_from(list(kinds)))
        memories: Any = {name: data.draw(st.lists(records(kinds[name]), max_size=2))}
        found = MemorySlice(**memories, query=data.draw(texts()), agent=data.draw(texts()))
        cache.put("q", "g", found, 60)
        assert cache.get("q", "g") == found


def _patiently() -> Iterator[None]:
    """Repeat until the timeout."""
    end = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < end:
        yield
