"""Changes, counters, deletion and constraints."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta
from typing import Any

import pytest

from alma import clock
from alma.errors import (
    ConflictError,
    StorageError,
    UniquenessError,
    UnsupportedOperation,
    ValidationError,
)
from alma.model.governance import AuditEvent
from alma.model.learning import Heuristic
from alma.model.memory import Memory, MemoryRelationship, MemoryVersion
from alma.model.query import And, Compare, Has
from alma.model.record import Record
from alma.model.workspace import AgentState, Session, SessionMemory, User
from alma.storage.base import Reads, StorageBackend, Transaction
from alma.testing import builders as make
from alma.testing.builders import EVERYWHERE, NOON, SHOP


class ChangingContract:
    """Updates, counters and deletion."""

    def test_update_changes_only_the_named_fields(self, storage: StorageBackend) -> None:
        heuristic = make.a_heuristic(embedding=[1, 0, 0, 0])
        storage.save(heuristic)
        changed = storage.update(Heuristic, heuristic.id, {"confidence": 0.75, "strategy": "other"}, SHOP)
        assert changed == heuristic.replace(confidence=0.75, strategy="other")
        assert storage.get(Heuristic, heuristic.id, SHOP) == changed
        assert storage.search_text(Heuristic, "field", SHOP) == []

    def test_the_time_of_a_change_never_runs_backwards(self, storage: StorageBackend) -> None:
        earlier = NOON - timedelta(hours=1)
        memory = make.a_memory(id="m", created_at=earlier - timedelta(days=1), updated_at=NOON)
        storage.save(memory)
        # The clock was set back.
        changed = storage.update(Memory, "m", {"content": "changed", "updated_at": earlier}, EVERYWHERE)
        assert changed is not None
        assert changed.updated_at > NOON
        assert storage.get(Memory, "m", EVERYWHERE) == changed
        storage.save(changed.replace(content="saved", updated_at=earlier))
        stored = storage.get(Memory, "m", EVERYWHERE)
        assert stored is not None
        assert (stored.content, stored.updated_at > changed.updated_at) == ("saved", True)

    def test_changes_of_a_returned_record_do_not_reach_the_store(self, storage: StorageBackend) -> None:
        heuristic = make.a_heuristic(metadata={"seen": {"in": ["May"]}})
        storage.save(heuristic)
        heuristic.metadata["seen"]["in"].append("June")
        storage.require(Heuristic, heuristic.id, SHOP).metadata["seen"]["in"].append("July")
        assert storage.require(Heuristic, heuristic.id, SHOP).metadata == {"seen": {"in": ["May"]}}
        empty = make.a_heuristic(metadata={})
        storage.save(empty)
        empty.metadata["seen"] = "June"
        storage.require(Heuristic, empty.id, SHOP).metadata["seen"] = "July"
        assert storage.require(Heuristic, empty.id, SHOP).metadata == {}

    def test_locked_records_come_in_the_given_order_from_inside_the_scope(self, storage: StorageBackend) -> None:
        first, second, other = make.a_heuristic(), make.a_heuristic(), make.a_heuristic(project_id="office")
        storage.save_many([first, second, other])
        with storage.transaction() as tx:
            assert tx.lock(Heuristic, [second.id, "nothing", other.id, first.id], SHOP) == [second, first]
            assert tx.lock(Heuristic, [], SHOP) == []
        with storage.snapshot() as tx, pytest.raises(StorageError, match="read-only"):
            tx.lock(Heuristic, [first.id], SHOP)

    def test_a_record_that_must_be_new_is_not_written_over_another(self, storage: StorageBackend) -> None:
        heuristic = make.a_heuristic()
        storage.write(lambda tx: tx.insert(heuristic))
        with pytest.raises(ConflictError, match="exists"):
            storage.write(lambda tx: tx.insert(heuristic.replace(confidence=0.9)))
        assert storage.get(Heuristic, heuristic.id, SHOP) == heuristic
        assert len(storage.history(Heuristic, heuristic.id, SHOP)) == 1

    def test_a_record_that_is_added_unseen_is_not_written_over_another(self, storage: StorageBackend) -> None:
        heuristic = make.a_heuristic(embedding=[1, 0, 0, 0])
        storage.write(lambda tx: tx.add(heuristic))
        with pytest.raises(ConflictError):
            storage.write(lambda tx: tx.add(heuristic.replace(confidence=0.9)))
        assert storage.get(Heuristic, heuristic.id, SHOP) == heuristic
        assert len(storage.history(Heuristic, heuristic.id, SHOP)) == 1

    def test_a_record_added_after_its_deletion_continues_its_history(self, storage: StorageBackend) -> None:
        heuristic = make.a_heuristic()
        for _ in range(2):
            storage.write(lambda tx: tx.add(heuristic))
            storage.delete(Heuristic, [heuristic.id], SHOP)
        changes = [str(each.change_type) for each in storage.history(Heuristic, heuristic.id, SHOP)]
        assert changes == ["created", "deleted", "restored", "deleted"]

    def test_a_record_made_from_a_stored_one_replaces_it(self, storage: StorageBackend) -> None:
        heuristic = make.a_heuristic()
        storage.save(heuristic)
        with storage.transaction() as tx:
            (held,) = tx.lock(Heuristic, [heuristic.id], SHOP)
            tx.revise(held, held.replace(confidence=0.25))
            with pytest.raises(ValidationError, match="cannot be changed"):
                tx.revise(held, held.replace(id="another"))
        assert storage.require(Heuristic, heuristic.id, SHOP).confidence == 0.25
        assert [each.version_number for each in storage.history(Heuristic, heuristic.id, SHOP)] == [1, 2]

    def test_versions_of_the_same_moment_are_in_the_order_of_their_writes(self, storage: StorageBackend) -> None:
        with clock.replay(clock.now()):
            heuristic = make.a_heuristic(strategy="0")
            storage.save(heuristic)
            for number in range(1, 12):
                storage.update(Heuristic, heuristic.id, {"strategy": f"{number}"}, SHOP)
            versions = storage.history(Heuristic, heuristic.id, SHOP)
        assert len({each.created_at for each in versions}) == 1
        assert [each.version_number for each in versions] == [*range(1, 13)]

    def test_one_of_many_concurrent_writers_adds_a_missing_record(self, storage: StorageBackend) -> None:
        def count_up() -> None:
            def add_or_count(tx: Transaction) -> None:
                if tx.get(Heuristic, "counted", SHOP) is None:
                    tx.insert(make.a_heuristic(id="counted", occurrence_count=1))
                else:
                    tx.increment(Heuristic, "counted", {"occurrence_count": 1}, SHOP)

            storage.write(add_or_count)

        threads = [threading.Thread(target=count_up) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert storage.require(Heuristic, "counted", SHOP).occurrence_count == 5

    def test_locked_records_do_not_change_until_the_commit(self, storage: StorageBackend) -> None:
        heuristic = make.a_heuristic(occurrence_count=0)
        storage.save(heuristic)

        def take_one_of_three() -> None:
            def take(tx: Transaction) -> None:
                (current,) = tx.lock(Heuristic, [heuristic.id], SHOP)
                if current.occurrence_count < 3:
                    changes = {"occurrence_count": current.occurrence_count + 1}
                    tx.update(Heuristic, heuristic.id, changes, SHOP)

            storage.write(take)

        threads = [threading.Thread(target=take_one_of_three) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert storage.require(Heuristic, heuristic.id, SHOP).occurrence_count == 3

    @pytest.mark.parametrize(
        "changes",
        [
            {"nope": 1},
            {"confidence = 1; DROP TABLE heuristics; --": 1},
            {"confidence": 2},
            {"confidence": "high"},
            {"id": "another"},
            {"strategy": ""},
            {"created_at": datetime(2026, 1, 1)},  # noqa: DTZ001
        ],
    )
    def test_a_bad_update_changes_nothing(self, storage: StorageBackend, changes: dict[str, Any]) -> None:
        heuristic = make.a_heuristic()
        storage.save(heuristic)
        with pytest.raises(ValidationError):
            storage.update(Heuristic, heuristic.id, changes, SHOP)
        assert storage.find(Heuristic, SHOP) == [heuristic]
        assert len(storage.history(Heuristic, heuristic.id, SHOP)) == 1

    def test_reads_are_counted_without_any_other_trace(self, storage: StorageBackend) -> None:
        memory = make.a_memory(tags=["a"], embedding=[1, 0, 0, 0], last_accessed_at=NOON)
        storage.save(memory)
        events = storage.count(AuditEvent, EVERYWHERE)
        later = NOON + timedelta(hours=1)
        storage.count_reads(Memory, {memory.id: Reads(2, later), "gone": Reads(1, later)})
        storage.count_reads(Memory, {memory.id: Reads(1, NOON)})
        counted = memory.replace(access_count=3, last_accessed_at=later)
        assert storage.get(Memory, memory.id, SHOP) == counted
        assert storage.count(AuditEvent, EVERYWHERE) == events
        assert len(storage.history(Memory, memory.id, SHOP)) == 1

    def test_only_records_inside_the_scope_are_locked(self, storage: StorageBackend) -> None:
        inside, outside = make.a_memory(), make.a_memory(project_id="bank")
        storage.save_many([inside, outside])
        with storage.transaction() as tx:
            assert tx.lock(Memory, [inside.id, outside.id, "nothing"], SHOP) == [inside]

    def test_counters_of_many_threads_are_exact(self, storage: StorageBackend) -> None:
        heuristic = make.a_heuristic()
        storage.save(heuristic)

        def count() -> None:
            for _ in range(10):
                storage.increment_heuristic_occurrence(heuristic.id, success=True)

        threads = [threading.Thread(target=count) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        counted = storage.require(Heuristic, heuristic.id, SHOP)
        assert (counted.occurrence_count, counted.success_count) == (40, 40)
        assert len(storage.history(Heuristic, heuristic.id, SHOP)) == 41

    def test_only_numbers_can_be_added_to(self, storage: StorageBackend) -> None:
        heuristic = make.a_heuristic()
        storage.save(heuristic)
        refused: list[dict[str, Any]] = [{"agent": 1}, {"nope": 1}, {"occurrence_count": -1}, {"occurrence_count": "1"}]
        for counters in refused:
            with pytest.raises(ValidationError):
                storage.increment(Heuristic, heuristic.id, counters, SHOP)
        assert storage.increment(Heuristic, "nobody", {"occurrence_count": 1}, SHOP) is None

    def test_a_deleted_record_is_found_by_no_search(self, storage: StorageBackend) -> None:
        memory = make.a_memory(tags=["x"], embedding=[1, 0, 0, 0])
        storage.save(memory)
        storage.put_vectors(Memory, {memory.id: [1, 0]}, model="other")
        assert storage.delete(Memory, [memory.id, "nobody"], EVERYWHERE) == 1
        assert storage.get(Memory, memory.id, EVERYWHERE) is None
        assert storage.search_text(Memory, "build", EVERYWHERE) == []
        assert storage.search_vector(Memory, [1, 0, 0, 0], EVERYWHERE) == []
        assert storage.search_vector(Memory, [1, 0], EVERYWHERE, model="other") == []
        assert storage.find(Memory, EVERYWHERE, Has("tags", "x")) == []

    def test_a_deleted_id_can_be_used_again(self, storage: StorageBackend) -> None:
        storage.save(make.a_heuristic(id="h", strategy="before", embedding=[1, 0, 0, 0]))
        storage.delete(Heuristic, ["h"], SHOP)
        again = make.a_heuristic(id="h", strategy="after")
        storage.save(again)
        assert storage.find(Heuristic, SHOP) == [again]
        assert storage.search_vector(Heuristic, [1, 0, 0, 0], SHOP) == []
        assert [version.version_number for version in storage.history(Heuristic, "h", SHOP)] == [1, 2, 3]

    def test_records_are_deleted_by_predicate(self, storage: StorageBackend) -> None:
        storage.save_many([make.a_heuristic(confidence=number / 10) for number in range(6)])
        assert storage.delete_where(Heuristic, SHOP, Compare("confidence", "lt", 0.3)) == 3
        assert storage.count(Heuristic, SHOP) == 3

    def test_deleting_a_memory_deletes_what_depends_on_it(self, storage: StorageBackend) -> None:
        session, one, two = make.a_session(), make.a_memory(), make.a_memory()
        storage.save_many([session, one, two, make.a_relationship(one, two), make.a_place_in(session, one)])
        storage.delete(Memory, [one.id], EVERYWHERE)
        assert storage.count(MemoryRelationship, EVERYWHERE) == storage.count(SessionMemory, EVERYWHERE) == 0

    def test_deleting_a_session_keeps_what_was_learned_in_it(self, storage: StorageBackend) -> None:
        session = make.a_session()
        memory = make.a_memory(session_id=session.id, embedding=[1, 0, 0, 0])
        child = make.a_session(parent_session_id=session.id)
        state = make.an_agent_state(session_id=session.id)
        storage.save_many([session, child, memory, state, make.a_place_in(session, memory)])
        storage.delete(Session, [session.id], EVERYWHERE)
        assert storage.find(Memory, EVERYWHERE) == [memory.replace(session_id=None)]
        assert storage.find(Session, EVERYWHERE) == [child.replace(parent_session_id=None)]
        assert storage.count(SessionMemory, EVERYWHERE) == storage.count(AgentState, EVERYWHERE) == 0

    def test_history_and_audit_cannot_be_changed_or_deleted(self, storage: StorageBackend) -> None:
        storage.save(make.a_heuristic())
        kept: type[Record]
        for kept in (MemoryVersion, AuditEvent):
            [written] = storage.find(kept, EVERYWHERE)
            with pytest.raises(UnsupportedOperation):
                storage.delete_where(kept, EVERYWHERE, And())
            with pytest.raises(UnsupportedOperation):
                storage.update(kept, written.key, {"created_at": NOON}, EVERYWHERE)
            with pytest.raises(UnsupportedOperation):
                storage.increment(kept, written.key, {"id": 1}, EVERYWHERE)
            assert storage.find(kept, EVERYWHERE) == [written]

    @pytest.mark.parametrize("counters", [None, ["occurrence_count"], "occurrence_count"])
    def test_increments_must_be_a_dict_of_numbers(self, storage: StorageBackend, counters: Any) -> None:
        heuristic = make.a_heuristic()
        storage.save(heuristic)
        with pytest.raises(ValidationError, match="dict of numbers"):
            storage.increment(Heuristic, heuristic.id, counters, EVERYWHERE)


class ConstraintContract:
    """Constraints; the error of a violation names field and value."""

    @pytest.mark.parametrize(
        ("first", "second", "fields"),
        [
            (make.a_user(), make.a_user(), ("username",)),
            (make.a_user(email="a@b.c"), make.a_user(username="bob", email="a@b.c"), ("email",)),
            (make.a_project(), make.a_project(), ("user_id", "name")),
            (make.a_pattern(), make.a_pattern(), ("project_id", "pattern_type", "pattern_name")),
            (make.an_agent_state(), make.an_agent_state(), ("agent_id", "session_id")),
            (
                make.an_agent_state(session_id="s"),
                make.an_agent_state(session_id="s"),
                ("agent_id", "session_id"),
            ),
        ],
        ids=lambda value: ",".join(value) if isinstance(value, tuple) else "",
    )
    def test_unique_fields_are_enforced(
        self, storage: StorageBackend, first: Record, second: Record, fields: tuple[str, ...]
    ) -> None:
        storage.save(first)
        with pytest.raises(UniquenessError) as caught:
            storage.save(second)
        assert caught.value.fields == fields
        assert caught.value.values == tuple(getattr(second, name) for name in fields)
        with pytest.raises(UniquenessError):
            storage.save_many([second.replace(id="x"), second.replace(id="y")])
        assert storage.find(type(first), EVERYWHERE) == [first]
        storage.save(first)

    def test_missing_values_are_not_equal_unless_the_documents_say_so(self, storage: StorageBackend) -> None:
        storage.save_many([make.a_user(username="ann"), make.a_user(username="bob")])
        assert storage.count(User, EVERYWHERE) == 2

    def test_a_relation_needs_two_memories_that_exist_and_occurs_once(self, storage: StorageBackend) -> None:
        one, two = make.a_memory(), make.a_memory()
        storage.save_many([one, two, make.a_relationship(one, two)])
        with pytest.raises(UniquenessError, match="relationship_type"):
            storage.save(make.a_relationship(one, two))
        with pytest.raises(ValidationError, match="from_memory_id must be the id of a memory"):
            storage.save(make.a_relationship(make.a_memory(), two))
        storage.save(make.a_relationship(two, one))
        assert storage.count(MemoryRelationship, EVERYWHERE) == 2
