"""Undo disguises: the text as a person reads it, without invisible characters, look-alike letters and entities."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from alma.lazy import lazy_regex
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
_DISGUISED = lazy_regex(
    "[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\uff01-\uff5e]"
    "|[A-Za-z][аеорсухіјѕԁɡһтмквнАВЕКМНОРСТУХІЈЅΑ-Ωα-ω]|[аеорсухіјѕԁɡһтмквнАВЕКМНОРСТУХІЈЅΑ-Ωα-ω][A-Za-z]"
)
_ENTITY = lazy_regex(r"&(?:quot|apos|amp|lt|gt|nbsp|#\d{2,6}|#x[0-9a-fA-F]{2,5});")
_WORD = lazy_regex(r"\S+")


def is_disguised(text: str) -> bool:
    """Whether a text has characters that hide, or that look like others."""
    if not text.isascii() and found_in(_DISGUISED, text):
        return True
    return "&" in text and found_in(_ENTITY, text)


class Undisguised:
    """The visible text, and the original place of each of its characters."""

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
    # Imported here: the table of entities takes long to load, and few texts have any.
    import html

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


# Soft hyphens, joiners, zero-width spaces, direction marks and overrides, invisible operators, fillers, variation
# selectors, and tag characters, which can spell a whole invisible text.
_UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_PICTURE = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
# Scripts in which a joiner between two letters changes the word: Arabic, Syriac, the scripts of India, Mongolian.
_JOINED = "\u0600-\u07ff\u0860-\u0dff\u0f00-\u109f\u1780-\u18af\ua840-\ua87f\ufb50-\ufdff\ufe70-\ufefc"
_IDEOGRAPH = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_SIGN = lazy_regex(
    "(?P<kept>"
    # The flags of England, Scotland, Wales and other regions.
    "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f"
    f"|(?<=[{_PICTURE}])[\ufe0e\ufe0f]|(?<=[#*0-9])\ufe0f(?=\u20e3)|(?<=[{_PICTURE}\ufe0f])\u200d(?=[{_PICTURE}])"
    f"|(?<=[{_JOINED}])[\u200c\u200d](?=[{_JOINED}])"
    f"|(?<=[{_IDEOGRAPH}])[\ufe00-\ufe02\U000e0100-\U000e01ef]|(?<=[\u1820-\u18aa])[\u180b-\u180f]"
    f")|[{_UNSEEN}]"
)


def visible(text: str) -> str:
    """The text without invisible characters, except where an emoji or a script needs them.

    For prompts and terminals; stored text and JSON output are unchanged.
    """
    return text if text.isascii() else _SIGN.sub(lambda sign: sign["kept"] or "", text)
