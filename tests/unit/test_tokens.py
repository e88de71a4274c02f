"""Token estimates keep a budget for every vocabulary."""

from __future__ import annotations

import subprocess
import sys

import bpe_openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alma.tokens import LONGEST_TOKEN, count_tokens

VOCABULARIES = [bpe_openai.get_encoding(name) for name in ("cl100k_base", "o200k_base")]


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("hello world", 2), ("<|endoftext|>", 7), ("\n", 1), ("😀", 2), ("\x00", 1)]
)
def test_a_text_takes_so_many_tokens(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens


@pytest.mark.parametrize("text", ["日本語", "مرحبا بالعالم", "def f(x):\n    return x", "नमस्ते दुनिया", "👩‍👩‍👧‍👦"])
def test_the_vocabulary_that_needs_more_tokens_counts(text: str) -> None:
    assert count_tokens(text) == max(len(vocabulary.encode_ordinary(text)) for vocabulary in VOCABULARIES)


@given(text=st.text())
def test_every_text_can_be_counted(text: str) -> None:
    assert len(text) / LONGEST_TOKEN <= count_tokens(text) <= 4 * len(text)


def test_a_text_longer_than_the_tokenizers_take_is_counted_in_pieces() -> None:
    assert count_tokens("word " * 300_000) == pytest.approx(300_000, rel=0.001)


def test_a_text_of_more_tokens_than_the_tokenizers_take_is_counted_in_pieces() -> None:
    assert count_tokens("😀" * 200_000) >= 400_000


def test_a_program_that_turns_warnings_into_errors_can_count() -> None:
    program = "from alma.tokens import count_tokens; print(count_tokens('hello world'))"
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("2\n", "")
