-- A pinned memory stays in its session and in the working set; an estimate says what is quickly done.

ALTER TABLE session_memories RENAME TO session_memories_before;

DROP INDEX idx_session_memories_context;
DROP INDEX idx_session_memories_session;
DROP INDEX idx_session_memories_working;
DROP INDEX unique_session_memory;

CREATE TABLE session_memories (
    id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    memory_id TEXT NOT NULL,
    position_in_session INTEGER,
    working_memory BOOLEAN DEFAULT 0 NOT NULL,
    context_window_position INTEGER,
    added_at TEXT NOT NULL,
    pinned BOOLEAN DEFAULT 0 NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT valid_session_memories_position_in_session CHECK (position_in_session >= 0),
    CONSTRAINT valid_session_memories_context_window_position CHECK (context_window_position >= 0)
);

INSERT INTO session_memories (id, session_id, memory_id, position_in_session, working_memory, context_window_position, added_at)
SELECT id, session_id, memory_id, position_in_session, working_memory, context_window_position, added_at
FROM session_memories_before;

DROP TABLE session_memories_before;

CREATE INDEX idx_session_memories_context ON session_memories (context_window_position) WHERE context_window_position IS NOT NULL;

CREATE INDEX idx_session_memories_session ON session_memories (session_id, position_in_session);

CREATE INDEX idx_session_memories_working ON session_memories (session_id, working_memory) WHERE working_memory IS TRUE;

CREATE UNIQUE INDEX unique_session_memory ON session_memories (session_id, memory_id);

ALTER TABLE work_items RENAME TO work_items_before;

DROP INDEX idx_work_items_project_status;

CREATE TABLE work_items (
    id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    agent TEXT,
    title TEXT NOT NULL,
    description TEXT DEFAULT '' NOT NULL,
    item_type TEXT DEFAULT 'task' NOT NULL,
    status TEXT DEFAULT 'pending' NOT NULL,
    priority INTEGER DEFAULT 50 NOT NULL,
    parent_id TEXT,
    blocks TEXT DEFAULT '[]' NOT NULL,
    blocked_by TEXT DEFAULT '[]' NOT NULL,
    tests TEXT DEFAULT '[]' NOT NULL,
    tests_passing BOOLEAN DEFAULT 0 NOT NULL,
    acceptance_criteria TEXT DEFAULT '[]' NOT NULL,
    attempt_count INTEGER DEFAULT 0 NOT NULL,
    time_spent_ms INTEGER DEFAULT 0 NOT NULL,
    metadata TEXT DEFAULT '{}' NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    started_at TEXT,
    completed_at TEXT,
    estimate_minutes INTEGER,
    PRIMARY KEY (id),
    CONSTRAINT valid_work_items_priority CHECK (priority >= 0 AND priority <= 100),
    CONSTRAINT valid_work_items_attempt_count CHECK (attempt_count >= 0),
    CONSTRAINT valid_work_items_time_spent_ms CHECK (time_spent_ms >= 0),
    CONSTRAINT valid_work_items_estimate_minutes CHECK (estimate_minutes >= 0)
);

INSERT INTO work_items (id, project_id, agent, title, description, item_type, status, priority, parent_id, blocks, blocked_by, tests,
    tests_passing, acceptance_criteria, attempt_count, time_spent_ms, metadata, created_at, updated_at, started_at,
    completed_at)
SELECT id, project_id, agent, title, description, item_type, status, priority, parent_id, blocks, blocked_by, tests,
    tests_passing, acceptance_criteria, attempt_count, time_spent_ms, metadata, created_at, updated_at, started_at,
    completed_at
FROM work_items_before;

DROP TABLE work_items_before;

CREATE INDEX idx_work_items_project_status ON work_items (project_id, status, priority DESC);

CREATE TABLE progress_logs (
    id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    agent TEXT,
    session_id TEXT,
    items_total INTEGER DEFAULT 0 NOT NULL,
    items_pending INTEGER DEFAULT 0 NOT NULL,
    items_in_progress INTEGER DEFAULT 0 NOT NULL,
    items_blocked INTEGER DEFAULT 0 NOT NULL,
    items_review INTEGER DEFAULT 0 NOT NULL,
    items_done INTEGER DEFAULT 0 NOT NULL,
    items_failed INTEGER DEFAULT 0 NOT NULL,
    current_item_id TEXT,
    current_action TEXT,
    note TEXT,
    created_at TEXT NOT NULL,
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
