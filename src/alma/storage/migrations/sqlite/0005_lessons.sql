-- A heuristic carries the evidence it rests on, and an outcome the lesson it is evidence for.
ALTER TABLE heuristics ADD COLUMN weight_for REAL CONSTRAINT valid_heuristics_weight_for CHECK (weight_for >= 0);
ALTER TABLE heuristics ADD COLUMN weight_against REAL CONSTRAINT valid_heuristics_weight_against CHECK (weight_against >= 0);
ALTER TABLE heuristics ADD COLUMN outcomes_for TEXT DEFAULT '[]' NOT NULL;
ALTER TABLE heuristics ADD COLUMN outcomes_against TEXT DEFAULT '[]' NOT NULL;
ALTER TABLE outcomes ADD COLUMN lesson_id TEXT;
ALTER TABLE anti_patterns ADD COLUMN outcomes_for TEXT DEFAULT '[]' NOT NULL;
CREATE INDEX idx_outcomes_lesson ON outcomes (project_id, agent, lesson_id, timestamp DESC);
