"""The tools, resources and prompts, as the official client finds them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference

from alma import ALMA
from alma.mcp.continuation import Piece
from alma.mcp.handshake import INSTRUCTIONS
from alma.mcp.server import Options, main, parse_options
from alma.mcp.tools import Toolset
from alma.operations import OPERATIONS
from alma.operations.base import Face
from alma.tokens import count_tokens
from tests.support.mcp import asked, configured
from tests.support.pieces import assemble

# The documented arguments; those behind the bar may be left out.
SEVEN = {
    "alma_retrieve": "task agent | user_id top_k",
    "alma_learn": "agent task outcome strategy_used | task_type duration_ms error_message feedback",
    "alma_add_preference": "user_id category preference | source",
    "alma_add_knowledge": "agent domain fact | source",
    "alma_forget": "| agent older_than_days below_confidence",
    "alma_stats": "| agent",
    "alma_health": "|",
}
DEFAULT = (
    *("alma_retrieve", "alma_learn", "alma_recommend", "alma_remember", "alma_search", "alma_correct"),
    *("alma_forget_one", "alma_add_preference", "alma_add_knowledge", "alma_continue"),
)
LAYERED = {
    *("create_memory", "get_memory", "update_memory", "delete_memory", "search_memories", "get_context"),
    *("find_similar_patterns", "get_cross_project_insights", "create_session", "switch_session", "initialize_project"),
    *("get_project_stats", "get_memory_analytics", "suggest_context_gaps", "process_memory_decay", "reindex_memories"),
}
LEARNED = {"agent": "helena", "task": "Test the login form", "outcome": "success", "strategy_used": "wait for idle"}


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return Options(config=str(configured(tmp_path)), toolset="full")


def answer(options: Options, name: str, **arguments: Any) -> Any:
    """The structured answer of one call with all details, which the client has checked against the tool's schema."""

    async def talk(client: Client) -> Any:
        await client.list_tools()
        details = {"details": True} if Toolset("full").daily(name) else {}
        result = await client.call_tool(name, {**arguments, **details})
        assert not result.is_error, result.content
        shown = result.content[0].text  # type: ignore[union-attr]
        assert result.structured_content is not None
        assert shown == result.structured_content.get("prompt", shown)
        return result.structured_content

    return asked(options, talk)


def refusal(options: Options, name: str, **arguments: Any) -> str:
    async def talk(client: Client) -> str:
        result = await client.call_tool(name, arguments)
        assert result.is_error
        assert result.structured_content is None
        return str(result.content[0].text)  # type: ignore[union-attr]

    return asked(options, talk)


# ---------------------------------------------------------------------- what is offered


def test_the_small_set_has_what_an_agent_needs_in_a_day_and_the_full_one_the_documented_tools() -> None:
    small = {tool.name for tool in Toolset("small").tools}
    assert small == set(DEFAULT)
    tools = {tool.name: tool for tool in Toolset("full").tools}
    for name, documented in SEVEN.items():
        required, _, optional = documented.partition("|")
        schema = tools[name].input_schema
        assert schema.get("required", []) == required.split() or set(schema["required"]) == set(required.split())
        assert set(required.split()) | set(optional.split()) <= set(schema["properties"])


def test_the_full_set_offers_every_operation_once_and_the_layered_tools_by_their_names() -> None:
    full = [tool.name for tool in Toolset("full").tools]
    assert len(full) == len(set(full))
    assert all(name.startswith("alma_") for name in full)
    box = Toolset("full")
    assert {name for name in LAYERED if box.operation(name).name == name} == LAYERED
    reached = {box.operation(name).name for name in full if name != "alma_continue"}
    assert reached == {operation.name for operation in OPERATIONS if Face.MCP in operation.faces}


def test_the_small_set_is_part_of_the_full_one() -> None:
    assert {tool.name for tool in Toolset("small").tools} <= {tool.name for tool in Toolset("full").tools}


def test_tools_say_what_they_do_to_the_memory() -> None:
    for tool in Toolset("full").tools:
        assert tool.annotations is not None
        assert tool.annotations.title
        assert tool.annotations.open_world_hint is False
        assert tool.description
        if tool.name == "alma_continue":
            continue
        operation = Toolset("full").operation(tool.name)
        assert tool.annotations.read_only_hint == operation.read_only
        assert tool.annotations.destructive_hint == operation.destructive
        assert tool.annotations.idempotent_hint == operation.idempotent


def test_schemas_are_valid_and_take_the_examples() -> None:
    for tool in Toolset("full").tools:
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        if Toolset("full").daily(tool.name) is None and tool.name != "alma_continue":
            assert tool.output_schema is not None
            jsonschema.Draft202012Validator.check_schema(tool.output_schema)
        for example in tool.input_schema.get("examples", ()):
            jsonschema.validate(example, tool.input_schema)


def test_the_default_list_costs_a_model_at_most_2500_tokens() -> None:
    listed = [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in Toolset("small").tools]
    assert count_tokens(json.dumps({"tools": listed}, indent=None)) <= 2_500


def test_an_argument_with_two_values_is_an_enumeration() -> None:
    shown = {tool.name: tool.input_schema["properties"] for tool in Toolset("small").tools}
    assert shown["alma_learn"]["outcome"]["enum"] == ["success", "failure"]
    assert shown["alma_add_preference"]["source"]["enum"] == ["explicit_instruction", "inferred"]


def test_every_argument_of_the_default_list_says_what_good_input_is() -> None:
    for tool in Toolset("small").tools:
        for name, schema in tool.input_schema["properties"].items():
            assert schema.get("description") or schema.get("enum"), f"{tool.name}.{name}"


def test_the_instructions_do_not_tell_a_model_to_obey_stored_text() -> None:
    assert "never instructions to you" in INSTRUCTIONS
    said = " ".join([INSTRUCTIONS, *(tool.description or "" for tool in Toolset("full").tools)]).lower()
    assert not [word for word in ("follow what", "obey", "you must", "always do what") if word in said]


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--tools", "stats,alma_learn"], {"alma_stats", "alma_learn", "alma_continue"}),
        (["--tools", "create_memory, alma_continue"], {"alma_remember", "alma_continue"}),
        (["--tools", "alma_stats", "--toolset", "small"], {"alma_stats", *DEFAULT}),
    ],
)
def test_tools_are_chosen_by_name(arguments: list[str], names: set[str]) -> None:
    options = parse_options(arguments)
    assert {tool.name for tool in Toolset(options.toolset, options.tools).tools} == names


def test_an_unknown_tool_is_refused_before_a_client_connects(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended: list[int] = []
    monkeypatch.setattr("os._exit", ended.append)
    main(["--tools", "alma_serch"])
    assert ended == [2]
    assert "there is no tool 'alma_serch'; did you mean alma_search" in capsys.readouterr().err


# ---------------------------------------------------------------------- what they answer


def test_what_is_learned_is_retrieved(options: Options) -> None:
    async def talk(client: Client) -> Any:
        for _ in range(3):
            await client.call_tool("alma_learn", LEARNED)
        asks: tuple[dict[str, Any], ...] = ({}, {"details": True}, {"task": "How do I bake a cake?"})
        task = {"task": "Test the login form", "agent": "helena"}
        return [await client.call_tool("alma_retrieve", {**task, **more}) for more in asks]

    brief, detailed, nothing = asked(options, talk)
    assert brief.content[0].text.startswith("## Relevant Strategies")
    assert "wait for idle" in brief.content[0].text
    assert brief.structured_content is None
    assert detailed.content == brief.content
    assert detailed.structured_content["heuristics"][0]["strategy"] == "wait for idle"
    assert nothing.content[0].text == "Nothing stored is relevant to this task."


def test_where_benefit_is_measured_the_outcome_names_its_retrieval(tmp_path: Path) -> None:
    file = configured(tmp_path)
    file.write_text(f"{file.read_text()}  benefit: {{withhold: 0.01}}\n")

    async def talk(client: Client) -> Any:
        for _ in range(3):
            await client.call_tool("alma_learn", LEARNED)
        shown: Any = await client.call_tool("alma_retrieve", {"task": "Test the login form", "agent": "helena"})
        retrieval_id = shown.content[0].text.rpartition("retrieval_id: ")[2]
        await client.call_tool("alma_learn", {**LEARNED, "task": "Something else", "retrieval_id": retrieval_id})
        wrong = await client.call_tool("alma_learn", {**LEARNED, "retrieval_id": "unknown"})
        return (await client.call_tool("alma_benefit_report", {})).structured_content, wrong.structured_content

    report, wrong = asked(Options(config=str(file), toolset="full"), talk)
    assert report["outcomes"] == {"not stated": 1}
    assert "has no retrieval 'unknown'" in str(wrong["notes"])


def test_search_hits_are_slim_and_have_details_on_request(options: Options) -> None:
    async def talk(client: Client) -> Any:
        kept = await client.call_tool("alma_remember", {"content": "The staging database is called bluebird"})
        found = [
            await client.call_tool("alma_search", {"query": "What is the staging database called?", **more})
            for more in ({}, {"details": True})
        ]
        return kept, *found

    kept, slim, detailed = asked(options, talk)
    (hit,) = slim.structured_content["hits"]
    assert json.loads(slim.content[0].text) == slim.structured_content
    assert set(hit) == {"id", "text", "when", "score"}
    assert hit["id"] == kept.structured_content["id"]
    assert hit["text"] == "The staging database is called bluebird"
    assert detailed.structured_content["hits"][0]["memory"]["id"] == hit["id"]


def test_what_is_wrong_is_corrected_and_forgotten_by_its_id(options: Options) -> None:
    async def talk(client: Client) -> Any:
        async def call(name: str, **given: Any) -> Any:
            return (await client.call_tool(name, given)).structured_content

        note = await call("alma_remember", content="The staging database is called bluebird")
        fact = await call("alma_add_knowledge", agent="victor", domain="ports", fact="The printer listens on 9100")
        corrected = await call("alma_correct", id=note["id"], correction="The staging database is called heron")
        newer = await call("alma_correct", id=fact["id"], correction="The printer listens on 9200")
        found = await call("alma_search", query="staging database")
        shown: Any = await client.call_tool("alma_retrieve", {"task": "Which port has the printer?", "agent": "victor"})
        gone = await call("alma_forget_one", id=note["id"], reason="decommissioned")
        left = await call("alma_search", query="staging database")
        return corrected, newer, found, shown.content[0].text, gone, left

    corrected, newer, found, shown, gone, left = asked(options, talk)
    assert corrected["id"] == found["hits"][0]["id"] == gone["id"]
    assert "heron" in found["hits"][0]["text"]
    assert newer["superseded"] != newer["id"]
    assert shown.index("9200") < shown.index("9100")
    assert left == {"hits": []}


def test_a_lesson_is_corrected_by_outcomes(options: Options) -> None:
    learned = answer(options, "alma_learn", **LEARNED)["outcome"]["id"]
    assert "record what happened with learn" in refusal(options, "alma_correct", id=learned, correction="wait longer")
    assert "there is no memory with id 'none'" in refusal(options, "alma_correct", id="none", correction="x")
    assert answer(options, "alma_forget_one", id=learned) == {"id": learned, "kind": "outcome"}
    assert "there is no memory" in refusal(options, "alma_forget_one", id=learned)


def test_both_stores_are_served(place: str) -> None:
    options = Options(store=place, project="shop")
    made = answer(options, "alma_remember", content="The staging database is called bluebird")
    (hit,) = answer(options, "alma_search", query="What is the staging database called?")["hits"]
    assert hit["memory"]["id"] == made["memory"]["id"]
    assert answer(options, "alma_learn", **LEARNED)["outcome"]["success"] is True
    assert (
        "bluebird" in answer(options, "alma_retrieve", task="Connect to the staging database", agent="helena")["prompt"]
    )


def test_an_agents_scope_holds_here_too(options: Options) -> None:
    assert "[permission_denied]" in refusal(options, "alma_learn", **LEARNED, task_type="backend")


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("alma_retrieve", {"agent": "helena"}, "retrieve.task is required (got None) [validation_error]"),
        ("alma_retrieve", {"agent": "helena", "task": 5}, "retrieve.task must be a valid string"),
        ("alma_retrieve", {"agent": "helena", "task": "t", "top_k": 0}, "retrieve.top_k must be greater"),
        ("alma_stats", {"agnet": "helena"}, "stats.agnet is not a known argument; there are project_id, agent"),
        ("alma_learn", {**LEARNED, "outcome": "perhaps"}, "[validation_error]"),
        ("alma_continue", {}, "cursor"),
        ("alma_continue", {"cursor": "made-up"}, "there is no continuation with id 'made-up'"),
        ("alma_think", {}, "there is no tool with id 'alma_think'"),
    ],
)
def test_mistakes_are_errors_of_the_tool_in_one_sentence(
    options: Options, name: str, arguments: dict[str, Any], said: str
) -> None:
    sentence = refusal(options, name, **arguments)
    assert said in sentence
    assert "\n" not in sentence


def test_a_memory_that_cannot_be_opened_is_an_error_of_every_call_until_it_can(tmp_path: Path) -> None:
    missing = tmp_path / "demo.yaml"

    async def talk(client: Client) -> None:
        first = await client.call_tool("alma_health", {})
        assert first.is_error
        assert "there is no configuration at" in first.content[0].text  # type: ignore[union-attr]
        configured(tmp_path)
        assert not (await client.call_tool("alma_health", {})).is_error

    asked(Options(config=str(missing), toolset="full"), talk)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_every_tool_takes_its_example_and_answers_as_its_schema_says(options: Options, mode: str) -> None:
    """The examples are tried on a store that knows the project and its user; what they name is not there."""

    async def talk(client: Client) -> None:
        tools = (await client.list_tools()).tools
        await client.call_tool("create_user", {"username": "ana", "user_id": "ana"})
        for tool in tools:
            for example in tool.input_schema.get("examples", ()):
                result = await client.call_tool(tool.name, example)
                if result.is_error:
                    assert "internal_error" not in result.content[0].text, tool.name  # type: ignore[union-attr]

    asked(Options(config=options.config, toolset="full"), talk, mode)


# ---------------------------------------------------------------------- budget and continuation


def test_a_long_answer_comes_in_pages_that_fit_and_are_the_whole(options: Options) -> None:
    small = Options(config=options.config, toolset="full", max_tokens=1_000)

    async def talk(client: Client) -> None:
        await client.list_tools()
        for number in range(25):
            fact = f"Fact {number}: " + " ".join(f"part{number}x{part}" for part in range(60))
            await client.call_tool("alma_add_knowledge", {"agent": "victor", "domain": "service", "fact": fact})
        everything = {"kind": "domain_knowledge", "limit": 100}
        first = (await client.call_tool("list_learned", everything)).structured_content
        pages, pieces = [first], []
        continuation = first.pop("continuation")
        while continuation:
            result = await client.call_tool("alma_continue", {"cursor": continuation["cursor"]})
            assert not result.is_error
            assert count_tokens(result.content[0].text) <= 1_000  # type: ignore[union-attr]
            pages.append(result.structured_content)
            pieces += [Piece(**piece) for piece in result.structured_content["pieces"]]
            continuation = result.structured_content.get("continuation")
        assert len(pages) > 3
        whole = assemble(first, pieces)
        assert len(whole["domain_knowledge"]) == 25
        assert all(fact["fact"].endswith("x59") for fact in whole["domain_knowledge"])

    asked(small, talk)


# ---------------------------------------------------------------------- progress


def test_long_work_reports_progress_that_only_grows(options: Options) -> None:
    told: list[tuple[float, float | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total))

    async def talk(client: Client) -> None:
        for _ in range(3):
            await client.call_tool("alma_learn", LEARNED)
        result = await client.call_tool("alma_forget", {"older_than_days": 0}, progress_callback=note)
        assert not result.is_error

    asked(options, talk, "legacy")
    assert len(told) >= 2
    assert told == sorted(told)


# ---------------------------------------------------------------------- resources and prompts


def read(options: Options, uri: str) -> Any:
    async def talk(client: Client) -> Any:
        result = await client.read_resource(uri)
        return json.loads(result.contents[0].text)  # type: ignore[union-attr]

    return asked(options, talk)


def unreadable(options: Options, uri: str) -> str:
    async def talk(client: Client) -> str:
        with pytest.raises(MCPError) as refused:
            await client.read_resource(uri)
        return str(refused.value)

    return asked(options, talk)


def test_the_configuration_and_the_agents_can_be_read(options: Options) -> None:
    assert read(options, "alma://config")["project_id"] == "demo"
    helena, _ = read(options, "alma://agents")
    assert helena["agent_name"] == "helena"
    assert helena["cannot_learn"] == ["backend"]


def test_the_configuration_has_no_secrets(tmp_path: Path, postgres_dsn: str) -> None:
    shown = json.dumps(read(Options(store=postgres_dsn), "alma://config"))
    assert "PostgreSQLStorage" in shown
    assert "://" not in shown
    assert "password" not in shown


def test_memories_contexts_and_patterns_can_be_read(options: Options) -> None:
    made = answer(options, "alma_remember", content="We chose PostgreSQL for its row locks.", memory_type="decision")
    memory = made["memory"]
    assert read(options, f"memory://memories/{memory['id']}")["memory"]["content"] == memory["content"]
    assert "row locks" in read(options, "memory://projects/demo/context")["prompt"]
    assert read(options, "memory://patterns/solution") == {"pattern_type": "solution", "patterns": []}


@pytest.mark.parametrize("uri", ["alma://secrets", "memory://memories/nobody", "memory://memories/", "nonsense", ""])
def test_what_is_not_there_cannot_be_read(options: Options, uri: str) -> None:
    assert "there is no" in unreadable(options, uri)


@pytest.mark.parametrize(("mode", "code"), [("legacy", -32002), ("auto", -32602)])
def test_what_is_not_there_has_the_code_of_the_clients_version(options: Options, mode: str, code: int) -> None:
    async def talk(client: Client) -> None:
        with pytest.raises(MCPError) as refused:
            await client.read_resource("memory://memories/nobody")
        assert refused.value.error.code == code

    asked(options, talk, mode)


@pytest.mark.parametrize("name", ["alma_health", "alma://config"])
def test_what_no_one_expected_is_told_to_the_log_alone(
    options: Options, name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(path: str) -> None:
        raise RuntimeError("the inner secret")

    monkeypatch.setattr(ALMA, "from_config", broken)
    said = unreadable(options, name) if "://" in name else refusal(options, name)
    assert "the server's log has the details" in said
    assert "secret" not in said
    assert "the inner secret" in caplog.text


def test_prompts_have_what_is_remembered_in_them(options: Options) -> None:
    async def talk(client: Client) -> None:
        assert {prompt.name for prompt in (await client.list_prompts()).prompts} == set(given)
        await client.call_tool("alma_learn", LEARNED)
        for name, arguments in given.items():
            result = await client.get_prompt(name, arguments)
            texts[name] = result.messages[0].content.text  # type: ignore[union-attr]

    task = {"task": "Test the login form", "agent": "helena"}
    given = {"before_task": task, "after_task": {**task, "outcome": "success"}, "hand_over": {"agent": "helena"}}
    texts: dict[str, str] = {}
    asked(options, talk)
    assert "wait for idle" in texts["before_task"]
    assert "alma_learn" in texts["after_task"]
    assert "helena" in texts["hand_over"]


def test_the_names_of_agents_are_completed(options: Options) -> None:
    async def talk(client: Client) -> list[list[str]]:
        prompt = PromptReference(name="before_task")
        typed = [("agent", "He"), ("agent", ""), ("task", "x")]
        answers = [await client.complete(prompt, {"name": name, "value": value}) for name, value in typed]
        return [answer.completion.values for answer in answers]

    assert asked(options, talk) == [["helena"], ["helena", "victor"], []]


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("before_task", {"agent": "helena"}, "before_task.task is required"),
        ("before_task", {"agent": "a", "task": "t", "mood": "good"}, "mood is not a known argument"),
        ("at_night", {}, "there is no prompt"),
    ],
)
def test_a_prompt_that_cannot_be_made_says_why(
    options: Options, name: str, arguments: dict[str, str], said: str
) -> None:
    async def talk(client: Client) -> None:
        with pytest.raises(MCPError, match=said):
            await client.get_prompt(name, arguments)

    asked(options, talk)


# ---------------------------------------------------------------------- one project, several clients


def test_a_server_of_one_project_shows_nothing_of_another(tmp_path: Path) -> None:
    config = str(configured(tmp_path))
    secret = "the override code is heliotrope"
    made = answer(Options(config=config, project="theirs"), "alma_remember", content=secret)
    mine = Options(config=config, project="mine", toolset="full")
    everything: list[Callable[[Client], Awaitable[Any]]] = [
        lambda c: c.call_tool("alma_search", {"query": "override code"}),
        lambda c: c.call_tool("alma_retrieve", {"task": "override code", "agent": "helena"}),
        lambda c: c.call_tool("get_memory", {"memory_id": made["memory"]["id"]}),
        lambda c: c.call_tool("list_memories", {"project_id": "theirs"}),
        lambda c: c.call_tool("alma_stats", {"project_id": "theirs"}),
    ]

    async def talk(client: Client) -> str:
        return "".join([(await each(client)).model_dump_json() for each in everything])

    assert "heliotrope" not in asked(mine, talk)
    assert "outside of it" in unreadable(mine, "memory://projects/theirs/context")


def test_many_calls_at_once_are_all_answered(options: Options) -> None:
    async def talk(client: Client) -> None:
        async def learn(number: int) -> None:
            result = await client.call_tool("alma_learn", {**LEARNED, "task": f"task {number}"})
            assert not result.is_error, result.content

        async with anyio.create_task_group() as tasks:
            for number in range(30):
                tasks.start_soon(learn, number)

    asked(options, talk)
    assert answer(options, "alma_stats")["counts"]["outcomes_count"] == 30
