"""Reads are counted exactly, by every process, and leave no other trace."""

from __future__ import annotations

import multiprocessing
from datetime import timedelta
from typing import Any

import pytest

from alma.bootstrap import create_embedder, open_storage
from alma.clock import now
from alma.errors import NotFoundError, StorageError
from alma.memory.journal import Journal
from alma.memory.read_counts import AccessRecorder
from alma.model.governance import Attribution, AuditEvent
from alma.model.memory import Memory, MemoryAccess
from alma.model.scope import Scope
from alma.retrieval.engine import RetrievalEngine
from alma.retrieval.writing import MemoryWriter
from alma.storage.base import Reads, StorageBackend
from alma.testing import builders as make
from tests.support.together import together

SHOP = Scope(project_id="shop")
EVERYWHERE = Scope.everywhere()


def test_reads_and_hits_are_counted_when_they_are_flushed(journal: Journal, store: StorageBackend) -> None:
    made = journal.create("the deploy was slow", project_id="shop")
    for _ in range(3):
        journal.get(made.id, SHOP)
    journal.search("slow deploy", SHOP, mode="keyword")
    journal.batch_read(SHOP, ids=[made.id])
    journal.batch_read(SHOP)
    assert journal.require(made.id, SHOP).access_count == 0
    journal.flush()
    counted = store.require(Memory, made.id, SHOP)
    assert counted.access_count == 6
    assert counted.last_accessed_at > made.last_accessed_at
    assert counted.replace(access_count=0, last_accessed_at=made.last_accessed_at) == made


def test_counting_makes_no_version_no_audit_event_and_no_mark(journal: Journal, store: StorageBackend) -> None:
    made = journal.create("the deploy was slow", project_id="shop")
    store.register_projection("index", [Memory])
    events = store.count(AuditEvent, EVERYWHERE)
    journal.get(made.id, SHOP)
    journal.flush()
    assert store.require(Memory, made.id, SHOP).access_count == 1
    assert len(store.history(Memory, made.id, SHOP)) == 1
    assert store.count(AuditEvent, EVERYWHERE) == events
    assert store.pending("index") == []


def test_closing_writes_what_was_counted_last(store: StorageBackend) -> None:
    embedder = create_embedder("mock")
    engine = RetrievalEngine(store, embedder)
    with Journal(store, MemoryWriter(store, embedder), engine, flush_seconds=3600) as journal:
        made = journal.create("x", project_id="shop")
        journal.get(made.id, SHOP)
    journal.close()
    engine.close()
    assert store.require(Memory, made.id, SHOP).access_count == 1


def test_counts_are_written_in_the_background(store: StorageBackend) -> None:
    made = make.a_memory()
    store.save(made)
    recorder = AccessRecorder(store, flush_seconds=0.01)
    recorder.record([made.id])
    deadline = now() + timedelta(seconds=60)
    while store.require(Memory, made.id, SHOP).access_count == 0:
        assert now() < deadline
    recorder.close()


def test_threads_lose_no_count(store: StorageBackend) -> None:
    made = [make.a_memory(id=f"m{i}") for i in range(3)]
    store.save_many(made)
    recorder = AccessRecorder(store, flush_seconds=0.01)

    def read() -> None:
        for _ in range(200):
            recorder.record(["m0", "m1", "m2", "gone"], "s1")

    assert not together(read, read, read, recorder.flush)
    recorder.close()
    assert [store.require(Memory, each.id, SHOP).access_count for each in made] == [600] * 3
    rows = store.find(MemoryAccess, EVERYWHERE)
    assert [(row.memory_id, row.session_id, row.access_count) for row in sorted(rows, key=lambda r: r.memory_id)] == [
        (f"m{i}", "s1", 600) for i in range(3)
    ]


def read_in_another_process(place: str, session: str) -> None:
    with open_storage(place) as store:
        recorder = AccessRecorder(store, flush_seconds=3600)
        for _ in range(20):
            recorder.record(["m0", "m1"], session)
            recorder.flush()
        recorder.close()


def test_two_processes_count_together(place: str, store: StorageBackend) -> None:
    store.save_many([make.a_memory(id="m0"), make.a_memory(id="m1")])
    spawn = multiprocessing.get_context("spawn")
    # Both count the reads of one session too, so that both want to write the same row first.
    others = [spawn.Process(target=read_in_another_process, args=(place, "shared")) for _ in range(2)]
    for each in others:
        each.start()
    for i in range(10):
        # A change in between must not set the count back.
        store.update(Memory, "m0", {"title": f"t{i}"}, SHOP)
    for each in others:
        each.join()
    assert [each.exitcode for each in others] == [0, 0]
    assert [store.require(Memory, key, SHOP).access_count for key in ("m0", "m1")] == [40, 40]
    assert [row.access_count for row in store.find(MemoryAccess, EVERYWHERE)] == [40, 40]


class Unwilling:
    """A store that refuses the first write."""

    def __init__(self, store: StorageBackend) -> None:
        self._store = store
        self.refusals = 1

    def write(self, operation: Any) -> Any:
        if self.refusals:
            self.refusals -= 1
            raise StorageError("the disk is on holiday")
        return self._store.write(operation)


def test_what_could_not_be_written_is_written_later(store: StorageBackend) -> None:
    store.save(make.a_memory(id="m0"))
    recorder = AccessRecorder(Unwilling(store), flush_seconds=3600)  # type: ignore[arg-type]
    recorder.record(["m0", "m0"])
    with pytest.raises(StorageError, match="holiday"):
        recorder.flush()
    recorder.record(["m0"])
    recorder.close()
    assert store.require(Memory, "m0", SHOP).access_count == 3


def test_a_deleted_memory_takes_its_counts_along(journal: Journal, store: StorageBackend) -> None:
    made = journal.create("x", project_id="shop")
    journal.get(made.id, SHOP, by=Attribution(session_id="s1"))
    journal.flush()
    assert store.count(MemoryAccess, EVERYWHERE) == 1
    journal.delete(made.id, SHOP, hard=True)
    journal.record_reads([made.id])
    journal.flush()
    assert store.count(MemoryAccess, EVERYWHERE) == 0


def test_whether_a_memory_helped_is_counted_by_session(journal: Journal, store: StorageBackend) -> None:
    made = journal.create("x", project_id="shop")
    by = Attribution(session_id="s1")
    journal.mark_helpful(made.id, SHOP, by=by)
    journal.mark_helpful(made.id, SHOP, by=by, helpful=False)
    (row,) = store.find(MemoryAccess, EVERYWHERE)
    assert (row.session_id, row.helpful_count, row.unhelpful_count, row.access_count) == ("s1", 1, 1, 0)
    with pytest.raises(NotFoundError):
        journal.mark_helpful("nothing", SHOP)


def test_a_store_without_a_shortcut_counts_the_same(tmp_path: Any) -> None:
    with open_storage(f"file://{tmp_path / 'files'}") as files:
        files.save(make.a_memory(id="m0", tags=["a"]))
        moment = now() + timedelta(days=1)
        files.count_reads(Memory, {"m0": Reads(2, moment), "gone": Reads(1, moment)})
        files.count_reads(Memory, {"m0": Reads(1, moment - timedelta(hours=1))})
        counted = files.require(Memory, "m0", SHOP)
        assert (counted.access_count, counted.last_accessed_at, counted.tags) == (3, moment, ("a",))
        assert len(files.history(Memory, "m0", SHOP)) == 1
