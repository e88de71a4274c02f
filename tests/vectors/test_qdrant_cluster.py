"""A cluster of three nodes: one of them dies during reads and writes, and its callers do not notice.

ALMA_CLUSTER_SECONDS=60 keeps it down, and up afterwards, for that long.
"""

from __future__ import annotations

import os
import random
import threading
import time
from contextlib import closing

import pytest
from qdrant_client import QdrantClient

from alma.errors import IndexUnavailable
from alma.model.memory import Memory
from alma.storage.base import StorageBackend
from alma.sync import DataSyncManager
from alma.testing import builders as make
from alma.testing.builders import EVERYWHERE
from alma.vectors.qdrant import QdrantIndex, QdrantProjection
from tests.support.qdrant import QdrantCluster, QdrantNode

SECONDS = float(os.environ.get("ALMA_CLUSTER_SECONDS", "0.5"))
PAUSE_SECONDS = 0.02
MORE_THAN_THERE_IS = 1_000


class Traffic:
    """Writes and searches in two threads, and what went wrong in them."""

    def __init__(self, storage: StorageBackend, sync: DataSyncManager, index: QdrantIndex) -> None:
        self._storage, self._sync, self._index = storage, sync, index
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._loop, args=(step,)) for step in (self._write, self._read)]
        self.problems: list[object] = []
        self.written = self.read = 0

    def __enter__(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def go_on(self) -> None:
        """Wait until there was traffic for a while."""
        written, read, until = self.written, self.read, time.monotonic() + SECONDS
        while time.monotonic() < until or self.written < written + 5 or self.read < read + 5:
            assert not self.problems
            time.sleep(0.05)

    def _loop(self, step: object) -> None:
        while not self._ended.wait(PAUSE_SECONDS):
            try:
                step()  # type: ignore[operator]
            except Exception as exc:  # noqa: BLE001 - the test names it
                self.problems.append(exc)

    def _write(self) -> None:
        self._storage.save(make.a_memory(id=f"{self.written}", embedding=_vector()))
        (ran,) = self._sync.run()
        if ran.problem or ran.failed or ran.pending:
            self.problems.append(ran)
        self.written += 1

    def _read(self) -> None:
        if missed := missed_by(self._index, self._storage):
            self.problems.append(f"a search did not find {missed}")
        self.read += 1


def missed_by(index: QdrantIndex, storage: StorageBackend) -> set[str]:
    """What was committed before a search for everything, and is not in what it found."""
    there = {key for (key,) in storage.values(Memory, ("id",), EVERYWHERE)}
    return there - {each.record_id for each in index.search(Memory, _vector(), EVERYWHERE, limit=MORE_THAN_THERE_IS)}


def missed_after_start(node: QdrantNode, storage: StorageBackend) -> set[str]:
    """What the first answer of a node lacks that is being started."""
    # Two addresses of the same node: no other one can answer instead.
    urls = [node.url, node.url.replace("127.0.0.1", "localhost")]
    with closing(QdrantIndex(storage, urls, timeout_seconds=60)) as index:
        while True:
            try:
                return missed_by(index, storage)
            except IndexUnavailable:
                time.sleep(0.01)


def _vector() -> list[float]:
    return [random.gauss() for _ in range(4)]


@pytest.mark.slow
def test_no_caller_notices_a_node_that_dies_and_no_write_is_lost(storage: StorageBackend) -> None:
    with (
        QdrantCluster() as cluster,
        QdrantProjection(cluster.urls) as projection,
        closing(QdrantIndex(storage, cluster.urls)) as index,
        closing(QdrantClient(cluster.urls[1], check_compatibility=False)) as client,
    ):
        sync = DataSyncManager(storage, [projection])
        with Traffic(storage, sync, index) as traffic:
            traffic.go_on()
            assert client.get_collection("memory_embeddings").config.params.replication_factor == 2
            # The first address, and the node that leads the others.
            cluster.nodes[0].kill()
            traffic.go_on()
            cluster.nodes[0].launch()
            assert missed_after_start(cluster.nodes[0], storage) == set()
            cluster.nodes[0].wait()
            traffic.go_on()
        assert traffic.problems == []
        for url in cluster.urls:
            with QdrantProjection(url) as of_node:
                report = DataSyncManager(storage, [of_node]).validate_data_integrity()
                assert report.is_consistent, report
                assert of_node.count(Memory) == traffic.written
