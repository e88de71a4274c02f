"""The views under which clients of the Memory Orchestrator find their tables on PostgreSQL, and write to them."""

from __future__ import annotations

# Where each column of a view is one of the table, PostgreSQL itself passes on what is written, ON CONFLICT included.
# The entries alone compute columns; triggers write what they say. A text that is nothing but the JSON says that the
# entry has none.
ORCHESTRATOR_VIEWS = {
    "sessions": """\
CREATE VIEW sessions AS
SELECT id AS session_id, user_id, created_at, updated_at, ended_at, metadata, summary, is_archived, session_type,
    id, project_id, agent, name, description, goal, git_branch, git_commit, working_directory, context_json,
    parent_session_id, last_active_at, is_active
FROM alma_sessions;""",
    "memory_entries": """\
CREATE VIEW memory_entries AS
SELECT id AS memory_id, session_id, memory_type, shown AS content, shown ->> 'text' AS text_content, source_agent,
    created_at, updated_at, expires_at, (1 + round(importance_score * 9))::integer AS priority, is_active
FROM memories
CROSS JOIN LATERAL (SELECT CASE
    WHEN content_json ->> 'text' = content OR content_json::text = content THEN content_json
    ELSE coalesce(content_json, '{}'::jsonb) || jsonb_build_object('text', content)
END AS shown) AS entry;""",
    "user_profiles": """\
CREATE VIEW user_profiles AS
SELECT id AS user_id, created_at, updated_at, profile_json AS profile_data, preferences_json AS preferences, is_active
FROM users;""",
    "agent_states": """\
CREATE VIEW agent_states AS
SELECT state_id, agent_id, session_id, state_data, created_at, updated_at, expires_at, id
FROM alma_agent_states;""",
    "memory_relationships": """\
CREATE VIEW memory_relationships AS
SELECT relationship_id, from_memory_id AS source_memory_id, to_memory_id AS target_memory_id, relationship_type,
    metadata, created_at, id, from_memory_id, to_memory_id, strength, context, auto_detected, created_by
FROM alma_memory_relationships;""",
    "memory_access_logs": """\
CREATE VIEW memory_access_logs AS
SELECT id AS log_id, coalesce(member.memory_id, resource_id) AS memory_id, session_id, agent_id, action AS operation,
    created_at AS "timestamp", details_json AS request_data, success, error_message, ip_address
FROM audit_log
LEFT JOIN LATERAL jsonb_array_elements_text(resource_ids) AS member (memory_id) ON true
WHERE resource_type = 'memory';""",
}
