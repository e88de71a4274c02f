"""Undo disguises: the text as a person reads it, without invisible characters, look-alike letters and entities."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator

from alma.text.scanning import found_in, matches, squeezed

_INVISIBLE = frozenset(
    "\u00ad\u180e\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff"
    "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
_LOOKALIKES = dict(
    zip(
        "аеорсухіјѕԁɡһтмквнАВЕКМНОРСТУХІЈЅΑΒΕΙΚΜΝΟΡΤΥΧαεοιυρν",
        "aeopcyxijsdghtmkbhABEKMHOPCTYXIJSABEIKMNOPTYXaeoiupv",
        strict=True,
    )
)
_DISGUISED = re.compile(
    "[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\uff01-\uff5e]"
    "|[A-Za-z][аеорсухіјѕԁɡһтмквнАВЕКМНОРСТУХІЈЅΑ-Ωα-ω]|[аеорсухіјѕԁɡһтмквнАВЕКМНОРСТУХІЈЅΑ-Ωα-ω][A-Za-z]"
)
_ENTITY = re.compile(r"&(?:quot|apos|amp|lt|gt|nbsp|#\d{2,6}|#x[0-9a-fA-F]{2,5});")
_WORD = re.compile(r"\S+")


def is_disguised(text: str) -> bool:
    """Whether a text has characters that hide, or that look like others."""
    if not text.isascii() and found_in(_DISGUISED, text):
        return True
    return "&" in text and found_in(_ENTITY, text)


class Undisguised:
    """A text as it is read, and where each of its characters was in the original."""

    def __init__(self, text: str) -> None:
        read = list(_read(text))
        self.text = "".join(characters for characters, _ in read)
        self._places = [place for characters, place in read for _ in characters]
        self._length = len(text)

    def original(self, start: int, end: int) -> tuple[int, int]:
        """The span of the original that this span was read from."""
        return self._places[start], self._places[end] if end < len(self._places) else self._length


def plain(text: str) -> str:
    """The text without disguises, in normal form KC, with long runs of spaces and letters shortened."""
    read = Undisguised(text).text if is_disguised(text) else text
    return squeezed(read if read.isascii() else unicodedata.normalize("NFKC", read))


def _read(text: str) -> Iterator[tuple[str, int]]:
    entities = {match.start(): match for match in matches(_ENTITY, text)} if "&" in text else {}
    latin = {place for word in matches(_WORD, text) if _is_mixed(word[0]) for place in range(*word.span())}
    place = 0
    while place < len(text):
        entity = entities.get(place)
        if entity is not None:
            yield html.unescape(entity[0]), place
            place = entity.end()
            continue
        if text[place] not in _INVISIBLE:
            yield _ascii(text[place], place in latin), place
        place += 1


def _ascii(character: str, among_latin: bool) -> str:
    if character.isascii():
        return character
    if "\uff01" <= character <= "\uff5e":
        return unicodedata.normalize("NFKC", character)
    return _LOOKALIKES.get(character, character) if among_latin else character


def _is_mixed(word: str) -> bool:
    return not word.isascii() and any("a" <= c <= "z" or "A" <= c <= "Z" for c in word)
