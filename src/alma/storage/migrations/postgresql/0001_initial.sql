CREATE TABLE alma_heuristics (
    id TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    project_id TEXT COLLATE "C" NOT NULL,
    condition TEXT COLLATE "C" NOT NULL,
    strategy TEXT COLLATE "C" NOT NULL,
    confidence DOUBLE PRECISION DEFAULT 0.0 NOT NULL,
    occurrence_count BIGINT DEFAULT 0 NOT NULL,
    success_count BIGINT DEFAULT 0 NOT NULL,
    last_validated TIMESTAMP WITH TIME ZONE,
    created_at TIMESTAMP WITH TIME ZONE,
    metadata JSONB DEFAULT '{}' NOT NULL,
    search TSVECTOR,
    PRIMARY KEY (id),
    CONSTRAINT valid_alma_heuristics_confidence CHECK (confidence >= 0 AND confidence <= 1),
    CONSTRAINT valid_alma_heuristics_occurrence_count CHECK (occurrence_count >= 0),
    CONSTRAINT valid_alma_heuristics_success_count CHECK (success_count >= 0)
);

CREATE INDEX idx_heuristics_content_fts ON alma_heuristics USING gin (search);

CREATE INDEX idx_heuristics_project_agent ON alma_heuristics (project_id, agent);

CREATE TABLE alma_outcomes (
    id TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    project_id TEXT COLLATE "C" NOT NULL,
    task_type TEXT COLLATE "C",
    task_description TEXT COLLATE "C" NOT NULL,
    success BOOLEAN DEFAULT false NOT NULL,
    strategy_used TEXT COLLATE "C",
    duration_ms BIGINT,
    error_message TEXT COLLATE "C",
    user_feedback TEXT COLLATE "C",
    timestamp TIMESTAMP WITH TIME ZONE,
    metadata JSONB DEFAULT '{}' NOT NULL,
    search TSVECTOR,
    PRIMARY KEY (id),
    CONSTRAINT valid_alma_outcomes_duration_ms CHECK (duration_ms >= 0)
);

CREATE INDEX idx_outcomes_content_fts ON alma_outcomes USING gin (search);

CREATE INDEX idx_outcomes_project_agent ON alma_outcomes (project_id, agent);

CREATE INDEX idx_outcomes_task_type ON alma_outcomes (project_id, agent, task_type);

CREATE INDEX idx_outcomes_timestamp ON alma_outcomes (project_id, timestamp DESC);

CREATE TABLE alma_preferences (
    id TEXT COLLATE "C" NOT NULL,
    user_id TEXT COLLATE "C" NOT NULL,
    category TEXT COLLATE "C",
    preference TEXT COLLATE "C" NOT NULL,
    source TEXT COLLATE "C",
    confidence DOUBLE PRECISION DEFAULT 1.0 NOT NULL,
    timestamp TIMESTAMP WITH TIME ZONE,
    metadata JSONB DEFAULT '{}' NOT NULL,
    search TSVECTOR,
    PRIMARY KEY (id),
    CONSTRAINT valid_alma_preferences_confidence CHECK (confidence >= 0 AND confidence <= 1)
);

CREATE INDEX idx_preferences_content_fts ON alma_preferences USING gin (search);

CREATE INDEX idx_preferences_user ON alma_preferences (user_id);

CREATE TABLE alma_domain_knowledge (
    id TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    project_id TEXT COLLATE "C" NOT NULL,
    domain TEXT COLLATE "C",
    fact TEXT COLLATE "C" NOT NULL,
    source TEXT COLLATE "C",
    confidence DOUBLE PRECISION DEFAULT 1.0 NOT NULL,
    last_verified TIMESTAMP WITH TIME ZONE,
    metadata JSONB DEFAULT '{}' NOT NULL,
    search TSVECTOR,
    PRIMARY KEY (id),
    CONSTRAINT valid_alma_domain_knowledge_confidence CHECK (confidence >= 0 AND confidence <= 1)
);

CREATE INDEX idx_domain_knowledge_content_fts ON alma_domain_knowledge USING gin (search);

CREATE INDEX idx_domain_knowledge_project_agent ON alma_domain_knowledge (project_id, agent);

CREATE TABLE alma_anti_patterns (
    id TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    project_id TEXT COLLATE "C" NOT NULL,
    pattern TEXT COLLATE "C" NOT NULL,
    why_bad TEXT COLLATE "C",
    better_alternative TEXT COLLATE "C",
    occurrence_count BIGINT DEFAULT 1 NOT NULL,
    last_seen TIMESTAMP WITH TIME ZONE,
    created_at TIMESTAMP WITH TIME ZONE,
    metadata JSONB DEFAULT '{}' NOT NULL,
    search TSVECTOR,
    PRIMARY KEY (id),
    CONSTRAINT valid_alma_anti_patterns_occurrence_count CHECK (occurrence_count >= 0)
);

CREATE INDEX idx_anti_patterns_content_fts ON alma_anti_patterns USING gin (search);

CREATE INDEX idx_anti_patterns_project_agent ON alma_anti_patterns (project_id, agent);

CREATE TABLE users (
    id TEXT COLLATE "C" NOT NULL,
    username TEXT COLLATE "C" NOT NULL,
    email TEXT COLLATE "C",
    display_name TEXT COLLATE "C",
    profile_json JSONB DEFAULT '{}' NOT NULL,
    preferences_json JSONB DEFAULT '{}' NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    last_active_at TIMESTAMP WITH TIME ZONE NOT NULL,
    is_active BOOLEAN DEFAULT true NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX idx_user_profiles_is_active ON users (is_active);

CREATE INDEX idx_user_profiles_preferences ON users USING gin (preferences_json);

CREATE INDEX idx_users_active ON users (last_active_at) WHERE is_active IS TRUE;

CREATE UNIQUE INDEX idx_users_email ON users (email);

CREATE UNIQUE INDEX idx_users_username ON users (username);

CREATE TABLE projects (
    id TEXT COLLATE "C" NOT NULL,
    user_id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    description TEXT COLLATE "C",
    path TEXT COLLATE "C",
    git_remote_url TEXT COLLATE "C",
    git_branch TEXT COLLATE "C",
    project_type TEXT COLLATE "C",
    language TEXT COLLATE "C",
    framework TEXT COLLATE "C",
    config_json JSONB DEFAULT '{}' NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    last_accessed_at TIMESTAMP WITH TIME ZONE NOT NULL,
    is_active BOOLEAN DEFAULT true NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX idx_projects_path ON projects (path) WHERE path IS NOT NULL;

CREATE INDEX idx_projects_type ON projects (project_type);

CREATE INDEX idx_projects_user_active ON projects (user_id, last_accessed_at) WHERE is_active IS TRUE;

CREATE UNIQUE INDEX idx_projects_user_name ON projects (user_id, name);

CREATE TABLE sessions (
    id TEXT COLLATE "C" NOT NULL,
    user_id TEXT COLLATE "C",
    project_id TEXT COLLATE "C",
    agent TEXT COLLATE "C",
    name TEXT COLLATE "C" DEFAULT '' NOT NULL,
    description TEXT COLLATE "C",
    session_type TEXT COLLATE "C" DEFAULT 'conversation' NOT NULL,
    goal TEXT COLLATE "C",
    summary TEXT COLLATE "C",
    git_branch TEXT COLLATE "C",
    git_commit TEXT COLLATE "C",
    working_directory TEXT COLLATE "C",
    context_json JSONB DEFAULT '{}' NOT NULL,
    metadata JSONB DEFAULT '{}' NOT NULL,
    parent_session_id TEXT COLLATE "C",
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    last_active_at TIMESTAMP WITH TIME ZONE NOT NULL,
    ended_at TIMESTAMP WITH TIME ZONE,
    is_active BOOLEAN DEFAULT true NOT NULL,
    is_archived BOOLEAN DEFAULT false NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX idx_active_sessions ON sessions (user_id, last_active_at DESC) WHERE is_active IS TRUE;

CREATE INDEX idx_sessions_branch ON sessions (git_branch) WHERE git_branch IS NOT NULL;

CREATE INDEX idx_sessions_created_at ON sessions (created_at);

CREATE INDEX idx_sessions_parent ON sessions (parent_session_id) WHERE parent_session_id IS NOT NULL;

CREATE INDEX idx_sessions_project ON sessions (project_id) WHERE project_id IS NOT NULL;

CREATE INDEX idx_sessions_session_type ON sessions (session_type);

CREATE INDEX idx_sessions_user_active ON sessions (user_id, last_active_at) WHERE is_active IS TRUE;

CREATE INDEX idx_sessions_user_id ON sessions (user_id);

CREATE TABLE memories (
    id TEXT COLLATE "C" NOT NULL,
    user_id TEXT COLLATE "C",
    project_id TEXT COLLATE "C",
    session_id TEXT COLLATE "C",
    title TEXT COLLATE "C" DEFAULT '' NOT NULL,
    content TEXT COLLATE "C" NOT NULL,
    content_json JSONB,
    summary TEXT COLLATE "C",
    memory_type TEXT COLLATE "C" DEFAULT 'note' NOT NULL,
    category TEXT COLLATE "C",
    importance_score DOUBLE PRECISION DEFAULT 0.5 NOT NULL,
    decay_rate DOUBLE PRECISION DEFAULT 0.1 NOT NULL,
    access_count BIGINT DEFAULT 0 NOT NULL,
    last_accessed_at TIMESTAMP WITH TIME ZONE NOT NULL,
    context_json JSONB DEFAULT '{}' NOT NULL,
    git_context_json JSONB DEFAULT '{}' NOT NULL,
    layer_session BOOLEAN DEFAULT false NOT NULL,
    layer_project BOOLEAN DEFAULT false NOT NULL,
    layer_global BOOLEAN DEFAULT false NOT NULL,
    layer_temporal BOOLEAN DEFAULT false NOT NULL,
    source_agent TEXT COLLATE "C",
    source_tool TEXT COLLATE "C",
    external_id TEXT COLLATE "C",
    is_private BOOLEAN DEFAULT false NOT NULL,
    is_archived BOOLEAN DEFAULT false NOT NULL,
    is_active BOOLEAN DEFAULT true NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE,
    event_time TIMESTAMP WITH TIME ZONE,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    search TSVECTOR,
    PRIMARY KEY (id),
    CONSTRAINT valid_memories_importance_score CHECK (importance_score >= 0 AND importance_score <= 1),
    CONSTRAINT valid_memories_decay_rate CHECK (decay_rate >= 0 AND decay_rate <= 1),
    CONSTRAINT valid_memories_access_count CHECK (access_count >= 0)
);

CREATE INDEX idx_memories_category ON memories (category) WHERE category IS NOT NULL;

CREATE INDEX idx_memories_content_fts ON memories USING gin (search);

CREATE INDEX idx_memories_created ON memories (created_at DESC);

CREATE INDEX idx_memories_importance ON memories (importance_score DESC);

CREATE INDEX idx_memories_last_accessed ON memories (last_accessed_at DESC);

CREATE INDEX idx_memories_layers ON memories (layer_session, layer_project, layer_global, layer_temporal);

CREATE INDEX idx_memories_layers_importance ON memories (layer_global, layer_project, importance_score DESC);

CREATE INDEX idx_memories_project ON memories (project_id) WHERE project_id IS NOT NULL;

CREATE INDEX idx_memories_recent_important ON memories (created_at DESC, importance_score DESC) WHERE is_archived IS FALSE;

CREATE INDEX idx_memories_session ON memories (session_id) WHERE session_id IS NOT NULL;

CREATE INDEX idx_memories_type ON memories (memory_type);

CREATE INDEX idx_memories_user ON memories (user_id);

CREATE INDEX idx_memories_user_project_type ON memories (user_id, project_id, memory_type);

CREATE INDEX idx_memory_entries_content ON memories USING gin (content_json);

CREATE INDEX idx_memory_entries_expires_at ON memories (expires_at) WHERE expires_at IS NOT NULL;

CREATE INDEX idx_memory_entries_source_agent ON memories (source_agent) WHERE source_agent IS NOT NULL;

CREATE TABLE memory_relationships (
    id TEXT COLLATE "C" NOT NULL,
    from_memory_id TEXT COLLATE "C" NOT NULL,
    to_memory_id TEXT COLLATE "C" NOT NULL,
    relationship_type TEXT COLLATE "C" NOT NULL,
    strength DOUBLE PRECISION DEFAULT 1.0 NOT NULL,
    context TEXT COLLATE "C",
    auto_detected BOOLEAN DEFAULT false NOT NULL,
    metadata JSONB DEFAULT '{}' NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    created_by TEXT COLLATE "C",
    PRIMARY KEY (id),
    CONSTRAINT valid_memory_relationships_strength CHECK (strength >= 0 AND strength <= 1),
    CONSTRAINT distinct_memory_relationships_from_memory_id CHECK (from_memory_id <> to_memory_id)
);

CREATE INDEX idx_memory_relationships_auto ON memory_relationships (auto_detected);

CREATE INDEX idx_memory_relationships_from ON memory_relationships (from_memory_id);

CREATE INDEX idx_memory_relationships_strength ON memory_relationships (strength DESC);

CREATE INDEX idx_memory_relationships_to ON memory_relationships (to_memory_id);

CREATE INDEX idx_memory_relationships_type ON memory_relationships (relationship_type);

CREATE UNIQUE INDEX unique_memory_relationship ON memory_relationships (from_memory_id, to_memory_id, relationship_type);

CREATE TABLE memory_versions (
    id BIGINT GENERATED BY DEFAULT AS IDENTITY,
    kind TEXT COLLATE "C" NOT NULL,
    memory_id TEXT COLLATE "C" NOT NULL,
    version_number BIGINT NOT NULL,
    title TEXT COLLATE "C",
    content TEXT COLLATE "C",
    summary TEXT COLLATE "C",
    change_type TEXT COLLATE "C" NOT NULL,
    change_reason TEXT COLLATE "C",
    diff_json JSONB,
    record_json JSONB,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    created_by TEXT COLLATE "C",
    PRIMARY KEY (id),
    CONSTRAINT valid_memory_versions_version_number CHECK (version_number >= 1)
);

CREATE INDEX idx_memory_versions_created ON memory_versions (created_at DESC);

CREATE UNIQUE INDEX idx_memory_versions_memory ON memory_versions (memory_id, version_number, kind);

CREATE TABLE session_memories (
    id TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL,
    memory_id TEXT COLLATE "C" NOT NULL,
    position_in_session BIGINT,
    working_memory BOOLEAN DEFAULT false NOT NULL,
    context_window_position BIGINT,
    added_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT valid_session_memories_position_in_session CHECK (position_in_session >= 0),
    CONSTRAINT valid_session_memories_context_window_position CHECK (context_window_position >= 0)
);

CREATE INDEX idx_session_memories_context ON session_memories (context_window_position) WHERE context_window_position IS NOT NULL;

CREATE INDEX idx_session_memories_session ON session_memories (session_id, position_in_session);

CREATE INDEX idx_session_memories_working ON session_memories (session_id, working_memory) WHERE working_memory IS TRUE;

CREATE UNIQUE INDEX unique_session_memory ON session_memories (session_id, memory_id);

CREATE TABLE project_patterns (
    id TEXT COLLATE "C" NOT NULL,
    project_id TEXT COLLATE "C" NOT NULL,
    pattern_type TEXT COLLATE "C" NOT NULL,
    pattern_name TEXT COLLATE "C" NOT NULL,
    pattern_description TEXT COLLATE "C" NOT NULL,
    pattern_data_json JSONB DEFAULT '{}' NOT NULL,
    success_rate DOUBLE PRECISION DEFAULT 1.0 NOT NULL,
    usage_count BIGINT DEFAULT 1 NOT NULL,
    memory_ids JSONB DEFAULT '[]' NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    last_used_at TIMESTAMP WITH TIME ZONE NOT NULL,
    search TSVECTOR,
    PRIMARY KEY (id),
    CONSTRAINT valid_project_patterns_success_rate CHECK (success_rate >= 0 AND success_rate <= 1),
    CONSTRAINT valid_project_patterns_usage_count CHECK (usage_count >= 0)
);

CREATE INDEX idx_project_patterns_content_fts ON project_patterns USING gin (search);

CREATE INDEX idx_project_patterns_project ON project_patterns (project_id);

CREATE INDEX idx_project_patterns_success ON project_patterns (success_rate DESC);

CREATE INDEX idx_project_patterns_type ON project_patterns (pattern_type);

CREATE INDEX idx_project_patterns_usage ON project_patterns (usage_count DESC);

CREATE UNIQUE INDEX unique_project_pattern ON project_patterns (project_id, pattern_type, pattern_name);

CREATE TABLE session_handoffs (
    id TEXT COLLATE "C" NOT NULL,
    project_id TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL,
    goal TEXT COLLATE "C",
    last_action TEXT COLLATE "C" NOT NULL,
    last_outcome TEXT COLLATE "C",
    current_goal TEXT COLLATE "C",
    key_decisions JSONB DEFAULT '[]' NOT NULL,
    active_files JSONB DEFAULT '[]' NOT NULL,
    blockers JSONB DEFAULT '[]' NOT NULL,
    next_steps JSONB DEFAULT '[]' NOT NULL,
    confidence_level DOUBLE PRECISION DEFAULT 0.5 NOT NULL,
    risk_flags JSONB DEFAULT '[]' NOT NULL,
    test_status JSONB DEFAULT '{}' NOT NULL,
    duration_ms BIGINT,
    metadata JSONB DEFAULT '{}' NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT valid_session_handoffs_confidence_level CHECK (confidence_level >= 0 AND confidence_level <= 1),
    CONSTRAINT valid_session_handoffs_duration_ms CHECK (duration_ms >= 0)
);

CREATE INDEX idx_session_handoffs_project_agent ON session_handoffs (project_id, agent, created_at DESC);

CREATE TABLE work_items (
    id TEXT COLLATE "C" NOT NULL,
    project_id TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C",
    title TEXT COLLATE "C" NOT NULL,
    description TEXT COLLATE "C" DEFAULT '' NOT NULL,
    item_type TEXT COLLATE "C" DEFAULT 'task' NOT NULL,
    status TEXT COLLATE "C" DEFAULT 'pending' NOT NULL,
    priority BIGINT DEFAULT 50 NOT NULL,
    parent_id TEXT COLLATE "C",
    blocks JSONB DEFAULT '[]' NOT NULL,
    blocked_by JSONB DEFAULT '[]' NOT NULL,
    tests JSONB DEFAULT '[]' NOT NULL,
    tests_passing BOOLEAN DEFAULT false NOT NULL,
    acceptance_criteria JSONB DEFAULT '[]' NOT NULL,
    attempt_count BIGINT DEFAULT 0 NOT NULL,
    time_spent_ms BIGINT DEFAULT 0 NOT NULL,
    metadata JSONB DEFAULT '{}' NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    started_at TIMESTAMP WITH TIME ZONE,
    completed_at TIMESTAMP WITH TIME ZONE,
    PRIMARY KEY (id),
    CONSTRAINT valid_work_items_priority CHECK (priority >= 0 AND priority <= 100),
    CONSTRAINT valid_work_items_attempt_count CHECK (attempt_count >= 0),
    CONSTRAINT valid_work_items_time_spent_ms CHECK (time_spent_ms >= 0)
);

CREATE INDEX idx_work_items_project_status ON work_items (project_id, status, priority DESC);

CREATE TABLE agent_states (
    id TEXT COLLATE "C" NOT NULL,
    agent_id TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C",
    state_data JSONB DEFAULT '{}' NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE,
    PRIMARY KEY (id)
);

CREATE INDEX idx_agent_states_agent_id ON agent_states (agent_id);

CREATE INDEX idx_agent_states_expires_at ON agent_states (expires_at);

CREATE INDEX idx_agent_states_session_id ON agent_states (session_id);

CREATE UNIQUE INDEX unique_agent_session ON agent_states (agent_id, session_id) NULLS NOT DISTINCT;

CREATE TABLE system_config (
    key TEXT COLLATE "C" NOT NULL,
    value TEXT COLLATE "C" NOT NULL,
    value_type TEXT COLLATE "C" DEFAULT 'string' NOT NULL,
    description TEXT COLLATE "C",
    is_user_configurable BOOLEAN DEFAULT false NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_by TEXT COLLATE "C",
    PRIMARY KEY (key)
);

CREATE TABLE audit_log (
    id BIGINT GENERATED BY DEFAULT AS IDENTITY,
    user_id TEXT COLLATE "C",
    session_id TEXT COLLATE "C",
    agent_id TEXT COLLATE "C",
    action TEXT COLLATE "C" NOT NULL,
    resource_type TEXT COLLATE "C" NOT NULL,
    resource_id TEXT COLLATE "C" NOT NULL,
    resource_ids JSONB,
    details_json JSONB,
    success BOOLEAN DEFAULT true NOT NULL,
    error_message TEXT COLLATE "C",
    ip_address TEXT COLLATE "C",
    user_agent TEXT COLLATE "C",
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX idx_audit_log_action ON audit_log (action, created_at DESC);

CREATE INDEX idx_audit_log_created ON audit_log (created_at DESC);

CREATE INDEX idx_audit_log_resource ON audit_log (resource_type, resource_id);

CREATE INDEX idx_audit_log_user ON audit_log (user_id, created_at DESC) WHERE user_id IS NOT NULL;

CREATE INDEX idx_memory_access_logs_agent_id ON audit_log (agent_id) WHERE agent_id IS NOT NULL;

CREATE INDEX idx_memory_access_logs_session_id ON audit_log (session_id) WHERE session_id IS NOT NULL;

CREATE INDEX idx_memory_access_logs_success ON audit_log (success) WHERE success IS FALSE;

CREATE TABLE memory_tags (
    tag_id BIGINT GENERATED BY DEFAULT AS IDENTITY,
    memory_id TEXT COLLATE "C" NOT NULL,
    tag TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tag_id)
);

CREATE INDEX idx_memory_tags_memory_id ON memory_tags (memory_id);

CREATE INDEX idx_memory_tags_tag ON memory_tags (tag);

CREATE UNIQUE INDEX unique_memory_tag ON memory_tags (memory_id, tag);

CREATE TABLE alma_embeddings (
    id BIGINT GENERATED BY DEFAULT AS IDENTITY,
    memory_type TEXT COLLATE "C" NOT NULL,
    memory_id TEXT COLLATE "C" NOT NULL,
    model TEXT COLLATE "C" NOT NULL,
    dims INTEGER NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    PRIMARY KEY (id)
);

CREATE UNIQUE INDEX idx_embeddings_type ON alma_embeddings (memory_type, memory_id, model);

CREATE TABLE alma_embedding_models (
    model TEXT COLLATE "C" NOT NULL,
    dims INTEGER NOT NULL,
    PRIMARY KEY (model)
);

CREATE TABLE alma_projections (
    projection TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (projection, kind)
);

CREATE TABLE alma_outbox (
    projection TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    record_id TEXT COLLATE "C" NOT NULL,
    generation BIGINT NOT NULL,
    marked_at TIMESTAMP WITH TIME ZONE NOT NULL,
    leased_until TIMESTAMP WITH TIME ZONE,
    attempts INTEGER DEFAULT 0 NOT NULL,
    error TEXT COLLATE "C",
    parked BOOLEAN DEFAULT false NOT NULL,
    PRIMARY KEY (projection, kind, record_id)
);

CREATE INDEX idx_alma_outbox_marked ON alma_outbox (projection, marked_at);

CREATE VIEW memory_entries AS
SELECT id AS memory_id, session_id, memory_type,
    coalesce(content_json, '{}'::jsonb) || jsonb_build_object('text', content) AS content,
    content AS text_content, source_agent, created_at, updated_at, expires_at,
    (1 + round(importance_score * 9))::integer AS priority, is_active
FROM memories;

CREATE VIEW user_profiles AS
SELECT id AS user_id, created_at, updated_at, profile_json AS profile_data, preferences_json AS preferences, is_active
FROM users;

CREATE VIEW memory_access_logs AS
SELECT id AS log_id, coalesce(member.memory_id, resource_id) AS memory_id, session_id, agent_id, action AS operation,
    created_at AS "timestamp", details_json AS request_data, success, error_message, ip_address
FROM audit_log
LEFT JOIN LATERAL jsonb_array_elements_text(resource_ids) AS member (memory_id) ON true
WHERE resource_type = 'memory';

INSERT INTO system_config (key, value, value_type, description, is_user_configurable, updated_at)
VALUES ('memory_decay_enabled', 'true', 'boolean', 'Enable automatic memory decay', true, now());

INSERT INTO system_config (key, value, value_type, description, is_user_configurable, updated_at)
VALUES ('default_decay_rate', '0.1', 'float', 'Default decay rate for new memories', true, now());

INSERT INTO system_config (key, value, value_type, description, is_user_configurable, updated_at)
VALUES ('max_memories_per_session', '1000', 'integer', 'Maximum memories in a single session', true, now());

INSERT INTO system_config (key, value, value_type, description, is_user_configurable, updated_at)
VALUES ('semantic_search_threshold', '0.7', 'float', 'Minimum similarity threshold for semantic search', true, now());

INSERT INTO system_config (key, value, value_type, description, is_user_configurable, updated_at)
VALUES ('auto_categorization_enabled', 'true', 'boolean', 'Enable automatic memory categorization', true, now());
