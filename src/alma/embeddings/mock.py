"""Deterministic vectors without a model, for tests."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from alma.embeddings.base import EmbeddingProvider, Passage, chosen, split_text, unit
from alma.errors import ConfigurationError, shown
from alma.model.vector import wrong_dimension

_LONGEST_PASSAGE = 1_000


class MockEmbedder(EmbeddingProvider):
    """Vectors computed from a hash of each passage, for tests and dry runs; only equal texts are near."""

    def __init__(self, dimension: int = 384) -> None:
        if wrong := wrong_dimension(dimension):
            raise ConfigurationError(f"dimension {wrong}, not {shown(dimension)}")
        self._dimension = dimension

    @property
    def model(self) -> str:
        return f"mock-{self._dimension}"

    @property
    def dimension(self) -> int:
        return self._dimension

    def _embed(self, texts: Sequence[str]) -> list[list[Passage]]:
        return [[self._passage(piece) for piece in chosen(split_text(text, _LONGEST_PASSAGE))] for text in texts]

    def _passage(self, text: str) -> Passage:
        digest = hashlib.shake_256(text.encode()).digest(4 * self._dimension)
        numbers = (int.from_bytes(digest[i : i + 4], "big") for i in range(0, len(digest), 4))
        # Adding a half keeps every number from being zero, so even a vector of one number can be normalized.
        return Passage(unit([(number + 0.5) / (1 << 31) - 1 for number in numbers]), len(text.split()))
