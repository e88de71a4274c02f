"""Migrations are frozen: a landed text never changes, and stores of the texts that changed before that are taken on."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from alma.model.learning import Heuristic
from alma.model.scope import Scope
from alma.storage.migrations.base import AMENDMENTS, Migration, known_migrations
from alma.storage.postgres.migrations import PostgresMigrator
from alma.storage.postgresql import PostgreSQLStorage
from alma.storage.sql.clauses import DialectName
from alma.storage.sqlite.migrations import SQLiteMigrator
from alma.storage.sqlite_local import SQLiteStorage
from alma.testing.builders import a_heuristic
from tests.conftest import fresh_database
from tests.migrations import test_postgres_migrations as on_server
from tests.migrations import test_sqlite_migrations as in_file
from tests.support.postgres import PostgresServer

DATA = Path(__file__).parent / "data"
HISTORIC = sorted((DATA / "historic").glob("*.sql"))
OF_FILES = [path for path in HISTORIC if path.name.startswith("sqlite")]
OF_SERVERS = [path for path in HISTORIC if path.name.startswith("postgresql")]
EVERYWHERE = Scope.everywhere()


def test_a_landed_migration_never_changes() -> None:
    """A new migration adds its line to checksums.txt; a line that is there never changes."""
    frozen = set((DATA / "checksums.txt").read_text().splitlines())
    dialects: tuple[DialectName, ...] = ("sqlite", "postgresql")
    known = {
        f"{each.checksum}  {dialect}/{each.file_name}" for dialect in dialects for each in known_migrations(dialect)
    }
    assert known - frozen == set(), "a migration is new or was changed"
    assert frozen - known == set(), "a landed migration was changed or is gone"


def test_every_historic_text_is_known() -> None:
    assert {each.checksum for each in map(historic, HISTORIC)} == {*AMENDMENTS["sqlite"], *AMENDMENTS["postgresql"]}


def historic(path: Path) -> Migration:
    _, name, _ = path.stem.split("-")
    number, _, title = name.partition("_")
    return Migration(int(number), title, path.read_text())


def as_of_then(dialect: DialectName, text: Migration) -> list[Migration]:
    """The migrations of a version that had this text, which was its newest."""
    return [*(each for each in known_migrations(dialect) if each.version < text.version), text]


class FileThen(SQLiteMigrator):
    def _take_steps(self, migrations: Sequence[Migration]) -> None:
        """A new store has no words that would have to be indexed by the code of then."""


class ServerThen(PostgresMigrator):
    def _take_steps(self, migrations: Sequence[Migration]) -> None:
        """As for files."""


@pytest.mark.parametrize("text", OF_FILES, ids=lambda path: path.stem)
def test_a_file_of_an_earlier_text_is_taken_on(tmp_path: Path, text: Path) -> None:
    path = tmp_path / "alma.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        FileThen(path, connection, as_of_then("sqlite", historic(text))).migrate()
    for _ in range(2):
        with SQLiteStorage(path) as storage:
            storage.save(a_heuristic(id="a"))
            assert storage.count(Heuristic, EVERYWHERE) == 1
    SQLiteStorage(tmp_path / "new.db").close()
    with closing(sqlite3.connect(path)) as old, closing(sqlite3.connect(tmp_path / "new.db")) as new:
        assert in_file.catalogue(old) == in_file.catalogue(new)


@pytest.mark.parametrize("text", OF_SERVERS, ids=lambda path: path.stem)
def test_a_schema_of_an_earlier_text_is_taken_on(postgres_dsn: str, postgres: PostgresServer, text: Path) -> None:
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        ServerThen(connection, "public", as_of_then("postgresql", historic(text))).migrate()
    with PostgreSQLStorage.from_dsn(postgres_dsn, pool_size=1) as storage:
        storage.save(a_heuristic(id="a"))
        assert storage.count(Heuristic, EVERYWHERE) == 1
    with fresh_database(postgres, empty=True) as other:
        PostgreSQLStorage.from_dsn(other, pool_size=1).close()
        with psycopg.connect(postgres_dsn) as old, psycopg.connect(other) as new:
            assert on_server.catalogue(old) == on_server.catalogue(new)
