"""How long a question waits for a service that embeds it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest

from alma.embeddings.base import EmbeddingProvider
from alma.embeddings.openai import OpenAIEmbedder
from alma.retrieval.engine import RetrievalEngine
from alma.storage.base import StorageBackend
from alma.storage.in_memory import InMemoryStorage
from tests.support.embedding_server import KEY, EmbeddingServer
from tests.support.http_server import Reply, error
from tests.support.tuned import tuned


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer() as running:
        yield running


@pytest.fixture
def store() -> Iterator[StorageBackend]:
    with InMemoryStorage(embedding_dim=1536, embedding_model="text-embedding-3-small") as opened:
        yield opened


def asking(url: str, **options: float) -> EmbeddingProvider:
    return OpenAIEmbedder(KEY, base_url=url, **options)  # type: ignore[arg-type]


def seconds_of(engine: RetrievalEngine, query: str) -> tuple[float, str]:
    began = time.monotonic()
    found = engine.retrieve(query, "helena", "shop")
    return time.monotonic() - began, found.degraded


def test_a_question_does_not_wait_for_every_attempt_at_a_service_that_hangs(
    store: StorageBackend, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuned(monkeypatch, embedding_timeout=0.5, embedding_timeout_after_failure=0.2)
    server.script += [Reply(hang=True)] * 10
    engine = RetrievalEngine(store, asking(server.url))
    waited, degraded = seconds_of(engine, "how do I deploy?")
    assert 0.4 < waited < 5
    assert re.search(r"did not answer within 0\.\d+ seconds", degraded)
    # Who has just failed is not waited for as long again.
    assert seconds_of(engine, "and how do I test?")[0] < waited
    engine.close()


def test_a_question_does_not_wait_for_a_service_that_answers_byte_by_byte(
    store: StorageBackend, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuned(monkeypatch, embedding_timeout=0.5)
    server.script.append(Reply(drip="body"))
    engine = RetrievalEngine(store, asking(server.url))
    waited, degraded = seconds_of(engine, "how do I deploy?")
    assert waited < 5
    assert re.search(r"did not answer within 0\.\d+ seconds", degraded)
    engine.close()


def test_a_service_that_is_back_is_asked_at_once(store: StorageBackend, server: EmbeddingServer) -> None:
    server.script += [error(500, "out of order")] * 2
    engine = RetrievalEngine(store, asking(server.url, attempts=2, backoff_seconds=0.01))
    assert "500: out of order" in seconds_of(engine, "how do I deploy?")[1]
    assert not seconds_of(engine, "how do I deploy?")[1]
    engine.close()


def test_a_service_that_is_gone_keeps_only_the_first_question_waiting(store: StorageBackend) -> None:
    engine = RetrievalEngine(store, asking("http://127.0.0.1:1/v1", attempts=2, backoff_seconds=2.0))
    first, degraded = seconds_of(engine, "how do I deploy?")
    assert first > 1
    assert "tried 2 times" in degraded
    second, degraded = seconds_of(engine, "how do I test?")
    assert second < 1
    assert "is down" in degraded
    engine.close()


def test_what_is_slow_gets_its_time_again_after_it_failed(
    store: StorageBackend, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuned(monkeypatch, embedding_timeout_after_failure=0.1, embedding_failure_period=0.4)
    server.script += [error(400, "no"), Reply(hang=True)]
    engine = RetrievalEngine(store, asking(server.url, timeout_seconds=5))
    assert "400" in seconds_of(engine, "one")[1]
    assert "did not answer within 0.1 seconds" in seconds_of(engine, "two")[1]
    # The failure in a hurry did not begin the wait anew.
    time.sleep(0.35)
    server.script.append(error(503, "a moment", {"Retry-After": "0.3"}))
    assert not seconds_of(engine, "three")[1]
    engine.close()


def test_writing_waits_as_long_as_it_was_told(server: EmbeddingServer) -> None:
    server.script.append(error(503, "a moment", {"Retry-After": "1.5"}))
    assert len(asking(server.url).encode("to be stored")) == 1536
