CREATE TABLE alma_api_keys (
    id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    prefix TEXT COLLATE "C" NOT NULL,
    hash TEXT COLLATE "C" NOT NULL,
    rights JSONB DEFAULT '[]' NOT NULL,
    user_id TEXT COLLATE "C",
    project_id TEXT COLLATE "C",
    agent TEXT COLLATE "C",
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE,
    revoked_at TIMESTAMP WITH TIME ZONE,
    last_used_at TIMESTAMP WITH TIME ZONE,
    PRIMARY KEY (id)
);

CREATE UNIQUE INDEX uq_api_keys_prefix ON alma_api_keys (prefix);

CREATE TABLE alma_kept_answers (
    id TEXT COLLATE "C" NOT NULL,
    request TEXT COLLATE "C" NOT NULL,
    claim TEXT COLLATE "C" NOT NULL,
    touched JSONB,
    status BIGINT,
    answer TEXT COLLATE "C",
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    claimed_until TIMESTAMP WITH TIME ZONE NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX idx_kept_answers_expires ON alma_kept_answers (expires_at);
