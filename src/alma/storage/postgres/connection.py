"""A connection to PostgreSQL that runs statements without a cursor and prepares those that are repeated."""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any

import psycopg
from psycopg import abc, generators
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult

from alma.lazy import lazy_regex
from alma.storage.postgres.types import listed

# A server keeps what it plans, for each connection.
_MOST_PLANNED = 100
# What it planned for few records it keeps until it has looked through them again, which may take it a minute; where
# there are many by then, every question takes as long as it takes to go through all of them.
_SIZE = (
    b"SELECT coalesce((SELECT sum(pg_relation_size(relid)) FROM pg_partition_tree(v)), pg_relation_size(v)) "
    b"FROM to_regclass('alma_embeddings') AS v"
)
_FEW_BYTES, _GROWN = 2**20, 2
_LOOKS_EVERY_SECONDS = 1.0
_PLACEHOLDER = lazy_regex(r"%\((\w+)\)s|%%")
_ANSWERED = (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)

_Known = tuple[str, tuple[int, ...]]
"""A statement and the types of its parameters."""


class Connection(psycopg.Connection[Any]):
    """A connection of the driver with a statement runner."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.runner = StatementRunner(self)
        # Whether it was seen to lead to the store that is meant.
        self.is_checked = False

    def _deallocate(self, name: bytes | None) -> abc.PQGen[None]:
        # The driver has all statements forgotten when something it had prepared may be out of date, ours among them.
        if name is None:
            self.runner.forget_prepared()
        yield from super()._deallocate(name)


class StatementRunner:
    """Questions to a connection without a cursor; only one thread may ask at a time.

    A cursor reads a long statement anew each time, and has it planned anew until it was asked five times. Here it is
    read once, and what is asked a second time is prepared.
    """

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._pgconn = connection.pgconn
        # The names of prepared statements; None for those that ran once.
        self._known: OrderedDict[_Known, bytes | None] = OrderedDict()
        self._made = 0
        self._vectors: int | None = None
        # For how many bytes of vectors was planned, and when that was last looked at.
        self._planned_for: int | None = None
        self._looked_at = 0.0

    def fetch(self, sql: str, values: Mapping[str, Any]) -> list[Any]:
        """Run a statement; returns its rows."""
        self._put(sql, values)
        result, loaded = self._result(), self._values
        loaded.set_pgresult(result)
        rows = loaded.load_rows(0, result.ntuples, tuple)
        loaded.set_pgresult(None)
        return rows

    def execute(self, statements: bytes) -> str | None:
        """Run statements without parameters; returns the first value of the last one, as text."""
        return self.values(statements)[-1]

    def values(self, statements: bytes) -> list[str | None]:
        """Run statements without parameters; returns the first value of each, as text."""
        self._pgconn.send_query(statements)
        values = (result.get_value(0, 0) if result.ntuples else None for result in self._results())
        return [None if value is None else value.decode(self._encoding) for value in values]

    def set_ef_search(self, vectors: int) -> None:
        """Set how many vectors a round of the HNSW index looks for, unless it is set already."""
        if self._vectors != vectors:
            self.execute(b"SET hnsw.ef_search = %d" % vectors)
            self._vectors = vectors

    def forget_settings(self) -> None:
        """Forget the settings of a transaction, which end with it."""
        self._vectors = None

    def forget_prepared(self) -> None:
        """The server has forgotten which statements were prepared."""
        self._known = OrderedDict.fromkeys(self._known)

    @cached_property
    def _values(self) -> abc.Transformer:
        # Made when it is first needed: what is registered before that counts.
        return Transformer(self._connection)

    @cached_property
    def _encoding(self) -> str:
        return self._connection.info.encoding

    def _put(self, sql: str, values: Mapping[str, Any]) -> None:
        """Send a statement, prepared if it ran before."""
        command, names = _numbered(sql)
        given, values = self._values, listed(values)
        dumped = given.dump_sequence([values[name] for name in names], [PyFormat.AUTO] * len(names))
        types = tuple(given.types or ())
        statement = self._prepared((command, types))
        if statement is None:
            self._pgconn.send_query_params(command.encode(self._encoding), dumped, types, given.formats, Format.BINARY)
        else:
            self._pgconn.send_query_prepared(statement, dumped, given.formats, Format.BINARY)

    def _prepared(self, known: _Known) -> bytes | None:
        """The name of a repeated statement, which the server has prepared or does now."""
        if known not in self._known:
            self._make_room()
            self._known[known] = None
            return None
        self._replan_after_growth()
        self._known.move_to_end(known)
        name = self._known[known]
        if name is None:
            self._made += 1
            name = b"alma_%d" % self._made
            self._pgconn.send_prepare(name, known[0].encode(self._encoding), known[1])
            self._result()
            self._known[known] = name
        return name

    def _replan_after_growth(self) -> None:
        """Discard query plans after the tables have grown much."""
        moment = time.monotonic()
        if self._planned_for is not None and moment - self._looked_at < _LOOKS_EVERY_SECONDS:
            return
        self._looked_at = moment
        size = int(self.execute(_SIZE) or 0)
        if self._planned_for is None:
            self._planned_for = size
        elif size > _GROWN * max(self._planned_for, _FEW_BYTES):
            self._planned_for = size
            self.execute(b"DISCARD PLANS")

    def _make_room(self) -> None:
        while len(self._known) >= _MOST_PLANNED:
            _, name = self._known.popitem(last=False)
            if name is not None:
                self.execute(b"DEALLOCATE " + name)

    def _result(self) -> PGresult:
        """The last result of what was sent; of an error, the error."""
        return self._results()[-1]

    def _results(self) -> list[PGresult]:
        results: list[PGresult] = self._connection.wait(generators.execute(self._pgconn))
        for result in results:
            if result.status not in _ANSWERED:
                raise error_from_result(result, encoding=self._encoding)
        if not results:
            raise psycopg.OperationalError("the server gave no answer")
        return results


@lru_cache(maxsize=256)
def _numbered(sql: str) -> tuple[str, tuple[str, ...]]:
    """A statement with its parameters numbered, as the server wants them, and their names in this order."""
    names: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        name = match[1]
        return "%" if name is None else f"${names.setdefault(name, len(names) + 1)}"

    return _PLACEHOLDER.sub(number, sql), tuple(names)
