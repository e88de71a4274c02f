"""Long text in passages: how it is divided so that none is too long and none is a leftover."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TypeVar

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
