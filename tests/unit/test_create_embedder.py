"""`create_embedder` by name."""

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
        ("word2vec", {}, "unknown embedding provider 'word2vec': choose local, openai, azure, mock"),
        ("mock", {"model": "m"}, "unknown option 'model' of mock embeddings: leave it out, or choose dimension$"),
        (
            "local",
            {"dimensions": 12},
            "unknown option 'dimensions' of local embeddings: leave it out, or",
        ),
        ("openai", {"api_key": "k", "folder": "x"}, "unknown option 'folder' of openai embeddings"),
        ("openai", {"api_key": "k", "timeout_seconds": "x"}, "timeout_seconds of openai embeddings must be a number"),
        ("azure", {"endpoint": "https://x.example", "api_key": "k", "deployment": 3}, "deployment of .* must be text"),
        ("local", {"threads": "many"}, "threads of local embeddings must be a whole number, not str"),
        ("mock", {"dimension": True}, "dimension of mock embeddings must be a whole number"),
        ("mock", {"dimension": 99_999_999}, "dimension must be a whole number from 1 to 16,000, not 99999999"),
        ("mock", {"dimension": 0}, "from 1 to 16,000"),
        ("openai", {"api_key": "k", "model": "own", "dimensions": 16_001}, "from 1 to 16,000, not 16001"),
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
