"""Moving: what a store must offer so that records can leave it and arrive with all that is theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from alma.errors import ConflictError, StorageError, UnsupportedOperation
from alma.model.governance import AuditEvent, Setting, default_settings
from alma.model.learning import Heuristic
from alma.model.memory import Memory, MemoryVersion
from alma.model.workspace import Session
from alma.storage.base import Capability, StorageBackend
from alma.testing import builders as make
from alma.testing.storage_contract.common import EVERYWHERE, SHOP

EAST, NORTH, UP = [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]


class MovingContract:
    """Every vector can be read, history can be brought along, and everything can be forgotten at once."""

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

    def test_erasing_forgets_everything_and_can_be_taken_back(self, storage: StorageBackend) -> None:
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
