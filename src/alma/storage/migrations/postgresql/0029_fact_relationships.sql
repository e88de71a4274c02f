CREATE TABLE alma_fact_relationships (
    id TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    user_id TEXT COLLATE "C",
    project_id TEXT COLLATE "C",
    agent TEXT COLLATE "C",
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
    CONSTRAINT valid_alma_fact_relationships_strength CHECK (strength >= 0 AND strength <= 1),
    CONSTRAINT distinct_alma_fact_relationships_from_memory_id CHECK (from_memory_id <> to_memory_id)
);

CREATE INDEX idx_fact_relationships_from ON alma_fact_relationships (from_memory_id);

CREATE INDEX idx_fact_relationships_owner ON alma_fact_relationships (project_id, agent);

CREATE INDEX idx_fact_relationships_to ON alma_fact_relationships (to_memory_id);

CREATE INDEX idx_fact_relationships_user ON alma_fact_relationships (user_id) WHERE user_id IS NOT NULL;
