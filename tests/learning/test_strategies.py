"""What the judge is asked about: words, and no code."""

from __future__ import annotations

import pytest

from alma.errors import ProviderError
from alma.judge.base import Judgement, StrictJudge
from alma.learning.strategies import StrategyComparer, strategy_key
from alma.text.prose import is_prose
from tests.support.judging import ScriptedJudge


@pytest.mark.parametrize(
    "text",
    [
        "use a timeout of 30 seconds",
        "Retry twice, then give up.",
        "blue-green switch",
        "Erst messen",
        "wait 5 s",
        "删除缓存",
    ],
)
def test_words_are_prose(text: str) -> None:
    assert is_prose(text)


@pytest.mark.parametrize(
    "text",
    ["find . -type f | xargs ls -l", "sorted(d.items())", '{"a": 1, "b": [2]}', "🎂", "x = [i for i in y]", "--force"],
)
def test_code_and_signs_are_none(text: str) -> None:
    assert not is_prose(text)


def test_a_strategy_is_known_by_its_words_whatever_their_case_and_the_punctuation_at_the_end() -> None:
    assert strategy_key("Retry  twice.") == strategy_key("retry twice")
    assert strategy_key("use C") != strategy_key("use C++")


def test_what_was_judged_is_not_asked_again() -> None:
    judge = ScriptedJudge(same=[("wait for it", "await it")])
    strategies = StrategyComparer(judge)
    assert strategies.same("wait for it", "await it")
    assert strategies.same("Wait for it.", "await it")
    assert len(judge.asked) == 1


class _Unreachable(StrictJudge):
    def compare(self, pairs: object) -> list[Judgement]:
        raise ProviderError("the language model cannot be reached")


def test_a_judge_that_cannot_be_reached_claims_nothing() -> None:
    strategies = StrategyComparer(_Unreachable())
    assert not strategies.same("wait for it", "await it")
    assert strategies.same("Wait for it.", "wait for it")


def test_a_strategy_in_the_same_words_goes_before_a_similar_one() -> None:
    matching = StrategyComparer(ScriptedJudge(same=[("Retry twice", "retry two times", "retry it twice")]))
    assert matching.matches(["Retry twice", "wait"], ["retry it twice", "retry twice"]) == [1, -1]
    assert matching.matches(["Retry twice"], ["wait twice", "retry it twice"]) == [1]


def test_what_no_strategy_says_is_none_of_them() -> None:
    assert StrategyComparer(ScriptedJudge()).matches(["Delete the cache"], ["retry twice", "wait"]) == [-1]


def test_strategies_that_are_all_known_by_their_words_are_not_judged() -> None:
    judge = ScriptedJudge()
    strategies = [f"use plan {number}" for number in range(1_000)]
    assert StrategyComparer(judge).matches(strategies, strategies) == list(range(1_000))
    assert judge.asked == []


def test_no_more_than_a_few_pairs_are_judged_all_in_one_call() -> None:
    judge = ScriptedJudge()
    strategies = [f"use plan {number}" for number in range(100)]
    assert set(StrategyComparer(judge).matches([f"use idea {n}" for n in range(100)], strategies)) == {-1}
    assert [len(pairs) for pairs in judge.asked] == [32]


def test_what_was_judged_once_is_known_when_the_same_is_asked_again() -> None:
    judge = ScriptedJudge()
    matching = StrategyComparer(judge)
    first = matching.matches(["Delete the wait"], ["retry twice", "wait"])
    assert matching.matches(["Delete the wait"], ["retry twice", "wait"]) == first
    assert len(judge.asked) == 1
