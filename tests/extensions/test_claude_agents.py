"""The hooks by which Helena and Victor remember and learn."""

from __future__ import annotations

import pytest

from alma.core import ALMA
from alma.embeddings.base import EmbeddingProvider
from alma.errors import ValidationError
from alma.integration import ClaudeAgentHooks, HelenaHooks, VictorHooks
from alma.learning.protocols import LearningProtocol
from alma.model.learning import Outcome
from alma.model.scope import Scope
from alma.retrieval.engine import RetrievalEngine
from alma.storage.base import StorageBackend
from tests.extensions.conftest import on_each_database

TASK = "Test the login form"
STRATEGY = "Tested empty fields, invalid email, valid submission"


@pytest.fixture
def alma(store: StorageBackend, embedder: EmbeddingProvider) -> ALMA:
    engine = RetrievalEngine(store, embedder)
    return ALMA(store, engine, LearningProtocol(store, embedder, engine.index), project_id="shop")


@on_each_database
def test_helena_gets_a_section_with_what_she_learned(alma: ALMA) -> None:
    helena = HelenaHooks(alma)
    assert helena.pre_task(TASK) == ""
    for _ in range(3):
        assert helena.post_task(TASK, "success", STRATEGY, task_type="testing_strategies").learned
    section = helena.pre_task("Test the registration form")
    assert section.startswith("## Knowledge from Past Runs\n\n## Relevant Strategies\n")
    assert STRATEGY in section
    assert helena.get_stats()["outcomes_count"] == 3


def test_victor_does_not_see_what_helena_learned(alma: ALMA) -> None:
    HelenaHooks(alma).post_task(TASK, "success", STRATEGY)
    assert VictorHooks(alma).pre_task(TASK) == ""


@pytest.mark.parametrize(
    ("hooks", "allowed", "forbidden"),
    [
        (HelenaHooks, "selector_patterns", "backend_logic"),
        (HelenaHooks, "testing_strategies", "database_queries"),
        (VictorHooks, "api_patterns", "frontend_selectors"),
        (VictorHooks, "database_queries", "ui_testing"),
    ],
)
def test_each_learns_what_is_documented_and_no_more(
    alma: ALMA, hooks: type[HelenaHooks | VictorHooks], allowed: str, forbidden: str
) -> None:
    agent = hooks(alma)
    assert agent.post_task("a task", "success", "a way to do it", task_type=allowed).learned
    refused = agent.post_task("a task", "success", "a way to do it", task_type=forbidden)
    assert refused.learned is None
    assert forbidden in refused.not_learned


def test_failures_are_learned_with_their_error(alma: ALMA) -> None:
    HelenaHooks(alma).post_task(TASK, "failure", "slept two seconds", error_message="flaky", duration_ms=12)
    (outcome,) = alma.storage.find(Outcome, Scope(project_id="shop", agent="helena"))
    assert (outcome.success, outcome.error_message, outcome.duration_ms) == (False, "flaky", 12)


def test_any_agent_can_have_hooks(alma: ALMA) -> None:
    hooks = ClaudeAgentHooks(alma, "ada")
    assert hooks.agent.name == "ada"
    assert hooks.post_task("add numbers", True, "one by one", project_id="lab").learned
    assert "one by one" in hooks.pre_task("add numbers", project_id="lab")
    assert hooks.pre_task("add numbers") == ""


def test_a_call_without_sense_is_refused(alma: ALMA) -> None:
    hooks = HelenaHooks(alma)
    with pytest.raises(ValidationError, match="outcome"):
        hooks.post_task(TASK, "perhaps", STRATEGY)
    with pytest.raises(ValidationError, match="must be a text that says what was done"):
        hooks.post_task(TASK, "success", "  ")
