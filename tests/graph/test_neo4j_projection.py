"""The records of the store as nodes and relationships, on a real graph server."""

from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from alma.errors import StorageError
from alma.graph.neo4j_projection import Neo4jProjection
from alma.graph.neo4j_schema import MIGRATIONS
from alma.model.memory import Memory, MemoryRelationship, ProjectPattern
from alma.model.record import Record
from alma.model.workspace import Project, User
from alma.sync.projection import Change, Difference
from tests.graph.reading import GraphReader, gone, of_type, states
from tests.support.bolt import BoltServer
from tests.support.postgres import free_port

START = datetime(2025, 9, 25, 10, 0, 0, 123456, tzinfo=UTC)


def memory(key: str, minutes: float = 0, **fields: Any) -> Memory:
    moment = START + timedelta(minutes=minutes)
    return Memory(**{"id": key, "content": key, "title": f"Title of {key}", "created_at": moment, **fields})


def related(source: str, relation: str, target: str, **fields: Any) -> MemoryRelationship:
    ends: dict[str, Any] = {"from_memory_id": source, "to_memory_id": target, "relationship_type": relation}
    return MemoryRelationship(id=f"{source}-{relation}-{target}", created_at=START, **ends, **fields)


def pattern(key: str, *memories: str, **fields: Any) -> ProjectPattern:
    named = {"pattern_type": "practice", "pattern_name": key, "pattern_description": f"What {key} is"}
    given = {"project_id": "shop", "created_at": START, "last_used_at": START, "memory_ids": memories}
    return ProjectPattern(id=key, **{**named, **given, **fields})


ANA = User(id="ana", username="ana", created_at=START)
SHOP = Project(id="shop", user_id="ana", name="Shop", language="python", created_at=START)


def is_sound(projection: Neo4jProjection, *records: Record) -> bool:
    return projection.compare(states(*records)) == []


# ---------------------------------------------------------------------- nodes


def test_nodes_have_the_documented_properties(projection: Neo4jProjection, graph: GraphReader) -> None:
    first = memory(
        "a",
        user_id="ana",
        project_id="shop",
        session_id="s",
        memory_type="decision",
        category="architecture",
        importance_score=0.85,
        layer_project=True,
        layer_global=True,
        is_private=True,
    )
    projection.apply(states(ANA, SHOP, first, pattern("p", usage_count=15, success_rate=0.9)))
    assert graph.nodes("Memory")["a"] == {
        "id": "a",
        "user_id": "ana",
        "project_id": "shop",
        "session_id": "s",
        "title": "Title of a",
        "memory_type": "decision",
        "category": "architecture",
        "importance_score": 0.85,
        "layer_assignments": ["project", "global"],
        "created_at": START,
        "updated_at": first.updated_at,
    }
    assert graph.nodes("Project")["shop"] == {
        "id": "shop",
        "user_id": "ana",
        "name": "Shop",
        "language": "python",
        "created_at": START,
    }
    assert graph.nodes("Pattern")["p"] == {
        "id": "p",
        "pattern_type": "practice",
        "pattern_name": "p",
        "description": "What p is",
        "success_rate": 0.9,
        "usage_count": 15,
        "created_at": START,
    }
    assert graph.nodes("User")["ana"] == {"id": "ana", "username": "ana", "created_at": START}
    (found,) = graph("MATCH (m:Memory) WHERE m.created_at > datetime('2025-09-25T09:00:00Z') RETURN m.id AS id")
    assert found == {"id": "a"}


def test_deleted_and_archived_memories_are_left_out_and_come_back(
    projection: Neo4jProjection, graph: GraphReader
) -> None:
    one, other, edge = memory("a", project_id="shop"), memory("b", project_id="shop"), related("a", "resolves", "b")
    projection.apply(states(one, other, edge))
    assert graph.pairs("RESOLVES") == [("a", "b")]
    projection.apply(states(other.replace(is_active=False)))
    assert (list(graph.nodes("Memory")), graph.edges()) == (["a"], [])
    assert is_sound(projection, one, other.replace(is_active=False), edge)
    projection.apply(states(other))
    assert graph.pairs("RESOLVES") == [("a", "b")]
    projection.apply(states(one.replace(is_archived=True)))
    assert list(graph.nodes("Memory")) == ["b"]


# ---------------------------------------------------------------------- relationships


def test_every_documented_relationship_is_written(projection: Neo4jProjection, graph: GraphReader) -> None:
    fields: dict[str, Any] = {"user_id": "ana", "project_id": "shop", "session_id": "s"}
    memories = [memory(key, number, **fields) for number, key in enumerate("abcdefg")]
    memories[0] = memories[0].replace(layer_project=True, importance_score=0.9)
    edges = [
        related("a", "relates_to", "b", strength=0.8, context="Both about database design"),
        related("b", "contradicts", "c"),
        related("c", "builds_on", "d", metadata={"sequence": 3}),
        related("d", "resolves", "e"),
        related("e", "supersedes", "f", context="Updated approach"),
        related("f", "depends_on", "g", strength=0.4),
    ]
    works = pattern("works", "a", "b", success_rate=0.5, usage_count=2, pattern_data_json={"failed_ids": ["b"]})
    fails = pattern("fails", "c", success_rate=0.2, usage_count=5)
    records: list[Record] = [ANA, SHOP, *memories, *edges, works, fails]
    projection.apply(states(*records))
    found = graph.edges()
    assert of_type(found, "RELATES_TO") | {"id": ""} == {
        "id": "",
        "relation": "relates_to",
        "strength": 0.8,
        "context": "Both about database design",
        "auto_detected": False,
    }
    assert of_type(found, "CONTRADICTS")["discovered_at"] == START
    assert of_type(found, "BUILDS_ON")["sequence"] == 3
    assert of_type(found, "RESOLVES")["resolution_date"] == date(2025, 9, 25)
    assert of_type(found, "SUPERSEDES")["reason"] == "Updated approach"
    assert of_type(found, "DEPENDS_ON")["strength"] == 0.4
    assert graph.pairs("BELONGS_TO") == [(key, "shop") for key in "abcdefg"]
    assert of_type(found, "APPLIES_TO") == {"relevance": 0.9}
    assert graph.pairs("DEMONSTRATES") == [("a", "works"), ("b", "works"), ("c", "fails")]
    assert [edge for edge in found if edge[1] == "VALIDATES"] == [("a", "VALIDATES", "works", {"outcome": "success"})]
    assert sorted(graph.pairs("CONTRADICTS_PATTERN")) == [("b", "works"), ("c", "fails")]
    assert ("works", "USED_IN", "shop", {"success": True, "date": date(2025, 9, 25)}) in found
    assert of_type(found, "FAILED_IN") == {"reason": "succeeded in 20% of 5 uses"}
    assert graph.pairs("OWNS") == [("ana", "shop")]
    assert graph.pairs("CREATED") == [("ana", key) for key in "abcdefg"]
    assert sorted(graph.pairs("DISCOVERED")) == [("ana", "fails"), ("ana", "works")]
    assert graph.pairs("TEMPORAL_BEFORE") == [*zip("abcdef", "bcdefg", strict=True)]
    assert len(graph.pairs("SAME_CONTEXT")) == 6
    assert is_sound(projection, *records)


def test_memories_follow_each_other_in_their_session_or_project(
    projection: Neo4jProjection, graph: GraphReader
) -> None:
    here: dict[str, Any] = {"user_id": "ana", "project_id": "shop"}
    records = [
        memory("a", 0, session_id="s", **here),
        memory("c", 30, session_id="s", **here),
        memory("d", 120, session_id="s", **here),
        memory("x", 10, **here),
        memory("y", 20, **here),
        memory("other user", 15, user_id="bob", project_id="shop", session_id="s"),
        memory("other project", 16, user_id="ana", project_id="bank", session_id="s"),
        memory("alone", 17),
        memory("alone too", 18, user_id="ana"),
    ]
    projection.apply(states(*records))
    assert graph.pairs("TEMPORAL_BEFORE") == [("a", "c"), ("c", "d"), ("x", "y")]
    assert graph.pairs("SAME_CONTEXT") == [("a", "c"), ("x", "y")]
    between = memory("b", 10, session_id="s", **here)
    projection.apply(states(between))
    assert graph.pairs("TEMPORAL_BEFORE") == [("a", "b"), ("b", "c"), ("c", "d"), ("x", "y")]
    projection.apply(states(between.replace(session_id=None)))
    assert graph.pairs("TEMPORAL_BEFORE") == [("a", "c"), ("b", "x"), ("c", "d"), ("x", "y")]
    projection.apply(gone(between, records[1]))
    assert graph.pairs("TEMPORAL_BEFORE") == [("a", "d"), ("x", "y")]
    assert graph.pairs("SAME_CONTEXT") == [("x", "y")]


def test_global_memories_apply_to_every_project_of_their_user(projection: Neo4jProjection, graph: GraphReader) -> None:
    everywhere = memory("g", user_id="ana", layer_global=True)
    bank = SHOP.replace(id="bank", name="Bank")
    projection.apply(states(everywhere, SHOP))
    projection.apply(states(bank))
    assert graph.pairs("APPLIES_TO") == [("g", "bank"), ("g", "shop")]
    projection.apply(states(bank.replace(user_id="bob")))
    assert graph.pairs("APPLIES_TO") == [("g", "shop")]
    projection.apply(states(everywhere.replace(layer_global=False)))
    assert graph.pairs("APPLIES_TO") == []


# ---------------------------------------------------------------------- order, repetition and concurrency


def _example(chance: random.Random) -> list[Record]:
    """Records that refer to each other."""
    users = [User(id=key, username=key, created_at=START) for key in ("ana", "bob")]
    projects = [Project(id=key, user_id=chance.choice(("ana", "bob")), name=key) for key in ("shop", "bank")]
    memories = [
        memory(
            f"m{number}",
            chance.randrange(300),
            user_id=chance.choice(("ana", "bob", None)),
            project_id=chance.choice(("shop", "bank", None)),
            session_id=chance.choice(("s", None)),
            layer_global=chance.random() < 0.2,
            is_active=chance.random() < 0.9,
        )
        for number in range(12)
    ]
    ids = [each.id for each in memories]
    relations = ("relates_to", "resolves", "temporal_before", "same_context", "gehört_zu", "hängt_ab")
    chosen = {(*chance.sample(ids, 2), chance.choice(relations)) for _ in range(15)}
    edges = [related(source, relation, target) for source, target, relation in sorted(chosen)]
    patterns = [pattern(f"p{n}", *chance.sample(ids, 3), success_rate=chance.random()) for n in range(3)]
    return [*users, *projects, *memories, *edges, *patterns]


def _changed(record: Record, chance: random.Random) -> Change:
    if chance.random() < 0.4:
        return Change(type(record), str(record.key), None)
    return Change(type(record), str(record.key), record)


@pytest.mark.parametrize("seed", range(4))
def test_the_graph_depends_on_the_records_alone_not_on_their_order(
    projection: Neo4jProjection, graph: GraphReader, seed: int
) -> None:
    chance = random.Random(seed)
    records = _example(chance)
    versions = _example(chance)
    steps = [*states(*versions), *states(*records)]
    chance.shuffle(steps)
    final = {(each.cls, each.record_id): each for each in (_changed(record, chance) for record in records)}
    known = {(type(each), str(each.key)) for each in records}
    final |= {(each.cls, each.record_id): each for each in gone(*versions) if (each.cls, each.record_id) not in known}
    last = list(final.values())
    chance.shuffle(last)
    for batch in _batches([*steps, *last], chance):
        projection.apply(batch)
    gradual = graph.edges(), [graph.nodes(label) for label in ("Memory", "Project", "Pattern", "User")]
    assert projection.compare(last) == []
    projection.clear()
    projection.apply(last)
    at_once = graph.edges(), [graph.nodes(label) for label in ("Memory", "Project", "Pattern", "User")]
    assert gradual == at_once


def _batches(changes: Sequence[Change], chance: random.Random) -> list[list[Change]]:
    size = chance.choice((7, 20))
    return [list(changes[start : start + size]) for start in range(0, len(changes), size)]


def test_relays_at_once_leave_the_same_graph(projection: Neo4jProjection, graph: GraphReader, bolt: BoltServer) -> None:
    records = [
        ANA,
        SHOP,
        *(memory(f"m{n}", n, user_id="ana", project_id="shop", session_id="s") for n in range(8)),
        *(related(f"m{n}", "builds_on", "m7") for n in range(7)),
    ]
    with (
        Neo4jProjection(bolt.uri, bolt.username, bolt.password, bolt.database) as another,
        ThreadPoolExecutor(2) as pool,
    ):
        another.prepare()
        for done in [
            pool.submit(_until_applied, each, states(*part))
            for each, part in ((projection, records[::2]), (another, records[1::2]))
        ]:
            done.result()
    assert is_sound(projection, *records)
    assert len(graph.pairs("BUILDS_ON")) == len(graph.pairs("TEMPORAL_BEFORE")) == 7


def _until_applied(projection: Neo4jProjection, changes: Sequence[Change]) -> None:
    """As a relay does it: a batch that fails is applied again."""
    for _ in range(20):
        try:
            return projection.apply(changes)
        except StorageError:
            continue
    raise AssertionError("it was never applied")


# ---------------------------------------------------------------------- comparing


def _found(projection: Neo4jProjection, *records: Record) -> dict[str, Difference]:
    return {each.record_id: each.difference for each in projection.compare(states(*records))}


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        ("MATCH (m:Memory {id: 'a'}) DETACH DELETE m", {"a": Difference.MISSING}),
        ("MATCH (m:Memory {id: 'a'}) SET m.title = 'forged'", {"a": Difference.CORRUPTED}),
        ("MATCH (m:Memory {id: 'a'}) SET m.extra = 1", {"a": Difference.CORRUPTED}),
        ("MATCH (m:Memory {id: 'a'}) SET m.updated_at = datetime('2020-01-01T00:00:00Z')", {"a": Difference.STALE}),
        ("MATCH (:Memory)-[r:BELONGS_TO]->() DELETE r", {"a": Difference.CORRUPTED, "b": Difference.CORRUPTED}),
        ("MATCH (:Memory)-[r:RESOLVES]->() DELETE r", {"a-resolves-b": Difference.MISSING}),
        ("MATCH (:Memory)-[r:RESOLVES]->() SET r.strength = 0.1", {"a-resolves-b": Difference.CORRUPTED}),
        (
            "MATCH (b:Memory {id: 'b'}), (a:Memory {id: 'a'}) CREATE (b)-[:SUPERSEDES {id: 'x'}]->(a)",
            {"b": Difference.CORRUPTED},
        ),
        ("MATCH (:Memory)-[r:DEMONSTRATES]->() DELETE r", {"p": Difference.CORRUPTED}),
        ("MATCH (:Memory)-[r:TEMPORAL_BEFORE]->() DELETE r", {"a": Difference.CORRUPTED}),
        ("MATCH ()-[r:OWNS]->() DELETE r", {"shop": Difference.CORRUPTED}),
        ("MATCH (u:User) SET u.username = 'eve'", {"ana": Difference.CORRUPTED}),
    ],
)
def test_damage_is_found_and_repaired(
    projection: Neo4jProjection, graph: GraphReader, damage: str, found: dict[str, Difference]
) -> None:
    here: dict[str, Any] = {"user_id": "ana", "project_id": "shop", "session_id": "s"}
    records = [ANA, SHOP, memory("a", **here), memory("b", 5, **here), related("a", "resolves", "b"), pattern("p", "b")]
    projection.apply(states(*records))
    sound = graph.edges()
    graph(damage)
    seen = _found(projection, *records)
    assert {key: seen.get(key) for key in found} == found
    projection.apply(states(*[record for record in records if record.key in seen]))
    assert is_sound(projection, *records)
    assert graph.edges() == sound


def test_what_the_store_does_not_have_is_orphaned(projection: Neo4jProjection) -> None:
    one, other, edge = memory("a"), memory("b"), related("a", "resolves", "b")
    projection.apply(states(one, other, edge, ANA))
    assert (projection.count(Memory), projection.count(MemoryRelationship), projection.count(User)) == (2, 1, 1)
    assert projection.held(Memory, None, 1) == ["a"]
    assert projection.held(Memory, "a", 5) == ["b"]
    assert projection.held(MemoryRelationship, None, 5) == ["a-resolves-b"]
    orphans = gone(one, edge)
    assert {each.difference for each in projection.compare(orphans)} == {Difference.ORPHANED}
    projection.apply(orphans)
    assert (projection.compare(orphans), projection.held(MemoryRelationship, None, 5)) == ([], [])
    projection.clear()
    assert [projection.count(cls) for cls in projection.kinds] == [0] * 5


# ---------------------------------------------------------------------- the schema and the server


@pytest.mark.parametrize(
    ("damage", "cls"),
    [
        ("CREATE (:Memory {title: 'x'})", Memory),
        ("CREATE (:Memory {id: 7})", Memory),
        ("MATCH (m:Memory {id: 'b'}) REMOVE m.id", Memory),
        ("MATCH (p:Project) REMOVE p.id", Project),
        (
            "CREATE (:AlmaLink {key: 'q', source: 'Memory:a', target: 'Memory:c', type: 'RELATES_TO'})",
            MemoryRelationship,
        ),
        (
            "CREATE (:AlmaLink {key: 'q', owner: 'project_pattern:x', source: 'Memory:a', target: 'Pattern:x'})",
            ProjectPattern,
        ),
    ],
)
def test_what_has_no_id_of_a_record_is_listed_and_removed(
    projection: Neo4jProjection, graph: GraphReader, damage: str, cls: type[Record]
) -> None:
    here: dict[str, Any] = {"project_id": "shop", "session_id": "s"}
    memories = [memory(key, number, **here) for number, key in enumerate("abc")]
    records = [SHOP, *memories, related("a", "resolves", "b"), pattern("p", "b")]
    projection.apply(states(*records))
    sound = graph.edges()
    graph(damage)
    known = {str(record.key) for record in records}
    (strange,) = [key for key in projection.held(cls, None, 10) if key not in known]
    assert strange in projection.held(cls, strange[:-1], 10)
    projection.apply([Change(cls, strange, None), *states(*records)])
    assert {*projection.held(cls, None, 10)} <= known
    assert is_sound(projection, *records)
    assert graph.edges() == sound
    assert graph("MATCH (l:AlmaLink) WHERE l.key = 'q' RETURN l.key AS key") == []


def test_of_two_nodes_with_the_same_id_one_is_removed(projection: Neo4jProjection, graph: GraphReader) -> None:
    (constraint,) = (each for each in MIGRATIONS[0].statements if "project_id_unique" in each)
    projection.apply(states(ANA, SHOP))
    graph("DROP CONSTRAINT project_id_unique IF EXISTS")
    try:
        graph("CREATE (:Project {id: 'shop', name: 'another'})")
        assert _found(projection, SHOP) == {"shop": Difference.MISSING}
        (strange,) = [key for key in projection.held(Project, None, 10) if key != "shop"]
        projection.apply([*states(SHOP), Change(Project, strange, None)])
        assert is_sound(projection, ANA, SHOP)
        assert (projection.held(Project, None, 10), projection.count(Project)) == (["shop"], 1)
    finally:
        projection.clear()
        graph(constraint)


def test_damaged_links_are_found_and_repaired(projection: Neo4jProjection, graph: GraphReader) -> None:
    records = [memory("a"), memory("b"), related("a", "resolves", "b")]
    projection.apply(states(*records))
    sound = graph.edges()
    for change in ("REMOVE l.key", "REMOVE l.source", "SET l.type = 'FOO'", "SET l.owner = 'memory_relationship:x'"):
        graph(f"MATCH (l:AlmaLink) {change}")
        assert "a-resolves-b" in _found(projection, *records)
        strange = [key for key in projection.held(MemoryRelationship, None, 10) if key != "a-resolves-b"]
        projection.apply([*(Change(MemoryRelationship, key, None) for key in strange), *states(*records)])
        assert is_sound(projection, *records)
        assert projection.count(MemoryRelationship) == 1
        assert graph.edges() == sound


def test_migrations_are_applied_once_by_many(projection: Neo4jProjection, graph: GraphReader) -> None:
    graph("MATCH (m:Migration) DETACH DELETE m")
    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(projection.prepare) for _ in range(3)]:
            done.result()
    rows = graph(
        "MATCH (m:Migration) RETURN m.version AS version, m.name AS name, m.checksum AS checksum ORDER BY version"
    )
    assert rows == [{"version": m.version, "name": m.name, "checksum": m.checksum} for m in MIGRATIONS]
    first = graph("MATCH (m:Migration) RETURN m.applied_at AS at ORDER BY m.version")
    projection.prepare()
    assert graph("MATCH (m:Migration) RETURN m.applied_at AS at ORDER BY m.version") == first
    names = {row["name"] for row in graph("SHOW INDEXES YIELD name RETURN name")}
    assert {"memory_user_id", "memory_type", "pattern_success", "rel_strength", "rel_applies_relevance"} <= names


def test_a_changed_or_newer_migration_is_refused(projection: Neo4jProjection, graph: GraphReader) -> None:
    graph("MATCH (m:Migration {version: 1}) SET m.checksum = 'other'")
    with pytest.raises(StorageError, match="another migration 1"):
        projection.prepare()
    graph("MATCH (m:Migration {version: 1}) DELETE m")
    graph("CREATE (:Migration {version: 99, name: 'later', checksum: 'x'})")
    with pytest.raises(StorageError, match="newer version of ALMA"):
        projection.prepare()
    graph("MATCH (m:Migration {version: 99}) DELETE m")
    projection.prepare()


def test_a_server_that_is_down_or_refuses_is_a_storage_error(bolt: BoltServer) -> None:
    place = f"bolt://127.0.0.1:{free_port('127.0.0.1')}"
    with Neo4jProjection(place, timeout_seconds=0.5) as down, pytest.raises(StorageError, match="cannot be reached"):
        down.ping()
    with (
        Neo4jProjection(bolt.uri, bolt.username, "wrong", bolt.database) as refused,
        pytest.raises(StorageError, match="refuses this username and password") as caught,
    ):
        refused.ping()
    assert "wrong" not in str(caught.value)
