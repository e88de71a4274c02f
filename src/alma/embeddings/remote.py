"""Base class of providers with an OpenAI-compatible embeddings API."""

from __future__ import annotations

import base64
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from alma.embeddings.base import EmbeddingProvider, Passage, chosen, split_text, unit
from alma.embeddings.transport import Service
from alma.errors import ConfigurationError, EmbeddingError, shown
from alma.model.vector import Vector, wrong_dimension

Numbers = Sequence[float]


DEFAULT_MODEL = "text-embedding-3-small"
_DIMENSIONS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
# The models accept 8,191 tokens. A token has at least one byte, so this many bytes always fit.
_LONGEST_PASSAGE_BYTES = 8_000
# A request may hold 300,000 tokens.
_LARGEST_REQUEST_BYTES = 250_000
_LARGEST_BATCH = 2_048


class RemoteEmbedder(EmbeddingProvider):
    """A model behind a service; texts are sent in batches, and responses are validated."""

    def __init__(self, service: Service, model: str, dimensions: int | None, batch_size: int) -> None:
        self._service = service
        self._model_name = model
        self._native = _DIMENSIONS.get(model)
        self._dimension = _checked_dimensions(model, dimensions, self._native)
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or not 1 <= batch_size <= _LARGEST_BATCH:
            raise ConfigurationError(f"batch_size must be between 1 and {_LARGEST_BATCH:,}, not {batch_size!r}")
        self._batch_size = batch_size

    @property
    def model(self) -> str:
        """The model's name; shortened vectors are a different space, so they have a different name."""
        return f"{self._model_name}-{self._dimension}" if self._is_shortened else self._model_name

    @property
    def dimension(self) -> int:
        return self._dimension

    @property
    def _is_shortened(self) -> bool:
        return self._native is not None and self._native != self._dimension

    def __repr__(self) -> str:
        return f"{type(self).__name__}(model={self.model!r}, dimension={self.dimension})"

    def _embed(self, texts: Sequence[str]) -> list[list[Passage]]:
        pieces = [chosen(split_text(text, _LONGEST_PASSAGE_BYTES)) for text in texts]
        vectors = self._vectors([piece for parts in pieces for piece in parts])
        # The service does not return the number of tokens, so bytes are the weight.
        return [[Passage(next(vectors), len(piece.encode())) for piece in parts] for parts in pieces]

    def _vectors(self, pieces: Sequence[str]) -> Iterator[Vector]:
        for batch in _batches(pieces, self._batch_size):
            yield from self._answer(self._service.post(self._request(batch)), len(batch))

    def _request(self, batch: Sequence[str]) -> dict[str, Any]:
        request = {"input": list(batch), "model": self._model_name, "encoding_format": "float"}
        return {**request, "dimensions": self._dimension} if self._is_shortened else request

    def _answer(self, answer: Any, count: int) -> list[Vector]:
        try:
            return [self._vector(numbers) for numbers in embeddings_in(answer, count)]
        except NoEmbeddings as exc:
            raise EmbeddingError(
                f"{self._service.name} returned a response that is not a list of embeddings: {exc}"
            ) from exc

    def _vector(self, numbers: Numbers) -> Vector:
        if len(numbers) != self._dimension:
            fix = f"; set dimensions={len(numbers)} if that is the length of {self._model_name}" if len(numbers) else ""
            raise EmbeddingError(
                f"{self._service.name} returned a vector of {len(numbers)} dimensions, not {self._dimension}{fix}"
            )
        require_direction(numbers)
        return unit(numbers)


def _batches(pieces: Sequence[str], most: int) -> Iterator[list[str]]:
    """The pieces in order, in batches of the size that the service accepts."""
    batch: list[str] = []
    size = 0
    for piece in pieces:
        if batch and (len(batch) == most or size + len(piece.encode()) > _LARGEST_REQUEST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(piece)
        size += len(piece.encode())
    if batch:
        yield batch


def _checked_dimensions(model: str, dimensions: int | None, native: int | None) -> int:
    if dimensions is None:
        if native is None:
            raise ConfigurationError(f"{model} is unknown; give the length of its vectors (dimensions=…)")
        return native
    if wrong := wrong_dimension(dimensions):
        raise ConfigurationError(f"dimensions {wrong}, not {shown(dimensions)}")
    if (
        native is not None
        and dimensions != native
        and not (model.startswith("text-embedding-3") and dimensions < native)
    ):
        raise ConfigurationError(f"{model} gives vectors of {native} dimensions, not {dimensions}")
    return dimensions


class NoEmbeddings(ValueError):
    """The response is not a list of embeddings; the reason follows a colon."""


def embeddings_in(answer: Any, count: int) -> list[Numbers]:
    """The embeddings of a response, sorted in the order of the texts."""
    entries = answer.get("data") if isinstance(answer, Mapping) else None
    if not isinstance(entries, list):
        raise NoEmbeddings("it has no list called data")
    numbered = {_index(entry): entry.get("embedding") for entry in entries}
    if len(entries) != count:
        raise NoEmbeddings(f"{len(entries)} vectors for {count} texts")
    if numbered.keys() != set(range(count)):
        raise NoEmbeddings(f"its vectors are not numbered from 0 to {count - 1}")
    return [_numbers(numbered[i]) for i in range(count)]


def require_direction(numbers: Numbers) -> None:
    """Reject vectors that are zero or too small to be normalized."""
    # A plain sum, because math.fsum raises an error on overflow.
    if not sys.float_info.min < sum(number * number for number in numbers) < math.inf:
        raise NoEmbeddings("a vector without a direction")


def _index(entry: Any) -> int:
    index = entry.get("index") if isinstance(entry, Mapping) else None
    if isinstance(index, bool) or not isinstance(index, int):
        raise NoEmbeddings("an entry has no index")
    return index


def _numbers(embedding: Any) -> Numbers:
    # Some services always send Base64.
    if isinstance(embedding, str):
        return _unpacked(embedding)
    if not isinstance(embedding, list) or not all(type(number) in (int, float) for number in embedding):
        raise NoEmbeddings("an embedding is not made of numbers")
    try:
        return [float(number) for number in embedding]
    except OverflowError:
        raise NoEmbeddings("a number that is too large for a vector") from None


def _unpacked(embedding: str) -> Vector:
    try:
        return Vector.from_bytes(base64.b64decode(embedding, validate=True))
    except ValueError:
        raise NoEmbeddings("an embedding is neither a list of numbers nor Base64") from None
