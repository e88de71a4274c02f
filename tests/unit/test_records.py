"""Records: valid when made, immutable afterwards, and clear about what is wrong."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alma import clock
from alma.errors import ValidationError
from alma.model.governance import Setting, SettingType, default_settings
from alma.model.kinds import KINDS, kind_named
from alma.model.learning import AntiPattern, Heuristic, Outcome
from alma.model.memory import Layer, Memory, MemoryRelationship, ProjectPattern
from alma.model.record import Record
from alma.model.vector import Vector
from alma.model.workspace import WorkItem, WorkItemStatus
from alma.storage.document import document_text, from_document, spelled_document, to_document
from alma.testing import builders as make
from alma.testing.strategies import records
from tests.support.examples import examples

VALID: dict[str, Any] = {"agent": "helena", "project_id": "shop", "condition": "a form", "strategy": "test it"}


@pytest.mark.parametrize("cls", KINDS, ids=lambda cls: cls.spec.kind)
@examples(10)
@given(data=st.data())
def test_every_record_survives_the_way_to_json_and_back(cls: type[Record], data: st.DataObject) -> None:
    record: Record = data.draw(records(cls))
    document = to_document(record)
    assert from_document(cls, document) == record
    written = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    assert document_text(spelled_document(record).items()) == written


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("confidence", 1.5, "between 0 and 1"),
        ("confidence", -0.1, "between 0 and 1"),
        ("confidence", float("nan"), "finite"),
        ("confidence", float("inf"), "finite"),
        ("confidence", "0.5", "number"),
        ("confidence", True, "number"),
        ("confidence", None, "number"),
        ("confidence", 10**400, "finite"),
        ("occurrence_count", -1, "at least 0"),
        ("occurrence_count", 1.0, "whole number"),
        ("occurrence_count", True, "whole number"),
        ("occurrence_count", 1 << 63, "64 bits"),
        ("agent", "", "empty"),
        ("agent", "  \n", "empty"),
        ("agent", 7, "text"),
        ("agent", b"bytes", "text"),
        ("agent", "x" * 201, "200 characters"),
        ("condition", "a\x00b", "NUL"),
        ("condition", "\ud800", "surrogate"),
        ("condition", "x" * ((1 << 20) + 1), "characters"),
        ("created_at", datetime(2026, 1, 1), "time zone"),  # noqa: DTZ001
        ("created_at", "2026-01-01", "datetime"),
        ("created_at", datetime.max.replace(tzinfo=timezone(timedelta(hours=-5))), "exists in UTC"),
        ("metadata", [], "JSON object"),
        ("metadata", {1: 2}, "key"),
        ("metadata", {"a": float("nan")}, "finite"),
        ("metadata", {"a": {"b": "\x00"}}, "NUL"),
        ("metadata", {"\udfff": 1}, "surrogate"),
        ("metadata", {"a": object()}, "object"),
        ("metadata", {"a": {1, 2}}, "set"),
        ("metadata", {"a": Decimal(1)}, "Decimal"),
        ("metadata", {"a": 10**1000}, "1,000 digits"),
        ("metadata", {"a": 10**5000}, "1,000 digits"),
        ("embedding", "abc", "sequence of numbers"),
        ("embedding", [1.0, "x"], "sequence of numbers"),
        ("embedding", [float("nan"), 1.0], "finite"),
        ("embedding", [1e39], "finite"),
        ("embedding", [], "at least one"),
        ("embedding", np.zeros((2, 2)), "one-dimensional"),
        ("embedding", np.array(["a"]), "real numbers"),
        ("embedding", 7, "sequence of numbers"),
    ],
)
def test_a_violation_names_field_and_value(field: str, value: Any, reason: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Heuristic(**{**VALID, field: value})
    assert caught.value.field == field
    assert caught.value.value is value
    assert f"heuristic.{field}" in str(caught.value)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_nesting_has_an_end() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100):
        deep = {"a": deep}
    with pytest.raises(ValidationError, match="nested"):
        Heuristic(**VALID, metadata=deep)


def test_unknown_and_missing_fields_are_named() -> None:
    with pytest.raises(ValidationError, match="'stratgy'"):
        Heuristic(**VALID, stratgy="typo")  # type: ignore[call-arg]
    with pytest.raises(ValidationError, match=r"heuristic\.agent is required"):
        Heuristic(project_id="p", condition="c", strategy="s")  # type: ignore[call-arg]


def test_documented_defaults() -> None:
    heuristic, outcome, pattern = Heuristic(**VALID), make.an_outcome(), make.an_anti_pattern()
    assert (heuristic.confidence, heuristic.occurrence_count, heuristic.success_count) == (0.0, 0, 0)
    assert (outcome.success, make.a_preference().confidence, make.some_knowledge().confidence) == (False, 1.0, 1.0)
    assert pattern.occurrence_count == 1
    memory = Memory(content="x")
    assert (memory.importance_score, memory.decay_rate, memory.access_count, memory.priority) == (0.5, 0.1, 0, 5)
    assert memory.is_active
    assert not memory.is_archived
    assert not memory.layers
    settings_by_key = {setting.key: setting.typed_value for setting in default_settings()}
    assert settings_by_key == {
        "memory_decay_enabled": True,
        "default_decay_rate": 0.1,
        "max_memories_per_session": 1000,
        "semantic_search_threshold": 0.7,
        "auto_categorization_enabled": True,
    }


def test_ids_are_made_unique_and_in_order() -> None:
    ids = [Heuristic(**VALID).id for _ in range(1000)]
    assert ids == sorted(set(ids))
    assert all(len(each) == 32 for each in ids)


def test_records_cannot_be_changed_only_replaced() -> None:
    heuristic = Heuristic(**VALID)
    with pytest.raises(dataclasses.FrozenInstanceError):
        heuristic.confidence = 1.0  # type: ignore[misc]
    changed = heuristic.replace(confidence=1.0)
    assert (changed.confidence, changed.id) == (1.0, heuristic.id)
    with pytest.raises(ValidationError):
        heuristic.replace(confidence=2.0)


def test_a_record_keeps_its_own_copy_of_what_it_was_given() -> None:
    metadata = {"steps": [1]}
    heuristic = Heuristic(**VALID, metadata=metadata)
    metadata["steps"].append(2)
    assert heuristic.metadata == {"steps": [1]}


def test_records_behave_like_values() -> None:
    heuristic = Heuristic(**VALID, embedding=[1, 2])
    assert copy.deepcopy(heuristic) == heuristic == pickle.loads(pickle.dumps(heuristic))
    assert len({heuristic, heuristic.replace()}) == 1
    assert heuristic != heuristic.replace(confidence=0.5)
    assert dataclasses.asdict(heuristic)["strategy"] == "test it"


def test_priority_and_importance_say_the_same() -> None:
    assert [Memory(content="x", priority=p).priority for p in range(1, 11)] == list(range(1, 11))
    assert Memory(content="x", priority=10).importance_score == 1.0
    assert Memory(content="x", importance_score=0.5).priority == 5
    assert Memory(content="x").replace(priority=1).importance_score == 0.0
    for wrong in (0, 11, 1.5, "5"):
        with pytest.raises(ValidationError, match=r"memory\.priority"):
            Memory(content="x", priority=wrong)  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="contradicts importance_score"):
        Memory(content="x", priority=1, importance_score=1.0)


def test_tags_are_a_set_and_layers_are_chosen_by_name() -> None:
    memory = Memory(content="x", tags=["b", "a", "b"])
    assert memory.tags == ("a", "b")
    assert memory.in_layers(["project", Layer.GLOBAL]).layers == {Layer.PROJECT, Layer.GLOBAL}
    for wrong in ("a", [""], ["x" * 201], [1]):
        with pytest.raises(ValidationError, match=r"memory\.tags"):
            Memory(content="x", tags=wrong)  # type: ignore[arg-type]


def test_a_memory_has_no_relation_to_itself() -> None:
    with pytest.raises(ValidationError, match=r"from_memory_id must differ from to_memory_id \(got 'm'\)"):
        MemoryRelationship(from_memory_id="m", to_memory_id="m", relationship_type="relates_to")


def test_closed_choices_are_listed_in_the_error() -> None:
    assert WorkItem(project_id="p", title="t", status="done").status is WorkItemStatus.DONE  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="pending, in_progress, blocked, review, done, failed"):
        WorkItem(project_id="p", title="t", status="finished")  # type: ignore[arg-type]


def test_instants_are_kept_in_utc() -> None:
    moment = datetime(2026, 1, 1, 9, tzinfo=timezone(timedelta(hours=9)))
    outcome = make.an_outcome(timestamp=moment)
    assert outcome.timestamp == moment
    assert outcome.timestamp is not None
    assert outcome.timestamp.tzinfo is UTC


def test_a_setting_reads_its_value_as_its_type() -> None:
    with pytest.raises(ValidationError, match=r"setting\.key is required"):
        Setting(value="1")  # type: ignore[call-arg]
    assert Setting(key="k", value='{"a": 1}', value_type=SettingType.JSON).typed_value == {"a": 1}
    with pytest.raises(ValidationError, match=r"setting\.k must be of type integer"):
        _ = Setting(key="k", value="many", value_type=SettingType.INTEGER).typed_value


@pytest.mark.parametrize(
    "values", [[0.1, 0.2], (1, 2), np.array([0.1, 0.2]), np.array([1, 2], dtype=np.float32), Vector([1, 2])]
)
def test_a_vector_is_made_of_anything_that_holds_numbers(values: Any) -> None:
    vector = Vector(values)
    assert list(vector) == [np.float32(value) for value in values]
    assert Vector.from_bytes(vector.to_bytes()) == vector
    assert vector == list(vector)
    assert vector != [*vector, 0.0]
    assert "dims=2" in repr(vector)


def test_kinds_are_known_by_name() -> None:
    assert kind_named("anti_pattern") is AntiPattern
    assert kind_named("outcome") is Outcome
    with pytest.raises(ValidationError, match="heuristic, outcome"):
        kind_named("heuristics")


def test_a_turn_of_a_conversation_is_found_by_its_speaker_and_its_day() -> None:
    moment = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    memory = Memory.said("Ana", "I moved to Lisbon", moment, session_id="s1")
    assert memory.title == "Ana (8 May 2023)"
    assert (memory.content, memory.event_time, memory.session_id) == ("I moved to Lisbon", moment, "s1")
    assert memory.memory_type == "conversation"


def test_a_turn_of_a_conversation_may_lack_its_moment() -> None:
    memory = Memory.said("Ana", "I moved to Lisbon")
    assert (memory.title, memory.event_time) == ("Ana", None)


def test_a_turn_of_a_conversation_may_lack_its_speaker() -> None:
    assert Memory.said("", "I moved to Lisbon", datetime(2023, 5, 8, tzinfo=UTC)).title == "(8 May 2023)"


def test_a_turn_of_a_conversation_may_be_of_another_type() -> None:
    assert Memory.said("Ana", "always answer in English", memory_type="instruction").memory_type == "instruction"


@pytest.mark.parametrize(
    ("cls", "name", "more"),
    [
        (AntiPattern, "last_seen", {"agent": "helena", "project_id": "shop", "pattern": "sleep"}),
        (Memory, "last_accessed_at", {"content": "a note"}),
        (
            ProjectPattern,
            "last_used_at",
            {"project_id": "shop", "pattern_type": "fix", "pattern_name": "t", "pattern_description": "d"},
        ),
    ],
)
def test_what_was_made_long_ago_was_last_seen_then_unless_told(cls: type[Record], name: str, more: Any) -> None:
    long_ago, since = clock.now() - timedelta(days=800), clock.now() - timedelta(days=3)
    assert getattr(cls(**more, created_at=long_ago), name) == long_ago
    assert getattr(cls(**more, created_at=long_ago, **{name: since}), name) == since
    assert getattr(cls(**more), name) > since
