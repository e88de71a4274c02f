"""Migrating an SQLite file: a backup first, everything in one transaction, older files adopted."""

from __future__ import annotations

import glob
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from alma import clock
from alma.paths import make_private
from alma.storage.document import timestamp_of, timestamp_text
from alma.storage.migrations.base import HISTORY_TABLE, Applied, Migration, Migrator, statements
from alma.storage.sqlite import legacy
from alma.storage.sqlite.connections import roll_back, without_waiting
from alma.storage.sqlite.fulltext import index_everything

_CREATE_HISTORY = (
    f"CREATE TABLE IF NOT EXISTS {HISTORY_TABLE} "
    "(version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at DATETIME NOT NULL, checksum TEXT NOT NULL)"
)
_UNFINISHED = ".unfinished"


class SQLiteMigrator(Migrator):
    """Migrates the database behind an open connection."""

    def __init__(
        self,
        path: Path,
        connection: sqlite3.Connection,
        migrations: Sequence[Migration] | None = None,
        adopt: Callable[[sqlite3.Connection], None] | None = None,
    ) -> None:
        super().__init__("sqlite", migrations)
        self._path = path
        self._connection = connection
        self._adopt = adopt
        self._older_tables: list[str] = []
        self.backup: Path | None = None

    @property
    def target(self) -> str:
        return str(self._path)

    def _applied(self) -> list[Applied]:
        if not self._has_table(HISTORY_TABLE):
            return []
        rows = self._connection.execute(
            f"SELECT version, name, applied_at, checksum FROM {HISTORY_TABLE} ORDER BY version"
        )
        return [Applied(version, name, timestamp_of(at), checksum) for version, name, at, checksum in rows]

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            roll_back(self._connection)
            raise

    def _before_change(self) -> None:
        if self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            self.backup = self._write_backup()
        if not self._has_table(HISTORY_TABLE):
            self._older_tables = legacy.set_aside(self._connection)
        self._connection.execute(_CREATE_HISTORY)

    def _apply(self, migration: Migration) -> None:
        for statement in statements(migration.sql):
            self._connection.execute(statement)
        self._connection.execute(
            f"INSERT INTO {HISTORY_TABLE} (version, name, applied_at, checksum) VALUES (?, ?, ?, ?)",
            (migration.version, migration.name, timestamp_text(clock.now()), migration.checksum),
        )

    def _amend(self, statements: Iterator[str], version: int, checksum: str) -> None:
        for statement in statements:
            self._connection.execute(statement)
        self._connection.execute(f"UPDATE {HISTORY_TABLE} SET checksum = ? WHERE version = ?", (checksum, version))

    def _steps(self) -> Mapping[str, Callable[[], None]]:
        return {
            "index_words": partial(index_everything, self._connection),
        }

    def _after_change(self) -> None:
        if self._older_tables and self._adopt is not None:
            self._adopt(self._connection)

    def _has_table(self, name: str) -> bool:
        found = self._connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (name,))
        return found.fetchone() is not None

    def _write_backup(self) -> Path:
        """A complete copy next to the database, made under the write lock."""
        stamp = clock.now().strftime("%Y%m%dT%H%M%S%fZ")
        backup = self._path.with_name(f"{self._path.name}.backup-{stamp}")
        # Under its own name only when it is whole: half a copy must not be taken for a backup.
        unfinished = backup.with_name(f"{backup.name}{_UNFINISHED}")
        make_private(unfinished)
        try:
            # A second connection: it reads the last committed state while this one holds the lock.
            with closing(sqlite3.connect(self._path)) as source, closing(sqlite3.connect(unfinished)) as target:
                source.backup(target)
            unfinished.replace(backup)
        finally:
            unfinished.unlink(missing_ok=True)
        return backup


def clear_unfinished_backups(path: Path, connection: sqlite3.Connection) -> None:
    """Delete what migrations left that were killed while they copied the file.

    A migration holds the write lock while it copies. So where this process has the lock, no other is at work.
    """
    left = list(path.parent.glob(f"{glob.escape(path.name)}.backup-*{_UNFINISHED}*"))
    if left:
        with without_waiting(connection) as mine:
            for each in left if mine else ():
                each.unlink(missing_ok=True)
