"""Matching: strategies are compared no more often than needed, and what was found out does not pile up."""

from __future__ import annotations

from alma.learning.matching import Matching
from alma.learning.strategies import same_strategy


class _Compared:
    """Says whether strategies are the same, and counts how often it was asked."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, one: str, other: str) -> bool:
        self.times += 1
        return same_strategy(one, other)


def test_a_strategy_in_the_same_words_goes_before_a_similar_one() -> None:
    matching = Matching(lambda _one, _other: True)
    assert matching.numbers(["Retry twice", "wait"], ["wait and see", "retry twice"]) == [1, 0]


def test_what_no_strategy_says_is_none_of_them() -> None:
    assert Matching(_Compared()).numbers(["Delete the cache"], ["retry twice", "wait"]) == [-1]


def test_strategies_that_are_all_known_by_their_words_are_not_compared() -> None:
    compared = _Compared()
    strategies = [f"use plan {number}" for number in range(1_000)]
    assert Matching(compared).numbers(strategies, strategies) == list(range(1_000))
    assert compared.times == 0


def test_what_was_compared_once_is_known_when_the_same_is_asked_again() -> None:
    compared = _Compared()
    matching = Matching(compared)
    first = matching.numbers(["Delete the cache"], ["retry twice", "wait"])
    times = compared.times
    assert matching.numbers(["Delete the cache"], ["retry twice", "wait"]) == first
    assert compared.times == times


def test_what_was_found_out_is_given_up_before_it_becomes_too_much() -> None:
    compared = _Compared()
    matching = Matching(compared, most=10)
    matching.numbers(["Wait"], ["retry twice"])
    for number in range(20):
        matching.numbers([], [f"retry {number} times"])
    matching.numbers(["Wait"], ["retry twice"])
    assert compared.times == 2


def test_a_question_larger_than_what_is_remembered_is_answered() -> None:
    strategies = [f"use plan {number}" for number in range(50)]
    assert Matching(_Compared(), most=10).numbers(strategies, strategies) == list(range(50))
