"""Excerpts: what is too long to be shown is cut to what was asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alma.model.slice import MemorySlice
from alma.testing import builders as make
from alma.text.excerpt import Excerpts

MINUTES = " ".join(f"The committee met on day {day} and discussed the budget without any result." for day in range(400))
FACT = "The secret ingredient of the winning chilli was dark chocolate."
QUESTION = "What made the winning chilli special?"


@pytest.mark.parametrize(
    "text", [f"{FACT} {MINUTES}", f"{MINUTES} {FACT} {MINUTES}", f"{MINUTES} {FACT}"], ids=["first", "between", "last"]
)
@pytest.mark.parametrize("most", [100, 400, 2000])
def test_the_sentence_that_answers_is_in_the_excerpt(text: str, most: int) -> None:
    shown = Excerpts(QUESTION).cut(text, most)
    assert FACT in shown
    assert len(shown) <= most + 2


def test_marks_say_where_something_is_left_out() -> None:
    cut = Excerpts(QUESTION).cut
    assert cut(f"{FACT} {MINUTES}", 200).endswith("…")
    assert cut(f"{MINUTES} {FACT}", 200).startswith("…met on day 398")
    assert cut(f"{MINUTES} {FACT}", 200).endswith("chocolate.")
    assert cut(f"{MINUTES} {FACT} {MINUTES}", 200).endswith("…")


def test_words_that_the_text_repeats_count_for_less_than_those_it_has_once() -> None:
    assert FACT in Excerpts("Which chilli did the committee discuss on the day of the budget?").cut(
        f"{MINUTES} {FACT}", 150
    )


@pytest.mark.parametrize("question", [None, "", "the of and", "zebras", "👍", "(unclosed [regex \\"])
def test_without_a_word_to_go_by_the_beginning_is_shown(question: str | None) -> None:
    assert Excerpts(question).cut(MINUTES, 200) == MINUTES[:200].rstrip() + "…"


def test_a_glimpse_shows_the_beginning() -> None:
    assert Excerpts(QUESTION).cut(f"{MINUTES} {FACT}", 24) == "The committee met on day…"


def test_words_are_found_whatever_their_ending_and_in_scripts_without_spaces() -> None:
    assert "retried" in Excerpts("when do we retry?").cut(f"{MINUTES} It was retried twice.", 120)
    assert "in C++." in Excerpts("what is in C++?").cut(f"{MINUTES} It was written in C++.", 120)
    assert "黑巧克力" in Excerpts("获奖辣椒的秘密成分是什么").cut(
        "花园委员会讨论了预算，没有结果。" * 300 + "辣椒的秘密是黑巧克力。", 120
    )


@given(text=st.text(max_size=600), question=st.text(max_size=40), most=st.integers(1, 300))
def test_an_excerpt_is_a_part_of_the_text_and_no_longer_than_wanted(text: str, question: str, most: int) -> None:
    shown = Excerpts(question).cut(text, most)
    if len(text) <= most:
        assert shown == text
    else:
        assert shown.removeprefix("…").removesuffix("…") in text or "…" in text
        assert len(shown) <= most + 2


def test_a_prompt_shows_what_was_asked_of_every_long_memory() -> None:
    others = [
        f"{MINUTES} The winning {dish} had {spice}." for dish, spice in (("soup", "ginger"), ("cake", "cinnamon"))
    ]
    found = MemorySlice(query=QUESTION, memories=[make.a_memory(content=c) for c in (f"{MINUTES} {FACT}", *others)])
    packed = found.packed(1000)
    assert packed.left_out == ()
    assert FACT in packed.text
    assert "ginger" in packed.text
    assert "cinnamon" in packed.text
