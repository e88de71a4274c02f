"""Walks proposed by a graph server give the answers of the store, whatever the server has."""

from __future__ import annotations

import itertools
import random
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alma import ALMA, clock
from alma.bootstrap import open_storage
from alma.errors import ConfigurationError
from alma.graph.neo4j_projection import Neo4jProjection
from alma.graph.neo4j_walks import Neo4jWalks
from alma.graph.walks import Along
from alma.memory.patterns import Patterns
from alma.memory.relationships import Relationships
from alma.memory.walking import related_among
from alma.model.governance import Attribution
from alma.model.memory import Memory, MemoryRelationship
from alma.model.record import Record
from alma.model.scope import Scope, visible
from alma.storage.base import StorageBackend
from alma.sync.manager import DataSyncManager
from tests.graph.reading import GraphReader, gone, states
from tests.support.bolt import BoltServer
from tests.support.examples import examples

RELATIONS = ("builds_on", "supersedes", "relates_to", "contradicts", "gehört_zu", "hängt_ab")
_ALL = Along()
_examples = itertools.count()


@pytest.fixture(scope="module")
def walks(bolt: BoltServer) -> Iterator[Neo4jWalks]:
    with Neo4jWalks(bolt.uri, bolt.username, bolt.password, bolt.database, timeout_seconds=60) as walks:
        yield walks


@pytest.fixture
def store(sqlite_path: Path) -> Iterator[StorageBackend]:
    with open_storage(sqlite_path, 4) as store:
        yield store


def a_graph(chance: random.Random, mark: str) -> list[Record]:
    """Memories of two users in two projects, some of which not everybody may see, and their relationships."""
    memories = [
        Memory(
            id=f"{mark}-{number}",
            content=f"note {number}",
            user_id=chance.choice(("ana", "bob")),
            project_id=chance.choice((mark, mark, mark, "bank")),
            session_id=chance.choice((None, "s")),
            is_private=chance.random() < 0.2,
            is_archived=chance.random() < 0.1,
            is_active=chance.random() < 0.9,
        )
        for number in range(12)
    ]
    ids = [each.id for each in memories]
    number = chance.randrange(30)
    named = {(chance.choice(ids), chance.choice(ids), chance.choice(RELATIONS)) for _ in range(number)}
    edges = [
        MemoryRelationship(
            from_memory_id=source,
            to_memory_id=target,
            relationship_type=relation,
            strength=chance.choice((0.2, 0.8, 1.0)),
        )
        for source, target, relation in sorted(named)
        if source != target
    ]
    return [*memories, *edges]


def _asked(relationships: Relationships, start: str, end: str, scope: Scope, **given: Any) -> Any:
    try:
        return (
            relationships.neighbours(start, scope, **given),
            relationships.paths(start, end, scope, **{**given, "limit": 10}),
        )
    except LookupError as exc:
        return str(exc)


@examples(25)
@given(data=st.data())
def test_a_walk_gives_the_answer_of_the_store_whatever_the_server_has(
    walks: Neo4jWalks, opened: Neo4jProjection, store: StorageBackend, data: st.DataObject
) -> None:
    mark = f"shop{next(_examples)}"
    chance = random.Random(data.draw(st.integers(0, 1 << 30)))
    before, records = a_graph(chance, mark), a_graph(chance, mark)
    store.save_many([each for each in records if isinstance(each, Memory)])
    store.save_many([each for each in records if isinstance(each, MemoryRelationship)])
    # A server that has caught up, that has a part of it, and that has what the store had earlier.
    has = data.draw(st.sampled_from(("everything", "a part", "an earlier state")))
    sent = {"everything": records, "a part": records[::2], "an earlier state": [*records, *before]}[has]
    opened.apply(states(*sent))
    alone, together = Relationships(store), Relationships(store, graph=walks)
    ids = [each.id for each in records if isinstance(each, Memory)]
    given: dict[str, Any] = {
        "direction": data.draw(st.sampled_from(("out", "in", "both"))),
        "max_depth": data.draw(st.integers(1, 5)),
        "relations": data.draw(st.sampled_from((None, None, ["builds_on", "relates_to"], ["gehört_zu"]))),
        "min_strength": data.draw(st.sampled_from((0.0, 0.5))),
        "limit": data.draw(st.sampled_from((2, 100))),
        "by": Attribution(user_id=data.draw(st.sampled_from((None, "ana", "bob")))),
    }
    scopes = Scope(project_id=mark), Scope(user_id="ana", project_id=mark), Scope(user_id="ana")
    for scope in (*scopes, Scope.everywhere()):
        start, end = chance.sample(ids, 2)
        found = _asked(alone, start, end, scope, **given)
        if not isinstance(found, str) and given["relations"] is None:
            shown = visible(scope, clock.now(), given["by"].user_id)
            along = Along(None, given["min_strength"]).predicate
            way, depth, limit = given["direction"], given["max_depth"], given["limit"]
            reached = store.reachable([start], scope, shown, along, way, depth, limit)
            assert [(each.memory.id, each.depth) for each in found[0]] == [(each.id, each.depth) for each in reached]
        assert _asked(together, start, end, scope, **given) == found


def test_the_server_is_asked_and_saves_reads_of_the_store(
    walks: Neo4jWalks, opened: Neo4jProjection, store: StorageBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    memories = [Memory(id=f"chain-{number:02}", content="x", project_id="chain") for number in range(13)]
    edges = [
        MemoryRelationship(from_memory_id=one.id, to_memory_id=other.id, relationship_type="builds_on")
        for one, other in itertools.pairwise(memories)
    ]
    store.save_many(memories)
    store.save_many(edges)
    scope, relationships = Scope(project_id="chain"), Relationships(store, graph=walks)

    def reads() -> int:
        counted = 0
        with store.snapshot() as tx:
            kept = type(tx).values

            def values(*args: Any, **options: Any) -> Any:
                nonlocal counted
                counted += 1
                return kept(*args, **options)

            with monkeypatch.context() as patch:
                patch.setattr(type(tx), "values", values)
                found = relationships.neighbours("chain-00", scope, max_depth=12)
        assert [each.memory.id for each in found] == [each.id for each in memories[1:]]
        return counted

    without = reads()
    opened.apply(states(*memories, *edges))
    assert reads() <= 4 < without


def test_insights_are_those_of_the_store_while_the_server_lags_and_after_it_lost_everything(
    bolt: BoltServer, projection: Neo4jProjection, graph: GraphReader, store: StorageBackend, walks: Neo4jWalks
) -> None:
    told = [
        Memory(
            id=f"i-{project}-{number}",
            content=f"Retry calls that time out, in {project}",
            title="Retry with backoff",
            memory_type="pattern",
            category="architecture",
            user_id="ana",
            project_id=project,
        )
        for project in ("shop", "bank")
        for number in range(2)
    ]
    store.save_many(told)
    with DataSyncManager(store, [Neo4jProjection(bolt.uri, bolt.username, bolt.password, bolt.database)]) as sync:
        alone, together = Patterns(store), Patterns(store, graph=walks)

        def asks_the_server() -> bool:
            with store.snapshot() as tx:
                return related_among(tx, walks, "ana", ["contradicts"]) is not None

        def same() -> bool:
            found = alone.get_cross_project_insights("ana", min_success_rate=0.0)
            assert found
            return together.get_cross_project_insights("ana", min_success_rate=0.0) == found

        assert same()
        assert not asks_the_server()
        sync.run()
        assert graph.nodes("Memory").keys() == {each.id for each in told}
        assert same()
        assert asks_the_server()
        store.save(
            MemoryRelationship(
                from_memory_id=told[0].id, to_memory_id=told[2].id, relationship_type="contradicts", strength=0.9
            )
        )
        assert same()
        assert not asks_the_server()
        sync.run()
        assert same()
        assert asks_the_server()
        projection.clear()
        assert same()
        assert not asks_the_server()


def test_what_an_untrusted_source_writes_into_the_graph_is_not_believed(
    walks: Neo4jWalks, opened: Neo4jProjection, graph: GraphReader, store: StorageBackend
) -> None:
    mine = [Memory(id=f"mine-{number}", content="x", project_id="shop", user_id="ana") for number in range(2)]
    secret = Memory(id="secret", content="x", project_id="shop", user_id="bob", is_private=True)
    store.save_many([*mine, secret])
    opened.apply(states(*mine, secret))
    graph(
        "MATCH (a:Memory {id: 'mine-0'}), (b:Memory {id: 'secret'}), (c:Memory {id: 'mine-1'}) "
        "CREATE (a)-[:BUILDS_ON {id: 'x', relation: 'builds_on', strength: 1.0}]->(b) "
        "CREATE (b)-[:BUILDS_ON {id: 'y', relation: 'builds_on', strength: 1.0}]->(c)"
    )
    relationships, scope = Relationships(store, graph=walks), Scope(project_id="shop")
    assert relationships.neighbours("mine-0", scope, max_depth=3, by=Attribution(user_id="ana")) == []
    assert relationships.paths("mine-0", "mine-1", scope, by=Attribution(user_id="ana")) == []
    opened.apply(gone(*mine, secret))


def test_a_server_that_hangs_is_asked_once(store: StorageBackend) -> None:
    memories = [Memory(id=key, content="x", project_id="shop") for key in "abc"]
    store.save_many(memories)
    store.save_many(
        [
            MemoryRelationship(from_memory_id=one, to_memory_id=other, relationship_type="builds_on")
            for one, other in ("ab", "bc")
        ]
    )
    with socket.create_server(("127.0.0.1", 0)) as silent:
        # It accepts connections and never answers.
        uri = f"bolt://127.0.0.1:{silent.getsockname()[1]}"
        with Neo4jWalks(uri, timeout_seconds=0.2, retry_after_seconds=600) as walks:
            relationships, scope = Relationships(store, graph=walks), Scope(project_id="shop")
            assert [each.memory.id for each in relationships.neighbours("a", scope, max_depth=3)] == ["b", "c"]
            for _ in range(20):
                assert len(relationships.paths("a", "c", scope)) == 1
        silent.setblocking(False)
        connection, _ = silent.accept()
        with connection, pytest.raises(BlockingIOError):
            silent.accept()


def test_the_configuration_chooses_the_server(bolt: BoltServer, walks: Neo4jWalks, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"graph is neo4j, but neo4j\.uri is missing"):
        ALMA.quickstart(tmp_path / "a.db", embedding_provider="mock", graph="neo4j")
    server = {"uri": bolt.uri, "username": bolt.username, "password": bolt.password}
    server |= {} if bolt.database is None else {"database": bolt.database}
    with ALMA.quickstart(tmp_path / "a.db", embedding_provider="mock", graph="neo4j", neo4j=server) as alma:
        alma.storage.save_many([Memory(id=f"c-{key}", content="x", project_id="default") for key in "abc"])
        alma.relationships.relate("c-a", "c-b", "builds_on", alma.scope())
        alma.relationships.relate("c-b", "c-c", "builds_on", alma.scope())
        assert [ran.problem for ran in alma.sync.run()] == [None]
        assert isinstance(alma.graph, Neo4jWalks)
        # That of the configuration gives up after two seconds, which a busy machine may need.
        assert walks.around("c-a", alma.scope(), _ALL, "out", 2, 10) == ["c-b", "c-c"]
        found = alma.relationships.neighbours("c-a", alma.scope(), max_depth=2)
        assert [each.memory.id for each in found] == ["c-b", "c-c"]
