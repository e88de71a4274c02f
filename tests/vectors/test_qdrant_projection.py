"""The projection onto Qdrant: every change arrives, every difference is found, and models move without a gap."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from qdrant_client import QdrantClient
from qdrant_client import models as m

from alma.errors import ConfigurationError, StorageError, ValidationError
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.memory import Memory, ProjectPattern
from alma.model.record import Record
from alma.model.vector import Vector
from alma.storage.base import RecordVector, StorageBackend
from alma.sync import Change, DataSyncManager, Difference
from alma.testing import builders as make
from alma.testing.builders import EVERYWHERE
from alma.vectors.qdrant import QdrantProjection
from tests.support.qdrant import QdrantNode

NOON = datetime(2025, 9, 25, 10, 0, tzinfo=UTC)
EAST, NORTH = [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]


def change(record: Record, *vectors: list[float], model: str = "small") -> Change:
    parts = (RecordVector(record.key, model, part, Vector(each)) for part, each in enumerate(vectors))
    return Change(type(record), record.key, record, tuple(parts))


def payloads(client: QdrantClient, collection: str) -> list[dict[str, Any]]:
    points, _ = client.scroll(collection, limit=100)
    return [point.payload or {} for point in points]


def synchronized(storage: StorageBackend, projection: QdrantProjection) -> DataSyncManager:
    sync = DataSyncManager(storage, [projection])
    (ran,) = sync.run()
    assert (ran.problem, ran.failed, ran.pending) == (None, 0, 0)
    return sync


def test_a_memory_has_the_documented_payload(projection: QdrantProjection, client: QdrantClient, prefix: str) -> None:
    memory = make.a_memory(
        id="0f0e9a1c-55f2-4b7e-9b57-0a4b3c2d1e0f",
        user_id="ana",
        project_id="shop",
        session_id="s1",
        memory_type="decision",
        category="architecture",
        tags=["schema", "database"],
        importance_score=0.85,
        layer_project=True,
        layer_global=True,
        title="Database schema design decision",
        summary="Decided to use hybrid storage",
        created_at=NOON,
        updated_at=NOON,
    )
    projection.apply([change(memory, [0.0, 3.0, 0.0, 4.0])])
    (point,), _ = client.scroll(f"{prefix}_memory_embeddings", with_vectors=True)
    assert point.id == memory.id
    assert point.vector == pytest.approx([0.0, 0.6, 0.0, 0.8])
    documented = {
        "memory_id": memory.id,
        "user_id": "ana",
        "project_id": "shop",
        "session_id": "s1",
        "memory_type": "decision",
        "category": "architecture",
        "tags": ["database", "schema"],
        "importance_score": 0.85,
        "layer_assignments": ["project", "global"],
        "title": "Database schema design decision",
        "summary": "Decided to use hybrid storage",
        "created_at": "2025-09-25T10:00:00.000000Z",
        "updated_at": "2025-09-25T10:00:00.000000Z",
    }
    assert point.payload is not None
    assert documented.items() <= point.payload.items()


def test_the_documented_search_works(projection: QdrantProjection, client: QdrantClient, prefix: str) -> None:
    layers = {"layer_project": True, "importance_score": 0.7}
    projection.apply(
        [
            change(make.a_memory(id="found", user_id="ana", **layers), EAST),
            change(make.a_memory(id="of bob", user_id="bob", **layers), EAST),
            change(make.a_memory(id="far", user_id="ana", **layers), NORTH),
            change(make.a_memory(id="dull", user_id="ana", layer_project=True, importance_score=0.1), EAST),
        ]
    )
    chosen = m.Filter(
        must=[
            m.FieldCondition(key="user_id", match=m.MatchValue(value="ana")),
            m.FieldCondition(key="layer_assignments", match=m.MatchAny(any=["project", "global"])),
        ],
        should=[
            m.FieldCondition(key="importance_score", range=m.Range(gte=0.5)),
            m.FieldCondition(key="memory_type", match=m.MatchValue(value="decision")),
        ],
    )
    found = client.query_points(
        f"{prefix}_memory_embeddings", query=EAST, query_filter=chosen, limit=50, score_threshold=0.7
    )
    assert [(point.payload or {})["memory_id"] for point in found.points] == ["found"]


def test_every_kind_has_a_collection_with_cosine_and_indexes(
    qdrant: QdrantNode, client: QdrantClient, prefix: str
) -> None:
    with QdrantProjection(qdrant.url, prefix=prefix, model="small", dims=4) as projection:
        projection.prepare()
        projection.prepare()
        _require_documented_collections(client, prefix)
        client.delete_payload_index(f"{prefix}_memory_embeddings", "user_id")
        projection.prepare()
        _require_documented_collections(client, prefix)
        projection.clear()


def _require_documented_collections(client: QdrantClient, prefix: str) -> None:
    aliases = {each.alias_name: each.collection_name for each in client.get_aliases().aliases}
    for kind in ("memory", "pattern", "heuristic", "outcome", "user_preference", "domain_knowledge", "anti_pattern"):
        name = f"{prefix}_{kind}_embeddings"
        assert aliases[name] == aliases[f"{name}.small"]
        assert client.get_collection(name).config.params.vectors == m.VectorParams(size=4, distance=m.Distance.COSINE)
    schema = client.get_collection(f"{prefix}_memory_embeddings").payload_schema
    keywords = ("memory_id", "user_id", "project_id", "session_id", "memory_type", "category", "tags")
    assert {schema[name].data_type for name in (*keywords, "layer_assignments")} == {"keyword"}
    assert schema["importance_score"].data_type == "float"
    assert {schema[name].data_type for name in ("created_at", "updated_at")} == {"datetime"}
    of_patterns = client.get_collection(f"{prefix}_pattern_embeddings").payload_schema
    assert {name: each.data_type.value for name, each in of_patterns.items()} == {
        **dict.fromkeys(("pattern_id", "pattern_type", "pattern_name", "project_ids"), "keyword"),
        "success_rate": "float",
        "usage_count": "integer",
        "created_at": "datetime",
    }


def test_all_kinds_reach_qdrant_and_leave_it(
    storage: StorageBackend, projection: QdrantProjection, client: QdrantClient, prefix: str
) -> None:
    records: list[Record] = [
        make.a_memory(id="m", embedding=EAST),
        make.a_pattern(id="p", project_id="shop", success_rate=0.5, usage_count=3, embedding=EAST),
        make.a_heuristic(id="h", embedding=EAST),
        make.an_outcome(id="o", embedding=EAST),
        make.a_preference(id="u", embedding=EAST),
        make.some_knowledge(id="d", embedding=EAST),
        make.an_anti_pattern(id="a", embedding=EAST),
    ]
    storage.save_many([*records, make.a_memory(id="without a vector")])
    sync = synchronized(storage, projection)
    (pattern,) = payloads(client, f"{prefix}_pattern_embeddings")
    assert (pattern["pattern_id"], pattern["project_ids"]) == ("p", ["shop"])
    assert (pattern["success_rate"], pattern["usage_count"]) == (0.5, 3)
    assert [projection.count(cls) for cls in projection.kinds] == [1] * 7
    for each in records:
        storage.delete(type(each), [each.key], EVERYWHERE)
    sync.run()
    assert [projection.held(cls, None, 10) for cls in projection.kinds] == [[]] * 7
    assert sync.validate_data_integrity().is_consistent


@pytest.mark.parametrize("seed", range(3))
def test_the_collections_depend_on_the_records_alone_not_on_their_order(
    projection: QdrantProjection, seed: int
) -> None:
    chance = random.Random(seed)
    kinds: list[Any] = [make.a_memory, make.a_heuristic, make.a_pattern]

    def state(number: int) -> Change:
        build = kinds[number % 3]
        record = build(id=f"{number:02}", **({"pattern_name": f"{number}"} if build is make.a_pattern else {}))
        vectors = [[chance.gauss() for _ in range(4)] for _ in range(chance.randint(0, 4))]
        if chance.random() < 0.3:
            return Change(type(record), record.key, None)
        return change(record, *vectors, model=chance.choice(["small", "other/model"]))

    steps = [state(number) for number in range(24) for _ in range(3)]
    chance.shuffle(steps)
    last = {(each.cls, each.record_id): each for each in steps}
    while steps:
        size = chance.randint(1, 9)
        batch = {(each.cls, each.record_id): each for each in steps[:size]}
        del steps[:size]
        projection.apply(list(batch.values()))
    assert projection.compare(list(last.values())) == []
    for cls in (Memory, Heuristic, ProjectPattern):
        ids = sorted(key for kind, key in last if kind is cls and last[kind, key].record and last[kind, key].vectors)
        assert projection.held(cls, None, 100) == ids
        assert projection.count(cls) == len(ids)
        walked, after = [], None
        while page := projection.held(cls, after, 2):
            walked += page
            after = page[-1]
        assert walked == ids


def test_every_difference_is_found_and_repaired(
    storage: StorageBackend, projection: QdrantProjection, client: QdrantClient, prefix: str
) -> None:
    names = ("missing", "stale", "payload", "vector", "renamed", "passage", "sound")
    storage.save_many([make.a_memory(id=name, title=name, embedding=EAST) for name in names])
    sync = synchronized(storage, projection)
    collection = f"{prefix}_memory_embeddings"
    ids = {(point.payload or {})["memory_id"]: point.id for point in client.scroll(collection, limit=100)[0]}
    client.delete(collection, m.PointIdsList(points=[ids["missing"]]))
    projection.apply([change(make.a_memory(id="stale", title="older"), EAST, model=storage.embedding_model)])
    client.set_payload(collection, {"user_id": "mallory"}, [ids["payload"]])
    client.update_vectors(collection, [m.PointVectors(id=ids["vector"], vector=NORTH)])
    client.set_payload(collection, {"memory_id": "nothing known"}, [ids["renamed"]])
    extra = {"memory_id": "passage", "part": 7}
    client.upsert(collection, [m.PointStruct(id=7, vector=NORTH, payload=extra)])
    client.upsert(collection, [m.PointStruct(id=8, vector=NORTH, payload={"memory_id": "orphan"})])
    unnamed: list[tuple[Any, dict[str, Any]]] = [
        (9, {}),
        (str(uuid4()), {}),
        (str(uuid4()), {"memory_id": ["sound"]}),
        (str(uuid4()), {"memory_id": 5}),
    ]
    client.upsert(collection, [m.PointStruct(id=key, vector=NORTH, payload=each) for key, each in unnamed])
    report = sync.validate_data_integrity()
    found = {issue.record_id: issue.difference for issue in report.issues}
    expected = {
        "missing": Difference.MISSING,
        "stale": Difference.STALE,
        "payload": Difference.CORRUPTED,
        "vector": Difference.CORRUPTED,
        "renamed": Difference.CORRUPTED,
        "passage": Difference.STALE,
        "orphan": Difference.ORPHANED,
    }
    assert expected.items() <= found.items()
    assert set(found.values()) == {*expected.values()}
    repaired = sync.repair_inconsistencies(report.issues)
    assert repaired.success, repaired
    after = sync.validate_data_integrity()
    assert after.is_consistent, after
    assert client.count(collection).count == projection.count(Memory) == len(names)


def test_a_collection_for_vectors_of_another_length_is_made_again(
    storage: StorageBackend, qdrant: QdrantNode, client: QdrantClient, prefix: str
) -> None:
    storage.save(make.a_memory(embedding=EAST))
    with QdrantProjection(qdrant.url, prefix=prefix, model=storage.embedding_model, dims=8) as another:
        another.prepare()
    with QdrantProjection(qdrant.url, prefix=prefix, model=storage.embedding_model, dims=4) as projection:
        sync = synchronized(storage, projection)
        assert sync.validate_data_integrity().is_consistent
        assert client.count(f"{prefix}_memory_embeddings").count == 1
        projection.clear()


def test_a_record_can_be_as_large_as_the_store_allows(projection: QdrantProjection) -> None:
    # More than the server takes in one request.
    states = [change(make.a_memory(id=f"{n}", title="x" * (1 << 20)), EAST) for n in range(40)]
    projection.apply(states)
    assert projection.compare(states) == []


def test_vectors_of_any_size_are_kept(projection: QdrantProjection) -> None:
    states = [
        change(make.a_memory(id="zero"), [0.0] * 4),
        change(make.a_memory(id="huge"), [3e38, 3e38, 0.0, -3e38]),
        change(make.a_memory(id="tiny"), [1e-38, 0.0, 0.0, 1e-40]),
        change(make.a_memory(id="große Änderung 猫", tags=["ß", "猫"]), EAST),
    ]
    projection.apply(states)
    assert projection.compare(states) == []


def test_one_record_never_takes_the_point_of_another(projection: QdrantProjection) -> None:
    from alma.vectors.qdrant_points import point_id

    forged = [change(make.a_memory(id=key), EAST) for key in ("victim", point_id("victim"), point_id("victim", 1))]
    projection.apply(forged)
    assert projection.compare(forged) == []
    assert projection.count(Memory) == 3


def test_the_alias_moves_to_the_new_model_when_its_collection_is_complete(
    qdrant: QdrantNode, client: QdrantClient, prefix: str
) -> None:
    memories = [make.a_memory(id=f"{n}") for n in range(3)]
    old = [RecordVector(each.id, "old", 0, Vector(EAST)) for each in memories]
    new = [RecordVector(each.id, "new", 0, Vector([1.0, 0.0])) for each in memories]
    with QdrantProjection(qdrant.url, prefix=prefix, model="old", dims=4) as projection:
        projection.apply([Change(Memory, x.id, x, (v,)) for x, v in zip(memories, old, strict=True)])
    name = f"{prefix}_memory_embeddings"

    def current() -> str:
        aliases = {each.alias_name: each.collection_name for each in client.get_aliases().aliases}
        return next(model for model in ("old", "new") if aliases[name] == aliases.get(f"{name}.{model}"))

    with QdrantProjection(qdrant.url, prefix=prefix, model="new", dims=2) as projection:
        seen = []
        for memory, *vectors in zip(memories, old, new, strict=True):
            seen.append(current())
            projection.apply([Change(Memory, memory.id, memory, tuple(vectors))])
        assert seen == ["old"] * 3
        assert current() == "new"
        assert client.count(name).count == 3
        projection.clear()
    assert not client.collection_exists(f"{name}.old")


def test_a_server_that_is_down_or_refused_is_one_sentence(qdrant: QdrantNode) -> None:
    with QdrantProjection("http://127.0.0.1:9") as projection, pytest.raises(StorageError) as caught:
        projection.ping()
    assert str(caught.value).startswith("the Qdrant server at http://127.0.0.1:9 cannot be reached (")
    assert str(caught.value).endswith("start it, or correct qdrant.url")
    with pytest.raises(ConfigurationError, match=r"qdrant\.url must be like http://host:6333"):
        QdrantProjection("localhost:6333")


def test_a_refused_record_is_named_and_others_are_applied(projection: QdrantProjection) -> None:
    projection.apply([change(make.a_memory(id="four"), EAST)])
    with pytest.raises(ValidationError, match="dimension"):
        projection.apply([change(make.a_memory(id="two"), [1.0, 0.0])])


def test_the_kinds_are_those_with_vectors(projection: QdrantProjection) -> None:
    lessons = (Heuristic, Outcome, UserPreference, DomainKnowledge, AntiPattern)
    assert projection.kinds == (Memory, ProjectPattern, *lessons)
