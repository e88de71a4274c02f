"""SQLiteBackend: the backend primitives on SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import datetime
from functools import cached_property, lru_cache, partial
from itertools import chain, compress, groupby, islice, repeat
from pathlib import Path
from typing import Any

from alma.errors import StorageError
from alma.model.fields import FieldType
from alma.model.governance import Attribution, AuditEvent
from alma.model.kinds import kind_named
from alma.model.memory import ChangeType
from alma.model.query import Predicate
from alma.model.record import Record, RecordSpec
from alma.model.vector import Vector
from alma.storage.audit import following, statement
from alma.storage.feed import OWNERS, FoundVector, StoredVector, VectorFeed, VectorQuery, changes_owner
from alma.storage.migrations.base import HISTORY_TABLE
from alma.storage.nearest import nearest
from alma.storage.ranking import without_expiry
from alma.storage.sql.backend import SqlBackend
from alma.storage.sqlite import fulltext as sqlite_fulltext
from alma.storage.sqlite.connections import translated
from alma.storage.sqlite.filters import Listing, can_be_listed, listed, mark_of, remember, remembered
from alma.storage.sqlite.fulltext import OWNER_COLUMN, entries, same_entries
from alma.storage.sqlite.words import WordSearch

_POSITION = "SELECT seq FROM sqlite_sequence WHERE name = 'embeddings'"
Owners = tuple[str | None, str | None, str | None, str | None]
_NO_OWNERS: Owners = (None, None, None, None)
# The same as `FoundVector._make`, without interpreter overhead for each of hundreds.
_found_vector: Callable[[Any], FoundVector] = partial(tuple.__new__, FoundVector)


class SQLiteFeed(VectorFeed):
    """The vector feed: embedding ids ascend and are never reused."""

    def __init__(self, backend: SQLiteBackend) -> None:
        self._backend = backend
        self._marks_of: dict[str, Hashable] = {}

    def name(self) -> str:
        # The creation time in microseconds identifies the store.
        return str(self._backend.rows(f"SELECT min(applied_at) FROM {HISTORY_TABLE}", {})[0][0])

    def position(self) -> int:
        rows = self._backend.rows(_POSITION, {})
        return int(rows[0][0]) if rows else 0

    def after(self, model: str, position: int, limit: int) -> list[StoredVector]:
        rows = self._backend.rows(
            "SELECT id, memory_type, memory_id, part, embedding FROM embeddings "
            "WHERE id > :position AND model = :model ORDER BY id LIMIT :most",
            {"position": position, "model": model, "most": limit},
        )
        owners = {kind: self._owners(kind_named(kind).spec, keys) for kind, keys in _keys_by_kind(rows)}
        return [
            StoredVector(number, kind, key, part, *owners[kind].get(key, _NO_OWNERS), Vector.unpacked(data).to_bytes())
            for number, kind, key, part, data in rows
        ]

    def at(self, question: VectorQuery, positions: Sequence[int]) -> list[FoundVector]:
        statements = self._backend.dialect.kind(question.spec)
        table, key = statements.table, question.spec.key
        condition, values = statements.condition(question.where)
        rows = self._backend.rows(
            f"SELECT embeddings.id, embeddings.memory_id, CASE WHEN {condition} THEN embeddings.embedding END "
            # CROSS JOIN fixes the join order: SQLite would rather scan all vectors of the kind.
            f"FROM json_each(:positions) AS asked CROSS JOIN embeddings ON embeddings.id = asked.value "
            f'CROSS JOIN "{table}" ON "{table}"."{key}" = embeddings.memory_id '
            f"WHERE embeddings.memory_type = :kind AND embeddings.model = :model",
            {
                **values,
                # The repr of a list of integers is JSON.
                "positions": str(list(positions)),
                "kind": question.spec.kind,
                "model": question.model,
            },
        )
        return list(map(_found_vector, rows))

    def inside(self, question: VectorQuery, most: int, *, known: bool = False) -> Sequence[int] | None:
        listing = self.listing(question.spec, question.where, question.model, 0 if known else most)
        return None if listing is None else listing.positions.tolist()

    def listing(
        self, spec: RecordSpec, where: Predicate, model: str | None = None, make_up_to: int = 0
    ) -> Listing | None:
        """The records that match a selective predicate, from the cache or, up to `make_up_to` records, by a query."""
        if not (make_up_to or self._backend.cache.listings) or self._backend.writable or not can_be_listed(spec, where):
            return None
        wanted = model or self._backend.embedding_model
        key = (spec.kind, wanted, without_expiry(where))
        if spec.kind not in self._marks_of:
            self._marks_of[spec.kind] = mark_of(self._backend, spec)
        mark = self._marks_of[spec.kind]
        known, listing = remembered(self._backend, key, mark)
        if known or not make_up_to:
            return listing
        return remember(self._backend, key, mark, listed(self._backend, spec, wanted, where, make_up_to))

    def held(self, model: str) -> list[int]:
        rows = self._backend.rows("SELECT id FROM embeddings WHERE model = :model", {"model": model})
        return [number for (number,) in rows]

    def _owners(self, spec: RecordSpec, keys: Collection[str]) -> Mapping[str, Owners]:
        """The owners of records; None for an owner that the kind does not have."""
        columns = ", ".join(f'"{name}"' if name in spec.by_name else "NULL" for name in OWNERS)
        rows = self._backend.rows(
            f'SELECT "{spec.key}", {columns} FROM "{spec.table}" '
            f'WHERE "{spec.key}" IN (SELECT value FROM json_each(:keys))',
            {"keys": self._backend.dialect.encode(FieldType.STRINGS, list(keys))},
        )
        return {key: (user, project, session, agent) for key, user, project, session, agent in rows}


def _keys_by_kind(rows: Iterable[Sequence[Any]]) -> list[tuple[str, set[str]]]:
    pairs = sorted({(kind, key) for _, kind, key, *_ in rows})
    return [(kind, {key for _, key in group}) for kind, group in groupby(pairs, key=lambda pair: pair[0])]


# The limit of older SQLite versions.
_MOST_PARAMETERS = 999
# With more rows per statement, parsing it costs what it gains, except in very large batches.
_MOST_ROWS = 8


def write_rows(
    connection: sqlite3.Connection,
    table: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    replace: bool = False,
) -> None:
    """Insert rows of these columns; with `replace`, conflicting rows are replaced."""
    left, names = iter(rows), tuple(columns)
    at_once = max(1, min(_MOST_ROWS, _MOST_PARAMETERS // len(names)))
    group = list(islice(left, at_once))

    def whole_groups() -> Iterator[tuple[Any, ...]]:
        """Lazily, to avoid a copy of the whole batch."""
        nonlocal group
        while len(group) == at_once:
            yield tuple(chain.from_iterable(group))
            group = list(islice(left, at_once))

    if len(group) == at_once:
        connection.executemany(writing(table, names, at_once, replace), whole_groups())
    if group:
        connection.executemany(writing(table, names, 1, replace), group)


@lru_cache(maxsize=1024)
def overwriting(table: str, columns: tuple[str, ...], key: str) -> str:
    """The UPDATE of these columns; the key is the last parameter."""
    changes = ", ".join(f'"{name}" = ?' for name in columns)
    return f'UPDATE "{table}" SET {changes} WHERE "{key}" = ?'


@lru_cache(maxsize=1024)
def writing(table: str, columns: tuple[str, ...], rows: int = 1, replace: bool = False) -> str:
    """The INSERT of a number of rows.

    OR FAIL keeps the rows before an error. The transaction is rolled back anyway, and SQLite need not journal each
    statement.
    """
    names = ", ".join(f'"{name}"' for name in columns)
    row = f"({', '.join('?' * len(columns))})"
    return f'{"REPLACE" if replace else "INSERT OR FAIL"} INTO "{table}" ({names}) VALUES {", ".join([row] * rows)}'


_VERSIONS = (
    "INSERT OR FAIL INTO memory_versions "
    "(kind, memory_id, version_number, change_type, change_reason, created_at, created_by) "
)
_FIRST_VERSION = f"{_VERSIONS} VALUES (:kind, :key, 1, :change, :reason, :moment, :author)"
_FIRST_VERSIONS = f"{_VERSIONS} SELECT :kind, value, 1, :change, :reason, :moment, :author FROM json_each(:keys)"
_VECTOR = ("memory_type", "memory_id", "model", "dims", "embedding")
_MOST_SEARCHES = 64


class SQLiteBackend(SqlBackend):
    """Reads and writes on one SQLite connection, with FTS5 for words; vectors are compared in this process."""

    # A lookup costs no round trip, and generated ids ascend.
    many_ids = 1

    def __init__(self, connection: sqlite3.Connection, path: Path, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._connection = connection
        self._path = path
        # Prepared searches by kind and predicate, reused inside a snapshot.
        self._searches: dict[tuple[str, Predicate], WordSearch] = {}

    @cached_property
    def feed(self) -> SQLiteFeed:
        return SQLiteFeed(self)

    def close(self) -> None:
        """Drop reference cycles, so that memory is freed without the garbage collector."""
        self._searches.clear()
        self.__dict__.pop("feed", None)

    def translating(self) -> AbstractContextManager[None]:
        return translated(self._path)

    def stored_vector(self, vector: Vector) -> bytes:
        return vector.packed()

    def rows(self, sql: str, values: Mapping[str, Any]) -> list[Any]:
        return self._connection.execute(sql, values).fetchall()

    def run(self, sql: str, values: Mapping[str, Any]) -> int:
        return self._connection.execute(sql, values).rowcount

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._connection.executemany(sql, rows)

    def insert_rows(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        write_rows(self._connection, table, columns, rows)

    # ------------------------------------------------------------------ writing

    def insert(self, spec: RecordSpec, records: Sequence[Record]) -> None:
        if len(records) == 1:
            self._insert_one(spec, records)
        else:
            self._insert_many(spec, records)
        self.write_tags(spec, records)

    def _insert_one(self, spec: RecordSpec, records: Sequence[Record]) -> None:
        row = self.dialect.kind(spec).filled_row(records[0])
        inserted = self._connection.execute(writing(self.names.table(spec), tuple(row)), tuple(row.values()))
        if spec.text:
            self._index_words(spec, [inserted.lastrowid or 0], records)

    def append_event(self, event: Mapping[str, Any]) -> bool:
        head = following(self.chains.take(), statement(event))
        row = self.dialect.kind(AuditEvent.spec).filled_values(event)
        row |= {"chain": head.chain, "chain_position": head.length, "chain_hash": head.hash}
        self._connection.execute(writing(self.names.table(AuditEvent.spec), tuple(row)), tuple(row.values()))
        self.chains.move(head)
        return True

    def _insert_many(self, spec: RecordSpec, records: Sequence[Record]) -> None:
        table, columns = self.names.table(spec), self.dialect.kind(spec).filled(records)
        if not spec.text:
            self.insert_rows(table, tuple(columns), zip(*columns.values(), strict=True))
        else:
            first = 1 + self.rows(f'SELECT coalesce(max(seq), 0) FROM "{table}"', {})[0][0]
            seqs = range(first, first + len(records))
            self.insert_rows(table, ("seq", *columns), zip(seqs, *columns.values(), strict=True))
            self._index_words(spec, seqs, records)
            if len(records) >= sqlite_fulltext.MANY:
                sqlite_fulltext.merge(self._connection, self.names.fts_table(spec))

    def begin_history(
        self, kind: str, keys: Sequence[str], by: Attribution, moment: datetime, change: ChangeType
    ) -> bool:
        """Insert the first versions with one statement, without constructing records."""
        at = self.dialect.encode(FieldType.TIMESTAMP, moment)
        values = {"kind": kind, "change": str(change), "reason": by.reason, "moment": at, "author": by.author}
        if len(keys) == 1:
            self._connection.execute(_FIRST_VERSION, {**values, "key": keys[0]})
        else:
            self._connection.execute(_FIRST_VERSIONS, {**values, "keys": self.bound_list(keys)})
        return True

    def replace(self, spec: RecordSpec, records: Sequence[Record], previous: Sequence[Record]) -> None:
        statements = self.dialect.kind(spec)
        if spec.text:
            self._reindex_words(spec, records, previous)
        if len(records) == 1:
            # Only the indexes of changed columns are written.
            changes = statements.changes(records[0], previous[0])
            if changes:
                changing = overwriting(statements.table, tuple(changes), spec.key)
                self._connection.execute(changing, (*changes.values(), records[0].key))
        else:
            keys = (record.key for record in records)
            rows = zip(statements.rows(records), keys, strict=True)
            self.run_many(statements.update(), ((*row, key) for row, key in rows))
        self.rewrite_tags(spec, records, previous)
        if spec.embeds:
            self._announce_vectors(
                spec, [new.key for old, new in zip(previous, records, strict=True) if changes_owner(old, new)]
            )

    def _announce_vectors(self, spec: RecordSpec, keys: Sequence[str]) -> None:
        """Give vectors new ids, so that vector indexes read their changed owners."""
        if keys:
            self.run_many(
                "REPLACE INTO embeddings (memory_type, memory_id, model, part, dims, embedding) "
                "SELECT memory_type, memory_id, model, part, dims, embedding FROM embeddings "
                "WHERE memory_type = ? AND memory_id = ?",
                [(spec.kind, key) for key in keys],
            )

    def remove(self, spec: RecordSpec, records: Sequence[Record]) -> None:
        if spec.text:
            self._unindex_words(spec, self._seqs(spec, records), records)
        super().remove(spec, records)

    def put_vectors(self, spec: RecordSpec, vectors: Mapping[str, Vector], model: str) -> None:
        try:
            self._write_own_vectors(spec, vectors, model)
        except sqlite3.IntegrityError:
            # Plain inserts are tried first, as they are twice as fast and most vectors are new. REPLACE instead of
            # UPDATE gives a changed vector a new id, which indexes read.
            self._write_own_vectors(spec, vectors, model, replace=True)

    def _write_own_vectors(
        self, spec: RecordSpec, vectors: Mapping[str, Vector], model: str, *, replace: bool = False
    ) -> None:
        rows = zip(
            repeat(spec.kind),
            vectors,
            repeat(model),
            map(len, vectors.values()),
            map(Vector.packed, vectors.values()),
            strict=False,
        )
        if len(vectors) == 1:
            self._connection.execute(writing(self.names.embeddings, _VECTOR, 1, replace), next(rows))
        else:
            write_rows(self._connection, self.names.embeddings, _VECTOR, rows, replace=replace)

    def in_list(self, name: str) -> str:
        return f"IN (SELECT value FROM json_each(:{name}))"

    def bound_list(self, keys: Sequence[str]) -> str:
        return str(self.dialect.encode(FieldType.STRINGS, list(keys)))

    def erase(self) -> None:
        super().erase()
        sqlite_fulltext.clear(self._connection)

    # ------------------------------------------------------------------ full text

    def _index_words(self, spec: RecordSpec, seqs: Iterable[int], records: Sequence[Record]) -> None:
        # One by one: several in a statement would make FTS5 write a piece of the index for each of these.
        statement = writing(self.names.fts_table(spec), ("rowid", *spec.text, OWNER_COLUMN))
        rows = zip(seqs, *entries(spec, records), strict=True)
        if len(records) == 1:
            self._connection.execute(statement, next(rows))
        else:
            self.run_many(statement, rows)

    def _unindex_words(self, spec: RecordSpec, seqs: Iterable[int], records: Sequence[Record]) -> None:
        """Remove entries; a contentless index needs their words for that."""
        table, names = self.names.fts_table(spec), ", ".join((*spec.text, OWNER_COLUMN))
        self.run_many(
            f"INSERT INTO {table} ({table}, rowid, {names}) VALUES ('delete', {', '.join('?' * (2 + len(spec.text)))})",
            zip(seqs, *entries(spec, records), strict=True),
        )

    def _reindex_words(self, spec: RecordSpec, records: Sequence[Record], previous: Sequence[Record]) -> None:
        """Update the index entries of records whose words or owners changed."""
        if all(map(same_entries, previous, records)):
            return
        was, now = zip(*entries(spec, previous), strict=True), zip(*entries(spec, records), strict=True)
        differs = [old != new for old, new in zip(was, now, strict=True)]
        before, after = list(compress(previous, differs)), list(compress(records, differs))
        seqs = self._seqs(spec, after)
        self._unindex_words(spec, seqs, before)
        self._index_words(spec, seqs, after)

    def _seqs(self, spec: RecordSpec, records: Sequence[Record]) -> list[int]:
        """The row numbers of stored records."""
        keys = [record.key for record in records]
        sql = f'SELECT "{spec.key}", seq FROM "{spec.table}" WHERE "{spec.key}" IN (SELECT value FROM json_each(:keys))'
        found = dict(self.rows(sql, {"keys": self.dialect.encode(FieldType.STRINGS, keys)}))
        return [found[key] for key in keys]

    # Callers continue without full text in the same transaction if its tables are missing, so errors of SQLite are
    # translated here.

    def matching(
        self, spec: RecordSpec, words: Sequence[str], where: Predicate, limit: int, *, exact: bool
    ) -> list[tuple[str, float]]:
        with self.translating():
            return self.word_search(spec, where).matching(words, limit, exact=exact)

    def word_scores(
        self, spec: RecordSpec, words: Sequence[str], keys: Sequence[str], where: Predicate
    ) -> dict[str, float]:
        with self.translating():
            return self.word_search(spec, where).scores(words, keys)

    def word_counts(self, spec: RecordSpec, words: Sequence[str], where: Predicate) -> tuple[int, dict[str, int]]:
        with self.translating():
            return self.word_search(spec, where).counts(words)

    def size(self, spec: RecordSpec, where: Predicate) -> int:
        if spec.text:
            # If the full-text index is missing, the records are counted instead.
            with suppress(StorageError), self.translating():
                return self.word_search(spec, where).inside
        return super().size(spec, where)

    def word_search(self, spec: RecordSpec, where: Predicate) -> WordSearch:
        if self.writable:
            # Include what this transaction wrote.
            sqlite_fulltext.flush(self._connection)
            return WordSearch(self, spec, where)
        key = (spec.kind, where)
        known = self._searches.get(key)
        if known is None:
            if len(self._searches) >= _MOST_SEARCHES:
                self._searches.clear()
            known = self._searches[key] = WordSearch(self, spec, where)
        return known

    # ------------------------------------------------------------------ vectors

    def nearest(
        self, spec: RecordSpec, vector: Vector, model: str, where: Predicate, limit: int, *, exact: bool
    ) -> list[tuple[str, float]]:
        statements = self.dialect.kind(spec)
        table = statements.table
        condition, values = statements.condition(where)
        candidates = self._connection.execute(
            f'SELECT "{table}"."{spec.key}", embeddings.embedding FROM "{table}" CROSS JOIN embeddings '
            f"ON embeddings.memory_type = :kind AND embeddings.model = :model "
            f'AND embeddings.memory_id = "{table}"."{spec.key}" WHERE {condition}',
            {**values, "kind": spec.kind, "model": model},
        )
        return nearest(vector, candidates, limit)
