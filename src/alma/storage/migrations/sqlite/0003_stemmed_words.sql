-- Words are stemmed now, and every entry says whose record it is.
-- then: index_words
DROP TABLE heuristics_fts;

CREATE VIRTUAL TABLE heuristics_fts USING fts5(condition, strategy, scope, content='', tokenize='ascii');

INSERT INTO heuristics_fts (heuristics_fts, rank) VALUES ('hashsize', 4000000);

DROP TABLE outcomes_fts;

CREATE VIRTUAL TABLE outcomes_fts USING fts5(task_description, strategy_used, error_message, user_feedback, scope, content='', tokenize='ascii');

INSERT INTO outcomes_fts (outcomes_fts, rank) VALUES ('hashsize', 4000000);

DROP TABLE preferences_fts;

CREATE VIRTUAL TABLE preferences_fts USING fts5(preference, category, scope, content='', tokenize='ascii');

INSERT INTO preferences_fts (preferences_fts, rank) VALUES ('hashsize', 4000000);

DROP TABLE domain_knowledge_fts;

CREATE VIRTUAL TABLE domain_knowledge_fts USING fts5(fact, domain, scope, content='', tokenize='ascii');

INSERT INTO domain_knowledge_fts (domain_knowledge_fts, rank) VALUES ('hashsize', 4000000);

DROP TABLE anti_patterns_fts;

CREATE VIRTUAL TABLE anti_patterns_fts USING fts5(pattern, why_bad, better_alternative, scope, content='', tokenize='ascii');

INSERT INTO anti_patterns_fts (anti_patterns_fts, rank) VALUES ('hashsize', 4000000);

DROP TABLE memories_fts;

CREATE VIRTUAL TABLE memories_fts USING fts5(title, content, summary, scope, content='', tokenize='ascii');

INSERT INTO memories_fts (memories_fts, rank) VALUES ('hashsize', 4000000);

DROP TABLE project_patterns_fts;

CREATE VIRTUAL TABLE project_patterns_fts USING fts5(pattern_name, pattern_description, scope, content='', tokenize='ascii');

INSERT INTO project_patterns_fts (project_patterns_fts, rank) VALUES ('hashsize', 4000000);
