"""Vectors are split by the hash of a record's id while the store is in use, and everything goes on as before."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from alma.bootstrap import partition_tables
from alma.errors import ConfigurationError, ConflictError, ValidationError
from alma.model.learning import Heuristic
from alma.model.memory import Memory
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.storage.postgres import vectors as postgres_vectors
from alma.storage.postgresql import PostgreSQLStorage
from alma.testing import builders as make
from tests.conftest import OpenPostgres, fresh_database
from tests.support.command_line import run
from tests.support.postgres import PostgresServer

EVERYWHERE = Scope.everywhere()


def vector(number: int) -> Vector:
    source = random.Random(number)
    return Vector([source.gauss() for _ in range(4)])


def save(store: PostgreSQLStorage, numbers: range) -> None:
    store.save_many(make.a_heuristic(id=f"h{n:05}", agent=f"agent {n % 10}", embedding=vector(n)) for n in numbers)


def assert_searches_agree(store: PostgreSQLStorage, wanted: range) -> None:
    """Each vector is found first, exactly and by the index, in its scope and everywhere."""
    for number in wanted:
        for scope in (EVERYWHERE, Scope(project_id="shop", agent=f"agent {number % 10}")):
            for exact in (True, False):
                # The second and third question of an owner are answered by what the first has learned.
                for _ in range(3):
                    ((key, cosine), *_) = store.nearest_ids(Heuristic, vector(number), scope, limit=5, exact=exact)
                    assert (key, round(cosine, 5)) == (f"h{number:05}", 1.0)


def partition_count(store: PostgreSQLStorage) -> int:
    with store.connection() as connection:
        return connection.execute("SELECT FROM pg_inherits WHERE inhparent = 'alma_embeddings'::regclass").rowcount


def test_partitioning_keeps_vectors_and_searches(
    open_postgres: OpenPostgres, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_vectors, "_SCANNED_RECORDS", 20)
    store = open_postgres()
    save(store, range(1_500))
    store.put_passages(Heuristic, {"h00003": [[1, 0, 0, 0], [0, 1, 0, 0]]})
    store.prepare_vector_index(Heuristic)
    # A server that plans for what it knew before is asked again afterwards.
    assert_searches_agree(store, range(0, 100, 10))
    before = store.vectors_of(Heuristic, [f"h{n:05}" for n in range(1_500)])
    made = json.loads(run("partition", "--store", postgres_dsn, "--table", "vectors", "--parts", "4", "--json").stdout)
    assert sum(part["rows"] for part in made) == 1_502
    assert all(300 < part["rows"] < 450 for part in made)
    assert [part["bounds"] for part in made] == [f"FOR VALUES WITH (modulus 4, remainder {n})" for n in range(4)]
    after = store.vectors_of(Heuristic, [f"h{n:05}" for n in range(1_500)])
    assert sorted(after) == sorted(before)
    assert_searches_agree(store, range(0, 100, 10))
    (state,) = store.vector_indexes()
    assert (state.state, state.index) == ("ready", "idx_alma_heuristics_embedding")
    assert partition_tables(postgres_dsn, ["vectors"], parts=4) == partition_tables(postgres_dsn, ["vectors"], parts=4)


def test_a_partitioned_store_is_written_to_and_partitioned_again(
    open_postgres: OpenPostgres, postgres_dsn: str
) -> None:
    store = open_postgres()
    save(store, range(50))
    partition_tables(postgres_dsn, ["vectors"], parts=2)
    save(store, range(40, 60))
    store.save(make.a_heuristic(id="h00001", agent="agent 1", embedding=vector(1)))
    store.delete(Heuristic, ["h00002"], EVERYWHERE)
    assert store.drop_vector_index(Heuristic) is False
    assert store.prepare_vector_index(Heuristic) == "idx_alma_heuristics_embedding"
    partition_tables(postgres_dsn, ["vectors"], parts=3)
    assert partition_count(store) == 3
    save(store, range(60, 70))
    assert store.count_without_vector(Heuristic, store.embedding_model, EVERYWHERE) == 0
    assert_searches_agree(store, range(3, 70, 9))
    assert store.drop_vector_index(Heuristic)
    with store.connection() as connection:
        numbers = [n for (n,) in connection.execute("SELECT id FROM alma_embeddings ORDER BY id").fetchall()]
    assert len(numbers) == len(set(numbers)) == 69


def test_rights_and_names_for_sql_are_kept(open_postgres: OpenPostgres, postgres_dsn: str) -> None:
    store = open_postgres()
    store.save(make.a_memory(id="m", embedding=[1, 2, 3, 4]))
    with psycopg.connect(postgres_dsn, autocommit=True) as client:
        client.execute("GRANT SELECT ON alma_embeddings, vector_embeddings TO PUBLIC")
        partition_tables(postgres_dsn, ["vectors"], parts=2)
        client.execute("INSERT INTO vector_embeddings (memory_id, embedding, embedding_model) VALUES ('m', '[1]', 'x')")
        client.execute("DELETE FROM vector_embeddings WHERE embedding_model = 'default'")
        assert [each.model for each in store.vectors_of(Memory, ["m"])] == ["x"]
        client.execute("DROP ROLE IF EXISTS reader_of_vectors; CREATE ROLE reader_of_vectors")
        try:
            client.execute("SET ROLE reader_of_vectors")
            assert client.execute("SELECT memory_id FROM vector_embeddings").fetchall() == [("m",)]
            assert client.execute("SELECT memory_id FROM alma_embeddings").fetchall() == [("m",)]
        finally:
            client.execute("RESET ROLE; DROP ROLE reader_of_vectors")


def test_others_write_while_vectors_are_moved(open_postgres: OpenPostgres, postgres_dsn: str) -> None:
    store = open_postgres(pool_size=6)
    save(store, range(4_000))
    done = threading.Event()
    failures: list[BaseException] = []
    kept: dict[str, Vector] = {f"h{n:05}": vector(n) for n in range(4_000)}

    def change(first: int) -> None:
        numbers = random.Random(first)
        new = 0
        while not done.is_set():
            try:
                number = numbers.randrange(first, 4_000, 3)
                key = f"h{number:05}"
                if numbers.random() < 0.4:
                    store.delete(Heuristic, [key], EVERYWHERE)
                    kept.pop(key, None)
                else:
                    changed = vector(-numbers.randrange(1_000_000))
                    store.save(make.a_heuristic(id=key, agent=f"agent {number % 10}", embedding=changed))
                    kept[key] = changed
                new += 1
                store.save(make.a_heuristic(id=f"n{first}-{new}", embedding=vector(new)))
                kept[f"n{first}-{new}"] = vector(new)
                store.nearest_ids(Heuristic, vector(new), EVERYWHERE, limit=3, exact=False)
            except Exception as exc:  # noqa: BLE001 - shown below
                failures.append(exc)
                return

    writers = [threading.Thread(target=change, args=(first,)) for first in range(3)]
    for writer in writers:
        writer.start()
    partition_tables(postgres_dsn, ["vectors"], parts=4)
    partition_tables(postgres_dsn, ["vectors"], parts=3)
    done.set()
    for writer in writers:
        writer.join()
    assert failures == []
    assert partition_count(store) == 3
    assert {each.record_id: each.vector for each in store.vectors_of(Heuristic, list(kept))} == kept
    with store.connection() as connection:
        assert connection.execute("SELECT FROM alma_embeddings").rowcount == len(kept)


def test_what_an_interrupted_run_left_is_removed(open_postgres: OpenPostgres, postgres_dsn: str) -> None:
    store = open_postgres()
    save(store, range(20))
    with (
        psycopg.connect(postgres_dsn, autocommit=True) as client,
        held(client),
        pytest.raises(ConflictError, match="another process is partitioning"),
    ):
        partition_tables(postgres_dsn, ["vectors"])
    with psycopg.connect(postgres_dsn, autocommit=True) as client:
        client.execute("CREATE TABLE alma_embeddings_new (LIKE alma_embeddings) PARTITION BY HASH (memory_id)")

    def fail(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        partition_tables(postgres_dsn, ["vectors"], on_progress=fail)
    save(store, range(20, 30))
    assert partition_count(store) == 0
    partition_tables(postgres_dsn, ["vectors"], parts=2)
    assert_searches_agree(store, range(0, 30, 7))


@contextmanager
def held(client: psycopg.Connection[Any]) -> Iterator[None]:
    client.execute("SELECT pg_advisory_lock(4, 1)")
    yield
    client.execute("SELECT pg_advisory_unlock(4, 1)")


def test_wrong_numbers_of_parts_are_refused(postgres_dsn: str) -> None:
    with pytest.raises(ValidationError, match="between 2 and 256"):
        partition_tables(postgres_dsn, ["vectors"], parts=1)
    with pytest.raises(ConfigurationError, match="audit_log and vectors can be partitioned"):
        partition_tables(postgres_dsn, ["users"])


def test_a_server_without_pgvector_is_partitioned_as_well(plain_postgres: PostgresServer) -> None:
    with fresh_database(plain_postgres) as dsn, PostgreSQLStorage.from_dsn(dsn, 4) as store:
        save(store, range(20))
        partition_tables(dsn, ["vectors"], parts=2)
        save(store, range(20, 30))
        assert_searches_agree(store, range(0, 30, 7))
