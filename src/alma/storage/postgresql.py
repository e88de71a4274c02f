"""PostgreSQL: the store for many machines, with pgvector where the server has it."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Self

from alma.errors import (
    ConfigurationError,
    MissingDependencyError,
    StorageError,
    UnknownOutcomeError,
    UnsupportedOperation,
)
from alma.model.record import Record
from alma.storage.base import DEFAULT_MODEL, Capability, StorageBackend, Transaction
from alma.storage.records import USUAL_DIMENSIONS, described
from alma.storage.sql.statements import Dialect, StoreCache

try:
    import psycopg
    from psycopg import sql
    from psycopg_pool import ConnectionPool

    from alma.storage.postgres import legacy, vector_index
    from alma.storage.postgres.backend import PostgresBackend
    from alma.storage.postgres.connection import Connection
    from alma.storage.postgres.fulltext import make_missing
    from alma.storage.postgres.hosts import hosts_of
    from alma.storage.postgres.migrations import PostgresMigrator, prepare_vector_column
    from alma.storage.postgres.pools import (
        ProcessPool,
        address,
        connected_pool,
        ended,
        pool_of,
        set_session,
        translated,
        tune_index_scans,
    )
    from alma.storage.postgres.pools import administration as administration
    from alma.storage.postgres.sql_writes import index_due_words
    from alma.storage.postgres.standby import WRITTEN, Standby, written_on
    from alma.storage.postgres.types import register_values, register_vectors
    from alma.storage.postgres.vector_index import IndexKeeper, VectorIndexState, VectorsOf
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
# Which server it is and which transactions a moment can see: every commit anywhere on the server moves that.
SHOWN = "SELECT concat_ws(' ', extract(epoch FROM pg_postmaster_start_time()), pg_current_snapshot())"
_WITHOUT_PGVECTOR = (
    "pgvector is not available on this server: vectors are stored as bytes and compared exactly by the client; "
    "install the extension before the schema is made, CREATE EXTENSION vector, for search inside the server"
)
VECTOR_INDEX_ABOVE = 20_000
_BEGIN_WRITING = b"BEGIN"
_BEGIN_READING = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {SHOWN}".encode()
_LONGEST_SCHEMA_BYTES = 63
_LOOKS_FOR_WORDS_EVERY_SECONDS = 60.0


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
        vector_index_above: int = VECTOR_INDEX_ABOVE,
        read_url: str | None = None,
    ) -> None:
        hosts = hosts_of(host, port)
        conninfo = psycopg.conninfo.make_conninfo(
            host=",".join(name for name, _ in hosts),
            port=",".join(str(number) for _, number in hosts),
            dbname=database,
            user=user,
            password=password,
            sslmode=ssl_mode,
        )
        self._open(conninfo, embedding_dim, pool_size, schema, embedding_model, vector_index_above, read_url)

    @classmethod
    def from_dsn(
        cls,
        dsn: str,
        embedding_dim: int = 384,
        pool_size: int = 10,
        schema: str = "public",
        embedding_model: str = DEFAULT_MODEL,
        vector_index_above: int = VECTOR_INDEX_ABOVE,
        read_url: str | None = None,
    ) -> Self:
        """The store behind a connection string or URL; with several hosts, on whichever is the primary.

        `read_url` is a standby of it, which is read while it is up to date. Where a kind has more vectors of a model
        than `vector_index_above`, an HNSW index is built in the background.
        """
        store = cls.__new__(cls)
        store._open(dsn, embedding_dim, pool_size, schema, embedding_model, vector_index_above, read_url)
        return store

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """The store that a configuration's `postgres` section describes."""
        settings = described(config)
        return cls(**settings.postgres.options(), embedding_dim=settings.embedding_dim or USUAL_DIMENSIONS)

    def _open(
        self,
        conninfo: str,
        embedding_dim: int,
        pool_size: int,
        schema: str,
        embedding_model: str,
        vector_index_above: int,
        read_url: str | None,
    ) -> None:
        super().__init__(embedding_dim, embedding_model)
        if not isinstance(schema, str) or not schema or "\x00" in schema:
            raise ConfigurationError(f"schema must be a name, not {schema!r}")
        if len(schema.encode()) > _LONGEST_SCHEMA_BYTES:
            raise ConfigurationError(f"schema {schema!r} is too long: a name has at most {_LONGEST_SCHEMA_BYTES} bytes")
        self.schema = schema
        conninfo, read_from = (
            address(conninfo),
            None if read_url is None else address(read_url, "the standby, read_url,"),
        )
        self._dialect = Dialect("postgresql")
        self._cache = StoreCache("postgresql")
        self._identity: str | None = None
        self._looked_for_words_at = time.monotonic()
        self._keeper = IndexKeeper(partial(administration, conninfo, schema), vector_index_above)
        self._prepare(conninfo)
        most = max(1, pool_size)
        with translated():
            self._pools = ProcessPool(partial(connected_pool, conninfo, most, self._configure))
        self._standby = None if read_from is None else self._standby_at(read_from, most)

    def _standby_at(self, conninfo: str, most: int) -> Standby:
        pool = ProcessPool(partial(pool_of, conninfo, most, self._configure))
        standby = Standby(pool, self._identify, _IDENTITY)
        with self._pool.connection() as connection:
            standby.wrote(written_on(connection))
        return standby

    @property
    def _pool(self) -> ConnectionPool[Connection]:
        return self._pools.here

    def _prepare(self, conninfo: str) -> None:
        with administration(conninfo, self.schema) as connection:
            PostgresMigrator(connection, self.schema, adopt=partial(self._adopt, connection)).migrate()
            make_missing(connection, self.schema)
            self._native = prepare_vector_column(connection, self.schema)
            index_due_words(connection)
        if not self._native:
            _log.warning(_WITHOUT_PGVECTOR)

    def _adopt(self, connection: Connection, older: str) -> None:
        """Take over what alma-memory left in another schema, in the transaction of the migration."""
        self._native = prepare_vector_column(connection, self.schema)
        self._configure(connection)
        legacy.adopt(connection, self._backend_on(connection, None, write=True), older)

    def _backend_on(self, connection: Connection, shown: str | None, *, write: bool) -> PostgresBackend:
        return PostgresBackend(
            connection,
            shown,
            self._dialect,
            self._cache,
            self.embedding_dim,
            self.embedding_model,
            writable=write,
            native=self._native,
        )

    def _configure(self, connection: Connection) -> None:
        # A server that was restored to an earlier time restarts its numbering, and is reached by new connections.
        self._cache.vector_places.forget()
        set_session(connection, self.schema)
        register_values(connection)
        if self._native:
            register_vectors(connection)
            tune_index_scans(connection)

    @property
    def capabilities(self) -> frozenset[Capability]:
        always = {Capability.SERVER, Capability.PARTITIONS}
        vectors = {Capability.NATIVE_VECTORS, Capability.VECTOR_INDEX} if self._native else set()
        return frozenset(always | vectors)

    @property
    def notes(self) -> tuple[str, ...]:
        standby = () if self._standby is None else self._standby.notes
        return standby if self._native else (_WITHOUT_PGVECTOR, *standby)

    @contextmanager
    def connection(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection of the pool, for administration."""
        with translated(), self._pool.connection() as connection:
            try:
                yield connection
            finally:
                if self._standby is not None:
                    self._standby.wrote(written_on(connection))

    @contextmanager
    def _begin(self, *, write: bool) -> Iterator[PostgresBackend]:
        with translated(), self._opened(write=write) as (connection, shown):
            backend = self._backend_on(connection, shown, write=write)
            try:
                yield backend
            except BaseException:
                connection.runner.forget_settings()
                raise
            finally:
                backend.close()
        if write:
            self._keeper.note(backend.vectors_written if self._native else 0)
            self._look_for_due_words()

    @contextmanager
    def _opened(self, *, write: bool) -> Iterator[tuple[Connection, str | None]]:
        """A connection inside a transaction, which is ended behind it; what reads may run on the standby."""
        if write:
            with self._started(_BEGIN_WRITING) as (connection, _), self._committed(connection):
                yield connection, None
            return
        with self._snapshot_on_standby() as taken:
            if taken is not None:
                with ended(taken[0]):
                    yield taken
                return
        with self._started(_BEGIN_READING) as (connection, shown), ended(connection):
            yield connection, shown

    @contextmanager
    def _snapshot_on_standby(self) -> Iterator[tuple[Connection, str] | None]:
        if self._standby is None:
            yield None
            return
        with self._standby.snapshot(SHOWN) as taken:
            yield taken

    @contextmanager
    def _committed(self, connection: Connection) -> Iterator[None]:
        if self._standby is None:
            with ended(connection):
                yield
            return
        try:
            with ended(connection, b"COMMIT; " + WRITTEN.encode(), self._standby.wrote):
                yield
        except UnknownOutcomeError:
            self._standby.unsure()
            raise

    def _look_for_due_words(self) -> None:
        """Now and then index what SQL wrote meanwhile."""
        moment = time.monotonic()
        if moment - self._looked_for_words_at < _LOOKS_FOR_WORDS_EVERY_SECONDS:
            return
        self._looked_for_words_at = moment
        try:
            with self.connection() as connection:
                index_due_words(connection)
        except StorageError:
            _log.warning("words of records that SQL wrote could not be indexed", exc_info=True)

    @contextmanager
    def _started(self, first: bytes) -> Iterator[tuple[Connection, str | None]]:
        """A connection that has run its first statements, and their first value.

        One that died while it was idle is replaced, nothing lost.
        """
        with self._pool.connection() as connection:
            try:
                first_value = connection.runner.execute(first)
            except psycopg.OperationalError:
                connection.close()
            else:
                yield connection, first_value
                return
        self._pool.check()
        with self._pool.connection() as connection:
            yield connection, connection.runner.execute(first)

    @contextmanager
    def reading(self) -> Iterator[tuple[Transaction, str]]:
        if self._transaction_here() is None:
            # Inside, it would take a second connection, and from then on the two take turns, each half as warm.
            self._identify()
        with self.snapshot() as tx:
            shown = tx.backend.shown if isinstance(tx.backend, PostgresBackend) else None
            yield tx, self.generation() if shown is None else self._generation_of(shown)

    def _generation(self) -> str:
        with translated(), self._snapshot_on_standby() as taken:
            if taken is not None:
                with ended(taken[0]):
                    return self._generation_of(taken[1])
        return self._generation_of(self._first_value_of(SHOWN))

    def _generation_of(self, shown: str) -> str:
        return f"{self._identify()}:{shown}"

    def _identify(self) -> str:
        """The identity of the database, read once."""
        if self._identity is None:
            self._identity = self._first_value_of(_IDENTITY)
        return self._identity

    def _first_value_of(self, statement: str) -> str:
        """The first value of a statement that runs outside of a transaction."""
        with translated(), self._started(statement.encode()) as (_, value):
            return str(value)

    def _scrub(self) -> None:
        """Make the server reclaim deleted rows and update its statistics, which hold common words.

        The bytes of the rows are gone when it reuses the space (VACUUM FULL is at once). Its write-ahead log and its
        backups keep what they hold for as long as they are kept.
        """
        with self.connection() as connection:
            for table in self._dialect.names.tables():
                connection.execute(sql.SQL("VACUUM (ANALYZE) {}").format(sql.Identifier(table)))

    def close(self) -> None:
        self._keeper.close()
        if self._standby is not None:
            self._standby.close()
        self._pools.close()

    # ------------------------------------------------------------------ administration

    def prepare_vector_index(self, cls: type[Record], model: str | None = None) -> str:
        """Build the HNSW index that `search_vector(exact=False)` uses for a kind and a model; returns its name.

        Others can write meanwhile.
        """
        of = self._vectors_of(cls, model)
        with self.administering() as connection:
            return vector_index.build(connection, of)

    def drop_vector_index(self, cls: type[Record], model: str | None = None) -> bool:
        """Drop the HNSW index of a kind and a model; returns whether there was one."""
        of = self._vectors_of(cls, model)
        with self.administering() as connection:
            return vector_index.drop(connection, of)

    def vector_indexes(self) -> list[VectorIndexState]:
        """The kinds and models that have vectors, each with the state of its HNSW index."""
        if not self._native:
            raise UnsupportedOperation(_WITHOUT_PGVECTOR)
        lengths = self.models()
        with translated(), self._pool.connection() as connection:
            return vector_index.states(connection, lengths)

    def vector_index_progress(self) -> tuple[int, int] | None:
        """How many vectors of how many are in the index that the server is building; None while that is not known."""
        with self.connection() as connection:
            return vector_index.progress(connection)

    def _vectors_of(self, cls: type[Record], model: str | None) -> VectorsOf:
        if not self._native:
            raise UnsupportedOperation(_WITHOUT_PGVECTOR)
        chosen = model or self.embedding_model
        return VectorsOf(cls.spec, chosen, self.models().get(chosen, self.embedding_dim))

    @contextmanager
    def administering(self) -> Iterator[Connection]:
        """A connection outside of any transaction, for changes of tables and indexes."""
        if self._transaction_here() is not None:
            raise StorageError("indexes and tables cannot be changed inside a transaction: call this outside of it")
        with translated(), self._pool.connection() as connection:
            yield connection
