"""The views under which tools written for the Memory Orchestrator find their tables on PostgreSQL."""

from __future__ import annotations

ORCHESTRATOR_VIEWS = {
    "memory_entries": """\
CREATE VIEW memory_entries AS
SELECT id AS memory_id, session_id, memory_type,
    coalesce(content_json, '{}'::jsonb) || jsonb_build_object('text', content) AS content,
    content AS text_content, source_agent, created_at, updated_at, expires_at,
    (1 + round(importance_score * 9))::integer AS priority, is_active
FROM memories;""",
    "user_profiles": """\
CREATE VIEW user_profiles AS
SELECT id AS user_id, created_at, updated_at, profile_json AS profile_data, preferences_json AS preferences, is_active
FROM users;""",
    "memory_access_logs": """\
CREATE VIEW memory_access_logs AS
SELECT id AS log_id, coalesce(member.memory_id, resource_id) AS memory_id, session_id, agent_id, action AS operation,
    created_at AS "timestamp", details_json AS request_data, success, error_message, ip_address
FROM audit_log
LEFT JOIN LATERAL jsonb_array_elements_text(resource_ids) AS member (memory_id) ON true
WHERE resource_type = 'memory';""",
}
