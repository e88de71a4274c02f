"""The evidence of `recommend` as a memory of the outcome harness: the same choices without a store, much faster."""

from __future__ import annotations

import numpy as np

from alma.learning.estimator import StrategyEstimator, observations, with_exploration
from alma.learning.evidence import Evidence


class EvidenceLearner:
    """Keeps the evidence in memory instead of in a store."""

    def reset(self, strategies: list[str], seed: int) -> None:
        self._strategies = list(strategies)
        self._evidence = Evidence()
        self._estimator = StrategyEstimator()

    def learn(self, task: str, strategy: str, success: float) -> None:
        self._evidence.add([(str(len(self._evidence.ids)), task, strategy, success >= 0.5, None, "agent")])

    def choose(self, task: str) -> str:
        known = np.array([self._strategies.index(text) for text in self._evidence.strategy_rows], dtype=int)
        similarity = self._evidence.texts.similarity(task)
        observed = observations(self._evidence, known, similarity)
        found = self._estimator.estimate(task, similarity, self._evidence, observed, len(self._strategies))
        return self._strategies[int(np.argmax(with_exploration(found)))]

    def close(self) -> None:
        """Nothing to close."""
