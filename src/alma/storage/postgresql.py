"""PostgreSQL: the store for many machines, with pgvector where the server has it."""

from __future__ import annotations

import hashlib
import logging
import os
import zlib
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache, partial
from typing import Any, Self

from alma import clock
from alma.errors import (
    ConfigurationError,
    ConflictError,
    MissingDependencyError,
    StorageError,
    StorageFullError,
    UnsupportedOperation,
)
from alma.model.governance import Attribution, AuditEvent
from alma.model.query import EVERYTHING, Predicate
from alma.model.record import Record, RecordSpec
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.storage.base import DEFAULT_MODEL, Capability, StorageBackend, Transaction
from alma.storage.chain import statement
from alma.storage.feed import VectorQuestion
from alma.storage.nearest import nearest
from alma.storage.primitives import Query
from alma.storage.sql.postgres_entries import entry
from alma.storage.sql.statements import Dialect
from alma.storage.sql.transaction import SqlTransaction, marked_again

try:
    import psycopg
    from psycopg import sql
    from psycopg_pool import ConnectionPool, PoolTimeout

    from alma.storage.sql.pgvector import register_vectors
    from alma.storage.sql.postgres_aside import NEVER_WAITS, SHOWN, Aside, Asked, seen_in
    from alma.storage.sql.postgres_connection import Connection
    from alma.storage.sql.postgres_migrations import PostgresMigrator, prepare_vector_column
    from alma.storage.sql.postgres_vectors import VectorSearch
    from alma.storage.sql.postgres_wire import listed, register_values
    from alma.storage.sql.postgres_words import Counted, WordSearch, owners_of
except ImportError as exc:  # pragma: no cover - depends on what is installed
    raise MissingDependencyError("psycopg", "postgres") from exc

_log = logging.getLogger("alma.storage.postgresql")

# The server, where it says which it is, the database and one of the store's tables: no other store has all of them.
_IDENTITY = """
    SELECT concat_ws('.',
        CASE WHEN has_function_privilege('pg_control_system()', 'EXECUTE')
             THEN (SELECT system_identifier FROM pg_control_system()) END,
        (SELECT oid FROM pg_database WHERE datname = current_database()),
        'alma_heuristics'::regclass::oid)
"""
_WITHOUT_PGVECTOR = (
    "pgvector is not available on this server: vectors are stored as bytes and compared exactly by the client; "
    "install the extension before the schema is made, CREATE EXTENSION vector, for search inside the server"
)
# An index scan goes on, nearest first or nearly so, until enough records inside the scope are found.
_INDEX_SETTINGS = {"iterative_scan": "relaxed_order", "max_scan_tuples": "100000"}
_LONGEST_INDEXED_VECTOR = 2_000
# Behind SELECT a parameter has no type by itself.
_CASTS = {"details_json": "::jsonb", "resource_ids": "::jsonb", "success": "::boolean", "created_at": "::timestamptz"}
# The extension's type and operators live in public, or wherever an administrator put them.
_SET_PATH = (
    "SELECT set_config('search_path', concat_ws(', ', quote_ident(%s), 'public', (SELECT quote_ident(nspname) "
    "FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'vector')), false)"
)
_BEGIN_WRITING = b"BEGIN"
_BEGIN_READING = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {SHOWN}".encode()
_LONGEST_SCHEMA_BYTES = 63
_COPY_FROM = 16
_LOCK_BUCKETS = 64
_CONNECT_SECONDS = 30.0


class PostgreSQLStorage(StorageBackend):
    """A store in one schema of a PostgreSQL database, through a pool of connections."""

    storage_type = "postgresql"

    def __init__(
        self,
        host: str = "localhost",
        port: int = 5432,
        database: str = "alma_memory",
        user: str = "postgres",
        password: str = "",
        embedding_dim: int = 384,
        pool_size: int = 10,
        schema: str = "public",
        ssl_mode: str = "prefer",
        embedding_model: str = DEFAULT_MODEL,
    ) -> None:
        conninfo = psycopg.conninfo.make_conninfo(
            host=host, port=port, dbname=database, user=user, password=password, sslmode=ssl_mode
        )
        self._open(conninfo, embedding_dim, pool_size, schema, embedding_model)

    @classmethod
    def from_dsn(
        cls,
        dsn: str,
        embedding_dim: int = 384,
        pool_size: int = 10,
        schema: str = "public",
        embedding_model: str = DEFAULT_MODEL,
    ) -> Self:
        """The store behind a connection string or URL."""
        store = cls.__new__(cls)
        store._open(dsn, embedding_dim, pool_size, schema, embedding_model)
        return store

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """The store that a configuration's `postgres` section describes."""
        return cls(**config.get("postgres", {}), embedding_dim=config.get("embedding_dim", 384))

    def _open(self, conninfo: str, embedding_dim: int, pool_size: int, schema: str, embedding_model: str) -> None:
        super().__init__(embedding_dim, embedding_model)
        if not isinstance(schema, str) or not schema or "\x00" in schema:
            raise ConfigurationError(f"schema must be a name, not {schema!r}")
        if len(schema.encode()) > _LONGEST_SCHEMA_BYTES:
            raise ConfigurationError(f"schema {schema!r} is too long: a name has at most {_LONGEST_SCHEMA_BYTES} bytes")
        self.schema = schema
        self._dialect = Dialect("postgresql")
        self._identity: str | None = None
        self._prepare(conninfo)
        self._make_pool = partial(_connected_pool, conninfo, max(1, pool_size), self._configure)
        self._asides: dict[int, Aside] = {}
        self._make_aside = partial(Aside, partial(_pool_aside, conninfo, self._configure_aside))
        # Whoever allows one connection means one.
        self._asks_aside = self._native and pool_size > 1
        with _translated():
            self._pools = {os.getpid(): self._make_pool()}

    @property
    def _pool(self) -> ConnectionPool[Connection]:
        """The pool of this process: a fork inherits connections that its parent goes on speaking over."""
        here = os.getpid()
        if here not in self._pools:
            made = self._make_pool()
            if self._pools.setdefault(here, made) is not made:
                made.close()
        return self._pools[here]

    @property
    def _aside(self) -> Aside | None:
        """The connection of this process for questions aside, if there may be one."""
        if not self._asks_aside:
            return None
        here = os.getpid()
        return self._asides.get(here) or self._asides.setdefault(here, self._make_aside())

    def _prepare(self, conninfo: str) -> None:
        with administration(conninfo, self.schema) as connection:
            PostgresMigrator(connection, self.schema).migrate()
            self._native = prepare_vector_column(connection, self.schema)
        if not self._native:
            _log.warning(_WITHOUT_PGVECTOR)

    def _configure(self, connection: Connection) -> None:
        # A server that was put back to an earlier time numbers its states anew, and is reached by new connections.
        self._dialect.vector_places.forget()
        _set_session(connection, self.schema)
        register_values(connection)
        if self._native:
            register_vectors(connection)
            _tune_index_scans(connection)

    def _configure_aside(self, connection: Connection) -> None:
        self._configure(connection)
        connection.execute(NEVER_WAITS)

    @property
    def capabilities(self) -> frozenset[Capability]:
        always = {Capability.SERVER, Capability.PARTITIONS}
        vectors = {Capability.NATIVE_VECTORS, Capability.VECTOR_INDEX} if self._native else set()
        return frozenset(always | vectors)

    @property
    def notes(self) -> tuple[str, ...]:
        return () if self._native else (_WITHOUT_PGVECTOR,)

    @contextmanager
    def connection(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection of the pool, for administration."""
        with _translated(), self._pool.connection() as connection:
            yield connection

    @contextmanager
    def _begin(self, by: Attribution, *, write: bool) -> Iterator[SqlTransaction]:
        begin = _BEGIN_WRITING if write else _BEGIN_READING
        with _translated(), self._started(begin) as (connection, shown), _ended(connection):
            tx = PostgresTransaction(
                connection,
                shown,
                self._dialect,
                by,
                self.embedding_dim,
                self.embedding_model,
                writable=write,
                native=self._native,
                aside=None if write else self._aside,
            )
            try:
                yield tx
            except BaseException:
                connection.questions.forget_settings()
                raise
            finally:
                tx.let_go()

    @contextmanager
    def _started(self, first: bytes) -> Iterator[tuple[Connection, str | None]]:
        """A connection that has run its first statements, and what these told.

        One that died while it was idle is replaced, nothing lost.
        """
        with self._pool.connection() as connection:
            try:
                told = connection.questions.tell(first)
            except psycopg.OperationalError:
                connection.close()
            else:
                yield connection, told
                return
        self._pool.check()
        with self._pool.connection() as connection:
            yield connection, connection.questions.tell(first)

    @contextmanager
    def reading(self) -> Iterator[tuple[Transaction, str]]:
        if self._transaction_here() is None:
            # Inside, it would take a second connection, and from then on the two take turns, each half as warm.
            self._identify()
        with self.snapshot() as tx:
            shown = tx.shown if isinstance(tx, PostgresTransaction) else None
            yield tx, self.generation() if shown is None else self._generation_of(shown)

    def _generation(self) -> str:
        return self._generation_of(self._told(SHOWN))

    def _generation_of(self, shown: str) -> str:
        return f"{self._identify()}:{shown}"

    def _identify(self) -> str:
        """Which database it is, asked once."""
        if self._identity is None:
            self._identity = self._told(_IDENTITY)
        return self._identity

    def _told(self, question: str) -> str:
        """What a statement by itself, outside of a transaction, says."""
        with _translated(), self._started(question.encode()) as (_, told):
            return str(told)

    def _scrub(self) -> None:
        """Let the server reclaim deleted rows; their bytes are gone when it reuses the space (VACUUM FULL is at once).

        Its write-ahead log and its backups keep what they hold for as long as they are kept.
        """
        with self.connection() as connection:
            for table in self._dialect.names.tables():
                connection.execute(sql.SQL("VACUUM {}").format(sql.Identifier(table)))

    def close(self) -> None:
        aside, pool = self._asides.pop(os.getpid(), None), self._pools.get(os.getpid())
        if aside is not None:
            aside.close()
        if pool is not None:
            pool.close()

    # ------------------------------------------------------------------ administration

    def prepare_vector_index(self, cls: type[Record], model: str | None = None) -> str:
        """Build the HNSW index that `search_vector(exact=False)` uses for a kind and a model; returns its name."""
        if not self._native:
            raise UnsupportedOperation(_WITHOUT_PGVECTOR)
        chosen = model or self.embedding_model
        dims = self.models().get(chosen, self.embedding_dim)
        if dims > _LONGEST_INDEXED_VECTOR:
            raise UnsupportedOperation(
                f"pgvector indexes vectors of at most {_LONGEST_INDEXED_VECTOR:,} dimensions, these have {dims:,}"
            )
        with self.connection() as connection:
            name = _free_index_name(connection, f"idx_{cls.spec.postgres_table}_embedding", chosen)
            connection.execute(
                sql.SQL(
                    "CREATE INDEX IF NOT EXISTS {} ON alma_embeddings USING hnsw ((embedding::vector({})) "
                    "vector_cosine_ops) WHERE memory_type = {} AND model = {}"
                ).format(sql.Identifier(name), sql.Literal(dims), sql.Literal(cls.spec.kind), sql.Literal(chosen))
            )
        return name


def _free_index_name(connection: psycopg.Connection[Any], name: str, model: str) -> str:
    """The name of an index, or another one where an index of another model has it."""
    made = connection.execute(
        "SELECT pg_get_expr(indpred, indrelid) FROM pg_index WHERE indexrelid = to_regclass(%s)",
        (sql.Identifier(name).as_string(connection),),
    ).fetchone()
    # The first half of the condition names the kind.
    if made is None or sql.Literal(model).as_string(connection) in made[0].partition(" AND ")[2]:
        return name
    return f"{name}_{hashlib.sha256(model.encode()).hexdigest()[:8]}"


class PostgresTransaction(SqlTransaction):
    """A transaction on one PostgreSQL connection."""

    def __init__(
        self,
        connection: Connection,
        shown: str | None,
        *args: Any,
        native: bool,
        aside: Aside | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._connection = connection
        self._native = native
        self._aside = aside
        self._asked: list[Asked] = []
        # What was said to be asked for.
        self.expected: list[Query] = []
        # Which state of the database it sees: another after every commit of anybody.
        self.shown = shown
        self.state = None if shown is None else hash(shown)
        self.counted_records: dict[Counted, int] = {}
        self.counted_words: dict[Hashable, dict[str, int]] = {}
        self._searches: dict[tuple[str, int], WordSearch] = {}
        self._vector_searches: dict[tuple[str, str, int], VectorSearch] = {}

    def _translating(self) -> AbstractContextManager[None]:
        return _translated()

    def _together(self, records: int) -> AbstractContextManager[Any]:
        # A pipeline waits for the server once, not after every statement. It cannot COPY, and older drivers lack it.
        wanted = records < _COPY_FROM and psycopg.capabilities.has_pipeline()
        return self._connection.pipeline() if wanted else nullcontext()

    def rows(self, sql: str, values: Mapping[str, Any]) -> list[Any]:
        if not self.writable:
            return self._connection.questions.ask(sql, values)
        # What is written may be under way in a pipeline.
        with self._connection.cursor(binary=True) as cursor:
            return cursor.execute(sql, listed(values)).fetchall()

    def run(self, sql: str, values: Mapping[str, Any]) -> int:
        return self._connection.execute(sql, listed(values)).rowcount

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(sql, rows)

    def _knows_of_none(self, query: Query) -> bool:
        if not self.counted_records or self.writable:
            return False
        known, table = self.counted_records, self.names.table(query.spec)
        # Whatever was counted of what was said to be asked for is known by its predicate.
        if known.get((query.spec.kind, id(query.where))) == 0:
            return True
        # Whose records are asked for is only looked at where somebody is known to have none of the kind.
        some_have_none = any(count == 0 and of == table for (of, _), count in known.items())
        return some_have_none and known.get((table, owners_of(query.where))) == 0

    def expect(self, cls: type[Record], scope: Scope, where: Predicate = EVERYTHING) -> None:
        if not self.writable:
            self.expected.append(Query(cls.spec, self._inside(cls.spec, scope, where)))

    # ------------------------------------------------------------------ writing

    def _reserve(self, spec: RecordSpec, keys: Sequence[str]) -> None:
        """Partitions make the key (id, created_at), so two writers of a new id must meet at a lock instead."""
        if spec.kind == "memory":
            buckets = sorted({hash_bucket(key) for key in keys})
            self.rows(
                "SELECT pg_advisory_xact_lock(%(space)s, b) FROM unnest(%(buckets)s::int[]) AS b",
                {
                    "space": 1,
                    "buckets": buckets,
                },
            )

    def _hold(self, name: str) -> None:
        self.rows(
            "SELECT pg_advisory_xact_lock(%(space)s, %(bucket)s)",
            {"space": 2, "bucket": zlib.crc32(name.encode()) & 0x7FFFFFFF},
        )

    def _append_events(self, events: Iterable[Mapping[str, Any]]) -> None:
        """One event, as most writes leave, takes a single round trip: the server itself adds it to a free chain."""
        every = list(events)
        if len(every) != 1 or not self._append_event(every[0]):
            super()._append_events(every)

    def _append_event(self, values: Mapping[str, Any]) -> bool:
        """Whether there was a free chain for it."""
        statements = self.dialect.kind(AuditEvent.spec)
        plain = {**values, "chain": None, "chain_position": None, "chain_hash": None}
        (encoded,) = statements.rows([AuditEvent.trusted(plain)])
        row = dict(zip(statements.columns, encoded, strict=True))
        # The chain may now be longer than this transaction remembers.
        self._chain_head = None
        return bool(self.rows(_append_statement(statements.columns), {**row, "statement": statement(values)}))

    def _mark(self, spec: RecordSpec, keys: Sequence[str]) -> None:
        """Without asking first which indexes there are, which would take a round trip."""
        outbox, projections = self.names.outbox, self.names.projections
        self.run(
            f"INSERT INTO {outbox} (projection, kind, record_id, marked_at, generation) "
            f"SELECT projection, kind, key, %(moment)s, 1 FROM {projections}, unnest(%(keys)s::text[]) AS key "
            # In order, so that two batches over the same records take their row locks in the same order.
            f"WHERE kind = %(kind)s ORDER BY 1, 3 {marked_again(outbox)}",
            {"kind": spec.kind, "keys": list(dict.fromkeys(keys)), "moment": clock.now()},
        )

    def _insert(self, spec: RecordSpec, records: Sequence[Record]) -> None:
        statements = self.dialect.kind(spec)
        extra = ("search",) if spec.text else ()
        rows = statements.rows(records, *([map(entry, records)] if spec.text else ()))
        if len(records) < _COPY_FROM:
            self.run_many(statements.insert(*extra), rows)
        else:
            self._copy(statements.table, (*extra, *statements.columns), rows)
        self._write_tags(spec, records)

    def _replace(self, spec: RecordSpec, records: Sequence[Record], previous: Sequence[Record]) -> None:
        statements = self.dialect.kind(spec)
        extra = ("search",) if spec.text else ()
        rows = statements.rows(records, *([map(entry, records)] if spec.text else ()))
        keys = [record.key for record in records]
        self.run_many(statements.update(*extra), [(*row, key) for row, key in zip(rows, keys, strict=True)])
        self._rewrite_tags(spec, records, previous)

    def _put_vectors(self, spec: RecordSpec, vectors: Mapping[str, Vector], model: str) -> None:
        columns = ("memory_type", "memory_id", "model", "dims", "embedding")
        rows = [(spec.kind, key, model, len(v), self._stored_vector(v)) for key, v in vectors.items()]
        if len(rows) >= _COPY_FROM:
            self._delete_vectors_in_bulk(spec, list(vectors), model)
            self._copy_binary(columns, rows)
        else:
            self.run_many(
                f"INSERT INTO alma_embeddings ({', '.join(columns)}) VALUES {self.placeholders(5)} "
                "ON CONFLICT (memory_type, memory_id, model, part) DO UPDATE SET embedding = excluded.embedding",
                rows,
            )

    def _among(self, name: str) -> str:
        return f"= ANY(%({name})s)"

    def _listed(self, keys: Sequence[str]) -> list[str]:
        return list(keys)

    def _stored_vector(self, vector: Vector) -> Any:
        return vector if self._native else vector.to_bytes()

    def _delete_vectors_in_bulk(self, spec: RecordSpec, keys: Collection[str], model: str) -> None:
        self.run(
            "DELETE FROM alma_embeddings WHERE memory_type = %(kind)s AND model = %(model)s "
            "AND memory_id = ANY(%(keys)s) AND part = 0",
            {"kind": spec.kind, "model": model, "keys": list(keys)},
        )

    def _copy(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        names = sql.SQL(", ").join(map(sql.Identifier, columns))
        command = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table), names)
        with self._connection.cursor() as cursor, cursor.copy(command) as copy:
            for row in rows:
                copy.write_row(row)

    def _copy_binary(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        command = f"COPY alma_embeddings ({', '.join(columns)}) FROM STDIN (FORMAT BINARY)"
        with self._connection.cursor() as cursor, cursor.copy(command) as copy:
            copy.set_types(["text", "text", "text", "int4", "vector" if self._native else "bytea"])
            for row in rows:
                copy.write_row(row)

    # ------------------------------------------------------------------ searching

    def _matching(
        self, spec: RecordSpec, words: Sequence[str], where: Predicate, limit: int, *, exact: bool
    ) -> list[tuple[str, float]]:
        return self.word_search(spec, where).matching(words, limit, exact=exact)

    def _word_scores(
        self, spec: RecordSpec, words: Sequence[str], keys: Sequence[str], where: Predicate
    ) -> dict[str, float]:
        return self.word_search(spec, where).scores(words, keys)

    def _word_counts(self, spec: RecordSpec, words: Sequence[str], where: Predicate) -> tuple[int, dict[str, int]]:
        return self.word_search(spec, where).counts(words)

    def _size(self, spec: RecordSpec, where: Predicate) -> int:
        return self.word_search(spec, where).records() if spec.text else super()._size(spec, where)

    def has_none(self, cls: type[Record], scope: Scope, where: Predicate = EVERYTHING) -> bool:
        # Of those that have words it is counted anyway, for all kinds at once.
        return bool(cls.spec.text) and not self.size(cls, scope, where)

    def word_search(self, spec: RecordSpec, where: Predicate) -> WordSearch:
        """The search for words among these records, the same one while the same object is asked for."""
        if self.writable:
            # What this transaction wrote counts as well.
            self.counted_records.clear()
            self.counted_words.clear()
            return WordSearch(self, spec, where)
        key = (spec.kind, id(where))
        known = self._searches.get(key)
        if known is None:
            # It holds the predicate, so that no other gets its id.
            known = self._searches[key] = WordSearch(self, spec, where)
        return known

    def _nearest(
        self, spec: RecordSpec, vector: Vector, model: str, where: Predicate, limit: int, *, exact: bool
    ) -> list[tuple[str, float]]:
        if not self._native:
            return nearest(vector, self._stored_vectors(spec, model, where), limit)
        return self._vector_search(spec, model, where).nearest(vector, limit, exact=exact)

    def _vector_search(self, spec: RecordSpec, model: str, where: Predicate) -> VectorSearch:
        """The search among these vectors, the same one while the same object is asked for."""
        if self.writable:
            return VectorSearch(self, spec, model, where)
        key = (spec.kind, model, id(where))
        known = self._vector_searches.get(key)
        if known is None:
            # It holds the predicate, so that no other gets its id.
            known = self._vector_searches[key] = VectorSearch(self, spec, model, where)
        return known

    def expect_nearest(self, question: VectorQuestion) -> None:
        if self._aside is not None and question.limit:
            search = self._vector_search(question.spec, question.model, question.where)
            search.expect(question.vector, question.limit)

    def ask_aside(self, vectors: int, sql: str, values: Mapping[str, Any]) -> Asked | None:
        """Have a question answered meanwhile, by an index that looks for so many vectors in a round."""
        asked = None if self._aside is None else self._aside.ask(vectors, sql, values)
        if asked is not None:
            self._asked.append(asked)
        return asked

    def answer_aside(self, asked: Asked) -> list[Any] | None:
        """What was found aside, without the state in which it was; None if that was not the state seen here."""
        rows = asked.rows()
        if rows is None or self._aside is None:
            return None
        in_time = seen_in(rows) == self.shown
        self._aside.tell(in_time=in_time)
        return [row[:-1] for row in rows] if in_time else None

    def let_go(self) -> None:
        """Give up what was asked aside, as far as nobody has taken the answer, and the searches, which hold this."""
        for asked in self._asked:
            asked.drop()
        self._searches.clear()
        self._vector_searches.clear()

    def look_round(self, vectors: int) -> None:
        """How many vectors a round of the index looks for, until another number is asked for."""
        self._connection.questions.look_round(vectors)

    def _stored_vectors(self, spec: RecordSpec, model: str, where: Predicate) -> Iterator[tuple[str, bytes]]:
        statements = self.dialect.kind(spec)
        condition, values = statements.condition(where)
        key = f"{statements.table}.{spec.key}"
        with self._connection.cursor(name="alma_vectors", binary=True) as cursor:
            cursor.itersize = 4096
            command = (
                f"SELECT {key}, alma_embeddings.embedding FROM {statements.table} JOIN alma_embeddings "
                f"ON alma_embeddings.memory_id = {key} AND alma_embeddings.memory_type = %(kind)s "
                f"AND alma_embeddings.model = %(model)s WHERE {condition}"
            )
            yield from cursor.execute(command, listed({**values, "kind": spec.kind, "model": model}))


@cache
def _append_statement(columns: tuple[str, ...]) -> str:
    """What `alma.storage.chain.linked` does, said in SQL."""
    given = [name for name in columns if not name.startswith("chain")]
    return (
        "WITH head AS (SELECT chain, length, hash FROM alma_audit_chains "
        "ORDER BY chain LIMIT 1 FOR UPDATE SKIP LOCKED), "
        "following AS (SELECT chain, length + 1 AS position, encode(sha256(convert_to("
        "concat_ws(chr(10), hash, chain, length + 1, %(statement)s::text), 'UTF8')), 'hex') AS hash FROM head), "
        "moved AS (UPDATE alma_audit_chains AS old SET length = following.position, hash = following.hash "
        "FROM following WHERE old.chain = following.chain) "
        f"INSERT INTO audit_log ({', '.join(given)}, chain, chain_position, chain_hash) "
        f"SELECT {', '.join(f'%({name})s' + _CASTS.get(name, '::text') for name in given)}, chain, position, hash "
        "FROM following RETURNING chain"
    )


def _connected_pool(conninfo: str, most: int, configure: Callable[[Connection], None]) -> ConnectionPool[Connection]:
    """A pool with its first connection; whoever asked before there is one would make it open a second."""
    pool = ConnectionPool(
        conninfo,
        min_size=1,
        max_size=most,
        connection_class=Connection,
        kwargs={"autocommit": True},
        configure=configure,
        open=True,
        timeout=_CONNECT_SECONDS,
        name="alma",
    )
    pool.wait(_CONNECT_SECONDS)
    return pool


def _pool_aside(conninfo: str, configure: Callable[[Connection], None]) -> ConnectionPool[Connection]:
    """A pool of one connection, which is made in the background; nobody waits for it."""
    return ConnectionPool(
        conninfo,
        min_size=1,
        max_size=1,
        connection_class=Connection,
        kwargs={"autocommit": True},
        configure=configure,
        open=True,
        num_workers=1,
        name="alma aside",
    )


@contextmanager
def administration(conninfo: str, schema: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection of its own, outside every pool, for changing a schema."""
    with _translated(), psycopg.connect(_readable(conninfo), autocommit=True) as connection:
        _set_session(connection, schema)
        yield connection


def _set_session(connection: psycopg.Connection[Any], schema: str) -> None:
    connection.execute(_SET_PATH, [schema])
    connection.execute("SET TIME ZONE 'UTC'")
    # Every statement is short: compiling one, or starting a process to share it with, takes longer than to run it.
    connection.execute("SET jit = off")
    connection.execute("SET max_parallel_workers_per_gather = 0")


def _tune_index_scans(connection: psycopg.Connection[Any]) -> None:
    for name, value in _INDEX_SETTINGS.items():
        # Older versions of the extension lack some of these, and then do as well as they can.
        with suppress(psycopg.errors.UndefinedObject, psycopg.errors.InvalidName):
            connection.execute(f"SET hnsw.{name} = {value}".encode())


@contextmanager
def _ended(connection: Connection) -> Iterator[None]:
    """Commit what was begun, or roll it back; the pool throws a broken connection away."""
    try:
        yield
        connection.questions.tell(b"COMMIT")
    except BaseException:
        if not connection.closed and not connection.broken:
            connection.execute("ROLLBACK")
        raise


def _readable(dsn: str) -> str:
    """The address, if it can be taken apart; the driver's complaints would quote the password in it."""
    try:
        parts = psycopg.conninfo.conninfo_to_dict(dsn)
    except psycopg.Error:
        raise ConfigurationError(_UNREADABLE) from None
    if "@" in str(parts.get("host", "")) or not str(parts.get("port", "") or "0").replace(",", "0").isdigit():
        raise ConfigurationError(_UNREADABLE)
    return dsn


_UNREADABLE = (
    "the address of the PostgreSQL database cannot be read: it must be like postgresql://user:password@host:5432/database,"
    " with signs such as % @ / ? # [ in the password written as %25 %40 %2F %3F %23 %5B, and only parameters that"
    " PostgreSQL knows behind a ?"
)


@contextmanager
def _translated() -> Iterator[None]:
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
    except psycopg.Error as exc:
        raise StorageError(f"PostgreSQL: {_first_line(exc)}") from exc


def _first_line(exc: psycopg.Error) -> str:
    return str(exc).strip().splitlines()[0] if str(exc).strip() else type(exc).__name__


def hash_bucket(key: str) -> int:
    """Which of a few locks an id belongs to: the same in every process, and few, as locks are a shared resource."""
    return sum(key.encode()) % _LOCK_BUCKETS
