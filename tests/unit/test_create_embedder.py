"""Providers of embeddings by name."""

from __future__ import annotations

from typing import Any

import pytest

import alma
from alma.embeddings import AzureEmbedder, CachedEmbedder, LocalEmbedder, MockEmbedder, OpenAIEmbedder
from alma.errors import ConfigurationError


def test_each_provider_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-the-environment")
    options: dict[str, dict[str, Any]] = {
        "local": {},
        "openai": {"dimensions": 512},
        "azure": {"endpoint": "https://x.example", "api_key": "k"},
        "mock": {"dimension": 5},
    }
    made = {name: alma.create_embedder(name, cache_size=0, **chosen) for name, chosen in options.items()}
    kinds = {"local": LocalEmbedder, "openai": OpenAIEmbedder, "azure": AzureEmbedder, "mock": MockEmbedder}
    assert {name: type(embedder) for name, embedder in made.items()} == kinds
    assert [embedder.dimension for embedder in made.values()] == [384, 512, 1536, 5]


def test_what_is_encoded_is_remembered_unless_told_otherwise() -> None:
    assert isinstance(alma.create_embedder("mock"), CachedEmbedder)
    assert isinstance(alma.create_embedder("mock", cache_size=0), MockEmbedder)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("word2vec", {}, "'word2vec' is no provider of embeddings; choose local, openai, azure, mock"),
        ("mock", {"size": 3}, "the options of mock embeddings do not fit: .*'size'"),
        ("openai", {}, "set OPENAI_API_KEY"),
        ("azure", {"api_key": "k"}, "set AZURE_OPENAI_ENDPOINT"),
        ("mock", {"cache_size": -1}, "cache size"),
    ],
)
def test_a_mistake_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, name: str, options: dict[str, Any], said: str
) -> None:
    for variable in ("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ConfigurationError, match=said):
        alma.create_embedder(name, **options)
