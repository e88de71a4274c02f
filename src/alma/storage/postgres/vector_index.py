"""HNSW indexes of pgvector: built while others write, by command or where a kind has many vectors of a model."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql
from psycopg.pq import ExecStatus

from alma.errors import ConfigurationError, StorageError, UnsupportedOperation
from alma.model.kinds import KINDS
from alma.model.record import RecordSpec
from alma.storage.postgres.connection import Connection

_log = logging.getLogger("alma.storage.postgresql")

LONGEST_INDEXED_VECTOR = 2_000
VECTORS = "alma_embeddings"
_LOOK_EVERY_SECONDS = 60.0
# A process that writes a large part of the number that an index needs checks at once.
_LOOK_AFTER_SHARE = 0.1
_POLL_SECONDS = 0.2
_STEP_SECONDS = 0.05
_LOCK_SPACE = 3
_MEMORY_MB = (64, 1024)
# What the graph takes beside the numbers of a vector.
_GRAPH_BYTES = 400
# Which kind and model an index is for is in its condition; of a partitioned table, the index of the whole.
_FOR_PAIR = (
    "pg_get_expr(i.indpred, i.indrelid) = "
    + "format('((memory_type = %%L::text) AND (model = %%L::text))', {0}::text, {1}::text)"
)
_INDEXES = f"""
    SELECT c.relname, i.indisvalid, coalesce((SELECT sum(pg_relation_size(relid)) FROM pg_partition_tree(c.oid)),
        pg_relation_size(c.oid))
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
    WHERE i.indrelid = to_regclass(%(table)s) AND a.amname = 'hnsw' AND {_FOR_PAIR.format("%(kind)s", "%(model)s")}
    ORDER BY i.indisvalid DESC, c.relname
"""
_LEAVES = "SELECT relid::regclass::text FROM pg_partition_tree(to_regclass(%s)) WHERE isleaf ORDER BY 1"
_IS_PARTITIONED = "SELECT relkind = 'p' FROM pg_class WHERE oid = to_regclass(%s)"
_PAIRS = f"SELECT memory_type, model, count(*) FROM {VECTORS} GROUP BY memory_type, model ORDER BY memory_type, model"
_PROGRESS = """
    SELECT tuples_done, tuples_total FROM pg_stat_progress_create_index
    WHERE relid = to_regclass(%s) OR relid IN (SELECT relid FROM pg_partition_tree(to_regclass(%s)))
"""


@dataclass(frozen=True, slots=True)
class VectorIndexState:
    """The vectors that a model made of a kind's records, and their index.

    `state` is ready, building, interrupted (a build ended early, and the next one starts anew), none, or too long where
    the vectors have more dimensions than pgvector indexes.
    """

    kind: str
    model: str
    dims: int
    vectors: int
    state: str
    index: str | None = None
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class VectorsOf:
    """The vectors that a model made of a kind's records."""

    spec: RecordSpec
    model: str
    dims: int

    def require_short(self) -> None:
        if self.dims > LONGEST_INDEXED_VECTOR:
            raise UnsupportedOperation(
                f"pgvector indexes vectors of at most {LONGEST_INDEXED_VECTOR:,} dimensions, these have {self.dims:,}"
            )

    def creation(self, name: str, table: sql.Composable, how: str = "") -> sql.Composed:
        """The statement that creates an index of these in a table."""
        return sql.SQL(
            f"CREATE INDEX {how} IF NOT EXISTS {{}} ON {{}} USING hnsw ((embedding::vector({{}})) vector_cosine_ops) "
            "WHERE memory_type = {} AND model = {}"
        ).format(
            sql.Identifier(name),
            table,
            sql.Literal(self.dims),
            sql.Literal(self.spec.kind),
            sql.Literal(self.model),
        )


Run = Callable[[sql.Composed], None]
"""Runs one statement that may take long, outside of a transaction."""


def build(connection: Connection, of: VectorsOf, table: str = VECTORS, run: Run | None = None) -> str:
    """Build the index, unless it is there; writers go on meanwhile. Returns its name."""
    of.require_short()
    run = run or _runner(connection)
    with _building(connection, of, table) as name:
        for found, valid, _ in _indexes(connection, of, table):
            if valid:
                return str(found)
            _drop(connection, str(found), table)
        with _settings(connection, of):
            if _is_partitioned(connection, table):
                _build_in_parts(connection, of, name, table, run)
            else:
                run(of.creation(name, sql.Identifier(table), "CONCURRENTLY"))
    return name


def _runner(connection: Connection) -> Run:
    def run(statement: sql.Composed) -> None:
        connection.execute(statement)

    return run


def drop(connection: Connection, of: VectorsOf, table: str = VECTORS) -> bool:
    """Drop the index; returns whether there was one."""
    with _building(connection, of, table):
        found = _indexes(connection, of, table)
        for name, _, _ in found:
            _drop(connection, str(name), table)
    return bool(found)


def states(connection: Connection, lengths: dict[str, int]) -> list[VectorIndexState]:
    """Every kind and model that has vectors, with its index."""
    specs = {cls.spec.kind: cls.spec for cls in KINDS}
    counted = connection.execute(_PAIRS).fetchall()
    return [
        _state(connection, VectorsOf(specs[kind], model, lengths[model]), vectors)
        for kind, model, vectors in counted
        if kind in specs
    ]


def _state(connection: Connection, of: VectorsOf, vectors: int) -> VectorIndexState:
    said = (of.spec.kind, of.model, of.dims, vectors)
    if of.dims > LONGEST_INDEXED_VECTOR:
        return VectorIndexState(*said, "too long")
    found = _indexes(connection, of, VECTORS)
    if not found:
        return VectorIndexState(*said, "none")
    name, valid, size = found[0]
    if valid:
        return VectorIndexState(*said, "ready", name, int(size))
    held = connection.execute(
        "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = %s AND objid = %s::bigint "
        "AND objsubid = 2 AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))",
        (_LOCK_SPACE, _lock_of(of, VECTORS)),
    ).fetchone()
    return VectorIndexState(*said, "building" if held and held[0] else "interrupted", name, int(size))


def progress(connection: psycopg.Connection[Any], table: str = VECTORS) -> tuple[int, int] | None:
    """How many vectors of how many are in the index that is being built, None while that is not known."""
    row = connection.execute(_PROGRESS, (table, table)).fetchone()
    return None if row is None or not row[1] else (int(row[0]), int(row[1]))


def indexed(connection: Connection, lengths: dict[str, int]) -> list[VectorsOf]:
    """The vectors that have an index."""
    specs = {cls.spec.kind: cls.spec for cls in KINDS}
    return [VectorsOf(specs[s.kind], s.model, s.dims) for s in states(connection, lengths) if s.index is not None]


def free_index_name(connection: Connection, of: VectorsOf, table: str = VECTORS) -> str:
    """The name of the index of these vectors, which is another one where an index of another model has it."""
    name = f"idx_{of.spec.postgres_table}_embedding"
    taken = connection.execute(
        f"SELECT NOT coalesce({_FOR_PAIR.format('%s', '%s')}, false) FROM pg_index i "
        "WHERE i.indexrelid = to_regclass(%s)",
        (of.spec.kind, of.model, sql.Identifier(name).as_string(connection)),
    ).fetchone()
    if table != VECTORS or (taken is not None and taken[0]):
        told = of.model if table == VECTORS else f"{of.model} in {table}"
        return f"{name}_{hashlib.sha256(told.encode()).hexdigest()[:8]}"
    return name


def _indexes(connection: Connection, of: VectorsOf, table: str) -> Sequence[tuple[Any, ...]]:
    values = {"table": table, "kind": of.spec.kind, "model": of.model}
    return connection.execute(_INDEXES.encode(), values).fetchall()


@contextmanager
def _building(connection: Connection, of: VectorsOf, table: str) -> Iterator[str]:
    """One process at a time changes an index; yields its name."""
    lock = (_LOCK_SPACE, _lock_of(of, table))
    # A statement that waits for the lock would have a snapshot, for whose end the build waits in turn.
    while not _first(connection.execute("SELECT pg_try_advisory_lock(%s, %s)", lock)):
        time.sleep(_POLL_SECONDS)
    try:
        yield free_index_name(connection, of, table)
    finally:
        if not connection.closed:
            connection.execute("SELECT pg_advisory_unlock(%s, %s)", lock)


def _lock_of(of: VectorsOf, table: str) -> int:
    said = f"{of.spec.kind}\n{of.model}\n{table}"
    return int.from_bytes(hashlib.sha256(said.encode()).digest()[:4], "big") & 0x7FFFFFFF


def _drop(connection: Connection, name: str, table: str) -> None:
    how = "" if _is_partitioned(connection, table) else "CONCURRENTLY"
    connection.execute(sql.SQL(f"DROP INDEX {how} IF EXISTS {{}}").format(sql.Identifier(name)))


def _build_in_parts(connection: Connection, of: VectorsOf, name: str, table: str, run: Run) -> None:
    """The index of a partitioned table: valid when those of all partitions are attached."""
    connection.execute(of.creation(name, sql.SQL("ONLY {}").format(sql.Identifier(table))))
    for (leaf,) in connection.execute(_LEAVES, (table,)).fetchall():
        part = f"{name}_{hashlib.sha256(str(leaf).encode()).hexdigest()[:8]}"
        known = connection.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", (part,))
        if (found := known.fetchone()) is not None and not found[0]:
            connection.execute(sql.SQL("DROP INDEX CONCURRENTLY {}").format(sql.Identifier(part)))
        run(of.creation(part, sql.SQL(leaf), "CONCURRENTLY"))
        connection.execute(
            sql.SQL("ALTER INDEX {} ATTACH PARTITION {}").format(sql.Identifier(name), sql.Identifier(part))
        )


def _is_partitioned(connection: Connection, table: str) -> bool:
    return bool(_first(connection.execute(_IS_PARTITIONED, (table,))))


@contextmanager
def _settings(connection: Connection, of: VectorsOf) -> Iterator[None]:
    """A build takes its time, and is many times faster where its graph fits into memory."""
    vectors = int(_first(connection.execute(_COUNT_ALL, (of.spec.kind, of.model))) or 0)
    least, most = _MEMORY_MB
    memory = min(max(vectors * (4 * of.dims + _GRAPH_BYTES) * 5 // 4 // 2**20, least), most)
    # Workers would share memory that a container has little of.
    settings = {"maintenance_work_mem": f"{memory}MB", "max_parallel_maintenance_workers": 0, "statement_timeout": 0}
    for name, value in settings.items():
        connection.execute(sql.SQL("SET {} = {}").format(sql.Identifier(name), sql.Literal(value)))
    try:
        yield
    finally:
        for name in settings if not connection.closed else ():
            connection.execute(sql.SQL("RESET {}").format(sql.Identifier(name)))


_COUNT_ALL = f"SELECT count(*) FROM {VECTORS} WHERE memory_type = %s AND model = %s"
_COUNT_SOME = f"SELECT count(*) FROM (SELECT FROM {VECTORS} WHERE memory_type = %s AND model = %s LIMIT %s) AS few"


def _first(cursor: psycopg.Cursor[Any]) -> Any:
    row = cursor.fetchone()
    return None if row is None else row[0]


class IndexKeeper:
    """Builds the index of vectors that have become many, in a thread of its own.

    The server builds; when the store is closed meanwhile it goes on, and an index that was begun is completed.
    """

    def __init__(self, connect: Callable[[], AbstractContextManager[Connection]], above: int) -> None:
        if not isinstance(above, int) or isinstance(above, bool) or above < 0:
            raise ConfigurationError(f"vector_index_above must be a number of vectors, 0 for never, not {above!r}")
        self._connect = connect
        self._above = above
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()
        self._looked_at = time.monotonic()
        self._written = 0

    def note(self, vectors: int) -> None:
        """Count the vectors that a transaction has written, and check from time to time whether an index is due."""
        if not self._above or not vectors:
            return
        with self._lock:
            self._written += vectors
            if self._thread is None and self._is_due():
                self._thread = threading.Thread(target=self._look_while_due, name="alma-vector-index", daemon=True)
                self._thread.start()

    def _is_due(self) -> bool:
        moment = time.monotonic()
        many = self._written >= max(1, self._above * _LOOK_AFTER_SHARE)
        if self._closing.is_set() or not (many or (self._written and moment - self._looked_at > _LOOK_EVERY_SECONDS)):
            return False
        self._written, self._looked_at = 0, moment
        return True

    def close(self) -> None:
        """Stop looking; the server completes what it builds."""
        self._closing.set()
        thread = self._thread
        if thread is not None:
            thread.join(timeout=5 * _POLL_SECONDS)

    def _look_while_due(self) -> None:
        while True:
            self._look()
            with self._lock:
                if not self._is_due():
                    self._thread = None
                    return

    def _look(self) -> None:
        try:
            with self._connect() as connection:
                for of in _grown(connection, self._above):
                    _log.info("building an index of vectors", extra={"kind": of.spec.kind, "model": of.model})
                    build(connection, of, run=lambda statement: self._run(connection, statement))
        except _LeftToServer:
            _log.info("the server completes the index of vectors by itself")
        except (StorageError, psycopg.Error):
            _log.warning("an index of vectors could not be built; searches stay exact", exc_info=True)

    def _run(self, connection: Connection, statement: sql.Composed) -> None:
        """Send a statement and wait for its end, or for that of the store."""
        pgconn = connection.pgconn
        pgconn.send_query(statement.as_bytes(connection))
        while pgconn.is_busy():
            if self._closing.is_set():
                # A server notices that its client has gone when it has done what it was told.
                connection.close()
                raise _LeftToServer
            time.sleep(_STEP_SECONDS)
            pgconn.consume_input()
        failed = None
        while (result := pgconn.get_result()) is not None:
            if result.status == ExecStatus.FATAL_ERROR:
                failed = psycopg.errors.error_from_result(result)
        if failed is not None:
            raise failed


class _LeftToServer(Exception):
    """The store was closed while the server was building."""


def _grown(connection: Connection, above: int) -> list[VectorsOf]:
    """The kinds and models with more vectors than this that could have an index and have none."""
    lengths = dict(connection.execute("SELECT model, dims FROM alma_embedding_models").fetchall())
    pairs = [
        VectorsOf(cls.spec, model, dims)
        for model, dims in lengths.items()
        if dims <= LONGEST_INDEXED_VECTOR
        for cls in KINDS
        if cls.spec.embeds
    ]
    return [of for of in pairs if not _has_valid(connection, of) and _has_more(connection, of, above)]


def _has_valid(connection: Connection, of: VectorsOf) -> bool:
    return any(valid for _, valid, _ in _indexes(connection, of, VECTORS))


def _has_more(connection: Connection, of: VectorsOf, above: int) -> bool:
    return bool(_first(connection.execute(_COUNT_SOME, (of.spec.kind, of.model, above + 1))) > above)
