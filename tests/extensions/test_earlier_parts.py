"""Programs written for alma-memory 0.4: domain schemas, signals, parts of a harness and the server object."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from alma import ALMA, LearningProtocol, MemoryScope, RetrievalEngine
from alma.confidence import ConfidenceEngine, ConfidenceSignal, OpportunitySignal, RiskSignal
from alma.domains import DomainMemoryFactory, DomainSchema, EntityType, get_coding_schema
from alma.domains.factory import create_coding_alma
from alma.errors import ConfigurationError, ValidationError
from alma.harness.base import Agent, Context, Harness, MemorySchema, Setting, Tool, ToolType
from alma.harness.domains import CodingDomain, ContentDomain, OperationsDomain, ResearchDomain
from alma.mcp.resources import get_agents_resource, get_config_resource, list_resources
from alma.mcp.server import ALMAMCPServer
from alma.progress import ProgressLog
from alma.storage.file_based import FileBasedStorage
from alma.testing.builders import a_heuristic


@pytest.fixture
def alma(tmp_path: Path) -> ALMA:
    storage = FileBasedStorage(tmp_path / "files")
    scopes = {"helena": MemoryScope("helena", ["form_testing"], ["backend"])}
    learning = LearningProtocol(storage, scopes)
    return ALMA(storage, RetrievalEngine(storage, embedding_provider="mock"), learning, scopes, "shop")


# ---------------------------------------------------------------------- domains


def test_a_schema_is_filled_in_step_by_step() -> None:
    schema = DomainSchema.create("garden", "Growing plants", ["watering", "pruning"])
    schema.add_entity_type("bed", "A piece of ground", ["size"], ["size"])
    schema.add_relationship_type("next_to", "Two neighbours", "bed", "path")
    assert (schema.id, len(schema.validate()), "path" in schema.validate()[0]) == ("garden", 1, True)
    with pytest.raises(ValidationError, match="not described"):
        DomainMemoryFactory.register_schema(schema)
    schema.add_entity_type("path")
    schema.add_excluded_category("pruning")
    schema.add_learning_category("sowing")
    assert schema.validate() == []
    allowed = {name: schema.is_category_allowed(name) for name in ("watering", "sowing", "pruning", "selling")}
    assert allowed == {"watering": True, "sowing": True, "pruning": False, "selling": False}
    saved: Any = {**schema.to_dict(), "id": "7", "created_at": "2026-01-01", "confidence_decay_days": 30.0}
    saved["min_occurrences_for_heuristic"] = saved.pop("min_occurrences")
    assert DomainSchema.from_dict(json.loads(json.dumps(saved))) == schema
    bed = schema.get_entity_type("bed")
    assert isinstance(bed, EntityType)
    assert (bed.validate_entity({"size": 3}), bed.validate_entity({})) == ([], ["bed needs size"])
    with pytest.raises(ValidationError, match="is given twice"):
        schema.add_entity_type("bed")


def test_what_is_added_to_a_schema_of_alma_stays_in_the_copy() -> None:
    get_coding_schema().add_entity_type("robot")
    assert get_coding_schema().get_entity_type("robot") is None


def test_the_class_makes_schemas_for_the_process() -> None:
    config: Any = {"entity_types": [{"name": "bed"}]}
    DomainMemoryFactory.create_schema("garden", config, register=False)
    assert DomainMemoryFactory.get_schema("garden") is None
    DomainMemoryFactory.create_schema("garden", config)
    assert DomainMemoryFactory.unregister_schema("garden")


def test_a_memory_is_made_for_one_agent_of_a_domain(tmp_path: Path) -> None:
    store, factory = str(tmp_path / "alma.db"), DomainMemoryFactory()
    with factory.create_alma_for_agent("coding", "Helena", "shop", store, ["refactoring"]) as alma:
        assert alma._domain_schema is not None
        assert not alma._domain_schema.is_category_allowed("refactoring")
        assert alma.scopes["Helena"].cannot_learn == ["refactoring"]
    with create_coding_alma("shop", storage=store) as alma:
        assert list(alma.scopes) == ["developer"]


# ---------------------------------------------------------------------- confidence


def test_a_signal_is_filled_in_step_by_step() -> None:
    signal = ConfidenceSignal.create("check each field", "Test a form", "helena")
    assert (signal.recommendation, signal.risk_signals, signal.total_risk_score) == ("neutral", (), 0.0)
    signal.historical_success_rate, signal.occurrence_count, signal.uncertainty = 0.75, 8, 0.2
    signal.add_opportunity("proven", "It worked before", 0.9, "heuristic:h1")
    assert signal.recommendation in ("yes", "strong_yes")
    risk = signal.add_risk("critical", "## The form\nis gone", 0.9)
    assert (signal.recommendation, signal.total_risk_score, risk.signal_type) == ("avoid", 0.9, "critical")
    prompt = signal.to_prompt()
    for told in ("Confidence Assessment", "75% (8 uses)", "Risks", "90%: ", "It worked before"):
        assert told in prompt
    assert "\n## The form" not in prompt
    plain = json.loads(json.dumps(signal.to_dict()))
    assert (plain["recommendation"], plain["risk_signals"][0]["severity"]) == ("avoid", 0.9)
    assert plain["opportunity_signals"][0]["source"] == "heuristic:h1"


def test_risks_and_opportunities_take_the_earlier_arguments() -> None:
    risky: Any = RiskSignal
    promising: Any = OpportunitySignal
    risk = risky(signal_type="slow", description="It waits", severity=0.5, related_memories=["a"])
    assert (risk.risk_type, risk.evidence_ids, risk.to_dict()["signal_type"]) == ("slow", ["a"], "slow")
    assert promising(signal_type="proven", strength=0.5).to_dict()["strength"] == 0.5


def test_without_a_memory_the_wording_of_a_strategy_is_looked_at() -> None:
    made: Any = ConfidenceEngine
    engine: Any = made(similarity_threshold=0.5)
    ranked = engine.rank_strategies(["sleep and force it", "look", "validate step by step"], "Test a form", "helena")
    assert [strategy for strategy, _ in ranked] == ["validate step by step", "look", "sleep and force it"]
    assert [risk.signal_type for risk in engine.detect_risks("test every page of all sites", "x", "a")] == [
        "high_complexity"
    ]
    assert engine.detect_opportunities("look", "x", "a") == []
    assert "novel" in ranked[0][1].reasoning
    with pytest.raises(ConfigurationError, match=r"ConfidenceEngine\(alma\)"):
        engine.get_risks("Test a form", "helena")


def test_a_signal_from_evidence_answers_the_earlier_names(alma: ALMA) -> None:
    signal = ConfidenceEngine(alma).assess_strategy("check each field", "Test a form", "helena")
    told = json.loads(json.dumps(signal.to_dict()))
    assert (told["occurrence_count"], told["total_risk_score"]) == (0, 0.3)
    assert signal.predicted_success == signal.confidence_score
    assert 0 < signal.uncertainty <= 1
    assert "Never tried" in signal.to_prompt()
    known = a_heuristic(agent="helena", strategy="check each field", confidence=0.9)
    signal = ConfidenceEngine(alma).assess_strategy("check each field", "Test a form", "helena", known)
    assert [chance.evidence_ids[0] for chance in signal.opportunities] == [known.id]


# ---------------------------------------------------------------------- harness and progress


def test_the_parts_of_a_harness_take_the_earlier_arguments(alma: ALMA) -> None:
    tool: Any = Tool
    assert tool("reader", "Read it", ToolType.DATA_ACCESS, parameters={}).tool_type is ToolType.READ
    assert ToolType("execution") is ToolType.EXECUTE
    made: dict[str, Any] = {"setting": Setting, "agent": Agent, "context": Context, "schema": MemorySchema}
    setting = made["setting"]("lab", "A quiet room", global_constraints=["Wash hands"], environment_vars={"A": "b"})
    assert setting.global_constraints == ("Wash hands",)
    schema = made["schema"]("lab", learnable_categories=["mixing"], forbidden_categories=["fire"], outcome_fields=["x"])
    assert (schema.learnable_categories, schema.to_scope("ada").cannot_learn) == (["mixing"], ["fire"])
    agent = made["agent"]("ada", "a chemist", "You mix.", schema, traits=["Careful"], default_actions=["Stir"])
    context = made["context"](task="Mix it", timestamp=None)
    for part, told in ((setting, "- Wash hands"), (agent, "- Careful"), (context, "Mix it"), (schema, "- mixing")):
        assert told in part.to_prompt()
    prompt = Harness(setting, agent, alma).build_prompt(context)
    assert "- Careful\n\n## Environment" in prompt


def test_the_domains_make_the_harness_of_each_agent(alma: ALMA) -> None:
    makers = (
        *(CodingDomain.create_helena, CodingDomain.create_victor, ResearchDomain.create_researcher),
        *(ContentDomain.create_copywriter, ContentDomain.create_documenter, OperationsDomain.create_support_agent),
    )
    names = [make(alma).agent.name for make in makers]
    assert names == ["helena", "victor", "researcher", "copywriter", "documenter", "support"]
    assert ResearchDomain.create_researcher(alma, "birds").setting.constraints[-1] == "Focus on birds."


def test_a_log_of_progress_is_made_without_a_store() -> None:
    log = ProgressLog.create("shop", "helena", "s1", 5, 2, 1, 1, 1, current_action="testing")
    assert (log.items_total, log.items_done, log.items_pending, log.current_action) == (5, 2, 1, "testing")


# ---------------------------------------------------------------------- server


def test_the_server_object_answers_requests(alma: ALMA) -> None:
    server = ALMAMCPServer(alma)

    def ask(method: str, **params: object) -> Any:
        response: Any = asyncio.run(
            server.handle_request({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
        )
        assert response["id"] == 7
        return response.get("result") or response.get("error")

    def call(name: str, **arguments: object) -> Any:
        return json.loads(ask("tools/call", name=name, arguments=arguments)["content"][0]["text"])

    assert ask("initialize")["protocolVersion"] == "2024-11-05"
    tools = {tool["name"]: tool["inputSchema"] for tool in ask("tools/list")["tools"]}
    assert len(tools) == 8
    assert tools["alma_retrieve"]["required"] == ["task", "agent"]
    assert tools["alma_retrieve"]["properties"]["top_k"] == {"type": "integer", "default": 5}
    assert call("alma_learn", agent="helena", task="Test the form", outcome="success", strategy_used="fill")["learned"]
    assert call("alma_learn", agent="helena") == {"success": False, "error": "task cannot be empty"}
    assert call("alma_consolidate", agent="helena")["success"]
    assert [each["uri"] for each in ask("resources/list")["resources"]] == ["alma://config", "alma://agents"]
    read = json.loads(ask("resources/read", uri="alma://agents")["contents"][0]["text"])
    assert (read["agent_count"], read["agents"][0]["stats"]["outcomes_count"]) == (1, 1)
    assert (ask("nothing")["code"], ask("tools/call", name="x")["code"]) == (-32601, -32602)
    assert ask("resources/read", uri="x")["code"] == -32602
    assert "no argument 'x'" in ask("tools/call", name="alma_stats", arguments={"x": 1})["message"]
    assert asyncio.run(server.handle_request({"jsonrpc": "2.0", "method": "notifications/initialized"})) is None


def test_the_resources_are_functions_of_a_memory(alma: ALMA) -> None:
    assert [each["uri"] for each in list_resources()] == ["alma://config", "alma://agents"]
    assert get_config_resource(alma)["content"]["registered_agents"] == ["helena"]
    assert get_agents_resource(alma)["content"]["agents"][0]["scope"]["cannot_learn"] == ["backend"]


def test_the_server_object_serves_a_client_as_alma_mcp_does(tmp_path: Path) -> None:
    program = (
        "import asyncio; from alma import ALMA; from alma.mcp import ALMAMCPServer; "
        f"alma = ALMA.quickstart({str(tmp_path / 'alma.db')!r}, embedding_provider='mock'); "
        "asyncio.run(ALMAMCPServer(alma).run_stdio())"
    )
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}
    done = subprocess.run(
        [sys.executable, "-c", program], input=json.dumps(request) + "\n", capture_output=True, text=True, timeout=60
    )
    assert json.loads(done.stdout)["result"]["protocolVersion"] == "2025-06-18", done.stderr
