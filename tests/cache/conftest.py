"""A Redis server of each test's own, as far as keys go: every test has a prefix."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from redis import Redis

from alma.cache.redis_patterns import RedisProjection


@pytest.fixture
def prefix() -> str:
    return f"t{uuid.uuid4().hex}"


class Keys:
    """What another program sees of the keys with a prefix."""

    def __init__(self, url: str, prefix: str) -> None:
        self.client: Any = Redis.from_url(url, decode_responses=True)
        self.prefix = prefix

    def __call__(self, key: str) -> Any:
        """The value of a key, whatever its type."""
        name = f"{self.prefix}:{key}"
        readers = {
            "none": lambda _: None,
            "string": self.client.get,
            "list": lambda each: self.client.lrange(each, 0, -1),
            "set": self.client.smembers,
            "hash": self.client.hgetall,
            "zset": lambda each: dict(self.client.zrange(each, 0, -1, withscores=True)),
        }
        return readers[self.client.type(name)](name)

    def ttl(self, key: str) -> int:
        return int(self.client.ttl(f"{self.prefix}:{key}"))

    def set(self, key: str, value: str) -> None:
        self.client.set(f"{self.prefix}:{key}", value)

    def expire(self, *keys: str) -> None:
        """Make keys go as their end makes them go."""
        self.client.delete(*(f"{self.prefix}:{key}" for key in keys))

    def names(self, pattern: str = "*") -> list[str]:
        """The documented keys that match."""
        found = (each.removeprefix(f"{self.prefix}:") for each in self.client.keys(f"{self.prefix}:{pattern}"))
        return sorted(each for each in found if not each.startswith("projection:"))


@pytest.fixture
def keys(redis_url: str, prefix: str) -> Keys:
    return Keys(redis_url, prefix)


@pytest.fixture
def projection(redis_url: str, prefix: str) -> Iterator[RedisProjection]:
    with RedisProjection(redis_url, prefix, timeout_seconds=60) as projection:
        yield projection
        projection.clear()
