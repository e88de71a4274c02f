CREATE TABLE merge_marks (
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    record_id TEXT NOT NULL,
    origin TEXT NOT NULL,
    counters TEXT DEFAULT '{}' NOT NULL,
    source_digest TEXT,
    result_digest TEXT,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX idx_merge_marks_record ON merge_marks (record_id, kind);
