"""`create_cache` by name."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import alma
from alma.cache.base import NullCache
from alma.cache.local import RetrievalCache
from alma.cache.redis import RedisCache
from alma.errors import ConfigurationError, MissingDependencyError


def test_each_cache_has_a_name() -> None:
    options: dict[str, dict[str, Any]] = {"memory": {"max_entries": 5}, "redis": {"prefix": "shop"}, "null": {}}
    made = {name: type(alma.create_cache(name, **chosen)) for name, chosen in options.items()}
    assert made == {"memory": RetrievalCache, "redis": RedisCache, "null": NullCache}


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("memcached", {}, "unknown cache 'memcached': choose memory, redis, null"),
        ("memory", {"prefix": "x"}, "unknown option 'prefix' of the memory cache: leave it out, or choose max_entries"),
        ("null", {"max_entries": 3}, "unknown option 'max_entries' of the null cache: leave it out$"),
        ("memory", {"max_entries": 0}, "max_cache_entries must be"),
        ("redis", {"url": "http://host"}, "url must be like redis://"),
    ],
)
def test_a_mistake_is_one_sentence(name: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        alma.create_cache(name, **options)


def test_without_its_package_the_redis_cache_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    for module in ("alma.cache.redis", "alma.cache.redis_server"):
        monkeypatch.delitem(sys.modules, module)
    with pytest.raises(
        MissingDependencyError, match=r"redis is not installed: run  pip install 'alma-agent-memory\[redis\]'"
    ):
        alma.create_cache("redis")
