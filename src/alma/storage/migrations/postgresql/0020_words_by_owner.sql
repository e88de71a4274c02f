-- The index of words knows whose a record is: among very many, those of a small owner are found without reading the rest.
-- So are those that have a rare tag: tags stand beside the words.
-- then: index_words
DROP INDEX idx_heuristics_content_fts;

CREATE INDEX idx_heuristics_content_fts ON alma_heuristics USING gin (search, (ARRAY[project_id, agent]));

DROP INDEX idx_outcomes_content_fts;

CREATE INDEX idx_outcomes_content_fts ON alma_outcomes USING gin (search, (ARRAY[project_id, agent]));

DROP INDEX idx_preferences_content_fts;

CREATE INDEX idx_preferences_content_fts ON alma_preferences USING gin (search, (ARRAY[user_id]));

DROP INDEX idx_domain_knowledge_content_fts;

CREATE INDEX idx_domain_knowledge_content_fts ON alma_domain_knowledge USING gin (search, (ARRAY[project_id, agent]));

DROP INDEX idx_anti_patterns_content_fts;

CREATE INDEX idx_anti_patterns_content_fts ON alma_anti_patterns USING gin (search, (ARRAY[project_id, agent]));

DROP INDEX idx_memories_content_fts;

CREATE INDEX idx_memories_content_fts ON memories USING gin (search, (ARRAY[project_id, user_id]));

DROP INDEX idx_project_patterns_content_fts;

CREATE INDEX idx_project_patterns_content_fts ON project_patterns USING gin (search, (ARRAY[project_id]));

DROP INDEX idx_graph_entities_content_fts;

CREATE INDEX idx_graph_entities_content_fts ON alma_graph_entities USING gin (search, (ARRAY[project_id]));
