"""`create_graph_store` by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from alma.bootstrap import open_storage
from alma.errors import ConfigurationError, MissingDependencyError, StorageError
from alma.graph import (
    Entity,
    EntityExtractor,
    GraphQuery,
    GraphStore,
    InMemoryGraph,
    Neo4jGraph,
    Relationship,
    StorageGraph,
    create_graph_store,
)
from alma.model.governance import Attribution, AuditEvent
from alma.model.query import Compare
from alma.model.scope import Scope
from tests.support.bolt import BoltServer

pytestmark = pytest.mark.slow


def test_an_unknown_word_is_an_error_that_names_the_choices() -> None:
    with pytest.raises(
        ConfigurationError, match="unknown graph store 'tinkerpop': choose memory, neo4j, storage, sqlite"
    ):
        create_graph_store("tinkerpop")


def test_a_graph_in_memory_is_the_default() -> None:
    assert isinstance(create_graph_store(), InMemoryGraph)


def test_a_graph_lives_on_in_a_file(tmp_path: Path) -> None:
    for _ in range(2):
        with create_graph_store("sqlite", path=tmp_path / "alma.db", project_id="shop") as graph:
            graph.add_entity(Entity("e1", "Alice", "person"))
            assert len(graph.find_entities()) == 1
    with create_graph_store("sqlite", path=tmp_path / "alma.db") as other:
        assert other.find_entities() == []


def test_a_graph_lives_in_a_folder(tmp_path: Path) -> None:
    with create_graph_store("file", path=tmp_path / "folder") as graph:
        graph.add_entity(Entity("e1", "Alice", "person"))
    assert any((tmp_path / "folder").iterdir())


def test_a_graph_lives_in_a_database(postgres_dsn: str) -> None:
    with create_graph_store("postgres", dsn=postgres_dsn) as graph:
        graph.add_entity(Entity("e1", "Alice", "person"))
        assert graph.get_entity("e1") is not None
    parts = urlsplit(postgres_dsn)
    place = {"host": parts.hostname, "port": parts.port, "database": parts.path[1:], "user": parts.username}
    with create_graph_store("postgres", **place, password=parts.password, project_id="default") as graph:
        assert graph.get_entity("e1") is not None


def test_a_graph_lives_in_an_open_store_and_leaves_it_open(tmp_path: Path) -> None:
    with open_storage(str(tmp_path / "alma.db")) as storage:
        with create_graph_store("storage", storage=storage, project_id="shop", by=Attribution(agent="helena")) as graph:
            graph.add_entity(Entity("e1", "Alice", "person"))
        (event,) = storage.find(AuditEvent, Scope.everywhere(), Compare("resource_type", "eq", "graph_entity"))
        assert event.agent_id == "helena"


@pytest.fixture(params=["storage", "neo4j"])
def masking(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[GraphStore]:
    """A graph that takes a password out of every text, whole texts if they are named so."""

    def redact(text: str, name: str) -> str:
        return "***" if name == "password" else text.replace("hunter2", "***")

    if request.param == "neo4j":
        bolt: BoltServer = request.getfixturevalue("bolt")
        place = (bolt.uri, bolt.username, bolt.password, bolt.database)
        graph: GraphStore = Neo4jGraph(*place, project_id="masked", redact=redact)
    else:
        graph = StorageGraph(open_storage(str(tmp_path / "alma.db")), redact=redact, close_storage=True)
    with graph:
        yield graph


def test_secrets_are_taken_out_before_they_are_stored(masking: GraphStore) -> None:
    said = {"said": ["it is hunter2", {"hunter2": 1}], "n": 1, "password": "x"}
    masking.add_entity(Entity("a", "key hunter2", "thing", said))
    masking.add_entity(Entity("b", "b", "thing"))
    masking.add_relationship(Relationship("r", "a", "b", "has", {"evidence": "hunter2"}))
    kept = masking.get_entity("a")
    assert kept is not None
    assert kept.name == "key ***"
    assert kept.properties == {"said": ["it is ***", {"***": 1}], "n": 1, "password": "***"}
    assert masking.get_relationships("a")[0].properties == {"evidence": "***"}


def test_a_graph_masks_keys_by_default(tmp_path: Path) -> None:
    with create_graph_store("sqlite", path=tmp_path / "alma.db") as graph:
        graph.add_entity(Entity("a", "deploy key", "thing", {"said": "it is sk-abcdefghijklmnopqrstuvwxyz123456"}))
        kept = graph.get_entity("a")
        assert kept is not None
        assert "sk-abc" not in str(kept.properties)


def test_what_is_missing_or_wrong_is_named() -> None:
    with pytest.raises(ConfigurationError, match="path="):
        create_graph_store("sqlite")
    with pytest.raises(ConfigurationError, match="user"):
        create_graph_store("memory", user="ana")
    with pytest.raises(ConfigurationError, match="uri"):
        create_graph_store("sqlite", path="alma.db", uri="bolt://host")
    with pytest.raises(ConfigurationError, match="uri"):
        create_graph_store("neo4j")
    with pytest.raises(ConfigurationError, match="neo4j\\+s://host"):
        create_graph_store("neo4j", uri="ftp://example.com", username="a", password="b")


def test_neo4j_needs_its_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "neo4j", None)
    with pytest.raises(MissingDependencyError, match=r"alma-agent-memory\[neo4j\]"):
        create_graph_store("neo4j", uri="bolt://127.0.0.1:1")


def test_a_graph_server_that_is_not_there_is_an_error_that_says_so() -> None:
    with (
        create_graph_store("neo4j", uri="bolt://127.0.0.1:1", username="a", password="b", timeout_seconds=1) as graph,
        pytest.raises(StorageError, match="cannot be reached"),
    ):
        graph.get_entity("a")


def test_a_wrong_password_is_an_error_that_does_not_show_it(bolt: BoltServer) -> None:
    options = {"uri": bolt.uri, "username": bolt.username, "database": bolt.database}
    with create_graph_store("neo4j", password="wrong-one", **options) as graph:
        with pytest.raises(ConfigurationError, match="username and password") as caught:
            graph.get_entity("a")
        assert "wrong-one" not in str(caught.value)


def test_neo4j_keeps_relations_under_their_own_types(bolt: BoltServer) -> None:
    import neo4j

    place = {"username": bolt.username, "password": bolt.password, "database": bolt.database}
    with create_graph_store("neo4j", uri=bolt.uri, project_id="typed", **place) as graph:
        for name in "abc":
            graph.add_entity(Entity(name, name, "person"))
        graph.add_relationship(Relationship("r1", "a", "b", "works with"))
        graph.add_relationship(Relationship("r2", "a", "c", "知る"))
    with (
        neo4j.GraphDatabase.driver(bolt.uri, auth=(bolt.username, bolt.password)) as driver,
        driver.session(database=bolt.database) as session,
    ):
        rows = session.run("MATCH ({project_id: 'typed'})-[r]->(b) RETURN type(r) AS type, b.name AS name")
        assert {row["name"]: row["type"] for row in rows} == {"b": "WORKS_WITH", "c": "RELATED_TO"}


def test_the_example_of_the_readme_runs(bolt: BoltServer) -> None:
    place = {"uri": bolt.uri, "username": bolt.username, "password": bolt.password}
    graph = create_graph_store("neo4j", **place, database=bolt.database, project_id="readme")
    extractor = EntityExtractor()
    entities, relationships = extractor.extract("Alice from Acme Corp reviewed the PR that Bob submitted.")
    for entity in entities:
        graph.add_entity(entity)
    for rel in relationships:
        graph.add_relationship(rel)
    reached = graph.query(GraphQuery(["Alice"], max_hops=2))
    assert [entity.name for entity in reached.entities] == ["Alice", "Acme Corp", "PR", "Bob"]
    graph.close()


def test_a_graph_that_is_opened_by_hand_masks_secrets_as_well(tmp_path: Path) -> None:
    with StorageGraph(open_storage(str(tmp_path / "alma.db")), close_storage=True) as graph:
        graph.add_entity(Entity(id="shop", name="Shop", entity_type="app", properties={"password": "zebra77x"}))
        found = graph.get_entity("shop")
        assert found is not None
        assert found.properties == {"password": "[redacted:secret]"}


@pytest.mark.parametrize(
    ("backend", "options", "said"),
    [
        ("memory", {"path": "x"}, "unknown option 'path' of the graph store 'memory': leave it out$"),
        ("storage", {}, "the graph store 'storage' cannot be made without storage: give storage=…"),
        ("sqlite", {"path": "x.db", "port": 3}, "unknown option 'port' of the graph store 'sqlite'"),
        ("file", {"path": "folder", "port": 3}, "unknown option 'port' of the graph store 'file'"),
    ],
)
def test_a_wrong_option_is_one_sentence(
    backend: str, options: dict[str, Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match=said):
        create_graph_store(backend, **options)
