"""Screening: whether a text from an untrusted source looks like an injection, instructions aimed at its reader.

The judge reads the text in pieces, without its disguises. Where it has no model, a short list of phrases stands in
for it. What hides characters or imitates the marks of a conversation is suspicious by its form alone.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import islice
from typing import Any
from urllib.parse import unquote

from alma.judge import default_judge
from alma.judge.base import Judge
from alma.model.record import Record
from alma.model.scanning import replaced, squeezed, windows

LEAST_SUSPICIOUS = 0.5
"""How likely an injection must be for a text to be quarantined."""

_MOST_BLOBS = 20
# How much the judge reads at a time, and how much of it is read with what follows.
_PIECE, _OVERLAP = 1_000, 100
_FEWEST_WORDS = 3
# Too short to be encoded, and without anything that parts words.
_NAME = re.compile(r"[A-Za-z0-9._-]{0,23}")

_BLOB = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,}={0,2}")
_HEX = re.compile(r"(?<![0-9A-Za-z])(?:[0-9A-Fa-f]{2}[ :]?){16,}(?![0-9A-Za-z])")
_PERCENT = re.compile(r"%[0-9A-Fa-f]{2}")
_ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})|\\x([0-9A-Fa-f]{2})")
# "instructions", "prompt" and "ignore" with every letter thirteen further, or from behind.
_ROTATED = ("vafgehpgvba", "cebzcg")
_REVERSED = ("noitcurtsni", "tpmorp")
_LONGEST_PADDING = 32
_PADDING = re.compile(rf"\s{{{_LONGEST_PADDING},}}+")
_WORD = re.compile(r"\S+")
_SPELLED = re.compile(r"(?:\b\w[\s.*_-]){5,}\w\b")
# Zero-width characters inside of Latin words, turns of the reading direction, and letters that nobody sees.
_HIDDEN = re.compile(
    "[\u202a-\u202e\u2066-\u2069]|(?<![\U000e0020-\U000e007f\U0001f3f4])[\U000e0001-\U000e007f]"
    "|(?<=[A-Za-z])[\u200b-\u200d\u2060\ufeff\u00ad\u180e]+(?=[A-Za-z])|[\u200b\u2060\ufeff\u180e]{3,}"
)
_INVISIBLE = re.compile("[\u200b-\u200f\u2060-\u2064\ufeff\u00ad\u180e\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_LOOKALIKES = str.maketrans(
    "аеорсухіјѕԁɡһтмквнАВЕКМНОРСТУХІЈЅΑΒΕΙΚΜΝΟΡΤΥΧαεοιυρν",
    "aeopcyxijsdghtmkbhABEKMHOPCTYXIJSABEIKMNOPTYXaeoiupv",
)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a text, as a model would understand it, and whether it was encoded."""

    text: str
    encoded: bool = False

    def told(self, reason: str) -> str:
        return f"{reason}, in an encoded part" if self.encoded else reason


def suspected(record: Record, source: str, judge: Judge | None = None) -> str | None:
    """Why a record from an untrusted source must not be handed to anybody; None where nothing is said against it."""
    texts = (
        text
        for field in record.spec.primary
        if field.name != record.spec.vector_field
        for text in texts_in(getattr(record, field.name))
    )
    reason = suspicion(texts, judge)
    return None if reason is None else f"from the source {source!r}, and {reason}"


def texts_in(value: Any) -> Iterator[str]:
    """Every text in a value, keys of JSON included."""
    match value:
        case str():
            yield value
        case dict():
            for key, item in value.items():
                yield key
                yield from texts_in(item)
        case list() | tuple():
            for item in value:
                yield from texts_in(item)


def suspicion(texts: Iterable[str], judge: Judge | None = None) -> str | None:
    """Why these texts look like an injection, in a few words; None where they do not."""
    read = [text for text in dict.fromkeys(texts) if not _NAME.fullmatch(text)]
    if any(not text.isascii() and _HIDDEN.search(text) for text in read):
        return "it hides characters that a person does not see"
    pieces = list(dict.fromkeys(piece for text in read for piece in _pieces(text)))
    return _by_form(pieces) or _by_judge(pieces, default_judge() if judge is None else judge)


def _by_form(pieces: Sequence[_Piece]) -> str | None:
    marked = next((piece for piece in pieces if _has_one(piece, "markers")), None)
    return None if marked is None else marked.told("it imitates the marks of a conversation or a tool call")


def _by_judge(pieces: Sequence[_Piece], judge: Judge) -> str | None:
    worded = [piece for piece in pieces if sum(1 for _ in islice(_LETTERS.finditer(piece.text), _FEWEST_WORDS)) > 1]
    for piece, chance in zip(worded, judge.injection([piece.text for piece in worded]), strict=True):
        if chance is None and _has_one(piece, "phrases"):
            return piece.told("it tells the reader to ignore its instructions, or to hide something")
        if chance is not None and chance >= LEAST_SUSPICIOUS:
            return piece.told("it looks like instructions to whoever reads it")
    return None


def _has_one(piece: _Piece, listed: str) -> bool:
    folded = piece.text.lower()
    return any(phrase in folded for phrase in _lists()[listed])


@cache
def _lists() -> dict[str, tuple[str, ...]]:
    text = resources.files("alma.door").joinpath("phrases.json").read_text(encoding="utf-8")
    return {
        name: tuple(unicodedata.normalize("NFKC", each) for each in json.loads(text)[name])
        for name in ("markers", "phrases")
    }


def _pieces(text: str) -> Iterator[_Piece]:
    for part in windows(replaced(_PADDING, _kept, text)):
        for short in windows(_plain(part), _PIECE, _OVERLAP):
            yield _Piece(short)
        for decoded in _decoded(part):
            for short in windows(_plain(decoded), _PIECE, _OVERLAP):
                yield _Piece(short, encoded=True)


def _kept(padding: re.Match[str]) -> str:
    return padding[0][:_LONGEST_PADDING]


def _plain(text: str) -> str:
    """The text as a model would understand it: without disguises by characters, entities or spacing."""
    if "%" in text and _PERCENT.search(text):
        text = unquote(text)
    if "\\" in text:
        text = _ESCAPE.sub(lambda match: chr(int(match[1] or match[2], 16)), text)
    bare = _INVISIBLE.sub("", html.unescape(text))
    bare = unicodedata.normalize("NFKC", bare)
    if not bare.isascii():
        bare = _WORD.sub(_unmasked, bare)
    return squeezed(_SPELLED.sub(lambda match: re.sub(r"[\s.*_-]", "", match.group()), squeezed(bare)))


def _unmasked(match: re.Match[str]) -> str:
    """A word that mixes Latin letters with others that look the same, in Latin letters."""
    word = match.group()
    mixed = any("a" <= c <= "z" for c in word.lower()) and not word.isascii()
    return word.translate(_LOOKALIKES) if mixed else word


def _decoded(text: str) -> Iterator[str]:
    """What base64 and hexadecimal digits in the text say, where they say anything, and letters that were exchanged."""
    for match in islice(_BLOB.finditer(text), _MOST_BLOBS):
        blob = match.group().rstrip("=").replace("-", "+").replace("_", "/")
        yield from _said(base64.b64decode, blob + "=" * (-len(blob) % 4))
    for match in islice(_HEX.finditer(text), _MOST_BLOBS):
        yield from _said(bytes.fromhex, match.group().replace(":", " "))
    folded = text.lower()
    if any(stem in folded for stem in _ROTATED):
        yield codecs.encode(text, "rot13")
    if any(stem in folded for stem in _REVERSED):
        yield text[::-1]


def _said(decode: Callable[[str], bytes], blob: str) -> Iterator[str]:
    try:
        said = decode(blob).decode("utf-8")
    except (binascii.Error, ValueError):
        return
    if sum(c.isprintable() or c.isspace() for c in said) >= 0.95 * len(said):
        yield said
