-- Outcomes of no type need no place among those of the types.
DROP INDEX idx_outcomes_task_type;

CREATE INDEX idx_outcomes_task_type ON alma_outcomes (project_id, agent, task_type) WHERE task_type IS NOT NULL;

-- Times rise, so that new rows fill the index's pages at its end; it is read in either direction.
DROP INDEX idx_outcomes_timestamp;

CREATE INDEX idx_outcomes_timestamp ON alma_outcomes (project_id, timestamp);
