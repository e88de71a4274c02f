"""Long texts are split into near-equal passages without loss."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from alma.embeddings.base import even_groups, split_text


@given(st.lists(st.integers(1, 10), max_size=60), st.integers(10, 40))
def test_groups_hold_every_unit_in_order_and_none_is_too_large(sizes: list[int], most: int) -> None:
    groups = even_groups(sizes, most)
    assert [unit for group in groups for unit in group] == list(range(len(sizes)))
    assert all(0 < sum(sizes[unit] for unit in group) <= most for group in groups)


def test_groups_are_as_few_as_fit_and_about_equal() -> None:
    groups = even_groups([1] * 510, 254)
    assert [len(group) for group in groups] == [170, 170, 170]


@given(st.text(min_size=1), st.integers(8, 50))
def test_no_piece_of_a_text_is_too_long_and_no_character_is_lost(text: str, most: int) -> None:
    pieces = split_text(text, most)
    assert all(len(piece.encode()) <= most for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())


def test_a_text_is_divided_between_words_and_one_that_fits_is_left_as_it_is() -> None:
    assert split_text("one  two\nthree", 40) == ["one  two\nthree"]
    assert split_text("alpha beta gamma delta", 12) == ["alpha beta", "gamma delta"]


def test_a_word_that_alone_is_too_long_is_torn_between_characters() -> None:
    assert split_text("ä" * 10, 10) == ["ää ää"] * 2 + ["ää"]
