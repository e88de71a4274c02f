"""The embedding port: what turns text into vectors, and what it promises."""

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
    """A stretch of a text that fits the model's window: its unit vector and how much text it stands for, in tokens."""

    vector: Vector
    tokens: int


@dataclass(frozen=True, slots=True)
class Encoded:
    """A text as vectors: one for the whole, and where it is longer than the model's window one for each passage."""

    vector: Vector
    passages: tuple[Vector, ...]


class EmbeddingProvider(ABC):
    """Turns text into vectors of one model.

    What a provider promises:

    * **Unit length.** Every vector has length 1, so a dot product is a cosine.
    * **One space.** `model` names the space the vectors live in; two providers that give the same name give vectors
      that may be compared. All have `dimension` numbers.
    * **Same text, same vector**, alone or in a batch, in this process or another.
    * **Order.** Results come in the order of the texts; of no texts there are none.
    * **Long text is split.** A text that is longer than the model's window is split between words into passages of
      about the same length; its vector is their mean, weighted by their tokens and brought to length 1. A text that
      fits has exactly one passage, and that passage's vector is the text's.
    * **Work is bounded.** Of a text with more than 32 passages the first 8 are embedded, and 24 that are evenly spaced
      up to its last one; the rest of the text is found by its words.
    * **Empty text is refused** with a `ValidationError`, before anything is computed or sent.
    * **Failure is an `EmbeddingError`** whose sentence names what is wrong and what to do about it.
    * **Threads may share it**, and a forked process may go on using it.
    * **Making one is cheap.** A model is loaded, and a service asked, when the first text comes.

    What a provider does not do: decide what of a record is embedded, store vectors or compare them.

    A subclass implements `model`, `dimension` and one of these: `encode_batch` or `encode`, where its texts fit the
    model's window or it splits them itself, and `_embed`, where a long text is to be found by its passages as well.
    """

    @property
    @abstractmethod
    def model(self) -> str:
        """The name that tells this provider's vectors from those of other models."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """How many numbers each vector has."""

    def _embed(self, texts: Sequence[str]) -> list[list[Passage]]:
        """The passages of each text, at least one, in order; the texts are known to be texts, and not empty.

        Where a subclass says how texts are encoded and nothing of passages, each text is one.
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
            raise EmbeddingError(f"{self.model} gave {len(vectors)} vectors for {len(texts)} texts")
        return [[Passage(self._believed(vector), 1)] for vector in vectors]

    def reads(self, text: str) -> bool:
        """Whether the model knows the writing of a text; where it does not, all such texts are alike to it."""
        return True

    def speaks(self, text: str) -> bool:
        """Whether the model learned the language of a text; where it did not, all texts in it are somewhat alike."""
        return True

    def encode(self, text: str) -> Vector:
        """The vector of one text."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Iterable[str]) -> list[Vector]:
        """The vector of each text, in order."""
        return [combined(passages) for passages in self._passages(texts)]

    def encode_texts(self, texts: Iterable[str]) -> list[Encoded]:
        """All the vectors that a text is stored with, in order."""
        return [
            Encoded(combined(passages), tuple(each.vector for each in passages) if len(passages) > 1 else ())
            for passages in self._passages(texts)
        ]

    def encode_passages(self, texts: Iterable[str]) -> list[list[Vector]]:
        """The vectors of each text's passages, in order; a text that fits the model's window has one."""
        return [[passage.vector for passage in passages] for passages in self._passages(texts)]

    def _believed(self, given: Any) -> Vector:
        """The result of a user's model, as a vector of length 1."""
        try:
            vector = Vector(given)
        except ValidationError as exc:
            raise EmbeddingError(f"{self.model} gave something that is no vector: {exc}") from exc
        if len(vector) != self.dimension:
            raise EmbeddingError(f"{self.model} gave a vector of {len(vector)} dimensions, not of {self.dimension}")
        if not any(vector):
            raise EmbeddingError(f"{self.model} gave a vector without a direction")
        return unit(vector)

    def _passages(self, texts: Iterable[str]) -> list[list[Passage]]:
        if isinstance(texts, str) or not isinstance(texts, Iterable):
            raise ValidationError("embedding", "texts", texts, "must be a list of texts; encode() takes a single one")
        checked = [_checked(text) for text in texts]
        return self._embed(checked) if checked else []


class _Asked(EmbeddingProvider):
    """An object of another class that has the names of the port, asked through them."""

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
    """One vector for a whole text: the mean of its passages by their tokens, of length 1."""
    if len(passages) == 1:
        return passages[0].vector
    columns = zip(*([value * passage.tokens for value in passage.vector] for passage in passages), strict=True)
    sums = [math.fsum(column) for column in columns]
    # Opposite passages have no mean direction; the longest then represents the text.
    return unit(sums) if any(sums) else max(passages, key=lambda passage: passage.tokens).vector


def unit(values: Sequence[float]) -> Vector:
    """The vector of length 1 that points the way of these numbers, which must not all be zero."""
    length = math.sqrt(math.fsum(value * value for value in values))
    return Vector([value / length for value in values])


def as_provider(given: Any) -> EmbeddingProvider:
    """What was given, if it is a provider; an object of any other class that has the port's names is made one."""
    if isinstance(given, EmbeddingProvider):
        return given
    missing = [name for name in _PORT if not hasattr(given, name)]
    if missing or isinstance(given, type):
        lacks = f"lacks {', '.join(missing)}" if missing else "is a class: give an object of it"
        raise ConfigurationError(
            f"embedding_provider must be the name of a provider or an object with {', '.join(_PORT)}; "
            f"{given!r:.200} {lacks}"
        )
    return _Asked(given)


def _checked(text: Any) -> str:
    try:
        checked = check_text(text)
        if not checked or checked.isspace():
            raise Refused("must not be empty")
    except Refused as exc:
        raise ValidationError("embedding", "text", text, str(exc)) from None
    return checked


MOST_PASSAGES = 32
"""No text is embedded with more passages than this; the rest of it is found by its words."""
# Of a text that has more, so many are those at its beginning, where it says what it is about.
_FIRST = MOST_PASSAGES // 4
# A text of more characters is thinned out before it is divided: to divide a megabyte takes half a second by itself.
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
    """The text, or stretches of it chosen as passages are, where it is too long to be divided as a whole."""
    if len(text) <= _LONGEST_DIVIDED:
        return text
    head = _FIRST * _STRETCH
    starts = chosen(range(0, len(text), _STRETCH))[_FIRST:]
    return " ".join([text[:head], *(text[start : start + _STRETCH] for start in starts)])


def even_groups(sizes: Sequence[int], most: int) -> list[range]:
    """Neighbouring units in as few groups as fit, of about the same total size and none above `most`.

    No single unit may be larger than `most`.
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
    # Rounding up leaves no more to the later groups than they can hold.
    end = bisect_left(ends, done + -(-left // groups), start) + 1
    return end if ends[end - 1] - done <= most else end - 1


def split_text(text: str, most: int) -> list[str]:
    """The text in pieces of at most `most` UTF-8 bytes, divided between words where words are no longer than that."""
    if _size(text) <= most:
        return [text]
    units = [unit for word in text.split() for unit in _bounded(word, most - 1)]
    # Each word brings a space along.
    groups = even_groups([_size(unit) + 1 for unit in units], most)
    return [" ".join(units[i] for i in group) for group in groups]


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _bounded(word: str, most: int) -> Iterator[str]:
    """The word, or its pieces of at most so many bytes where it is longer; no character is torn."""
    if _size(word) <= most:
        yield word
        return
    # No character has more than four bytes.
    characters = max(1, most // 4)
    for start in range(0, len(word), characters):
        yield word[start : start + characters]
