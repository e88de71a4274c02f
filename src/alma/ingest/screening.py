"""Screen text from untrusted sources for prompt injection.

Provenance, the trust level of a text's source, is the first line of defence: text from a trusted source is not
screened. Other text is matched against a short list of phrases (`phrases.toml`: instruction override, authority
spoofing, exfiltration, memory poisoning) and then read by the injection head of the judge.
"""

from __future__ import annotations

import base64
import binascii
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import islice
from typing import Any, Protocol

from alma.judge import default_judge
from alma.judge.base import Judge
from alma.lazy import lazy_regex
from alma.model.record import Record
from alma.text.disguise import plain
from alma.text.scanning import replaced, windows

THRESHOLD = 0.79
"""The score from which text is quarantined; chosen on held-out rows of training/judge/heads."""

_MAX_SCORED_TOKENS = 2_000
_MAX_BLOBS = 20
_PIECE, _PIECE_OVERLAP = 1_000, 100
_CACHED_LENGTH = 1_000
_MAX_PADDING = 32
_PADDING = lazy_regex(rf"\s{{{_MAX_PADDING},}}+")
_NAME = lazy_regex(r"[A-Za-z0-9._-]{0,23}")
_TWO_WORDS = lazy_regex(r"[^\W\d_]{2,}\W+[^\W\d_]{2,}")
_BLOB = lazy_regex(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,}={0,2}")
# Tags, reading-direction overrides, and zero-width characters inside of Latin words.
_HIDDEN = lazy_regex(
    "[\u202a-\u202e\u2066-\u2069]|(?<![\U000e0020-\U000e007f\U0001f3f4])[\U000e0001-\U000e007f]"
    "|(?<=[A-Za-z])[\u200b-\u200d\u2060\ufeff\u00ad\u180e]+(?=[A-Za-z])|[\u200b\u2060\ufeff\u180e]{3,}"
)
_WRAPPED_LINE = lazy_regex(r"(?<=[\w,])[ \t]*\n[ \t]*(?=[a-z])")
_GAP = r"[^.!?\n]{0,40}?"
_QUOTED = lazy_regex(
    r"\"[^\"\n]{1,160}\"|`[^`\n]{1,160}`|“[^”\n]{1,160}”|«[^»\n]{1,160}»|(?<!\w)'[^'\n]{4,160}'(?!\w)",
)


@dataclass(frozen=True, slots=True)
class Screening:
    """How likely a text is a prompt injection, from 0 to 1, and why."""

    score: float
    reason: str


HARMLESS = Screening(0.0, "")


class InjectionScreen(Protocol):
    """Scores text from untrusted sources; any text gets a score, however long or odd it is."""

    def screen(self, text: str) -> Screening:
        """How likely this text holds instructions aimed at its reader."""
        ...


class PhraseScreen:
    """Looks for the phrases of `phrases.toml`; needs no model.

    A phrase in quotation marks does not count unless most of the text is quoted: documents about injections quote them.
    """

    def screen(self, text: str) -> Screening:
        """1 where a phrase is found, else 0."""
        return _cached_phrases(text) if len(text) <= _CACHED_LENGTH else _phrases_in(text)


class JudgeScreen:
    """Scores text with the injection head of a judge; 0 where the judge has none.

    Of a long text it reads evenly spaced pieces, at most about half a second's worth.
    """

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def screen(self, text: str) -> Screening:
        """The score of the most suspicious piece."""
        parts = windows(replaced(_PADDING, _cut_padding, text))
        pieces = dict.fromkeys(piece for part in parts for piece in windows(plain(part), _PIECE, _PIECE_OVERLAP))
        worded = [piece for piece in pieces if _TWO_WORDS.search(piece)]
        scores = self._judge.injection(_sampled(worded)) if worded else []
        score = max((each for each in scores if each is not None), default=0.0)
        return Screening(score, "it looks like instructions to its reader")


class DefaultScreen:
    """Phrases first, then the judge."""

    def __init__(self, judge: Judge | None = None) -> None:
        self._phrases = PhraseScreen()
        self._judge = judge

    def screen(self, text: str) -> Screening:
        """The first screening that reaches the threshold, else that of the judge."""
        found = self._phrases.screen(text)
        if found.score >= THRESHOLD:
            return found
        return JudgeScreen(default_judge() if self._judge is None else self._judge).screen(text)


def injection_in(texts: Iterable[str], screen: InjectionScreen | None = None) -> str | None:
    """The reason to quarantine these texts as prompt injection; None when they pass."""
    screen = screen or DefaultScreen()
    for text in dict.fromkeys(texts):
        if _NAME.fullmatch(text) is None and (found := screen.screen(text)).score >= THRESHOLD:
            return found.reason
    return None


def injection_in_record(record: Record, source: str, screen: InjectionScreen | None = None) -> str | None:
    """The reason to quarantine a record from an untrusted source; None when it passes."""
    texts = (
        text
        for field in record.spec.primary
        if field.name != record.spec.vector_field
        for text in _texts_in(getattr(record, field.name))
    )
    reason = injection_in(texts, screen)
    return None if reason is None else f"from the source {source!r}, and {reason}"


def _texts_in(value: Any) -> Iterator[str]:
    """Every text in a value, JSON keys included."""
    match value:
        case str():
            yield value
        case dict():
            for key, item in value.items():
                yield key
                yield from _texts_in(item)
        case list() | tuple():
            for item in value:
                yield from _texts_in(item)


def _sampled(pieces: Sequence[str]) -> Sequence[str]:
    """As many of the pieces, evenly spaced, as the judge reads in bounded time."""
    tokens = sum(
        len(word) // 4 + 1 if word.isascii() and word.isalpha() else len(word) for p in pieces for word in p.split()
    )
    return pieces[:: 1 + tokens // _MAX_SCORED_TOKENS]


def _cut_padding(padding: re.Match[str]) -> str:
    return padding[0][:_MAX_PADDING]


# ---------------------------------------------------------------------- phrases


@dataclass(frozen=True, slots=True)
class _Phrase:
    reason: str
    pattern: re.Pattern[str]
    hints: tuple[tuple[str, ...], ...]

    def is_in(self, folded: str) -> bool:
        # Substrings rule out most phrases faster than their patterns do.
        return all(any(hint in folded for hint in hints) for hints in self.hints) and bool(self.pattern.search(folded))


def _phrases_in(text: str) -> Screening:
    for part in windows(replaced(_PADDING, _cut_padding, text)):
        if not part.isascii() and _HIDDEN.search(part):
            return Screening(1.0, "it hides characters that a person does not see")
        for said in (part, *_decoded(part)):
            if (reason := _reason(said)) is not None:
                return Screening(1.0, reason)
    return HARMLESS


_cached_phrases = lru_cache(maxsize=2_048)(_phrases_in)


def _reason(text: str) -> str | None:
    folded = _WRAPPED_LINE.sub(" ", plain(text)).lower()
    unquoted = _QUOTED.sub(" ", folded)
    read = folded if len(unquoted) < len(folded) / 2 else unquoted
    return next((phrase.reason for phrase in _phrases() if phrase.is_in(read)), None)


def _decoded(text: str) -> Iterator[str]:
    """Base64 in the text, decoded, where it is readable."""
    for match in islice(_BLOB.finditer(text), _MAX_BLOBS):
        blob = match.group().rstrip("=").replace("-", "+").replace("_", "/")
        try:
            said = base64.b64decode(blob + "=" * (-len(blob) % 4)).decode("utf-8")
        except (binascii.Error, ValueError):
            continue
        if sum(c.isprintable() or c.isspace() for c in said) >= 0.95 * len(said):
            yield said


@cache
def _phrases() -> tuple[_Phrase, ...]:
    data = tomllib.loads(files("alma.ingest").joinpath("phrases.toml").read_text(encoding="utf-8"))
    phrases = (_phrase(each, category["reason"]) for category in data.values() for each in category["phrases"])
    markers = (_marker(each, category["reason"]) for category in data.values() for each in category.get("markers", ()))
    return (*phrases, *markers)


def _marker(marker: str, reason: str) -> _Phrase:
    return _Phrase(reason, re.compile(re.escape(marker)), ((marker,),))


def _phrase(phrase: str, reason: str) -> _Phrase:
    words = phrase.split()
    hints = tuple(tuple(map(_literal, word.split("|"))) for word in words if word != "...")
    parts = []
    for before, word in zip(("...", *words), words, strict=False):
        between = "" if "..." in (before, word) else r"\s{0,3}"
        parts.append(between + (_GAP if word == "..." else f"(?:{'|'.join(map(_bounded, word.split('|')))})"))
    return _Phrase(reason, re.compile("".join(parts)), hints)


def _literal(word: str) -> str:
    return word.removesuffix("*").replace("_", " ")


def _bounded(word: str) -> str:
    """One alternative as a pattern; scripts without spaces between words have no word boundaries."""
    literal = _literal(word)
    begins = r"(?<![^\W_])" if literal[0].isalnum() and literal[0] < "\u2000" else ""
    ends = r"\w*" if word.endswith("*") else r"(?![^\W_])" if literal[-1].isalnum() and literal[-1] < "\u0500" else ""
    return begins + r"\s+".join(map(re.escape, literal.split(" "))) + ends
