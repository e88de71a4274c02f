"""Word weights, and which words of a query are looked up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from alma.storage.ranking import Selection, pairs, rarity, select


@given(st.integers(1, 1_000_000), st.data())
def test_the_rarer_a_word_the_more_it_weighs_and_always_something(records: int, data: st.DataObject) -> None:
    few, many = sorted(data.draw(st.lists(st.integers(0, records), min_size=2, max_size=2)))
    assert 0 < rarity(records, many) <= rarity(records, few)


def test_among_few_records_a_word_is_not_yet_known_to_be_common() -> None:
    assert rarity(4, 2) > 0.5 * rarity(4, 1)
    assert rarity(4_000, 2_000) < 0.05 * rarity(4_000, 1)


def test_common_words_are_left_out_on_demand() -> None:
    counts = {"rare": 1, "usual": 30, "common": 60}
    selection = select(counts, 100)
    assert selection.chosen == ("rare", "usual", "common")
    fewer = selection.without_common(counts, 45)
    assert (fewer.chosen, fewer.left_out) == (("rare", "usual"), ("common",))


def test_pairs_have_a_word_that_was_left_out_and_the_cheapest_come_first() -> None:
    counts = {"harbour": 20, "deploy": 400, "queue": 500, "of": 60_000}
    selection = select(counts, 100_000, budget=100)
    assert selection == Selection(("harbour",), ("deploy", "queue", "of"))
    assert pairs(selection, counts, 100_000, budget=90) == (
        ("harbour", "deploy"),
        ("harbour", "queue"),
        ("deploy", "queue"),
    )
    assert pairs(selection, counts, 100_000, budget=40) == (("harbour", "deploy"), ("harbour", "queue"))
    assert pairs(selection, counts, 100_000, budget=0) == ()


def test_where_no_word_is_left_out_there_are_no_pairs() -> None:
    assert pairs(Selection(("a", "b"), ()), {"a": 1, "b": 2}, 10, budget=1_000) == ()
