-- A heuristic carries the evidence it rests on, and an outcome the lesson it is evidence for.
ALTER TABLE alma_heuristics
    ADD COLUMN weight_for DOUBLE PRECISION CONSTRAINT valid_alma_heuristics_weight_for CHECK (weight_for >= 0),
    ADD COLUMN weight_against DOUBLE PRECISION CONSTRAINT valid_alma_heuristics_weight_against CHECK (weight_against >= 0),
    ADD COLUMN outcomes_for JSONB DEFAULT '[]' NOT NULL,
    ADD COLUMN outcomes_against JSONB DEFAULT '[]' NOT NULL;
ALTER TABLE alma_outcomes ADD COLUMN lesson_id TEXT COLLATE "C";
ALTER TABLE alma_anti_patterns ADD COLUMN outcomes_for JSONB DEFAULT '[]' NOT NULL;
CREATE INDEX idx_outcomes_lesson ON alma_outcomes (project_id, agent, lesson_id, timestamp DESC);
