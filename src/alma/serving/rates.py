"""Rates: how many requests one caller may make, as a bucket that fills at a steady rate."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable

_MOST_CALLERS = 10_000
WRONG_KEYS_PER_SECOND = 1.0
"""Wrong keys are tried at the rate of a person who mistypes."""
WRONG_KEYS_AT_ONCE = 20


class RateLimit:
    """A bucket of `burst` requests for each caller, refilled at `per_second`; used from one thread."""

    def __init__(self, per_second: float, burst: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._burst = float(burst)
        self._monotonic = monotonic
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> int | None:
        """Take one request from the caller's bucket; None when there was one, or else after how many seconds."""
        moment = self._monotonic()
        left, since = self._buckets.pop(caller, (self._burst, moment))
        left = min(self._burst, left + (moment - since) * self._per_second)
        has_one = left >= 1
        self._buckets[caller] = (left - 1 if has_one else left, moment)
        if len(self._buckets) > _MOST_CALLERS:
            # Whoever was not heard of for the longest time has a full bucket anyway.
            self._buckets.popitem(last=False)
        return None if has_one else max(1, math.ceil((1 - left) / self._per_second))
