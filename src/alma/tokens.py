"""Tokens: how much of a language model's context a text takes, counted with real tokenizers."""

from __future__ import annotations

from functools import cache
from typing import Any

_ENCODINGS = ("cl100k_base", "o200k_base")


def count_tokens(text: str) -> int:
    """How many tokens the text takes in the vocabulary that needs more of them, so that a budget holds in both."""
    return max(len(encoding.encode_ordinary(text)) for encoding in _encodings())


@cache
def _encodings() -> tuple[Any, ...]:
    # Loaded when it is needed: the vocabularies take a tenth of a second each.
    import bpe_openai

    return tuple(bpe_openai.get_encoding(name) for name in _ENCODINGS)
