"""A reader does not wait for a writer: it sees the last committed state, at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from alma.model.learning import Heuristic
from alma.storage.base import StorageBackend
from tests.faults.checks import prepare
from tests.faults.processes import Worker
from tests.faults.records import EVERYWHERE, SHARED, a_heuristic, content_of, revision_of, vector_of
from tests.faults.stores import opened

# A reader that waits for the writer waits for ever, as the writer waits for the reader's process.
pytestmark = pytest.mark.timeout(90)

AT_ONCE_SECONDS = 1.0

# Each way to read, as the revisions of the heuristics it finds.
READS: dict[str, Callable[[StorageBackend], list[int]]] = {
    "get": lambda store: [revision_of(store.require(Heuristic, SHARED, EVERYWHERE))],
    "find": lambda store: [revision_of(record) for record in store.find(Heuristic, EVERYWHERE)],
    "count": lambda store: list(range(store.count(Heuristic, EVERYWHERE))),
    "words": lambda store: [revision_of(hit.record) for hit in store.search_text(Heuristic, "happens", EVERYWHERE)],
    "vector": lambda store: [
        revision_of(hit.record) for hit in store.search_vector(Heuristic, vector_of(SHARED, 0), EVERYWHERE)
    ],
    "history": lambda store: [row.version_number - 1 for row in store.history(Heuristic, SHARED, EVERYWHERE)],
}
BEFORE = {name: [0] for name in READS}
AFTER = {"get": [1], "find": [0, 1], "count": [0, 1], "words": [0, 1], "vector": [0, 1], "history": [0, 1]}


@pytest.fixture
def store(address: str) -> Iterator[StorageBackend]:
    """A store with one heuristic."""
    with opened(address) as store:
        prepare(store, a_heuristic(SHARED))
        yield store


def test_a_reader_sees_the_last_committed_state_while_another_process_writes(
    address: str, store: StorageBackend
) -> None:
    with a_held_transaction(address) as writer:
        with at_once():
            assert everything_read(store) == BEFORE
        writer.go()
        assert writer.line() == "committed"
        assert everything_read(store) == AFTER


def test_a_store_can_be_opened_and_read_while_another_process_writes(address: str) -> None:
    with opened(address) as store:
        prepare(store, a_heuristic(SHARED))
    with a_held_transaction(address) as writer:
        with at_once(), opened(address) as store:
            assert everything_read(store) == BEFORE
        writer.go()
        assert writer.line() == "committed"
        with opened(address) as store:
            assert everything_read(store) == AFTER


def test_what_a_killed_writer_had_not_committed_is_not_there(address: str, store: StorageBackend) -> None:
    with a_held_transaction(address) as writer:
        writer.kill()
        assert everything_read(store) == BEFORE
        store.update(Heuristic, SHARED, content_of(SHARED, 1), EVERYWHERE)
        store.save(a_heuristic("fresh"))
        assert everything_read(store) == AFTER


def test_threads_of_one_process_read_while_another_writes(store: StorageBackend) -> None:
    with ThreadPoolExecutor(1) as other_thread, store.transaction() as tx:
        tx.update(Heuristic, SHARED, content_of(SHARED, 1), EVERYWHERE)
        tx.save(a_heuristic("fresh"))
        assert other_thread.submit(everything_read, store).result(AT_ONCE_SECONDS) == BEFORE
    assert everything_read(store) == AFTER


@contextmanager
def a_held_transaction(address: str) -> Iterator[Worker]:
    """A process that has written in a transaction, and commits it when told to."""
    with Worker("hold-a-transaction", address) as writer:
        assert writer.line() == "holding"
        yield writer


@contextmanager
def at_once() -> Iterator[None]:
    """What happens inside must not take long."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < AT_ONCE_SECONDS


def everything_read(store: StorageBackend) -> dict[str, list[int]]:
    """What each way to read finds."""
    return {name: sorted(read(store)) for name, read in READS.items()}
