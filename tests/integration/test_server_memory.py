"""The knowledge graph of the MCP reference server "memory", call by call beside that server from npm."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alma import ALMA
from alma.errors import ValidationError
from alma.integration.server_memory import KnowledgeGraph
from alma.mcp.server import Options
from alma.memory.history import History
from alma.model.memory import Memory
from alma.operations.access import Caller, Grant, Right
from tests.integration.conftest import OpenMemory
from tests.support import node
from tests.support.command_line import run
from tests.support.mcp import StdioServer, asked

PACKAGE = {"@modelcontextprotocol/server-memory": "2026.8.31"}


class Reference(StdioServer):
    """The reference server on a file of its own, and ALMA's server beside."""

    def __init__(self, file: Path) -> None:
        program = node.installed(PACKAGE) / "node_modules/@modelcontextprotocol/server-memory/dist/index.js"
        super().__init__(program=[node.NODE, str(program)], environment={"MEMORY_FILE_PATH": str(file)})
        self.number = 10


@pytest.fixture(scope="module")
def memory_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reference") / "memory.json"


@pytest.fixture(scope="module")
def reference(memory_file: Path) -> Iterator[StdioServer]:
    with Reference(memory_file) as server:
        server.greet()
        yield server


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StdioServer]:
    folder = tmp_path_factory.mktemp("ours")
    (folder / "config.yaml").write_text(
        "alma:\n  project_id: demo\n  storage: sqlite\n  storage_dir: .\n  embedding_provider: mock\n"
    )
    with StdioServer("--toolset", "server-memory", "--config", str(folder / "config.yaml")) as server:
        server.greet()
        yield server


def without_dialect(value: Any) -> Any:
    """A schema without what only names its dialect."""
    if isinstance(value, list):
        return [without_dialect(each) for each in value]
    if isinstance(value, dict):
        # An absent list of required arguments is an empty one.
        kept = {key: without_dialect(each) for key, each in value.items() if key not in ("$schema", "execution")}
        return {key: each for key, each in kept.items() if key != "additionalProperties" and each != []}
    return value


def test_the_tools_and_the_resource_are_those_of_the_reference_server(
    reference: StdioServer, ours: StdioServer
) -> None:
    for method in ("tools/list", "resources/list"):
        theirs, mine = (server.answer_to(method, {})["result"] for server in (reference, ours))
        assert without_dialect({key: mine[key] for key in theirs}) == without_dialect(theirs)
    assert len(ours.answer_to("tools/list", {})["result"]["tools"]) == 9


_NAMES = st.sampled_from(["Ana", "ana", "Shop", "Ärger", "", "a b"])
_TEXTS = st.sampled_from(["likes pizza", "lives in Lisbon", "LIKES PIZZA", "", 'ü\n\t"x"', "Ana"])
_ENTITY = st.fixed_dictionaries(
    {"name": _NAMES, "entityType": st.sampled_from(["person", "place"]), "observations": st.lists(_TEXTS, max_size=3)}
)
_RELATION = st.fixed_dictionaries({"from": _NAMES, "to": _NAMES, "relationType": st.sampled_from(["knows", "owns"])})
_CALLS: Any = st.one_of(
    st.tuples(st.just("create_entities"), st.fixed_dictionaries({"entities": st.lists(_ENTITY, max_size=3)})),
    st.tuples(st.just("create_entities"), st.fixed_dictionaries({"entities": st.lists(_ENTITY, max_size=3)})),
    st.tuples(st.just("create_relations"), st.fixed_dictionaries({"relations": st.lists(_RELATION, max_size=3)})),
    st.tuples(
        st.just("add_observations"),
        st.fixed_dictionaries(
            {
                "observations": st.lists(
                    st.fixed_dictionaries({"entityName": _NAMES, "contents": st.lists(_TEXTS, max_size=3)}), max_size=2
                )
            }
        ),
    ),
    st.tuples(st.just("delete_entities"), st.fixed_dictionaries({"entityNames": st.lists(_NAMES, max_size=2)})),
    st.tuples(
        st.just("delete_observations"),
        st.fixed_dictionaries(
            {
                "deletions": st.lists(
                    st.fixed_dictionaries({"entityName": _NAMES, "observations": st.lists(_TEXTS, max_size=2)}),
                    max_size=2,
                )
            }
        ),
    ),
    st.tuples(st.just("delete_relations"), st.fixed_dictionaries({"relations": st.lists(_RELATION, max_size=2)})),
    st.tuples(st.just("search_nodes"), st.fixed_dictionaries({"query": _TEXTS | _NAMES})),
    st.tuples(st.just("open_nodes"), st.fixed_dictionaries({"names": st.lists(_NAMES, max_size=3)})),
    # What the schemas refuse.
    st.tuples(st.just("open_nodes"), st.sampled_from([{}, {"names": "Ana"}, {"names": [1]}])),
    st.tuples(st.just("create_entities"), st.sampled_from([{}, {"entities": [{"name": "x"}]}, {"entities": None}])),
)


@given(st.lists(_CALLS, max_size=8))
def test_it_answers_as_the_reference_server(
    reference: StdioServer, ours: StdioServer, memory_file: Path, calls: list[Any]
) -> None:
    memory_file.unlink(missing_ok=True)
    graph = json.loads(ours.call(9, "read_graph")["content"][0]["text"])
    ours.call(8, "delete_entities", entityNames=[each["name"] for each in graph["entities"]])
    ours.call(7, "delete_relations", relations=graph["relations"])
    for number, (name, arguments) in enumerate([*calls, ("read_graph", {})], 10):
        theirs, mine = (server.call(number, name, **arguments) for server in (reference, ours))
        if "Input validation error" in theirs["content"][0]["text"]:
            assert mine["isError"], (name, arguments)
            assert "Input validation error" in mine["content"][0]["text"]
            continue
        assert mine["content"] == theirs["content"], (name, arguments)
        assert mine.get("structuredContent") == theirs.get("structuredContent"), (name, arguments)
        assert bool(mine.get("isError")) == bool(theirs.get("isError"))


def test_the_resource_has_the_graph_and_subscribers_are_told(reference: StdioServer, ours: StdioServer) -> None:
    uri = {"uri": "memory://knowledge-graph"}
    shown = []
    for server in (reference, ours):
        server.call(3, "delete_entities", entityNames=["Bob"])
        server.answer_to("resources/subscribe", uri)
        server.send(
            {
                "jsonrpc": "2.0",
                "id": 77,
                "method": "tools/call",
                "params": {
                    "name": "create_entities",
                    "arguments": {"entities": [{"name": "Bob", "entityType": "person", "observations": []}]},
                },
            }
        )
        said = [server.receive(), server.receive()]
        assert "notifications/resources/updated" in [each.get("method") for each in said]
        contents = server.answer_to("resources/read", uri)["result"]["contents"]
        shown.append([each["name"] for each in json.loads(contents[0]["text"])["entities"] if each["name"] == "Bob"])
    assert shown == [["Bob"], ["Bob"]]


def test_the_file_of_the_reference_server_comes_and_goes_unchanged(
    reference: StdioServer, memory_file: Path, new_memory: OpenMemory, tmp_path: Path
) -> None:
    memory_file.unlink(missing_ok=True)
    entities = [
        {"name": "Ana", "entityType": "person", "observations": ["lives in Lisbon", "ü\u2028x"]},
        {"name": "Shop", "entityType": "place", "observations": []},
    ]
    reference.call(4, "create_entities", entities=entities)
    reference.call(5, "create_relations", relations=[{"from": "Ana", "to": "Shop", "relationType": "works at"}])
    graph = KnowledgeGraph(new_memory())
    assert graph.load(memory_file) == (2, 1)
    assert graph.load(memory_file) == (0, 0)
    assert graph.dump() == memory_file.read_text()
    (tmp_path / "bad.json").write_text('{"type":"entity","name":"x","entityType":"y","observations":[]}\n{"type":"z"}')
    with pytest.raises(ValidationError, match="line 2"):
        graph.load(tmp_path / "bad.json")
    assert graph.dump() == memory_file.read_text()


def test_the_command_line_imports_and_exports_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = '{"type":"entity","name":"Ana","entityType":"person","observations":["lives in Lisbon"]}'
    (tmp_path / "memory.json").write_text(text)
    assert "1 entities and 0 relations added" in run("import", "memory.json", "--from", "server-memory").stdout
    run("export", "again.json", "--server-memory")
    assert (tmp_path / "again.json").read_text() == text


def test_entities_are_found_masked_and_every_change_is_a_version(on_each_database: ALMA) -> None:
    graph = KnowledgeGraph(on_each_database, agent="helena")
    ana = {"name": "Ana", "entityType": "person", "observations": ["lives in Lisbon", "password: hunter2horse!"]}
    graph.create_entities([ana])
    graph.add_observations([{"entityName": "Ana", "contents": ["has a dog", "password: hunter2horse!"]}])
    assert graph.open_nodes(["Ana"])["entities"][0]["observations"] == [
        "lives in Lisbon",
        "password: [redacted:password]",
        "has a dog",
    ]
    journal, scope = on_each_database.journal, on_each_database.scope()
    (found,) = journal.search("Where does Ana live?", scope).memories
    assert (found.title, found.source_tool, found.source_agent) == ("Ana", "server-memory", "helena")
    assert len(History(on_each_database.storage).versions(Memory, found.id, scope)) == 2
    graph.delete_entities(["Ana"])
    journal.undelete(found.id, scope)
    assert [each["name"] for each in graph.read_graph()["entities"]] == ["Ana"]


def test_keys_that_only_read_or_belong_to_a_user_are_refused(alma: ALMA) -> None:
    from mcp_types import CallToolRequestParams

    from alma.mcp.server_memory import tool_result

    def answered(grant: Grant, name: str) -> Any:
        return tool_result(Caller(alma, grant), CallToolRequestParams(name=name, arguments={"entities": []}))

    reads = Grant(frozenset({Right.READ}), project_id="shop")
    assert not answered(reads, "read_graph").is_error
    assert "needs the right to write" in answered(reads, "create_entities").content[0].text
    of_user = Grant(user_id="ana", project_id="shop")
    assert "belongs to a project" in answered(of_user, "read_graph").content[0].text


def test_a_client_of_the_newest_protocol_is_served(tmp_path: Path) -> None:
    async def talk(client: Any) -> Any:
        return [tool.name for tool in (await client.list_tools()).tools]

    options = Options(store=str(tmp_path / f"{uuid.uuid4().hex}.db"), toolset="server-memory")
    assert "read_graph" in asked(options, talk)
