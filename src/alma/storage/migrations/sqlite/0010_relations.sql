-- When what a memory says holds, beside when it happened and when it was written down.
ALTER TABLE memories ADD COLUMN valid_from TEXT;

ALTER TABLE memories ADD COLUMN valid_until TEXT;

-- Reading the past asks what changed since then, and most records never change.
CREATE INDEX idx_memory_versions_changes ON memory_versions (created_at) WHERE version_number > 1;

-- Relationships have a history from here on, which begins with what there is.
INSERT INTO memory_versions (kind, memory_id, version_number, change_type, created_at, created_by)
SELECT 'memory_relationship', id, 1, 'created', created_at, created_by FROM memory_relationships;

-- Audit events are chained from here on; those there are already stay as they are, and their number is remembered.
ALTER TABLE audit_log ADD COLUMN chain INTEGER;

ALTER TABLE audit_log ADD COLUMN chain_position INTEGER;

ALTER TABLE audit_log ADD COLUMN chain_hash TEXT;

CREATE TABLE audit_chains (
    chain INTEGER NOT NULL,
    length INTEGER DEFAULT 0 NOT NULL,
    hash TEXT DEFAULT '' NOT NULL,
    unchained INTEGER DEFAULT 0 NOT NULL,
    PRIMARY KEY (chain)
);

INSERT INTO audit_chains (unchained) SELECT count(*) FROM audit_log;
