"""The documents' names of tables, columns and indexes are the ones in the databases."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from alma.storage.sqlite_local import SQLiteStorage
from tests.conftest import OpenPostgres

LEARNING = {
    "heuristics": "id agent project_id condition strategy confidence occurrence_count success_count last_validated "
    "created_at metadata",
    "outcomes": "id agent project_id task_type task_description success strategy_used duration_ms error_message "
    "user_feedback timestamp metadata",
    "preferences": "id user_id category preference source confidence timestamp metadata",
    "domain_knowledge": "id agent project_id domain fact source confidence last_verified metadata",
    "anti_patterns": "id agent project_id pattern why_bad better_alternative occurrence_count last_seen created_at "
    "metadata",
}
WORKSPACE = {
    "users": "id username email display_name preferences_json created_at updated_at last_active_at is_active",
    "projects": "id user_id name description path git_remote_url git_branch project_type language framework "
    "config_json created_at updated_at last_accessed_at is_active",
    "sessions": "id user_id project_id name description git_branch git_commit working_directory context_json "
    "parent_session_id created_at updated_at last_active_at ended_at is_active metadata summary is_archived "
    "session_type",
    "memories": "id user_id project_id session_id title content summary memory_type category importance_score "
    "decay_rate access_count last_accessed_at context_json git_context_json layer_session layer_project layer_global "
    "layer_temporal source_tool external_id is_private is_archived created_at updated_at source_agent expires_at "
    "is_active",
    "memory_tags": "tag_id memory_id tag",
    "memory_relationships": "id from_memory_id to_memory_id relationship_type strength context auto_detected "
    "created_at created_by metadata",
    "memory_versions": "id memory_id version_number title content summary change_type change_reason diff_json "
    "created_at created_by",
    "session_memories": "id session_id memory_id position_in_session working_memory context_window_position added_at",
    "project_patterns": "id project_id pattern_type pattern_name pattern_description pattern_data_json success_rate "
    "usage_count memory_ids created_at updated_at last_used_at",
    "agent_states": "id agent_id session_id state_data created_at updated_at expires_at",
    "system_config": "key value value_type description is_user_configurable updated_at updated_by",
    "audit_log": "id user_id session_id action resource_type resource_id details_json ip_address user_agent "
    "created_at agent_id success error_message",
    "schema_migrations": "version name applied_at checksum",
}
VIEWS = {
    "memory_entries": "memory_id session_id memory_type content text_content source_agent created_at updated_at "
    "expires_at priority is_active",
    "user_profiles": "user_id created_at updated_at profile_data preferences is_active",
    "memory_access_logs": "log_id memory_id session_id agent_id operation timestamp request_data success "
    "error_message ip_address",
    "vector_embeddings": "embedding_id memory_id embedding embedding_model created_at",
}
INDEXES = """
idx_heuristics_project_agent idx_outcomes_project_agent idx_outcomes_task_type idx_preferences_user
idx_domain_knowledge_project_agent idx_anti_patterns_project_agent idx_embeddings_type idx_users_username
idx_users_email idx_users_active idx_projects_user_name idx_projects_user_active idx_projects_path idx_projects_type
idx_sessions_user_active idx_sessions_project idx_sessions_branch idx_sessions_parent idx_active_sessions
idx_sessions_user_id idx_sessions_created_at idx_sessions_session_type idx_memories_user idx_memories_project
idx_memories_session idx_memories_type idx_memories_category idx_memories_importance idx_memories_last_accessed
idx_memories_created idx_memories_layers idx_memories_user_project_type idx_memories_layers_importance
idx_memories_recent_important idx_memory_relationships_from idx_memory_relationships_to idx_memory_relationships_type
idx_memory_relationships_strength idx_memory_relationships_auto idx_memory_versions_memory
idx_memory_versions_created idx_session_memories_session idx_session_memories_working idx_session_memories_context
idx_project_patterns_project idx_project_patterns_type idx_project_patterns_success idx_project_patterns_usage
idx_audit_log_user idx_audit_log_action idx_audit_log_resource idx_audit_log_created idx_memory_tags_memory_id
idx_memory_tags_tag idx_agent_states_agent_id idx_agent_states_session_id idx_agent_states_expires_at
idx_user_profiles_is_active idx_memory_entries_expires_at idx_memory_entries_source_agent
idx_memory_access_logs_agent_id idx_memory_access_logs_session_id idx_memory_access_logs_success
""".split()  # noqa: SIM905 - the names as the documents list them


def test_sqlite_has_the_documented_names(tmp_path: Path) -> None:
    SQLiteStorage(tmp_path / "alma.db").close()
    with closing(sqlite3.connect(tmp_path / "alma.db")) as connection:
        embeddings = {"embeddings": "id memory_type memory_id embedding"}
        for table, columns in {**LEARNING, **WORKSPACE, **embeddings}.items():
            found = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
            assert set(columns.split()) <= found, table
        names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
        assert set(INDEXES) <= names
        assert "memories_fts" in names


def test_postgresql_has_the_documented_names(open_postgres: OpenPostgres, postgres_dsn: str) -> None:
    store = open_postgres()
    for cls in _embedded():
        store.prepare_vector_index(cls)
    prefixed = {f"alma_{table}": columns for table, columns in LEARNING.items()}
    with psycopg.connect(postgres_dsn) as connection:
        for table, columns in {**prefixed, **WORKSPACE, **VIEWS}.items():
            rows = connection.execute(
                "SELECT column_name FROM information_schema.columns WHERE table_name = %s", (table,)
            ).fetchall()
            assert set(columns.split()) <= {name for (name,) in rows}, table
        names = {name for (name,) in connection.execute("SELECT indexname FROM pg_indexes").fetchall()}
    vectors = {f"idx_alma_{each}_embedding" for each in ("heuristics", "outcomes", "domain_knowledge", "anti_patterns")}
    gin = {"idx_memories_content_fts", "idx_memory_entries_content", "idx_user_profiles_preferences"}
    assert {*INDEXES, *vectors, *gin} <= names


def _embedded() -> list[type]:
    from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome

    return [Heuristic, Outcome, DomainKnowledge, AntiPattern]


def test_out_of_range_values_are_refused_by_the_database_too(tmp_path: Path) -> None:
    SQLiteStorage(tmp_path / "alma.db").close()
    with closing(sqlite3.connect(tmp_path / "alma.db")) as connection:
        for statement in (
            "INSERT INTO heuristics (id, agent, project_id, condition, strategy, confidence) VALUES (1,1,1,1,1,1.5)",
            "INSERT INTO memory_relationships (id, from_memory_id, to_memory_id, relationship_type, created_at) "
            "VALUES ('r', 'm', 'm', 'x', '2026')",
        ):
            with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
                connection.execute(statement)
