-- A pinned memory stays in its session and in the working set; an estimate says what is quickly done.
ALTER TABLE session_memories ADD COLUMN pinned BOOLEAN DEFAULT false NOT NULL;

ALTER TABLE work_items ADD COLUMN estimate_minutes BIGINT
    CONSTRAINT valid_work_items_estimate_minutes CHECK (estimate_minutes >= 0);

CREATE TABLE progress_logs (
    id TEXT COLLATE "C" NOT NULL,
    project_id TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C",
    session_id TEXT COLLATE "C",
    items_total BIGINT DEFAULT 0 NOT NULL,
    items_pending BIGINT DEFAULT 0 NOT NULL,
    items_in_progress BIGINT DEFAULT 0 NOT NULL,
    items_blocked BIGINT DEFAULT 0 NOT NULL,
    items_review BIGINT DEFAULT 0 NOT NULL,
    items_done BIGINT DEFAULT 0 NOT NULL,
    items_failed BIGINT DEFAULT 0 NOT NULL,
    current_item_id TEXT COLLATE "C",
    current_action TEXT COLLATE "C",
    note TEXT COLLATE "C",
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT valid_progress_logs_items_total CHECK (items_total >= 0),
    CONSTRAINT valid_progress_logs_items_pending CHECK (items_pending >= 0),
    CONSTRAINT valid_progress_logs_items_in_progress CHECK (items_in_progress >= 0),
    CONSTRAINT valid_progress_logs_items_blocked CHECK (items_blocked >= 0),
    CONSTRAINT valid_progress_logs_items_review CHECK (items_review >= 0),
    CONSTRAINT valid_progress_logs_items_done CHECK (items_done >= 0),
    CONSTRAINT valid_progress_logs_items_failed CHECK (items_failed >= 0)
);

CREATE INDEX idx_progress_logs_project ON progress_logs (project_id, created_at DESC);
