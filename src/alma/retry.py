"""Asking again: what failed and may pass by itself is tried a few times, each time after a longer wait.

Who has somebody waiting for an answer says how long that may take at most, with `no_longer_than`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

from alma.errors import ProviderError

Answer = TypeVar("Answer")

LONGEST_WAIT_SECONDS = 60.0
RETRIED_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
# An attempt that has hardly any time left would fail for that alone.
_SHORTEST_ATTEMPT_SECONDS = 0.1

_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)


@contextmanager
def no_longer_than(seconds: float) -> Iterator[None]:
    """Whatever services are asked inside, they are given up after so many seconds, further attempts included."""
    token = _deadline.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _deadline.reset(token)


def attempt_seconds(longest: float) -> float:
    """How long one attempt may take: as long as it was told, or as is left."""
    return max(_SHORTEST_ATTEMPT_SECONDS, _seconds_left(longest))


def _seconds_left(otherwise: float) -> float:
    deadline = _deadline.get()
    return otherwise if deadline is None else min(otherwise, deadline - time.monotonic())


@dataclass(frozen=True)
class Failure:
    """Why an attempt failed, and whether another may succeed."""

    sentence: str
    may_pass: bool
    retry_after: float | None = None
    cause: Exception | None = None

    def wait_seconds(self, backoff_seconds: float, attempt: int) -> float:
        """What the service asks for, or else twice as long each time, spread so that clients do not come together."""
        # Who asks for none, or for one that is over, would be asked again and again within a moment.
        if self.retry_after:
            return self.retry_after
        longest = min(LONGEST_WAIT_SECONDS, backoff_seconds * 2 ** (attempt - 1))
        return random.uniform(longest / 2, longest)


def until_answered(
    attempt: Callable[[], Answer | Failure], attempts: int, backoff_seconds: float, error: type[ProviderError]
) -> Answer:
    """The first answer; after the last failure, or one that will not pass, an error that says how often."""
    for number in range(1, attempts + 1):
        result = attempt()
        if not isinstance(result, Failure):
            return result
        wait = result.wait_seconds(backoff_seconds, number)
        if not result.may_pass or number == attempts or wait > _seconds_left(LONGEST_WAIT_SECONDS):
            tried = f" (tried {number} times)" if number > 1 else ""
            raise error(f"{result.sentence}{tried}") from result.cause
        time.sleep(wait)
    raise AssertionError("the last attempt returns or raises")


def retry_after_seconds(header: str | None) -> float | None:
    """What a Retry-After header says, as a number of seconds or as a date."""
    if header is None:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None
