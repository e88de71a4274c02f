"""Migrations of a PostgreSQL schema, its views and its partitions."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import psycopg
import pytest

from alma import clock
from alma.bootstrap import partition_tables
from alma.errors import ConfigurationError, MigrationError, StorageError, UnsupportedOperation, ValidationError
from alma.model.governance import Attribution, AuditEvent
from alma.model.learning import DomainKnowledge, Heuristic
from alma.model.memory import Memory
from alma.model.query import Compare, Order
from alma.model.scope import Scope
from alma.storage.migrations.base import HISTORY_TABLE, Migration, known_migrations
from alma.storage.migrations.generate import schema_sql
from alma.storage.postgres.migrations import PostgresMigrator
from alma.storage.postgres.partitions import partitions
from alma.storage.postgresql import PostgreSQLStorage
from alma.testing import builders as make
from tests.conftest import OpenPostgres, fresh_database
from tests.support.postgres import PostgresServer
from tests.support.together import together

EVERYWHERE = Scope.everywhere()

_CATALOGUE = """
SELECT 'column', table_name, column_name, data_type || ' ' || coalesce(collation_name, '') || ' ' || is_nullable || ' '
       || coalesce(column_default, '') FROM information_schema.columns WHERE table_schema = 'public'
UNION ALL SELECT 'index', tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
UNION ALL SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid)
          FROM pg_constraint WHERE connamespace = 'public'::regnamespace
UNION ALL SELECT 'view', viewname, '', definition FROM pg_views WHERE schemaname = 'public'
"""


_TRIGGERS = "SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1"


@pytest.fixture
def connection(postgres_dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        yield connection


def catalogue(connection: psycopg.Connection[Any]) -> set[tuple[str, ...]]:
    """Everything the schema consists of, apart from the vector column, which depends on the server."""
    rows = connection.execute(_CATALOGUE).fetchall()
    return {
        row
        for row in rows
        if row[1] not in (HISTORY_TABLE, "vector_embeddings")
        and "embedding" not in row[2]
        and "embedding_not_null" not in row[2]
    }


def triggers(connection: psycopg.Connection[Any]) -> list[tuple[str, ...]]:
    return connection.execute(_TRIGGERS).fetchall()


def test_the_migrated_database_equals_the_records(
    postgres: PostgresServer, open_postgres: OpenPostgres, connection: psycopg.Connection[Any]
) -> None:
    open_postgres()
    with fresh_database(postgres, empty=True) as dsn, psycopg.connect(dsn, autocommit=True) as fresh:
        for statement in schema_sql("postgresql"):
            fresh.execute(statement.encode())
        assert catalogue(connection) == catalogue(fresh)


def test_every_migration_makes_the_triggers_of_the_records(
    open_postgres: OpenPostgres, connection: psycopg.Connection[Any]
) -> None:
    open_postgres()
    made, known = triggers(connection), known_migrations("postgresql")
    connection.execute("DROP TRIGGER alma_keep ON alma_heuristics")
    PostgresMigrator(connection, "public", [*known, Migration(known[-1].version + 1, "next", "SELECT 1;")]).migrate()
    assert triggers(connection) == made


def test_a_dry_run_changes_nothing(connection: psycopg.Connection[Any]) -> None:
    migrator = PostgresMigrator(connection, "public")
    assert migrator.pending() == list(known_migrations("postgresql"))
    assert catalogue(connection) == set()


def test_a_migration_that_fails_changes_nothing(
    open_postgres: OpenPostgres, connection: psycopg.Connection[Any]
) -> None:
    open_postgres()
    before = catalogue(connection)
    broken = Migration(9001, "broken", "CREATE TABLE half (x int);\nCREATE TABLE half (x int);\n")
    with pytest.raises(psycopg.errors.DuplicateTable):
        PostgresMigrator(connection, "public", (*known_migrations("postgresql"), broken)).migrate()
    assert catalogue(connection) == before


def test_changed_and_newer_schemas_are_clear_errors(
    postgres_dsn: str, open_postgres: OpenPostgres, connection: psycopg.Connection[Any]
) -> None:
    open_postgres()
    first = known_migrations("postgresql")[0]
    with pytest.raises(MigrationError, match=r"0001_initial\.sql"):
        PostgresMigrator(connection, "public", (Migration(1, first.name, "SELECT 1;"),)).status()
    connection.execute(f"INSERT INTO {HISTORY_TABLE} (version, name, checksum) VALUES (9999, 'future', 'x')")
    with pytest.raises(MigrationError, match="upgrade alma-agent-memory"):
        PostgreSQLStorage.from_dsn(postgres_dsn)


def test_tables_of_another_memory_system_are_left_alone(postgres_dsn: str, connection: psycopg.Connection[Any]) -> None:
    connection.execute("CREATE TABLE alma_heuristics (id text)")
    with pytest.raises(MigrationError, match="another program"):
        PostgreSQLStorage.from_dsn(postgres_dsn)
    with PostgreSQLStorage.from_dsn(postgres_dsn, schema="alma") as store:
        assert store.count(Memory, EVERYWHERE) == 0


def test_many_openers_migrate_once(postgres_dsn: str, connection: psycopg.Connection[Any]) -> None:
    assert together(*[lambda: PostgreSQLStorage.from_dsn(postgres_dsn).close()] * 4) == []
    row = connection.execute(f"SELECT count(*) FROM {HISTORY_TABLE}").fetchone()
    assert row == (len(known_migrations("postgresql")),)


def test_the_words_of_an_older_store_are_found_by_their_stems(
    postgres_dsn: str, connection: psycopg.Connection[Any]
) -> None:
    PostgresMigrator(connection, "public", known_migrations("postgresql")[:1]).migrate()
    connection.execute(
        "INSERT INTO alma_domain_knowledge (id, agent, project_id, domain, fact, source, confidence, last_verified, "
        "metadata, search) SELECT 'k' || n, 'a', 'shop', 'cafés', 'testing form' || n, 's', 1, now(), '{}', "
        "'old'::tsvector FROM generate_series(1, 2500) AS n"
    )
    with PostgreSQLStorage.from_dsn(postgres_dsn) as store:
        assert [key for key, _ in store.matching_ids(DomainKnowledge, "form2500", EVERYWHERE)] == ["k2500"]
        assert len(store.matching_ids(DomainKnowledge, "tests in the cafe", EVERYWHERE, limit=3000)) == 2500
        assert store.matching_ids(DomainKnowledge, "old", EVERYWHERE) == []


@pytest.mark.parametrize("versions", ["25, 27", "27"])
def test_signs_names_and_the_ends_of_long_texts_are_found_in_an_older_store(
    versions: str, postgres_dsn: str, connection: psycopg.Connection[Any]
) -> None:
    texts = {"sign": "great 🍕 in C++", "long": "filling " * 13_000 + "zeppelin", "name": "getUserName of 1,000"}
    with PostgreSQLStorage.from_dsn(postgres_dsn) as store:
        store.save_many([make.a_memory(id=key, content=text, tags=["food"]) for key, text in texts.items()])
    connection.execute("UPDATE memories SET search = 'old'::tsvector")
    connection.execute(f"DELETE FROM {HISTORY_TABLE} WHERE version IN ({versions})")
    with PostgreSQLStorage.from_dsn(postgres_dsn) as store:
        for question, found in {
            "🍕": "sign",
            "C++": "sign",
            "zeppelin": "long",
            "user": "name",
            "1000": "name",
        }.items():
            assert [key for key, _ in store.matching_ids(Memory, question, EVERYWHERE)] == [found], question
        assert store.matching_ids(Memory, "old", EVERYWHERE) == []


def test_a_tool_written_for_the_orchestrator_can_read(
    open_postgres: OpenPostgres, connection: psycopg.Connection[Any]
) -> None:
    store = open_postgres()
    memory = make.a_memory(priority=7, content_json={"speaker": "ana"}, source_agent="bot", embedding=[1, 2, 3, 4])
    store.save(memory, by=Attribution(agent="bot", session_id="s"))
    store.save_many([make.a_memory(), make.a_memory()])
    store.save(make.a_user(id="u", profile_json={"a": 1}, preferences_json={"b": 2}))
    entry = connection.execute(
        "SELECT memory_id, content ->> 'speaker', content ->> 'text', text_content, priority, is_active "
        "FROM memory_entries WHERE source_agent = 'bot'"
    ).fetchone()
    assert entry == (memory.id, "ana", memory.content, memory.content, 7, True)
    profile = connection.execute("SELECT user_id, profile_data, preferences FROM user_profiles").fetchone()
    assert profile == ("u", {"a": 1}, {"b": 2})
    log = connection.execute("SELECT memory_id, agent_id, operation, success FROM memory_access_logs ORDER BY log_id")
    assert log.fetchone() == (memory.id, "bot", "create", True)
    assert len(log.fetchall()) == 2
    vector = connection.execute("SELECT memory_id, embedding::text, embedding_model FROM vector_embeddings").fetchone()
    assert vector == (memory.id, "[1,2,3,4]", "default")


def test_an_approximate_index_finds_what_exact_search_finds(open_postgres: OpenPostgres) -> None:
    store = open_postgres()
    store.save_many(
        [make.a_heuristic(id=str(n), agent=f"agent {n % 7}", embedding=[1, n, n * n, 1]) for n in range(300)]
    )
    assert store.prepare_vector_index(type(make.a_heuristic())) == "idx_alma_heuristics_embedding"
    store.prepare_vector_index(type(make.a_heuristic()))
    scope = Scope(project_id="shop", agent="agent 3")
    exact = store.search_vector(type(make.a_heuristic()), [1, 40, 1600, 1], scope, limit=5)
    fast = store.search_vector(type(make.a_heuristic()), [1, 40, 1600, 1], scope, limit=5, exact=False)
    assert [hit.record.id for hit in fast] == [hit.record.id for hit in exact]


def test_each_model_gets_an_approximate_index_of_its_own(
    open_postgres: OpenPostgres, connection: psycopg.Connection[Any]
) -> None:
    older = open_postgres(embedding_model="it's older")
    older.save(make.a_heuristic(id="h", embedding=[1, 2, 3, 4]))
    newer = open_postgres(embedding_dim=3, embedding_model="newer")
    newer.put_vectors(Heuristic, {"h": [1, 2, 3]}, "newer")
    names = [store.prepare_vector_index(Heuristic) for store in (older, newer, older, newer)]
    assert names[:2] == names[2:]
    assert older.prepare_vector_index(Heuristic, "newer") == names[1]
    made = connection.execute("SELECT indexdef FROM pg_indexes WHERE indexdef LIKE '%USING hnsw%'").fetchall()
    assert [sum(f"vector({dims})" in definition for (definition,) in made) for dims in (3, 4)] == [1, 1]


def test_vectors_that_were_alone_are_kept_beside_passages(
    open_postgres: OpenPostgres, connection: psycopg.Connection[Any]
) -> None:
    PostgresMigrator(connection, "public", known_migrations("postgresql")[:1]).migrate()
    connection.execute(
        "CREATE EXTENSION vector;"
        "ALTER TABLE alma_embeddings ADD COLUMN embedding vector NOT NULL;"
        "CREATE VIEW vector_embeddings AS SELECT id AS embedding_id, memory_id, embedding, model AS embedding_model,"
        " created_at FROM alma_embeddings WHERE memory_type = 'memory';"
        "INSERT INTO memories (id, content, created_at, updated_at, last_accessed_at)"
        " VALUES ('m', 'x', now(), now(), now());"
        "INSERT INTO alma_embedding_models VALUES ('default', 4);"
        "INSERT INTO alma_embeddings (memory_type, memory_id, model, dims, embedding)"
        " VALUES ('memory', 'm', 'default', 4, '[1,0,0,0]');"
        "CREATE INDEX idx_memories_embedding ON alma_embeddings USING hnsw ((embedding::vector(4)) vector_cosine_ops)"
        " WHERE memory_type = 'memory' AND model = 'default'"
    )
    store = open_postgres()
    assert store.require(Memory, "m", EVERYWHERE).embedding == [1, 0, 0, 0]
    assert store.prepare_vector_index(Memory) == "idx_memories_embedding"
    store.put_passages(Memory, {"m": [[0, 1, 0, 0]]})
    assert store.nearest_ids(Memory, [0, 1, 0, 0], EVERYWHERE, exact=False) == [("m", 1.0)]
    rows = connection.execute("SELECT memory_id, embedding::text FROM vector_embeddings").fetchall()
    assert rows == [("m", "[1,0,0,0]")]


def test_vectors_too_long_for_an_index_say_so(open_postgres: OpenPostgres) -> None:
    with pytest.raises(UnsupportedOperation, match="2,000"):
        open_postgres(embedding_dim=3072).prepare_vector_index(Memory)
    with pytest.raises(ValidationError, match="16,000"):
        open_postgres(embedding_dim=20_000)


def test_a_server_that_is_not_there_is_one_clear_sentence() -> None:
    with pytest.raises(StorageError, match="PostgreSQL: connection"):
        PostgreSQLStorage("127.0.0.1", 1, "nothing", "nobody", "secret")


# ---------------------------------------------------------------------- partitions


@pytest.fixture
def filled(open_postgres: OpenPostgres) -> PostgreSQLStorage:
    """Memories of five months around now, and one from long ago."""
    store = open_postgres()
    first = clock.now() - timedelta(days=90)
    store.save_many(
        [
            make.a_memory(id=f"m{n}", tags=["t"], embedding=[1, n, 0, 0], created_at=first + timedelta(days=3 * n))
            for n in range(50)
        ]
    )
    store.save(make.a_memory(id="old", created_at=datetime(1999, 1, 1, tzinfo=UTC)))
    return store


def test_partitioning_keeps_every_row_and_puts_it_where_its_month_is(
    postgres_dsn: str, filled: PostgreSQLStorage
) -> None:
    before = filled.find(Memory, EVERYWHERE)
    made = partition_tables(postgres_dsn)
    assert {part.table for part in made} == {"memories", "audit_log"}
    assert sum(part.rows for part in made if part.table == "memories") == 51
    assert sum(1 for part in made if part.table == "memories" and part.rows) >= 5
    assert next(part.rows for part in made if part.name == "memories_default") == 1
    assert filled.find(Memory, EVERYWHERE) == before


def test_a_partitioned_store_keeps_its_promises(postgres_dsn: str, filled: PostgreSQLStorage) -> None:
    partition_tables(postgres_dsn)
    changed = filled.require(Memory, "m7", EVERYWHERE).replace(content="rewritten", created_at=clock.now())
    filled.save(changed)
    filled.save(make.a_memory(id="new", embedding=[0, 0, 1, 0]))
    assert filled.get(Memory, "m7", EVERYWHERE) == changed
    assert filled.count(Memory, EVERYWHERE, Compare("id", "eq", "m7")) == 1
    assert [hit.record.id for hit in filled.search_text(Memory, "rewritten", EVERYWHERE)] == ["m7"]
    assert [hit.record.id for hit in filled.search_vector(Memory, [0, 0, 1, 0], EVERYWHERE, limit=1)] == ["new"]
    assert filled.delete(Memory, ["m7", "old"], EVERYWHERE) == 2
    numbers = [event.key for event in filled.find(AuditEvent, EVERYWHERE, order=[Order("id")])]
    assert numbers == sorted(set(numbers))


def test_two_writers_of_one_new_id_make_one_memory(postgres_dsn: str, filled: PostgreSQLStorage) -> None:
    partition_tables(postgres_dsn)

    def save(day: int) -> None:
        filled.save(make.a_memory(id="same", created_at=clock.now() - timedelta(days=day)))

    assert together(*(partial(save, 30 * n) for n in range(4))) == []
    assert filled.count(Memory, EVERYWHERE, Compare("id", "eq", "same")) == 1
    assert len(filled.history(Memory, "same", EVERYWHERE)) == 4


def test_partitioning_again_only_adds_what_is_missing(postgres_dsn: str, filled: PostgreSQLStorage) -> None:
    few = partition_tables(postgres_dsn, ["audit_log"], ahead=1)
    more = partition_tables(postgres_dsn, ["audit_log"], ahead=3)
    assert len(more) == len(few) + 2
    assert {part.name for part in few} <= {part.name for part in more}


def test_quarters_and_views_work_after_partitioning(postgres_dsn: str, filled: PostgreSQLStorage) -> None:
    partition_tables(postgres_dsn, interval="quarter")
    with filled.connection() as connection:
        assert len(partitions(connection, "memories")) >= 5
        row = connection.execute("SELECT count(*) FROM memory_entries").fetchone()
        assert row == (51,)
        row = connection.execute("SELECT count(*) FROM memory_access_logs").fetchone()
        assert row == (51,)


def test_what_cannot_be_partitioned_is_refused(postgres_dsn: str) -> None:
    with pytest.raises(ConfigurationError, match="memories, audit_log and vectors"):
        partition_tables(postgres_dsn, ["users"])
    with pytest.raises(ValidationError, match="month"):
        partition_tables(postgres_dsn, interval="week")
    with pytest.raises(ConfigurationError, match="PostgreSQL"):
        partition_tables("alma.db")


# ---------------------------------------------------------------------- where the extension is


def found_again(dsn: str, schema: str) -> bool:
    with PostgreSQLStorage.from_dsn(dsn, embedding_dim=3, schema=schema) as store:
        memory = make.a_memory(embedding=[1, 2, 3])
        store.save(memory)
        [hit] = store.search_vector(Memory, [1, 2, 3], EVERYWHERE)
        return hit.record == memory and not store.notes


def test_several_schemas_of_a_database_share_its_extension(
    postgres_dsn: str, connection: psycopg.Connection[Any]
) -> None:
    assert found_again(postgres_dsn, "one")
    assert found_again(postgres_dsn, "two")
    connection.execute("DROP SCHEMA one CASCADE")
    with PostgreSQLStorage.from_dsn(postgres_dsn, embedding_dim=3, schema="two") as store:
        assert len(store.search_vector(Memory, [1, 2, 3], EVERYWHERE)) == 1


def test_the_extension_may_be_in_a_schema_of_its_own(postgres_dsn: str, connection: psycopg.Connection[Any]) -> None:
    connection.execute('CREATE SCHEMA "Our extensions"')
    connection.execute('CREATE EXTENSION vector SCHEMA "Our extensions"')
    assert found_again(postgres_dsn, "public")
    assert found_again(postgres_dsn, "agents")


def test_a_database_without_a_public_schema_will_do(postgres_dsn: str, connection: psycopg.Connection[Any]) -> None:
    connection.execute("DROP SCHEMA public CASCADE")
    assert found_again(postgres_dsn, "agents")


@pytest.mark.parametrize("schema", ["", "a\0b", "x" * 64, "é" * 32, None])
def test_a_name_that_no_schema_can_have_is_refused(postgres_dsn: str, schema: Any) -> None:
    with pytest.raises(ConfigurationError, match="schema"):
        PostgreSQLStorage.from_dsn(postgres_dsn, schema=schema)
