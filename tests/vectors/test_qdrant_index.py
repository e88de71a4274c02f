"""Search through Qdrant: it proposes, the store decides, and nothing is lost while it is down."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from qdrant_client import QdrantClient
from qdrant_client import models as m

from alma import ALMA
from alma.bootstrap import open_storage
from alma.embeddings.base import EmbeddingProvider
from alma.errors import IndexUnavailable
from alma.model.memory import Memory
from alma.model.query import EVERYTHING, And, Compare, Has, In, Missing, Or, Predicate
from alma.model.scope import Scope
from alma.retrieval.engine import RetrievalEngine
from alma.storage.base import StorageBackend
from alma.storage.sqlite_local import SQLiteStorage
from alma.sync import DataSyncManager, Relay
from alma.testing import builders as make
from alma.testing.builders import EVERYWHERE
from alma.vectors.native import NativeIndex
from alma.vectors.qdrant import QdrantIndex, QdrantProjection
from tests.conftest import empty_store
from tests.support.qdrant import QdrantNode

EAST, NORTH = [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]
DIMS, COUNT, OWNERS = 32, 3_000, 100


@pytest.fixture
def index(storage: StorageBackend, qdrant: QdrantNode, prefix: str) -> Iterator[QdrantIndex]:
    with closing(QdrantIndex(storage, qdrant.url, prefix=prefix)) as made:
        yield made


@pytest.fixture
def down() -> Iterator[QdrantNode]:
    """A server of the test's own, which it may kill."""
    with QdrantNode() as server:
        yield server


def ids(index: QdrantIndex, where: Predicate = EVERYTHING, **options: Any) -> list[str]:
    return [each.record_id for each in index.search(Memory, EAST, Scope(project_id="shop"), where, **options)]


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# ---------------------------------------------------------------------- what it finds


def test_a_graph_in_qdrant_agrees_with_the_exact_search(
    tmp_path: Path, qdrant: QdrantNode, client: QdrantClient, prefix: str
) -> None:
    chance = np.random.default_rng(11)
    centers = chance.normal(size=(60, DIMS))
    vectors = centers[chance.integers(60, size=COUNT)] + 0.6 * chance.normal(size=(COUNT, DIMS))
    collection = f"{prefix}_memory_embeddings"
    with (
        SQLiteStorage(tmp_path / "alma.db", embedding_dim=DIMS) as storage,
        QdrantProjection(qdrant.url, prefix=prefix) as projection,
        closing(QdrantIndex(storage, qdrant.url, prefix=prefix)) as index,
    ):
        storage.save_many(
            make.a_memory(id=f"{n:05}", user_id=f"user {n % OWNERS}", embedding=row) for n, row in enumerate(vectors)
        )
        DataSyncManager(storage, [projection]).run()
        _build_graph(client, collection)
        near, own = [], []
        for row in vectors[:: COUNT // 30]:
            wanted = row + 0.3 * chance.normal(size=DIMS)
            exact = storage.nearest_ids(Memory, wanted, EVERYWHERE, limit=10)
            found = index.search(Memory, wanted, EVERYWHERE, limit=10)
            near.append(len({key for key, _ in exact} & {each.record_id for each in found}) / 10)
            scope = Scope(user_id="user 7")
            own.append(
                [tuple(each) for each in index.search(Memory, wanted, scope, limit=5)]
                == storage.nearest_ids(Memory, wanted, scope, limit=5)
            )
        projection.clear()
    assert np.mean(near) >= 0.98
    assert all(own)


def test_retrieval_with_qdrant_is_that_with_the_exact_search(
    sqlite_path: Path, local: EmbeddingProvider, qdrant: QdrantNode, prefix: str
) -> None:
    notes = (
        "Rye bread is baked on Tuesdays and Fridays.",
        "The sourdough rests for 14 hours in the fridge.",
        "Ana wants her cakes without nuts.",
        "The oven of the old bakery needs an hour to heat up.",
        "Flour is delivered on Monday mornings.",
        "The new mixer is cleaned with warm water only.",
    )
    with (
        open_storage(sqlite_path, local.dimension, embedding_model=local.model) as storage,
        QdrantProjection(qdrant.url, prefix=prefix) as projection,
        closing(QdrantIndex(storage, qdrant.url, prefix=prefix)) as index,
    ):
        for number, (text, vector) in enumerate(zip(notes, local.encode_batch(notes), strict=True)):
            storage.save(make.a_memory(id=f"{number}", user_id=None, content=text, embedding=vector))
            storage.save(make.a_heuristic(agent="rosa", condition=text, strategy="as always", embedding=vector))
        Relay(storage, projection).run()
        through = [RetrievalEngine(storage, local, vector_index=each) for each in (NativeIndex(storage), index)]
        for task in ("How long does the dough rest?", "Heat the oven", "Bake a cake for Ana", "Order flour"):
            exact, found = (each.retrieve(task, "rosa", "shop", bypass_cache=True) for each in through)
            assert found.total_items
            assert found.to_prompt() == exact.to_prompt()
            assert not found.degraded
        projection.clear()


def _build_graph(client: QdrantClient, collection: str) -> None:
    """Have Qdrant search a graph, which it does by itself only in a much larger collection."""
    client.update_collection(
        collection,
        hnsw_config=m.HnswConfigDiff(full_scan_threshold=10),
        optimizers_config=m.OptimizersConfigDiff(indexing_threshold=100),
    )
    wait_until(lambda: (client.get_collection(collection).indexed_vectors_count or 0) >= COUNT)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "files"])
def test_qdrant_searches_for_every_store(
    request: pytest.FixtureRequest, kind: str, qdrant: QdrantNode, projection: QdrantProjection, prefix: str
) -> None:
    with (
        open_storage(empty_store(request, kind), 4) as store,
        closing(QdrantIndex(store, qdrant.url, prefix=prefix)) as index,
    ):
        store.save_many(make.a_memory(id=f"{n:02}", user_id=f"user {n % 3}", embedding=[1, n, 0, 0]) for n in range(30))
        Relay(store, projection).run()
        store.delete(Memory, ["03"], EVERYWHERE)
        store.save(make.a_memory(id="new", user_id="user 0", embedding=EAST))
        for scope in (EVERYWHERE, Scope(user_id="user 0")):
            found = [tuple(each) for each in index.search(Memory, EAST, scope, limit=5)]
            assert found == store.nearest_ids(Memory, EAST, scope, limit=5)
        assert found[0] == ("00", 1.0)


def test_both_models_are_found_while_a_store_moves_to_another(
    sqlite_path: Path, qdrant: QdrantNode, projection: QdrantProjection, prefix: str
) -> None:
    with (
        SQLiteStorage(sqlite_path, embedding_dim=4, embedding_model="old") as before,
        SQLiteStorage(sqlite_path, embedding_dim=2, embedding_model="new/one") as after,
        closing(QdrantIndex(before, qdrant.url, prefix=prefix)) as of_old,
        closing(QdrantIndex(after, qdrant.url, prefix=prefix)) as of_new,
    ):
        before.save_many(make.a_memory(id=f"{n}", embedding=[1, n, 0, 0]) for n in range(9))
        relay = Relay(before, projection)
        relay.run()
        for step in range(3):
            moved = range(3 * step, 3 * step + 3)
            after.put_vectors(Memory, {f"{n}": [n, 1] for n in moved}, "new/one")
            for _ in range(2):
                for index, store, wanted in ((of_old, before, EAST), (of_new, after, [0, 1])):
                    found = [tuple(each) for each in index.search(Memory, wanted, EVERYWHERE, limit=20)]
                    assert found == store.nearest_ids(Memory, wanted, EVERYWHERE, limit=20)
                relay.run()
        assert len(found) == 9


def test_predicates_and_a_threshold_narrow_the_search(
    storage: StorageBackend, projection: QdrantProjection, index: QdrantIndex
) -> None:
    storage.save_many(
        [
            make.a_memory(id="a", memory_type="decision", importance_score=0.2, layer_project=True, embedding=EAST),
            make.a_memory(id="b", memory_type="note", importance_score=0.9, embedding=[1, 0.1, 0, 0]),
            make.a_memory(id="c", memory_type="note", importance_score=0.1, tags=["x"], embedding=[1, 0.2, 0, 0]),
            make.a_memory(id="d", memory_type="task", category="", user_id=None, embedding=[1, 9, 0, 0]),
        ]
    )
    Relay(storage, projection).run()
    important, decided = Compare("importance_score", "ge", 0.5), Compare("memory_type", "eq", "decision")
    assert ids(index, Or(important, decided)) == ["a", "b", "d"]
    assert ids(index, And(Or(important, decided), Compare("memory_type", "ne", "note"))) == ["a", "d"]
    assert ids(index, Compare("layer_project", "eq", True)) == ["a"]
    assert ids(index, Has("tags", "x")) == ["c"]
    assert ids(index, Missing("user_id")) == ["d"]
    assert ids(index, Compare("category", "eq", "")) == ["d"]
    assert ids(index, In("memory_type", ["task", "note"]), limit=2) == ["b", "c"]
    assert ids(index, In("memory_type", [])) == []
    assert ids(index, Or()) == []
    assert ids(index, Compare("created_at", "gt", storage.get(Memory, "a", EVERYWHERE).created_at)) == ["b", "c", "d"]  # type: ignore[union-attr]
    assert ids(index, score_threshold=0.99) == ["a", "b"]
    assert ids(index, score_threshold=1.1) == []


def test_the_store_has_the_last_word(
    storage: StorageBackend, projection: QdrantProjection, index: QdrantIndex, client: QdrantClient, prefix: str
) -> None:
    storage.save_many(
        [make.a_memory(id="stored", embedding=NORTH), make.a_memory(id="of bob", user_id="bob", embedding=EAST)]
    )
    Relay(storage, projection).run()
    collection = f"{prefix}_memory_embeddings"
    alien = {"memory_id": "never stored", "project_id": "shop", "user_id": "ana"}
    client.upsert(collection, [m.PointStruct(id=n, vector=EAST, payload=alien) for n in range(50)])
    client.set_payload(collection, {"user_id": "ana"}, m.Filter())
    found = index.search(Memory, EAST, Scope(user_id="ana"), limit=3)
    assert [tuple(each) for each in found] == [("stored", 0.0)]


def test_a_server_that_lost_its_data_is_filled_again(sqlite_path: Path, down: QdrantNode) -> None:
    with (
        SQLiteStorage(sqlite_path, embedding_dim=4) as storage,
        QdrantProjection(down.url, model=storage.embedding_model, dims=4) as projection,
        closing(QdrantIndex(storage, down.url)) as index,
        QdrantProjection(down.url, model=storage.embedding_model, dims=4) as other,
    ):
        storage.save_many([make.a_memory(id=f"{n}", embedding=EAST) for n in range(5)])
        relay = Relay(storage, projection)
        relay.run()
        other.clear()
        assert ids(index, limit=2) == ["0", "1"]
        storage.save(make.a_memory(id="later", embedding=EAST))
        sync = DataSyncManager(storage, [projection])
        while sync.status(ping=False)[0].pending:
            sync.run()
        assert projection.count(Memory) == 6
        assert sync.validate_data_integrity().is_consistent


class EndingProjection(QdrantProjection):
    """Its process ends once the missing collections are made."""

    def prepare(self) -> None:
        super().prepare()
        raise KeyboardInterrupt


def test_a_relay_that_ends_when_the_collections_are_made_again_leaves_no_gap(
    storage: StorageBackend, qdrant: QdrantNode, index: QdrantIndex, prefix: str
) -> None:
    storage.save_many([make.a_memory(id=f"{n}", embedding=EAST) for n in range(5)])
    named: dict[str, Any] = {"prefix": prefix, "model": storage.embedding_model, "dims": 4}
    with QdrantProjection(qdrant.url, **named) as projection:
        Relay(storage, projection).run()
        projection.clear()
    with EndingProjection(qdrant.url, **named) as ending, pytest.raises(KeyboardInterrupt):
        Relay(storage, ending).run()
    assert ids(index) == ["0", "1", "2", "3", "4"]
    with QdrantProjection(qdrant.url, **named) as projection:
        Relay(storage, projection).run()
        assert projection.count(Memory) == 5
        projection.clear()


# ---------------------------------------------------------------------- while it is down


def test_retrieval_is_degraded_while_qdrant_is_down_and_catches_up(tmp_path: Path, down: QdrantNode) -> None:
    config = tmp_path / "alma.yaml"
    config.write_text(
        f"alma:\n  project_id: shop\n  storage_dir: {tmp_path}\n  vectors: qdrant\n  qdrant:\n    url: {down.url}\n"
        "  embedding_provider: local\n"
    )
    with ALMA.from_config(config) as alma:
        for form in ("login", "sign-up", "search"):
            alma.learn("helena", f"Test the {form} form", "success", "test empty fields first")
        alma.sync.run()
        task = "Test the login form of the shop"
        before = alma.retrieve(task, agent="helena")
        assert before.total_items
        assert not before.degraded
        down.kill()
        alma.learn("helena", "Test the checkout form", "success", "test empty fields first")
        during = alma.retrieve(task, agent="helena")
        assert during.total_items
        assert "the Qdrant server at" in str(during.degraded)
        assert alma.recommend(task, agent="helena").strategy == "test empty fields first"
        (ran,) = alma.sync.run()
        assert ran.pending
        assert "cannot be reached" in str(ran.problem)
        down.start()
        (ran,) = alma.sync.run()
        assert (ran.pending, ran.problem) == (0, None)
        assert alma.sync.validate_data_integrity().is_consistent
        after = alma.retrieve(task, agent="helena")
        assert not after.degraded
        assert after.total_items >= before.total_items


def test_a_search_says_which_server_is_down(storage: StorageBackend) -> None:
    with closing(QdrantIndex(storage, "http://127.0.0.1:9")) as index, pytest.raises(IndexUnavailable) as caught:
        index.search(Memory, EAST, EVERYWHERE)
    assert "http://127.0.0.1:9" in str(caught.value)
    assert "start it, or correct qdrant.url" in str(caught.value)


def test_a_server_that_hangs_is_left_alone_for_a_while(storage: StorageBackend) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with closing(QdrantIndex(storage, url, timeout_seconds=1)) as index:
            for _ in range(3):
                with pytest.raises(IndexUnavailable, match="cannot be reached"):
                    index.search(Memory, EAST, EVERYWHERE)
        silent.settimeout(0.1)
        silent.accept()[0].close()
        with pytest.raises(TimeoutError):
            silent.accept()
