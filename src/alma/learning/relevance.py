"""Relevance: how likely a past task is like the one that is asked about, and how well it fits beside others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from alma.judge.base import Judge

_SUREST = 1e-4


class Features(NamedTuple):
    """What is known of a candidate before and after the judge has seen it.

    `meaning` is the cosine of the tasks. The words that the task shares with the past task, with its strategy and with
    either count as much as they are rare among the candidates. `tried` is the logarithm of how many outcomes there are:
    the more, the nearer lies something unrelated by chance. `useful` is how likely the judge finds that the past
    task and its strategy help, and `alike` that one task is the other or a part of it.
    """

    meaning: float
    task_words: float
    strategy_words: float
    words: float
    tried: float
    useful: float | None = None
    alike: float | None = None


@dataclass(frozen=True, slots=True)
class Weights:
    """One additive score: log-odds from features."""

    meaning: float
    words: float = 0.0
    task_words: float = 0.0
    strategy_words: float = 0.0
    tried: float = 0.0
    useful: float = 0.0
    alike: float = 0.0
    bias: float = 0.0

    def of(self, features: Features) -> float:
        return (
            self.bias
            + self.meaning * features.meaning
            + self.words * features.words
            + self.task_words * features.task_words
            + self.strategy_words * features.strategy_words
            + self.tried * features.tried
            + self.useful * log_odds(0.5 if features.useful is None else features.useful)
            + self.alike * log_odds(0.5 if features.alike is None else features.alike)
        )


@dataclass(frozen=True, slots=True)
class Tuning:
    """The numbers that advice is given by; `bench/advice_weights.py` fits them on one language and checks on the other.

    `score` orders the candidates, and `relevance` is the probability that one is about such a task. Those with
    `judged` in their names are for the `reranked` best, where the judge can tell.

    `threshold` is the least relevance of evidence that is answered from. From `near` on, and with as much evidence and
    success as `supported_by` and `supported_from` say, an answer is supported; otherwise it is weak.
    """

    candidates: int = 40
    score: Weights = Weights(meaning=13.74, task_words=2.19, strategy_words=8.89)
    relevance: Weights = Weights(meaning=7.71, words=4.08, tried=-0.82, bias=-1.57)
    score_judged: Weights = Weights(meaning=13.74, task_words=2.19, strategy_words=8.89)
    relevance_judged: Weights = Weights(meaning=7.71, words=4.08, tried=-0.82, bias=-1.57)
    reranked: int = 4
    nearness: float = 1.37
    threshold: float = 0.58
    near: float = 0.75
    supported_by: float = 2.0
    supported_from: float = 0.6


def judged(judge: Judge, task: str, past: Sequence[tuple[str, str]]) -> list[tuple[float | None, float | None]]:
    """For each past task and its strategy, how likely they help with a task, and how likely the tasks are alike."""
    useful = judge.useful([(task, f"{known}: {strategy}") for known, strategy in past])
    if any(each is None for each in useful):
        return [(None, None)] * len(past)
    compared = judge.compare([(task, known) for known, _ in past])
    alike = [each["same"] + each["more"] + each["less"] for each in compared]
    return list(zip(useful, alike, strict=True))


def log_odds(probability: float) -> float:
    """The logarithm of the odds, of what is nearly sure no more than of one in ten thousand."""
    known = min(1 - _SUREST, max(_SUREST, probability))
    return math.log(known / (1 - known))


def probability(odds: float) -> float:
    """The probability with these logarithmic odds."""
    return 1 / (1 + math.exp(-odds)) if odds > 0 else math.exp(odds) / (1 + math.exp(odds))
