"""Retry with exponential backoff, Retry-After and a deadline for all attempts together."""

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

T = TypeVar("T")

LONGEST_WAIT_SECONDS = 60.0
RETRIED_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
# An attempt with less time than this would always time out.
_SHORTEST_ATTEMPT_SECONDS = 0.1

_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Limit the total time of all requests to services inside the with block, retries included."""
    token = _deadline.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _deadline.reset(token)


def attempt_timeout(longest: float) -> float:
    """The timeout of one attempt in seconds: `longest`, or the time left until the deadline."""
    return max(_SHORTEST_ATTEMPT_SECONDS, _seconds_left(longest))


def _seconds_left(default: float) -> float:
    end = _deadline.get()
    return default if end is None else min(default, end - time.monotonic())


@dataclass(frozen=True)
class Failure:
    """Why an attempt failed; a `transient` failure is retried."""

    message: str
    transient: bool
    retry_after: float | None = None
    cause: Exception | None = None

    def wait_seconds(self, backoff_seconds: float, attempt: int) -> float:
        """The service's Retry-After, or exponential backoff with jitter."""
        # A Retry-After of zero or in the past would cause retries without a pause.
        if self.retry_after:
            return self.retry_after
        longest = min(LONGEST_WAIT_SECONDS, backoff_seconds * 2 ** (attempt - 1))
        return random.uniform(longest / 2, longest)


def retry(attempt: Callable[[], T | Failure], attempts: int, backoff_seconds: float, error: type[ProviderError]) -> T:
    """The first result; raises `error` after the last attempt or a failure that is not transient."""
    for number in range(1, attempts + 1):
        result = attempt()
        if not isinstance(result, Failure):
            return result
        wait = result.wait_seconds(backoff_seconds, number)
        if not result.transient or number == attempts or wait > _seconds_left(LONGEST_WAIT_SECONDS):
            tried = f" (tried {number} times)" if number > 1 else ""
            raise error(f"{result.message}{tried}") from result.cause
        time.sleep(wait)
    raise AssertionError("the last attempt returns or raises")


def retry_after_seconds(header: str | None) -> float | None:
    """The value of a Retry-After header, which is a number of seconds or a date."""
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
