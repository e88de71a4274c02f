"""Earlier texts of migrations, which were changed before migrations were frozen, and what brings a store of each on.

Some early commits changed a migration that earlier ones had applied. A store that was made by those says so by the
checksum; the statements here make its schema the one of the text that stayed.
"""

from __future__ import annotations

from alma.storage.sql.names import DialectName

AMENDMENTS: dict[DialectName, dict[str, str]] = {
    "sqlite": {
        # 0001_initial.sql, text 1
        "26e3ad80dc8c311a17e47883e0991ecb1f5ccef513fc83a57270738c13a1e924": """\
DROP INDEX idx_audit_log_user;
CREATE INDEX idx_audit_log_user ON audit_log (user_id, created_at DESC) WHERE user_id IS NOT NULL;
DROP INDEX idx_embeddings_type;
DROP INDEX unique_embeddings;
CREATE UNIQUE INDEX idx_embeddings_type ON embeddings (memory_type, memory_id, model);
CREATE INDEX idx_memory_access_logs_agent_id ON audit_log (agent_id) WHERE agent_id IS NOT NULL;
CREATE INDEX idx_memory_access_logs_session_id ON audit_log (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX idx_memory_access_logs_success ON audit_log (success) WHERE success IS FALSE;
""",
        # 0001_initial.sql, text 2
        "27a754f30e56a5a1838f4de35e4bd841cdee8c286a0aff3bd68ea3163743e31b": """\
CREATE INDEX idx_memory_access_logs_agent_id ON audit_log (agent_id) WHERE agent_id IS NOT NULL;
CREATE INDEX idx_memory_access_logs_session_id ON audit_log (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX idx_memory_access_logs_success ON audit_log (success) WHERE success IS FALSE;
""",
        # 0005_lessons.sql, text 1
        "12616dd0cfe7118df91247fbbd415c1d14f32847142d1a5b7d67a48eddd9ce00": """\
DROP INDEX idx_outcomes_lesson;
CREATE INDEX idx_outcomes_lesson ON outcomes (project_id, agent, lesson_id, timestamp DESC);
""",
        # 0008_memory_accesses.sql, text 1
        "217f3723d9a450e18cf05ff707a35f84fef91fece87d8fc41d03987d4aed0e90": """\
DROP INDEX unique_memory_access;
CREATE INDEX idx_memory_accesses_memory ON memory_accesses (memory_id);
DROP INDEX idx_memories_project_type;
CREATE INDEX idx_memories_project_type ON memories (project_id, memory_type, created_at DESC, id);
CREATE INDEX idx_memories_user_global ON memories (user_id, layer_global);
""",
        # 0008_memory_accesses.sql, text 2
        "c4b2c5e1580f6ccc8578314d031d169cf37f73a670b2ce27c642e394664b951b": """\
DROP INDEX unique_memory_access;
CREATE INDEX idx_memory_accesses_memory ON memory_accesses (memory_id);
CREATE INDEX idx_memories_user_global ON memories (user_id, layer_global);
""",
        # 0008_memory_accesses.sql, text 3
        "5dea0bdb1d33f65493c384c00cd85330caa8afab00e1245d3fc6138793cacf26": """\
CREATE INDEX idx_memories_user_global ON memories (user_id, layer_global);
""",
        # 0010_relations.sql, text 1
        "5a6a36c9cea0a5621f4269b5de7d515c411908a7a990773b0335139e40d98c73": """\
INSERT INTO memory_versions (kind, memory_id, version_number, change_type, created_at, created_by)
SELECT 'memory_relationship', id, 1, 'created', created_at, created_by FROM memory_relationships
WHERE NOT EXISTS (
    SELECT 1 FROM memory_versions WHERE kind = 'memory_relationship' AND memory_id = memory_relationships.id);
""",
        # 0015_keys.sql, text 1
        "fef6b5a76a8ab46ca4c4021966676bd6282d6830e96784e51c5b4f9d338bc6c6": """\
DROP TABLE kept_answers;
CREATE TABLE kept_answers (
    id TEXT NOT NULL,
    request TEXT NOT NULL,
    claim TEXT NOT NULL,
    touched TEXT,
    status INTEGER,
    answer TEXT,
    created_at TEXT NOT NULL,
    claimed_until TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX idx_kept_answers_expires ON kept_answers (expires_at);
""",
    },
    "postgresql": {
        # 0001_initial.sql, text 1
        "d1a6326ac8b4b2121f9ce3105a979b9529a03af90352999b2d4b07252df05d99": """\
CREATE OR REPLACE VIEW memory_access_logs AS
SELECT id AS log_id, coalesce(member.memory_id, resource_id) AS memory_id, session_id, agent_id, action AS operation,
    created_at AS "timestamp", details_json AS request_data, success, error_message, ip_address
FROM audit_log
LEFT JOIN LATERAL jsonb_array_elements_text(resource_ids) AS member (memory_id) ON true
WHERE resource_type = 'memory';
DROP INDEX idx_audit_log_user;
CREATE INDEX idx_audit_log_user ON audit_log (user_id, created_at DESC) WHERE user_id IS NOT NULL;
DROP INDEX idx_embeddings_type;
DROP INDEX unique_alma_embeddings;
CREATE UNIQUE INDEX idx_embeddings_type ON alma_embeddings (memory_type, memory_id, model);
CREATE INDEX idx_memory_access_logs_agent_id ON audit_log (agent_id) WHERE agent_id IS NOT NULL;
CREATE INDEX idx_memory_access_logs_session_id ON audit_log (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX idx_memory_access_logs_success ON audit_log (success) WHERE success IS FALSE;
""",
        # 0001_initial.sql, text 2
        "5a62c6233290dcc4e44bf763c456f0f765a5de083f094db0b3c55a1ad314241e": """\
DROP INDEX idx_audit_log_user;
CREATE INDEX idx_audit_log_user ON audit_log (user_id, created_at DESC) WHERE user_id IS NOT NULL;
DROP INDEX idx_embeddings_type;
DROP INDEX unique_alma_embeddings;
CREATE UNIQUE INDEX idx_embeddings_type ON alma_embeddings (memory_type, memory_id, model);
CREATE INDEX idx_memory_access_logs_agent_id ON audit_log (agent_id) WHERE agent_id IS NOT NULL;
CREATE INDEX idx_memory_access_logs_session_id ON audit_log (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX idx_memory_access_logs_success ON audit_log (success) WHERE success IS FALSE;
""",
        # 0001_initial.sql, text 3
        "f83400d8481b8f3cc18ddb8f93e36177e46bcb881b61265a743df25737202adf": """\
CREATE INDEX idx_memory_access_logs_agent_id ON audit_log (agent_id) WHERE agent_id IS NOT NULL;
CREATE INDEX idx_memory_access_logs_session_id ON audit_log (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX idx_memory_access_logs_success ON audit_log (success) WHERE success IS FALSE;
""",
        # 0005_lessons.sql, text 1
        "ec149ccd9cfb883db5a1c4c09b5e89e940112b84c072bc452a9582102868ea79": """\
DROP INDEX idx_outcomes_lesson;
CREATE INDEX idx_outcomes_lesson ON alma_outcomes (project_id, agent, lesson_id, timestamp DESC);
""",
        # 0008_memory_accesses.sql, text 1
        "3e86f0758f2e7d400a1be8abb98a32eba7f5d13361ae6ddf035c4839d495128d": """\
DROP INDEX unique_memory_access;
CREATE INDEX idx_memory_accesses_memory ON memory_accesses (memory_id);
DROP INDEX idx_memories_project_type;
CREATE INDEX idx_memories_project_type ON memories (project_id, memory_type, created_at DESC, id);
CREATE INDEX idx_memories_user_global ON memories (user_id, layer_global);
""",
        # 0008_memory_accesses.sql, text 2
        "eb3a0dbf444e7fca4766c26e82d65c0ca631f5d4403c6d0ec33356d27eb89ae9": """\
DROP INDEX unique_memory_access;
CREATE INDEX idx_memory_accesses_memory ON memory_accesses (memory_id);
CREATE INDEX idx_memories_user_global ON memories (user_id, layer_global);
""",
        # 0008_memory_accesses.sql, text 3
        "e6338e4e89390562bbe051d438ce7e82237f10b5f748e0fd89294d16b897a8b5": """\
CREATE INDEX idx_memories_user_global ON memories (user_id, layer_global);
""",
        # 0010_relations.sql, text 1
        "405fc540b9b4d87c26bf468afc14ec0a5536e79d31144a3fa3c74d28b9ea6ef2": """\
INSERT INTO memory_versions (kind, memory_id, version_number, change_type, created_at, created_by)
SELECT 'memory_relationship', id, 1, 'created', created_at, created_by FROM memory_relationships
WHERE NOT EXISTS (
    SELECT 1 FROM memory_versions WHERE kind = 'memory_relationship' AND memory_id = memory_relationships.id);
""",
        # 0015_keys.sql, text 1
        "618235657c1a9b1dd6766f74c9f85692d5ab57e0b71f876d524af31ec34d6dd2": """\
DROP TABLE alma_kept_answers;
CREATE TABLE alma_kept_answers (
    id TEXT COLLATE "C" NOT NULL,
    request TEXT COLLATE "C" NOT NULL,
    claim TEXT COLLATE "C" NOT NULL,
    touched JSONB,
    status BIGINT,
    answer TEXT COLLATE "C",
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    claimed_until TIMESTAMP WITH TIME ZONE NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX idx_kept_answers_expires ON alma_kept_answers (expires_at);
""",
        # 0020_words_by_owner.sql, text 1: a later migration indexes the words anew
        "cb0223e12bf9468a33d3842108261a5c3fe3a6880379f40c9537999371f3d12f": "",
        # 0024_indexes_of_outcomes.sql, text 1
        "72dfc8c4180f3bc1b4316541077db0c68ac219fe244333b9e84290f7dad030f3": """\
DROP INDEX idx_outcomes_project_agent;
CREATE INDEX idx_outcomes_project_agent ON alma_outcomes (project_id, agent);
CREATE INDEX idx_outcomes_lesson ON alma_outcomes (project_id, agent, lesson_id, timestamp DESC);
""",
    },
}
"""By dialect and checksum, what turns the schema of that text into the one of the text that stayed."""
