CREATE TABLE alma_merge_marks (
    id TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    record_id TEXT COLLATE "C" NOT NULL,
    origin TEXT COLLATE "C" NOT NULL,
    counters JSONB DEFAULT '{}' NOT NULL,
    source_digest TEXT COLLATE "C",
    result_digest TEXT COLLATE "C",
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX idx_merge_marks_record ON alma_merge_marks (record_id, kind);
