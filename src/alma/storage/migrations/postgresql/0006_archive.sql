-- What was forgotten, put away, quarantined or merged waits here until it is restored or purged.
CREATE TABLE alma_archived_records (
    id TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    record_id TEXT COLLATE "C" NOT NULL,
    cause TEXT COLLATE "C" NOT NULL,
    reason TEXT COLLATE "C",
    user_id TEXT COLLATE "C",
    project_id TEXT COLLATE "C",
    session_id TEXT COLLATE "C",
    agent TEXT COLLATE "C",
    document TEXT COLLATE "C" NOT NULL,
    vectors TEXT COLLATE "C" DEFAULT '[]' NOT NULL,
    dependents TEXT COLLATE "C" DEFAULT '[]' NOT NULL,
    archived_at TIMESTAMP WITH TIME ZONE NOT NULL,
    archived_by TEXT COLLATE "C",
    PRIMARY KEY (id)
);

CREATE INDEX idx_archived_records_archived ON alma_archived_records (archived_at);

CREATE INDEX idx_archived_records_record ON alma_archived_records (record_id, kind);

CREATE INDEX idx_archived_records_scope ON alma_archived_records (project_id, agent, archived_at);

CREATE INDEX idx_archived_records_user ON alma_archived_records (user_id) WHERE user_id IS NOT NULL;

-- What agents were just handed, as fingerprints.
CREATE TABLE alma_served_texts (
    id TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    project_id TEXT COLLATE "C",
    user_id TEXT COLLATE "C",
    fingerprints TEXT COLLATE "C" NOT NULL,
    served_at TIMESTAMP WITH TIME ZONE NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX idx_served_texts_agent ON alma_served_texts (agent, served_at DESC);

CREATE INDEX idx_served_texts_expires ON alma_served_texts (expires_at);
