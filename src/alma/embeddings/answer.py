"""What an embedding service answered: numbers for each text, or a sentence that says what is wrong with them."""

from __future__ import annotations

import base64
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from alma.model.vector import Vector

Numbers = Sequence[float]


class NoEmbeddings(ValueError):
    """Why an answer is no list of embeddings, in words that fit behind a colon."""


def embeddings_in(answer: Any, count: int) -> list[Numbers]:
    """What the answer gives for each of so many texts, in the order of the texts, whatever order the service chose."""
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
    """Refuse a vector that points nowhere: what is so short that its length cannot be told is as good as zero."""
    # A plain sum: an exact one cannot be told where it is too large.
    if not sys.float_info.min < sum(number * number for number in numbers) < math.inf:
        raise NoEmbeddings("a vector without a direction")


def _index(entry: Any) -> int:
    index = entry.get("index") if isinstance(entry, Mapping) else None
    if isinstance(index, bool) or not isinstance(index, int):
        raise NoEmbeddings("an entry has no index")
    return index


def _numbers(embedding: Any) -> Numbers:
    # Some services send Base64, whatever they were asked for.
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
        raise NoEmbeddings("an embedding is neither numbers nor such numbers in Base64") from None
