"""The HNSW index of pgvector: it is made by itself, by command, and while others write."""

from __future__ import annotations

import json
import random
import threading

import psycopg
import pytest

from alma.errors import ConfigurationError, StorageError
from alma.model.learning import Heuristic
from alma.model.memory import Memory
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.storage.postgres import vectors as postgres_vectors
from alma.storage.postgres.vector_index import VectorIndexState
from alma.storage.postgresql import PostgreSQLStorage
from alma.testing import builders as make
from tests.conftest import OpenPostgres
from tests.support.command_line import run
from tests.support.postgres import wait_until

EVERYWHERE = Scope.everywhere()
ABOVE = 200
# A build waits for the transactions that write when it begins.
WRITING = "LOCK TABLE alma_embeddings IN ROW EXCLUSIVE MODE"


def fill(store: PostgreSQLStorage, records: int, start: int = 0) -> None:
    source = random.Random(start)
    store.save_many(
        make.a_heuristic(
            id=f"h{i:05}",
            agent=f"agent {i % 10}",
            embedding=Vector([source.gauss() for _ in range(store.embedding_dim)]),
        )
        for i in range(start, start + records)
    )


def state_of(store: PostgreSQLStorage, kind: str = "heuristic") -> VectorIndexState | None:
    return next((each for each in store.vector_indexes() if each.kind == kind), None)


def is_ready(store: PostgreSQLStorage) -> bool:
    state = state_of(store)
    return state is not None and state.state == "ready"


def test_an_index_is_built_when_a_kind_has_many_vectors(open_postgres: OpenPostgres) -> None:
    store = open_postgres(vector_index_above=ABOVE)
    fill(store, ABOVE)
    store.save(make.a_memory(id="m", embedding=[1, 2, 3, 4]))
    assert not is_ready(store)
    fill(store, 20, start=ABOVE)
    wait_until(lambda: is_ready(store))
    found = state_of(store)
    assert found is not None
    assert (found.vectors, found.index, found.bytes > 0) == (ABOVE + 20, "idx_alma_heuristics_embedding", True)
    assert state_of(store, "memory") == VectorIndexState("memory", "default", 4, 1, "none")


def test_none_is_built_where_that_is_switched_off(open_postgres: OpenPostgres) -> None:
    store = open_postgres(vector_index_above=0)
    fill(store, 50)
    assert [each.state for each in store.vector_indexes()] == ["none"]


def test_what_the_index_finds_is_what_all_comparisons_find(
    open_postgres: OpenPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_vectors, "_SCANNED_RECORDS", 20)
    store = open_postgres(vector_index_above=ABOVE)
    fill(store, 3 * ABOVE)
    wait_until(lambda: is_ready(store))
    for number in range(20):
        wanted = Vector([random.Random(-number - 1).gauss() for _ in range(4)])
        for scope in (EVERYWHERE, Scope(project_id="shop", agent="agent 3")):
            exact = store.nearest_ids(Heuristic, wanted, scope, limit=5)
            near = store.nearest_ids(Heuristic, wanted, scope, limit=5, exact=False)
            assert [key for key, _ in near] == [key for key, _ in exact]


def test_others_write_while_an_index_is_built(open_postgres: OpenPostgres, postgres_dsn: str) -> None:
    store = open_postgres()
    fill(store, 30)
    with psycopg.connect(postgres_dsn) as waiting:
        waiting.execute(WRITING)
        builder = threading.Thread(target=store.prepare_vector_index, args=(Heuristic,))
        builder.start()
        wait_until(lambda: any(each.state == "building" for each in store.vector_indexes()))
        fill(store, 5, start=30)
        store.delete(Heuristic, ["h00001"], EVERYWHERE)
        waiting.rollback()
    builder.join()
    assert is_ready(store)
    assert store.nearest_ids(Heuristic, [1, 2, 3, 4], EVERYWHERE, exact=False, limit=40) == store.nearest_ids(
        Heuristic, [1, 2, 3, 4], EVERYWHERE, limit=40
    )


def test_an_interrupted_build_is_replaced(open_postgres: OpenPostgres, postgres_dsn: str) -> None:
    store = open_postgres()
    fill(store, 30)
    with psycopg.connect(postgres_dsn, autocommit=True) as connection, psycopg.connect(postgres_dsn) as waiting:
        waiting.execute(WRITING)
        connection.execute("SET statement_timeout = 200")
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute(
                "CREATE INDEX CONCURRENTLY idx_alma_heuristics_embedding ON alma_embeddings USING hnsw "
                "((embedding::vector(4)) vector_cosine_ops) WHERE memory_type = 'heuristic' AND model = 'default'"
            )
    assert [each.state for each in store.vector_indexes()] == ["interrupted"]
    assert store.prepare_vector_index(Heuristic) == "idx_alma_heuristics_embedding"
    assert is_ready(store)


def test_the_server_completes_an_index_after_the_store_was_closed(
    open_postgres: OpenPostgres, postgres_dsn: str
) -> None:
    store = open_postgres(vector_index_above=ABOVE)
    with psycopg.connect(postgres_dsn) as waiting:
        waiting.execute(WRITING)
        fill(store, ABOVE + 1)
        wait_until(lambda: any(each.state == "building" for each in store.vector_indexes()))
        store.close()
        waiting.rollback()
    again = open_postgres()
    wait_until(lambda: is_ready(again))


def test_the_command_creates_shows_and_drops(open_postgres: OpenPostgres, postgres_dsn: str) -> None:
    store = open_postgres()
    fill(store, 30)
    store.save(make.a_memory(id="m", embedding=[1, 2, 3, 4]))
    place = ["--store", postgres_dsn]
    made = json.loads(run("store", "vector-index", "create", *place, "--json").stdout)
    assert made == {"created": ["idx_alma_heuristics_embedding", "idx_memories_embedding"]}
    assert run("store", "vector-index", "create", *place).stdout == "0 index(es) created\n"
    shown = json.loads(run("store", "vector-index", "status", *place, "--json").stdout)
    assert [(row["kind"], row["vectors"], row["state"]) for row in shown] == [
        ("heuristic", 30, "ready"),
        ("memory", 1, "ready"),
    ]
    dropped = run("store", "vector-index", "drop", "--kind", "memory", *place).stdout
    assert dropped == "1 index(es) dropped: idx_memories_embedding\n"
    assert [each.state for each in store.vector_indexes()] == ["ready", "none"]


def test_what_has_no_index_is_refused(open_postgres: OpenPostgres, postgres_dsn: str) -> None:
    store = open_postgres()
    with store.transaction(), pytest.raises(StorageError, match="inside a transaction"):
        store.prepare_vector_index(Memory)
    place = ["--store", postgres_dsn]
    assert "no kind 'users' has vectors" in run("store", "vector-index", "create", "--kind", "users", *place).stderr
    assert "no vectors of a model" in run("store", "vector-index", "drop", "--model", "gpt", *place).stderr
    assert "needs a PostgreSQL store" in run("store", "vector-index", "status", "--store", "alma.db").stderr
    with pytest.raises(ConfigurationError, match="vector_index_above"):
        PostgreSQLStorage.from_dsn(postgres_dsn, vector_index_above=-1)
