-- One index of an agent's outcomes for both questions, all and those of a lesson; of the newest of a lesson it says how
-- they went, in the order in which they are asked for.
DROP INDEX idx_outcomes_lesson;

DROP INDEX idx_outcomes_project_agent;

CREATE INDEX idx_outcomes_project_agent ON outcomes (project_id, agent, lesson_id, timestamp DESC, id, success);

-- Outcomes of no type need no place among those of the types.
DROP INDEX idx_outcomes_task_type;

CREATE INDEX idx_outcomes_task_type ON outcomes (project_id, agent, task_type) WHERE task_type IS NOT NULL;

-- Times rise, so that new rows fill the index's pages at its end; it is read in either direction.
DROP INDEX idx_outcomes_timestamp;

CREATE INDEX idx_outcomes_timestamp ON outcomes (project_id, timestamp);
