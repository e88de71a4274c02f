"""Matching: strategies are judged no more often than needed, and what was found out does not pile up."""

from __future__ import annotations

from alma.learning.strategies import Matching, Strategies
from tests.support.judging import ToldJudge


def test_a_strategy_in_the_same_words_goes_before_a_similar_one() -> None:
    matching = Matching(Strategies(ToldJudge(same=[("Retry twice", "retry two times", "retry it twice")])))
    assert matching.numbers(["Retry twice", "wait"], ["retry it twice", "retry twice"]) == [1, -1]
    assert matching.numbers(["Retry twice"], ["wait twice", "retry it twice"]) == [1]


def test_what_no_strategy_says_is_none_of_them() -> None:
    assert Matching(Strategies(ToldJudge())).numbers(["Delete the cache"], ["retry twice", "wait"]) == [-1]


def test_strategies_that_are_all_known_by_their_words_are_not_judged() -> None:
    judge = ToldJudge()
    strategies = [f"use plan {number}" for number in range(1_000)]
    assert Matching(Strategies(judge)).numbers(strategies, strategies) == list(range(1_000))
    assert judge.asked == []


def test_no_more_than_a_few_pairs_are_judged_all_in_one_call() -> None:
    judge = ToldJudge()
    strategies = [f"use plan {number}" for number in range(100)]
    assert set(Matching(Strategies(judge)).numbers([f"use idea {n}" for n in range(100)], strategies)) == {-1}
    assert [len(pairs) for pairs in judge.asked] == [32]


def test_what_was_judged_once_is_known_when_the_same_is_asked_again() -> None:
    judge = ToldJudge()
    matching = Matching(Strategies(judge))
    first = matching.numbers(["Delete the wait"], ["retry twice", "wait"])
    assert matching.numbers(["Delete the wait"], ["retry twice", "wait"]) == first
    assert len(judge.asked) == 1


def test_what_was_found_out_is_given_up_before_it_becomes_too_much() -> None:
    matching = Matching(Strategies(ToldJudge()), most=10)
    for number in range(20):
        matching.numbers([], [f"retry {number} times"])
    assert len(matching._found) < 15


def test_a_question_larger_than_what_is_remembered_is_answered() -> None:
    strategies = [f"use plan {number}" for number in range(50)]
    assert Matching(Strategies(ToldJudge()), most=10).numbers(strategies, strategies) == list(range(50))
