"""A transaction on PostgreSQL: how it reads and writes, and what it asks aside."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import psycopg
from psycopg import sql

from alma import clock
from alma.model.governance import AuditEvent
from alma.model.query import Predicate
from alma.model.record import Record, RecordSpec
from alma.model.vector import Vector
from alma.storage.chain import statement
from alma.storage.nearest import nearest
from alma.storage.postgres.connection import Connection
from alma.storage.postgres.owned import Counted
from alma.storage.postgres.pools import translated
from alma.storage.postgres.vectors import VectorSearch
from alma.storage.postgres.wire import listed
from alma.storage.postgres.word_entries import COLUMNS, entries
from alma.storage.postgres.words import WordSearch
from alma.storage.sql.outbox import marked_again
from alma.storage.sql.transaction import SqlTransaction

# Behind SELECT a parameter has no type by itself.
_CASTS = {"details_json": "::jsonb", "resource_ids": "::jsonb", "success": "::boolean", "created_at": "::timestamptz"}
_COPY_FROM = 16
_LOCK_BUCKETS = 64


class PostgresTransaction(SqlTransaction):
    """A transaction on one PostgreSQL connection."""

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
        # Which state of the database it sees: another after every commit of anybody.
        self.shown = shown
        self.state = None if shown is None else hash(shown)
        self.counted_records: dict[Counted, int] = {}
        self.counted_words: dict[Hashable, dict[str, int]] = {}
        self._searches: dict[tuple[str, int], WordSearch] = {}
        self._vector_searches: dict[tuple[str, str, int], VectorSearch] = {}

    def _translating(self) -> AbstractContextManager[None]:
        return translated()

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

    # ------------------------------------------------------------------ writing

    def _reserve(self, spec: RecordSpec, keys: Sequence[str]) -> None:
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
        extra = COLUMNS if spec.text else ()
        rows = statements.rows(records, *(entries(records) if spec.text else ()))
        if len(records) < _COPY_FROM:
            self.run_many(statements.insert(*extra), rows)
        else:
            self._copy(statements.table, (*extra, *statements.columns), rows)
        self._write_tags(spec, records)

    def _replace(self, spec: RecordSpec, records: Sequence[Record], previous: Sequence[Record]) -> None:
        statements = self.dialect.kind(spec)
        extra = COLUMNS if spec.text else ()
        rows = statements.rows(records, *(entries(records) if spec.text else ()))
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

    def let_go(self) -> None:
        """Forget the searches, which hold this."""
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


def _hash_bucket(key: str) -> int:
    """Which of a few locks an id belongs to: the same in every process, and few, as locks are a shared resource."""
    return sum(key.encode()) % _LOCK_BUCKETS
