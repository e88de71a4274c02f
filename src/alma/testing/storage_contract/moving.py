"""Export and import: records with their vectors, passages and history."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from alma import clock
from alma.errors import AlreadyExistsError, ConflictError, StorageError, UnsupportedOperation
from alma.model.governance import AuditEvent, Setting, default_settings
from alma.model.learning import Heuristic
from alma.model.memory import ChangeType, Memory, MemoryVersion
from alma.model.workspace import Session
from alma.storage.base import Capability, StorageBackend
from alma.testing import builders as make
from alma.testing.builders import EVERYWHERE, SHOP, a_heuristic, a_memory


class LeavingContract:
    """One transaction can read, delete and restore all data of a record."""

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


EAST, NORTH, UP = [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]


class MovingContract:
    """Read every vector, import history, and delete everything at once."""

    def test_the_vectors_of_every_model_and_passage_are_given(self, storage: StorageBackend) -> None:
        storage.save_many([make.a_heuristic(id="h", embedding=EAST), make.a_heuristic(id="other", embedding=UP)])
        storage.put_passages(Heuristic, {"h": [NORTH, UP]})
        storage.put_vectors(Heuristic, {"h": [1, 2]}, "small")
        found = storage.vectors_of(Heuristic, ["h", "missing"])
        own = storage.embedding_model
        assert [(part.record_id, part.model, part.part, list(part.vector)) for part in found] == sorted(
            [("h", own, 0, EAST), ("h", own, 1, NORTH), ("h", own, 2, UP), ("h", "small", 0, [1.0, 2.0])]
        )
        assert storage.models() == {own: 4, "small": 2}
        with pytest.raises(UnsupportedOperation):
            storage.vectors_of(Session, ["s"])

    def test_a_record_can_bring_its_history(self, storage: StorageBackend) -> None:
        memory = make.a_memory(id="m", tags=["a"])
        storage.save(memory)
        storage.update(Memory, "m", {"content": "changed"}, SHOP)
        past = storage.find(MemoryVersion, EVERYWHERE)
        changed = storage.require(Memory, "m", SHOP)
        storage.write(lambda tx: tx.erase())
        storage.write(lambda tx: tx.adopt([changed], past))
        assert storage.require(Memory, "m", SHOP) == changed
        told = storage.history(Memory, "m", SHOP)
        assert [(row.version_number, row.content, row.created_at) for row in told] == [
            (1, memory.content, past[0].created_at),
            (2, "changed", past[1].created_at),
        ]
        storage.update(Memory, "m", {"content": "and again"}, SHOP)
        assert [row.version_number for row in storage.history(Memory, "m", SHOP)] == [1, 2, 3]
        assert [hit.record.id for hit in storage.search_text(Memory, "again", SHOP)] == ["m"]
        with pytest.raises(ConflictError):
            storage.write(lambda tx: tx.adopt([changed]))

    def test_erasing_deletes_everything_and_can_be_rolled_back(self, storage: StorageBackend) -> None:
        storage.save_many([make.a_memory(id="m", tags=["a"]), make.a_heuristic(id="h", embedding=EAST)])
        with pytest.raises(StorageError, match="changed my mind"), storage.transaction() as tx:
            tx.erase()
            raise StorageError("changed my mind")
        assert storage.count(Memory, EVERYWHERE) == 1
        assert storage.search_text(Memory, "build host", SHOP)
        storage.write(lambda tx: tx.erase())
        for cls in (Memory, Heuristic, MemoryVersion, AuditEvent):
            assert storage.count(cls, EVERYWHERE) == 0
        assert {setting.key for setting in storage.find(Setting, EVERYWHERE)} == {
            each.key for each in default_settings()
        }
        assert storage.models() == {}
        assert not storage.search_text(Memory, "build host", EVERYWHERE)
        storage.save_many([make.a_memory(id="m", tags=["a"]), make.a_heuristic(id="h", embedding=NORTH)])
        assert [hit.record.id for hit in storage.search_vector(Heuristic, NORTH, SHOP)] == ["h"]
        assert [hit.record.id for hit in storage.search_text(Memory, "build host", SHOP)] == ["m"]

    def test_a_claimed_model_is_the_stores_own_although_others_came_first(self, storage: StorageBackend) -> None:
        storage.save(make.a_memory(id="m"))
        storage.write(lambda tx: tx.claim_model())
        storage.put_vectors(Memory, {"m": [1, 2]}, "theirs")
        storage.save(make.a_memory(id="n", embedding=EAST))
        assert [hit.record.id for hit in storage.search_vector(Memory, EAST, SHOP)] == ["n"]

    def test_a_store_copies_itself_or_says_that_it_cannot(self, storage: StorageBackend, tmp_path: Path) -> None:
        storage.save(make.a_memory(id="m"))
        if Capability.COPY not in storage.capabilities:
            for call in (storage.copy_to, storage.copy_from):
                with pytest.raises(UnsupportedOperation):
                    call(tmp_path / "copy")
            return
        storage.copy_to(tmp_path / "copy")
        storage.save(make.a_memory(id="n"))
        storage.copy_from(tmp_path / "copy")
        assert [memory.id for memory in storage.find(Memory, EVERYWHERE)] == ["m"]
