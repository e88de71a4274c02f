"""Terms: the words of texts and questions as they are searched."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alma.model.text import (
    LONGEST_TERM,
    STOP_WORDS,
    may_say_by_signs,
    query_terms,
    spaced_terms,
    spaced_terms_of,
    spaced_words,
    terms,
    words_by_term,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Validating FORMS, quickly", ["valid", "form", "quick"]),
        ("don't, Anna's, we’ll", ["dont", "anna", "we"]),
        ("Straße Ｌｏｇｉｎ naïve Łódź", ["strass", "login", "naiv", "lodz"]),
        ("日本語", ["日本", "本語", "日", "本", "語"]),
        ("v1.2-rc_3", ["v1", "2", "rc", "3"]),
        ("", []),
        ("!? …", []),
        ("“don’t” — „Anna’s“ forms…", ["dont", "anna", "form"]),
        ("“Łódź” – 日本", ["lodz", "日本", "日", "本"]),
    ],
)
def test_a_text_is_cut_into_words_without_case_accents_and_endings(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_a_question_is_asked_without_the_words_every_text_has() -> None:
    assert query_terms("What is the form, and where are the forms?") == ["form"]


def test_a_question_of_nothing_else_is_asked_with_them() -> None:
    assert query_terms("to be or not to be") == ["to", "be", "or", "not"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Lunch 🍕🍕!", ["lunch", "🍕", "🍕"]),
        ("❤️ and ❤", ["❤", "and", "❤"]),
        ("👍🏽 👨‍👩‍👧 🇩🇪🇪🇸 1️⃣", ["👍", "👨", "👩", "👧", "🇩🇪", "🇪🇸", "1"]),
        ("日本🍣語", ["日本", "日", "本", "🍣", "語"]),
        ("C++17, C# and C", ["c＋＋", "17", "c＃", "and", "c"]),
        ("Ｃ＋＋ naïf", ["c＋＋", "naif"]),
        ("issue #5, PR#3, ## x, a+++b", ["issu", "5", "pr", "3", "x", "a", "b"]),
    ],
)
def test_pictures_and_names_with_signs_are_words(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(text=st.text(st.one_of(st.characters(), st.sampled_from("c+#＋🍕🇩\ufe0f❶ ")), max_size=60))
def test_a_text_that_cannot_say_anything_by_signs_has_the_same_terms_without(text: str) -> None:
    assert may_say_by_signs(text) or spaced_terms(text) == spaced_words(text)


def test_how_a_sign_is_shown_is_no_word_of_a_question() -> None:
    assert query_terms("❤️") == ["❤"]
    assert query_terms("☀️ weather 1️⃣") == ["☀", "weather", "1"]


def test_all_of_a_text_counts() -> None:
    assert terms("filling " * 50_000 + "zeppelin")[-1] == "zeppelin"


def test_the_telling_words_of_a_text_stand_under_their_terms() -> None:
    assert words_by_term("The forms were validated") == {"form": "forms", "valid": "validated"}


def test_the_first_word_met_stands_for_a_term() -> None:
    assert words_by_term("validates validating form validation") == {"valid": "validates", "form": "form"}


def test_a_text_of_function_words_has_no_telling_words() -> None:
    assert words_by_term("to be or not to be") == {}


def test_the_terms_of_a_text_find_its_words_again() -> None:
    words = words_by_term("the deployments were validated by Anna's 日本語 team")
    assert {term: query_terms(word) for term, word in words.items()} == {term: [term] for term in words}


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(text=st.text())
def test_every_text_has_the_terms_of_its_telling_words(text: str) -> None:
    found = " ".join(words_by_term(text)).split()
    assert set(found) <= set(terms(text))
    assert not STOP_WORDS & set(words_by_term(text).values())


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(text=st.text(max_size=300))
def test_no_term_is_longer_than_an_index_entry_may_be(text: str) -> None:
    assert all(0 < len(term) <= LONGEST_TERM for term in terms(f"{text} {text * 3}"))


@given(
    st.lists(
        st.one_of(
            st.none(), st.text(), st.sampled_from(["Anna's forms", "C++ and C#", "🍕", "don't\x01stop", "x" * 1_200])
        )
    )
)
def test_many_texts_are_cut_as_each_is_alone(texts: list[str | None]) -> None:
    assert spaced_terms_of(texts) == [spaced_terms(text or "") for text in texts]


@given(words=st.lists(st.text("abcdefgy ", max_size=80), max_size=6))
def test_a_word_has_the_same_term_when_it_is_met_again(words: list[str]) -> None:
    text = " ".join(words)
    assert terms(text) == terms(text) == spaced_terms(text).split()
