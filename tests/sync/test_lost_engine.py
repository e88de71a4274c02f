"""A Redis server that was restarted has lost its entries: the relay notices, and fills it again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from redis import Redis

from alma.cache.redis_patterns import RedisProjection
from alma.model.memory import Memory
from alma.storage.base import StorageBackend
from alma.sync import DataSyncManager, Difference, RelayOptions
from alma.testing import builders as make
from alma.testing.builders import EVERYWHERE
from tests.support.valkey import RedisNode


@pytest.fixture
def node() -> Iterator[RedisNode]:
    with RedisNode() as server:
        yield server


@pytest.fixture
def manager(lite: StorageBackend, node: RedisNode) -> Iterator[DataSyncManager]:
    """A store with memories, and the engine that holds them."""
    lite.save_many(make.a_memory() for _ in range(5))
    with DataSyncManager(lite, [RedisProjection(node.url)], RelayOptions(poll_seconds=0.1)) as manager:
        manager.run()
        yield manager


def require_full(manager: DataSyncManager) -> None:
    """The engine holds every memory."""
    report = manager.validate_data_integrity()
    assert report.is_consistent, report
    (engine,) = report.engines
    assert {(each.stored, each.held) for each in engine.counts if each.kind == "memory"} == {
        (manager.storage.count(Memory, EVERYWHERE),) * 2
    }


def restarted(node: RedisNode) -> None:
    node.kill()
    node.start()


def emptied(node: RedisNode) -> None:
    with Redis.from_url(node.url) as client:
        client.flushall()


def test_another_process_fills_it_again(manager: DataSyncManager, node: RedisNode) -> None:
    restarted(node)
    with DataSyncManager(manager.storage, [RedisProjection(node.url)]) as other:
        assert not other.validate_data_integrity().is_consistent
        other.run()
        require_full(other)


@pytest.mark.parametrize("lose", [restarted, emptied])
def test_a_running_relay_fills_it_again_with_the_next_change(
    manager: DataSyncManager, node: RedisNode, lose: Callable[[RedisNode], None]
) -> None:
    manager.start()
    lose(node)
    manager.storage.save(make.a_memory())
    _await(lambda: _is_full(manager))
    require_full(manager)


def test_one_record_that_is_synced_at_once_does_not_hide_the_loss(manager: DataSyncManager, node: RedisNode) -> None:
    restarted(node)
    (first, *_) = manager.storage.find(Memory, EVERYWHERE, limit=1)
    assert manager.sync_memory_across_storages(first.id).success
    manager.run()
    require_full(manager)


def test_an_emptied_server_is_filled_again_by_the_next_run(manager: DataSyncManager, node: RedisNode) -> None:
    emptied(node)
    assert {each.difference for each in manager.validate_data_integrity().issues} == {Difference.MISSING}
    manager.run()
    require_full(manager)


def _is_full(manager: DataSyncManager) -> bool:
    return manager.validate_data_integrity().is_consistent and manager.status()[0].state == "ok"


def _await(is_true: Callable[[], bool], seconds: float = 60.0) -> None:
    ended = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < ended
        time.sleep(0.1)
