-- Who reads a memory tells whether it is worth more than its own session.
CREATE TABLE memory_accesses (
    id TEXT NOT NULL,
    memory_id TEXT NOT NULL,
    session_id TEXT,
    access_count INTEGER DEFAULT 0 NOT NULL,
    helpful_count INTEGER DEFAULT 0 NOT NULL,
    unhelpful_count INTEGER DEFAULT 0 NOT NULL,
    last_accessed_at TEXT NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT valid_memory_accesses_access_count CHECK (access_count >= 0),
    CONSTRAINT valid_memory_accesses_helpful_count CHECK (helpful_count >= 0),
    CONSTRAINT valid_memory_accesses_unhelpful_count CHECK (unhelpful_count >= 0)
);

CREATE INDEX idx_memory_accesses_memory ON memory_accesses (memory_id);

-- A page through a project's or a user's memories begins where the last one ended, however far in that is.
CREATE INDEX idx_memories_project_created ON memories (project_id, created_at DESC, id);

CREATE INDEX idx_memories_user_created ON memories (user_id, created_at DESC, id);

-- With the id at its end it gives pages of one type in order, without sorting.
DROP INDEX idx_memories_project_type;

CREATE INDEX idx_memories_project_type ON memories (project_id, memory_type, created_at DESC, id);

-- What a user carries from project to project is looked for with every task, and is little of what there is.
CREATE INDEX idx_memories_user_global ON memories (user_id, layer_global);
