-- Times rise from here on, so that new rows fill an index's pages at its end; it is read in either direction.
DROP INDEX idx_memories_last_accessed;

CREATE INDEX idx_memories_last_accessed ON memories (last_accessed_at);

DROP INDEX idx_memories_created;

CREATE INDEX idx_memories_created ON memories (created_at);

DROP INDEX idx_memories_recent_important;

CREATE INDEX idx_memories_recent_important ON memories (created_at, importance_score) WHERE is_archived IS FALSE;

DROP INDEX idx_memories_project_type;

CREATE INDEX idx_memories_project_type ON memories (project_id, memory_type, created_at, id DESC);

DROP INDEX idx_memories_project_created;

CREATE INDEX idx_memories_project_created ON memories (project_id, created_at, id DESC);

DROP INDEX idx_audit_log_user;

CREATE INDEX idx_audit_log_user ON audit_log (user_id, created_at) WHERE user_id IS NOT NULL;

DROP INDEX idx_audit_log_action;

CREATE INDEX idx_audit_log_action ON audit_log (action, created_at);

DROP INDEX idx_audit_log_created;

CREATE INDEX idx_audit_log_created ON audit_log (created_at);

-- Memories of nobody need no place among those of the users.
DROP INDEX idx_memories_user;

CREATE INDEX idx_memories_user ON memories (user_id) WHERE user_id IS NOT NULL;

DROP INDEX idx_memories_user_project_type;

CREATE INDEX idx_memories_user_project_type ON memories (user_id, project_id, memory_type) WHERE user_id IS NOT NULL;

DROP INDEX idx_memories_user_global;

CREATE INDEX idx_memories_user_global ON memories (user_id, layer_global) WHERE user_id IS NOT NULL;

DROP INDEX idx_memories_user_created;

CREATE INDEX idx_memories_user_created ON memories (user_id, created_at, id DESC) WHERE user_id IS NOT NULL;

-- What was changed since is asked for, and most records never change: one index is enough.
DROP INDEX idx_memory_versions_changes;

DROP INDEX idx_memory_versions_created;

CREATE INDEX idx_memory_versions_created ON memory_versions (created_at) WHERE version_number > 1;
