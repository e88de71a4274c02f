"""Gist: what two texts must share to say the same thing, and nothing that could make them differ."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence

from alma.model.record import Record

# What polarity, number or order hangs on is never a filler; only these words are.
_FILLERS = frozenset(("a", "an", "the", "please", "just", "simply", "really", "actually", "basically"))
_OPENINGS = re.compile(
    r"^\W*(?:please\s+)?(?:note|remember|reminder|fyi|important|i(?:'ve| have)? learn(?:ed|t)|"
    r"lesson(?: learned)?|insight)\s*(?::|\bthat\b|,|-\s)\s*",
    re.IGNORECASE,
)
_CONTRACTIONS = (
    (re.compile(r"\bcan'?t\b|\bcannot\b"), "can not"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"n't\b"), " not"),
    (re.compile(r"\b(dont|doesnt|didnt|isnt|arent|wasnt|shouldnt|mustnt)\b"), lambda m: m.group(1)[:-2] + " not"),
    (re.compile(r"\b(it|that|there|he|she)'s\b"), r"\1 is"),
    (re.compile(r"'re\b"), " are"),
    (re.compile(r"'ll\b"), " will"),
)
_APOSTROPHES = str.maketrans({"\u2019": "'", "\u02bc": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"'})
# A word keeps the signs that are part of it (C++, C#, v1.2, -1, 50%, a.b, x/y), not those around it.
_TOKEN = re.compile(r"[^\s,;!?\"'`()\[\]{}…“”«»—–]+")
_EDGES = ".:*_|>"
_FEWEST_TO_TURN = 4
_GUARDS = """
    not no never always none nor neither without only except unless avoid stop instead cannot before after until
    disable enable deny allow remove add false true off on more less least most must may optional required
"""
GUARDS = frozenset(_GUARDS.split())
"""Words that turn what is said around, so that a text with one more of them says something else."""


def tokens(text: str) -> list[str]:
    """The words of a text, without case, punctuation, articles and plural endings; numbers and names stay."""
    plain = unicodedata.normalize("NFKC", text.translate(_APOSTROPHES)).casefold()
    plain = _OPENINGS.sub("", plain)
    for pattern, replacement in _CONTRACTIONS:
        plain = pattern.sub(replacement, plain)
    found = (_bare(match.group()) for match in _TOKEN.finditer(plain))
    return [_singular(token) for token in found if token and token not in _FILLERS]


def gist(record: Record) -> str:
    """One text for all the ways to say the same: each text field's words, turned to where they begin first."""
    return "\x1f".join(" ".join(_turned(tokens(getattr(record, name) or ""))) for name in record.spec.text)


def fingerprint(*parts: object) -> str:
    """A short name for a text and what it belongs to."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def is_guarded(token: str) -> bool:
    """Whether a word must not be missing in, or new to, a text that says the same: a number, a sign, a negation."""
    return token in GUARDS or not token.isalpha()


def differ_by_a_slip(one: str, other: str) -> bool:
    """Whether two gists are the same but for one mistyped word: two letters swapped, or one doubled."""
    ours, theirs = re.split("[ \x1f]", one), re.split("[ \x1f]", other)
    if len(ours) != len(theirs):
        return False
    different = [(a, b) for a, b in zip(ours, theirs, strict=True) if a != b]
    return len(different) == 1 and _is_slip(*different[0])


def _bare(token: str) -> str:
    stripped = token.strip(_EDGES)
    return "" if all(not c.isalnum() for c in stripped) and len(stripped) <= 1 else stripped


def _singular(token: str) -> str:
    if len(token) > 4 and token.isalpha() and token.endswith("s") and not token.endswith(("ss", "us", "is")):
        return token[:-1]
    return token


def _turned(words: Sequence[str]) -> Sequence[str]:
    """The words from their smallest rotation on: "before a commit run the tests" is "run the tests before a commit"."""
    if not _FEWEST_TO_TURN <= len(words) <= 60:
        return words
    return min(([*words[i:], *words[:i]] for i in range(len(words))), default=words)


def _is_slip(a: str, b: str) -> bool:
    if min(len(a), len(b)) < 6 or not (a.isalpha() and b.isalpha()):
        return False
    if len(a) == len(b):
        i = next(i for i in range(len(a)) if a[i] != b[i])
        return a[i : i + 2] == b[i : i + 2][::-1] and a[i + 2 :] == b[i + 2 :]
    longer, shorter = (a, b) if len(a) > len(b) else (b, a)
    return any(longer[i] == longer[i + 1] and longer[:i] + longer[i + 1 :] == shorter for i in range(len(longer) - 1))
