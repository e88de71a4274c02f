"""Processes that are killed while they write a vector index leave one that finds everything, and see each other."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path

from alma.model.learning import Heuristic
from alma.model.scope import Scope
from alma.storage.base import StorageBackend
from alma.vectors.base import VectorIndex
from alma.vectors.mapped.files import IndexFiles
from tests.faults.checks import Acknowledged, check_acknowledged, prepare
from tests.faults.processes import Worker, tell_to_go_on, up_to
from tests.faults.records import DIMENSIONS, EVERYWHERE, SHARED, a_heuristic, revision_of, vector_of
from tests.faults.stores import mapped_index, opened, sqlite_address, vectors_folder

ROUNDS = 4
LONGEST_LIFE_SECONDS = 0.4
EXCHANGES = 25


def test_killed_writers_of_an_index_leave_one_that_finds_everything(tmp_path: Path) -> None:
    address = sqlite_address(tmp_path / "alma.db")
    lives = up_to(LONGEST_LIFE_SECONDS, seed=5)
    acknowledged, sizes = Acknowledged(), set()
    with opened(address) as store:
        prepare(store, a_heuristic(SHARED))
        with store.snapshot() as tx:
            feed = tx.feed_name()
    for i in range(ROUNDS):
        with ExitStack() as stack:
            writers = [
                stack.enter_context(Worker("index-forever", address, f"{side}{i}")) for side in ("left", "right")
            ]
            tell_to_go_on(writers, when="ready")
            for writer in writers:
                writer.line()
            for writer in writers:
                acknowledged.add(writer.kill_after(lives()))
        sizes.add(IndexFiles(vectors_folder(address), feed, "default", DIMENSIONS).load().base.size)
        with opened(address) as store, closing(mapped_index(store, address)) as index:
            check_acknowledged(store, acknowledged)
            check_index(store, index)
    assert acknowledged.failures == []
    assert len(sizes) > 3, "the files were not written to while the processes lived"


def test_two_processes_with_an_index_each_see_what_the_other_has_just_written(tmp_path: Path) -> None:
    address = sqlite_address(tmp_path / "alma.db")
    with ExitStack() as stack:
        store = stack.enter_context(opened(address))
        index = stack.enter_context(closing(mapped_index(store, address)))
        other = stack.enter_context(Worker("search-when-told", address))
        for i in range(EXCHANGES):
            store.save(a_heuristic(f"parent{i}", "parent"))
            other.go()
            assert other.line() == f"parent{i}"
            (nearest,) = index.search(Heuristic, vector_of(f"child{i}", 0), EVERYWHERE, limit=1)
            assert nearest.record_id == f"child{i}"


def check_index(store: StorageBackend, index: VectorIndex) -> None:
    """Every record is found by its vector, alone and among all others of its agent, and nothing else is."""
    with store.snapshot() as tx:
        for record in tx.find(Heuristic, EVERYWHERE):
            vector = vector_of(record.id, revision_of(record))
            scope = Scope(agent=record.agent)
            assert index.search(Heuristic, vector, scope) == tx.nearest_ids(Heuristic, vector, scope)
            (nearest,) = index.search(Heuristic, vector, EVERYWHERE, limit=1)
            assert (nearest.record_id, round(nearest.cosine, 5)) == (record.id, 1.0)
