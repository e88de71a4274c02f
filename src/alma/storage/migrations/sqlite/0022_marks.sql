-- Greek is found without its accents now, Hebrew and Arabic without their vowels: words are indexed anew.
-- then: index_words
INSERT INTO heuristics_fts (heuristics_fts) VALUES ('delete-all');

INSERT INTO outcomes_fts (outcomes_fts) VALUES ('delete-all');

INSERT INTO preferences_fts (preferences_fts) VALUES ('delete-all');

INSERT INTO domain_knowledge_fts (domain_knowledge_fts) VALUES ('delete-all');

INSERT INTO anti_patterns_fts (anti_patterns_fts) VALUES ('delete-all');

INSERT INTO memories_fts (memories_fts) VALUES ('delete-all');

INSERT INTO project_patterns_fts (project_patterns_fts) VALUES ('delete-all');
