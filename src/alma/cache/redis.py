"""A cache on a Redis server, shared by processes and machines."""

from __future__ import annotations

import hashlib
import logging
import re
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from alma.cache.base import CacheStats
from alma.cache.document import from_json, to_json
from alma.closeable import Closeable
from alma.errors import ConfigurationError, MissingDependencyError, ValidationError
from alma.model.common import checked_name
from alma.model.secret import Secret
from alma.model.slice import MemorySlice

try:
    from redis import Redis
    from redis.backoff import NoBackoff
    from redis.exceptions import RedisError
    from redis.retry import Retry
except ImportError as exc:
    raise MissingDependencyError("redis", "redis") from exc

_log = logging.getLogger("alma.cache.redis")

Result = TypeVar("Result")

_LONGEST_TTL_SECONDS = 30 * 86_400
_AT_ONCE = 500


class RedisCache(Closeable):
    """Keeps slices on a Redis or Valkey server, as JSON, each for its time to live.

    A slice is found again by every process that sees the same generation. Those of a PostgreSQL store do; each process
    has its own generations of an SQLite store, so there the server only keeps what does not fit into the process.

    Whatever goes wrong with the server is a miss and a line in the log, never an error, and for `retry_after_seconds`
    nothing more is asked of it. `prefix` stands before every key: stores that must not know each other, such as a
    database and its copy, need one each.
    """

    def __init__(
        self,
        url: str | Secret = "redis://localhost:6379/0",
        prefix: str = "alma",
        *,
        timeout_seconds: float = 0.25,
        retry_after_seconds: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._prefix = _checked_prefix(prefix)
        self._client = _client(Secret(url), _positive("timeout_seconds", timeout_seconds))
        self._retry_after = _positive("retry_after_seconds", retry_after_seconds)
        self._clock = clock
        self._down_until = float("-inf")
        self._lock = threading.Lock()
        self._hits = self._misses = 0

    def get(self, key: str, generation: str) -> MemorySlice | None:
        kept = self._asked(lambda: self._client.get(self._key(key, generation)), None)
        found = None if kept is None else _read(kept)
        with self._lock:
            self._hits += found is not None
            self._misses += found is None
        return found

    def put(self, key: str, generation: str, found: MemorySlice, ttl_seconds: float) -> None:
        milliseconds = int(1000 * min(ttl_seconds, _LONGEST_TTL_SECONDS))
        if milliseconds > 0:
            self._asked(lambda: self._client.set(self._key(key, generation), to_json(found), px=milliseconds), None)

    def clear(self) -> None:
        self._asked(self._unlink_all, None)

    def stats(self) -> CacheStats:
        """How this object did, and how many entries the server has under the prefix."""
        entries = self._asked(lambda: sum(1 for _ in self._keys()), 0)
        with self._lock:
            return CacheStats(self._hits, self._misses, entries)

    def close(self) -> None:
        """Release the connections."""
        self._client.close()

    def _key(self, key: str, generation: str) -> str:
        digest = hashlib.sha256(f"{generation}\0{key}".encode("utf-8", "surrogatepass")).hexdigest()
        return f"{self._prefix}:slice:{digest}"

    def _keys(self) -> list[bytes]:
        # In a pattern a few characters mean something, unless a backslash stands before them.
        pattern = re.sub(r"([\\*?\[\]])", r"\\\1", f"{self._prefix}:slice:") + "*"
        return list(self._client.scan_iter(pattern, count=_AT_ONCE))

    def _unlink_all(self) -> None:
        keys = self._keys()
        for start in range(0, len(keys), _AT_ONCE):
            self._client.unlink(*keys[start : start + _AT_ONCE])

    def _asked(self, ask: Callable[[], Result], otherwise: Result) -> Result:
        """What the server answers, or something else while it is down."""
        if self._clock() < self._down_until:
            return otherwise
        try:
            return ask()
        except (RedisError, OSError) as exc:
            self._down_until = self._clock() + self._retry_after
            _log.warning("the cache server does not answer", extra={"error": str(exc)})
            return otherwise


def _read(kept: str | bytes) -> MemorySlice | None:
    try:
        return from_json(kept)
    except ValidationError as exc:
        # Written by another version or another program; the content is not logged.
        _log.warning("an entry of the cache cannot be read", extra={"reason": exc.reason})
        return None


def _client(url: Secret, timeout_seconds: float) -> Redis:
    try:
        return Redis.from_url(
            url.reveal(),
            socket_timeout=timeout_seconds,
            socket_connect_timeout=timeout_seconds,
            # A slow cache is worse than none.
            retry=Retry(NoBackoff(), 0),
        )
    except (ValueError, TypeError, AttributeError):
        # Without the cause, which may quote the password.
        raise ConfigurationError("url must be like redis://user:password@host:6379/0, rediss://… or unix://…") from None


def _checked_prefix(prefix: str) -> str:
    try:
        return checked_name("cache", "prefix", prefix)
    except ValidationError as exc:
        raise ConfigurationError(f"prefix {exc.reason}, not {prefix!r}") from None


def _positive(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise ConfigurationError(f"{name} must be a number above 0, not {value!r}")
    return float(value)
