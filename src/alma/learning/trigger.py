"""The trigger: forgetting begins when an agent has more outcomes than it is to keep."""

from __future__ import annotations

import threading
from collections import Counter

from alma.learning.forgetting import ForgettingEngine, PruneSummary
from alma.learning.policy import PrunePolicy
from alma.model.governance import Attribution
from alma.model.learning import Outcome
from alma.model.scope import Scope
from alma.storage.base import StorageBackend

MOST_OUTCOMES = 100_000
# Counting is cheap, but not free; in between nothing much can have changed.
_LOOK_EVERY = 500
# Some room at once, so that not every look archives a handful.
_ROOM = 0.95


class ForgettingTrigger:
    """Archives the outcomes that are worth least once there are too many; the rules made from them stay."""

    def __init__(self, storage: StorageBackend, engine: ForgettingEngine, most_outcomes: int = MOST_OUTCOMES) -> None:
        self._storage = storage
        self._engine = engine
        self._most = most_outcomes
        self._learned: Counter[Scope] = Counter()
        self._lock = threading.Lock()

    def learned(self, scope: Scope) -> PruneSummary | None:
        """Note that something was learned inside this scope; gives what was forgotten because of it."""
        with self._lock:
            self._learned[scope] += 1
            if self._learned[scope] % _LOOK_EVERY:
                return None
        if self._storage.count(Outcome, scope) <= self._most:
            return None
        policy = PrunePolicy(stale_after_days={}, min_confidence={}, max_memories=int(self._most * _ROOM))
        by = Attribution(reason=f"more than {self._most:,} outcomes")
        return self._engine.prune(scope, policy, by=by, kinds=[Outcome])
