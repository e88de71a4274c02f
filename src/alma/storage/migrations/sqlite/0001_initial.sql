CREATE TABLE heuristics (
    seq INTEGER NOT NULL,
    id TEXT NOT NULL,
    agent TEXT NOT NULL,
    project_id TEXT NOT NULL,
    condition TEXT NOT NULL,
    strategy TEXT NOT NULL,
    confidence REAL DEFAULT (0.0) NOT NULL,
    occurrence_count INTEGER DEFAULT 0 NOT NULL,
    success_count INTEGER DEFAULT 0 NOT NULL,
    last_validated TEXT,
    created_at TEXT,
    metadata TEXT DEFAULT '{}' NOT NULL,
    PRIMARY KEY (seq),
    CONSTRAINT valid_heuristics_confidence CHECK (confidence >= 0 AND confidence <= 1),
    CONSTRAINT valid_heuristics_occurrence_count CHECK (occurrence_count >= 0),
    CONSTRAINT valid_heuristics_success_count CHECK (success_count >= 0),
    UNIQUE (id)
);

CREATE INDEX idx_heuristics_project_agent ON heuristics (project_id, agent);

CREATE TABLE outcomes (
    seq INTEGER NOT NULL,
    id TEXT NOT NULL,
    agent TEXT NOT NULL,
    project_id TEXT NOT NULL,
    task_type TEXT,
    task_description TEXT NOT NULL,
    success BOOLEAN DEFAULT 0 NOT NULL,
    strategy_used TEXT,
    duration_ms INTEGER,
    error_message TEXT,
    user_feedback TEXT,
    timestamp TEXT,
    metadata TEXT DEFAULT '{}' NOT NULL,
    PRIMARY KEY (seq),
    CONSTRAINT valid_outcomes_duration_ms CHECK (duration_ms >= 0),
    UNIQUE (id)
);

CREATE INDEX idx_outcomes_project_agent ON outcomes (project_id, agent);

CREATE INDEX idx_outcomes_task_type ON outcomes (project_id, agent, task_type);

CREATE INDEX idx_outcomes_timestamp ON outcomes (project_id, timestamp DESC);

CREATE TABLE preferences (
    seq INTEGER NOT NULL,
    id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    category TEXT,
    preference TEXT NOT NULL,
    source TEXT,
    confidence REAL DEFAULT (1.0) NOT NULL,
    timestamp TEXT,
    metadata TEXT DEFAULT '{}' NOT NULL,
    PRIMARY KEY (seq),
    CONSTRAINT valid_preferences_confidence CHECK (confidence >= 0 AND confidence <= 1),
    UNIQUE (id)
);

CREATE INDEX idx_preferences_user ON preferences (user_id);

CREATE TABLE domain_knowledge (
    seq INTEGER NOT NULL,
    id TEXT NOT NULL,
    agent TEXT NOT NULL,
    project_id TEXT NOT NULL,
    domain TEXT,
    fact TEXT NOT NULL,
    source TEXT,
    confidence REAL DEFAULT (1.0) NOT NULL,
    last_verified TEXT,
    metadata TEXT DEFAULT '{}' NOT NULL,
    PRIMARY KEY (seq),
    CONSTRAINT valid_domain_knowledge_confidence CHECK (confidence >= 0 AND confidence <= 1),
    UNIQUE (id)
);

CREATE INDEX idx_domain_knowledge_project_agent ON domain_knowledge (project_id, agent);

CREATE TABLE anti_patterns (
    seq INTEGER NOT NULL,
    id TEXT NOT NULL,
    agent TEXT NOT NULL,
    project_id TEXT NOT NULL,
    pattern TEXT NOT NULL,
    why_bad TEXT,
    better_alternative TEXT,
    occurrence_count INTEGER DEFAULT 1 NOT NULL,
    last_seen TEXT,
    created_at TEXT,
    metadata TEXT DEFAULT '{}' NOT NULL,
    PRIMARY KEY (seq),
    CONSTRAINT valid_anti_patterns_occurrence_count CHECK (occurrence_count >= 0),
    UNIQUE (id)
);

CREATE INDEX idx_anti_patterns_project_agent ON anti_patterns (project_id, agent);

CREATE TABLE users (
    id TEXT NOT NULL,
    username TEXT NOT NULL,
    email TEXT,
    display_name TEXT,
    profile_json TEXT DEFAULT '{}' NOT NULL,
    preferences_json TEXT DEFAULT '{}' NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    last_active_at TEXT NOT NULL,
    is_active BOOLEAN DEFAULT 1 NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX idx_user_profiles_is_active ON users (is_active);

CREATE INDEX idx_users_active ON users (last_active_at) WHERE is_active IS TRUE;

CREATE UNIQUE INDEX idx_users_email ON users (email);

CREATE UNIQUE INDEX idx_users_username ON users (username);

CREATE TABLE projects (
    id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    path TEXT,
    git_remote_url TEXT,
    git_branch TEXT,
    project_type TEXT,
    language TEXT,
    framework TEXT,
    config_json TEXT DEFAULT '{}' NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    last_accessed_at TEXT NOT NULL,
    is_active BOOLEAN DEFAULT 1 NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX idx_projects_path ON projects (path) WHERE path IS NOT NULL;

CREATE INDEX idx_projects_type ON projects (project_type);

CREATE INDEX idx_projects_user_active ON projects (user_id, last_accessed_at) WHERE is_active IS TRUE;

CREATE UNIQUE INDEX idx_projects_user_name ON projects (user_id, name);

CREATE TABLE sessions (
    id TEXT NOT NULL,
    user_id TEXT,
    project_id TEXT,
    agent TEXT,
    name TEXT DEFAULT '' NOT NULL,
    description TEXT,
    session_type TEXT DEFAULT 'conversation' NOT NULL,
    goal TEXT,
    summary TEXT,
    git_branch TEXT,
    git_commit TEXT,
    working_directory TEXT,
    context_json TEXT DEFAULT '{}' NOT NULL,
    metadata TEXT DEFAULT '{}' NOT NULL,
    parent_session_id TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    last_active_at TEXT NOT NULL,
    ended_at TEXT,
    is_active BOOLEAN DEFAULT 1 NOT NULL,
    is_archived BOOLEAN DEFAULT 0 NOT NULL,
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
    seq INTEGER NOT NULL,
    id TEXT NOT NULL,
    user_id TEXT,
    project_id TEXT,
    session_id TEXT,
    title TEXT DEFAULT '' NOT NULL,
    content TEXT NOT NULL,
    content_json TEXT,
    summary TEXT,
    memory_type TEXT DEFAULT 'note' NOT NULL,
    category TEXT,
    importance_score REAL DEFAULT (0.5) NOT NULL,
    decay_rate REAL DEFAULT (0.1) NOT NULL,
    access_count INTEGER DEFAULT 0 NOT NULL,
    last_accessed_at TEXT NOT NULL,
    context_json TEXT DEFAULT '{}' NOT NULL,
    git_context_json TEXT DEFAULT '{}' NOT NULL,
    layer_session BOOLEAN DEFAULT 0 NOT NULL,
    layer_project BOOLEAN DEFAULT 0 NOT NULL,
    layer_global BOOLEAN DEFAULT 0 NOT NULL,
    layer_temporal BOOLEAN DEFAULT 0 NOT NULL,
    source_agent TEXT,
    source_tool TEXT,
    external_id TEXT,
    is_private BOOLEAN DEFAULT 0 NOT NULL,
    is_archived BOOLEAN DEFAULT 0 NOT NULL,
    is_active BOOLEAN DEFAULT 1 NOT NULL,
    expires_at TEXT,
    event_time TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (seq),
    CONSTRAINT valid_memories_importance_score CHECK (importance_score >= 0 AND importance_score <= 1),
    CONSTRAINT valid_memories_decay_rate CHECK (decay_rate >= 0 AND decay_rate <= 1),
    CONSTRAINT valid_memories_access_count CHECK (access_count >= 0),
    UNIQUE (id)
);

CREATE INDEX idx_memories_category ON memories (category) WHERE category IS NOT NULL;

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

CREATE INDEX idx_memory_entries_expires_at ON memories (expires_at) WHERE expires_at IS NOT NULL;

CREATE INDEX idx_memory_entries_source_agent ON memories (source_agent) WHERE source_agent IS NOT NULL;

CREATE TABLE memory_relationships (
    id TEXT NOT NULL,
    from_memory_id TEXT NOT NULL,
    to_memory_id TEXT NOT NULL,
    relationship_type TEXT NOT NULL,
    strength REAL DEFAULT (1.0) NOT NULL,
    context TEXT,
    auto_detected BOOLEAN DEFAULT 0 NOT NULL,
    metadata TEXT DEFAULT '{}' NOT NULL,
    created_at TEXT NOT NULL,
    created_by TEXT,
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
    id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    memory_id TEXT NOT NULL,
    version_number INTEGER NOT NULL,
    title TEXT,
    content TEXT,
    summary TEXT,
    change_type TEXT NOT NULL,
    change_reason TEXT,
    diff_json TEXT,
    record_json TEXT,
    created_at TEXT NOT NULL,
    created_by TEXT,
    PRIMARY KEY (id),
    CONSTRAINT valid_memory_versions_version_number CHECK (version_number >= 1)
);

CREATE INDEX idx_memory_versions_created ON memory_versions (created_at DESC);

CREATE UNIQUE INDEX idx_memory_versions_memory ON memory_versions (memory_id, version_number, kind);

CREATE TABLE session_memories (
    id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    memory_id TEXT NOT NULL,
    position_in_session INTEGER,
    working_memory BOOLEAN DEFAULT 0 NOT NULL,
    context_window_position INTEGER,
    added_at TEXT NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT valid_session_memories_position_in_session CHECK (position_in_session >= 0),
    CONSTRAINT valid_session_memories_context_window_position CHECK (context_window_position >= 0)
);

CREATE INDEX idx_session_memories_context ON session_memories (context_window_position) WHERE context_window_position IS NOT NULL;

CREATE INDEX idx_session_memories_session ON session_memories (session_id, position_in_session);

CREATE INDEX idx_session_memories_working ON session_memories (session_id, working_memory) WHERE working_memory IS TRUE;

CREATE UNIQUE INDEX unique_session_memory ON session_memories (session_id, memory_id);

CREATE TABLE project_patterns (
    seq INTEGER NOT NULL,
    id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    pattern_type TEXT NOT NULL,
    pattern_name TEXT NOT NULL,
    pattern_description TEXT NOT NULL,
    pattern_data_json TEXT DEFAULT '{}' NOT NULL,
    success_rate REAL DEFAULT (1.0) NOT NULL,
    usage_count INTEGER DEFAULT 1 NOT NULL,
    memory_ids TEXT DEFAULT '[]' NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    last_used_at TEXT NOT NULL,
    PRIMARY KEY (seq),
    CONSTRAINT valid_project_patterns_success_rate CHECK (success_rate >= 0 AND success_rate <= 1),
    CONSTRAINT valid_project_patterns_usage_count CHECK (usage_count >= 0),
    UNIQUE (id)
);

CREATE INDEX idx_project_patterns_project ON project_patterns (project_id);

CREATE INDEX idx_project_patterns_success ON project_patterns (success_rate DESC);

CREATE INDEX idx_project_patterns_type ON project_patterns (pattern_type);

CREATE INDEX idx_project_patterns_usage ON project_patterns (usage_count DESC);

CREATE UNIQUE INDEX unique_project_pattern ON project_patterns (project_id, pattern_type, pattern_name);

CREATE TABLE session_handoffs (
    id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    session_id TEXT NOT NULL,
    goal TEXT,
    last_action TEXT NOT NULL,
    last_outcome TEXT,
    current_goal TEXT,
    key_decisions TEXT DEFAULT '[]' NOT NULL,
    active_files TEXT DEFAULT '[]' NOT NULL,
    blockers TEXT DEFAULT '[]' NOT NULL,
    next_steps TEXT DEFAULT '[]' NOT NULL,
    confidence_level REAL DEFAULT (0.5) NOT NULL,
    risk_flags TEXT DEFAULT '[]' NOT NULL,
    test_status TEXT DEFAULT '{}' NOT NULL,
    duration_ms INTEGER,
    metadata TEXT DEFAULT '{}' NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT valid_session_handoffs_confidence_level CHECK (confidence_level >= 0 AND confidence_level <= 1),
    CONSTRAINT valid_session_handoffs_duration_ms CHECK (duration_ms >= 0)
);

CREATE INDEX idx_session_handoffs_project_agent ON session_handoffs (project_id, agent, created_at DESC);

CREATE TABLE work_items (
    id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    agent TEXT,
    title TEXT NOT NULL,
    description TEXT DEFAULT '' NOT NULL,
    item_type TEXT DEFAULT 'task' NOT NULL,
    status TEXT DEFAULT 'pending' NOT NULL,
    priority INTEGER DEFAULT 50 NOT NULL,
    parent_id TEXT,
    blocks TEXT DEFAULT '[]' NOT NULL,
    blocked_by TEXT DEFAULT '[]' NOT NULL,
    tests TEXT DEFAULT '[]' NOT NULL,
    tests_passing BOOLEAN DEFAULT 0 NOT NULL,
    acceptance_criteria TEXT DEFAULT '[]' NOT NULL,
    attempt_count INTEGER DEFAULT 0 NOT NULL,
    time_spent_ms INTEGER DEFAULT 0 NOT NULL,
    metadata TEXT DEFAULT '{}' NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    started_at TEXT,
    completed_at TEXT,
    PRIMARY KEY (id),
    CONSTRAINT valid_work_items_priority CHECK (priority >= 0 AND priority <= 100),
    CONSTRAINT valid_work_items_attempt_count CHECK (attempt_count >= 0),
    CONSTRAINT valid_work_items_time_spent_ms CHECK (time_spent_ms >= 0)
);

CREATE INDEX idx_work_items_project_status ON work_items (project_id, status, priority DESC);

CREATE TABLE agent_states (
    id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    session_id TEXT,
    state_data TEXT DEFAULT '{}' NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    expires_at TEXT,
    PRIMARY KEY (id)
);

CREATE INDEX idx_agent_states_agent_id ON agent_states (agent_id);

CREATE INDEX idx_agent_states_expires_at ON agent_states (expires_at);

CREATE INDEX idx_agent_states_session_id ON agent_states (session_id);

CREATE UNIQUE INDEX unique_agent_session ON agent_states (agent_id, coalesce(session_id, ''));

CREATE TABLE system_config (
    "key" TEXT NOT NULL,
    value TEXT NOT NULL,
    value_type TEXT DEFAULT 'string' NOT NULL,
    description TEXT,
    is_user_configurable BOOLEAN DEFAULT 0 NOT NULL,
    updated_at TEXT NOT NULL,
    updated_by TEXT,
    PRIMARY KEY ("key")
);

CREATE TABLE audit_log (
    id INTEGER NOT NULL,
    user_id TEXT,
    session_id TEXT,
    agent_id TEXT,
    action TEXT NOT NULL,
    resource_type TEXT NOT NULL,
    resource_id TEXT NOT NULL,
    resource_ids TEXT,
    details_json TEXT,
    success BOOLEAN DEFAULT 1 NOT NULL,
    error_message TEXT,
    ip_address TEXT,
    user_agent TEXT,
    created_at TEXT NOT NULL,
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
    tag_id INTEGER NOT NULL,
    memory_id TEXT NOT NULL,
    tag TEXT NOT NULL,
    PRIMARY KEY (tag_id)
);

CREATE INDEX idx_memory_tags_memory_id ON memory_tags (memory_id);

CREATE INDEX idx_memory_tags_tag ON memory_tags (tag);

CREATE UNIQUE INDEX unique_memory_tag ON memory_tags (memory_id, tag);

CREATE TABLE embeddings (
    id INTEGER NOT NULL,
    memory_type TEXT NOT NULL,
    memory_id TEXT NOT NULL,
    model TEXT NOT NULL,
    dims INTEGER NOT NULL,
    embedding BLOB NOT NULL,
    PRIMARY KEY (id)
);

CREATE UNIQUE INDEX idx_embeddings_type ON embeddings (memory_type, memory_id, model);

CREATE TABLE embedding_models (
    model TEXT NOT NULL,
    dims INTEGER NOT NULL,
    PRIMARY KEY (model)
);

CREATE TABLE projections (
    projection TEXT NOT NULL,
    kind TEXT NOT NULL,
    PRIMARY KEY (projection, kind)
);

CREATE TABLE outbox (
    projection TEXT NOT NULL,
    kind TEXT NOT NULL,
    record_id TEXT NOT NULL,
    generation BIGINT NOT NULL,
    marked_at TEXT NOT NULL,
    leased_until TEXT,
    attempts INTEGER DEFAULT 0 NOT NULL,
    error TEXT,
    parked BOOLEAN DEFAULT 0 NOT NULL,
    PRIMARY KEY (projection, kind, record_id)
);

CREATE INDEX idx_outbox_marked ON outbox (projection, marked_at);

CREATE VIRTUAL TABLE heuristics_fts USING fts5(condition, strategy, content='', tokenize='ascii');

CREATE VIRTUAL TABLE outcomes_fts USING fts5(task_description, strategy_used, error_message, user_feedback, content='', tokenize='ascii');

CREATE VIRTUAL TABLE preferences_fts USING fts5(preference, category, content='', tokenize='ascii');

CREATE VIRTUAL TABLE domain_knowledge_fts USING fts5(fact, domain, content='', tokenize='ascii');

CREATE VIRTUAL TABLE anti_patterns_fts USING fts5(pattern, why_bad, better_alternative, content='', tokenize='ascii');

CREATE VIRTUAL TABLE memories_fts USING fts5(title, content, summary, content='', tokenize='ascii');

CREATE VIRTUAL TABLE project_patterns_fts USING fts5(pattern_name, pattern_description, content='', tokenize='ascii');

INSERT INTO system_config (key, value, value_type, description, is_user_configurable, updated_at)
VALUES ('memory_decay_enabled', 'true', 'boolean', 'Enable automatic memory decay', 1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'));

INSERT INTO system_config (key, value, value_type, description, is_user_configurable, updated_at)
VALUES ('default_decay_rate', '0.1', 'float', 'Default decay rate for new memories', 1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'));

INSERT INTO system_config (key, value, value_type, description, is_user_configurable, updated_at)
VALUES ('max_memories_per_session', '1000', 'integer', 'Maximum memories in a single session', 1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'));

INSERT INTO system_config (key, value, value_type, description, is_user_configurable, updated_at)
VALUES ('semantic_search_threshold', '0.7', 'float', 'Minimum similarity threshold for semantic search', 1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'));

INSERT INTO system_config (key, value, value_type, description, is_user_configurable, updated_at)
VALUES ('auto_categorization_enabled', 'true', 'boolean', 'Enable automatic memory categorization', 1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'));
