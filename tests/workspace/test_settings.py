"""Settings: typed, validated, for everybody or for one user, and audited."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from alma.errors import ValidationError
from alma.memory.settings import Settings, SystemSettings
from alma.model.governance import Attribution, AuditEvent, Setting, default_settings
from alma.model.query import Compare
from alma.model.scope import Scope
from alma.storage.base import StorageBackend
from alma.storage.in_memory import InMemoryStorage

EVERYWHERE = Scope.everywhere()
# The model of these stores was not measured, so its searches by meaning leave nothing similar out.
INITIAL = replace(Settings.documented(), semantic_search_threshold=0.0)


def changes(store: StorageBackend) -> list[dict[str, Any]]:
    events = store.find(AuditEvent, EVERYWHERE, Compare("action", "eq", "configure"))
    return [event.details_json or {} for event in events]


def test_a_new_store_has_the_documented_settings(store: StorageBackend) -> None:
    assert Settings.documented() == Settings(True, 0.1, 1000, 0.7, True)
    assert SystemSettings(store).read() == INITIAL
    assert [field.name for field in fields(Settings)] == [setting.key for setting in default_settings()]


def test_what_was_set_is_read_with_its_type(store: StorageBackend) -> None:
    settings = SystemSettings(store)
    settings.set("max_memories_per_session", 5)
    settings.set("default_decay_rate", 1)
    settings.set_text("memory_decay_enabled", "False")
    assert settings.read() == Settings(False, 1.0, 5, 0.0, True)
    assert settings.get("max_memories_per_session") == 5
    assert isinstance(settings.get("default_decay_rate"), float)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("max_memories_per_session", "many", "must be a whole number"),
        ("max_memories_per_session", True, "must be a whole number"),
        ("max_memories_per_session", 2.5, "must be a whole number"),
        ("max_memories_per_session", 0, "must be at least 1"),
        ("default_decay_rate", 1.5, "must be at least 0 and at most 1"),
        ("default_decay_rate", float("nan"), "must be at least 0 and at most 1"),
        ("memory_decay_enabled", 1, "must be true or false"),
        ("max_memorys", 1, "is not known; there are memory_decay_enabled"),
    ],
)
def test_a_wrong_value_or_key_is_named_in_one_sentence(
    store: StorageBackend, key: str, value: Any, reason: str
) -> None:
    settings = SystemSettings(store)
    with pytest.raises(ValidationError, match=reason) as raised:
        settings.set(key, value)
    assert key in str(raised.value)
    assert settings.read() == INITIAL


def test_text_that_is_not_such_a_value_is_named(store: StorageBackend) -> None:
    with pytest.raises(
        ValidationError, match=r"setting.max_memories_per_session must be a whole number \(got 'lots'\)"
    ):
        SystemSettings(store).set_text("max_memories_per_session", "lots")


def test_a_user_chooses_without_changing_it_for_others(store: StorageBackend) -> None:
    settings = SystemSettings(store)
    settings.set("semantic_search_threshold", 0.5)
    settings.set("semantic_search_threshold", 0.9, user_id="ana")
    assert settings.read("ana").semantic_search_threshold == 0.9
    assert settings.read("ben").semantic_search_threshold == settings.read().semantic_search_threshold == 0.5
    sources = {setting.key: setting.source for setting in settings.list_all("ana")}
    assert sources["semantic_search_threshold"] == "user"
    assert sources["default_decay_rate"] == "default"
    settings.reset("semantic_search_threshold", user_id="ana")
    assert settings.read("ana").semantic_search_threshold == 0.5


def test_reset_goes_back_to_what_is_documented(store: StorageBackend) -> None:
    settings = SystemSettings(store)
    settings.set("max_memories_per_session", 5)
    settings.set("default_decay_rate", 0.3)
    (restored,) = settings.reset("max_memories_per_session")
    assert (restored.value, restored.source) == (1000, "default")
    assert settings.read().default_decay_rate == 0.3
    settings.reset()
    assert settings.read() == INITIAL


def test_a_change_is_audited_with_both_values_and_no_change_is_not(store: StorageBackend) -> None:
    settings = SystemSettings(store)
    by = Attribution(user_id="ana", reason="the sessions grew long")
    settings.set("max_memories_per_session", 5, by=by)
    settings.set("max_memories_per_session", 5, by=by)
    settings.set("max_memories_per_session", 7, user_id="ben")
    assert changes(store) == [
        {"from": 1000, "to": 5, "for": "everybody", "reason": "the sessions grew long"},
        {"from": 5, "to": 7, "for": "ben"},
    ]
    assert store.require(Setting, "max_memories_per_session", EVERYWHERE).updated_by == "ana"


def test_a_value_that_was_damaged_by_hand_is_named_and_can_be_set_again(store: StorageBackend) -> None:
    store.update(Setting, "max_memories_per_session", {"value": "a lot"}, EVERYWHERE)
    settings = SystemSettings(store)
    with pytest.raises(ValidationError, match="max_memories_per_session"):
        settings.read()
    settings.set("max_memories_per_session", 10)
    assert settings.read().max_memories_per_session == 10


@pytest.mark.parametrize(("model", "threshold"), [("all-MiniLM-L6-v2", 0.25), ("a-model-of-mine", 0.0)])
def test_the_threshold_of_searches_is_that_of_the_model_until_it_is_set(model: str, threshold: float) -> None:
    with InMemoryStorage(embedding_dim=4, embedding_model=model) as store:
        settings = SystemSettings(store)
        shown = settings.in_force("semantic_search_threshold")
        assert (shown.value, shown.default, shown.source) == (threshold, threshold, "model")
        # The documented value is one that can be meant as well.
        chosen = settings.set("semantic_search_threshold", 0.7)
        assert (chosen.value, chosen.default, chosen.source) == (0.7, threshold, "global")
        assert settings.threshold() == 0.7
        (back,) = settings.reset("semantic_search_threshold")
        assert (back.value, back.source) == (threshold, "model")
