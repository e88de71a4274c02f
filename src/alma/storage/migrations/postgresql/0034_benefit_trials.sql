CREATE TABLE alma_benefit_trials (
    id TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    project_id TEXT COLLATE "C" NOT NULL,
    task_terms JSONB DEFAULT '[]' NOT NULL,
    arms JSONB DEFAULT '{}' NOT NULL,
    outcome_id TEXT COLLATE "C",
    success BOOLEAN,
    verified_by TEXT COLLATE "C",
    signals JSONB DEFAULT '{}' NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    credited_at TIMESTAMP WITH TIME ZONE,
    PRIMARY KEY (id)
);

CREATE INDEX idx_benefit_trials_agent ON alma_benefit_trials (project_id, agent, created_at DESC);
