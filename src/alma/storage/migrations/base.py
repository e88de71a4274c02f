"""Migrations: numbered SQL files per dialect, applied in order under a lock and remembered with a checksum."""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib import resources

from alma.errors import MigrationError
from alma.lazy import lazy_regex
from alma.storage.sql.clauses import DialectName

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
"""By dialect and checksum of an earlier text: the statements that bring its schema to that of the current text."""


HISTORY_TABLE = "schema_migrations"
_STEP = lazy_regex(r"^-- then: (\w+)$", re.MULTILINE)
# The first step is unnecessary if the second one runs, which reindexes all words.
_CONTAINED = {"index_signs": "index_words"}
# Steps that follow the descriptions of the records, which any migration may belong to.
_REPEATED = ("keep_sql_writes",)


@dataclass(frozen=True, slots=True)
class Migration:
    """A numbered change of the schema."""

    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()

    @property
    def step(self) -> str | None:
        """The Python step of a line `-- then: name`; None without one."""
        named = _STEP.search(self.sql)
        return None if named is None else named.group(1)

    @property
    def file_name(self) -> str:
        return f"{self.version:04d}_{self.name}.sql"


@dataclass(frozen=True, slots=True)
class Applied:
    """A migration that is recorded in a database as applied."""

    version: int
    name: str
    applied_at: datetime
    checksum: str


@dataclass(frozen=True, slots=True)
class MigrationState:
    """A known migration and when it was applied, None if it is pending."""

    migration: Migration
    applied_at: datetime | None


@cache
def known_migrations(dialect: DialectName) -> tuple[Migration, ...]:
    """All migrations of this version of ALMA, in order."""
    folder = resources.files("alma.storage.migrations") / dialect
    files = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".sql")), key=lambda e: e.name)
    return tuple(_parsed(entry.name, entry.read_text(encoding="utf-8")) for entry in files)


class Migrator(ABC):
    """Migrates a database to the schema of this version; subclasses implement the access to it."""

    def __init__(self, dialect: DialectName, migrations: Sequence[Migration] | None = None) -> None:
        self._amendments = AMENDMENTS[dialect]
        self._known = tuple(known_migrations(dialect) if migrations is None else migrations)

    @abstractmethod
    def _applied(self) -> list[Applied]:
        """The applied migrations; an empty list if there is no history table."""

    @abstractmethod
    def _locked(self) -> AbstractContextManager[None]:
        """Lock out other migrators; everything inside is one transaction."""

    @abstractmethod
    def _before_change(self) -> None:
        """Called under the lock before the first change."""

    @abstractmethod
    def _apply(self, migration: Migration) -> None:
        """Run one migration and record it."""

    @abstractmethod
    def _amend(self, statements: Iterator[str], version: int, checksum: str) -> None:
        """Run statements and update the checksum of an applied migration."""

    @abstractmethod
    def _steps(self) -> Mapping[str, Callable[[], None]]:
        """The Python steps of migrations, by name."""

    def _after_change(self) -> None:  # noqa: B027 - only some databases have something to do here
        """Called under the lock after the last change."""

    @property
    @abstractmethod
    def target(self) -> str:
        """The name of the database in messages."""

    def status(self) -> list[MigrationState]:
        """All known migrations and whether they were applied; an unknown or changed one is an error."""
        applied = {row.version: row for row in self._checked(self._applied())}
        return [
            MigrationState(migration, applied[migration.version].applied_at if migration.version in applied else None)
            for migration in self._known
        ]

    def pending(self) -> list[Migration]:
        """The pending migrations, which `migrate` would apply."""
        return [state.migration for state in self.status() if state.applied_at is None]

    def migrate(self) -> list[Migration]:
        """Apply the pending migrations; returns them."""
        if not self.pending() and not self._outdated():
            return []
        with self._locked():
            # Another process may have migrated while this one waited for the lock.
            todo = self.pending()
            outdated = self._outdated()
            if todo or outdated:
                self._before_change()
            for row, migration in outdated:
                self._amend(statements(self._amendments[row.checksum]), row.version, migration.checksum)
            for migration in todo:
                self._apply(migration)
            self._take_steps(todo)
            if todo:
                self._after_change()
        return todo

    def _outdated(self) -> list[tuple[Applied, Migration]]:
        """Applied migrations whose text was changed before migrations were frozen, with the current text."""
        known = {migration.version: migration for migration in self._known}
        applied = [(row, known[row.version]) for row in self._applied() if row.version in known]
        return [
            (row, migration)
            for row, migration in applied
            if row.checksum != migration.checksum and row.checksum in self._amendments
        ]

    def _take_steps(self, migrations: Sequence[Migration]) -> None:
        """Run each Python step once, after all SQL, when the schema is the current one."""
        known = self._steps()
        repeated = [each.step for each in self._known if each.step in _REPEATED] if migrations else []
        steps = [*(migration.step for migration in migrations), *repeated]
        wanted = dict.fromkeys(step for step in steps if step is not None)
        for name in wanted:
            if _CONTAINED.get(name) in wanted:
                continue
            if name not in known:
                raise MigrationError(f"{self.target} cannot be migrated: there is no step {name!r}; reinstall ALMA")
            known[name]()

    def _checked(self, applied: list[Applied]) -> list[Applied]:
        known = {migration.version: migration for migration in self._known}
        for row in applied:
            migration = known.get(row.version)
            if migration is None:
                newest = max(known, default=0)
                raise MigrationError(
                    f"{self.target} has schema version {row.version} ({row.name}), this version of ALMA knows "
                    f"up to {newest}: upgrade alma-agent-memory to open it"
                )
            if migration.checksum != row.checksum and row.checksum not in self._amendments:
                raise MigrationError(
                    f"{self.target} was migrated with another text of {migration.file_name}: migrations must not "
                    f"change after they were applied; reinstall alma-agent-memory, or where the store was made by a "
                    f"version that was changed by hand, export it with that version and import it into a new store"
                )
        return applied


def statements(sql: str) -> Iterator[str]:
    """The single statements of a migration; one ends with a semicolon at the end of a line, outside of a $$ body."""
    lines: list[str] = []
    for line in sql.splitlines():
        lines.append(line)
        text = "\n".join(lines)
        if line.rstrip().endswith(";") and text.count("$$") % 2 == 0:
            yield text
            lines = []
    if any(line.strip() for line in lines):
        yield "\n".join(lines)


def _parsed(file_name: str, sql: str) -> Migration:
    number, _, name = file_name.removesuffix(".sql").partition("_")
    return Migration(int(number), name, sql.replace("\r\n", "\n"))
