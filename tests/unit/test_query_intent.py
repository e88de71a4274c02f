"""The intent of a query, and which texts can answer it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alma.retrieval.query_text import answer_features, asks_advice, asks_when
from alma.text.tokens import terms

RELEVANCE = {"meaning": 0.3, "words": 0.2, "conversation": 0.4}


def of(text: str, *, wants_time: bool = False) -> dict[str, float]:
    return answer_features(text, frozenset(terms(text)), RELEVANCE, wants_time=wants_time)


@pytest.mark.parametrize(
    ("question", "advice"),
    [
        ("Can you recommend a framework for the checkout page?", True),
        ("My kitchen is a mess again. Any tips for keeping it clean?", True),
        ("Should I take the night train?", True),
        ("Would it be a good idea to call her?", True),
        ("What did you recommend for the checkout page?", False),
        ("Which tips did Ana give?", False),
        ("How do I run the tests?", False),
    ],
)
def test_a_wish_for_advice_is_told_from_a_question_for_what_was_said(question: str, advice: bool) -> None:
    assert asks_advice(question) == advice


@pytest.mark.parametrize(
    ("question", "time"),
    [
        ("When did Ana move to Oslo?", True),
        ("  when was the release", True),
        ("In which year did Ben start?", True),
        ("How long has Ana played the piano?", True),
        ("When I deploy, what fails?", False),
        ("What did Ana say when she left?", False),
        ("Whenever", False),
    ],
)
def test_a_question_for_a_time_is_told_from_one_about_a_time(question: str, time: bool) -> None:
    assert asks_when(question) == time


def test_a_mere_question_loses_of_its_own_match_and_keeps_what_its_conversation_says() -> None:
    assert of("How did the race go?")["question"] == pytest.approx(RELEVANCE["meaning"] + RELEVANCE["words"])


def test_the_less_of_a_text_is_a_question_the_less_it_loses() -> None:
    assert of("How was it?")["question"] > of("We won the race by a minute. How was yours?")["question"]
    assert of("We won the race by a minute.") == {}


def test_a_question_that_tells_something_of_the_speaker_loses_nothing() -> None:
    assert of("Where can I park my camper in Oslo?") == {}


@pytest.mark.parametrize(
    "text", ["We moved in last week.", "It was a year ago", "See you tomorrow!", "Recently, on a Sunday", "since then"]
)
def test_a_word_of_time_speaks_for_a_statement_where_a_time_is_asked_for(text: str) -> None:
    assert of(text, wants_time=True)["when"] > 0
    assert of(text) == {}


def test_a_long_text_is_not_an_answer_for_its_words_of_time_alone() -> None:
    assert of("We moved in last week. " + "Nice place. " * 40, wants_time=True) == {}


@given(st.text(alphabet="ab ?.!\n\u00e9\u4f60"))
def test_no_text_loses_more_than_it_has_by_itself(text: str) -> None:
    assert 0 <= of(text).get("question", 0.0) <= RELEVANCE["meaning"] + RELEVANCE["words"]
