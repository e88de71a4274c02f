"""Questions aside on PostgreSQL: one more connection answers one while the first is busy with others.

What is answered there counts only if it was found in the very state that the first connection sees.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from threading import Lock
from typing import Any

import psycopg
from psycopg import generators
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from alma.storage.sql.postgres_wire import listed

# Which server it is and which transactions a moment can see: every commit anywhere on the server moves that.
SHOWN = "SELECT concat_ws(' ', extract(epoch FROM pg_postmaster_start_time()), pg_current_snapshot())"
# The same, unknown on a server that follows another: there a snapshot does not tell which transactions are under way.
SHOWN_ASIDE = f"({SHOWN} WHERE NOT pg_is_in_recovery())"
# Whoever changes a table waits for the first connection, and would make the second wait for himself: for ever.
NEVER_WAITS = "SET lock_timeout = '10ms'"
# The connection is known to be free when it is asked for.
_AT_ONCE_SECONDS = 0.05
_MOST_SKIPPED = 64
# There is one statement for each owner of much, and a server keeps what it plans.
_MOST_PLANNED = 100
_PLACEHOLDER = re.compile(r"%\((\w+)\)s|%%")

Pool = ConnectionPool[Any]


class Session:
    """What a connection knows: how many vectors its index looks for in a round, and which statements are planned."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self._vectors: int | None = None
        self._statements: dict[tuple[str, tuple[int, ...]], bytes] = {}
        self._made = 0

    def look_round(self, vectors: int) -> None:
        """Let the index look for so many vectors in a round."""
        if self._vectors != vectors:
            self.connection.execute(f"SET hnsw.ef_search = {vectors}".encode())
            self._vectors = vectors

    def send(self, sql: str, values: Mapping[str, Any]) -> None:
        """Send a question, all of it at once, without waiting for the answer.

        The driver can do that in its pipelines alone, which end with one more message to the server and its answer. The
        processor that these two take turns on is then the one that the server works on next, and whoever sends it the
        next question is put aside until it is answered.
        """
        command, names = _numbered(sql)
        given, values = Transformer(self.connection), listed(values)
        dumped = given.dump_sequence([values[name] for name in names], [PyFormat.AUTO] * len(names))
        statement = self._planned(command, tuple(given.types or ()))
        self.connection.pgconn.send_query_prepared(statement, dumped, given.formats, Format.BINARY)
        self.connection.wait(generators.send(self.connection.pgconn))

    def rows(self) -> list[Any]:
        """The answer, as soon as it is there."""
        result = self._result()
        loading = Transformer(self.connection)
        loading.set_pgresult(result)
        return loading.load_rows(0, result.ntuples, tuple)

    def _planned(self, command: str, types: tuple[int, ...]) -> bytes:
        """The name of a statement that the server has planned, or plans now."""
        name = self._statements.get((command, types))
        if name is None:
            if len(self._statements) == _MOST_PLANNED:
                oldest = next(iter(self._statements))
                self.connection.execute(b"DEALLOCATE " + self._statements.pop(oldest))
            self._made += 1
            name = f"alma_{self._made}".encode()
            self.connection.pgconn.send_prepare(name, command.encode(), types)
            self._result()
            self._statements[command, types] = name
        return name

    def _result(self) -> PGresult:
        results: list[PGresult] = self.connection.wait(generators.execute(self.connection.pgconn))
        result = results[-1]
        if result.status not in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK):
            raise psycopg.DatabaseError(result.get_error_message())
        return result


class Asked:
    """A question that is being answered on another connection."""

    def __init__(self, session: Session, done: Callable[[], None]) -> None:
        self._session = session
        self._done: Callable[[], None] | None = done

    def rows(self) -> list[Any] | None:
        """What was found; None where it was not, as when the connection was lost."""
        try:
            found = self._session.rows()
        except psycopg.Error:
            self.drop()
            return None
        self._finish()
        return found

    def drop(self) -> None:
        """Give up a question that nobody has taken the answer to, with its connection: the server may be at it yet."""
        if self._done is not None:
            self._session.connection.close()
            self._finish()

    def _finish(self) -> None:
        done, self._done = self._done, None
        if done is not None:
            done()


class Aside:
    """The connection of a process on which questions are answered aside, one at a time.

    Whoever finds it busy, not yet connected or lost goes on without it.
    """

    def __init__(self, make_pool: Callable[[], Pool]) -> None:
        self._make_pool = make_pool
        self._pool: Pool | None = None
        self._lock = Lock()
        self._session: Session | None = None
        self._to_skip = self._skipped_last = 0

    def ask(self, vectors: int, sql: str, values: Mapping[str, Any]) -> Asked | None:
        """Have a question answered by an index that looks for so many vectors in a round; None if it cannot be now."""
        if self._to_skip:
            self._to_skip -= 1
            return None
        if not self._lock.acquire(blocking=False):
            return None
        asked: Asked | None = None
        try:
            connection = self._free()
            if connection is not None:
                session = self._session_of(connection)
                asked = Asked(session, partial(self._give_back, connection))
                session.look_round(vectors)
                session.send(sql, values)
                return asked
        except psycopg.Error:
            pass
        except BaseException:
            self._let_go(asked)
            raise
        self._let_go(asked)
        return None

    def tell(self, *, in_time: bool) -> None:
        """Say whether an answer was found in the state that was wanted.

        Where others write all the time it rarely is, and is then asked for more and more rarely.
        """
        self._skipped_last = 0 if in_time else min(2 * self._skipped_last + 1, _MOST_SKIPPED)
        self._to_skip = self._skipped_last

    def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def _free(self) -> psycopg.Connection[Any] | None:
        """The connection, where there is one: it is made in the background, and so is another if it was lost."""
        if self._pool is None:
            self._pool = self._make_pool()
        known = self._pool.get_stats()
        if not known.get("pool_size"):
            # It has tried for minutes and given up.
            self.close()
        if not known.get("pool_available") or self._pool is None:
            return None
        with suppress(PoolTimeout, PoolClosed):
            connection: psycopg.Connection[Any] = self._pool.getconn(_AT_ONCE_SECONDS)
            return connection
        return None

    def _session_of(self, connection: psycopg.Connection[Any]) -> Session:
        if self._session is None or self._session.connection is not connection:
            self._session = Session(connection)
        return self._session

    def _let_go(self, asked: Asked | None) -> None:
        if asked is None:
            self._lock.release()
        else:
            asked.drop()

    def _give_back(self, connection: psycopg.Connection[Any]) -> None:
        try:
            if self._pool is None:
                connection.close()
            else:
                self._pool.putconn(connection)
        finally:
            self._lock.release()


def seen_in(rows: Sequence[Sequence[Any]]) -> str | None:
    """The state in which rows were found that have it as their last column; it is not known of none."""
    return rows[0][-1] if rows else None


@lru_cache(maxsize=256)
def _numbered(sql: str) -> tuple[str, tuple[str, ...]]:
    """A statement with its parameters numbered, as the server wants them, and their names in this order."""
    names: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        name = match[1]
        return "%" if name is None else f"${names.setdefault(name, len(names) + 1)}"

    return _PLACEHOLDER.sub(number, sql), tuple(names)
