ALTER TABLE embeddings RENAME TO embeddings_before_passages;

DROP INDEX idx_embeddings_type;

CREATE TABLE embeddings (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    memory_type TEXT NOT NULL,
    memory_id TEXT NOT NULL,
    model TEXT NOT NULL,
    part INTEGER DEFAULT 0 NOT NULL,
    dims INTEGER NOT NULL,
    embedding BLOB NOT NULL
);

INSERT INTO embeddings (id, memory_type, memory_id, model, dims, embedding)
SELECT id, memory_type, memory_id, model, dims, embedding FROM embeddings_before_passages ORDER BY id;

DROP TABLE embeddings_before_passages;

CREATE UNIQUE INDEX idx_embeddings_type ON embeddings (memory_type, memory_id, model, part);
