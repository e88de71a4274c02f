"""Connection limits, timeouts and rate limits of the HTTP servers."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, fields
from ipaddress import ip_address

from alma.errors import ValidationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits on connections, MCP sessions, request sizes and timeouts.

    `max_connections` is lowered if the process may not open that many files. At a limit, the connection that has waited
    longest for its client is closed: half-open ones first, then idle ones, then those with an incomplete body. A body
    must arrive within `body_seconds` and, after `body_grace_seconds`, at `body_bytes_per_second` on average.
    """

    max_connections: int = 1_024
    max_connections_per_address: int = 256
    max_head_bytes: int = 64 * 1024
    head_seconds: float = 10.0
    body_seconds: float = 120.0
    body_bytes_per_second: int = 1_024
    body_grace_seconds: float = 10.0
    keep_alive_seconds: float = 30.0
    write_seconds: float = 60.0
    max_sessions_per_key: int = 100
    session_idle_seconds: float = 1_800.0

    def __post_init__(self) -> None:
        for each in fields(Limits):
            value = getattr(self, each.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise ValidationError("service", each.name, value, "must be above zero")


_MOST_CALLERS = 10_000
WRONG_KEYS_PER_SECOND = 1.0
"""The rate limit of wrong API keys: the typing errors of a person."""
WRONG_KEYS_AT_ONCE = 20


class RateLimit:
    """Token bucket per caller: `burst` requests at once, refilled at `per_second`; used from one thread."""

    def __init__(self, per_second: float, burst: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._burst = float(burst)
        self._monotonic = monotonic
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> int | None:
        """Take a token; None if there was one, otherwise the seconds until there is."""
        moment = self._monotonic()
        left, since = self._buckets.pop(caller, (self._burst, moment))
        left = min(self._burst, left + (moment - since) * self._per_second)
        has_one = left >= 1
        self._buckets[caller] = (left - 1 if has_one else left, moment)
        if len(self._buckets) > _MOST_CALLERS:
            # The caller that was idle longest has a full bucket anyway.
            self._buckets.popitem(last=False)
        return None if has_one else max(1, math.ceil((1 - left) / self._per_second))


def is_loopback(host: str) -> bool:
    """Whether an address is a loopback address."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
