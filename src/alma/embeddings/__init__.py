"""Embeddings: the port and its providers, each loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alma.lazy import loader

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

__getattr__ = loader(__name__, _HOME_OF)
