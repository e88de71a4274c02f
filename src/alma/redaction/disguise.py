"""Disguises: a text as it would be read, without signs that nobody sees, other letters' shapes and entities."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Iterator

from alma.redaction.secrets import Span
from alma.text.scanning import found_in, matches

_UNSEEN = frozenset("\u00ad\u180e\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff")
_LOOKALIKES = dict(
    zip(
        "аеорсухіјѕԁɡһтмквнАВЕКМНОРСТУХІЈЅΑΒΕΙΚΜΝΟΡΤΥΧαεοιυρν",
        "aeopcyxijsdghtmkbhABEKMHOPCTYXIJSABEIKMNOPTYXaeoiupv",
        strict=True,
    )
)
_DISGUISED = re.compile(
    "[\u00ad\u180e\u200b-\u200f\u2060-\u2064\ufeff\uff01-\uff5e]"
    "|[A-Za-z][аеорсухіјѕԁɡһтмквнАВЕКМНОРСТУХІЈЅΑ-Ωα-ω]|[аеорсухіјѕԁɡһтмквнАВЕКМНОРСТУХІЈЅΑ-Ωα-ω][A-Za-z]"
)
_ENTITY = re.compile(r"&(?:quot|apos|amp|lt|gt|#\d{2,6}|#x[0-9a-fA-F]{2,5});")
_WORD = re.compile(r"\S+")


def is_disguised(text: str) -> bool:
    """Whether there is anything in a text that only looks like, or hides, something else."""
    if not text.isascii() and found_in(_DISGUISED, text):
        return True
    return "&" in text and found_in(_ENTITY, text)


class Undisguised:
    """A text as it is read, and where each of its signs stands in what was written."""

    def __init__(self, text: str) -> None:
        read = list(_read(text))
        self.text = "".join(sign for sign, _ in read)
        self._places = [place for sign, place in read for _ in sign]
        self._length = len(text)

    def written(self, spans: Iterable[Span]) -> Iterator[Span]:
        """The spans of what is read, as spans of what was written."""
        for span in spans:
            end = self._places[span.end] if span.end < len(self._places) else self._length
            yield Span(self._places[span.start], end, span.kind)


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
        sign = text[place]
        if sign not in _UNSEEN:
            yield _plain(sign, place in latin), place
        place += 1


def _plain(sign: str, among_latin: bool) -> str:
    if sign.isascii():
        return sign
    if "\uff01" <= sign <= "\uff5e":
        return unicodedata.normalize("NFKC", sign)
    return _LOOKALIKES.get(sign, sign) if among_latin else sign


def _is_mixed(word: str) -> bool:
    return not word.isascii() and any("a" <= c <= "z" or "A" <= c <= "Z" for c in word)
