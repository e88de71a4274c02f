"""Terms: how text is cut into searchable words, the same way for every store."""

from __future__ import annotations

import re
import unicodedata

LONGEST_TERM = 64
INDEXED_CHARACTERS = 100_000

_WORD = re.compile(rf"[a-z0-9]{{1,{LONGEST_TERM}}}")
# Scripts written without spaces; their words are found by pairs of neighbouring characters.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+"
)


def terms(text: str) -> list[str]:
    """The words of a text in order: letters and digits, without case or width; longer ones in pieces of 64 characters.

    Only the first 100,000 characters count: beyond that a text is kept but not searched by word.
    """
    text = text[:INDEXED_CHARACTERS]
    if text.isascii():
        return _WORD.findall(text.lower())
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    words = "".join(c if c.isalnum() or unicodedata.category(c)[0] == "M" else " " for c in folded).split()
    return [
        term[start : start + LONGEST_TERM]
        for word in words
        for term in _split(word)
        for start in range(0, len(term), LONGEST_TERM)
    ]


def _split(word: str) -> list[str]:
    pieces: list[str] = []
    end = 0
    for run in _UNSPACED.finditer(word):
        if run.start() > end:
            pieces.append(word[end : run.start()])
        characters = run.group()
        pieces.extend(characters[i : i + 2] for i in range(max(1, len(characters) - 1)))
        end = run.end()
    if end < len(word):
        pieces.append(word[end:])
    return pieces
