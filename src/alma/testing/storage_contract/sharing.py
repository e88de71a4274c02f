"""What several objects and processes see of the same data."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator

import pytest

from alma.model.learning import Heuristic
from alma.storage.base import StorageBackend
from alma.testing import builders as make
from alma.testing.storage_contract.common import SHOP
from alma.testing.storage_contract.values import stays

Opener = Callable[[], StorageBackend]


class SharedContract:
    """Promises about data that more than one store object has open.

    Besides `storage` a suite has the fixture `opener`: what opens the same data once more, here or, pickled, in another
    process.
    """

    @pytest.fixture
    def another(self, opener: Opener) -> Iterator[StorageBackend]:
        """A second object on the data of `storage`."""
        with opener() as store:
            yield store

    def test_a_commit_by_another_object_makes_another_generation(
        self, storage: StorageBackend, another: StorageBackend
    ) -> None:
        before = storage.generation()
        another.save(make.a_heuristic())
        assert storage.generation() != before

    def test_a_snapshot_has_no_later_generation_than_what_it_shows(
        self, storage: StorageBackend, another: StorageBackend
    ) -> None:
        with storage.reading() as (tx, generation):
            assert tx.find(Heuristic, SHOP) == []
            another.save(make.a_heuristic())
            assert tx.find(Heuristic, SHOP) == []
        assert storage.generation() != generation
        with storage.reading() as (tx, later):
            assert len(tx.find(Heuristic, SHOP)) == 1
        assert later != generation

    def test_reading_inside_an_older_snapshot_has_no_later_generation_than_what_that_shows(
        self, storage: StorageBackend, another: StorageBackend
    ) -> None:
        with storage.snapshot() as older:
            assert older.find(Heuristic, SHOP) == []
            another.save(make.a_heuristic())
            with storage.reading() as (tx, generation):
                assert tx.find(Heuristic, SHOP) == []
        assert storage.generation() != generation

    def test_inside_a_transaction_that_writes_reading_joins_it(self, storage: StorageBackend) -> None:
        before = storage.generation()
        with storage.transaction() as writing, storage.reading() as (tx, inside):
            assert tx is writing
            assert inside != before

    def test_reading_by_another_object_makes_no_other_generation(
        self, storage: StorageBackend, another: StorageBackend
    ) -> None:
        assert stays(storage, lambda: another.find(Heuristic, SHOP))

    def test_a_commit_by_another_process_makes_another_generation(
        self, storage: StorageBackend, opener: Opener
    ) -> None:
        before = storage.generation()
        process = multiprocessing.get_context("spawn").Process(target=_save_a_heuristic, args=(opener,))
        process.start()
        process.join()
        assert process.exitcode == 0
        assert storage.generation() != before
        assert storage.count(Heuristic, SHOP) == 1

    def test_a_forked_process_goes_on_with_the_store_beside_its_parent(self, storage: StorageBackend) -> None:
        storage.save(make.a_heuristic())
        children = [_forked(lambda: storage.save_many([make.a_heuristic() for _ in range(3)])) for _ in range(3)]
        for _ in range(5):
            storage.save(make.a_heuristic())
        assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
        assert storage.count(Heuristic, SHOP) == 1 + 3 * 3 + 5

    def test_a_commit_is_seen_with_the_generation_it_makes(
        self, storage: StorageBackend, another: StorageBackend
    ) -> None:
        for number in range(1, 20):
            before = storage.generation()
            another.save(make.a_heuristic())
            assert storage.generation() != before
            assert storage.count(Heuristic, SHOP) == number


def _save_a_heuristic(opener: Opener) -> None:
    with opener() as store:
        store.save(make.a_heuristic())


def _forked(work: Callable[[], object]) -> int:
    """A process that does the work and ends, at the latest after half a minute; returns its id."""
    child = os.fork()
    if child:
        return child
    signal.alarm(30)
    try:
        work()
        os._exit(0)
    finally:
        os._exit(1)
