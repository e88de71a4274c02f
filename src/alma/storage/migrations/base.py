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
from alma.storage.migrations.amendments import AMENDMENTS
from alma.storage.sql.names import DialectName

HISTORY_TABLE = "schema_migrations"
_STEP = re.compile(r"^-- then: (\w+)$", re.MULTILINE)
# What is indexed anew with all that today's code knows of words needs no mending, and always is.
_CONTAINED = {"index_signs": "index_words"}


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered change of the schema."""

    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()

    @property
    def step(self) -> str | None:
        """The step in Python that a line `-- then: name` asks for, None where SQL says it all."""
        named = _STEP.search(self.sql)
        return None if named is None else named.group(1)

    @property
    def file_name(self) -> str:
        return f"{self.version:04d}_{self.name}.sql"


@dataclass(frozen=True, slots=True)
class Applied:
    """A migration that a database says it has been through."""

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
    """Every migration this version of ALMA carries, in order."""
    folder = resources.files("alma.storage.migrations") / dialect
    files = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".sql")), key=lambda e: e.name)
    return tuple(_parsed(entry.name, entry.read_text(encoding="utf-8")) for entry in files)


class Migrator(ABC):
    """Brings one database to the schema this version knows; subclasses know how to talk to it."""

    def __init__(self, dialect: DialectName, migrations: Sequence[Migration] | None = None) -> None:
        self._amendments = AMENDMENTS[dialect]
        self._known = tuple(known_migrations(dialect) if migrations is None else migrations)

    @abstractmethod
    def _applied(self) -> list[Applied]:
        """What the database has been through; an empty list where there is no table for it."""

    @abstractmethod
    def _locked(self) -> AbstractContextManager[None]:
        """Hold every other migrator off; what happens inside commits together or not at all."""

    @abstractmethod
    def _before_change(self) -> None:
        """Called once, locked, before the first change."""

    @abstractmethod
    def _apply(self, migration: Migration) -> None:
        """Run one migration and record it."""

    @abstractmethod
    def _amend(self, statements: Iterator[str], version: int, checksum: str) -> None:
        """Run statements and record that a migration has this checksum now."""

    @abstractmethod
    def _steps(self) -> Mapping[str, Callable[[], None]]:
        """What migrations may ask for beyond SQL, by name."""

    def _after_change(self) -> None:  # noqa: B027 - only some databases have something to do here
        """Called once, locked, after the last change."""

    @property
    @abstractmethod
    def target(self) -> str:
        """The database's name for messages."""

    def status(self) -> list[MigrationState]:
        """Every known migration and whether it was applied; an unknown or changed one is an error."""
        applied = {row.version: row for row in self._checked(self._applied())}
        return [
            MigrationState(migration, applied[migration.version].applied_at if migration.version in applied else None)
            for migration in self._known
        ]

    def pending(self) -> list[Migration]:
        """What `migrate` would do: the dry run."""
        return [state.migration for state in self.status() if state.applied_at is None]

    def migrate(self) -> list[Migration]:
        """Apply what is pending; returns it."""
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
        """What was applied in a text that was changed before migrations were frozen, with the text that stayed."""
        known = {migration.version: migration for migration in self._known}
        applied = [(row, known[row.version]) for row in self._applied() if row.version in known]
        return [
            (row, migration)
            for row, migration in applied
            if row.checksum != migration.checksum and row.checksum in self._amendments
        ]

    def _take_steps(self, migrations: Sequence[Migration]) -> None:
        """Take each step once, when the schema is the one that today's code knows."""
        known = self._steps()
        wanted = dict.fromkeys(migration.step for migration in migrations if migration.step is not None)
        for name in wanted:
            if _CONTAINED.get(name) in wanted:
                continue
            if name not in known:
                raise MigrationError(f"{self.target} cannot be migrated: there is no step {name!r}; install ALMA anew")
            known[name]()

    def _checked(self, applied: list[Applied]) -> list[Applied]:
        known = {migration.version: migration for migration in self._known}
        for row in applied:
            migration = known.get(row.version)
            if migration is None:
                newest = max(known, default=0)
                raise MigrationError(
                    f"{self.target} has schema version {row.version} ({row.name}), this version of alma-memory knows "
                    f"up to {newest}: upgrade alma-memory to open it"
                )
            if migration.checksum != row.checksum and row.checksum not in self._amendments:
                raise MigrationError(
                    f"{self.target} was migrated with another text of {migration.file_name}: migrations must not "
                    f"change after they were applied; reinstall alma-memory, or where the store was made by a version "
                    f"that was changed by hand, export it with that version and import it into a new store"
                )
        return applied


def statements(sql: str) -> Iterator[str]:
    """The single statements of a migration; a statement ends with a semicolon at the end of a line."""
    lines: list[str] = []
    for line in sql.splitlines():
        lines.append(line)
        if line.rstrip().endswith(";"):
            yield "\n".join(lines)
            lines = []
    if any(line.strip() for line in lines):
        yield "\n".join(lines)


def _parsed(file_name: str, sql: str) -> Migration:
    number, _, name = file_name.removesuffix(".sql").partition("_")
    return Migration(int(number), name, sql.replace("\r\n", "\n"))
