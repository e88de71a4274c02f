-- What was forgotten, put away, quarantined or merged waits here until it is restored or purged.
CREATE TABLE archived_records (
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    record_id TEXT NOT NULL,
    cause TEXT NOT NULL,
    reason TEXT,
    user_id TEXT,
    project_id TEXT,
    session_id TEXT,
    agent TEXT,
    document TEXT NOT NULL,
    vectors TEXT DEFAULT '[]' NOT NULL,
    dependents TEXT DEFAULT '[]' NOT NULL,
    archived_at TEXT NOT NULL,
    archived_by TEXT,
    PRIMARY KEY (id)
);

CREATE INDEX idx_archived_records_archived ON archived_records (archived_at);

CREATE INDEX idx_archived_records_record ON archived_records (record_id, kind);

CREATE INDEX idx_archived_records_scope ON archived_records (project_id, agent, archived_at);

CREATE INDEX idx_archived_records_user ON archived_records (user_id) WHERE user_id IS NOT NULL;

-- What agents were just handed, as fingerprints.
CREATE TABLE served_texts (
    id TEXT NOT NULL,
    agent TEXT NOT NULL,
    project_id TEXT,
    user_id TEXT,
    fingerprints TEXT NOT NULL,
    served_at TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX idx_served_texts_agent ON served_texts (agent, served_at DESC);

CREATE INDEX idx_served_texts_expires ON served_texts (expires_at);
