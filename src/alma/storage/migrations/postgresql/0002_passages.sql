ALTER TABLE alma_embeddings ADD COLUMN part INTEGER DEFAULT 0 NOT NULL;

DROP INDEX idx_embeddings_type;

CREATE UNIQUE INDEX idx_embeddings_type ON alma_embeddings (memory_type, memory_id, model, part);

DROP VIEW IF EXISTS vector_embeddings;
