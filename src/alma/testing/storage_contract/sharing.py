"""Data shared by several store objects and processes, and the vector feed."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator

import pytest

from alma.errors import UnsupportedOperation
from alma.model.learning import Heuristic
from alma.model.memory import Memory
from alma.model.query import EVERYTHING, Compare
from alma.model.vector import Vector
from alma.model.workspace import Session
from alma.storage.base import Capability, StorageBackend, StoredVector, Transaction
from alma.testing import builders as make
from alma.testing.builders import EVERYWHERE, SHOP
from alma.testing.storage_contract.values import stays

Opener = Callable[[], StorageBackend]


class SharedContract:
    """Data that several store objects have open.

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
    """Fork a process that does the work, for at most 30 seconds; returns its id."""
    child = os.fork()
    if child:
        return child
    signal.alarm(30)
    try:
        work()
        os._exit(0)
    finally:
        os._exit(1)


EAST, NORTH, UP = Vector([1, 0, 0, 0]), Vector([0, 1, 0, 0]), Vector([0, 0, 1, 0])


def news(store: StorageBackend, position: int = 0, model: str = "default") -> list[StoredVector]:
    with store.snapshot() as tx:
        return tx.vectors_after(model, position, 100)


def position(store: StorageBackend) -> int:
    with store.snapshot() as tx:
        return tx.vector_position()


class FeedCapabilityContract:
    """Every store says whether it has a feed."""

    def test_a_store_has_a_feed_or_says_that_it_has_none(self, storage: StorageBackend) -> None:
        with storage.snapshot() as tx:
            question = tx.vector_query(Heuristic, EAST, SHOP, EVERYTHING, 1)
            if Capability.VECTOR_FEED in storage.capabilities:
                assert tx.feed_name() == tx.feed_name() != ""
            else:
                with pytest.raises(UnsupportedOperation, match="feed"):
                    tx.feed_name()
            calls: list[Callable[[], object]] = [
                tx.vector_position,
                lambda: tx.vectors_after("default", 0, 1),
                lambda: tx.vectors_at(question, [1]),
                lambda: tx.positions_held("default"),
            ]
            for call in calls:
                if Capability.VECTOR_FEED in storage.capabilities:
                    assert not call()
                else:
                    with pytest.raises(UnsupportedOperation, match="feed"):
                        call()


class FeedContract:
    """An index that reads the feed sees every change; for stores with a feed."""

    def test_the_feed_has_every_vector_with_its_owner(self, storage: StorageBackend) -> None:
        assert (news(storage), position(storage)) == ([], 0)
        storage.save(make.a_heuristic(id="h", embedding=EAST))
        storage.save(make.a_memory(id="m", session_id="s", embedding=NORTH))
        storage.put_passages(Memory, {"m": [UP]})
        first, second, third = news(storage)
        assert first[1:] == ("heuristic", "h", 0, None, "shop", None, "helena", EAST.to_bytes())
        assert second[1:] == ("memory", "m", 0, "ana", "shop", "s", None, NORTH.to_bytes())
        assert third[1:] == ("memory", "m", 1, "ana", "shop", "s", None, UP.to_bytes())
        assert first.position < second.position < third.position == position(storage)
        assert news(storage, first.position) == [second, third]
        with storage.snapshot() as tx:
            assert tx.vectors_after("default", 0, 2) == [first, second]

    def test_every_model_has_a_feed_with_common_positions(self, storage: StorageBackend) -> None:
        storage.save(make.a_heuristic(id="h", embedding=EAST))
        storage.put_vectors(Heuristic, {"h": [1, 2]}, model="other")
        assert [each.record_id for each in news(storage)] == ["h"]
        (other,) = news(storage, model="other")
        assert (other.position, other.data) == (position(storage), Vector([1, 2]).to_bytes())

    def test_a_changed_vector_comes_again_and_an_unchanged_one_does_not(self, storage: StorageBackend) -> None:
        heuristic = make.a_heuristic(embedding=EAST)
        storage.save(heuristic)
        known = position(storage)
        storage.save(heuristic.replace(confidence=0.9))
        assert position(storage) == known
        storage.save(heuristic.replace(embedding=NORTH))
        assert [each.data for each in news(storage, known)] == [NORTH.to_bytes()]
        assert len(news(storage)) == 1

    def test_a_position_is_never_given_again(self, storage: StorageBackend) -> None:
        storage.save(make.a_heuristic(id="h", embedding=EAST))
        known = position(storage)
        storage.delete(Heuristic, ["h"], SHOP)
        assert (news(storage), position(storage)) == ([], known)
        storage.save(make.a_heuristic(id="h", embedding=EAST))
        assert position(storage) > known

    def test_vectors_of_a_record_that_moves_come_again(self, storage: StorageBackend) -> None:
        session = make.a_session(id="s")
        storage.save_many([session, make.a_memory(id="m", session_id="s", embedding=EAST)])
        storage.put_passages(Memory, {"m": [NORTH]})
        known = position(storage)
        storage.delete(Session, ["s"], EVERYWHERE)
        again = news(storage, known)
        assert {(each.part, each.session_id, each.data) for each in again} == {
            (0, None, EAST.to_bytes()),
            (1, None, NORTH.to_bytes()),
        }
        assert len(news(storage)) == 2

    def test_positions_return_what_is_still_stored_inside_the_scope(self, storage: StorageBackend) -> None:
        storage.save_many([make.a_heuristic(id=str(n), confidence=n / 10, embedding=[1, n, 0, 0]) for n in range(4)])
        storage.save(make.a_heuristic(id="bank", project_id="bank", confidence=0.9, embedding=EAST))
        places = {each.record_id: each.position for each in news(storage)}
        storage.delete(Heuristic, ["3"], SHOP)
        with storage.snapshot() as tx:
            question = tx.vector_query(Heuristic, EAST, SHOP, Compare("confidence", "ge", 0.2), 5)
            found = {each.record_id: each for each in tx.vectors_at(question, [*places.values(), 999])}
            other_kind = tx.vector_query(Memory, EAST, SHOP, EVERYTHING, 5)
            assert tx.vectors_at(other_kind, list(places.values())) == []
            assert sorted(tx.positions_held("default")) == [places[key] for key in ("0", "1", "2", "bank")]
        assert {key: each.data is not None for key, each in found.items()} == {
            "0": False,
            "1": False,
            "2": True,
            "bank": False,
        }
        assert found["2"] == (places["2"], "2", Vector([1, 2, 0, 0]).to_bytes())

    def test_the_feed_has_no_changes_that_were_rolled_back(self, storage: StorageBackend) -> None:
        def fail(tx: Transaction) -> None:
            tx.save(make.a_heuristic(embedding=EAST))
            raise RuntimeError

        with pytest.raises(RuntimeError), storage.transaction() as tx:
            fail(tx)
        assert (news(storage), position(storage)) == ([], 0)
