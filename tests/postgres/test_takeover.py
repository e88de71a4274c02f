"""A PostgreSQL schema that alma-memory 0.4 made is taken over with everything in it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import psycopg
import pytest

from alma.errors import MigrationError
from alma.memory.audit import AuditTrail
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.scope import Scope
from alma.storage.postgresql import PostgreSQLStorage
from tests.conftest import fresh_database
from tests.support.postgres import PostgresServer

EVERYWHERE = Scope.everywhere()
THEN = datetime(2026, 1, 28, 9, tzinfo=UTC)
# As the schema document of alma-memory writes them.
OLDER_SCHEMA = """
CREATE TABLE alma_heuristics (id TEXT PRIMARY KEY, agent TEXT NOT NULL, project_id TEXT NOT NULL,
    condition TEXT NOT NULL, strategy TEXT NOT NULL, confidence REAL DEFAULT 0.0, occurrence_count INTEGER DEFAULT 0,
    success_count INTEGER DEFAULT 0, last_validated TIMESTAMPTZ, created_at TIMESTAMPTZ DEFAULT NOW(),
    metadata JSONB, embedding {vector});
CREATE TABLE alma_outcomes (id TEXT PRIMARY KEY, agent TEXT NOT NULL, project_id TEXT NOT NULL, task_type TEXT,
    task_description TEXT NOT NULL, success BOOLEAN DEFAULT FALSE, strategy_used TEXT, duration_ms INTEGER,
    error_message TEXT, user_feedback TEXT, timestamp TIMESTAMPTZ DEFAULT NOW(), metadata JSONB, embedding {vector});
CREATE TABLE alma_preferences (id TEXT PRIMARY KEY, user_id TEXT NOT NULL, category TEXT, preference TEXT NOT NULL,
    source TEXT, confidence REAL DEFAULT 1.0, timestamp TIMESTAMPTZ DEFAULT NOW(), metadata JSONB);
CREATE TABLE alma_domain_knowledge (id TEXT PRIMARY KEY, agent TEXT NOT NULL, project_id TEXT NOT NULL, domain TEXT,
    fact TEXT NOT NULL, source TEXT, confidence REAL DEFAULT 1.0, last_verified TIMESTAMPTZ DEFAULT NOW(),
    metadata JSONB, embedding {vector});
CREATE TABLE alma_anti_patterns (id TEXT PRIMARY KEY, agent TEXT NOT NULL, project_id TEXT NOT NULL,
    pattern TEXT NOT NULL, why_bad TEXT, better_alternative TEXT, occurrence_count INTEGER DEFAULT 1,
    last_seen TIMESTAMPTZ DEFAULT NOW(), created_at TIMESTAMPTZ DEFAULT NOW(), metadata JSONB, embedding {vector});
CREATE INDEX idx_heuristics_project_agent ON alma_heuristics (project_id, agent);
CREATE INDEX idx_outcomes_project_agent ON alma_outcomes (project_id, agent);
CREATE INDEX idx_preferences_user ON alma_preferences (user_id);
"""
_VECTOR = "[0.5,0.5,0.5,0.5]"
OLDER_ROWS = """
INSERT INTO alma_heuristics VALUES ('h', 'helena', 'shop', 'forms with many fields', 'test each field', 0.9, 12, 10,
    '{then}', '{then}', '{{"tool": "browser"}}', {value});
INSERT INTO alma_heuristics (id, agent, project_id, condition, strategy) VALUES ('empty', 'helena', 'shop', '', '');
INSERT INTO alma_outcomes (id, agent, project_id, task_description, success, metadata, timestamp, embedding)
    SELECT 'o' || n, 'helena', 'shop', 'checked form ' || n, n % 2 = 0, NULL, '{then}', {value}
    FROM generate_series(1, 1200) AS n;
INSERT INTO alma_preferences VALUES ('p', 'ada', 'style', 'short answers', 'said so', 1.0, '{then}', '[1]');
INSERT INTO alma_domain_knowledge VALUES ('k', 'helena', 'shop', 'auth', 'logins use JWT', 'docs', 0.8, '{then}',
    '{{}}', NULL);
INSERT INTO alma_anti_patterns VALUES ('a', 'helena', 'shop', 'fixed sleeps', 'flaky', 'wait for it', 3, '{then}',
    '{then}', NULL, {value});
"""
_COUNTS = {Heuristic: 1, Outcome: 1200, UserPreference: 1, DomainKnowledge: 1, AntiPattern: 1}


@pytest.fixture
def dsn(postgres: PostgresServer) -> Iterator[str]:
    with fresh_database(postgres, empty=True) as dsn:
        yield dsn


def make_older(dsn: str, vector: str = "VECTOR(4)", value: str = f"'{_VECTOR}'") -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        connection.execute(OLDER_SCHEMA.format(vector=vector).encode())
        connection.execute(OLDER_ROWS.format(then=THEN.isoformat(), value=value).encode())


def test_every_older_memory_is_taken_over_once(dsn: str) -> None:
    make_older(dsn)
    for _ in range(2):
        with PostgreSQLStorage.from_dsn(dsn, embedding_dim=4) as store:
            assert {cls: store.count(cls, EVERYWHERE) for cls in _COUNTS} == _COUNTS
            heuristic = store.require(Heuristic, "h", EVERYWHERE)
            assert (heuristic.confidence, heuristic.occurrence_count, heuristic.success_count) == (0.9, 12, 10)
            assert (heuristic.created_at, heuristic.metadata) == (THEN, {"tool": "browser"})
            preference = store.require(UserPreference, "p", EVERYWHERE)
            assert preference.metadata == {"alma_memory": {"metadata": [1]}}
            assert store.models() == {"default": 4}
            nearest = store.search_vector(AntiPattern, [1, 1, 1, 1], EVERYWHERE)
            assert [hit.record.id for hit in nearest] == ["a"]
            assert store.count_without_vector(Outcome, "default", EVERYWHERE) == 0
            assert [hit.record.id for hit in store.search_text(DomainKnowledge, "login", EVERYWHERE)] == ["k"]
            (version,) = store.history(Heuristic, "h", EVERYWHERE)
            assert version.change_reason == "taken over from alma-memory"
            assert AuditTrail(store).verify().ok
    with psycopg.connect(dsn) as connection:
        kept = connection.execute(
            "SELECT count(*), sum(occurrence_count) FROM legacy_public.alma_heuristics"
        ).fetchone()
    assert kept == (2, 12)


def test_vectors_of_a_server_without_pgvector_are_taken_over(dsn: str) -> None:
    make_older(dsn, "BYTEA", "decode('0000803f000000000000000000000000', 'hex')")
    with PostgreSQLStorage.from_dsn(dsn, embedding_model="minilm", embedding_dim=8) as store:
        # They have another length than those of the model that the store is opened for.
        assert store.models() == {"alma-memory, 4 dimensions": 4}
        ((_, _, _, vector),) = store.vectors_of(Heuristic, ["h"])
        assert list(vector) == [1, 0, 0, 0]


def test_a_takeover_that_fails_changes_nothing(dsn: str) -> None:
    make_older(dsn)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA legacy_public CREATE TABLE alma_outcomes (id TEXT)")
        with pytest.raises(Exception, match="alma_outcomes"):
            PostgreSQLStorage.from_dsn(dsn)
        rows = connection.execute("SELECT count(*) FROM alma_outcomes").fetchone()
    assert rows == (1200,)


def test_tables_of_another_program_are_left_alone(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE alma_preferences (id TEXT)")
    with pytest.raises(MigrationError, match="tables of another program"):
        PostgreSQLStorage.from_dsn(dsn)
