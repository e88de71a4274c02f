"""BERT's tokens: words in lower case without accents, each cut into the longest pieces of a vocabulary."""

from __future__ import annotations

import json
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

_CONTINUED = "##"
_LONGEST_WORD = 100
_WORDS_KEPT, _LONGEST_KEPT = 16_384, 32


class Word(NamedTuple):
    """The tokens of a word, and its place in the text."""

    ids: tuple[int, ...]
    start: int
    end: int


class WordPiece:
    """Cuts a text into tokens; `special` are the tokens that a text may spell out, such as [SEP]. It is thread-safe."""

    def __init__(self, vocabulary: Mapping[str, int], unknown: str, special: Mapping[str, int]) -> None:
        self.unknown = vocabulary[unknown]
        self._special = {text: (number,) for text, number in special.items()}
        self._first = dict(vocabulary)
        self._next = {text[len(_CONTINUED) :]: n for text, n in vocabulary.items() if text.startswith(_CONTINUED)}
        self._longest = max(map(len, vocabulary))
        self._known: dict[str, tuple[int, ...]] = {}
        alternatives = [*map(re.escape, self._special), _characters().word]
        self._words = re.compile("|".join(alternatives))

    def ids(self, text: str) -> list[int]:
        """The tokens of the text."""
        known = self._known
        found: list[int] = []
        for word in self._words.findall(text):
            found += known.get(word) or self._pieces(word)
        return found

    def words(self, text: str) -> Iterator[Word]:
        """The words of the text with their places, which exclude characters that are left out."""
        for match in self._words.finditer(text):
            if ids := self._pieces(match[0]):
                yield Word(ids, *_kept_span(match))

    def _pieces(self, word: str) -> tuple[int, ...]:
        known = self._special.get(word) or self._known.get(word)
        if known is not None:
            return known
        ids = self._cut(word.translate(_characters().normal))
        if len(word) <= _LONGEST_KEPT:
            if len(self._known) >= _WORDS_KEPT:
                self._known.clear()
            self._known[word] = ids
        return ids

    def _cut(self, word: str) -> tuple[int, ...]:
        """The longest pieces from left to right; a word that cannot be cut in this way is unknown."""
        if len(word) > _LONGEST_WORD:
            return (self.unknown,)
        ids: list[int] = []
        start, pieces = 0, self._first
        while start < len(word):
            end = min(len(word), start + self._longest)
            while end > start and word[start:end] not in pieces:
                end -= 1
            if end == start:
                return (self.unknown,)
            ids.append(pieces[word[start:end]])
            start, pieces = end, self._next
        return tuple(ids)


def _kept_span(match: re.Match[str]) -> tuple[int, int]:
    word, (start, end) = match[0], match.span()
    if word.isascii() and word.isprintable():
        return start, end
    kept = [place for place, each in enumerate(word, start) if not _characters().removed(each)]
    return kept[0], kept[-1] + 1


class Characters:
    """Which characters BERT leaves out, and which are words of their own; the others are spaces or parts of words.

    The tables are those of Unicode 8, which the vocabularies were made with: with newer ones, a text would have other
    tokens. `python -m tests.text.bert_characters` writes them.
    """

    def __init__(self, removed: list[int], alone: list[int], spaces: list[int]) -> None:
        self._removed = removed
        self.normal = _Normal(self.removed)
        self.word = f"[{_class(alone)}]|[^{_class(alone)}{_class(spaces)}]+"

    def removed(self, character: str) -> bool:
        """Whether it is left out: a control or format character, or an accent."""
        return bisect_right(self._removed, ord(character)) % 2 == 1


class _Normal(dict[int, str]):
    """A translation of characters: decomposed, in lower case, without what is left out."""

    def __init__(self, removed: Callable[[str], bool]) -> None:
        self._is_removed = removed

    def __missing__(self, code: int) -> str:
        kept = (each for each in unicodedata.normalize("NFD", chr(code)) if not self._is_removed(each))
        self[code] = made = "".join(each.lower() for each in kept)
        return made


def _class(bounds: list[int]) -> str:
    """The content of a regular expression's class; ranges are given by their first character and the one after them."""
    ends = iter(bounds)
    return "".join(f"\\U{start:08x}-\\U{after - 1:08x}" for start, after in zip(ends, ends, strict=True))


@cache
def _characters() -> Characters:
    tables = json.loads(files("alma.text").joinpath("bert_characters.json").read_text(encoding="utf-8"))
    return Characters(**tables)
