"""Excerpts of long texts around the words of a query."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import takewhile

from alma.lazy import lazy_regex
from alma.text.tokens import words_by_term

_SHORTENED = "…"
# Shorter excerpts are taken from the beginning.
_GLIMPSE = 80
_MOST_WORDS = 64
_PLACES_OF_A_WORD = 30
# The sentence of a hit may begin up to half an excerpt before it.
_BEFORE = 2
_SENTENCE = lazy_regex(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_SPACE = lazy_regex(r"\s+")
_LONGEST_WORD = 40


class Excerpts:
    """Cuts texts around the words of a query; without a query, to their beginnings."""

    def __init__(self, question: str | None = None) -> None:
        self._question = question or ""
        self._known: dict[str, _Places] = {}

    @cached_property
    def _sought(self) -> re.Pattern[str] | None:
        """Compiled when the first text must be cut."""
        return _pattern(self._question)

    def cut(self, text: str, most: int) -> str:
        """At most `most` characters of the text, with an ellipsis where something is left out."""
        if len(text) <= most:
            return text
        start = self._start(text, most)
        shown = text[start : start + most].rstrip()
        return f"{_SHORTENED if start else ''}{shown}{_SHORTENED if start + most < len(text) else ''}"

    def _start(self, text: str, most: int) -> int:
        if most < _GLIMPSE or self._sought is None:
            return 0
        if text not in self._known:
            self._known[text] = _Places(self._sought, text)
        place = self._known[text].best(most)
        return 0 if place is None else _beginning(text, place, most)


class _Places:
    """The positions of query words in a text; rarer words weigh more."""

    def __init__(self, sought: re.Pattern[str], text: str) -> None:
        self._counts = Counter[str]()
        found = [*self._few(sought, text)]
        self._positions = [position for position, _ in found]
        self._words = [word for _, word in found]

    def _few(self, sought: re.Pattern[str], text: str) -> Iterator[tuple[int, str]]:
        for each in sought.finditer(text):
            word = each.group().casefold()
            self._counts[word] += 1
            if self._counts[word] <= _PLACES_OF_A_WORD:
                yield each.start(), word

    def best(self, most: int) -> int | None:
        """The first hit of the best window; None where that is the beginning."""
        starts = [0, *(max(0, position - most // _BEFORE) for position in self._positions)]
        worth = [self._worth(start, most) for start in starts]
        best = max(worth)
        # Rounding errors must not move the window.
        if best <= worth[0] + 1e-9:
            return None
        return self._positions[bisect_left(self._positions, starts[worth.index(best)])]

    def _worth(self, start: int, most: int) -> float:
        here = slice(bisect_left(self._positions, start), bisect_left(self._positions, start + most))
        return sum(1 / self._counts[word] for word in {*self._words[here]})


def _pattern(question: str) -> re.Pattern[str] | None:
    """A pattern of the stems of the content words of a query."""
    words = list(words_by_term(question).items())[:_MOST_WORDS]
    beginnings = {(_shared(term, word) if word.isalnum() else "") or word for term, word in words}
    if not beginnings:
        return None
    # Longer stems first.
    longest_first = sorted(beginnings, key=lambda each: (-len(each), each))
    # Only words of spaced scripts have a boundary.
    parts = (rf"\b{re.escape(each)}" if each.isascii() else re.escape(each) for each in longest_first)
    return re.compile("|".join(parts), re.IGNORECASE)


def _shared(term: str, word: str) -> str:
    """The common prefix of a word and its stem."""
    pairs = zip(term, word, strict=False)
    return "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _beginning(text: str, place: int, most: int) -> int:
    """The start of the sentence of a hit, or of a word a little before; the end of a text is not cut."""
    earliest = max(0, min(place - most // _BEFORE, len(text) - most))
    latest = min(place, max(earliest, len(text) - most) + _LONGEST_WORD)
    before = text[earliest:latest]
    ends: Sequence[int] = [each.end() for each in _SENTENCE.finditer(before)]
    if ends:
        return earliest + ends[-1]
    space = _SPACE.search(before)
    return earliest + (space.end() if space else 0)
