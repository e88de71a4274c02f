CREATE TABLE benefit_trials (
    id TEXT NOT NULL,
    agent TEXT NOT NULL,
    project_id TEXT NOT NULL,
    task_terms TEXT DEFAULT '[]' NOT NULL,
    arms TEXT DEFAULT '{}' NOT NULL,
    outcome_id TEXT,
    success BOOLEAN,
    verified_by TEXT,
    signals TEXT DEFAULT '{}' NOT NULL,
    created_at TEXT NOT NULL,
    credited_at TEXT,
    PRIMARY KEY (id)
);

CREATE INDEX idx_benefit_trials_agent ON benefit_trials (project_id, agent, created_at DESC);
