"""Screening: whether a text from an untrusted source looks like an injection, instructions aimed at its reader.

Signs in the wording come first: they are quick and know the usual attacks in many disguises. What they pass, the judge
reads: it knows few of those, and many that are worded like ordinary text. Measured apart and together in
docs/explanation/decisions/0027-suspected-prompt-injection-is-quarantined.md.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any
from urllib.parse import unquote

from alma.ingest.signs import SIGNS
from alma.judge import default_judge
from alma.judge.base import Judge
from alma.model.record import Record
from alma.text.scanning import replaced, squeezed, windows

LEAST_SUSPICIOUS = 0.8
"""How likely the judge must find an injection: of held-out rows it then takes half, and one harmless text in fifty."""

_MOST_BLOBS = 20
# How much the judge reads at a time, and how much of it is read again with what follows.
_PIECE, _OVERLAP = 1_000, 100
# Of more than this the judge reads pieces here and there: about 8,000 characters of prose, or half a second.
_MOST_TOKENS = 2_000
# A single word tells a reader nothing to do.
_WORDS = re.compile(r"[^\W\d_]{2,}\W+[^\W\d_]{2,}")
_LONGEST_REMEMBERED = 1_000
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
# A line that ends in the middle of a sentence.
_BROKEN = re.compile(r"(?<=[\w,])[ \t]*\n[ \t]*(?=[a-z])")
_DIVIDED = re.compile(r"(?<=[a-z])-[ \t]*\n[ \t]*(?=[a-z])")
_DIGITS_IN_WORDS = re.compile(r"\b(?=[a-z]*[013457@$])(?=[013457@$]*[a-z])[a-z013457@$]{4,}", re.IGNORECASE)
_LIKE_LETTERS = str.maketrans("013457@$", "oieastas")
_LOOKALIKES = str.maketrans(
    "аеорсухіјѕԁɡһтмквнАВЕКМНОРСТУХІЈЅΑΒΕΙΚΜΝΟΡΤΥΧαεοιυρν",
    "aeopcyxijsdghtmkbhABEKMHOPCTYXIJSABEIKMNOPTYXaeoiupv",
)


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
    reason = next((reason for text in read if (reason := _said_against(text)) is not None), None)
    return reason or _judged(read, default_judge() if judge is None else judge)


def _judged(texts: Iterable[str], judge: Judge) -> str | None:
    """What the judge says against the texts, read in pieces of which each has at least two words."""
    parts = (part for text in texts for part in windows(replaced(_PADDING, _kept, text)))
    pieces = (piece for part in parts for piece in windows(_plain(part), _PIECE, _OVERLAP))
    worded = [piece for piece in dict.fromkeys(pieces) if _WORDS.search(piece)]
    chances = judge.injection(_within_budget(worded)) if worded else []
    if any(chance is not None and chance >= LEAST_SUSPICIOUS for chance in chances):
        return "it looks like instructions to whoever reads it"
    return None


def _within_budget(pieces: Sequence[str]) -> Sequence[str]:
    """As many of the pieces, evenly spread, as the judge reads in bounded time; the signs read all."""
    tokens = sum(
        len(word) // 4 + 1 if word.isascii() and word.isalpha() else len(word) for p in pieces for word in p.split()
    )
    return pieces[:: 1 + tokens // _MOST_TOKENS]


def _said_against(text: str) -> str | None:
    return _remembered(text) if len(text) <= _LONGEST_REMEMBERED else _read(text)


def _read(text: str) -> str | None:
    return next((reason for part in windows(replaced(_PADDING, _kept, text)) for reason in _reasons(part)), None)


def _kept(padding: re.Match[str]) -> str:
    return padding[0][:_LONGEST_PADDING]


# Keys, names and errors come again and again.
_remembered = lru_cache(maxsize=2_048)(_read)


def _reasons(text: str) -> Iterator[str]:
    if not text.isascii() and _HIDDEN.search(text):
        yield "it hides characters that a person does not see"
    yield from _signs(text)
    for decoded in _decoded(text):
        for reason in _signs(decoded):
            yield f"{reason}, in an encoded part"


def _signs(text: str) -> Iterator[str]:
    plain = _plain(text)
    # Orders may be broken over lines, and letters written as digits that look like them.
    joined = _BROKEN.sub(" ", _DIVIDED.sub("", plain)) if "\n" in plain else plain
    for said in dict.fromkeys((plain, joined, _DIGITS_IN_WORDS.sub(_as_letters, plain))):
        folded = said.lower()
        for sign in SIGNS:
            if sign.is_in(said, folded):
                yield sign.reason


def _as_letters(match: re.Match[str]) -> str:
    return match.group().translate(_LIKE_LETTERS)


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
