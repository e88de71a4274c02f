"""Programs written for alma-memory 0.4: the names they import and the calls they make."""

from __future__ import annotations

import asyncio
import importlib
import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from alma import ALMA, LearningProtocol, MemoryScope, RetrievalEngine, open_storage
from alma.compat.names import MODULES
from alma.domains import DomainMemoryFactory, DomainSchema
from alma.errors import ScopeViolationError, ValidationError
from alma.integration import (
    AgentType,
    APITestContext,
    APITestOutcome,
    HelenaHooks,
    TaskContext,
    TaskOutcome,
    UITestContext,
    UITestOutcome,
    VictorHooks,
    create_helena_hooks,
    create_integration,
    create_victor_hooks,
    helena_post_task,
    helena_pre_task,
    victor_post_task,
    victor_pre_task,
)
from alma.learning.validation import (
    ScopeValidator,
    TaskTypeValidator,
    ValidationResult,
    validate_learning_request,
)
from alma.mcp import tools
from alma.model.slice import MemorySlice
from alma.progress import ProgressSummary, ProgressTracker, WorkItem
from alma.retrieval.scoring import MemoryScorer, ScoringWeights, compute_composite_score
from alma.session import SessionContext, SessionHandoff, SessionManager
from alma.storage.file_based import FileBasedStorage
from alma.storage.sqlite_local import SQLiteStorage
from alma.testing.builders import a_heuristic


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def alma(tmp_path: Path) -> ALMA:
    scopes = {
        "helena": MemoryScope("helena", ["form_testing", "testing_strategies", "selector_patterns"], ["backend_logic"]),
        "victor": MemoryScope("victor", [], ["ui_testing"]),
    }
    storage = SQLiteStorage(db_path=tmp_path / "memory.db", embedding_dim=384)
    learning = LearningProtocol(storage, scopes)
    return ALMA(storage, RetrievalEngine(storage, embedding_provider="mock"), learning, scopes, "shop")


# ---------------------------------------------------------------------- names


@pytest.mark.parametrize("name", sorted(MODULES))
def test_an_earlier_module_name_is_another_name_of_a_module_here(name: str) -> None:
    assert importlib.import_module(name) is importlib.import_module(MODULES[name])


def test_the_earlier_names_cost_nothing_before_they_are_used() -> None:
    code = "import sys, alma; print(sorted(m for m in sys.modules if m.startswith('alma.')))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == "['alma.compat', 'alma.compat.names', 'alma.lazy']"


def test_a_wrong_module_name_is_still_unknown() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("alma.session.nothing")


def test_a_scope_keeps_lists_and_an_error_can_be_one_sentence() -> None:
    scope = MemoryScope("helena", can_learn=["a"], cannot_learn=("b",))
    assert (scope.can_learn, scope.cannot_learn, scope.share_with) == (["a"], ["b"], [])
    assert str(ScopeViolationError("helena may not learn this")) == "helena may not learn this"


# ---------------------------------------------------------------------- sessions


def test_a_handoff_is_filled_in_step_by_step() -> None:
    handoff = SessionHandoff.create("shop", "helena", "s1", "opened the cart", "Test the cart")
    for number in range(12):
        handoff.add_decision(f"decision {number}")
    handoff.add_blocker("no account")
    handoff.add_blocker("no account")
    handoff.add_blocker("rate limit")
    handoff.remove_blocker("no account")
    handoff.set_test_status("test_cart", passing=True)
    handoff.next_steps, handoff.confidence_level = ["pay"], 0.7
    handoff.active_files.append("cart.py")
    assert handoff.last_outcome == "unknown"
    assert handoff.session_end is None
    assert handoff.key_decisions == [f"decision {number}" for number in range(2, 12)]
    shown = handoff.format_quick_reload()
    for told in ("Session Handoff: s1", "Test the cart", "70%", "rate limit", "- pay", "cart.py", "1/1 passing"):
        assert told in shown
    handoff.finalize("paid", "success", [f"step {number}" for number in range(12)])
    assert (handoff.last_action, handoff.last_outcome, len(handoff.next_steps)) == ("paid", "success", 10)
    assert handoff.session_end >= handoff.session_start
    with pytest.raises(ValidationError):
        handoff.confidence_level = 7


def test_a_context_is_made_without_a_store() -> None:
    previous = SessionHandoff.create("shop", "helena", "s1", "opened", "Test the cart", next_steps=["pay"])
    context = SessionContext.create("shop", "helena", previous_handoff=previous, codebase_state={"branch": "main"})
    shown = context.format_orientation()
    for told in ("# Session Orientation", "Agent: helena", "## Previous Session", "Test the cart", "- pay", "main"):
        assert told in shown


def test_the_session_manager_answers_the_earlier_calls() -> None:
    manager = SessionManager(
        "shop", open_storage("memory://"), progress_tracker=ProgressTracker("shop", open_storage("memory://"))
    )

    def kind(context: SessionContext) -> SessionContext:
        context.rules_of_engagement.append("be kind")
        return context

    def broken(context: SessionContext) -> SessionContext:
        raise RuntimeError(context.session_id)

    manager.register_enricher(kind)
    manager.register_enricher(broken)
    first = manager.start_session("helena", "Test the cart")
    assert first.rules_of_engagement == ["be kind"]
    assert first.progress is not None
    noted: Any = manager.update_session(
        "helena", first.session_id, action="opened", blocker="no account", test_result={"t": True}, risk="flaky"
    )
    assert (noted.last_action, noted.blockers, noted.risk_flags) == ("opened", ["no account"], ["flaky"])
    manager.create_handoff("helena", first.session_id, "opened", "interrupted")
    second = manager.start_session("helena")
    active = manager.get_active_handoff("helena", second.session_id)
    assert active is not None
    assert "no account" in active.blockers
    assert manager.get_active_handoff("helena", first.session_id) is None
    assert manager.get_all_agents() == ["helena"]
    stats = manager.get_agent_stats("helena")
    assert (stats["total_sessions"], stats["success_rate"], stats["common_blockers"]) == (1, 0.0, ["no account"])
    assert "## Session Handoff\n- Agent: helena" in manager.get_quick_reload("helena")
    assert (manager.clear_history("victor"), manager.clear_history()) == (0, 1)


def test_sessions_take_the_earlier_arguments_in_their_order() -> None:
    tracker = ProgressTracker("shop")
    tracker.create_work_item("Pay", "with a card", "task", "helena", 80)
    manager = SessionManager("shop", None, tracker, 2)
    context = manager.start_session("helena", "Test the cart", "s1")
    assert "Progress: 0/1 (0%)" in context.format_orientation()
    active = manager.get_active_handoff("helena", "s1")
    assert active is not None
    assert (active.last_action, active.current_goal, active.blockers) == ("session_start", "Test the cart", [])
    assert (active.session_end, active.embedding) == (None, None)
    assert manager.update_session("helena", "unknown", "opened") is None
    for number in range(3):
        made = manager.create_handoff(
            "helena", f"other {number}", "opened", "failure", ["pay"], goal="Pay", by_hand=True
        )
        assert (made.current_goal, made.next_steps, made.metadata) == ("Pay", ["pay"], {"by_hand": True})
    previous: Any = manager.get_previous_sessions("helena")
    assert [(each.session_id, each.next_steps) for each in previous] == [("other 2", ["pay"]), ("other 1", ["pay"])]
    assert manager.get_quick_reload("victor").endswith("No previous session found for agent victor")
    plain: Any = SessionContext
    assert plain(project_id="shop", agent="helena", session_id="s2").session_id == "s2"
    begun, ended = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    given: Any = {"session_start": begun, "session_end": ended, "embedding": None, "key_decisions": ["a"]}
    handoff = SessionHandoff(
        project_id="shop", agent="helena", session_id="s1", last_action="x", last_outcome="success", **given
    )
    assert (handoff.session_start, handoff.session_end, handoff.key_decisions) == (begun, ended, ["a"])


# ---------------------------------------------------------------------- progress


def test_a_work_item_takes_steps_of_its_own() -> None:
    item = WorkItem.create("shop", "Pay", "with a card", tests=["test_pay"])
    assert item.is_actionable()
    item.start()
    assert (item.status, item.attempt_count, item.started_at is None) == ("in_progress", 1, False)
    item.complete()
    assert (item.status, item.tests_passing, item.time_spent_ms >= 0) == ("done", True, True)
    item.block(blocked_by="other", reason="no account")
    assert (item.blocked_by, item.metadata["block_reason"], item.is_actionable()) == (["other"], "no account", False)
    item.fail("gave up")
    item.status, item.blocked_by = "pending", []
    assert item.is_actionable()


def test_the_tracker_answers_the_earlier_calls() -> None:
    tracker: Any = ProgressTracker("shop", open_storage("memory://"))
    first, second = tracker.create_from_list([{"title": "Cart"}, {"title": "Pay", "agent": "victor"}], "helena")
    assert [item.title for item in tracker.expand_to_items("Do:\n - one\n- two\n-\n")] == ["one", "two"]
    assert tracker.get_work_item(first.id) == first
    assert tracker.start_item(first.id).status == "in_progress"
    assert [item.id for item in tracker.get_in_progress_items()] == [first.id]
    assert tracker.complete_item(first.id, tests_passing=False).tests_passing is False
    assert tracker.block_item(second.id, reason="no account").status == "blocked"
    assert [item.id for item in tracker.get_blocked_items("victor")] == [second.id]
    assert second.id not in {item.id for item in tracker.get_actionable_items()}
    assert tracker.unblock_item(second.id).status == "pending"
    assert tracker.update_work_item(second.id, priority=90, status="in_progress").priority == 90
    assert tracker.update_status(second.id, "review", notes="look").status == "review"
    assert tracker.get_items(item_type="bug") == []
    tracker.log_progress("helena", "s1", "testing")
    assert [log.session_id for log in tracker.get_progress_history("helena", "s1")] == ["s1"]
    copied = ProgressTracker.from_dict(json.loads(json.dumps(tracker.to_dict())))
    assert copied.get_items() == tracker.get_items()
    summary = tracker.get_progress_summary()
    assert (summary.completion_rate, summary.success_rate, summary.current_item) == (0.25, 1.0, None)
    assert (tracker.delete_work_item(second.id), tracker.delete_work_item(second.id)) == (True, False)
    for call in (tracker.start_item, tracker.complete_item, tracker.block_item, tracker.unblock_item):
        assert call("unknown") is None


def test_items_from_a_tracker_may_be_changed_and_wait_for_other_things() -> None:
    tracker = ProgressTracker("shop")
    item: Any = tracker.create_work_item("Pay", "with a card", "task", "helena", 80)
    assert (item.blocked_by, item.tests, item == tracker.get_item(item.id)) == ([], [], True)
    item.tests.append("test_pay")
    item.priority = 90
    assert (tracker.get_items("pending", "helena", "task"), tracker.require_item(item.id).priority) != ([item], 90)
    blocked = tracker.block_item(item.id, "ticket-7", "no key")
    assert blocked is not None
    assert (blocked.status, blocked.blocked_by) == ("blocked", ["ticket-7"])
    assert blocked.metadata["block_reason"] == "no key"
    unblocked = tracker.unblock_item(item.id)
    assert unblocked is not None
    assert (unblocked.status, unblocked.blocked_by) == ("pending", [])
    assert tracker.get_next_item("helena", "fifo") == tracker.get_item(item.id)


def test_a_summary_is_made_with_the_earlier_arguments() -> None:
    counts = {"total": 5, "done": 2, "in_progress": 1, "blocked": 1, "pending": 1, "failed": 0}
    current = WorkItem.create("shop", "Pay", "with a card")
    follows = {"completion_rate": 0.4, "success_rate": 1.0, "current_item": current, "avg_time_per_item_ms": 0}
    made: Any = ProgressSummary
    summary = made(
        project_id="shop", agent=None, **counts, **follows, total_time_ms=7, last_activity=None, next_suggested=None
    )
    assert (summary.completion_percentage, summary.total_time_ms, summary.current_item) == (40, 7, current)
    assert summary.format_summary().splitlines()[0] == "Progress: 2/5 (40%)"


# ---------------------------------------------------------------------- learning


def test_scopes_are_reported_on() -> None:
    scopes = {"helena": MemoryScope("helena", ["form_testing"], ["backend"])}
    validator = ScopeValidator(scopes)
    told = validator.validate_batch("helena", ["form_testing", "backend", "research"])
    assert [report.result for report in told.values()] == [
        ValidationResult.ALLOWED,
        ValidationResult.DENIED_FORBIDDEN,
        ValidationResult.DENIED_OUT_OF_SCOPE,
    ]
    assert told["backend"].to_dict()["is_allowed"] is False
    assert validator.validate("victor", "x").result is ValidationResult.DENIED_UNKNOWN_AGENT
    assert validator.get_stats()["denied"] == 3
    validator.reset_stats()
    assert validator.get_stats()["total_validations"] == 0
    assert validator.get_allowed_domains("helena") == {"form_testing"}
    assert validator.get_forbidden_domains("helena") == {"backend"}
    assert ScopeValidator(scopes, strict_mode=False).is_allowed("helena", "research")
    assert ScopeValidator(scopes, allow_unknown_agents=True).validate("victor", "x").is_allowed
    assert validate_learning_request("helena", "form_testing", scopes).is_allowed


def test_task_types_are_inferred_from_keywords() -> None:
    types = TaskTypeValidator({"ml_testing": ["model", "inference"]})
    assert types.infer_type("Test the ML model inference") == "ml_testing"
    assert types.infer_type("Click the button") == "ui_testing"
    assert types.infer_type("Sing a song") == "general"
    assert (types.normalize_type("api"), types.normalize_type("form_testing")) == ("api_testing", "form_testing")
    assert types.validate_type("general")
    assert not types.validate_type("singing")


def test_a_protocol_made_from_a_store_and_scopes_joins_the_memory(alma: ALMA) -> None:
    assert alma.learn("helena", "Test the login form", "success", "fill it in", "form_testing")
    learned = alma.learning.learn(
        agent="helena",
        project_id="shop",
        task="Test the form",
        outcome=True,
        strategy_used="fill",
        task_type="form_testing",
    )
    assert learned.outcome.embedding is not None
    assert alma.learning.add_preference("u1", "style", "Tabs, not spaces", "inferred").confidence == 0.7
    fact = alma.learning.add_domain_knowledge(
        "helena", "shop", "form_testing", "The form has two fields", "user_stated"
    )
    assert alma.storage.get_domain_knowledge("shop", "helena")[0].id == fact.id
    assert alma.learning.forget("shop", older_than_days=0, below_confidence=0.0) == 2


def test_a_protocol_of_its_own_takes_the_default_provider(tmp_path: Path) -> None:
    storage = SQLiteStorage(tmp_path / "memory.db")
    protocol = LearningProtocol(storage, {})
    assert protocol.learn("helena", "shop", "Test the cart", "success", "click it").outcome.embedding is not None
    with pytest.raises(AttributeError):
        _ = protocol.nothing


# ---------------------------------------------------------------------- retrieval


def test_a_cache_keeps_results_by_query_agent_and_project() -> None:
    caches: Any = importlib.import_module("alma.retrieval.cache")
    told: list[object] = []
    cache = caches.create_cache("memory", ttl_seconds=60, max_entries=2)
    cache.set_hooks(on_hit=lambda key, _: told.append(key), on_eviction=told.append)
    for query in ("one", "two", "three"):
        cache.set(query, "helena", "shop", MemorySlice(query=query))
    assert cache.get("one", "helena", "shop") is None
    assert cache.get("  THREE ", "helena", "shop").query == "three"
    assert cache.get("three", "victor", "shop") is None
    assert told[0] == 1
    assert len(told) == 2
    stats = cache.get_stats()
    assert (stats.hits, stats.misses, stats.evictions, stats.current_size) == (1, 2, 1, 2)
    assert stats.to_dict()["hit_rate"] == "33.33%"
    assert (cache.invalidate(agent="victor"), cache.invalidate(project_id="shop")) == (0, 2)
    cache.set("four", "helena", "shop", MemorySlice(), ttl_override=0.01)
    time.sleep(0.02)
    assert cache.get("four", "helena", "shop") is None
    cache.clear()
    assert cache.get_stats().hits == 0
    assert caches.CacheStats().hit_rate == 0.0
    nothing = caches.create_cache("null")
    nothing.set("one", "helena", "shop", MemorySlice())
    assert isinstance(nothing, caches.NullCache)
    assert nothing.get("one", "helena", "shop") is None
    keys = caches.CacheKeyGenerator("shop")
    key = keys.generate("a|b", "c", "p")
    assert key != keys.generate("a", "b|c", "p")
    assert (keys.is_valid_key(key), caches.CacheKeyGenerator().is_valid_key(key)) == (True, False)


def test_records_are_scored_by_four_factors() -> None:
    weights: Any = ScoringWeights
    assert weights(similarity=0.5, recency=0.5, success_rate=0.5, confidence=0.5).success_rate == 0.25
    assert compute_composite_score(1.0, 30.0, 1.0, 1.0) == pytest.approx(0.85)
    near, far = a_heuristic(confidence=0.9), a_heuristic(confidence=0.9)
    scored = MemoryScorer().score_heuristics([far, near], [0.1, 0.9])
    assert [each.item for each in scored] == [near, far]
    assert MemoryScorer().apply_score_threshold(scored, 2.0) == []


def test_the_engine_answers_the_earlier_calls(alma: ALMA) -> None:
    engine = alma.retrieval
    for _ in range(2):
        assert engine.retrieve("the form", "helena", "shop").heuristics == []
    assert (engine.get_cache_stats()["hits"], engine.get_cache_stats()["hit_rate"]) == (1, "50.00%")
    engine.invalidate_cache(agent="helena")
    assert engine.get_cache_stats()["current_size"] == 0
    engine.update_scorer_weights(similarity=0.7)
    assert engine.get_scorer_weights()["similarity"] > engine.get_scorer_weights()["recency"]


def test_what_another_agent_shares_names_its_owner(alma: ALMA) -> None:
    alma.learn("helena", "Test the login form", "success", "fill it in", "form_testing")
    scope = MemoryScope("victor", [], inherit_from=["helena"])
    found = alma.retrieval.retrieve("Test the login form", "victor", "shop", scope=scope)
    assert [each.metadata.get("shared_from") for each in found.outcomes] == ["helena"]
    assert "shared_from" not in alma.storage.get_outcomes("shop", "helena")[0].metadata


def test_stores_and_schemas_have_the_earlier_names(tmp_path: Path) -> None:
    assert SQLiteStorage(tmp_path / "a.db").db_path == tmp_path / "a.db"
    assert FileBasedStorage(tmp_path / "files").storage_dir == tmp_path / "files"
    listed: Any = DomainMemoryFactory
    assert "coding" in listed.list_schemas()
    listed.register_schema(DomainSchema("shop", "A shop"))
    assert (listed.get_schema("shop").description, "shop" in DomainMemoryFactory().list_schemas()) == ("A shop", False)
    assert listed.unregister_schema("shop")


# ---------------------------------------------------------------------- agents and tools


def test_helena_and_victor_work_with_contexts(alma: ALMA) -> None:
    context = UITestContext("Test the login form", "", "x", "shop", component_type="Form", page_url="/login")
    assert (context.agent_name, context.task_type) == ("helena", "form_testing")
    outcome = UITestOutcome(True, "fill it in", selectors_used=["#mail"])
    assert outcome.tools_used == ["#mail"]
    helena = create_helena_hooks(alma)
    assert isinstance(helena, HelenaHooks)
    assert isinstance(helena.pre_task(context), MemorySlice)
    assert helena.post_task(context, outcome) is True
    assert outcome.duration_ms is not None
    assert helena.record_selector_pattern("#mail", "form", success=True, stability_score=0.5)
    assert "may be flaky" in helena_pre_task(alma, "selector #mail for a form")["prompt"]
    assert helena.get_selector_patterns("form") == []
    assert (
        helena_post_task(alma, "Test the login form", success=False, strategy_used="guess", error_message="no") is True
    )
    assert HelenaHooks(alma, auto_learn=False).post_task(context, outcome) is False
    elsewhere = TaskContext("Change the tables", "backend_logic", "helena", "shop")
    assert helena.post_task(context=elsewhere, outcome=TaskOutcome(True, "sql")) is False
    assert helena.add_knowledge("backend_logic", "The tables have indexes") is False
    victor = create_victor_hooks(alma)
    assert isinstance(victor, VictorHooks)
    test = APITestContext("Test the API", "", "x", "shop", endpoint="/pay", method="POST", is_auth_test=True)
    assert APITestOutcome(True, "s", response_time_ms=5).duration_ms == 5
    prompt = victor.format_api_test_prompt(victor.pre_task(test), test)
    assert "- **Endpoint**: POST /pay" in prompt
    assert victor.record_performance_metric("/pay", 900, 3)
    assert victor_pre_task(alma, "How fast is /pay?", "/pay")["context"].task_type == "api_design_patterns"
    assert victor_post_task(alma, "Test the API", success=True, strategy_used="curl") is True
    integration = create_integration(alma, [AgentType.HELENA, AgentType.CLARA])
    assert integration.list_agents() == ["helena", "clara"]
    assert integration.get_all_stats()["helena"]["outcomes_count"] == 2
    task = TaskContext("Test it", "form_testing", "helena", "shop")
    assert integration.get_hooks("helena").post_task(task, TaskOutcome(True, "look")) is True
    with pytest.raises(ValidationError):
        HelenaHooks("not a memory")  # type: ignore[arg-type]


def test_the_tools_are_functions_of_a_memory(alma: ALMA) -> None:
    learned = tools.alma_learn(alma, "helena", "Test the form", "success", "fill it in", "form_testing")
    assert (learned["success"], learned["learned"], learned["outcome"]["success"]) == (True, True, True)
    refused = tools.alma_learn(alma, "helena", "Change it", "success", "sql", "backend_logic")
    assert (refused["success"], "backend_logic" in refused["error"]) == (False, True)
    known = tools.alma_add_knowledge(alma, "helena", "form_testing", "The login form has two fields")
    assert known["knowledge"]["domain"] == "form_testing"
    assert tools.alma_add_preference(alma, "u1", "style", "No emoji")["preference"]["preference"] == "No emoji"
    assert tools.alma_add_knowledge(alma, "helena", " ", "x") == {"success": False, "error": "domain cannot be empty"}
    found = tools.alma_retrieve(alma, "fields of the login form", "helena", user_id="u1")
    assert found["memories"]["preferences"][0]["preference"] == "No emoji"
    assert "No emoji" in found["prompt_injection"]
    assert json.dumps(found)
    assert tools.alma_stats(alma)["stats"]["outcomes_count"] == 1
    health = tools.alma_health(alma)
    assert (health["status"], health["registered_agents"]) == ("healthy", ["helena", "victor"])
    assert tools.alma_forget(alma, older_than_days=0)["pruned_count"] == 1
    merged = asyncio.run(tools.alma_consolidate(alma, "helena", "domain_knowledge"))
    assert (merged["success"], merged["merged_count"], merged["dry_run"]) == (True, 0, True)
    assert asyncio.run(tools.alma_consolidate(alma, " "))["success"] is False
    alma.close()
    assert tools.alma_health(alma)["status"] == "unhealthy"


def test_a_configuration_is_read_as_a_dictionary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from alma.config.loader import ConfigLoader

    file = tmp_path / "new" / "config.yaml"
    assert ConfigLoader.load(file)["storage"] == "file"
    ConfigLoader.save({"project_id": "${SHOP}"}, file)
    monkeypatch.setenv("SHOP", "toys")
    assert ConfigLoader.load(str(file)) == {"project_id": "toys"}


# ---------------------------------------------------------------------- initializer


def test_a_session_begins_from_a_prompt(alma: ALMA, tmp_path: Path) -> None:
    begin: Any = importlib.import_module("alma.initializer")
    (tmp_path / "src").mkdir()
    (tmp_path / "pyproject.toml").touch()
    initializer = begin.SessionInitializer(alma, session_manager=SessionManager("shop", open_storage("memory://")))
    result = initializer.initialize("shop", "helena", "Test:\n- login\n* logout\n2. pay", str(tmp_path))
    assert [item.title for item in result.work_items] == ["login", "logout", "pay"]
    assert result.recommended_start.title == "login"
    assert result.orientation.current_branch == "unknown"
    assert "Python project" in result.orientation.summary
    assert result.orientation.key_directories == ["src"]
    shown = result.to_prompt()
    for told in (
        "Session Initialization for helena",
        "1. [pending] login",
        "Codebase Orientation",
        "You CAN:",
        "You CANNOT:",
    ):
        assert told in shown
    assert json.dumps(result.to_dict())
    [whole] = initializer.expand_prompt("word " * 60)
    assert len(whole.title) <= 103
    assert begin.RulesOfEngagement().to_prompt() == ""
    assert "Yes" in begin.CodebaseOrientation("main", True, ["1 begin"], "/", [], []).to_prompt()
    assert begin.SessionInitializer().get_rules_of_engagement("helena") == begin.RulesOfEngagement()
