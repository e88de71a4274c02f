"""High-entropy words: long, mixed words without a key name or a known shape."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from alma.redaction.rules import Span
from alma.text.scanning import matches

MIN_LENGTH = 32
"""Shorter words are ids as often as keys."""

# Whole words only, not parts of paths and addresses.
_WORD = re.compile(
    r"(?:(?<![^\s\"'`“‘(\[{<,;=])|(?<=[A-Za-z]:))(?P<word>[A-Za-z0-9+/_-]{32,}+)={0,2}(?=$|[\s\"'`”’)\]}>,;!?]|[.:](?:\s|$))"
)
# How files, public keys and content addresses begin in base64.
_BEGINNINGS = (
    "AAAA AAEC iVBOR R0lGO /9j/ UklGR MII UEsD H4sI JVBER Qm bafy PD94 PHN2 "
    "SUQz //uQ //tQ T2dnUw ZkxhQ d09G AAEAA T1RUTw SUkq TU0A GkXf KLUv QlpoO /Td6 N3q8 U1FMaXRl AGFzbQ 0M8R4 f0VMR"
)
_CONTENT = tuple(_BEGINNINGS.split())
_PREFIXED = re.compile(r"(?:[a-z]{2,12}|[A-Z]{2,12})[_-]")
_IN_A_PATH = re.compile(r"(?:^|/)[A-Za-z]?[a-z]{2,}(?:/|$)")
_IN_AN_ADDRESS = re.compile(r"[/?&@]\S*$")
_FEWEST_LETTERS, _FEWEST_DIGITS = 4, 2
# In ordinary words, most characters are of the same class as the one before.
_FEWEST_CHANGES = 0.4
_FAR, _WORDS_BESIDE = 60, 3
_NAMES = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_THINGS = """
    id ids identifier uuid guid hash hashes digest checksum sum sha md integrity etag fingerprint fingerprints commit
    revision address addr wallet bitcoin btc solana ethereum block tx txn transaction contract mint public pub pubkey
    cert certificate base encoded decode decodes image img picture nonce cid ipfs doc document sheet spreadsheet video
    playlist file files folder trace span cursor signature multihash object blob prüfsumme kennung adresse empreinte
    identifiant
"""
_OTHER_THINGS = frozenset(_THINGS.split())


def names_an_id(name: str) -> bool:
    """Whether a name, or the words around a value, say that it is an id, a checksum or an address."""
    return any(word.lower() in _OTHER_THINGS for word in _NAMES.findall(name))


def high_entropy_spans(text: str) -> Iterator[Span]:
    """High-entropy words whose line does not say that they are something else."""
    for match in matches(_WORD, text):
        word = match["word"]
        if not has_high_entropy(word) or _IN_AN_ADDRESS.search(text, max(0, match.start() - _FAR), match.start()):
            continue
        if not names_an_id(_around(text, match.start(), match.end())):
            yield Span(*match.span(), "unnamed_secret")


def has_high_entropy(word: str) -> bool:
    """Whether capitals, small letters and digits alternate as in random text."""
    if word.startswith(_CONTENT) or _PREFIXED.match(word) or _IN_A_PATH.search(word):
        return False
    sorts = [_sort(sign) for sign in word if sign.isalnum()]
    if min(sorts.count("A"), sorts.count("a")) < _FEWEST_LETTERS or sorts.count("1") < _FEWEST_DIGITS:
        return False
    changes = sum(one != other for one, other in pairwise(sorts))
    return changes >= _FEWEST_CHANGES * (len(sorts) - 1)


def _sort(sign: str) -> str:
    return "1" if sign.isdigit() else "A" if sign.isupper() else "a"


def _around(text: str, start: int, end: int) -> str:
    """The words next to it on its line."""
    before = text[max(0, start - _FAR) : start].rpartition("\n")[2].split()
    behind = text[end : end + _FAR].partition("\n")[0].split()
    return " ".join((*before[-_WORDS_BESIDE:], *behind[:_WORDS_BESIDE]))
