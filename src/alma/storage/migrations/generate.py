"""Generate the complete schema of a dialect from the records, to check a new migration against.

`python -m alma.storage.migrations.generate sqlite` prints it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from alma.model.governance import default_settings
from alma.model.kinds import KINDS
from alma.storage.migrations.schema import Schema
from alma.storage.postgres.views import ORCHESTRATOR_VIEWS
from alma.storage.sql.clauses import DialectName, Names
from alma.storage.sqlite.fulltext import creating

_NOW = {"sqlite": "strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')", "postgresql": "now()"}


def schema_sql(dialect: DialectName) -> Iterator[str]:
    """The statements that create an empty store, in order."""
    schema = Schema(dialect)
    writer: sa.Dialect = sqlite.dialect() if dialect == "sqlite" else postgresql.dialect()  # type: ignore[no-untyped-call]
    for table in schema.metadata.tables.values():
        yield _tidy(str(CreateTable(table).compile(dialect=writer)))
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            yield _tidy(str(CreateIndex(index).compile(dialect=writer)))
    if dialect == "sqlite":
        yield from _full_text_tables(schema.names)
    else:
        yield from ORCHESTRATOR_VIEWS.values()
    yield from _default_settings(dialect)
    yield f"INSERT INTO {schema.audit_chains.name} (unchained) SELECT count(*) FROM audit_log;"


def _full_text_tables(names: Names) -> Iterator[str]:
    for cls in KINDS:
        if cls.spec.text:
            yield from creating(cls.spec, names)


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
