CREATE TABLE alma_graph_entities (
    id TEXT COLLATE "C" NOT NULL,
    project_id TEXT COLLATE "C" NOT NULL,
    entity_id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    name_key TEXT COLLATE "C" NOT NULL,
    entity_type TEXT COLLATE "C" NOT NULL,
    type_key TEXT COLLATE "C" NOT NULL,
    properties JSONB DEFAULT '{}' NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    search TSVECTOR,
    PRIMARY KEY (id)
);

CREATE INDEX idx_graph_entities_content_fts ON alma_graph_entities USING gin (search);

CREATE INDEX idx_graph_entities_name ON alma_graph_entities (project_id, name_key);

CREATE UNIQUE INDEX unique_graph_entity ON alma_graph_entities (project_id, type_key, name_key);

CREATE TABLE alma_graph_aliases (
    id TEXT COLLATE "C" NOT NULL,
    project_id TEXT COLLATE "C" NOT NULL,
    entity_key TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX idx_graph_aliases_entity ON alma_graph_aliases (entity_key);

CREATE TABLE alma_graph_relationships (
    id TEXT COLLATE "C" NOT NULL,
    project_id TEXT COLLATE "C" NOT NULL,
    relationship_id TEXT COLLATE "C" NOT NULL,
    source_key TEXT COLLATE "C" NOT NULL,
    target_key TEXT COLLATE "C" NOT NULL,
    source_id TEXT COLLATE "C" NOT NULL,
    target_id TEXT COLLATE "C" NOT NULL,
    relation_type TEXT COLLATE "C" NOT NULL,
    type_key TEXT COLLATE "C" NOT NULL,
    properties JSONB DEFAULT '{}' NOT NULL,
    confidence DOUBLE PRECISION DEFAULT 1.0 NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT valid_alma_graph_relationships_confidence CHECK (confidence >= 0 AND confidence <= 1),
    CONSTRAINT distinct_alma_graph_relationships_source_key CHECK (source_key <> target_key)
);

CREATE INDEX idx_graph_relationships_target ON alma_graph_relationships (target_key);

CREATE UNIQUE INDEX unique_graph_relationship ON alma_graph_relationships (source_key, target_key, type_key);

CREATE UNIQUE INDEX unique_graph_relationship_id ON alma_graph_relationships (project_id, relationship_id);
