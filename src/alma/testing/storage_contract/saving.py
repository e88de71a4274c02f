"""Saved records are read back unchanged, inside their scope."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from alma.errors import (
    ScopeViolationError,
    ValidationError,
)
from alma.model.governance import AuditEvent, Setting, default_settings
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome
from alma.model.memory import Memory, MemoryRelationship
from alma.model.query import And, Compare, Has
from alma.model.record import Record
from alma.model.scope import Scope
from alma.model.workspace import User
from alma.storage.base import StorageBackend
from alma.testing import builders as make
from alma.testing.builders import EVERYWHERE, NOON, SHOP


class SavingContract:
    """Saved records are read back unchanged."""

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

    def test_saving_again_replaces_all_fields(self, storage: StorageBackend) -> None:
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

    @pytest.mark.parametrize("wrong", [None, 7, b"id", "", "\x00", "\ud800", ["id"]])
    def test_invalid_ids_are_refused_everywhere(self, storage: StorageBackend, wrong: Any) -> None:
        storage.save(make.a_heuristic())
        calls: list[Callable[[], object]] = [
            lambda: storage.update(Heuristic, wrong, {"confidence": 1.0}, SHOP),
            lambda: storage.increment(Heuristic, wrong, {"occurrence_count": 1}, SHOP),
            lambda: storage.delete(Heuristic, (wrong,), SHOP),
            lambda: storage.register_projection(wrong, [Heuristic]),
            lambda: storage.put_vectors(Heuristic, {}, model=wrong),
        ]
        for call in calls:
            with pytest.raises(ValidationError):
                call()
        with pytest.raises(ValidationError, match="Attribution"):
            storage.save(make.a_heuristic(), by=wrong)
        with pytest.raises(ScopeViolationError):
            storage.find(Heuristic, Scope(project_id=wrong) if wrong is not None else Scope())
        assert storage.count(Heuristic, EVERYWHERE) == storage.count(AuditEvent, EVERYWHERE) == 1

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

    def test_an_agent_with_few_records_finds_all_of_them_beside_one_with_many(self, storage: StorageBackend) -> None:
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

    @pytest.mark.parametrize("scope", [None, "shop", {"project_id": "shop"}])
    def test_a_change_without_a_scope_fails_and_changes_nothing(self, storage: StorageBackend, scope: Any) -> None:
        known = make.a_heuristic()
        storage.save(known)
        for change in (
            lambda: storage.update(Heuristic, known.id, {"confidence": 1.0}, scope),
            lambda: storage.increment(Heuristic, known.id, {"success_count": 1}, scope),
            lambda: storage.delete(Heuristic, [known.id], scope),
        ):
            with pytest.raises(ScopeViolationError, match="everywhere"):
                change()
        assert storage.find(Heuristic, SHOP) == [known]

    def test_a_kind_that_lacks_the_scope_fails_closed(self, storage: StorageBackend) -> None:
        storage.save(make.a_user())
        with pytest.raises(ScopeViolationError, match="project_id"):
            storage.find(User, SHOP)


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

    def test_every_read_needs_a_scope(self, storage: StorageBackend) -> None:
        storage.save_many([make.a_heuristic(), make.an_outcome(), make.a_preference()])
        for nobody in (None, "", 7):
            calls: list[Callable[[Any], object]] = [
                lambda project: storage.get_heuristics(project, agent="helena"),
                lambda project: storage.get_outcomes_for_agents(project, ["helena"]),
                lambda project: storage.delete_low_confidence_heuristics(project, 1.0, agent="helena"),
                lambda project: storage.get_stats(project, agent="helena"),
                storage.get_user_preferences,
            ]
            for call in calls:
                with pytest.raises(ValidationError):
                    call(nobody)
        assert storage.count(Heuristic, EVERYWHERE) == 1

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

    def test_invalid_agents_and_outcomes_are_refused(self, storage: StorageBackend) -> None:
        heuristic = make.a_heuristic()
        storage.save(heuristic)
        agents: Any
        for agents in (None, "helena", 7):
            with pytest.raises(ValidationError, match="list of agent names"):
                storage.get_heuristics_for_agents("shop", agents)
        success: Any
        for success in (None, "yes", 1):
            with pytest.raises(ValidationError, match="True or False"):
                storage.increment_heuristic_occurrence(heuristic.id, success)
        assert storage.get(Heuristic, heuristic.id, EVERYWHERE) == heuristic

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

    @pytest.mark.parametrize("wrong", [None, 7, "ab", {"id": "h"}, [None], [make.an_outcome()]])
    def test_save_many_needs_a_list_of_heuristics(self, storage: StorageBackend, wrong: Any) -> None:
        with pytest.raises(ValidationError, match="heuristic must be"):
            storage.batch_save_heuristics(wrong)
        assert storage.count(Heuristic, EVERYWHERE) == 0
