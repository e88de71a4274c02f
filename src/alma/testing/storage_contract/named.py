"""ALMA's named methods."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from alma.errors import (
    ValidationError,
)
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome
from alma.storage.base import StorageBackend
from alma.testing import builders as make
from alma.testing.storage_contract.common import EVERYWHERE, NOON


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

    def test_nothing_is_read_without_naming_whose_it_is(self, storage: StorageBackend) -> None:
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

    def test_what_is_no_list_of_agents_or_no_outcome_is_refused(self, storage: StorageBackend) -> None:
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
    def test_what_is_no_list_of_heuristics_is_refused(self, storage: StorageBackend, wrong: Any) -> None:
        with pytest.raises(ValidationError, match="heuristic must be"):
            storage.batch_save_heuristics(wrong)
        assert storage.count(Heuristic, EVERYWHERE) == 0
