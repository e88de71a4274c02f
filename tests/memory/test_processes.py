"""Two processes on one store: neither overwrites the other, and a killed one takes nothing along but counts."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from alma.bootstrap import create_embedder, open_storage
from alma.errors import ConflictError
from alma.memory.journal import Journal
from alma.model.memory import Memory
from alma.model.scope import Scope
from alma.retrieval.engine import RetrievalEngine
from alma.retrieval.writing import MemoryWriter
from alma.storage.base import StorageBackend
from alma.testing import builders as make

SHOP = Scope(project_id="shop")
ROUNDS = 4


@contextmanager
def opened(place: str) -> Iterator[Journal]:
    embedder = create_embedder("mock")
    with open_storage(place) as store:
        engine = RetrievalEngine(store, embedder)
        with Journal(store, MemoryWriter(store, embedder), engine, flush_seconds=3600) as journal:
            yield journal
        engine.close()


def count_up(place: str, name: str) -> None:
    """Add to a number that both change, so that only who read the newest may write."""
    with opened(place) as journal:
        journal.create(f"made by {name}", project_id="shop", id=name)
        done = 0
        while done < ROUNDS:
            version = journal.version("shared", SHOP)
            number = (journal.require("shared", SHOP).content_json or {})["n"]
            changes = {"content_json": {"n": number + 1}, "content": f"the number is {number + 1}"}
            try:
                journal.update("shared", changes, SHOP, expected_version=version)
            except ConflictError:
                continue
            done += 1


def test_two_processes_that_check_versions_lose_no_change(place: str, store: StorageBackend) -> None:
    store.save(make.a_memory(id="shared", content="the number is 0", content_json={"n": 0}))
    spawn = multiprocessing.get_context("spawn")
    others = [spawn.Process(target=count_up, args=(place, f"process{i}")) for i in range(2)]
    for each in others:
        each.start()
    for each in others:
        each.join()
    assert [each.exitcode for each in others] == [0, 0]
    final = store.require(Memory, "shared", SHOP)
    assert (final.content_json, final.content) == ({"n": 2 * ROUNDS}, f"the number is {2 * ROUNDS}")
    assert len(store.history(Memory, "shared", SHOP)) == 1 + 2 * ROUNDS
    with opened(place) as journal:
        found = journal.search("made by process", SHOP, mode="keyword").memories
        assert {memory.id for memory in found} == {"process0", "process1"}


def read_and_die(place: str) -> None:
    with opened(place) as journal:
        for _ in range(3):
            journal.get("shared", SHOP)
        journal.flush()
        for _ in range(5):
            journal.get("shared", SHOP)
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_process_loses_the_counts_since_its_last_flush_and_nothing_else(
    place: str, store: StorageBackend
) -> None:
    made = make.a_memory(id="shared")
    store.save(made)
    process = multiprocessing.get_context("spawn").Process(target=read_and_die, args=(place,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    counted = store.require(Memory, "shared", SHOP)
    assert counted == made.replace(access_count=3, last_accessed_at=counted.last_accessed_at)
