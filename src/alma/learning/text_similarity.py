"""Text similarity: how similar tasks are written, by character n-grams and by their numbers.

Vectors do not distinguish `run/load-40.cfg` from `run/load-41.cfg`, nor kinds of questions from each other; n-grams do.
Rare n-grams weigh more than frequent ones.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from alma.lazy import lazy_module, lazy_regex

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy_module("numpy")

_NUMBER = lazy_regex(r"[0-9]+")
# Longer numbers are names rather than sizes; their first digits tell them apart.
_DIGITS_READ = 15


class NumberIndex:
    """The numbers in many texts, keyed by the text around them; texts can only be added."""

    def __init__(self) -> None:
        self._forms: dict[str, int] = {}
        self._form_of: list[int] = []
        self._sizes: list[Any] = []

    def add(self, texts: Sequence[str]) -> None:
        """Add texts; they are numbered in this order."""
        for text in texts:
            form, sizes = _read(text)
            self._form_of.append(self._forms.setdefault(form, len(self._forms)))
            self._sizes.append(sizes)

    def similarity(self, text: str, numbers: Any) -> Any:
        """The similarity of the numbers of this text to those of each of these, from 0 to 1."""
        form, sizes = _read(text)
        near = np.zeros(len(numbers))
        same = np.flatnonzero(np.array(self._form_of)[numbers] == self._forms.get(form, -1))
        if len(same):
            near[same] = _nearness(self._of(numbers[same]), sizes)
        return near

    def among(self, numbers: Any) -> Any:
        """The similarities of the numbers of these texts to each other."""
        near = np.zeros((len(numbers), len(numbers)))
        forms = np.array(self._form_of)[numbers]
        order = np.argsort(forms, kind="stable")
        for same in np.split(order, np.flatnonzero(np.diff(forms[order])) + 1):
            sizes = self._of(numbers[same])
            near[np.ix_(same, same)] = _nearness(sizes[:, None], sizes[None])
        return near

    def _of(self, numbers: Any) -> Any:
        return np.stack([self._sizes[number] for number in numbers])


def _read(text: str) -> tuple[str, Any]:
    """The text around the numbers, and the logarithms of the numbers."""
    read = text[:_CHARACTERS_READ].lower()
    sizes = np.log1p([float(number[:_DIGITS_READ]) for number in _NUMBER.findall(read)])
    return _NUMBER.sub("0", read), sizes


def _nearness(some: Any, others: Any) -> Any:
    return np.exp(-((some - others) ** 2).sum(axis=-1))


_SHORTEST, _LONGEST = 2, 5
_DIMENSIONS = 4096
_CHARACTERS_READ = 2000
# The least distance over which similarity fades; it is larger where even the nearest tasks are far.
_LEAST_REACH = 0.125
# The sample for the distance of the nearest texts; fewer texts do not tell.
_SAMPLED = 200
_BY_RARITY = 0.3
# A row takes 16 KB, and many agents have few tasks.
_LEAST_ROOM = 16


class TextIndex:
    """The n-gram vectors of many texts; texts can only be added."""

    def __init__(self) -> None:
        self._ngrams = np.zeros((0, _DIMENSIONS), dtype=np.float32)
        self._used = 0
        self._having = np.zeros(_DIMENSIONS, dtype=np.float32)
        self._weighed_at = 0
        self._weights = np.ones(_DIMENSIONS, dtype=np.float32)
        self._lengths = np.zeros(0, dtype=np.float32)
        self._reach = _LEAST_REACH

    def __len__(self) -> int:
        return self._used

    def add(self, texts: Sequence[str]) -> None:
        """Add texts; they are numbered in this order."""
        self._reserve(len(texts))
        for text in texts:
            row = ngrams_of(text)
            self._ngrams[self._used] = row
            self._having += row != 0
            self._used += 1
        self._weigh()

    def similarity(self, text: str) -> Any:
        """The similarity of each text to this one, from 0 to 1."""
        row, rows = ngrams_of(text), self._ngrams[: self._used]
        weighted = row * self._weights
        length = float(np.linalg.norm(weighted)) or 1.0
        return _combined(rows @ (weighted * self._weights) / (self._lengths * length), rows @ row, self._reach)

    def among(self, numbers: Any) -> Any:
        """The similarities of these texts to each other."""
        rows = self._ngrams[numbers]
        weighted = rows * self._weights / self._lengths[numbers][:, None]
        return _combined(weighted @ weighted.T, rows @ rows.T, self._reach)

    def _weigh(self) -> None:
        """Weight each n-gram by its inverse document frequency, again whenever there are a tenth more texts."""
        if self._used >= 1.1 * self._weighed_at:
            self._weighed_at = self._used
            self._weights = np.log((1 + self._used) / (1 + self._having)).astype(np.float32)
            self._lengths = np.zeros(0, dtype=np.float32)
            self._reach = _reach(self._ngrams[: self._used])
        known = len(self._lengths)
        lengths = np.linalg.norm(self._ngrams[known : self._used] * self._weights, axis=1)
        # A text without any rare n-gram has no weighted similarity.
        self._lengths = np.concatenate([self._lengths, np.where(lengths > 0, lengths, np.inf)])

    def _reserve(self, more: int) -> None:
        if self._used + more > len(self._ngrams):
            room = np.zeros((max(_LEAST_ROOM, len(self._ngrams) // 2, more), _DIMENSIONS), dtype=np.float32)
            self._ngrams = np.vstack([self._ngrams, room])


def _combined(covariances: Any, written: Any, reach: float) -> Any:
    """The similarity from the weighted n-grams and from the plain ones, of which the latter fades with distance."""
    near = np.exp((np.minimum(written, 1) - 1) / reach)
    return _BY_RARITY * np.clip(covariances, 0, 1) + (1 - _BY_RARITY) * near


def some_of(these: Any, most: int) -> Any:
    """A sample of an array, evenly spaced."""
    return these[np.linspace(0, len(these) - 1, min(most, len(these))).astype(int)]


def _reach(rows: Any) -> float:
    """The distance over which similarity fades: that of the nearest text on average.

    File names have near relatives; questions in prose are all far from each other, also those of one kind.
    """
    if len(rows) < _SAMPLED:
        return _LEAST_REACH
    some = some_of(rows, _SAMPLED)
    written = some @ some.T
    np.fill_diagonal(written, 0)
    return max(_LEAST_REACH, float(1 - written.max(axis=1).mean()))


def ngrams_of(text: str) -> Any:
    """The vector of the character n-grams of the words (two to five characters), of length one."""
    counted: Counter[str] = Counter()
    for word in text[:_CHARACTERS_READ].lower().split():
        padded = f" {word} "
        for length in range(_SHORTEST, _LONGEST + 1):
            counted.update(padded[i : i + length] for i in range(max(1, len(padded) - length + 1)))
    row = np.zeros(_DIMENSIONS, dtype=np.float32)
    for piece, count in counted.items():
        row[zlib.crc32(piece.encode()) % _DIMENSIONS] += 1 + math.log(count)
    return row / (float(np.linalg.norm(row)) or 1.0)
