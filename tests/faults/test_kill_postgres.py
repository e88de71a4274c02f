"""Writers that are killed, and a PostgreSQL server that crashes under them, lose nothing that was acknowledged."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import psycopg
import pytest

from tests.faults.checks import (
    Acknowledged,
    check_acknowledged,
    check_agreement,
    check_found,
    check_postgres_database,
    prepare,
)
from tests.faults.processes import Worker, said_by_killed_writers, up_to
from tests.faults.records import SHARED, a_heuristic
from tests.faults.stores import opened
from tests.support.postgres import PostgresServer

CALM_ROUNDS = 4
CRASHES = 3
LONGEST_LIFE_SECONDS = 0.08


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A server that no other test uses."""
    with PostgresServer() as server:
        yield server


def test_killed_writers_and_a_crashing_server_lose_no_acknowledged_write(server: PostgresServer) -> None:
    dsn = server.create_database("alma")
    lives = up_to(LONGEST_LIFE_SECONDS, seed=50)
    acknowledged = Acknowledged()
    with opened(dsn) as store:
        prepare(store, a_heuristic(SHARED))
    for i in range(CALM_ROUNDS):
        acknowledged.add(said_by_killed_writers(dsn, (f"left{i}", f"right{i}"), lives))
        check_acknowledged_in(dsn, acknowledged)
    assert acknowledged.failures == []
    for i in range(CRASHES):
        names = (f"port{i}", f"starboard{i}")
        acknowledged.add(said_by_killed_writers(dsn, names, lives, lambda writers: crash(server, writers, lives)))
        check_acknowledged_in(dsn, acknowledged)
    check_postgres_database(dsn)
    gather_statistics(dsn)
    with opened(dsn) as store:
        check_acknowledged(store, acknowledged)
        check_agreement(store)
        check_found(store)
    assert acknowledged.varied


def crash(server: PostgresServer, writers: Sequence[Worker], lives_seconds: Callable[[], float]) -> None:
    """Kill the server at a random moment and start it again; the writers must then go on by themselves."""
    time.sleep(lives_seconds())
    server.kill()
    server.restart()
    restarted = time.monotonic()
    for writer in writers:
        while not has_written_since(restarted, writer.line()):
            pass


def has_written_since(moment: float, line: str) -> bool:
    """Whether a line acknowledges a write that began after the moment, by the clock that processes share."""
    began, what, *_ = line.split()
    return float(began) > moment and what != "failed"


def gather_statistics(dsn: str) -> None:
    """Let the server plan the thousands of searches to come better than it could by guessing."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("ANALYZE")


def check_acknowledged_in(dsn: str, acknowledged: Acknowledged) -> None:
    with opened(dsn) as store:
        check_acknowledged(store, acknowledged)
