"""How text becomes terms, and which of a question's words are worth looking up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alma.model.query import And, Compare, In, Or
from alma.storage.ranking import BUDGET, CountCache, bm25, conjunctions, idf, owners, saturation, select
from alma.text.tokens import LONGEST_TERM, STOP_WORDS, query_terms, terms


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("testing forms", "Tested Form"),
        ("cafe", "Cafés"),
        ("naive", "NAÏVE"),
        ("Lodz", "Łódź"),
        ("strasse", "Straße"),
        ("Ｌｏｇｉｎ", "login"),
        ("Anna", "Anna's"),
        ("Anna's", "Anna\u2019s"),
        ("dont", "don't"),
        ("we", "we'll"),
        ("O'Brien", "o brien"),
        ("ΕΛΛΑΔΑ", "Ελλάδα"),
        ("ΛΟΓΟΣ", "λόγος"),
        ("μηνιν", "μῆνιν"),
        ("еще", "Ещё"),
        ("שלום", "שָׁלוֹם"),
        ("كتب", "كَتَبَ"),
        ("محمد", "محـــمد"),
    ],
)
def test_words_that_mean_the_same_have_the_same_term(one: str, other: str) -> None:
    assert terms(one) == terms(other)


@pytest.mark.parametrize("text", ["x1", "ipv6", "кошки", "ая", "日", "4242"])
def test_a_word_with_digits_or_other_letters_is_left_alone(text: str) -> None:
    assert terms(text) == [text]


def test_a_mark_of_another_script_makes_another_letter() -> None:
    assert terms("й") != terms("и")
    assert terms("が") != terms("か")


def test_a_negation_is_one_word() -> None:
    assert terms("don't") == ["dont"]


def test_scripts_without_spaces_are_cut_into_pairs_and_single_characters() -> None:
    assert terms("日本語テスト") == ["日本", "本語", "語テ", "テス", "スト", *"日本語テスト"]
    assert terms("회의를 猫") == ["회의", "의를", *"회의를", "猫"]


def test_a_question_has_single_characters_only_where_they_stand_alone() -> None:
    assert query_terms("日本語の猫") == ["日本", "本語", "語の", "の猫"]
    assert query_terms("猫 집") == ["猫", "집"]


def test_a_soft_hyphen_breaks_no_word() -> None:
    assert terms("data\u00adbase") == terms("database")


@given(st.text())
def test_every_text_has_terms_that_are_their_own_terms_in_any_case(text: str) -> None:
    for term in terms(text):
        assert 0 < len(term) <= LONGEST_TERM
        # A picture may be newer than what Python knows of Unicode.
        assert all(c.isalnum() or c.isprintable() or "\u2300" <= c <= "\U0001faff" for c in term)
        assert not set(term) & set(" \"'\\:·")


def test_long_words_count_in_pieces() -> None:
    assert list(map(len, terms("7" * (LONGEST_TERM + 1)))) == [LONGEST_TERM, 1]


def test_a_question_keeps_the_words_that_tell_something() -> None:
    assert query_terms("What is the best way to test a form, and the forms?") == ["best", "way", "test", "form"]


def test_a_question_of_function_words_alone_keeps_them() -> None:
    assert query_terms("to be or not to be") == ["to", "be", "or", "not"]


def test_stop_words_are_spelled_as_words_are_cut() -> None:
    assert {word for word in STOP_WORDS if not word.isascii() or not word.isalpha()} == set()


# ---------------------------------------------------------------------- ranking


def test_rare_words_weigh_more_and_every_word_weighs_something() -> None:
    weights = [idf(1000, having) for having in (1, 10, 500, 1000)]
    assert weights == sorted(weights, reverse=True)
    assert weights[-1] > 0


def test_repetition_counts_less_and_less_and_length_counts_against() -> None:
    once, twice, often = (saturation(n, 10, 10) for n in (1, 2, 1000))
    assert once < twice < often < 2.2
    assert twice - once < once
    assert saturation(1, 100, 10) < once


def test_texts_are_ranked_by_their_rare_words() -> None:
    texts = {"a": ["form", "login"], "b": ["form", "form"], "c": ["form"], "d": ["other"]}
    assert [key for key, _ in bm25(texts, ["form", "login"])] == ["a", "b", "c"]


def test_all_words_are_chosen_while_they_are_rare_or_the_scope_is_small() -> None:
    assert select({"a": BUDGET // 2, "b": 3}, 10**6).left_out == ()
    assert select({"a": 10**6, "b": 10**6}, BUDGET).left_out == ()


def test_the_rarest_words_are_chosen_first_until_the_budget_is_used() -> None:
    chosen = select({"common": 10**6, "rare": 7, "some": BUDGET - 7, "more": BUDGET}, 10**6)
    assert chosen.chosen == ("rare", "some")
    assert chosen.left_out == ("more", "common")


def test_what_a_word_costs_besides_uses_the_budget_too() -> None:
    assert select({"a": 1, "b": 2}, 10, {"a": 0.0, "b": BUDGET + 1.0}).left_out == ("b",)


def test_words_left_out_are_asked_for_together_then_apart() -> None:
    assert list(conjunctions("abc")) == [("a", "b", "c"), ("a", "b"), ("a",), ("b",), ("c",)]
    assert list(conjunctions("a")) == [("a",)]


def test_the_owners_of_a_predicate_are_those_that_must_match() -> None:
    scope = And(Compare("project_id", "eq", "shop"), And(In("agent", ("a", "b")), Compare("confidence", "ge", 0.5)))
    assert owners(scope) == {"project_id": ("shop",), "agent": ("a", "b")}
    assert owners(Or(Compare("project_id", "eq", "shop"), Compare("project_id", "eq", "bank"))) == {}
    assert owners(In("agent", ())) == {}


def test_counts_are_forgotten_when_the_table_has_grown() -> None:
    counts: CountCache[int] = CountCache(slack=0.02)
    counts.put("form", 1000, 7)
    assert counts.get("form", 1020) == 7
    assert counts.get("form", 1021) is None
    assert counts.get("other", 1000) is None
