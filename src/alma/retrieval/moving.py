"""Moving: whether a store is on its way to another model, so that a part of it is not found by meaning."""

from __future__ import annotations

import time

from alma.retrieval.router import RETRIEVED
from alma.storage.base import StorageBackend

# In seconds: how long what was seen holds at least where no store is moved.
_AT_REST = 60.0
# And so many times as long as it took to look. While a store is moved and that takes so little, it is looked each time:
# the end of the move is noticed at once.
_WORTH, _LITTLE = 100, 0.005


class Moving:
    """Looks now and then for records that have vectors of other models only; threads may share it."""

    def __init__(self, storage: StorageBackend) -> None:
        self._storage = storage
        self._holds_until = -float("inf")
        self._told = ""

    def problem(self) -> str:
        """What is to be said of the store, empty where all that has vectors has those of its model."""
        began = time.monotonic()
        if began >= self._holds_until:
            self._told = self._look()
            ended = time.monotonic()
            self._holds_until = ended + self._holds_for(ended - began)
        return self._told

    def _holds_for(self, took: float) -> float:
        if self._told:
            return 0.0 if took <= _LITTLE else _WORTH * took
        return max(_AT_REST, _WORTH * took)

    def _look(self) -> str:
        model = self._storage.embedding_model
        with self._storage.snapshot() as tx:
            if not any(tx.is_half_moved(cls, model) for cls in RETRIEVED):
                return ""
        return (
            f"a part of the store has no vectors of {model} yet (alma reembed makes them, and goes on where it was "
            f"interrupted)"
        )
