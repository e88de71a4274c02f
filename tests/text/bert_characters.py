"""Ask the reference, the package tokenizers, what BERT does with every character, and write it as tables.

`python -m tests.text.bert_characters` writes them; the tests compare the tokens of texts.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from tokenizers import Tokenizer

import alma.embeddings
import alma.text

TARGET = Path(alma.text.__file__).with_name("bert_characters.json")
VOCABULARY = Path(alma.embeddings.__file__).with_name("data") / "all-MiniLM-L6-v2" / "tokenizer.json"
CHARACTERS = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code <= 0xDFFF]


def tables() -> dict[str, list[int]]:
    """For each kind of character the first of each range, and the one after it."""
    reference = Tokenizer.from_file(str(VOCABULARY))
    kinds = {each: _kind(reference, each) for each in CHARACTERS}
    return {name: list(_bounds(kinds, name)) for name in ("removed", "alone", "spaces")}


def _kind(reference: Tokenizer, character: str) -> str:
    normal = reference.normalizer.normalize_str(character)
    if not normal.strip():
        return "spaces" if normal else "removed"
    return "part" if len(reference.pre_tokenizer.pre_tokenize_str(f"a{normal}a")) == 1 else "alone"


def _bounds(kinds: dict[str, str], wanted: str) -> Iterator[int]:
    inside = False
    for character, kind in kinds.items():
        if (kind == wanted) != inside:
            inside = not inside
            yield ord(character)


if __name__ == "__main__":
    TARGET.write_text(json.dumps(tables()) + "\n", encoding="utf-8")
