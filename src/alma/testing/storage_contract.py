"""The storage contract as tests: a store keeps its promise when a subclass with a `storage` fixture passes.

class TestMyStore(StorageContract):
    @pytest.fixture
    def storage(self, tmp_path):
        with MyStore(tmp_path, embedding_dim=DIMS) as store:
            yield store
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from alma import clock
from alma.errors import (
    ConflictError,
    NotFoundError,
    ScopeViolationError,
    StorageError,
    UniquenessError,
    UnsupportedOperation,
    ValidationError,
)
from alma.model.governance import Attribution, AuditEvent, Setting, default_settings
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome
from alma.model.memory import ChangeType, Memory, MemoryRelationship, MemoryVersion
from alma.model.query import And, Compare, Cursor, Has, In, Missing, Or, Order
from alma.model.record import Record
from alma.model.scope import Scope
from alma.model.workspace import AgentState, Session, SessionMemory, User
from alma.storage.base import StorageBackend
from alma.testing import builders as make

DIMS = 4
EVERYWHERE = Scope.everywhere()
SHOP = Scope(project_id="shop")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class _Oops(Exception):
    """Thrown by tests in the middle of a transaction."""


class SavingContract:
    """What is saved is what is read."""

    def test_a_saved_record_is_read_back_as_it_was(self, storage: StorageBackend) -> None:
        heuristic = make.a_heuristic(embedding=[1, 2, 3, 4], metadata={"a": [1, 2.5, None, {"b": "ü"}]})
        assert storage.save(heuristic) == heuristic.id
        assert storage.get(Heuristic, heuristic.id, SHOP) == heuristic

    def test_every_kind_with_all_of_its_parts_comes_back(self, storage: StorageBackend) -> None:
        memory, other = make.a_memory(tags=["b", "a"], priority=9, embedding=[0, 0, 0, 1]), make.a_memory()
        session = make.a_session()
        records: list[Record] = [
            make.an_outcome(success=True, duration_ms=3),
            make.a_preference(embedding=[1, 0, 0, 0]),
            make.some_knowledge(),
            make.an_anti_pattern(why_bad="slow"),
            memory,
            other,
            session,
            make.a_relationship(memory, other, strength=0.25),
            make.a_place_in(session, memory, position_in_session=1, working_memory=True),
            make.a_user(email="ana@example.org"),
            make.a_project(),
            make.a_pattern(memory_ids=[memory.id]),
            make.a_handoff(next_steps=["test the search"]),
            make.a_work_item(blocked_by=["x"]),
            make.an_agent_state(),
        ]
        storage.save_many(records)
        for record in records:
            assert storage.get(type(record), record.key, EVERYWHERE) == record

    def test_a_batch_of_mixed_kinds_is_one_transaction(self, storage: StorageBackend) -> None:
        memory = make.a_memory()
        nowhere = MemoryRelationship(from_memory_id=memory.id, to_memory_id="nobody", relationship_type="references")
        with pytest.raises(ValidationError, match="to_memory_id"):
            storage.save_many([memory, nowhere])
        assert storage.count(Memory, EVERYWHERE) == 0

    def test_saving_again_replaces_everything_the_record_says(self, storage: StorageBackend) -> None:
        memory = make.a_memory(tags=["old", "kept"], summary="then", embedding=[1, 0, 0, 0])
        storage.save(memory)
        changed = memory.replace(tags=["kept", "new"], summary=None, content="now", embedding=None)
        storage.save(changed)
        assert storage.get(Memory, memory.id, EVERYWHERE) == changed
        assert storage.find(Memory, EVERYWHERE, Has("tags", "old")) == []
        assert storage.search_vector(Memory, [1, 0, 0, 0], EVERYWHERE) == []
        assert storage.search_text(Memory, "then", EVERYWHERE) == []

    def test_the_last_of_several_records_with_one_id_wins(self, storage: StorageBackend) -> None:
        storage.save_many([make.a_heuristic(id="h", strategy="first"), make.a_heuristic(id="h", strategy="last")])
        assert storage.require(Heuristic, "h", EVERYWHERE).strategy == "last"

    def test_saving_nothing_is_fine(self, storage: StorageBackend) -> None:
        assert storage.save_many([]) == []

    def test_an_id_of_another_project_is_not_overwritten(self, storage: StorageBackend) -> None:
        storage.save(make.a_heuristic(id="h", project_id="shop"))
        with pytest.raises(ScopeViolationError, match="project_id"):
            storage.save(make.a_heuristic(id="h", project_id="bank"))
        assert storage.require(Heuristic, "h", EVERYWHERE).project_id == "shop"

    def test_only_records_can_be_saved(self, storage: StorageBackend) -> None:
        with pytest.raises(ValidationError, match="records"):
            storage.save({"id": "x"})  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        "text",
        [
            "'; DROP TABLE heuristics; --",
            '" OR 1=1 --',
            "%s %(p0)s :p0 ? {}",
            "line\nbreak\ttab\x01\x7f",
            "emoji 😀 combining e\u0301 rtl \u202e bom \ufeff",
            "日本語 العربية हिन्दी",
        ],
    )
    def test_any_legal_text_is_stored_faithfully_in_every_field(self, storage: StorageBackend, text: str) -> None:
        heuristic = make.a_heuristic(
            id=text, agent=text, project_id=text, condition=text, strategy=text, metadata={text: [text]}
        )
        memory = make.a_memory(title=text, tags=[text], category=text, external_id=text)
        storage.save_many([heuristic, memory])
        assert storage.find(Heuristic, Scope(project_id=text, agent=text)) == [heuristic]
        assert storage.find(Memory, EVERYWHERE, And(Has("tags", text), Compare("category", "eq", text))) == [memory]
        storage.search_text(Memory, text, EVERYWHERE)

    def test_a_megabyte_of_text_is_stored_and_found(self, storage: StorageBackend) -> None:
        content = "needle " + "".join(f"w{number} " for number in range(150_000))
        memory = make.a_memory(content=content[: 1 << 20])
        storage.save(memory)
        assert storage.get(Memory, memory.id, EVERYWHERE) == memory
        assert [hit.record.id for hit in storage.search_text(Memory, "needle", EVERYWHERE)] == [memory.id]

    def test_the_documented_settings_are_there(self, storage: StorageBackend) -> None:
        stored = {setting.key: setting.typed_value for setting in storage.find(Setting, EVERYWHERE)}
        assert stored == {setting.key: setting.typed_value for setting in default_settings()}


class ScopeContract:
    """A scope is mandatory and nothing crosses it."""

    def test_nothing_outside_the_scope_is_seen(self, storage: StorageBackend) -> None:
        mine = make.a_heuristic(embedding=[1, 0, 0, 0])
        theirs = make.a_heuristic(project_id="bank", embedding=[1, 0, 0, 0])
        storage.save_many([mine, theirs])
        assert storage.find(Heuristic, SHOP) == [mine]
        assert storage.count(Heuristic, SHOP) == 1
        assert storage.get(Heuristic, theirs.id, SHOP) is None
        assert [hit.record for hit in storage.search_text(Heuristic, "form", SHOP)] == [mine]
        assert [hit.record for hit in storage.search_vector(Heuristic, [1, 0, 0, 0], SHOP)] == [mine]
        assert storage.update(Heuristic, theirs.id, {"confidence": 1.0}, SHOP) is None
        assert storage.delete(Heuristic, [theirs.id], SHOP) == 0
        assert storage.history(Heuristic, theirs.id, SHOP) == []

    def test_a_small_agent_beside_a_large_one_finds_all_of_its_own(self, storage: StorageBackend) -> None:
        crowd = [make.a_heuristic(agent="big", embedding=[1, 0, 0, number / 1000]) for number in range(60)]
        own = [make.a_heuristic(agent="small", embedding=[0, 1, number, 0]) for number in range(3)]
        storage.save_many([*crowd, *own])
        hits = storage.search_vector(Heuristic, [1, 0, 0, 0], Scope(project_id="shop", agent="small"), limit=5)
        assert {hit.record.id for hit in hits} == {heuristic.id for heuristic in own}
        hits = storage.search_text(Heuristic, "form", Scope(project_id="shop", agent="small"), limit=5)
        assert {hit.record.id for hit in hits} == {heuristic.id for heuristic in own}

    def test_several_agents_can_be_one_scope(self, storage: StorageBackend) -> None:
        storage.save_many([make.a_heuristic(agent=agent) for agent in ("ann", "bob", "eve")])
        found = storage.find(Heuristic, Scope(agent=("ann", "bob")))
        assert {heuristic.agent for heuristic in found} == {"ann", "bob"}
        assert storage.find(Heuristic, Scope(project_id="shop", agent=())) == []

    def test_a_call_without_a_scope_fails(self, storage: StorageBackend) -> None:
        with pytest.raises(ScopeViolationError, match="everywhere"):
            storage.find(Heuristic, None)  # type: ignore[arg-type]

    def test_a_kind_that_lacks_the_scope_fails_closed(self, storage: StorageBackend) -> None:
        storage.save(make.a_user())
        with pytest.raises(ScopeViolationError, match="project_id"):
            storage.find(User, SHOP)


class FindingContract:
    """Predicates, orders, limits and pages."""

    def test_predicates_combine(self, storage: StorageBackend) -> None:
        low, high = make.a_heuristic(confidence=0.2), make.a_heuristic(confidence=0.85, last_validated=NOON)
        storage.save_many([low, high])
        assert storage.find(Heuristic, SHOP, In("confidence", [0.85])) == [high]
        assert storage.find(Heuristic, SHOP, Compare("confidence", "lt", 0.5)) == [low]
        assert storage.find(Heuristic, SHOP, Missing("last_validated")) == [low]
        both = Or(Compare("confidence", "eq", 0.2), And(Compare("confidence", "ge", 0.85)))
        assert storage.count(Heuristic, SHOP, both) == 2
        assert storage.find(Heuristic, SHOP, Or()) == []
        assert storage.find(Heuristic, SHOP, In("id", [])) == []

    def test_instants_compare_as_instants(self, storage: StorageBackend) -> None:
        from datetime import timezone

        outcome = make.an_outcome(timestamp=NOON)
        storage.save(outcome)
        elsewhere = NOON.astimezone(timezone(timedelta(hours=9)))
        assert storage.find(Outcome, SHOP, Compare("timestamp", "eq", elsewhere)) == [outcome]
        assert storage.find(Outcome, SHOP, Compare("timestamp", "gt", NOON - timedelta(microseconds=1))) == [outcome]
        assert storage.find(Outcome, SHOP, Compare("timestamp", "lt", NOON)) == []

    def test_records_come_in_order_with_missing_values_last(self, storage: StorageBackend) -> None:
        early, late = make.a_heuristic(last_validated=NOON), make.a_heuristic(last_validated=NOON + timedelta(days=1))
        never = make.a_heuristic()
        storage.save_many([never, late, early])
        assert storage.find(Heuristic, SHOP, order=[Order("last_validated")]) == [early, late, never]
        assert storage.find(Heuristic, SHOP, order=[Order("last_validated", "desc")]) == [late, early, never]

    def test_ids_break_ties_byte_by_byte(self, storage: StorageBackend) -> None:
        ids = ["b", "B", "a", "ä", "Z", "_", "10", "9", "日"]
        storage.save_many([make.a_heuristic(id=each) for each in ids])
        found = storage.find(Heuristic, SHOP, order=[Order("confidence")])
        assert [heuristic.id for heuristic in found] == sorted(ids, key=str.encode)

    def test_pages_joined_by_cursors_are_the_whole(self, storage: StorageBackend) -> None:
        heuristics = [
            make.a_heuristic(confidence=number % 3 / 2, last_validated=None if number % 4 else NOON)
            for number in range(23)
        ]
        storage.save_many(heuristics)
        order = [Order("last_validated", "desc"), Order("confidence", "desc")]
        whole = storage.find(Heuristic, SHOP, order=order)
        assert list(storage.iterate(Heuristic, SHOP, order=order, page_size=5)) == whole
        third = storage.find(Heuristic, SHOP, order=order, limit=4, after=Cursor.after(whole[7], order))
        assert third == whole[8:12]

    def test_unknown_names_and_wrong_values_are_refused(self, storage: StorageBackend) -> None:
        refused: list[dict[str, Any]] = [
            {"where": Compare("nope", "eq", 1)},
            {"where": Compare("confidence", "eq", "high")},
            {"where": Compare("agent", "lt", "x")},
            {"where": Compare("confidence", "like", 1.0)},  # type: ignore[arg-type]
            {"where": Compare("confidence", "eq", None)},
            {"where": Compare("last_validated", "gt", datetime(2026, 1, 1))},  # noqa: DTZ001
            {"where": Has("agent", "x")},
            {"where": Compare("metadata", "eq", {})},
            {"where": "confidence > 0"},
            {"order": [Order("nope")]},
            {"order": [Order("metadata")]},
            {"order": [Order("agent", "up")]},  # type: ignore[arg-type]
            {"limit": -1},
            {"after": Cursor((1,), "x")},
        ]
        for arguments in refused:
            with pytest.raises(ValidationError):
                storage.find(Heuristic, SHOP, **arguments)

    def test_records_are_fetched_in_the_order_asked_for(self, storage: StorageBackend) -> None:
        one, two = make.a_heuristic(), make.a_heuristic()
        storage.save_many([one, two])
        assert storage.get_many(Heuristic, [two.id, "nobody", one.id, two.id], SHOP) == [two, one]
        with pytest.raises(NotFoundError, match="nobody"):
            storage.require(Heuristic, "nobody", SHOP)

    def test_thousands_of_ids_are_one_question(self, storage: StorageBackend) -> None:
        heuristic = make.a_heuristic()
        storage.save(heuristic)
        ids = [*(f"absent {number}" for number in range(40_000)), heuristic.id]
        assert storage.get_many(Heuristic, ids, SHOP) == [heuristic]


class SearchContract:
    """Full text and vectors, inside the scope."""

    def test_words_are_found_without_case_and_accents_of_width(self, storage: StorageBackend) -> None:
        memory = make.a_memory(title="Ｌｏｇｉｎ", content="the OAuth token Straße", summary="日本語テスト")
        storage.save(memory)
        for query in ("LOGIN", "oauth", "STRASSE", "本語", "token nowhere"):
            assert [hit.record for hit in storage.search_text(Memory, query, EVERYWHERE)] == [memory]
        assert storage.search_text(Memory, "nowhere", EVERYWHERE) == []

    def test_the_better_match_comes_first(self, storage: StorageBackend) -> None:
        weak = make.a_memory(content="the login page and much else that has nothing to do with it at all")
        strong = make.a_memory(content="login form validation")
        storage.save_many([weak, strong])
        hits = storage.search_text(Memory, "login form validation", EVERYWHERE)
        assert [hit.record for hit in hits] == [strong, weak]
        assert hits[0].score > hits[1].score

    @pytest.mark.parametrize("query", ["", "   ", "!?", '"', "AND OR NOT", "a*", "NEAR(a b)", "-x", "col:x", "(", "'"])
    def test_no_query_breaks_the_search(self, storage: StorageBackend, query: str) -> None:
        storage.save(make.a_memory())
        storage.search_text(Memory, query, EVERYWHERE)

    def test_text_is_searched_only_where_there_is_some(self, storage: StorageBackend) -> None:
        with pytest.raises(UnsupportedOperation):
            storage.search_text(Session, "x", EVERYWHERE)
        with pytest.raises(ValidationError):
            storage.search_text(Memory, 7, EVERYWHERE)  # type: ignore[arg-type]

    def test_the_nearest_by_cosine_come_first_whatever_their_length(self, storage: StorageBackend) -> None:
        vectors = {"same": [2, 0, 0, 0], "near": [30, 3, 0, 0], "right": [0, 5, 0, 0], "opposite": [-0.1, 0, 0, 0]}
        storage.save_many([make.a_heuristic(id=key, embedding=vector) for key, vector in vectors.items()])
        hits = storage.search_vector(Heuristic, [0.001, 0, 0, 0], SHOP, limit=4)
        assert [hit.record.id for hit in hits] == ["same", "near", "right", "opposite"]
        assert [hit.score for hit in hits] == pytest.approx([1, 0.99504, 0, -1], abs=1e-5)

    def test_zero_and_huge_vectors_are_compared(self, storage: StorageBackend) -> None:
        vectors = {"zero": [0, 0, 0, 0], "huge": [3e38, 0, 0, 0], "tiny": [-1e-38, 0, 0, 0]}
        storage.save_many([make.a_heuristic(id=key, embedding=vector) for key, vector in vectors.items()])
        hits = storage.search_vector(Heuristic, [1e30, 0, 0, 0], SHOP)
        assert [hit.record.id for hit in hits] == ["huge", "zero", "tiny"]
        assert [hit.score for hit in hits] == pytest.approx([1, 0, -1], abs=1e-5)

    def test_a_search_can_be_narrowed(self, storage: StorageBackend) -> None:
        sure = make.a_heuristic(confidence=0.9, embedding=[0, 1, 0, 0])
        unsure = make.a_heuristic(confidence=0.1, embedding=[1, 0, 0, 0])
        storage.save_many([sure, unsure])
        trusted = Compare("confidence", "ge", 0.5)
        assert [h.record for h in storage.search_vector(Heuristic, [1, 0, 0, 0], SHOP, trusted)] == [sure]
        assert [h.record for h in storage.search_text(Heuristic, "form", SHOP, trusted)] == [sure]
        assert storage.search_vector(Heuristic, [1, 0, 0, 0], SHOP, limit=0) == []

    @pytest.mark.parametrize("vector", [[1, 2, 3], [1, 2, 3, 4, 5]])
    def test_a_vector_of_the_wrong_length_is_refused_before_anything_is_written(
        self, storage: StorageBackend, vector: list[float]
    ) -> None:
        good, bad = make.a_heuristic(embedding=[1, 0, 0, 0]), make.a_heuristic(embedding=vector)
        with pytest.raises(ValidationError, match="4 dimensions"):
            storage.save_many([good, bad])
        with pytest.raises(ValidationError, match="4 dimensions"):
            storage.search_vector(Heuristic, vector, SHOP)
        assert storage.count(Heuristic, EVERYWHERE) == storage.count(AuditEvent, EVERYWHERE) == 0

    @pytest.mark.parametrize("vector", ["abcd", [1, 2, "x", 4], [float("nan")] * 4, [float("inf"), 0, 0, 0], [], None])
    def test_what_is_no_vector_is_refused(self, storage: StorageBackend, vector: Any) -> None:
        with pytest.raises(ValidationError):
            storage.search_vector(Heuristic, vector, SHOP)

    def test_vectors_of_two_models_never_meet(self, storage: StorageBackend) -> None:
        heuristic = make.a_heuristic(embedding=[1, 0, 0, 0])
        storage.save(heuristic)
        storage.put_vectors(Heuristic, {heuristic.id: [0, 0, 1]}, model="other")
        assert storage.require(Heuristic, heuristic.id, SHOP) == heuristic
        hits = storage.search_vector(Heuristic, [0, 0, 2], SHOP, model="other")
        assert [(hit.record, round(hit.score, 5)) for hit in hits] == [(heuristic, 1.0)]
        with pytest.raises(ValidationError, match="3 dimensions"):
            storage.put_vectors(Heuristic, {heuristic.id: [1, 2]}, model="other")
        with pytest.raises(NotFoundError, match="nobody"):
            storage.put_vectors(Heuristic, {"nobody": [0, 0, 1]}, model="other")


class ChangingContract:
    """Updates, counters and deletion."""

    def test_named_fields_are_changed_and_the_rest_stays(self, storage: StorageBackend) -> None:
        heuristic = make.a_heuristic(embedding=[1, 0, 0, 0])
        storage.save(heuristic)
        changed = storage.update(Heuristic, heuristic.id, {"confidence": 0.75, "strategy": "other"}, SHOP)
        assert changed == heuristic.replace(confidence=0.75, strategy="other")
        assert storage.get(Heuristic, heuristic.id, SHOP) == changed
        assert storage.search_text(Heuristic, "field", SHOP) == []

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
        for counters in ({"agent": 1}, {"nope": 1}, {"occurrence_count": -1}):
            with pytest.raises(ValidationError):
                storage.increment(Heuristic, heuristic.id, counters, SHOP)
        assert storage.increment(Heuristic, "nobody", {"occurrence_count": 1}, SHOP) is None

    def test_what_is_deleted_is_gone_from_every_search(self, storage: StorageBackend) -> None:
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

    def test_what_hangs_on_a_memory_goes_with_it(self, storage: StorageBackend) -> None:
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

    def test_history_and_audit_cannot_be_deleted(self, storage: StorageBackend) -> None:
        storage.save(make.a_heuristic())
        for kept in (MemoryVersion, AuditEvent):
            with pytest.raises(UnsupportedOperation):
                storage.delete_where(kept, EVERYWHERE, And())


class ConstraintContract:
    """The documents' constraints, each violation naming field and value."""

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
    def test_what_must_be_unique_is(
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


class TransactionContract:
    """All or nothing, and nothing in between."""

    def test_an_error_undoes_everything(self, storage: StorageBackend) -> None:
        storage.register_projection("index", [Heuristic])
        kept = make.a_heuristic(embedding=[1, 0, 0, 0])
        storage.save(kept)
        with pytest.raises(_Oops), storage.transaction() as tx:
            tx.save(make.a_heuristic(embedding=[1, 0, 0, 0]), make.a_memory(tags=["t"]))
            tx.delete(Heuristic, [kept.id], SHOP)
            raise _Oops
        assert storage.find(Heuristic, EVERYWHERE) == [kept]
        assert [hit.record for hit in storage.search_vector(Heuristic, [1, 0, 0, 0], EVERYWHERE)] == [kept]
        assert [hit.record for hit in storage.search_text(Heuristic, "form", EVERYWHERE)] == [kept]
        assert storage.count(AuditEvent, EVERYWHERE) == 1
        assert storage.count(MemoryVersion, EVERYWHERE) == 1
        assert [mark.record_id for mark in storage.pending("index")] == [kept.id]
        assert storage.count(Memory, EVERYWHERE) == 0

    def test_a_transaction_sees_its_own_writes(self, storage: StorageBackend) -> None:
        with storage.transaction() as tx:
            tx.save(make.a_heuristic(id="h", embedding=[1, 0, 0, 0]))
            assert tx.require(Heuristic, "h", SHOP)
            assert tx.search_text(Heuristic, "form", SHOP)
            assert tx.search_vector(Heuristic, [1, 0, 0, 0], SHOP)
            assert storage.count(Heuristic, SHOP) == 1

    def test_calls_on_the_store_join_the_open_transaction(self, storage: StorageBackend) -> None:
        with pytest.raises(_Oops), storage.transaction():
            storage.save(make.a_heuristic())
            with storage.transaction():
                storage.save(make.a_heuristic())
            raise _Oops
        assert storage.count(Heuristic, EVERYWHERE) == 0

    def test_other_threads_do_not_see_what_is_not_committed(self, storage: StorageBackend) -> None:
        seen: list[int] = []
        with storage.transaction() as tx:
            tx.save(make.a_heuristic())
            reader = threading.Thread(target=lambda: seen.append(storage.count(Heuristic, EVERYWHERE)))
            reader.start()
            reader.join(timeout=20)
        assert seen == [0]
        assert storage.count(Heuristic, EVERYWHERE) == 1

    def test_a_snapshot_stays_the_same_and_refuses_writes(self, storage: StorageBackend) -> None:
        storage.save(make.a_heuristic())
        with storage.snapshot() as tx:
            assert tx.count(Heuristic, EVERYWHERE) == 1
            writer = threading.Thread(target=lambda: storage.save(make.a_heuristic()))
            writer.start()
            writer.join(timeout=20)
            assert tx.count(Heuristic, EVERYWHERE) == 1
            with pytest.raises(StorageError, match="read-only"):
                tx.save(make.a_heuristic())
        assert storage.count(Heuristic, EVERYWHERE) == 2

    def test_a_write_that_failed_cannot_be_committed_by_swallowing_its_error(self, storage: StorageBackend) -> None:
        storage.save(make.a_heuristic(id="h"))
        with pytest.raises(StorageError, match="rolled back"), storage.transaction() as tx:
            tx.save(make.a_heuristic())
            with pytest.raises(ConflictError), tx._writing():
                tx._insert(Heuristic.spec, [make.a_heuristic(id="h")])
        assert storage.count(Heuristic, EVERYWHERE) == 1

    def test_a_closed_store_says_so(self, storage: StorageBackend) -> None:
        storage.close()
        storage.close()
        with pytest.raises(StorageError):
            storage.count(Heuristic, EVERYWHERE)


class HistoryContract:
    """Every change is a version, and the past can be read."""

    def test_every_change_is_a_version_with_author_and_reason(self, storage: StorageBackend) -> None:
        memory = make.a_memory(title="one")
        storage.save(memory, by=Attribution(user_id="ana", reason="noticed"))
        storage.update(Memory, memory.id, {"title": "two"}, EVERYWHERE, by=Attribution(agent="bot"))
        storage.update(Memory, memory.id, {"is_archived": True}, EVERYWHERE)
        storage.update(Memory, memory.id, {"is_archived": False}, EVERYWHERE)
        storage.delete(Memory, [memory.id], EVERYWHERE)
        versions = storage.history(Memory, memory.id, EVERYWHERE)
        assert [version.version_number for version in versions] == [1, 2, 3, 4, 5]
        assert [version.change_type for version in versions] == list(
            map(ChangeType, ("created", "updated", "archived", "restored", "deleted"))
        )
        assert [version.title for version in versions] == ["one", "two", "two", "two", None]
        assert versions[1].diff_json == {"title": "one"}
        assert (versions[0].created_by, versions[0].change_reason) == ("ana", "noticed")
        assert versions[1].created_by == "bot"

    def test_the_newest_version_has_its_content(self, storage: StorageBackend) -> None:
        memory = make.a_memory(title="only", tags=["t"])
        storage.save(memory)
        (version,) = storage.history(Memory, memory.id, EVERYWHERE)
        assert (version.title, version.content) == ("only", memory.content)
        assert version.record_json is not None
        assert version.record_json["tags"] == ["t"]

    def test_the_past_is_read_as_it_was(self, storage: StorageBackend) -> None:
        before = clock.now()
        heuristic = make.a_heuristic(confidence=0.1, metadata={"a": 1}, embedding=[1, 0, 0, 0])
        storage.save(heuristic)
        saved = clock.now()
        storage.update(Heuristic, heuristic.id, {"confidence": 0.9, "metadata": {}}, SHOP)
        changed = clock.now()
        storage.delete(Heuristic, [heuristic.id], SHOP)
        assert storage.get(Heuristic, heuristic.id, SHOP, as_of=before) is None
        assert storage.get(Heuristic, heuristic.id, SHOP, as_of=saved) == heuristic.replace(embedding=None)
        then = storage.get(Heuristic, heuristic.id, SHOP, as_of=changed)
        assert then == heuristic.replace(confidence=0.9, metadata={}, embedding=None)
        assert storage.get(Heuristic, heuristic.id, SHOP, as_of=clock.now()) is None

    def test_the_past_is_searched_with_predicate_order_and_scope(self, storage: StorageBackend) -> None:
        heuristics = [make.a_heuristic(confidence=number / 4) for number in range(4)]
        storage.save_many(heuristics)
        then = clock.now()
        storage.delete_where(Heuristic, SHOP, Compare("confidence", "gt", 0.1))
        storage.save(make.a_heuristic(confidence=1.0))
        wanted = Compare("confidence", "ge", 0.25)
        found = storage.find(Heuristic, SHOP, wanted, [Order("confidence", "desc")], limit=2, as_of=then)
        assert found == [heuristics[3], heuristics[2]]
        assert storage.find(Heuristic, Scope(project_id="bank"), as_of=then) == []

    def test_kinds_without_history_say_so(self, storage: StorageBackend) -> None:
        with pytest.raises(UnsupportedOperation):
            storage.history(User, "x", EVERYWHERE)
        with pytest.raises(UnsupportedOperation):
            storage.find(User, EVERYWHERE, as_of=clock.now())
        with pytest.raises(ValidationError, match="time zone"):
            storage.find(Heuristic, EVERYWHERE, as_of=datetime(2026, 1, 1))  # noqa: DTZ001

    def test_every_write_is_audited(self, storage: StorageBackend) -> None:
        by = Attribution(user_id="ana", agent="helena", session_id="s", ip_address="::1", reason="because")
        heuristic = make.a_heuristic()
        storage.save(heuristic, by=by)
        storage.update(Heuristic, heuristic.id, {"confidence": 1.0}, SHOP)
        storage.delete(Heuristic, [heuristic.id], SHOP)
        events = storage.find(AuditEvent, EVERYWHERE, order=[Order("id")])
        assert [(event.action, event.resource_type, event.resource_id) for event in events] == [
            (action, "heuristic", heuristic.id) for action in ("create", "update", "delete")
        ]
        first = events[0]
        assert (first.user_id, first.agent_id, first.session_id, first.ip_address) == ("ana", "helena", "s", "::1")
        assert first.details_json == {"reason": "because"}

    def test_a_batch_is_one_event_that_names_its_records(self, storage: StorageBackend) -> None:
        ids = storage.save_many([make.a_heuristic() for _ in range(3)])
        (event,) = storage.find(AuditEvent, EVERYWHERE, Has("resource_ids", ids[1]))
        assert event.resource_ids == tuple(ids)


class OutboxContract:
    """Marks that outlive whoever was to work on them."""

    def test_changes_of_registered_kinds_are_marked_once(self, storage: StorageBackend) -> None:
        storage.register_projection("index", [Heuristic])
        heuristic = make.a_heuristic()
        storage.save(heuristic)
        storage.save(make.a_memory())
        storage.update(Heuristic, heuristic.id, {"confidence": 1.0}, SHOP)
        storage.delete(Heuristic, [heuristic.id], SHOP)
        (mark,) = storage.pending("index")
        assert (mark.kind, mark.record_id, mark.generation) == ("heuristic", heuristic.id, 3)

    def test_a_claimed_mark_is_nobody_elses_until_its_lease_ends(self, storage: StorageBackend) -> None:
        storage.register_projection("index", [Heuristic])
        storage.save_many([make.a_heuristic() for _ in range(3)])
        first, second = storage.claim("index", limit=2), storage.claim("index")
        assert len(first) == 2
        assert len(second) == 1
        assert storage.claim("index") == []
        assert storage.acknowledge(first) == 2
        storage.fail(second[0], "down")
        assert len(storage.claim("index", lease_seconds=0)) == 1
        assert len(storage.claim("index")) == 1

    def test_a_change_after_the_claim_keeps_the_mark(self, storage: StorageBackend) -> None:
        storage.register_projection("index", [Heuristic])
        heuristic = make.a_heuristic()
        storage.save(heuristic)
        claimed = storage.claim("index")
        storage.update(Heuristic, heuristic.id, {"confidence": 1.0}, SHOP)
        assert storage.claim("index") == []
        assert storage.acknowledge(claimed) == 0
        assert [mark.generation for mark in storage.claim("index")] == [2]

    def test_repeated_failure_parks_a_mark_with_its_error(self, storage: StorageBackend) -> None:
        storage.register_projection("index", [Heuristic])
        storage.save(make.a_heuristic())
        for _ in range(2):
            (mark,) = storage.claim("index")
            storage.fail(mark, "index is down", park_after=2)
        assert storage.claim("index") == []
        (parked,) = storage.pending("index")
        assert (parked.parked, parked.error, parked.attempts) == (True, "index is down", 2)
        assert storage.unpark("index") == 1
        assert len(storage.claim("index")) == 1

    def test_a_dropped_projection_leaves_nothing(self, storage: StorageBackend) -> None:
        storage.register_projection("index", [Heuristic])
        storage.save(make.a_heuristic())
        storage.drop_projection("index")
        storage.save(make.a_heuristic())
        assert storage.pending("index") == []


class NamedMethodsContract:
    """ALMA's named methods."""

    def test_the_five_memories_are_saved_and_read_by_name(self, storage: StorageBackend) -> None:
        heuristic, outcome = make.a_heuristic(), make.an_outcome()
        preference, knowledge, pattern = make.a_preference(), make.some_knowledge(), make.an_anti_pattern()
        assert storage.save_heuristic(heuristic) == heuristic.id
        assert storage.save_outcome(outcome) == outcome.id
        assert storage.save_user_preference(preference) == preference.id
        assert storage.save_domain_knowledge(knowledge) == knowledge.id
        assert storage.save_anti_pattern(pattern) == pattern.id
        assert storage.get_heuristics("shop") == [heuristic]
        assert storage.get_outcomes("shop", agent="helena") == [outcome]
        assert storage.get_user_preferences("ana") == [preference]
        assert storage.get_domain_knowledge("shop") == [knowledge]
        assert storage.get_anti_patterns("shop") == [pattern]
        with pytest.raises(ValidationError, match="Heuristic"):
            storage.save_heuristic(outcome)  # type: ignore[arg-type]

    def test_batches_return_their_ids(self, storage: StorageBackend) -> None:
        heuristics = [make.a_heuristic() for _ in range(3)]
        assert storage.batch_save_heuristics(heuristics) == [each.id for each in heuristics]
        assert len(storage.batch_save_outcomes([make.an_outcome()])) == 1
        assert len(storage.batch_save_domain_knowledge([make.some_knowledge()])) == 1
        assert len(storage.batch_save_anti_patterns([make.an_anti_pattern()])) == 1
        assert len(storage.batch_save_user_preferences([make.a_preference()])) == 1
        assert len(storage.save_heuristics([make.a_heuristic()])) == 1
        assert len(storage.save_outcomes([make.an_outcome()])) == 1
        assert len(storage.save_domain_knowledge_batch([make.some_knowledge()])) == 1
        counts = storage.get_stats("shop")
        assert (counts["heuristics_count"], counts["outcomes_count"], counts["total_count"]) == (4, 2, 10)
        assert storage.get_stats("bank")["total_count"] == counts["preferences_count"] == 1

    def test_reads_filter_as_their_names_say(self, storage: StorageBackend) -> None:
        storage.save_many(
            [
                make.a_heuristic(id="sure", confidence=0.9, embedding=[0, 1, 0, 0]),
                make.a_heuristic(id="unsure", confidence=0.1, embedding=[1, 0, 0, 0]),
                make.an_outcome(id="good", success=True, task_type="ui", timestamp=NOON),
                make.an_outcome(id="bad", task_type="api", timestamp=NOON + timedelta(days=1)),
                make.a_preference(category="style"),
                make.some_knowledge(domain="auth"),
                make.an_anti_pattern(agent="victor"),
            ]
        )
        assert [each.id for each in storage.get_heuristics("shop")] == ["sure", "unsure"]
        assert [each.id for each in storage.get_heuristics("shop", embedding=[1, 0, 0, 0])] == ["unsure", "sure"]
        assert [each.id for each in storage.get_heuristics("shop", min_confidence=0.5)] == ["sure"]
        assert [each.id for each in storage.get_outcomes("shop", top_k=1)] == ["bad"]
        assert [each.id for each in storage.get_outcomes("shop", success_only=True)] == ["good"]
        assert [each.id for each in storage.get_outcomes("shop", task_type="api")] == ["bad"]
        assert storage.get_user_preferences("ana", category="other") == []
        assert len(storage.get_domain_knowledge("shop", domain="auth")) == 1
        assert storage.get_anti_patterns("shop", agent="helena") == []
        assert len(storage.get_anti_patterns_for_agents("shop", ["helena", "victor"])) == 1
        assert len(storage.get_heuristics_for_agents("shop", ["helena"], embedding=[1, 0, 0, 0])) == 2
        assert len(storage.get_outcomes_for_agents("shop", ["helena"], success_only=True)) == 1
        assert len(storage.get_domain_knowledge_for_agents("shop", ["victor"])) == 0

    def test_changes_say_whether_there_was_something_to_change(self, storage: StorageBackend) -> None:
        heuristic, knowledge = make.a_heuristic(), make.some_knowledge()
        storage.save_many([heuristic, knowledge])
        assert storage.update_heuristic(heuristic.id, {"strategy": "x"})
        assert storage.update_heuristic_confidence(heuristic.id, 0.4)
        assert storage.update_knowledge_confidence(knowledge.id, 0.4)
        assert storage.increment_heuristic_occurrence(heuristic.id, success=False)
        changed = storage.require(Heuristic, heuristic.id, EVERYWHERE)
        assert (changed.strategy, changed.confidence) == ("x", 0.4)
        assert (changed.occurrence_count, changed.success_count) == (1, 0)
        assert not storage.update_heuristic("nobody", {"strategy": "x"})
        assert not storage.update_knowledge_confidence("nobody", 0.1)
        assert not storage.increment_heuristic_occurrence("nobody", success=True)

    def test_memories_are_deleted_by_name_age_and_confidence(self, storage: StorageBackend) -> None:
        heuristic, outcome = make.a_heuristic(confidence=0.2), make.an_outcome(timestamp=NOON)
        knowledge, pattern, preference = make.some_knowledge(), make.an_anti_pattern(), make.a_preference()
        storage.save_many([heuristic, outcome, knowledge, pattern, preference])
        assert storage.delete_low_confidence_heuristics("shop", 0.1) == 0
        assert storage.delete_low_confidence_heuristics("shop", 0.3, agent="helena") == 1
        assert storage.delete_outcomes_older_than("shop", NOON) == 0
        assert storage.delete_outcomes_older_than("shop", NOON + timedelta(seconds=1)) == 1
        assert storage.delete_domain_knowledge(knowledge.id)
        assert storage.delete_anti_pattern(pattern.id)
        assert storage.delete_user_preference(preference.id)
        assert not storage.delete_heuristic(heuristic.id)
        assert not storage.delete_outcome(outcome.id)
        for kind in (Heuristic, Outcome, DomainKnowledge, AntiPattern):
            assert storage.count(kind, EVERYWHERE) == 0


class StorageContract(
    SavingContract,
    ScopeContract,
    FindingContract,
    SearchContract,
    ChangingContract,
    ConstraintContract,
    TransactionContract,
    HistoryContract,
    OutboxContract,
    NamedMethodsContract,
):
    """Everything a store promises."""
