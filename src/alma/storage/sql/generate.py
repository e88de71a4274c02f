"""The whole schema of a dialect as SQL, from the records: what a new migration is checked against.

`python -m alma.storage.sql.generate sqlite` prints it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from sqlalchemy.schema import CreateIndex, CreateTable

from alma.model.governance import default_settings
from alma.model.kinds import KINDS
from alma.storage.sql.schema import DialectName, Schema
from alma.storage.sql.sqlite_words import OWNER_COLUMN
from alma.storage.sql.statements import sql_writer

_NOW = {"sqlite": "strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')", "postgresql": "now()"}

ORCHESTRATOR_VIEWS = {
    "memory_entries": """\
CREATE VIEW memory_entries AS
SELECT id AS memory_id, session_id, memory_type,
    coalesce(content_json, '{}'::jsonb) || jsonb_build_object('text', content) AS content,
    content AS text_content, source_agent, created_at, updated_at, expires_at,
    (1 + round(importance_score * 9))::integer AS priority, is_active
FROM memories;""",
    "user_profiles": """\
CREATE VIEW user_profiles AS
SELECT id AS user_id, created_at, updated_at, profile_json AS profile_data, preferences_json AS preferences, is_active
FROM users;""",
    "memory_access_logs": """\
CREATE VIEW memory_access_logs AS
SELECT id AS log_id, coalesce(member.memory_id, resource_id) AS memory_id, session_id, agent_id, action AS operation,
    created_at AS "timestamp", details_json AS request_data, success, error_message, ip_address
FROM audit_log
LEFT JOIN LATERAL jsonb_array_elements_text(resource_ids) AS member (memory_id) ON true
WHERE resource_type = 'memory';""",
}


def schema_sql(dialect: DialectName) -> Iterator[str]:
    """Every statement that makes an empty store, in order."""
    schema = Schema(dialect)
    writer = sql_writer(dialect)
    for table in schema.metadata.tables.values():
        yield _tidy(str(CreateTable(table).compile(dialect=writer)))
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            yield _tidy(str(CreateIndex(index).compile(dialect=writer)))
    if dialect == "sqlite":
        yield from _full_text_tables(schema)
    else:
        yield from ORCHESTRATOR_VIEWS.values()
    yield from _default_settings(dialect)
    yield f"INSERT INTO {schema.audit_chains.name} (unchained) SELECT count(*) FROM audit_log;"


def _full_text_tables(schema: Schema) -> Iterator[str]:
    """Contentless: the words are ours already, and the text itself stands in the record."""
    for cls in KINDS:
        if cls.spec.text:
            columns = ", ".join((*cls.spec.text, OWNER_COLUMN))
            name = schema.fts_table(cls.spec)
            yield f"CREATE VIRTUAL TABLE {name} USING fts5({columns}, content='', tokenize='ascii');"
            # Four times what FTS5 gathers by default before it writes: a large batch has fewer pieces to merge.
            yield f"INSERT INTO {name} ({name}, rank) VALUES ('hashsize', 4000000);"


def _default_settings(dialect: DialectName) -> Iterator[str]:
    for setting in default_settings():
        texts = ", ".join(f"'{text}'" for text in (setting.key, setting.value, setting.value_type, setting.description))
        yield (
            "INSERT INTO system_config (key, value, value_type, description, is_user_configurable, updated_at)\n"
            f"VALUES ({texts}, {'1' if dialect == 'sqlite' else 'true'}, {_NOW[dialect]});"
        )


def _tidy(sql: str) -> str:
    return "\n".join(line.rstrip() for line in sql.strip().replace("\t", "    ").splitlines()) + ";"


if __name__ == "__main__":
    sys.stdout.write("\n\n".join(schema_sql("sqlite" if sys.argv[1:] != ["postgresql"] else "postgresql")) + "\n")
