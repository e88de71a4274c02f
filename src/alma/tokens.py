"""Tokens: how much of a language model's context a text takes, counted with real tokenizers."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

LONGEST_TOKEN = 128
"""No token of these vocabularies stands for more bytes than this, and so for no more characters."""

_ENCODINGS = ("cl100k_base", "o200k_base")
# The tokenizers refuse a text of more than 200,000 tokens, and a character takes up to four.
_AT_ONCE = 50_000


def count_tokens(text: str) -> int:
    """How many tokens the text takes in the vocabulary that needs more of them, so that a budget holds in both."""
    pieces = [text[start : start + _AT_ONCE] for start in range(0, len(text), _AT_ONCE)]
    return max(sum(len(encoding.encode_ordinary(piece)) for piece in pieces) for encoding in _encodings())


@cache
def _encodings() -> tuple[Any, ...]:
    # Loaded when it is needed: the vocabularies take a tenth of a second each.
    with warnings.catch_warnings():
        # It opens its files in a way that Python 3.11 and 3.12 advise against, which is no concern of our callers.
        warnings.filterwarnings("ignore", "open_binary is deprecated", DeprecationWarning)
        import bpe_openai

    return tuple(bpe_openai.get_encoding(name) for name in _ENCODINGS)
