"""Keys that tell other programs what is searched, how the router decides, and in which state a repository is."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from alma import clock
from alma.cache.base import Activity, Searched
from alma.cache.keys import (
    GIT_STATUS,
    LAYER_STATS,
    POPULAR,
    ROUTER_DECISION,
    ROUTER_PERFORMANCE,
    SEARCH_HISTORY,
    Pattern,
    hashed,
)
from alma.cache.redis_server import RedisServer
from alma.model.memory import Layer, Memory
from alma.storage.document import timestamp_text

if TYPE_CHECKING:
    from redis import Redis

_MOST_SEARCHES = 100
_MOST_POPULAR = 1_000
_LONGEST_QUERY = 1_000


class RedisActivity(Activity):
    """Publishes on a Redis server, in one round trip for each call; nothing is told while the server is down or full.

    `mask` removes secrets from queries. Counters start again when their time to live is over.
    """

    def __init__(self, server: RedisServer, mask: Callable[[str], str]) -> None:
        self._server = server
        self._mask = mask

    def searched(self, search: Searched) -> None:
        self._server.write(lambda client: self._publish(client, search))

    def saw_repository(self, project_id: str, status: Mapping[str, Any]) -> None:
        key, text = self._server.keys.key(GIT_STATUS, project_id), _text(status)
        self._server.write(lambda client: client.set(key, text, px=self._milliseconds(GIT_STATUS)))

    # ------------------------------------------------------------------ searches

    def _publish(self, client: Redis, search: Searched) -> None:
        with client.pipeline(transaction=False) as pipe:
            if search.user_id is not None:
                self._note_history(pipe, search.user_id, search)
            if search.key:
                self._count_query(pipe, hashed(search.key))
            if search.layers is not None:
                self._note_decision(pipe, search, search.layers)
            pipe.execute()

    def _note_history(self, pipe: Any, user_id: str, search: Searched) -> None:
        key = self._server.keys.key(SEARCH_HISTORY, user_id)
        entry = {
            "query": self._mask(search.query)[:_LONGEST_QUERY],
            "call": search.call,
            "at": timestamp_text(clock.now()),
        }
        pipe.lpush(key, _text({**entry, "found": len(search.found)}))
        pipe.ltrim(key, 0, _MOST_SEARCHES - 1)
        pipe.pexpire(key, self._milliseconds(SEARCH_HISTORY))

    def _count_query(self, pipe: Any, query_hash: str) -> None:
        key = self._server.keys.key(POPULAR)
        pipe.zincrby(key, 1, query_hash)
        pipe.zremrangebyrank(key, 0, -_MOST_POPULAR - 1)
        pipe.pexpire(key, self._milliseconds(POPULAR), nx=True)

    def _note_decision(self, pipe: Any, search: Searched, layers: Mapping[str, str]) -> None:
        keys = self._server.keys
        decision = keys.key(ROUTER_DECISION, hashed(search.query, *(part or "" for part in search.scope)))
        pipe.set(decision, _text({"layers": dict(layers)}), px=self._milliseconds(ROUTER_DECISION))
        counted = {"decisions": 1, "hits": len(search.found), "milliseconds": search.milliseconds}
        self._count(pipe, keys.key(ROUTER_PERFORMANCE), ROUTER_PERFORMANCE, counted)
        for layer in layers:
            hits = sum(layer in _layers_of(memory) for memory in search.found)
            counted = {"searches": 1, "hits": hits, "milliseconds": search.milliseconds}
            self._count(pipe, keys.key(LAYER_STATS, layer), LAYER_STATS, counted)

    def _count(self, pipe: Any, key: str, pattern: Pattern, counted: Mapping[str, float]) -> None:
        for name, value in counted.items():
            pipe.hincrbyfloat(key, name, round(value, 3))
        pipe.pexpire(key, self._milliseconds(pattern), nx=True)

    def _milliseconds(self, pattern: Pattern) -> int:
        return max(1, int(1000 * self._server.keys.ttl(pattern)))


def _layers_of(memory: Memory) -> list[str]:
    """The layers of a memory; one without layers belongs to the project."""
    return [layer.value for layer in Layer if getattr(memory, f"layer_{layer}")] or [Layer.PROJECT.value]


def _text(document: Any) -> bytes:
    # A name or text may hold half of a surrogate pair, which has no encoding.
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
