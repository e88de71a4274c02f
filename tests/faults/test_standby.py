"""A primary with a synchronous standby: failover loses no acknowledged write, and the standby can be read.

`ALMA_FAILOVERS=20` repeats the failover that often.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from alma.config.loader import settings_from
from alma.errors import ConfigurationError, ConnectionLostError, StorageError, UnknownOutcomeError
from alma.model.learning import Heuristic
from alma.model.memory import Memory
from alma.model.scope import Scope
from alma.storage.postgresql import PostgreSQLStorage
from alma.testing import builders as make
from tests.faults.checks import Acknowledged, check_acknowledged, check_agreement, check_postgres_database, prepare
from tests.faults.processes import Worker, said_by_killed_writers, up_to
from tests.faults.records import SHARED, a_heuristic
from tests.faults.stores import opened
from tests.faults.test_kill_postgres import has_written_since
from tests.support.postgres import PostgresServer, wait_until

EVERYWHERE = Scope.everywhere()
FAILOVERS = int(os.environ.get("ALMA_FAILOVERS", "1"))
LONGEST_LIFE_SECONDS = 0.08
EMPTY = "empty"


class Pair:
    """A primary and its standby, which may take turns."""

    def __init__(self, primary: PostgresServer, standby: PostgresServer) -> None:
        self.primary = primary
        self.standby = standby
        self._servers = (primary, standby)

    def create_database(self, name: str) -> str:
        """A new database; returns its address on both servers."""
        self.primary.create_database(name)
        return self.address(name)

    def address(self, name: str) -> str:
        one, other = self._servers
        return f"postgresql://{one.user}:{one.password}@{one.host}:{one.port},{other.host}:{other.port}/{name}"

    def make_synchronous(self) -> None:
        self.primary.configure(synchronous_standby_names="*")
        self.primary.await_synchronous_standby()

    def fail_over(self) -> None:
        """Kill the primary and promote the standby."""
        self.primary.kill()
        self.standby.promote()
        self.primary, self.standby = self.standby, self.primary

    def repair(self) -> None:
        """Make the server that was killed a standby again."""
        self.standby.follow(self.primary)
        self.make_synchronous()


@pytest.fixture(scope="module")
def servers() -> Iterator[Pair]:
    # Only processes are killed here, never the machine.
    settings = {"fsync": "off"}
    with (
        PostgresServer(settings=settings) as primary,
        PostgresServer(settings=settings, follows=primary) as standby,
    ):
        pair = Pair(primary, standby)
        pair.make_synchronous()
        with opened(pair.create_database(EMPTY)):
            pass
        yield pair


@pytest.fixture
def pair(servers: Pair) -> Pair:
    """Both servers, also after a test that lost one."""
    if not servers.standby.running:
        servers.repair()
    return servers


# ---------------------------------------------------------------------- reading


@pytest.fixture
def name(pair: Pair, request: pytest.FixtureRequest) -> str:
    name = f"reads_{abs(hash(request.node.name))}"
    pair.primary.create_database(name, EMPTY)
    return name


@contextmanager
def reading_from_standby(pair: Pair, name: str) -> Iterator[PostgreSQLStorage]:
    with PostgreSQLStorage.from_dsn(pair.address(name), 4, read_url=pair.standby.dsn(name)) as store:
        wait_until(lambda: reads_on(pair.standby, name, store))
        yield store


def reads_on(server: PostgresServer, name: str, store: PostgreSQLStorage) -> bool:
    """Whether a read of the store runs on a server."""
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection, store.snapshot() as tx:
        tx.count(Memory, EVERYWHERE)
        return bool(
            scalar(
                connection, f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}' AND xact_start IS NOT NULL"
            )
            == 1
        )


def scalar(connection: psycopg.Connection[Any], query: str) -> Any:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


@contextmanager
def paused(server: PostgresServer) -> Iterator[None]:
    """The standby receives what is written, and shows none of it."""
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
        connection.execute("SELECT pg_wal_replay_pause()")
        wait_until(lambda: scalar(connection, "SELECT pg_get_wal_replay_pause_state()") == "paused")
        try:
            yield
        finally:
            connection.execute("SELECT pg_wal_replay_resume()")


def test_reads_run_on_the_standby_and_writes_on_the_primary(pair: Pair, name: str) -> None:
    with reading_from_standby(pair, name) as store:
        store.save(make.a_memory(id="m", embedding=[1, 2, 3, 4]))
        wait_until(lambda: reads_on(pair.standby, name, store))
        assert not reads_on(pair.primary, name, store)
        assert [hit.record.id for hit in store.search_vector(Memory, [1, 2, 3, 4], EVERYWHERE)] == ["m"]
        generation = store.generation()
        with store.reading() as (_, shown):
            assert shown == generation
        store.delete(Memory, ["m"], EVERYWHERE)
        assert store.generation() != generation


def test_a_process_reads_what_it_wrote_although_the_standby_is_behind(pair: Pair, name: str) -> None:
    with reading_from_standby(pair, name) as store, opened(pair.address(name)) as other:
        other.save(a_heuristic("before"))
        other.delete(Heuristic, ["before"], EVERYWHERE)
        wait_until(lambda: reads_on(pair.standby, name, store))
        with paused(pair.standby):
            other.save(a_heuristic("of another process"))
            assert store.count(Heuristic, EVERYWHERE) == 0
            store.save(make.a_memory(id="own"))
            assert store.get(Memory, "own", EVERYWHERE) is not None
            assert reads_on(pair.primary, name, store)
        wait_until(lambda: reads_on(pair.standby, name, store))
        assert store.count(Heuristic, EVERYWHERE) == 1


def test_the_primary_is_read_while_the_standby_is_away(pair: Pair, name: str) -> None:
    with reading_from_standby(pair, name) as store:
        # Nothing is written meanwhile: every commit would wait for the standby.
        pair.standby.stop()
        assert store.count(Memory, EVERYWHERE) == 0
        assert reads_on(pair.primary, name, store)
        (note,) = store.notes
        assert note.startswith("the standby of read_url is not read for now, as")
        pair.standby.start()
        wait_until(lambda: reads_on(pair.standby, name, store))
        assert store.notes == ()


def test_a_standby_cannot_be_written_to(pair: Pair, name: str) -> None:
    wait_until(lambda: is_there(pair.standby, name))
    with (
        PostgreSQLStorage.from_dsn(pair.standby.dsn(name), 4) as store,
        pytest.raises(StorageError, match="is a standby or read-only"),
    ):
        store.save(make.a_memory(id="m"))
    with pytest.raises(ConfigurationError, match="the address of the standby, read_url, cannot be read"):
        PostgreSQLStorage.from_dsn(pair.address(name), 4, read_url="db2")


def is_there(server: PostgresServer, name: str) -> bool:
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
        return connection.execute("SELECT FROM pg_database WHERE datname = %s", [name]).rowcount == 1


def test_the_configuration_names_hosts_and_the_standby(pair: Pair, name: str) -> None:
    one, other = pair.primary, pair.standby
    section = {
        "host": f"{other.host}:{other.port},{one.host}:{one.port}",
        "database": name,
        "password": one.password,
        "read_url": other.dsn(name),
    }
    with PostgreSQLStorage.from_config({"storage": "postgres", "postgres": section}) as store:
        store.save(make.a_memory(id="m"))
        wait_until(lambda: reads_on(other, name, store))
    assert one.password not in repr(settings_from({"project_id": "p", "storage": "postgres", "postgres": section}))


def test_a_standby_of_another_store_is_refused(pair: Pair, name: str) -> None:
    elsewhere = pair.create_database(f"{name}_else")
    opened(elsewhere).close()
    with (
        PostgreSQLStorage.from_dsn(pair.address(name), 4, read_url=pair.standby.dsn(f"{name}_else")) as store,
        pytest.raises(ConfigurationError, match="read_url leads to another database"),
    ):
        wait_until(lambda: store.count(Memory, EVERYWHERE) > 0)


# ---------------------------------------------------------------------- lost connections


def test_a_write_whose_connection_was_lost_before_the_commit_is_run_again(pair: Pair, name: str) -> None:
    runs = 0
    with opened(pair.address(name)) as store:

        def save(tx: Any) -> None:
            nonlocal runs
            runs += 1
            tx.save(a_heuristic("once"))
            if runs == 1:
                end_sessions(pair.primary, name)
                tx.count(Heuristic, EVERYWHERE)

        store.write(save)
        assert (runs, store.count(Heuristic, EVERYWHERE)) == (2, 1)
        with pytest.raises(ConnectionLostError, match="nothing was stored"), store.transaction() as tx:
            tx.save(a_heuristic("never"))
            end_sessions(pair.primary, name)
            tx.count(Heuristic, EVERYWHERE)
        assert store.count(Heuristic, EVERYWHERE) == 1


def test_a_connection_lost_in_the_commit_says_that_the_outcome_is_unknown(pair: Pair, name: str) -> None:
    with opened(pair.address(name)) as store:
        with pytest.raises(UnknownOutcomeError, match="read it back"), store.transaction() as tx:
            tx.save(a_heuristic("perhaps"))
            end_sessions(pair.primary, name)
        assert store.count(Heuristic, EVERYWHERE) in (0, 1)


def end_sessions(server: PostgresServer, name: str) -> None:
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
        connection.execute(
            f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{name}'".encode()
        )


# ---------------------------------------------------------------------- failover


def test_a_standby_that_has_lost_its_primary_is_not_read(pair: Pair, name: str) -> None:
    with reading_from_standby(pair, name) as store:
        store.save(make.a_memory(id="m"))
        pair.fail_over()
        assert store.get(Memory, "m", EVERYWHERE) is not None
        store.save(make.a_memory(id="n"))
        assert store.count(Memory, EVERYWHERE) == 2
        assert reads_on(pair.primary, name, store)


def test_a_promoted_standby_has_every_acknowledged_write(pair: Pair) -> None:
    address = pair.create_database("failover")
    lives = up_to(LONGEST_LIFE_SECONDS, seed=51)
    acknowledged = Acknowledged()
    with opened(address) as store:
        prepare(store, a_heuristic(SHARED))
        for i in range(FAILOVERS):
            if i:
                pair.repair()
            names = (f"port{i}", f"starboard{i}")
            acknowledged.add(said_by_killed_writers(address, names, lives, lambda writers: lose(pair, writers, lives)))
            # A store that was open all the time finds the new primary as well.
            check_acknowledged(store, acknowledged)
        check_agreement(store)
    check_postgres_database(address + "?target_session_attrs=read-write")
    assert acknowledged.saved
    assert acknowledged.increments


def lose(pair: Pair, writers: Sequence[Worker], lives_seconds: Callable[[], float]) -> None:
    """Lose the primary at a random moment; the writers must then go on by themselves."""
    time.sleep(lives_seconds())
    pair.fail_over()
    promoted = time.monotonic()
    for writer in writers:
        while not has_written_since(promoted, writer.line()):
            pass
