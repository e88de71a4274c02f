"""The evidence of `recommend` as a memory of the outcome harness: the same choices without a store, much faster."""

from __future__ import annotations

import numpy as np

from alma.learning.estimator import Weighing, observations, promises
from alma.learning.evidence import Evidence


class EvidenceLearner:
    """Keeps the evidence in memory instead of in a store."""

    def reset(self, strategies: list[str], seed: int) -> None:
        self._strategies = list(strategies)
        self._evidence = Evidence()
        self._weighing = Weighing()

    def learn(self, task: str, strategy: str, success: float) -> None:
        self._evidence.add([(str(len(self._evidence.ids)), task, strategy, success >= 0.5, None, "agent")])

    def choose(self, task: str) -> str:
        known = np.array([self._strategies.index(text) for text in self._evidence.strategy_rows], dtype=int)
        alike = self._evidence.writings.alike(task)
        observed = observations(self._evidence, known, alike)
        found = self._weighing.estimate(task, alike, self._evidence, observed, len(self._strategies))
        return self._strategies[int(np.argmax(promises(found)))]

    def close(self) -> None:
        """Nothing to close."""
