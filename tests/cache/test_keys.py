"""The documented keys: all patterns and times to live, and ids that cannot reach the keys of others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from alma.cache import CACHE_TTL_CONFIG
from alma.cache.keys import PATTERNS, TTL_SECONDS, Filled, Keyspace, Pattern
from alma.config.loader import settings_from
from alma.errors import ConfigurationError

DOCUMENTED = {
    "memory:{memory_id}": 3600,
    "memory:user:{user_id}:recent": 3600,
    "memory:project:{project_id}:active": 3600,
    "search:semantic:{query_hash}": 3600,
    "search:user:{user_id}:history": 86400,
    "relationships:{memory_id}:outgoing": 1800,
    "relationships:{memory_id}:incoming": 1800,
    "session:{session_id}:context": 1800,
    "session:{session_id}:working_memory": 900,
    "session:user:{user_id}:active": 1800,
    "project:{project_id}:context": 14400,
    "project:{project_id}:patterns": 7200,
    "project:{project_id}:git_status": 300,
    "user:{user_id}:preferences": 86400,
    "user:{user_id}:projects": 3600,
    "layer:config:{layer}": 86400,
    "layer:stats:{layer}": 600,
    "query:{query_hash}": 300,
    "query:popular": 3600,
    "embedding:{content_hash}": 86400,
    "embedding:batch:{batch_id}": 86400,
    "router:decision:{context_hash}": 300,
    "router:performance": 600,
}
ROOT = Path(__file__).parents[2]
NAMES = ["a", "a:b", "user", "popular", "batch", "*", "a?[b]", "%3A", "ä 😀", "\n", "{memory_id}", "..", "recent"]


def test_every_documented_pattern_has_its_time_to_live() -> None:
    assert {each.template: Keyspace().ttl(each) for each in PATTERNS} == DOCUMENTED


def test_the_documented_times_to_live_are_importable_by_their_name() -> None:
    assert dict(CACHE_TTL_CONFIG) == {
        "session_context": 1800,
        "working_memory": 900,
        "git_status": 300,
        "memory_data": 3600,
        "search_results": 3600,
        "project_context": 14400,
        "user_preferences": 86400,
        "project_patterns": 7200,
        "relationships": 1800,
        "router_decisions": 300,
        "layer_stats": 600,
    }


def test_the_reference_lists_every_pattern_as_it_is() -> None:
    page = (ROOT / "docs" / "reference" / "redis.md").read_text(encoding="utf-8")
    rows = [re.sub(r"\s+", " ", line).strip() for line in page.splitlines() if line.startswith("| `")]
    assert rows == [row(each) for each in PATTERNS] + [f"| `{name}` | {ttl:,} |" for name, ttl in TTL_SECONDS.items()]


def row(each: Pattern) -> str:
    readers = "ALMA" if each.filled is Filled.READ_THROUGH else "other programs"
    ttl = f"{TTL_SECONDS[each.ttl]:,}"
    return (
        f"| `{each.template}` | {each.form}: {each.value} | {ttl} (`{each.ttl}`) | "
        f"{each.filled}: {each.filled_by} | {readers} |"
    )


@given(left=st.data(), right=st.data())
def test_no_two_patterns_or_ids_share_a_key(left: st.DataObject, right: st.DataObject) -> None:
    (one, its), (other, others) = drawn(left), drawn(right)
    assume((one.template, its) != (other.template, others))
    assert one.key(*its) != other.key(*others)


def drawn(data: st.DataObject) -> tuple[Pattern, tuple[str, ...]]:
    pattern = data.draw(st.sampled_from(PATTERNS))
    if "hash" in pattern.template:
        return pattern, (data.draw(st.sampled_from(["0" * 64, "f" * 64])),)
    if "{" not in pattern.template:
        return pattern, ()
    return pattern, (data.draw(st.sampled_from(NAMES) | st.text(min_size=1)),)


@given(name=st.sampled_from(NAMES) | st.text(min_size=1))
def test_an_id_is_one_part_of_a_key_and_means_nothing_in_a_search(name: str) -> None:
    for pattern in PATTERNS:
        key = Keyspace("shop").key(pattern, name)
        assert key.count(":") == pattern.template.count(":") + 1
        assert not re.search(r"[*?\[\]\\\s]", key)
        assert Keyspace("shop").all_of(pattern).fullmatch(key)


@pytest.mark.parametrize(
    ("ttls", "said"),
    [
        ({"memory": 5}, "redis.ttl_seconds has no 'memory'; it has session_context, working_memory"),
        ({"git_status": 0}, "redis.ttl_seconds.git_status must be above 0, not 0"),
        ({"git_status": "5"}, "redis.ttl_seconds.git_status"),
        ([5], "redis.ttl_seconds"),
    ],
)
def test_a_wrong_time_to_live_is_one_sentence(ttls: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        settings_from({"project_id": "p", "redis": {"url": "redis://h", "ttl_seconds": ttls}})


@pytest.mark.parametrize(
    ("ttls", "said"),
    [({"memory": 5}, "ttl_seconds has no 'memory'"), ({"git_status": True}, "ttl_seconds.git_status must be a number")],
)
def test_the_constructors_check_times_to_live_as_well(ttls: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        Keyspace(ttl_seconds=ttls)


def test_configured_times_to_live_replace_the_documented_ones() -> None:
    settings = settings_from({"project_id": "p", "redis": {"url": "redis://h", "ttl_seconds": {"git_status": 7.5}}})
    assert settings.redis is not None
    keys = Keyspace(settings.redis.prefix, settings.redis.ttl_seconds)
    assert {each.template: keys.ttl(each) for each in PATTERNS} == DOCUMENTED | {"project:{project_id}:git_status": 7.5}
