-- How many terms a record has stands beside them, so that it is ranked by its length as on the other stores: words are
-- indexed anew.
-- then: index_words
ALTER TABLE alma_heuristics ADD COLUMN search_length INTEGER DEFAULT 0 NOT NULL;

ALTER TABLE alma_outcomes ADD COLUMN search_length INTEGER DEFAULT 0 NOT NULL;

ALTER TABLE alma_preferences ADD COLUMN search_length INTEGER DEFAULT 0 NOT NULL;

ALTER TABLE alma_domain_knowledge ADD COLUMN search_length INTEGER DEFAULT 0 NOT NULL;

ALTER TABLE alma_anti_patterns ADD COLUMN search_length INTEGER DEFAULT 0 NOT NULL;

ALTER TABLE memories ADD COLUMN search_length INTEGER DEFAULT 0 NOT NULL;

ALTER TABLE project_patterns ADD COLUMN search_length INTEGER DEFAULT 0 NOT NULL;

ALTER TABLE alma_graph_entities ADD COLUMN search_length INTEGER DEFAULT 0 NOT NULL;
