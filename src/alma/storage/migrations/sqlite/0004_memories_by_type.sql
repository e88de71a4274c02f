-- Standing instructions are read with every task: without this, the whole project is.
CREATE INDEX idx_memories_project_type ON memories (project_id, memory_type, created_at DESC);
