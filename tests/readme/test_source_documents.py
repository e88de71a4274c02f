"""What docs/reference/documents says of the five documents is true, line by line."""

from __future__ import annotations

import dataclasses
import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

import psycopg
import pytest
from qdrant_client import QdrantClient

from alma.cache.keys import CACHE_TTL_CONFIG, PATTERNS
from alma.config.settings import Settings
from alma.graph.neo4j_projection import Neo4jProjection
from alma.graph.neo4j_schema import MIGRATIONS
from alma.mcp.tools import Toolset
from alma.model.governance import default_settings
from alma.model.kinds import KINDS
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.record import Record
from alma.model.vector import Vector
from alma.model.workspace import Project
from alma.storage.azure_cosmos import AzureCosmosStorage
from alma.storage.base import RecordVector
from alma.storage.file_based import FileBasedStorage
from alma.storage.sqlite_local import SQLiteStorage
from alma.sync import Change
from alma.testing import builders as make
from alma.vectors.qdrant import QdrantProjection
from tests.conftest import fresh_database
from tests.graph.reading import GraphReader, states
from tests.graph.test_neo4j_projection import ANA, memory, pattern, related
from tests.support.bolt import BoltServer
from tests.support.cosmos import empty_database
from tests.support.cosmos_server import KEY, CosmosServer
from tests.support.postgres import PostgresServer
from tests.support.qdrant import QdrantNode

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "reference" / "documents").glob("[a-z]*.md"))
_CHECK = re.compile(r"`([a-z0-9-]+): ([^`]+)`")

NOW = datetime(2026, 1, 28, tzinfo=UTC)
DETAILS: dict[str, Any] = {"metadata": {"by": "a test"}}
OWNED: dict[str, Any] = {"agent": "a", "project_id": "p", **DETAILS}
# A missing value is left out of a file, so every field has one.
LEARNED: tuple[Record, ...] = (
    Heuristic(**OWNED, condition="when", strategy="do", last_validated=NOW),
    Outcome(
        **OWNED,
        task_description="task",
        task_type="test",
        strategy_used="do",
        duration_ms=1,
        error_message="none",
        user_feedback="good",
    ),
    UserPreference(**DETAILS, user_id="u", category="style", preference="short answers", source="said"),
    DomainKnowledge(**OWNED, domain="login", fact="fact", source="said", last_verified=NOW),
    AntiPattern(**OWNED, pattern="sleep", why_bad="slow", better_alternative="wait", last_seen=NOW),
)

Check = Callable[[str], bool]


def lines(page: Path) -> Iterator[tuple[str, str]]:
    """Each check of a page, as (what is checked, the argument)."""
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("| ") and not line.startswith("| In the document"):
            yield from _CHECK.findall(line.rsplit(" | ", 1)[-1])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_line_is_as_it_says(page: Path, checks: dict[str, Check]) -> None:
    found = [*lines(page)]
    assert len(found) > 50
    assert {f"{what}: {argument}" for what, argument in found if not checks[what](argument)} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_line_is_checked(page: Path) -> None:
    rows = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    unchecked = [row for row in rows if not row.startswith("| In the document") and not _CHECK.search(row)]
    assert unchecked == []


@pytest.fixture(scope="module")
def checks(
    tmp_path_factory: pytest.TempPathFactory,
    postgres: PostgresServer,
    bolt: BoltServer,
    qdrant: QdrantNode,
    cosmos: CosmosServer,
) -> dict[str, Check]:
    sqlite = _sqlite(tmp_path_factory.mktemp("documents") / "alma.db")
    postgresql = _postgresql(postgres)
    graph = _graph(bolt)
    points, indexes = _collections(qdrant)
    return {
        "sqlite": sqlite.__contains__,
        "sqlite-table": sqlite.__contains__,
        "sqlite-index": sqlite.__contains__,
        "postgres": postgresql.__contains__,
        "postgres-index": postgresql.__contains__,
        "files": _files(tmp_path_factory.mktemp("files")).__contains__,
        "cosmos": _cosmos(cosmos).__contains__,
        "neo4j": graph.__contains__,
        "neo4j-relationship": graph.__contains__,
        "neo4j-schema": _names_of_the_graph_schema().__contains__,
        "qdrant": points.__contains__,
        "qdrant-index": indexes.__contains__,
        "redis": {each.template for each in PATTERNS}.__contains__,
        "ttl": {f"{name} = {seconds}" for name, seconds in CACHE_TTL_CONFIG.items()}.__contains__,
        "setting": {f"{each.key} = {each.value}" for each in default_settings()}.__contains__,
        "mcp-tool": {tool.name for tool in Toolset("full").tools}.__contains__,
        "config": Settings.model_fields.__contains__,
        "cli": lambda command: f"### alma {command}" in _text(ROOT / "docs" / "reference" / "cli.md"),
        "record": _has_field,
        "api": _is_importable,
        "test": _is_a_test,
        "file": lambda path: (ROOT / path).is_file(),
        "source-without": lambda part: not any(part in _text(path) for path in (ROOT / "src").rglob("*.py")),
    }


def _sqlite(path: Path) -> set[str]:
    """The tables, indexes and columns of a new file."""
    SQLiteStorage(path).close()
    with closing(sqlite3.connect(path)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master")]
        columns = connection.execute(
            "SELECT m.name || '.' || c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'"
        )
        return {*names, *chain.from_iterable(columns)}


def _postgresql(server: PostgresServer) -> set[str]:
    """The indexes of a new database, and the columns of its tables and views."""
    with fresh_database(server) as dsn, psycopg.connect(dsn) as connection:
        columns = connection.execute("SELECT table_name || '.' || column_name FROM information_schema.columns")
        indexes = connection.execute("SELECT indexname::text FROM pg_indexes")
        return {*chain.from_iterable(columns.fetchall()), *chain.from_iterable(indexes.fetchall())}


def _files(folder: Path) -> set[str]:
    """The fields in each file."""
    with FileBasedStorage(folder) as storage:
        storage.save_many(LEARNED)
    return {
        f"{path.name}/{field}"
        for path in folder.glob("*.json")
        for document in json.loads(_text(path))
        if isinstance(document, dict)
        for field in document
    }


def _cosmos(server: CosmosServer) -> set[str]:
    """The fields of the documents in each container, its partition key and the properties of its policies."""
    name = empty_database(server, 3)
    with AzureCosmosStorage(server.url, KEY, name, embedding_dim=3) as storage:
        storage.save_many(record.replace(embedding=[1, 2, 3]) for record in LEARNED)
    found: set[str] = set()
    for container, held in server.databases[name].items():
        found |= {f"{container}.{field}" for document in held.documents.values() for field in document}
        found |= {f"{container}.type = {document.get('type')}" for document in held.documents.values()}
        found.add(f"{container} by {held.properties['partitionKey']['paths'][0]}")
        policies = {**held.properties["indexingPolicy"], **held.properties.get("vectorEmbeddingPolicy", {})}
        for policy, value in policies.items():
            parts = value if isinstance(value, list) else [value]
            found |= {f"{container}: {policy} {part}" for part in map(_spelled, parts)}
    return found


def _spelled(part: Any) -> str:
    return ", ".join(map(str, part.values())) if isinstance(part, dict) else str(part)


def _graph(server: BoltServer) -> set[str]:
    """The properties of the nodes, and the types of the relationships, of a small project."""
    owned: dict[str, Any] = {"user_id": "ana", "project_id": "shop", "session_id": "s", "category": "web"}
    memories = [memory(key, number, **owned) for number, key in enumerate("abcdefg")]
    memories[0] = memories[0].replace(layer_project=True)
    relations = ("relates_to", "contradicts", "builds_on", "resolves", "supersedes")
    edges = [related(*each) for each in zip("abcde", relations, "bcdef", strict=True)]
    works = pattern("works", "a", "b", success_rate=0.5, usage_count=2, pattern_data_json={"failed_ids": ["b"]})
    shop = Project(id="shop", user_id="ana", name="Shop", project_type="web", language="python", framework="django")
    with Neo4jProjection(server.uri, server.username, server.password, server.database) as projection:
        projection.prepare()
        projection.clear()
        projection.apply(states(ANA, shop, *memories, *edges, works, pattern("fails", "c", success_rate=0.2)))
        with GraphReader(server) as graph:
            nodes = {label: graph.nodes(label) for label in ("Memory", "Project", "Pattern", "User")}
            found = {f"{label}.{name}" for label, each in nodes.items() for node in each.values() for name in node}
            found |= set(graph.kinds_of_edges())
        projection.clear()
    return found


def _collections(server: QdrantNode) -> tuple[set[str], set[str]]:
    """The collections, what their points hold, and the types of their payload indexes, of a memory and a pattern."""
    vector = Vector([1.0] * 384)
    kept: list[Any] = [
        make.a_memory(summary="short", category="web", tags=["x"], session_id="s"),
        make.a_pattern(),
    ]
    found, indexes = set(), set()
    with QdrantProjection(server.url, model="documented", dims=384) as projection:
        projection.prepare()
        found_in = RecordVector("", "documented", 0, vector)
        projection.apply([Change(type(x), x.id, x, (found_in._replace(record_id=x.id),)) for x in kept])
        with closing(QdrantClient(server.url, check_compatibility=False)) as client:
            for name in ("memory_embeddings", "pattern_embeddings"):
                collection = client.get_collection(name)
                vectors: Any = collection.config.params.vectors
                found |= {name, f"{name}.size = {vectors.size}", f"{name}.distance = {vectors.distance.value}"}
                (point,), _ = client.scroll(name)
                found |= {f"{name}.{key}" for key in point.payload or {}}
                schema = collection.payload_schema.items()
                indexes |= {f"{name}.{key} = {each.data_type.value}" for key, each in schema}
        projection.clear()
    return found, indexes


def _names_of_the_graph_schema() -> set[str]:
    return {name for each in MIGRATIONS for text in each.statements for name in re.findall(r"(\w+) IF NOT", text)}


def _has_field(text: str) -> bool:
    """`Kind.field`, or `Kind.field = default`."""
    name, _, default = text.partition(" = ")
    kind, _, field = name.partition(".")
    (cls,) = [each for each in KINDS if each.__name__ == kind]
    fields: dict[str, dataclasses.Field[Any]] = vars(cls)["__dataclass_fields__"]
    if field not in fields or not default:
        return field in fields
    factory: Any = fields[field].default_factory
    value = fields[field].default if factory is dataclasses.MISSING else factory()
    return default in (repr(value), str(value))


def _is_importable(text: str) -> bool:
    module, _, path = text.partition(":")
    try:
        value: Any = import_module(module)
    except ModuleNotFoundError:
        return False
    for name in path.split("."):
        value = getattr(value, name, None)
    return value is not None


def _is_a_test(text: str) -> bool:
    """`file::name`, or `file::*` for all tests of a file."""
    path, _, name = text.partition("::")
    wanted = r"def test_\w+\(|class Test\w+\(" if name == "*" else rf"def {name}\("
    return (ROOT / path).is_file() and re.search(wanted, _text(ROOT / path)) is not None


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
