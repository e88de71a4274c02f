CREATE TABLE graph_entities (
    seq INTEGER NOT NULL,
    id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    entity_id TEXT NOT NULL,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    entity_type TEXT NOT NULL,
    type_key TEXT NOT NULL,
    properties TEXT DEFAULT '{}' NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (seq),
    UNIQUE (id)
);

CREATE INDEX idx_graph_entities_name ON graph_entities (project_id, name_key);

CREATE UNIQUE INDEX unique_graph_entity ON graph_entities (project_id, type_key, name_key);

CREATE TABLE graph_aliases (
    id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    entity_key TEXT NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX idx_graph_aliases_entity ON graph_aliases (entity_key);

CREATE TABLE graph_relationships (
    id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    relationship_id TEXT NOT NULL,
    source_key TEXT NOT NULL,
    target_key TEXT NOT NULL,
    source_id TEXT NOT NULL,
    target_id TEXT NOT NULL,
    relation_type TEXT NOT NULL,
    type_key TEXT NOT NULL,
    properties TEXT DEFAULT '{}' NOT NULL,
    confidence REAL DEFAULT (1.0) NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT valid_graph_relationships_confidence CHECK (confidence >= 0 AND confidence <= 1),
    CONSTRAINT distinct_graph_relationships_source_key CHECK (source_key <> target_key)
);

CREATE INDEX idx_graph_relationships_target ON graph_relationships (target_key);

CREATE UNIQUE INDEX unique_graph_relationship ON graph_relationships (source_key, target_key, type_key);

CREATE UNIQUE INDEX unique_graph_relationship_id ON graph_relationships (project_id, relationship_id);

CREATE VIRTUAL TABLE graph_entities_fts USING fts5(name, scope, content='', tokenize='ascii');

INSERT INTO graph_entities_fts (graph_entities_fts, rank) VALUES ('hashsize', 4000000);
