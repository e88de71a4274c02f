"""The flows that users of ALMA know from its first documentation run as written and keep what was promised.

The example of graph memory on a Neo4j server is `tests/unit/test_create_graph_store.py`
(`test_the_example_of_the_readme_runs`); here the same text goes into a graph in the store.
"""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import psycopg
import pytest

from alma import ALMA, Context, Outcome, RunResult, Scope, ScopeViolationError, create_harness, open_storage
from alma.confidence import ConfidenceEngine
from alma.domains import DomainMemoryFactory, get_research_schema
from alma.extraction import AutoLearner
from alma.graph import EntityExtractor, GraphQuery, create_graph_store
from alma.progress import ProgressTracker
from alma.session import SessionManager
from tests.conftest import fresh_database
from tests.support.postgres import PostgresServer

ROOT = Path(__file__).parents[2]
STRATEGY = "Tested empty fields, invalid email, valid submission"
QUICK_START = '''
from alma import ALMA

alma = ALMA.from_config(".alma/config.yaml")

memories = alma.retrieve(
    task="Test the login form validation",
    agent="helena",
    top_k=5
)

prompt = f"""
## Your Task
Test the login form validation

## Knowledge from Past Runs
{memories.to_prompt()}
"""

alma.learn(
    agent="helena",
    task="Test login form",
    outcome="success",
    strategy_used="Tested empty fields, invalid email, valid submission",
)
print(prompt)
'''


def remember_login_tests(alma: ALMA, outcome: str = "success", times: int = 3) -> None:
    for _ in range(times):
        alma.learn(agent="helena", task="Test login form", outcome=outcome, strategy_used=STRATEGY)


def test_each_run_of_the_quick_start_knows_what_the_runs_before_it_learned(project: Path) -> None:
    def run() -> str:
        return subprocess.run(
            [sys.executable, "-c", QUICK_START], cwd=project, capture_output=True, text=True, check=True
        ).stdout

    first, second = run(), run()
    assert STRATEGY not in first
    assert STRATEGY in second
    with ALMA.from_config(".alma/config.yaml") as alma:
        remember_login_tests(alma, times=1)
        # Three times are enough for a rule.
        assert "## Relevant Strategies" in alma.retrieve("Test the login form validation", "helena").to_prompt()


def test_all_five_kinds_of_memory_come_back_in_the_prompt(alma: ALMA) -> None:
    remember_login_tests(alma)
    for _ in range(3):
        alma.learn(
            "helena", "Test login form", "failure", "Wait with sleep(5)", error_message="The test failed now and then"
        )
    alma.add_user_preference("ana", "output", "Verbose test output")
    alma.add_domain_knowledge("helena", "testing_strategies", "The login form uses OAuth 2.0 with 24h token expiry")
    found = alma.retrieve("Test the login form validation", "helena", user_id="ana")
    assert [rule.strategy for rule in found.heuristics] == [STRATEGY]
    assert [warning.pattern for warning in found.anti_patterns] == ["Wait with sleep(5)"]
    assert found.anti_patterns[0].better_alternative == STRATEGY
    prompt = found.to_prompt()
    for heading in ("Relevant Strategies", "Avoid These Patterns", "User Preferences", "Domain Context"):
        assert f"## {heading}" in prompt
    for text in (STRATEGY, "sleep(5)", "now and then", "Verbose test output", "24h token expiry"):
        assert text in prompt


def test_an_agent_learns_only_what_its_scope_allows(alma: ALMA) -> None:
    assert alma.learn("helena", "Find the button", "success", "Select by role", task_type="selector_patterns")
    for task_type in ("backend_logic", "database_queries"):
        with pytest.raises(ScopeViolationError, match="helena"):
            alma.learn("helena", "Speed it up", "success", "Add an index", task_type=task_type)
    assert alma.learn("victor", "Speed it up", "success", "Add an index", task_type="database_queries")


def test_the_harness_puts_memories_into_its_prompt_and_learns_from_the_run(alma: ALMA) -> None:
    remember_login_tests(alma)
    harness = create_harness("coding", "helena", alma)
    assert STRATEGY in harness.run(Context(task="Test the login form validation")).prompt
    context = Context(
        task="Test the login form validation",
        project_id="my-app",
    )
    # Another project knows nothing of this one's.
    assert STRATEGY not in harness.run(context).prompt
    ran = harness.run(context, lambda prompt: RunResult(success=True, strategy_used="Tab through every field"))
    assert ran.learned
    assert "Tab through every field" in harness.run(context).prompt


def test_a_domain_is_a_memory_of_its_own(alma: ALMA) -> None:
    factory = DomainMemoryFactory()
    with factory.create_alma(get_research_schema(), "my-research-project") as research:
        research.learn("ada", "Compare the surveys", "success", "Read the methods before the results")
        assert "Read the methods" in research.retrieve("Compare two surveys", "ada").to_prompt()
    # It is kept where the configuration says.
    assert alma.storage.count(Outcome, Scope(project_id="my-research-project")) == 1
    assert not alma.retrieve("Compare two surveys", "ada").outcomes
    schema = factory.create_schema(
        "sales",
        {
            "entity_types": [
                {"name": "lead", "attributes": ["stage", "value"]},
                {"name": "objection", "attributes": ["type", "response"]},
            ],
            "learning_categories": [
                "objection_handling",
                "closing_techniques",
                "qualification_patterns",
            ],
        },
    )
    assert [entity.name for entity in schema.entity_types] == ["lead", "objection"]
    known = set(factory.list_schemas())
    assert {"coding", "research", "sales", "general", "customer_support", "content_creation"} <= known


def test_a_domain_needs_no_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with DomainMemoryFactory().create_alma(get_research_schema(), "my-research-project") as alma:
        assert alma.learn("ada", "Compare the surveys", "success", "Read the methods first")
    with DomainMemoryFactory().create_alma(get_research_schema(), "my-research-project") as alma:
        assert alma.retrieve("Compare two surveys", "ada").outcomes


@pytest.mark.parametrize("given", [False, True])
def test_the_tracker_says_what_is_next(alma: ALMA, given: bool) -> None:
    tracker = ProgressTracker("my-project", alma.storage) if given else ProgressTracker("my-project")
    item = tracker.create_work_item(
        title="Fix authentication bug",
        description="Login fails on mobile devices",
        priority=80,
        agent="Victor",
    )
    tracker.update_status(item.id, "in_progress")
    next_task = tracker.get_next_item(strategy="priority")
    assert next_task is not None
    assert (next_task.id, next_task.status) == (item.id, "in_progress")
    minor = tracker.create_work_item(title="Fix a typo", priority=10, estimate_minutes=5)
    major = tracker.create_work_item(title="Rotate the keys", priority=90)
    for strategy, expected in (("priority", major), ("quick_win", minor)):
        assert tracker.get_next_item(strategy=strategy) == expected
    assert ProgressTracker("my-project", alma.storage).require_item(item.id).status == "in_progress"
    tracker.close()


def test_a_session_starts_where_the_last_one_ended(alma: ALMA) -> None:
    def session(manager: SessionManager) -> str | None:
        context = manager.start_session(agent="Helena", goal="Complete auth testing")
        manager.create_handoff(
            "Helena",
            context.session_id,
            last_action="completed_oauth_tests",
            last_outcome="success",
            next_steps=["Test refresh tokens", "Add error cases"],
        )
        if context.previous_handoff is None:
            return None
        assert list(context.previous_handoff.blockers) == []
        assert list(context.previous_handoff.next_steps) == ["Test refresh tokens", "Add error cases"]
        return context.previous_handoff.last_action

    for expected in (None, "completed_oauth_tests"):
        with SessionManager("my-project") as manager:
            assert session(manager) == expected
    assert session(SessionManager("my-project", alma.storage)) == "completed_oauth_tests"
    with SessionManager("another-project") as manager:
        assert session(manager) is None


def test_the_default_store_is_that_of_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with ProgressTracker("shop") as tracker:
        tracker.create_work_item("Test the page")
    assert not (tmp_path / ".alma").exists()
    open_storage(".alma/alma.db").close()
    for expected in ([], ["Test the cart"]):
        with ProgressTracker("shop") as tracker:
            assert [item.title for item in tracker.get_items()] == expected
            tracker.create_work_item("Test the cart")
    monkeypatch.setenv("ALMA_STORE", str(tmp_path / "other.db"))
    with ProgressTracker("shop") as tracker:
        assert tracker.get_items() == []
        tracker.create_work_item("Test the checkout")
    monkeypatch.delenv("ALMA_STORE")
    (tmp_path / "alma.yaml").write_text(
        "project_id: shop\nembedding_provider: mock\nembedding_dim: 8\nstorage_dir: .\ndb_name: other.db\n"
        "redaction: {patterns: [{name: badge, pattern: 'badge-[0-9]+'}]}\n"
    )
    monkeypatch.setenv("ALMA_CONFIG", "alma.yaml")
    with ProgressTracker("shop") as tracker:
        assert [item.title for item in tracker.get_items()] == ["Test the checkout"]
        assert tracker.create_work_item("Ask badge-17").title == "Ask [redacted:badge]"


def test_a_conversation_is_learned_from_without_a_language_model(alma: ALMA) -> None:
    auto_learner = AutoLearner(alma)
    results = auto_learner.learn_from_conversation(
        messages=[
            {"role": "user", "content": "Test the login form"},
            {"role": "assistant", "content": "I used incremental validation which worked well..."},
        ],
        agent="helena",
    )
    assert results["extracted_count"] > 0
    assert results["committed_count"] == results["valid_count"] == results["extracted_count"]
    assert "incremental validation" in alma.retrieve("Test the login form", "helena").to_prompt()


def test_who_did_what_is_a_graph(alma: ALMA) -> None:
    with create_graph_store("storage", storage=alma.storage, project_id="my-project") as graph:
        extractor = EntityExtractor()
        entities, relationships = extractor.extract("Alice from Acme Corp reviewed the PR that Bob submitted.")
        for entity in entities:
            graph.add_entity(entity)
        for rel in relationships:
            graph.add_relationship(rel)
        reached = graph.query(GraphQuery(["Alice"], max_hops=2))
    assert {entity.name for entity in reached.entities} == {"Alice", "Acme Corp", "PR", "Bob"}


@pytest.mark.parametrize(
    ("outcome", "recommendations"), [("success", {"strong_yes", "yes"}), ("failure", {"caution", "avoid"})]
)
def test_a_strategy_is_assessed_by_how_it_went(alma: ALMA, outcome: str, recommendations: set[str]) -> None:
    engine = ConfidenceEngine(alma)

    def assess() -> tuple[float, str]:
        signal = engine.assess_strategy(
            strategy="Use incremental validation",
            context="Testing a 5-field registration form",
            agent="Helena",
        )
        assert f"{signal.confidence_score:.0%}".endswith("%")
        return signal.confidence_score, f"{signal.recommendation}"

    before, untried = assess()
    assert untried in {"neutral", "caution"}
    for fields in range(4, 8):
        alma.learn("helena", f"Test a {fields}-field registration form", outcome, "Use incremental validation")
    after, recommendation = assess()
    assert recommendation in recommendations
    assert (after > before) == (outcome == "success")


def test_the_example_configuration_is_one(tmp_path: Path) -> None:
    (tmp_path / ".alma").mkdir()
    shutil.copy(ROOT / "config.yaml.example", tmp_path / ".alma" / "config.yaml")
    with ALMA.from_config(tmp_path / ".alma" / "config.yaml") as alma:
        assert (alma.project_id, alma.embedder.dimension) == ("my-project", 384)
        assert set(alma.scopes) == {"helena", "victor"}
    assert (tmp_path / ".alma" / "alma.db").is_file()


def test_the_documented_extras_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {"local", "postgres", "azure", "all"} <= set(extras)


def test_the_extension_can_be_made_by_hand(postgres: PostgresServer) -> None:
    with fresh_database(postgres, empty=True) as dsn:
        with psycopg.connect(dsn) as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        with ALMA.quickstart(dsn, "my-project", embedding_provider="mock") as alma:
            assert alma.learn("helena", "Test login form", "success", STRATEGY)


def test_the_log_tells_what_happens_and_nothing_of_what_was_said(alma: ALMA, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="alma"):
        alma.learn("helena", "Test login form", "success", STRATEGY)
        alma.retrieve("Test the login form validation", "helena")
        alma.forget()
    said = [record for record in caplog.records if record.name.split(".")[0] == "alma"]
    messages = [record.getMessage() for record in said]
    for message in ("an outcome was learned", "memories were retrieved", "memories were forgotten"):
        assert message in messages
    assert not [record for record in said if "login" in str(record.__dict__) or STRATEGY in str(record.__dict__)]
