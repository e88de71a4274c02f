"""A cache of results on a Redis server, shared by processes and machines."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping

from alma.cache.base import CacheStats
from alma.cache.document import from_json, to_json
from alma.cache.keys import (
    EMBEDDING,
    EMBEDDING_BATCH,
    POPULAR,
    QUERY,
    ROUTER_DECISION,
    SEARCH,
    SEARCH_HISTORY,
    Keyspace,
    Pattern,
    hashed,
)
from alma.cache.redis_activity import RedisActivity
from alma.cache.redis_embeddings import RedisEmbedder
from alma.cache.redis_server import RedisServer
from alma.closeable import Closeable
from alma.embeddings.base import EmbeddingProvider
from alma.errors import ValidationError
from alma.model.secret import Secret
from alma.model.slice import MemorySlice
from alma.redaction.redactor import DEFAULT_REDACTOR, masking

_log = logging.getLogger("alma.cache.redis")

_LONGEST_TTL_SECONDS = 30 * 86_400
_MASK = masking(DEFAULT_REDACTOR)
_FROM_TEXTS = (QUERY, SEARCH, SEARCH_HISTORY, POPULAR, EMBEDDING, EMBEDDING_BATCH, ROUTER_DECISION)


class RedisResults:
    """Slices under the keys of one pattern, as JSON with the generation of the store that they were read from."""

    def __init__(self, server: RedisServer, pattern: Pattern, longest_seconds: float) -> None:
        self._server, self._pattern = server, pattern
        self._longest_seconds = longest_seconds
        self._lock = threading.Lock()
        self._hits = self._misses = 0

    def get(self, key: str, generation: str) -> MemorySlice | None:
        kept = self._server.read(lambda client: client.get(self._key(key)), None)
        found = None if kept is None else _read(kept, hashed(generation))
        with self._lock:
            self._hits += found is not None
            self._misses += found is None
        return found

    def put(self, key: str, generation: str, found: MemorySlice, ttl_seconds: float) -> None:
        milliseconds = int(1000 * min(ttl_seconds, self._longest_seconds))
        if milliseconds > 0:
            text = to_json(found, hashed(generation))
            self._server.write(lambda client: client.set(self._key(key), text, px=milliseconds))

    def clear(self) -> None:
        self._server.forget(self._pattern)

    def stats(self) -> CacheStats:
        """The hits and misses of this object, and the entries on the server."""
        entries = len(self._server.scan(self._pattern))
        with self._lock:
            return CacheStats(self._hits, self._misses, entries)

    def _key(self, key: str) -> str:
        return self._server.keys.key(self._pattern, hashed(key))


class RedisCache(RedisResults, Closeable):
    """Keeps the slices of `retrieve` on a Redis or Valkey server, each for its time to live.

    A slice is found again by every process that sees the same generation. Those of a PostgreSQL store do; each process
    has its own generations of an SQLite store, so there the server only keeps what does not fit into the process.
    `searches` keeps the results of memory search in the same way, `shared` the vectors of a provider, and `activity`
    tells other programs what is searched; `mask` removes secrets from queries before. `clear` removes everything of it
    that was made from texts.

    Whatever goes wrong with the server is a miss and a line in the log, never an error, and for `retry_after_seconds`
    nothing more is asked of it. `prefix` stands before every key: stores that must not know each other, such as a
    database and its copy, need one each. `ttl_seconds` replaces documented times to live by their names.
    """

    def __init__(
        self,
        url: str | Secret = "redis://localhost:6379/0",
        prefix: str = "alma",
        *,
        ttl_seconds: Mapping[str, float] | None = None,
        timeout_seconds: float = 0.25,
        retry_after_seconds: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
        mask: Callable[[str], str] = _MASK,
    ) -> None:
        keys = Keyspace(prefix, ttl_seconds or {})
        self.server = RedisServer(
            url,
            keys,
            timeout_seconds=timeout_seconds,
            retry_after_seconds=retry_after_seconds,
            clock=clock,
        )
        # The engine has a time to live of its own for what it retrieves.
        super().__init__(self.server, QUERY, keys.ttl_seconds.get(QUERY.ttl, _LONGEST_TTL_SECONDS))
        self.searches = RedisResults(self.server, SEARCH, keys.ttl(SEARCH))
        self.activity = RedisActivity(self.server, mask)

    def shared(self, embedder: EmbeddingProvider) -> EmbeddingProvider:
        """The provider with its vectors kept on the server."""
        return RedisEmbedder(embedder, self.server)

    def clear(self) -> None:
        self.server.forget(*_FROM_TEXTS)

    def close(self) -> None:
        """Release the connections."""
        self.server.close()


def _read(kept: str | bytes, generation: str) -> MemorySlice | None:
    try:
        return from_json(kept, generation)
    except ValidationError as exc:
        # Written by another version or another program; the content is not logged.
        _log.warning("an entry of the cache cannot be read", extra={"reason": exc.reason})
        return None
