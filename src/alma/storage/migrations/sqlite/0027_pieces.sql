-- Names are found by their parts now, compounds and numbers in one piece, digits and letters of several scripts as the
-- same: words are indexed anew.
-- then: index_words
INSERT INTO heuristics_fts (heuristics_fts) VALUES ('delete-all');

INSERT INTO outcomes_fts (outcomes_fts) VALUES ('delete-all');

INSERT INTO preferences_fts (preferences_fts) VALUES ('delete-all');

INSERT INTO domain_knowledge_fts (domain_knowledge_fts) VALUES ('delete-all');

INSERT INTO anti_patterns_fts (anti_patterns_fts) VALUES ('delete-all');

INSERT INTO memories_fts (memories_fts) VALUES ('delete-all');

INSERT INTO project_patterns_fts (project_patterns_fts) VALUES ('delete-all');
