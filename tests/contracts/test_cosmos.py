"""Azure Cosmos DB as its document says it: containers, policies and documents; and on a server of another maker."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from alma.model.learning import Heuristic
from alma.model.memory import Memory
from alma.model.record import Record
from alma.storage.azure_cosmos import AzureCosmosStorage
from alma.testing import builders as make
from alma.testing.builders import DIMS, EVERYWHERE, SHOP
from tests.support import cosmos_emulator
from tests.support.cosmos import empty_database
from tests.support.cosmos_server import KEY, CosmosServer

PARTITIONS = {
    "heuristics": "/project_id",
    "outcomes": "/project_id",
    "preferences": "/user_id",
    "domain_knowledge": "/project_id",
    "anti_patterns": "/project_id",
}
INDEXING = {
    "indexingMode": "consistent",
    "automatic": True,
    "includedPaths": [{"path": "/*"}],
    "excludedPaths": [{"path": '/"_etag"/?'}, {"path": "/embedding/*"}],
    "vectorIndexes": [{"path": "/embedding", "type": "diskANN"}],
}


@pytest.fixture
def database(cosmos: CosmosServer) -> str:
    return empty_database(cosmos, DIMS)


@pytest.fixture
def storage(cosmos: CosmosServer, database: str) -> Iterator[AzureCosmosStorage]:
    with AzureCosmosStorage(cosmos.url, KEY, database, embedding_dim=DIMS) as store:
        yield store


@pytest.mark.parametrize("table", PARTITIONS)
def test_the_documented_containers_have_their_partition_keys_and_policies(
    storage: AzureCosmosStorage, table: str
) -> None:
    said = storage.properties(table)
    assert said["partitionKey"]["paths"] == [PARTITIONS[table]]
    assert said["indexingPolicy"] == INDEXING
    vector = {"path": "/embedding", "dataType": "float32", "dimensions": DIMS, "distanceFunction": "cosine"}
    assert said["vectorEmbeddingPolicy"] == {"vectorEmbeddings": [vector]}


# The server answers batches with 500, which the client would repeat for seconds.
_OPTIONS: dict[str, Any] = {"connection_verify": False, "retry_total": 1, "retry_backoff_factor": 0.01}

DOCUMENTS: list[tuple[Record, str, str]] = [
    (make.a_heuristic(id="1", embedding=[1, 0, 0, 0]), "alma-heuristics", "heuristic"),
    (make.an_outcome(id="1"), "alma-outcomes", "outcome"),
    (make.a_preference(id="1"), "alma-preferences", "preference"),
    (make.some_knowledge(id="1"), "alma-knowledge", "domain_knowledge"),
    (make.an_anti_pattern(id="1"), "alma-antipatterns", "anti_pattern"),
]


@pytest.mark.parametrize(("record", "container", "discriminator"), DOCUMENTS, ids=lambda value: str(value)[:12])
def test_a_document_has_the_documented_fields(
    cosmos: CosmosServer, storage: AzureCosmosStorage, database: str, record: Record, container: str, discriminator: str
) -> None:
    storage.save(record)
    (document,) = cosmos.documents(database, container)
    cls = type(record)
    assert {field.name for field in cls.spec.primary} - {"embedding"} <= document.keys()
    assert (document["id"], document["type"]) == ("1", discriminator)
    assert document.get("embedding") == ([1, 0, 0, 0] if discriminator == "heuristic" else None)


def test_a_vector_search_names_the_scope_in_its_condition(cosmos: CosmosServer, storage: AzureCosmosStorage) -> None:
    storage.save(make.a_heuristic(embedding=[1, 0, 0, 0]))
    cosmos.received.clear()
    storage.search_vector(Heuristic, [1, 0, 0, 0], SHOP)
    asked = [
        each.body["query"] for each in cosmos.received if each.what == "query" and each.container != "alma-journal"
    ]
    (search,) = {
        text for text in asked if "ORDER BY VectorDistance(c.embedding, @wanted" in text and "c._rid" not in text
    }
    assert 'WHERE c["project_id"] = @p0' in search.replace("(", "")
    assert search.startswith("SELECT TOP ")


def test_records_of_one_partition_are_written_in_one_batch(cosmos: CosmosServer, storage: AzureCosmosStorage) -> None:
    cosmos.requests.clear()
    storage.save_many([make.a_heuristic() for _ in range(30)])
    assert cosmos.requests["batch alma-heuristics"] == 1
    assert cosmos.requests["create alma-heuristics"] == 0


def test_vectors_of_another_length_than_the_policy_says_are_compared_by_the_client(
    cosmos: CosmosServer, database: str
) -> None:
    with AzureCosmosStorage(cosmos.url, KEY, database, embedding_dim=3, embedding_model="other") as store:
        store.save_many([make.a_heuristic(id=str(n), embedding=[1, n, 0]) for n in range(3)])
        assert [hit.record.id for hit in store.search_vector(Heuristic, [1, 2, 0], SHOP, limit=2)] == ["2", "1"]
        assert all("embedding" not in each for each in cosmos.documents(database, "alma-heuristics"))
        assert any("made for vectors of 4 dimensions" in note for note in store.notes)


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
class TestOnAnotherServer:
    """Documents, entity tags and concurrency on a server that ALMA's makers did not write."""

    @pytest.fixture(scope="class")
    @classmethod
    def address(cls, cosmos: CosmosServer) -> Iterator[str]:
        with cosmos_emulator.cosmos_emulator() as url:
            yield url

    @pytest.fixture(scope="class")
    @classmethod
    def storage(cls, address: str) -> Iterator[AzureCosmosStorage]:
        with AzureCosmosStorage(address, cosmos_emulator.KEY, embedding_dim=DIMS, client_options=_OPTIONS) as store:
            yield store

    @pytest.fixture(autouse=True)
    def emptied(self, storage: AzureCosmosStorage) -> Iterator[None]:
        yield
        for cls in (Heuristic, Memory):
            storage.delete(cls, [record.key for record in storage.find(cls, EVERYWHERE)], EVERYWHERE)

    def test_records_are_created_read_changed_and_deleted(self, storage: AzureCosmosStorage) -> None:
        storage.save(make.a_heuristic(id="a/b?c#d", embedding=[1, 0, 0, 0], metadata={"n": 1.0, "deep": {"x": [1]}}))
        held = storage.require(Heuristic, "a/b?c#d", SHOP)
        assert (held.metadata, list(held.embedding or ())) == ({"n": 1.0, "deep": {"x": [1]}}, [1, 0, 0, 0])
        storage.update(Heuristic, held.id, {"confidence": 0.5}, SHOP)
        assert storage.require(Heuristic, held.id, SHOP).confidence == 0.5
        assert [row.version_number for row in storage.history(Heuristic, held.id, SHOP)] == [1, 2]
        assert storage.delete(Heuristic, [held.id], SHOP) == 1
        assert storage.find(Heuristic, SHOP) == []
        storage.save(held)
        assert storage.require(Heuristic, held.id, SHOP).confidence == 0.0

    def test_counters_of_many_threads_are_exact(self, storage: AzureCosmosStorage, address: str) -> None:
        storage.save(make.a_heuristic(id="h", success_count=0))

        def count() -> None:
            with AzureCosmosStorage(address, cosmos_emulator.KEY, embedding_dim=DIMS, client_options=_OPTIONS) as own:
                for _ in range(2):
                    own.increment(Heuristic, "h", {"success_count": 1}, SHOP)

        threads = [threading.Thread(target=count) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert storage.require(Heuristic, "h", SHOP).success_count == 4
