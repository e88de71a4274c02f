"""A store of each kind, and a second process that uses the same one."""

from __future__ import annotations

import json
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
        yield dsn


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of an empty store of each kind."""
    if request.param == "sqlite":
        yield str(request.getfixturevalue("sqlite_path"))
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


@pytest.fixture(scope="session")
def workers() -> Iterator[list[Worker]]:
    """Processes that wait for work; started when they are first needed, as starting one takes its time."""
    started: list[Worker] = []
    yield started
    for worker in started:
        worker.kill()


@pytest.fixture
def elsewhere(place: str, workers: list[Worker]) -> RunElsewhere:
    """Runs a command of `tests.workspace.worker` in other processes, in all of them at the same time.

    Gives back what they said, one text for each.
    """

    def run(command: str, *arguments: str, processes: int = 1) -> list[str]:
        while len(workers) < processes:
            workers.append(Worker())
        chosen = workers[:processes]
        for number, worker in enumerate(chosen):
            worker.tell([command, place, str(number), *arguments])
        assert [worker.hear() for worker in chosen] == ["ready"] * processes
        for worker in chosen:
            worker.tell("go")
        return [str(worker.hear()) for worker in chosen]

    return run


class Worker:
    """A process that does what it is told, line by line."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.workspace.worker"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tell(self, message: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def hear(self) -> object:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the process ended instead of saying something"
        return json.loads(line)

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()
