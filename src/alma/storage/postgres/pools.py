"""Connections to PostgreSQL: pools of them, how each is set up, and the driver's errors as ours."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from alma.errors import (
    ConfigurationError,
    ConflictError,
    ConnectionLostError,
    FullTextMissingError,
    StorageError,
    StorageFullError,
    UnknownOutcomeError,
)
from alma.lazy import lazy_regex
from alma.storage.postgres.connection import Connection

# An index scan goes on, nearest first or nearly so, until enough records inside the scope are found.
_INDEX_SETTINGS = {"iterative_scan": "relaxed_order", "max_scan_tuples": "100000"}
# The extension's type and operators live in public, or wherever an administrator put them.
_SET_PATH = (
    "SELECT set_config('search_path', concat_ws(', ', quote_ident(%s), 'public', (SELECT quote_ident(nspname) "
    "FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'vector')), false)"
)
_CONNECT_SECONDS = 30.0
# After this time the backoff between attempts to connect restarts, so that a new primary is found soon.
_RECONNECT_SECONDS = 3.0
# Where there are several hosts one of them may be gone without a word, which TCP notices after many minutes.
_SEVERAL_HOSTS = {
    "target_session_attrs": "read-write",
    "connect_timeout": "5",
    "tcp_user_timeout": "10000",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
}
# The advisory lock under which one process at a time changes a schema.
SCHEMA_LOCK = 0x616C6D61
_NO_WORDS = lazy_regex(r'column "?(?:\w+\.)?search(?:_length)?"?(?: of relation "(?P<table>\w+)")? does not exist')
_LOST = "the connection to PostgreSQL was lost before the commit: nothing was stored; repeat the call"
_UNKNOWN = (
    "the connection to PostgreSQL was lost during the commit, so it is not known whether it was stored: read it back, "
    "then repeat the call if it is missing"
)
_STANDBY = (
    "this PostgreSQL server is a standby or read-only, and cannot be written to: open the store at its primary, "
    "or name all hosts, like postgresql://user@db1,db2/database"
)
_DATABASE = "the PostgreSQL database"
_UNREADABLE = (
    "the address of {what} cannot be read: it must be like postgresql://user:password@host:5432/database,"
    " with signs such as % @ / ? # [ in the password written as %25 %40 %2F %3F %23 %5B, and only parameters that"
    " PostgreSQL knows behind a ?"
)


class ProcessPool:
    """A pool of connections in each process: a fork inherits those that its parent goes on speaking over."""

    def __init__(self, make: Callable[[], ConnectionPool[Connection]]) -> None:
        self._make = make
        self._pools = {os.getpid(): make()}

    @property
    def here(self) -> ConnectionPool[Connection]:
        """The pool of this process."""
        here = os.getpid()
        if here not in self._pools:
            made = self._make()
            if self._pools.setdefault(here, made) is not made:
                made.close()
        return self._pools[here]

    def close(self) -> None:
        """Close the pool of this process."""
        pool = self._pools.get(os.getpid())
        if pool is not None:
            pool.close()


def pool_of(conninfo: str, most: int, configure: Callable[[Connection], None]) -> ConnectionPool[Connection]:
    """A pool that connects in the background."""
    return ConnectionPool(
        conninfo,
        min_size=1,
        max_size=most,
        connection_class=Connection,
        kwargs={"autocommit": True},
        configure=configure,
        open=True,
        timeout=_CONNECT_SECONDS,
        reconnect_timeout=_RECONNECT_SECONDS,
        reconnect_failed=_try_again,
        name="alma",
    )


def connected_pool(conninfo: str, most: int, configure: Callable[[Connection], None]) -> ConnectionPool[Connection]:
    """A pool with its first connection ready, so that the first request does not open a second one."""
    pool = pool_of(conninfo, most, configure)
    pool.wait(_CONNECT_SECONDS)
    return pool


def _try_again(pool: ConnectionPool[Connection]) -> None:
    """Go on while a request waits for a connection."""
    if pool.get_stats().get("requests_waiting"):
        pool.check()


def address(dsn: str, what: str = _DATABASE) -> str:
    """The address with what lets a client find the primary among several hosts, unless it says that itself."""
    parts = psycopg.conninfo.conninfo_to_dict(_readable(dsn, what))
    if "," not in f"{parts.get('host', '')}{parts.get('hostaddr', '')}":
        return dsn
    missing = {name: value for name, value in _SEVERAL_HOSTS.items() if name not in parts}
    return psycopg.conninfo.make_conninfo(dsn, **missing)


@contextmanager
def administration(conninfo: str, schema: str) -> Iterator[Connection]:
    """A separate connection, outside every pool, for changing a schema."""
    with translated(), Connection.connect(_readable(conninfo), autocommit=True) as connection:
        set_session(connection, schema)
        yield connection


def set_session(connection: psycopg.Connection[Any], schema: str) -> None:
    """Whose tables are meant, and how every connection of ours is set."""
    connection.execute(_SET_PATH, [schema])
    connection.execute("SET TIME ZONE 'UTC'")
    # What the triggers do for rows that SQL writes is done here already.
    connection.execute("SET alma.writer = 'on'")
    # Every statement is short: compiling one, or starting a process to share it with, takes longer than to run it.
    connection.execute("SET jit = off")
    connection.execute("SET max_parallel_workers_per_gather = 0")


def tune_index_scans(connection: psycopg.Connection[Any]) -> None:
    """Make index scans iterative: they continue until enough rows are found."""
    for name, value in _INDEX_SETTINGS.items():
        # Older versions of the extension lack some of these, and then do as well as they can.
        with suppress(psycopg.errors.UndefinedObject, psycopg.errors.InvalidName):
            connection.execute(f"SET hnsw.{name} = {value}".encode())


@contextmanager
def ended(
    connection: Connection, commit: bytes = b"COMMIT", told: Callable[[str | None], None] | None = None
) -> Iterator[None]:
    """Commit what was begun, or roll it back; the pool throws a broken connection away.

    `told` gets the first value of the last statement of `commit`.
    """
    try:
        yield
    except BaseException as exc:
        if connection.broken and isinstance(exc, psycopg.Error | StorageError):
            raise ConnectionLostError(_LOST) from exc
        if not connection.closed:
            connection.execute("ROLLBACK")
        raise
    try:
        value = connection.runner.execute(commit)
    except psycopg.OperationalError as exc:
        if connection.broken:
            raise UnknownOutcomeError(_UNKNOWN) from exc
        raise
    except BaseException:
        if not connection.closed:
            connection.execute("ROLLBACK")
        raise
    if told is not None:
        told(value)


def _readable(dsn: str, what: str = _DATABASE) -> str:
    """The address, if it can be taken apart; the driver's complaints would quote the password in it."""
    unreadable = _UNREADABLE.format(what=what)
    if not isinstance(dsn, str):
        raise ConfigurationError(unreadable)
    try:
        parts = psycopg.conninfo.conninfo_to_dict(dsn)
    except psycopg.Error:
        raise ConfigurationError(unreadable) from None
    if "@" in str(parts.get("host", "")) or not str(parts.get("port", "") or "0").replace(",", "0").isdigit():
        raise ConfigurationError(unreadable)
    return dsn


@contextmanager
def translated() -> Iterator[None]:
    """The driver's errors as ours, in one place."""
    try:
        yield
    except psycopg.errors.IntegrityError as exc:
        raise ConflictError(_first_line(exc)) from exc
    except (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure) as exc:
        raise ConflictError(_first_line(exc)) from exc
    except (psycopg.errors.DiskFull, psycopg.errors.ConfigurationLimitExceeded) as exc:
        raise StorageFullError(f"the server's disk is full, nothing was stored: {_first_line(exc)}") from exc
    except PoolTimeout as exc:
        raise StorageError(f"no connection to PostgreSQL within {_CONNECT_SECONDS:.0f} seconds") from exc
    except PoolClosed as exc:
        raise StorageError("the store on PostgreSQL was closed") from exc
    except psycopg.errors.ReadOnlySqlTransaction as exc:
        raise StorageError(_STANDBY) from exc
    except psycopg.Error as exc:
        raise _other(_first_line(exc)) from exc


def _other(said: str) -> StorageError:
    missing = _NO_WORDS.search(said)
    if missing is None:
        return StorageError(f"PostgreSQL: {said}")
    return FullTextMissingError(
        f"the full-text index{f' of {table}' if (table := missing['table']) else ''}", "PostgreSQL"
    )


def _first_line(exc: psycopg.Error) -> str:
    return str(exc).strip().splitlines()[0] if str(exc).strip() else type(exc).__name__
