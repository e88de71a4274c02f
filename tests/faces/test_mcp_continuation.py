"""Results longer than their budget: the parts fit, keep their shape, and together are the whole result."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alma.errors import NotFoundError
from alma.mcp.continuation import Continuations, Piece, token_count, truncate
from tests.support.pieces import assemble

BUDGET = 1_000

_texts = st.text(max_size=20) | st.text(min_size=1, max_size=30).map(lambda text: text * 150)
_names = st.text(max_size=8) | st.sampled_from(["a/b", "~", "~1", "0", ""])
_answers = st.dictionaries(
    _names,
    st.recursive(
        _texts | st.integers() | st.booleans(),
        lambda inner: st.lists(inner, max_size=30) | st.dictionaries(_names, inner, max_size=4),
        max_leaves=20,
    ),
    max_size=6,
)


def whole(answer: Any, tokens: int) -> tuple[Any, list[list[Piece]]]:
    """The answer put together from its pages, and the pages."""
    first = truncate(answer, tokens)
    kept, rest, pages = Continuations(), first.rest, []
    while rest:
        page, rest = kept.next_pieces(None, kept.keep(None, rest), tokens)
        pages.append(page)
    return assemble(first.value, [piece for page in pages for piece in page]), pages


@given(_answers)
def test_an_answer_and_its_continuations_are_the_whole_answer(answer: dict[str, Any]) -> None:
    assert whole(answer, BUDGET)[0] == answer


def test_lists_are_cut_behind_an_item_and_every_page_fits() -> None:
    answer = {"memories": [{"id": str(i), "content": f"The note number {i} says something. " * 5} for i in range(200)]}
    first = truncate(answer, BUDGET)
    assert token_count(first.value) <= BUDGET
    assert first.value["memories"] == answer["memories"][: len(first.value["memories"])]
    again, pages = whole(answer, BUDGET)
    assert again == answer
    assert all(token_count([piece.as_json() for piece in page]) <= BUDGET for page in pages)


def test_a_long_text_goes_on_where_it_was_cut() -> None:
    answer = {"prompt": "жук и 蜜蜂 🐝 \\n " * 3_000, "total": 1}
    first = truncate(answer, BUDGET)
    assert token_count(first.value) <= BUDGET
    assert first.value["total"] == 1
    assert answer["prompt"].startswith(first.value["prompt"])  # type: ignore[attr-defined]
    assert whole(answer, BUDGET)[0] == answer


def test_an_item_larger_than_a_page_comes_in_several() -> None:
    answer = {"memories": [{"id": "1", "content": "word " * 9_000, "tags": ["a"]}]}
    first = truncate(answer, BUDGET)
    assert first.value == {"memories": []}
    again, pages = whole(answer, BUDGET)
    assert again == answer
    assert len(pages) > 5


def test_a_mapping_that_someone_filled_loses_its_last_entries() -> None:
    answer = {"metadata": {f"key {number}": number for number in range(5_000)}}
    assert token_count(truncate(answer, BUDGET).value) <= BUDGET
    assert whole(answer, BUDGET)[0] == answer


def test_what_fits_is_left_as_it_is() -> None:
    answer = {"a": ["b"] * 50}
    assert truncate(answer, BUDGET).value is answer


def test_a_cursor_gives_the_same_again_and_no_one_else_anything() -> None:
    kept = Continuations()
    cursor = kept.keep("mine", (Piece("/a", 1),))
    assert kept.next_pieces("mine", cursor, BUDGET) == kept.next_pieces("mine", cursor, BUDGET)
    for owner, name in (("theirs", cursor), (None, cursor), ("mine", "made up")):
        with pytest.raises(NotFoundError, match="continuation"):
            kept.next_pieces(owner, name, BUDGET)
