"""The score penalty of long texts, and its reduction for a passage with the query in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alma.retrieval.relevance import best_passage, concision

WEIGHTS = {"canoe": 2.0, "river": 1.0, "guide": 0.5}
BETWEEN = ["other"] * 60
words = st.lists(st.sampled_from(["canoe", "river", "guide", *["other"] * 20]), max_size=300)


def test_a_statement_loses_nothing_and_a_long_text_no_more_than_half() -> None:
    assert concision(1) == concision(300) == 1.0
    assert 0.48 < concision(2_400) == concision(90_000) < concision(600) < 1.0


def test_words_that_stand_together_count_and_those_far_apart_do_not() -> None:
    assert best_passage(["canoe", "river", *BETWEEN, "guide"], WEIGHTS) == 3.0
    assert best_passage(["canoe", *BETWEEN, "river", *BETWEEN, "guide"], WEIGHTS) == 2.0
    assert best_passage(BETWEEN, WEIGHTS) == best_passage([], WEIGHTS) == 0.0


def test_a_word_counts_once_however_often_it_is_said() -> None:
    assert best_passage(["river"] * 80, WEIGHTS) == 1.0


@given(words)
def test_the_best_passage_is_the_best_of_all_passages(text: list[str]) -> None:
    passages = (set(text[start : start + 50]) & WEIGHTS.keys() for start in range(max(1, len(text))))
    assert best_passage(text, WEIGHTS) == pytest.approx(max(sum(WEIGHTS[word] for word in each) for each in passages))
