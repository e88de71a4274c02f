CREATE TABLE api_keys (
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    prefix TEXT NOT NULL,
    hash TEXT NOT NULL,
    rights TEXT DEFAULT '[]' NOT NULL,
    user_id TEXT,
    project_id TEXT,
    agent TEXT,
    created_at TEXT NOT NULL,
    expires_at TEXT,
    revoked_at TEXT,
    last_used_at TEXT,
    PRIMARY KEY (id)
);

CREATE UNIQUE INDEX uq_api_keys_prefix ON api_keys (prefix);

CREATE TABLE kept_answers (
    id TEXT NOT NULL,
    request TEXT NOT NULL,
    claim TEXT NOT NULL,
    touched TEXT,
    status INTEGER,
    answer TEXT,
    created_at TEXT NOT NULL,
    claimed_until TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX idx_kept_answers_expires ON kept_answers (expires_at);
