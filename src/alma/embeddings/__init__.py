"""Text to vectors: the port, and the providers behind it, each loaded when it is first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from alma.embeddings.azure import AzureEmbedder as AzureEmbedder
    from alma.embeddings.base import EmbeddingProvider as EmbeddingProvider
    from alma.embeddings.base import Passage as Passage
    from alma.embeddings.cached import CachedEmbedder as CachedEmbedder
    from alma.embeddings.local import LocalEmbedder as LocalEmbedder
    from alma.embeddings.mock import MockEmbedder as MockEmbedder
    from alma.embeddings.openai import OpenAIEmbedder as OpenAIEmbedder

_HOME_OF = {
    "EmbeddingProvider": "alma.embeddings.base",
    "Passage": "alma.embeddings.base",
    "CachedEmbedder": "alma.embeddings.cached",
    "LocalEmbedder": "alma.embeddings.local",
    "MockEmbedder": "alma.embeddings.mock",
    "OpenAIEmbedder": "alma.embeddings.openai",
    "AzureEmbedder": "alma.embeddings.azure",
}

__all__ = [*_HOME_OF]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'alma.embeddings' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)
