"""Rows of the index: a unit vector each, with its position in the feed and numbers that say whose it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from alma.storage.base import StoredVector

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Facts = NDArray[Any]

FACTS = np.dtype(
    [
        ("position", "<i8"),
        ("kind", "<i4"),
        ("user_id", "<i4"),
        ("project_id", "<i4"),
        ("session_id", "<i4"),
        ("agent", "<i4"),
        ("part", "<i4"),
    ]
)
NAMED = ("kind", "user_id", "project_id", "session_id", "agent")
_NOBODY = 0
_UNKNOWN = -1


class Block(NamedTuple):
    """Some rows: their vectors, and what is known of each."""

    vectors: Floats
    facts: Facts

    @property
    def size(self) -> int:
        return len(self.facts)

    def part(self, chosen: slice | Numbers | Flags) -> Block:
        return Block(self.vectors[chosen], self.facts[chosen])


def empty(dims: int) -> Block:
    """No rows."""
    return Block(np.empty((0, dims), np.float32), np.empty(0, FACTS))


class Names:
    """Numbers for texts, in the order they were first met; none is 0."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.texts = list(texts)
        self._numbers = {text: number for number, text in enumerate(self.texts, start=1)}

    def number(self, text: str | None) -> int:
        """The number of a text, a new one if it has none."""
        if text is None:
            return _NOBODY
        number = self._numbers.get(text)
        if number is None:
            self.texts.append(text)
            number = self._numbers[text] = len(self.texts)
        return number

    def known(self, text: str | None) -> int:
        """The number of a text, or one that no row has."""
        return _NOBODY if text is None else self._numbers.get(text, _UNKNOWN)

    def renumbered(self, facts: Facts, by: Names) -> Facts:
        """Facts in these numbers, said in those of another."""
        if self.texts == by.texts[: len(self.texts)]:
            return facts
        other = np.array([_NOBODY, *map(by.number, self.texts)], np.int32)
        changed = facts.copy()
        for name in NAMED:
            changed[name] = other[facts[name]]
        return changed


def encoded(page: Sequence[StoredVector], names: Names, dims: int) -> Block:
    """A page of the feed as rows."""
    number = names.number
    facts = np.array(
        [
            (v.position, number(v.kind), *map(number, (v.user_id, v.project_id, v.session_id, v.agent)), v.part)
            for v in page
        ],
        FACTS,
    )
    return Block(units(b"".join(v.data for v in page), dims), facts)


def units(data: bytes, dims: int) -> Floats:
    """Vectors of length one that point the same ways; a zero vector stays zero."""
    # Double precision: the squares of large single-precision numbers would overflow.
    raw = np.frombuffer(data, "<f4").reshape(-1, dims).astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", raw, raw))[:, None]
    scaled: Floats = np.divide(raw, lengths, out=np.zeros_like(raw), where=lengths > 0).astype(np.float32)
    return scaled
