"""Relevance: how likely a past task is like the one that is asked about, and how well it fits beside others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple


class Features(NamedTuple):
    """What is known of a candidate.

    `meaning` is the cosine of the tasks. The words that the task shares with the past task, with its strategy and with
    either count as much as they are rare among the candidates. `tried` is the logarithm of how many outcomes there are:
    the more, the nearer lies something unrelated by chance.
    """

    meaning: float
    task_words: float
    strategy_words: float
    words: float
    tried: float


@dataclass(frozen=True, slots=True)
class Weights:
    """One additive score: log-odds from features."""

    meaning: float
    task_words: float = 0.0
    strategy_words: float = 0.0
    words: float = 0.0
    tried: float = 0.0
    bias: float = 0.0

    def of(self, features: Features) -> float:
        """The log-odds of a candidate."""
        return (
            self.bias
            + self.meaning * features.meaning
            + self.task_words * features.task_words
            + self.strategy_words * features.strategy_words
            + self.words * features.words
            + self.tried * features.tried
        )


@dataclass(frozen=True, slots=True)
class Tuning:
    """The numbers that advice is given by; `bench/advice_weights.py` fits them on one language and checks on the other.

    `score` orders the candidates, and `relevance` is the probability that one is about such a task; `nearness` is how
    much lower a score may be for its evidence to count a third. `threshold` is the least relevance of evidence that is
    answered from. From `near` on, and with as much evidence and success as `supported_by` and `supported_from` say, an
    answer is supported; otherwise it is weak.
    """

    candidates: int = 40
    score: Weights = Weights(meaning=13.64, task_words=-3.84, strategy_words=5.77, words=7.0)
    relevance: Weights = Weights(meaning=7.17, words=4.31, tried=-0.67, bias=-1.46)
    nearness: float = 1.36
    threshold: float = 0.58
    near: float = 0.75
    supported_by: float = 2.0
    supported_from: float = 0.6


def probability(log_odds: float) -> float:
    """The probability with these logarithmic odds."""
    return 1 / (1 + math.exp(-log_odds)) if log_odds > 0 else math.exp(log_odds) / (1 + math.exp(log_odds))
