CREATE TABLE fact_relationships (
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    user_id TEXT,
    project_id TEXT,
    agent TEXT,
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
    CONSTRAINT valid_fact_relationships_strength CHECK (strength >= 0 AND strength <= 1),
    CONSTRAINT distinct_fact_relationships_from_memory_id CHECK (from_memory_id <> to_memory_id)
);

CREATE INDEX idx_fact_relationships_from ON fact_relationships (from_memory_id);

CREATE INDEX idx_fact_relationships_owner ON fact_relationships (project_id, agent);

CREATE INDEX idx_fact_relationships_to ON fact_relationships (to_memory_id);

CREATE INDEX idx_fact_relationships_user ON fact_relationships (user_id) WHERE user_id IS NOT NULL;
