"""Terms: the words of texts and questions as they are searched."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alma.text.tokens import (
    LONGEST_TERM,
    STOP_WORDS,
    query_terms,
    searched_terms,
    spaced_terms,
    stored_terms,
    terms,
    words_by_term,
)
from tests.support.examples import examples


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


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("user name", "call getUserName first"),
        ("getUserName", "call get_user_name first"),
        ("get_user_name", "call getUserName first"),
        ("GETUSERNAME", "call getUserName first"),
        ("json", "parseJSONData"),
        ("server", "HTTPServer"),
        ("имя", "ПолучитьИмя"),
        ("email", "send an e-mail"),
        ("E-Mail", "send an email"),
        ("ecommerce", "an e‑commerce site"),
        ("e-commerce", "an ecommerce site"),
        ("backend", "the back-end team"),
        ("GPT4", "ask GPT-4"),
        ("1000", "it costs 1,000 euros"),
        ("1,000", "it costs 1000 euros"),
        ("1'234'567", "1,234,567 people"),
        ("1 000", "1,000 people".replace(",", "\u202f")),
        ("321", "٣٢١"),
        ("४२", "42"),
        ("احمد", "أحمد"),
        ("اسلام", "إسلام"),
        ("مسوول", "مسؤول"),
        ("ميخواهم", "می\u200cخواهم"),
        ("Acme", "Acme™ and more"),
        ("Acme®", "ACME℠"),
        ("login", "Ｌｏｇｉｎ"),
        ("テスト", "ﾃｽﾄ"),
        ("Mark", "Ma\u200drk\u2060"),
    ],
)
def test_what_is_the_same_word_is_found_however_it_is_written(question: str, text: str) -> None:
    assert set(query_terms(question)) <= set(stored_terms(text))


@pytest.mark.parametrize(
    ("question", "looked_for"),
    [
        ("the back-end", ["back", "end", "backend"]),
        ("our non\u2011profit status", ["non", "profit", "status", "nonprofit"]),
        ("a follow-up", ["follow", "followup"]),
        ("e-mail", ["email"]),
        ("state-of-the-art", ["state", "art"]),
        ("3-5 May", ["3", "5"]),
    ],
)
def test_what_a_question_has_in_two_pieces_is_looked_for_in_one_as_well(question: str, looked_for: list[str]) -> None:
    assert searched_terms(question) == looked_for


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("URLs, APIs", ["url", "api"]),
        ("aGVsbG8gd29ybGQhIHRoaXMgaXM", ["agvsbg8gd29ybgqhihroaxmgaxm"]),
        ("award-winning", ["award", "win"]),
        ("2024-05-01", ["2024", "05", "01"]),
        ("in 2019,200 people", ["in", "2019", "200", "peopl"]),
        ("a - b", ["a", "b"]),
    ],
)
def test_words_other_than_names_compounds_and_numbers_stay_as_they_are(text: str, expected: list[str]) -> None:
    assert stored_terms(text) == terms(text) == expected


def test_a_name_keeps_its_whole_before_its_parts() -> None:
    assert stored_terms("getUserName") == ["getusernam", "get", "user", "name"]


@examples(100)
@given(text=st.text(st.one_of(st.characters(), st.sampled_from("aeBC1230,'_-. أ\u200c™é日")), max_size=40))
def test_a_text_has_every_word_of_itself_as_a_question(text: str) -> None:
    asked = set(query_terms(text))
    assert asked <= set(terms(text))
    assert asked <= set(stored_terms(text))


def test_how_a_sign_is_shown_is_not_a_word_of_a_question() -> None:
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


@examples(50)
@given(text=st.text())
def test_every_text_has_the_terms_of_its_telling_words(text: str) -> None:
    found = " ".join(words_by_term(text)).split()
    assert set(found) <= set(terms(text))
    assert not STOP_WORDS & set(words_by_term(text).values())


@examples(50)
@given(text=st.text(max_size=300))
def test_no_term_is_longer_than_an_index_entry_may_be(text: str) -> None:
    assert all(0 < len(term) <= LONGEST_TERM for term in terms(f"{text} {text * 3}"))


@given(
    st.lists(
        st.one_of(
            st.text(),
            st.sampled_from(["Anna's forms", "C++ and C#", "🍕", "1\u202f000", "back-end,", "getName", "x" * 1_200]),
        )
    )
)
def test_a_text_has_the_terms_of_its_pieces_in_turn(pieces: list[str]) -> None:
    text = " ".join(pieces)
    assert stored_terms(text) == [term for piece in pieces for term in stored_terms(piece)]
    assert spaced_terms(text).split() == stored_terms(text)


@given(words=st.lists(st.text("abcdefgy ", max_size=80), max_size=6))
def test_a_word_has_the_same_term_when_it_is_met_again(words: list[str]) -> None:
    text = " ".join(words)
    assert stored_terms(text) == stored_terms(text) == spaced_terms(text).split()
