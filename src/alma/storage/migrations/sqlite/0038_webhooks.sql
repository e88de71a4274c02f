-- Webhooks that are added while services run.
CREATE TABLE webhooks (
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    secret TEXT,
    events TEXT DEFAULT '[]' NOT NULL,
    memory_types TEXT DEFAULT '[]' NOT NULL,
    only_project TEXT,
    created_at TEXT NOT NULL,
    created_by TEXT,
    PRIMARY KEY (name)
);
