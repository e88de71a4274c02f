"""The vector of a question, or why there is none: whatever a provider does, an agent must be able to go on."""

from __future__ import annotations

import logging
import re
import time
from itertools import islice

from alma.embeddings.base import EmbeddingProvider
from alma.errors import EmbeddingError
from alma.model.vector import Vector
from alma.retry import deadline
from alma.storage.base import StorageBackend

_log = logging.getLogger("alma.retrieval")

# How long a question waits for its vector; and for a while after that was in vain, since it is found by words as well.
_PATIENCE_SECONDS, _SHORT_PATIENCE_SECONDS = 10.0, 1.0
_FAILING_SECONDS = 30.0
# About what a tokenizer cuts a text into, and how many of these a question is embedded with: a model reads a few
# hundred at once, and every further page of a question would keep it waiting for another tenth of a second.
_PIECE = re.compile(r"[A-Za-z]{1,3}|\S")
_MOST_PIECES = 2_000


class QuestionEmbedder:
    """Embeds questions with a provider that may be down; threads may share it."""

    def __init__(self, embedder: EmbeddingProvider, storage: StorageBackend) -> None:
        self._embedder = embedder
        self._storage = storage
        # When the provider was last waited for in vain.
        self._failed_at = -float("inf")

    def vector(self, query: str) -> tuple[Vector | None, list[str]]:
        """The vector, or what was wrong."""
        patient = time.monotonic() - self._failed_at >= _FAILING_SECONDS
        try:
            with deadline(_PATIENCE_SECONDS if patient else _SHORT_PATIENCE_SECONDS):
                vector = Vector(self._embedder.encode(beginning(query)))
            if len(vector) != self._storage.embedding_dim:
                raise EmbeddingError(f"it gave {len(vector)} numbers instead of {self._storage.embedding_dim}")
            if not any(vector):
                raise EmbeddingError("it gave nothing but zeros")
        except Exception as exc:  # noqa: BLE001 - a provider may be anybody's
            # What fails in a hurry says nothing about a provider that is slow: it gets its time again.
            self._failed_at = time.monotonic() if patient else self._failed_at
            _log.warning("the query was not embedded", extra={"error": repr(exc)})
            return None, [f"the embedding provider {self._embedder.model} is down ({str(exc) or type(exc).__name__})"]
        self._failed_at = -float("inf")
        return vector, []


def beginning(question: str) -> str:
    """As much of a question as is embedded: some five thousand letters of English, two thousand of other signs."""
    if len(question) <= _MOST_PIECES:
        return question
    further = next(islice(_PIECE.finditer(question), _MOST_PIECES, None), None)
    return question if further is None else question[: further.start()]
