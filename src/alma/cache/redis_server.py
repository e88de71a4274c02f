"""A connection to a Redis server with a circuit breaker: after an error it is not used for a while."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from alma.cache.keys import Keyspace, Pattern, checked_seconds
from alma.closeable import Closeable
from alma.errors import ConfigurationError, MissingDependencyError
from alma.model.secret import Secret

try:
    from redis import Redis
    from redis.backoff import NoBackoff
    from redis.exceptions import OutOfMemoryError
    from redis.exceptions import RedisError as RedisError
    from redis.retry import Retry
except ImportError as exc:
    raise MissingDependencyError("redis", "redis") from exc

_log = logging.getLogger("alma.cache.redis")

Result = TypeVar("Result")

SERVER_ERRORS = (RedisError, OSError)
_AT_ONCE = 500


class RedisServer(Closeable):
    """The shared part of caches: connections, the key space, and the circuit breaker.

    An error of the server is a line in the log and the value of `otherwise`, never an exception; then nothing more is
    asked for `retry_after_seconds`. A server that is full is read from, but not written to for that time.
    """

    def __init__(
        self,
        url: str | Secret,
        keys: Keyspace,
        *,
        timeout_seconds: float = 0.25,
        retry_after_seconds: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.keys = keys
        self.client = connected(url, checked_seconds("timeout_seconds", timeout_seconds))
        self._retry_after = checked_seconds("retry_after_seconds", retry_after_seconds)
        self._clock = clock
        self._down_until = self._full_until = float("-inf")
        self._lock = threading.Lock()

    def read(self, ask: Callable[[Redis], Result], otherwise: Result) -> Result:
        """The server's answer, or a default while it is down."""
        if self._clock() < self._down_until:
            return otherwise
        try:
            return ask(self.client)
        except OutOfMemoryError as exc:
            self._full_until = self._paused("the cache server is full", exc)
        except SERVER_ERRORS as exc:
            self._down_until = self._paused("the cache server does not answer", exc)
        return otherwise

    def write(self, tell: Callable[[Redis], object]) -> None:
        """Write something, unless the server is down or full."""
        if self._clock() >= self._full_until:
            self.read(tell, None)

    def scan(self, *patterns: Pattern) -> list[bytes]:
        """The keys of these patterns."""
        return self.read(lambda client: list(keys_of(client, self.keys, *patterns)), [])

    def forget(self, *patterns: Pattern) -> None:
        """Delete the keys of these patterns."""
        self.read(lambda client: unlink(client, list(keys_of(client, self.keys, *patterns))), None)

    def close(self) -> None:
        """Release the connections."""
        self.client.close()

    def _paused(self, problem: str, exc: Exception) -> float:
        """Until when the server is left alone."""
        until = self._clock() + self._retry_after
        _log.warning(problem, extra={"error": str(exc)})
        return until


def connected(url: str | Secret, timeout_seconds: float) -> Redis:
    """A client with this timeout in seconds, which connects when it is first used."""
    try:
        return Redis.from_url(
            Secret(url).reveal(),
            socket_timeout=timeout_seconds,
            socket_connect_timeout=timeout_seconds,
            # A slow cache is worse than none.
            retry=Retry(NoBackoff(), 0),
        )
    except (ValueError, TypeError, AttributeError):
        # Without the cause, which may quote the password.
        raise ConfigurationError("url must be like redis://user:password@host:6379/0, rediss://… or unix://…") from None


def keys_of(client: Redis, keys: Keyspace, *patterns: Pattern) -> Iterator[bytes]:
    """The keys of these patterns on the server."""
    wanted = keys.all_of(*patterns)
    for key in client.scan_iter(keys.glob, count=_AT_ONCE):
        if wanted.fullmatch(key.decode("utf-8", "surrogateescape")):
            yield key


def unlink(client: Redis, keys: list[bytes]) -> None:
    for start in range(0, len(keys), _AT_ONCE):
        client.unlink(*keys[start : start + _AT_ONCE])
