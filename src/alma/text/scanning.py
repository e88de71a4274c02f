"""Search long texts in bounded windows, so that no single call blocks the interpreter for long."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator

from alma.lazy import lazy_regex

WINDOW = 8_192
"""The characters that one call of a pattern reads of a long text."""

# More than any bounded pattern matches.
_OVERLAP = 4_608
# The longest lookahead of a pattern.
_LOOKAHEAD = 256
_LONGEST_SPACE, _LONGEST_WORD = 32, 256
_LONG_RUN = lazy_regex(rf"\s{{{_LONGEST_SPACE + 1},}}+|\S{{{_LONGEST_WORD}}}(?=\S)")


def matches(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """The matches of `pattern.finditer(text)`; a long text is read window by window.

    A match that reaches the end of its window is read again with more of the text, so it is found whole however long
    it is. A pattern whose condition is further away than a window, as `.*` in a lookahead, is not seen.
    """
    if len(text) <= WINDOW + _OVERLAP:
        yield from pattern.finditer(text)
        return
    start = 0
    while start <= len(text):
        border = start + WINDOW
        end = min(border + _OVERLAP, len(text))
        following = border if end < len(text) else len(text) + 1
        for match in pattern.finditer(text, start, end):
            if match.start() >= following:
                break
            if match.end() + _LOOKAHEAD < end or end == len(text):
                yield match
                following = max(following, match.end())
                continue
            # The end of the window may have cut or created this match.
            whole = _whole(pattern, text, match.start(), end)
            if whole is not None:
                yield whole
            following = match.start() + 1 if whole is None else max(whole.end(), whole.start() + 1)
            break
        start = following


def _whole(pattern: re.Pattern[str], text: str, start: int, end: int) -> re.Match[str] | None:
    """The match at this place, with the window extended as far as needed."""
    while True:
        end = min(start + 2 * (end - start) + _LOOKAHEAD, len(text))
        match = pattern.match(text, start, end)
        if match is None or end == len(text) or match.end() + _LOOKAHEAD < end:
            return match


def found_in(pattern: re.Pattern[str], text: str) -> bool:
    """Whether the pattern is found anywhere in a text of any length."""
    if len(text) <= WINDOW + _OVERLAP:
        return pattern.search(text) is not None
    return next(matches(pattern, text), None) is not None


def replaced(pattern: re.Pattern[str], by: str | Callable[[re.Match[str]], str], text: str) -> str:
    """`pattern.sub` window by window; `by` is literal."""
    parts: list[str] = []
    end = 0
    for match in matches(pattern, text):
        parts += (text[end : match.start()], by if isinstance(by, str) else by(match))
        end = match.end()
    return "".join((*parts, text[end:])) if parts else text


def windows(text: str, size: int = WINDOW, overlap: int = 1_024) -> Iterator[str]:
    """A long text in overlapping pieces, cut between words where possible."""
    start = 0
    while len(text) - start > size:
        end = start + size
        cut = max(text.rfind(" ", end - size // 4, end), text.rfind("\n", end - size // 4, end))
        end = end if cut < 0 else cut + 1
        yield text[start:end]
        start = end - overlap
    yield text[start:]


class Squeezed:
    """A text in which no word and no run of spaces is longer than a bound, so that patterns take linear time.

    Further spaces are left out, and words of hundreds of characters are broken. `at` says where a place of it is in the
    text as it was given.
    """

    def __init__(self, text: str) -> None:
        parts: list[str] = []
        # The offset to the original from each place on.
        self._places, self._ahead = [0], [0]
        end = length = 0
        for match in matches(_LONG_RUN, text):
            is_space = match[0].isspace()
            kept = text[end : match.start() + _LONGEST_SPACE] if is_space else text[end : match.end()] + " "
            parts.append(kept)
            length += len(kept)
            end = match.end()
            self._places.append(length)
            self._ahead.append(end - length)
        self.text = "".join((*parts, text[end:])) if parts else text

    def at(self, place: int) -> int:
        """This place in the original text."""
        return place + self._ahead[bisect_right(self._places, place) - 1]


def squeezed(text: str) -> str:
    """The text of `Squeezed`, for scanners that need no positions."""
    return Squeezed(text).text
