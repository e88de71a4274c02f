"""Questions aside on PostgreSQL: one more connection answers one while the first is busy with others.

What is answered there counts only if it was found in the very state that the first connection sees.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import Any

import psycopg
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from alma.storage.postgres.connection import Connection

# Which server it is and which transactions a moment can see: every commit anywhere on the server moves that.
SHOWN = "SELECT concat_ws(' ', extract(epoch FROM pg_postmaster_start_time()), pg_current_snapshot())"
# The same, unknown on a server that follows another: there a snapshot does not tell which transactions are under way.
SHOWN_ASIDE = f"({SHOWN} WHERE NOT pg_is_in_recovery())"
# Whoever changes a table waits for the first connection, and would make the second wait for himself: for ever.
NEVER_WAITS = "SET lock_timeout = '10ms'"
# The connection is known to be free when it is asked for.
_AT_ONCE_SECONDS = 0.05
_MOST_SKIPPED = 64

Pool = ConnectionPool[Connection]


class Asked:
    """A question that is being answered on another connection."""

    def __init__(self, connection: Connection, done: Callable[[], None]) -> None:
        self._connection = connection
        self._done: Callable[[], None] | None = done

    def rows(self) -> list[Any] | None:
        """What was found; None where it was not, as when the connection was lost."""
        try:
            found = self._connection.questions.answer()
        except psycopg.Error:
            self.drop()
            return None
        self._finish()
        return found

    def drop(self) -> None:
        """Give up a question that nobody has taken the answer to, with its connection: the server may be at it yet."""
        if self._done is not None:
            self._connection.close()
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
                asked = Asked(connection, partial(self._give_back, connection))
                connection.questions.look_round(vectors)
                connection.questions.send(sql, values)
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

    def _free(self) -> Connection | None:
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
            return self._pool.getconn(_AT_ONCE_SECONDS)
        return None

    def _let_go(self, asked: Asked | None) -> None:
        if asked is None:
            self._lock.release()
        else:
            asked.drop()

    def _give_back(self, connection: Connection) -> None:
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
