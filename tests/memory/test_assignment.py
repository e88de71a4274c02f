"""What is assigned to a memory that does not say it, and why."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from alma.memory.entries import ASSIGNED, Draft, category_of, importance_for, layers_of, with_assigned
from alma.memory.tuning import table
from alma.model.memory import Memory
from alma.testing import builders as make


def draft(content: str = "something", **fields: Any) -> Draft:
    return Draft.of(make.a_memory(**{"content": content, "project_id": None, "user_id": None, **fields}))


@pytest.mark.parametrize(
    ("content", "fields", "category"),
    [
        ("We moved the users table to a new schema", {}, "database"),
        ("The login token is stored with encryption", {}, "security"),
        ("pytest fixtures make the tests flaky", {}, "testing"),
        ("roll out the release with docker", {}, "deployment"),
        ("The README says how to install it", {}, "documentation"),
        ("The login button covers the footer", {}, "frontend"),
        ("GDPR requests are served within 30 days", {}, "compliance"),
        ("it broke", {"memory_type": "error"}, "debugging"),
        ("short answers", {"memory_type": "user_preference"}, "preference"),
        ("hello there", {}, "general"),
        ("hello there", {"tags": ["Frontend", "x"]}, "frontend"),
        ("日本語のメモ", {}, "general"),
    ],
)
def test_the_category_comes_from_tags_words_or_type(content: str, fields: dict[str, Any], category: str) -> None:
    assigned = category_of(draft(content, **fields))
    assert assigned.value == category
    assert assigned.reason


def test_importance_follows_type_and_words() -> None:
    plain = importance_for(draft("we use the blue theme here", memory_type="decision"))
    weighty = importance_for(draft("we must never use the blue theme in production", memory_type="decision"))
    slight = importance_for(draft("maybe a minor typo in the blue theme", memory_type="decision"))
    assert slight.value < plain.value < weighty.value
    assert "production" in weighty.reason
    assert "'must'" in importance_for(draft("they must be served within 30 days")).reason
    assert importance_for(draft("ok", memory_type="decision")).value < plain.value


@pytest.mark.parametrize("kind", [*table("assignment")["importance_of_type"], "something_else"])
def test_every_type_gets_a_possible_importance_and_a_layer(kind: str) -> None:
    owners: list[dict[str, Any]] = [{"user_id": "ana"}, {"project_id": "shop"}, {"session_id": "s1"}]
    for owner in owners:
        memory = Memory(content="critical important must never always", memory_type=kind, **owner)
        assigned = with_assigned(memory, ())
        assert 0 <= assigned.importance_score <= 1
        assert assigned.layers
        assert assigned.category


EVERY_PLACE = {"user_id": "ana", "project_id": "shop", "session_id": "s1"}


@pytest.mark.parametrize(
    ("fields", "layers"),
    [
        ({**EVERY_PLACE, "memory_type": "conversation"}, ["session"]),
        ({**EVERY_PLACE, "memory_type": "decision"}, ["project"]),
        ({**EVERY_PLACE, "memory_type": "user_preference"}, ["global"]),
        ({**EVERY_PLACE, "memory_type": "note", "content": "In general I prefer tabs"}, ["project", "global"]),
        (
            {**EVERY_PLACE, "memory_type": "note", "event_time": datetime(2025, 1, 1, tzinfo=UTC)},
            ["project", "temporal"],
        ),
        ({**EVERY_PLACE, "memory_type": "note", "content": "the launch is on 5 May 2027"}, ["project", "temporal"]),
        ({**EVERY_PLACE, "memory_type": "note", "content": "the review moved to Thursday"}, ["project", "temporal"]),
        ({**EVERY_PLACE, "memory_type": "note", "content": "the launch is next month"}, ["project", "temporal"]),
        ({"session_id": "s1", "memory_type": "decision"}, ["session"]),
        ({"user_id": "ana", "memory_type": "progress"}, ["global"]),
        ({"project_id": "shop", "memory_type": "conversation"}, ["project"]),
    ],
)
def test_layers_follow_type_and_place(fields: dict[str, Any], layers: list[str]) -> None:
    assert layers_of(draft(**fields)).value == layers


def test_what_is_given_is_kept_and_the_rest_has_its_reason() -> None:
    memory = make.a_memory(category="mine", context_json={"files": ["a.py"]})
    assigned = with_assigned(memory, ["category", "content"])
    assert assigned.category == "mine"
    assert assigned.context_json["files"] == ["a.py"]
    reasons = assigned.context_json[ASSIGNED]
    assert set(reasons) == {"importance_score", "layers"}
    assert all(set(each) == {"value", "rule", "reason"} for each in reasons.values())
    everything = ["category", "priority", "layer_project"]
    assert with_assigned(memory, everything) == memory
