-- The records of a tag are found in the index alone, without reading the table.
DROP INDEX idx_memory_tags_tag;

CREATE INDEX idx_memory_tags_tag ON memory_tags (tag, memory_id);
