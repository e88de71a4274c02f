"""Asking again: what failed and may pass by itself is tried a few times, each time after a longer wait."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

from alma.errors import ProviderError

Answer = TypeVar("Answer")

LONGEST_WAIT_SECONDS = 60.0
RETRIED_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


@dataclass(frozen=True)
class Failure:
    """Why an attempt failed, and whether another may succeed."""

    sentence: str
    may_pass: bool
    retry_after: float | None = None
    cause: Exception | None = None

    def wait_seconds(self, backoff_seconds: float, attempt: int) -> float:
        """What the service asks for, or else twice as long each time, spread so that clients do not come together."""
        if self.retry_after is not None:
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
        if not result.may_pass or number == attempts or wait > LONGEST_WAIT_SECONDS:
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
