"""The embedding port: providers turn text into unit vectors."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeVar

from alma.errors import ConfigurationError, EmbeddingError, ValidationError
from alma.model.fields import Refused, check_text
from alma.model.vector import Vector

_PORT = ("encode", "encode_batch", "dimension", "model")


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a text that fits the model's window: its unit vector and its number of tokens."""

    vector: Vector
    tokens: int


@dataclass(frozen=True, slots=True)
class Encoded:
    """The vectors of a text: one for the whole and, if it is longer than the model's window, one for each passage."""

    vector: Vector
    passages: tuple[Vector, ...]


class EmbeddingProvider(ABC):
    """Turns text into vectors of one model.

    The contract:

    * **Unit length.** Every vector has length 1, so a dot product is a cosine.
    * **One space.** `model` names the vector space; vectors of providers with the same name are comparable. All have
      `dimension` numbers.
    * **Same text, same vector**, alone or in a batch, in this process or another.
    * **Order.** Results are in the order of the texts; without texts the result is empty.
    * **Long text is split.** A text that is longer than the model's window is split at word boundaries into passages of
      about the same length; its vector is their normalized mean, weighted by tokens. A text that fits has exactly one
      passage, with the vector of the text.
    * **Work is bounded.** Of a text with more than 32 passages the first 8 and 24 evenly spaced ones up to the last are
      embedded; full-text search finds the rest.
    * **Empty text is refused** with a `ValidationError`, before anything is computed or sent.
    * **Failures are an `EmbeddingError`** that names the problem and the fix.
    * **It is thread-safe and fork-safe.**
    * **Creating one is cheap.** The model is loaded, or the service called, with the first text.

    A provider does not choose the text of a record, and does not store or compare vectors.

    A subclass implements `model`, `dimension`, and one of these: `encode_batch` or `encode` for one vector per text, or
    `_embed` to embed the passages of long texts.
    """

    @property
    @abstractmethod
    def model(self) -> str:
        """The name of the vector space."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """The number of dimensions."""

    def _embed(self, texts: Sequence[str]) -> list[list[Passage]]:
        """The passages of each text, at least one, in order; the texts are validated.

        By default each text is one passage, encoded by `encode_batch` or `encode`.
        """
        if type(self).encode_batch is not EmbeddingProvider.encode_batch:
            vectors = list(self.encode_batch(texts))
        elif type(self).encode is not EmbeddingProvider.encode:
            vectors = [self.encode(text) for text in texts]
        else:
            raise NotImplementedError(f"{type(self).__name__} must implement encode_batch, encode or _embed")
        return self._one_passage_each(texts, vectors)

    def _one_passage_each(self, texts: Sequence[str], vectors: Sequence[Any]) -> list[list[Passage]]:
        if len(vectors) != len(texts):
            raise EmbeddingError(f"{self.model} returned {len(vectors)} vectors for {len(texts)} texts")
        return [[Passage(self._believed(vector), 1)] for vector in vectors]

    def reads(self, text: str) -> bool:
        """Whether the model has tokens for the script of a text; if not, all such texts get similar vectors."""
        return True

    def speaks(self, text: str) -> bool:
        """Whether the model was trained on the language of a text; if not, all texts in it get similar vectors."""
        return True

    def encode(self, text: str) -> Vector:
        """The vector of one text."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Iterable[str]) -> list[Vector]:
        """The vector of each text, in order."""
        return [combined(passages) for passages in self._passages(texts)]

    def encode_texts(self, texts: Iterable[str]) -> list[Encoded]:
        """The stored vectors of each text, in order."""
        return [
            Encoded(combined(passages), tuple(each.vector for each in passages) if len(passages) > 1 else ())
            for passages in self._passages(texts)
        ]

    def encode_passages(self, texts: Iterable[str]) -> list[list[Vector]]:
        """The vectors of the passages of each text, in order; a text that fits the model's window has one."""
        return [[passage.vector for passage in passages] for passages in self._passages(texts)]

    def _believed(self, given: Any) -> Vector:
        """The validated and normalized vector of a custom provider."""
        try:
            vector = Vector(given)
        except ValidationError as exc:
            raise EmbeddingError(f"{self.model} returned something that is not a vector: {exc}") from exc
        if len(vector) != self.dimension:
            raise EmbeddingError(f"{self.model} returned a vector of {len(vector)} dimensions, not {self.dimension}")
        if not any(vector):
            raise EmbeddingError(f"{self.model} returned a zero vector")
        return unit(vector)

    def _passages(self, texts: Iterable[str]) -> list[list[Passage]]:
        if isinstance(texts, str) or not isinstance(texts, Iterable):
            raise ValidationError("embedding", "texts", texts, "must be a list of texts; encode() takes a single one")
        checked = [_checked(text) for text in texts]
        return self._embed(checked) if checked else []


class _Adapter(EmbeddingProvider):
    """Adapts an object of another class that has the methods of the port."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    @property
    def model(self) -> str:
        return str(self.inner.model)

    @property
    def dimension(self) -> int:
        return int(self.inner.dimension)

    def _embed(self, texts: Sequence[str]) -> list[list[Passage]]:
        return self._one_passage_each(texts, list(self.inner.encode_batch(list(texts))))


def combined(passages: Sequence[Passage]) -> Vector:
    """The vector of a whole text: the normalized mean of its passages, weighted by tokens."""
    if len(passages) == 1:
        return passages[0].vector
    columns = zip(*([value * passage.tokens for value in passage.vector] for passage in passages), strict=True)
    sums = [math.fsum(column) for column in columns]
    # Opposite passages have no mean direction; the longest then represents the text.
    return unit(sums) if any(sums) else max(passages, key=lambda passage: passage.tokens).vector


def unit(values: Sequence[float]) -> Vector:
    """The normalized vector; at least one number must not be zero."""
    length = math.sqrt(math.fsum(value * value for value in values))
    return Vector([value / length for value in values])


class EmbedderAround(EmbeddingProvider):
    """Base class of caches around a provider; a subclass implements `_embed`."""

    def __init__(self, inner: EmbeddingProvider) -> None:
        self.inner = as_provider(inner)

    @property
    def model(self) -> str:
        return self.inner.model

    @property
    def dimension(self) -> int:
        return self.inner.dimension

    def reads(self, text: str) -> bool:
        return self.inner.reads(text)

    def speaks(self, text: str) -> bool:
        return self.inner.speaks(text)


def as_provider(given: Any) -> EmbeddingProvider:
    """The given provider, or an adapter of an object with the methods of the port."""
    if isinstance(given, EmbeddingProvider):
        return given
    missing = [name for name in _PORT if not hasattr(given, name)]
    if missing or isinstance(given, type):
        lacks = f"lacks {', '.join(missing)}" if missing else "is a class: give an object of it"
        raise ConfigurationError(
            f"embedding_provider must be the name of a provider or an object with {', '.join(_PORT)}; "
            f"{given!r:.200} {lacks}"
        )
    return _Adapter(given)


def _checked(text: Any) -> str:
    try:
        checked = check_text(text)
        if not checked or checked.isspace():
            raise Refused("must not be empty")
    except Refused as exc:
        raise ValidationError("embedding", "text", text, str(exc)) from None
    return checked


MOST_PASSAGES = 32
"""The maximum number of passages of a text; full-text search finds the rest."""
# The number of passages from the beginning of a longer text, which usually names its topic.
_FIRST = MOST_PASSAGES // 4
# Longer texts are thinned out before tokenization, which takes half a second per megabyte.
_LONGEST_DIVIDED = 65_536
_STRETCH = _LONGEST_DIVIDED // MOST_PASSAGES

T = TypeVar("T")


def chosen(passages: Sequence[T]) -> list[T]:
    """The passages that are embedded: all, or the first ones, and then evenly spaced ones up to the last."""
    if len(passages) <= MOST_PASSAGES:
        return list(passages)
    last, steps = len(passages) - 1, MOST_PASSAGES - _FIRST
    spaced = (_FIRST + (last - _FIRST) * i // (steps - 1) for i in range(steps))
    return [*passages[:_FIRST], *(passages[i] for i in spaced)]


def thinned(text: str) -> str:
    """The text, or evenly spaced parts of it if it is too long to be tokenized as a whole."""
    if len(text) <= _LONGEST_DIVIDED:
        return text
    head = _FIRST * _STRETCH
    starts = chosen(range(0, len(text), _STRETCH))[_FIRST:]
    return " ".join([text[:head], *(text[start : start + _STRETCH] for start in starts)])


def even_groups(sizes: Sequence[int], most: int) -> list[range]:
    """Adjacent units in as few groups as possible, of about the same total size and at most `most`.

    No unit may be larger than `most`.
    """
    ends = list(accumulate(sizes))
    groups: list[range] = []
    start = done = 0
    while start < len(ends):
        end = _end_of_group(ends, start, done, most)
        groups.append(range(start, end))
        start, done = end, ends[end - 1]
    return groups


def _end_of_group(ends: Sequence[int], start: int, done: int, most: int) -> int:
    left = ends[-1] - done
    groups = -(-left // most)
    if groups <= 1:
        return len(ends)
    # Rounding up ensures that the remaining groups can hold the rest.
    end = bisect_left(ends, done + -(-left // groups), start) + 1
    return end if ends[end - 1] - done <= most else end - 1


def split_text(text: str, most: int) -> list[str]:
    """Split the text into pieces of at most `most` UTF-8 bytes, at word boundaries where possible."""
    if _size(text) <= most:
        return [text]
    units = [unit for word in text.split() for unit in _bounded(word, most - 1)]
    # One more byte for the space of each word.
    groups = even_groups([_size(unit) + 1 for unit in units], most)
    return [" ".join(units[i] for i in group) for group in groups]


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _bounded(word: str, most: int) -> Iterator[str]:
    """The word, or its pieces of at most `most` bytes; characters are not split."""
    if _size(word) <= most:
        yield word
        return
    # A character has at most four bytes.
    characters = max(1, most // 4)
    for start in range(0, len(word), characters):
        yield word[start : start + characters]
