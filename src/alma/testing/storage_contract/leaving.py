"""What a store promises about records that leave for the archive, come back, or go for good."""

from __future__ import annotations

from datetime import timedelta

import pytest

from alma import clock
from alma.errors import AlreadyExistsError, StorageError
from alma.model.governance import AuditEvent
from alma.model.learning import Heuristic
from alma.model.memory import ChangeType, Memory, MemoryVersion
from alma.storage.base import StorageBackend
from alma.testing.builders import a_heuristic, a_memory
from alma.testing.storage_contract.common import EVERYWHERE, SHOP


class LeavingContract:
    """Everything about a record can be read, taken away and put back inside one transaction."""

    def test_all_vectors_of_a_record_can_be_read(self, storage: StorageBackend) -> None:
        one, two = a_memory(id="1", embedding=[1, 0, 0, 0]), a_memory(id="2")
        storage.save_many([one, two])
        storage.put_passages(Memory, {"1": [[0, 1, 0, 0], [0, 0, 1, 0]]})
        storage.put_vectors(Memory, {"1": [1, 2, 3], "2": [4, 5, 6]}, "other")
        with storage.snapshot() as tx:
            found = tx.vectors_of(Memory, ["1", "2", "nobody"])
            assert tx.vectors_of(Memory, []) == []
        own = storage.embedding_model
        assert sorted((each.record_id, each.model, each.part, list(each.vector)) for each in found) == sorted(
            [
                ("1", own, 0, [1, 0, 0, 0]),
                ("1", own, 1, [0, 1, 0, 0]),
                ("1", own, 2, [0, 0, 1, 0]),
                ("1", "other", 0, [1, 2, 3]),
                ("2", "other", 0, [4, 5, 6]),
            ]
        )

    def test_creating_refuses_an_id_that_is_in_use(self, storage: StorageBackend) -> None:
        storage.write(lambda tx: tx.create(a_heuristic(id="h", strategy="first")))
        with pytest.raises(AlreadyExistsError, match="'h'"):
            storage.write(lambda tx: tx.create(a_heuristic(id="h", strategy="second")))
        assert storage.require(Heuristic, "h", SHOP).strategy == "first"

    def test_a_record_that_comes_back_is_restored_in_its_history(self, storage: StorageBackend) -> None:
        record = a_heuristic(id="h")
        storage.save(record)
        storage.delete(Heuristic, "h", SHOP)
        storage.save(record)
        changes = [row.change_type for row in storage.history(Heuristic, "h", SHOP)]
        assert changes == [ChangeType.CREATED, ChangeType.DELETED, ChangeType.RESTORED]

    def test_an_act_is_audited_by_the_name_it_is_given(self, storage: StorageBackend) -> None:
        record = a_heuristic(id="h")
        storage.save(record)
        with storage.transaction() as tx:
            tx.delete(Heuristic, ["h"], SHOP, action="archive")
            tx.create(record, action="restore")
        actions = [event.action for event in storage.find(AuditEvent, EVERYWHERE)]
        assert actions == ["create", "archive", "restore"]

    def test_locking_gives_the_records_inside_the_scope_in_order(self, storage: StorageBackend) -> None:
        storage.save_many([a_heuristic(id="a"), a_heuristic(id="b"), a_heuristic(id="c", project_id="blog")])
        with storage.transaction() as tx:
            assert [each.id for each in tx.lock(Heuristic, ["b", "c", "a", "nobody"], SHOP)] == ["b", "a"]
            tx.hold("a name")
            tx.hold("a name")

    def test_history_is_erased_up_to_a_moment(self, storage: StorageBackend) -> None:
        storage.save(a_heuristic(id="h", strategy="first"))
        storage.save(a_heuristic(id="h", strategy="second"))
        storage.save(a_heuristic(id="other"))
        moment = clock.now()
        storage.save(a_heuristic(id="h", strategy="third"))
        assert storage.write(lambda tx: tx.erase_history(Heuristic, "h", moment - timedelta(days=1))) == 0
        assert storage.write(lambda tx: tx.erase_history(Heuristic, "h", moment)) == 2
        assert len(storage.history(Heuristic, "h", SHOP)) == len(storage.history(Heuristic, "other", SHOP)) == 1
        assert "first" not in str(storage.find(MemoryVersion, EVERYWHERE))

    def test_scrubbing_loses_nothing_that_is_stored(self, storage: StorageBackend) -> None:
        records = [a_heuristic(id=str(i), strategy=f"strategy {i}", embedding=[i, 1, 0, 0]) for i in range(5)]
        storage.save_many(records)
        storage.delete(Heuristic, ["0", "3"], SHOP)
        storage.scrub()
        left = [records[i] for i in (1, 2, 4)]
        assert storage.find(Heuristic, SHOP) == left
        assert len(storage.search_text(Heuristic, "strategy", SHOP)) == 3
        assert len(storage.search_vector(Heuristic, [1, 1, 0, 0], SHOP)) == 3
        storage.save(records[0])
        assert len(storage.search_text(Heuristic, "strategy", SHOP)) == 4

    def test_a_transaction_that_writes_cannot_be_scrubbed(self, storage: StorageBackend) -> None:
        with pytest.raises(StorageError, match="inside a transaction"), storage.transaction():
            storage.scrub()
