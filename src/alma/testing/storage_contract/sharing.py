"""What several objects and processes see of the same data."""

from __future__ import annotations

import multiprocessing
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
