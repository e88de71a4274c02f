"""PostgresBackend: the primitives of one PostgreSQL transaction."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import psycopg
from psycopg import sql

from alma.model.governance import AuditEvent
from alma.model.query import Predicate
from alma.model.record import Record, RecordSpec
from alma.model.vector import Vector
from alma.storage.audit import statement
from alma.storage.nearest import nearest
from alma.storage.postgres.connection import Connection
from alma.storage.postgres.counts import Counted
from alma.storage.postgres.fulltext import COLUMNS, entries
from alma.storage.postgres.pools import translated
from alma.storage.postgres.types import listed
from alma.storage.postgres.vectors import VectorSearch
from alma.storage.postgres.words import WordSearch
from alma.storage.sql.backend import SqlBackend

# Behind SELECT a parameter has no type by itself.
_CASTS = {"details_json": "::jsonb", "resource_ids": "::jsonb", "success": "::boolean", "created_at": "::timestamptz"}
_COPY_FROM = 16
_LOCK_BUCKETS = 64


class PostgresBackend(SqlBackend):
    """Reads and writes on one PostgreSQL connection, with pgvector where the server has it."""

    def __init__(
        self,
        connection: Connection,
        shown: str | None,
        *args: Any,
        native: bool,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._connection = connection
        self._native = native
        # Which state of the database it sees: another after every commit.
        self.shown = shown
        self.state = None if shown is None else hash(shown)
        self.vectors_written = 0
        self.counted_records: dict[Counted, int] = {}
        self.counted_words: dict[Hashable, dict[str, int]] = {}
        # What was prepared for searches of the same records, reused inside a snapshot.
        self._searches: dict[tuple[str, Predicate], WordSearch] = {}

    def translating(self) -> AbstractContextManager[None]:
        return translated()

    def pipeline(self, records: int) -> AbstractContextManager[Any]:
        # A pipeline waits for the server once, not after every statement. It cannot COPY, and older drivers lack it.
        wanted = records < _COPY_FROM and psycopg.capabilities.has_pipeline()
        return self._connection.pipeline() if wanted else nullcontext()

    def rows(self, sql: str, values: Mapping[str, Any]) -> list[Any]:
        if not self.writable:
            return self._connection.runner.fetch(sql, values)
        # What is written may be under way in a pipeline.
        with self._connection.cursor(binary=True) as cursor:
            return cursor.execute(sql, listed(values)).fetchall()

    def run(self, sql: str, values: Mapping[str, Any]) -> int:
        return self._connection.execute(sql, listed(values)).rowcount

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(sql, rows)

    # ------------------------------------------------------------------ writing

    def reserve(self, spec: RecordSpec, keys: Sequence[str]) -> None:
        """Partitions make the key (id, created_at), so two writers of a new id must meet at a lock instead."""
        if spec.kind == "memory":
            buckets = sorted({_hash_bucket(key) for key in keys})
            self.rows(
                "SELECT pg_advisory_xact_lock(%(space)s, b) FROM unnest(%(buckets)s::int[]) AS b",
                {
                    "space": 1,
                    "buckets": buckets,
                },
            )

    def hold(self, name: str) -> None:
        self.rows(
            "SELECT pg_advisory_xact_lock(%(space)s, %(bucket)s)",
            {"space": 2, "bucket": zlib.crc32(name.encode()) & 0x7FFFFFFF},
        )

    def append_event(self, event: Mapping[str, Any]) -> bool:
        """In a single round trip: the server itself adds it to a free chain."""
        statements = self.dialect.kind(AuditEvent.spec)
        plain = {**event, "chain": None, "chain_position": None, "chain_hash": None}
        (encoded,) = statements.rows([AuditEvent.trusted(plain)])
        row = dict(zip(statements.columns, encoded, strict=True))
        return bool(self.rows(_append_statement(statements.columns), {**row, "statement": statement(event)}))

    def insert(self, spec: RecordSpec, records: Sequence[Record]) -> None:
        statements = self.dialect.kind(spec)
        extra = COLUMNS if spec.text else ()
        rows = statements.rows(records, *(entries(records) if spec.text else ()))
        if len(records) < _COPY_FROM:
            self.run_many(statements.insert(*extra), rows)
        else:
            self._copy(statements.table, (*extra, *statements.columns), rows)
        self.write_tags(spec, records)

    def replace(self, spec: RecordSpec, records: Sequence[Record], previous: Sequence[Record]) -> None:
        statements = self.dialect.kind(spec)
        extra = COLUMNS if spec.text else ()
        rows = statements.rows(records, *(entries(records) if spec.text else ()))
        keys = [record.key for record in records]
        self.run_many(statements.update(*extra), [(*row, key) for row, key in zip(rows, keys, strict=True)])
        self.rewrite_tags(spec, records, previous)

    def put_vectors(self, spec: RecordSpec, vectors: Mapping[str, Vector], model: str) -> None:
        columns = ("memory_type", "memory_id", "model", "dims", "embedding")
        rows = [(spec.kind, key, model, len(v), self.stored_vector(v)) for key, v in vectors.items()]
        self.vectors_written += len(rows)
        if len(rows) >= _COPY_FROM:
            self._delete_vectors_in_bulk(spec, list(vectors), model)
            self._copy_binary(columns, rows)
        else:
            self.run_many(
                f"INSERT INTO alma_embeddings ({', '.join(columns)}) VALUES {self.placeholders(5)} "
                "ON CONFLICT (memory_type, memory_id, model, part) DO UPDATE SET embedding = excluded.embedding",
                rows,
            )

    def put_passages(self, spec: RecordSpec, passages: Mapping[str, Sequence[Vector]], model: str) -> None:
        self.vectors_written += sum(map(len, passages.values()))
        super().put_passages(spec, passages, model)

    def in_list(self, name: str) -> str:
        return f"= ANY(%({name})s)"

    def bound_list(self, keys: Sequence[str]) -> list[str]:
        return list(keys)

    def stored_vector(self, vector: Vector) -> Any:
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

    def matching(
        self, spec: RecordSpec, words: Sequence[str], where: Predicate, limit: int, *, exact: bool
    ) -> list[tuple[str, float]]:
        return self.word_search(spec, where).matching(words, limit, exact=exact)

    def word_scores(
        self, spec: RecordSpec, words: Sequence[str], keys: Sequence[str], where: Predicate
    ) -> dict[str, float]:
        return self.word_search(spec, where).scores(words, keys)

    def word_counts(self, spec: RecordSpec, words: Sequence[str], where: Predicate) -> tuple[int, dict[str, int]]:
        return self.word_search(spec, where).counts(words)

    def size(self, spec: RecordSpec, where: Predicate) -> int:
        return self.word_search(spec, where).records() if spec.text else super().size(spec, where)

    def word_search(self, spec: RecordSpec, where: Predicate) -> WordSearch:
        """The full-text search for a predicate, reused inside a snapshot."""
        if self.writable:
            # What this transaction wrote counts as well.
            self.counted_records.clear()
            self.counted_words.clear()
            return WordSearch(self, spec, where)
        key = (spec.kind, where)
        known = self._searches.get(key)
        if known is None:
            known = self._searches[key] = WordSearch(self, spec, where)
        return known

    def nearest(
        self, spec: RecordSpec, vector: Vector, model: str, where: Predicate, limit: int, *, exact: bool
    ) -> list[tuple[str, float]]:
        if not self._native:
            return nearest(vector, self._stored_vectors(spec, model, where), limit)
        return VectorSearch(self, spec, model, where).nearest(vector, limit, exact=exact)

    def close(self) -> None:
        """Drop what refers back here, so that memory is freed without the garbage collector."""
        self._searches.clear()

    def set_ef_search(self, vectors: int) -> None:
        """Set how many vectors a round of the HNSW index looks for."""
        self._connection.runner.set_ef_search(vectors)

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
    """`alma.storage.audit.linked` in SQL."""
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


def _hash_bucket(key: str) -> int:
    """Which of a few locks an id belongs to: the same in every process, and few, as locks are a shared resource."""
    return sum(key.encode()) % _LOCK_BUCKETS
