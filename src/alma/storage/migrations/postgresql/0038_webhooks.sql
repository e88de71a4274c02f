-- Webhooks that are added while services run.
CREATE TABLE alma_webhooks (
    name TEXT COLLATE "C" NOT NULL,
    url TEXT COLLATE "C" NOT NULL,
    secret TEXT COLLATE "C",
    events JSONB DEFAULT '[]' NOT NULL,
    memory_types JSONB DEFAULT '[]' NOT NULL,
    only_project TEXT COLLATE "C",
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    created_by TEXT COLLATE "C",
    PRIMARY KEY (name)
);
