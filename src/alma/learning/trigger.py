"""The trigger: forgetting begins when an agent has more outcomes than it is to keep."""

from __future__ import annotations

import threading
from collections import Counter

from alma.errors import ValidationError
from alma.learning.policy import PruneReason
from alma.learning.vitals import is_pinned
from alma.memory.archive import Archive
from alma.model.governance import ArchiveCause, Attribution
from alma.model.learning import Outcome
from alma.model.query import Order
from alma.model.scope import Scope
from alma.storage.base import StorageBackend

MOST_OUTCOMES = 250_000
# Counting takes the longer the more there are, so while there is room it is left alone until a part of that is filled;
# and where there is none, until so many came that it is worth it, or a part of what is kept where that is little.
_LOOK_EVERY = 500
_PART = 8
_AT_ONCE = 50
# Twice as many as can have come since the last look, so that a store that had far too many gets there too.
_MOST_AT_A_LOOK = 1_000
_OLDEST_FIRST = (Order("timestamp"),)


class ForgettingTrigger:
    """Archives the outcomes that are worth least once there are too many; the rules made from them stay.

    All outcomes are worth the same but for their age, so the oldest go, some at each look: nobody who learns waits
    until all of a large store was gone through.
    """

    def __init__(self, storage: StorageBackend, archive: Archive, most_outcomes: int = MOST_OUTCOMES) -> None:
        if isinstance(most_outcomes, bool) or not isinstance(most_outcomes, int) or most_outcomes < 1:
            wanted = "must be a whole number of at least 1"
            raise ValidationError("learning protocol", "most_outcomes", most_outcomes, wanted)
        self._storage = storage
        self._archive = archive
        self._most = most_outcomes
        self._learned: Counter[Scope] = Counter()
        self._look_after: dict[Scope, int] = {}
        self._lock = threading.Lock()

    def learned(self, scope: Scope) -> int:
        """Note that something was learned inside this scope; gives how many outcomes were forgotten because of it."""
        with self._lock:
            self._learned[scope] += 1
            # How many there are from before is not known to whoever has just begun.
            if self._learned[scope] < self._look_after.get(scope, 1):
                return 0
            self._learned[scope] = 0
        too_many = self._storage.count(Outcome, scope) - self._most
        self._look_after[scope] = max(min(_LOOK_EVERY, self._most // _PART), -too_many // _PART)
        return self._forget(scope, min(too_many, _MOST_AT_A_LOOK)) if too_many > 0 else 0

    def _forget(self, scope: Scope, many: int) -> int:
        oldest = self._storage.values(Outcome, ("id",), scope, order=_OLDEST_FIRST, limit=many)
        ids = [key for (key,) in oldest]
        by = Attribution(reason=f"more than {self._most:,} outcomes")
        because = f"{PruneReason.SPACE}: the oldest when there were too many"
        return sum(
            len(
                self._archive.put(
                    Outcome,
                    ids[i : i + _AT_ONCE],
                    scope,
                    ArchiveCause.FORGOTTEN,
                    because,
                    by,
                    only_if=lambda record: not is_pinned(record),
                )
            )
            for i in range(0, len(ids), _AT_ONCE)
        )
