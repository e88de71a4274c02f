"""A store of each kind, and a second process that uses the same one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from alma.bootstrap import open_storage
from alma.model.governance import default_settings
from alma.storage.base import StorageBackend
from tests.conftest import fresh_database
from tests.support.postgres import PostgresServer

ROOT = Path(__file__).parents[2]
RunElsewhere = Callable[..., list[str]]


@pytest.fixture(scope="session")
def database(postgres: PostgresServer) -> Iterator[str]:
    """One database for all tests, each of which finds it empty: much faster than a database each."""
    with fresh_database(postgres) as dsn:
        open_storage(dsn, embedding_dim=4).close()
        yield dsn


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a new store of each kind."""
    if request.param == "sqlite":
        yield str(tmp_path / "alma.db")
        return
    dsn = str(request.getfixturevalue("database"))
    yield dsn
    _empty(dsn)


def _empty(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        for (table,) in tables:
            if table not in ("schema_migrations", "system_config"):
                connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))
        for setting in default_settings():
            connection.execute(
                "UPDATE system_config SET value = %s, updated_by = NULL WHERE key = %s", (setting.value, setting.key)
            )


@pytest.fixture
def store(place: str) -> Iterator[StorageBackend]:
    with open_storage(place, embedding_dim=4) as storage:
        yield storage


@pytest.fixture
def elsewhere(place: str) -> RunElsewhere:
    """Runs a command of `tests.workspace.worker` in processes of their own, all at the same time.

    Gives back what they printed, one text for each.
    """

    def run(command: str, *arguments: str, processes: int = 1) -> list[str]:
        workers = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.workspace.worker", command, place, str(number), *arguments],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for number in range(processes)
        ]
        try:
            for worker in workers:
                assert worker.stdout is not None
                assert worker.stdout.readline() == "ready\n"
            return [_finished(worker) for worker in _started(workers)]
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()

    return run


def _started(workers: list[subprocess.Popen[str]]) -> list[subprocess.Popen[str]]:
    """Let them all go at the same moment."""
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    return workers


def _finished(worker: subprocess.Popen[str]) -> str:
    printed, _ = worker.communicate(timeout=120)
    assert worker.returncode == 0
    return printed.strip()
