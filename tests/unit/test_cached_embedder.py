"""The embedding cache encodes each text once, also under concurrency."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Sequence

import pytest

from alma.embeddings.base import Passage
from alma.embeddings.cached import CachedEmbedder
from alma.embeddings.mock import MockEmbedder
from alma.errors import ConfigurationError, EmbeddingError
from tests.support.together import together


class CountingEmbedder(MockEmbedder):
    """Knows what it was asked, and can be made to wait or to fail."""

    def __init__(self) -> None:
        super().__init__(8)
        self.asked: list[str] = []
        self.go_on = threading.Event()
        self.go_on.set()
        self.begun = threading.Semaphore(0)
        self.failures = 0

    def _embed(self, texts: Sequence[str]) -> list[list[Passage]]:
        self.asked += texts
        self.begun.release()
        self.go_on.wait(10)
        if self.failures:
            self.failures -= 1
            raise EmbeddingError("out of order")
        return super()._embed(texts)


@pytest.fixture
def inner() -> CountingEmbedder:
    return CountingEmbedder()


def test_a_text_is_encoded_once_in_a_batch_and_ever_after(inner: CountingEmbedder) -> None:
    cached = CachedEmbedder(inner)
    first = cached.encode_batch(["a", "b", "a"])
    assert cached.encode_batch(["b", "a"]) == [first[1], first[0]]
    assert cached.encode_passages(["a"]) == [[first[0]]]
    assert inner.asked == ["a", "b"]
    assert (cached.model, cached.dimension) == (inner.model, 8)


def test_the_text_that_was_not_asked_for_longest_is_forgotten_first(inner: CountingEmbedder) -> None:
    cached = CachedEmbedder(inner, size=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        cached.encode(text)
    assert inner.asked == ["a", "b", "c", "b"]


def test_a_batch_larger_than_the_cache_is_answered(inner: CountingEmbedder) -> None:
    texts = [str(number) for number in range(10)]
    assert CachedEmbedder(inner, size=2).encode_batch(texts) == inner.encode_batch(texts)


def test_threads_that_ask_at_the_same_time_share_one_encoding(inner: CountingEmbedder) -> None:
    cached = CachedEmbedder(inner)
    inner.go_on.clear()
    answers: list[object] = []

    def release() -> None:
        inner.begun.acquire()
        inner.go_on.set()

    assert together(*[lambda: answers.append(cached.encode("a"))] * 5, release) == []
    assert inner.asked == ["a"]
    assert answers == [inner.encode("a")] * 5


def test_who_waits_for_an_encoding_that_fails_tries_it_again(inner: CountingEmbedder) -> None:
    cached = CachedEmbedder(inner)
    inner.go_on.clear()
    inner.failures = 1

    def release() -> None:
        inner.begun.acquire()
        inner.go_on.set()

    raised = together(*[lambda: cached.encode("a")] * 3, release)
    assert [type(error) for error in raised] == [EmbeddingError]
    assert cached.encode("a") == MockEmbedder(8).encode("a")


def test_a_forked_process_does_not_wait_for_threads_that_stayed_behind(inner: CountingEmbedder) -> None:
    cached = CachedEmbedder(inner)
    inner.go_on.clear()
    waiting = threading.Thread(target=cached.encode, args=("a",))
    waiting.start()
    inner.begun.acquire()
    with warnings.catch_warnings():
        # Newer Pythons warn of what is tested here.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        inner.go_on = threading.Event()
        inner.go_on.set()
        os._exit(0 if cached.encode("a") else 1)
    inner.go_on.set()
    waiting.join()
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("size", [0, -1, True, 1.5, "many"])
def test_a_cache_must_have_room(inner: CountingEmbedder, size: int) -> None:
    with pytest.raises(ConfigurationError, match="cache size"):
        CachedEmbedder(inner, size)
