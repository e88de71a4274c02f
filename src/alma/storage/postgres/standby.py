"""Reads on a standby: as soon as it has replayed what this process wrote, and while it follows its primary."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psycopg
from psycopg_pool import PoolTimeout

from alma.errors import ConfigurationError
from alma.storage.postgres.connection import Connection
from alma.storage.postgres.pools import ProcessPool

_log = logging.getLogger("alma.storage.postgresql")

# What a commit ends at, at most: a standby that has replayed it shows the commit.
WRITTEN = "SELECT pg_current_wal_insert_lsn()"
# A standby that has lost its primary shows an ever older state, and so does one that replays slowly.
_OLDEST_SECONDS = 30
_STATE = f"""
    SELECT CASE
        WHEN NOT pg_is_in_recovery() THEN 'primary'
        WHEN NOT EXISTS (SELECT FROM pg_stat_wal_receiver) THEN 'alone'
        WHEN pg_last_wal_replay_lsn() < '%s' THEN 'behind'
        WHEN pg_last_wal_receive_lsn() > pg_last_wal_replay_lsn()
            AND pg_last_xact_replay_timestamp() < now() - interval '{_OLDEST_SECONDS} seconds' THEN 'behind'
        ELSE 'ready' END
"""
# The state is looked at in a transaction of its own: a snapshot that is taken after it shows at least as much.
_BEGIN = "BEGIN READ ONLY; %s; COMMIT; BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; %s"
_STATE_AT = 1
_CONNECT_SECONDS = 0.5
_LOOKS_AGAIN_AFTER_SECONDS = 5.0
_UNSURE_SECONDS = 30.0


class Standby:
    """The standby that a store may read from."""

    def __init__(self, pool: ProcessPool, identity: Callable[[], str], identity_statement: str) -> None:
        self._pool = pool
        self._identity = identity
        self._identity_statement = identity_statement
        self._lock = threading.Lock()
        self._written = 0
        self._not_before = 0.0
        self._known: str | None = None

    def wrote(self, position: str | None) -> None:
        """Take note of where the log of the primary ended after a commit of this process."""
        if position is not None:
            with self._lock:
                self._written = max(self._written, _number(position))

    def unsure(self) -> None:
        """Read elsewhere for a while: whether a commit of this process was stored is not known."""
        self._not_before = time.monotonic() + _UNSURE_SECONDS

    @contextmanager
    def snapshot(self, shown: str) -> Iterator[tuple[Connection, str] | None]:
        """A connection with an open snapshot and the value of a statement; None where the primary must be read."""
        connection = self._taken()
        if connection is None:
            yield None
            return
        try:
            value = self._begun(connection, shown)
            yield None if value is None else (connection, value)
        finally:
            self._pool.here.putconn(connection)

    @property
    def notes(self) -> tuple[str, ...]:
        """Why the standby is not read for now, if it is not."""
        return () if self._known is None else (f"the standby of read_url is not read for now, as {self._known}",)

    def close(self) -> None:
        self._pool.close()

    def _taken(self) -> Connection | None:
        if time.monotonic() < self._not_before:
            return None
        try:
            return self._pool.here.getconn(timeout=_CONNECT_SECONDS)
        except PoolTimeout:
            self._look_again_later("it cannot be reached")
            return None

    def _begun(self, connection: Connection, shown: str) -> str | None:
        """The value of the statement in a new snapshot; None where this standby must not be read now."""
        begin = _BEGIN % (_STATE % _position(self._written), shown)
        try:
            self._require_same_store(connection)
            values = connection.runner.values(begin.encode())
            if values[_STATE_AT] == "ready":
                self._known = None
                return values[-1]
            connection.runner.execute(b"ROLLBACK")
        except psycopg.OperationalError:
            connection.close()
            self._look_again_later("its connection was lost")
            return None
        if values[_STATE_AT] == "primary":
            self._look_again_later("it is a primary")
        elif values[_STATE_AT] == "alone":
            self._look_again_later("it has lost its primary")
        return None

    def _require_same_store(self, connection: Connection) -> None:
        """A standby has the identity of its primary."""
        if connection.is_checked:
            return
        try:
            identity = connection.runner.execute(self._identity_statement.encode())
        except psycopg.errors.UndefinedTable as exc:
            raise psycopg.OperationalError("the standby does not have the tables of the store yet") from exc
        if identity != self._identity():
            raise ConfigurationError("read_url leads to another database than the store; it must be a standby of it")
        connection.is_checked = True

    def _look_again_later(self, why: str) -> None:
        self._not_before = max(self._not_before, time.monotonic() + _LOOKS_AGAIN_AFTER_SECONDS)
        if self._known != why:
            self._known = why
            _log.warning("the standby is not read for now, the primary is", extra={"why": why})


def written_on(connection: psycopg.Connection[object]) -> str | None:
    """Where the log of a primary ends now; None where it does not say."""
    with suppress(psycopg.Error):
        row = connection.execute(WRITTEN).fetchone()
        return None if row is None else str(row[0])  # type: ignore[index]
    return None


def _number(position: str) -> int:
    high, low = position.split("/")
    return (int(high, 16) << 32) + int(low, 16)


def _position(number: int) -> str:
    return f"{number >> 32:X}/{number & 0xFFFFFFFF:X}"
