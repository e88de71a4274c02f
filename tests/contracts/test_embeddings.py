"""One suite, every provider of embeddings."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from alma.embeddings.azure import AzureEmbedder
from alma.embeddings.base import EmbeddingProvider
from alma.embeddings.cached import CachedEmbedder
from alma.embeddings.local import LocalEmbedder
from alma.embeddings.mock import MockEmbedder
from alma.embeddings.openai import OpenAIEmbedder
from alma.testing.embedding_contract import EmbeddingContract
from tests.support.embedding_server import KEY, EmbeddingServer


class TestMock(EmbeddingContract):
    @pytest.fixture
    def embedder(self) -> EmbeddingProvider:
        return MockEmbedder()


class TestCached(EmbeddingContract):
    @pytest.fixture
    def embedder(self) -> EmbeddingProvider:
        return CachedEmbedder(MockEmbedder(), size=3)


class TestLocal(EmbeddingContract):
    @pytest.fixture(scope="class")
    @classmethod
    def model(cls) -> EmbeddingProvider:
        """Loaded once; remembering what it has encoded keeps the long text from being encoded again and again."""
        return CachedEmbedder(LocalEmbedder())

    @pytest.fixture
    def embedder(self, model: EmbeddingProvider) -> EmbeddingProvider:
        return model


class TestOpenAI(EmbeddingContract):
    @pytest.fixture(scope="class")
    @classmethod
    def server(cls) -> Iterator[EmbeddingServer]:
        with EmbeddingServer() as running:
            yield running

    @pytest.fixture
    def embedder(self, server: EmbeddingServer) -> EmbeddingProvider:
        return OpenAIEmbedder(KEY, base_url=server.url)


class TestAzure(TestOpenAI):
    @pytest.fixture
    def embedder(self, server: EmbeddingServer) -> EmbeddingProvider:
        return AzureEmbedder(server.url, KEY)
