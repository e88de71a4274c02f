"""A transaction on an SQLite connection: what this database does in a way of its own."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import datetime
from functools import cache
from itertools import compress, repeat
from pathlib import Path
from typing import Any

from alma.errors import StorageError
from alma.model.fields import FieldType
from alma.model.governance import AuditEvent
from alma.model.memory import ChangeType
from alma.model.query import Predicate
from alma.model.record import Record, RecordSpec
from alma.model.vector import Vector
from alma.storage.chain import ChainHead, ChainTable, following
from alma.storage.document import timestamp_text
from alma.storage.feed import moved
from alma.storage.nearest import nearest
from alma.storage.sql.chains import SqlChains
from alma.storage.sqlite import fulltext as sqlite_fulltext
from alma.storage.sqlite.errors import translated
from alma.storage.sqlite.events import event_form
from alma.storage.sqlite.feed import SQLiteFeed
from alma.storage.sqlite.rows import overwriting, write_rows, writing
from alma.storage.sqlite.standing import Standing, standing
from alma.storage.sqlite.word_entries import OWNER_COLUMN, entries, same_entries
from alma.storage.sqlite.words import WordSearch

_VERSIONS = (
    "INSERT OR FAIL INTO memory_versions "
    "(kind, memory_id, version_number, change_type, change_reason, created_at, created_by) "
)
_FIRST_VERSION = f"{_VERSIONS} VALUES (?, ?, 1, ?, ?, ?, ?)"
_FIRST_VERSIONS = f"{_VERSIONS} SELECT ?1, value, 1, ?3, ?4, ?5, ?6 FROM json_each(?2)"
_VECTOR = ("memory_type", "memory_id", "model", "dims", "embedding")
_MOST_SEARCHES = 64
_MOST_GUESSES = 4_096


class SQLiteTransaction(SQLiteFeed):
    """A transaction on one SQLite connection."""

    # The question costs no round trip here, and the ids we make ourselves are always the newest.
    worth_a_look = 1

    def __init__(self, connection: sqlite3.Connection, path: Path, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._connection = connection
        self._path = path
        # What was prepared for questions about the same records, for as long as nothing changes.
        self._searches: dict[tuple[str, int], WordSearch] = {}
        self._asked_how_it_stands = False
        self._chain_moved = False

    def let_go(self) -> None:
        """Forget what was prepared: it leads back here, and would wait for the garbage collector, which takes long."""
        self._searches.clear()

    def _translating(self) -> AbstractContextManager[None]:
        return translated(self._path)

    def rows(self, sql: str, values: Mapping[str, Any]) -> list[Any]:
        return self._connection.execute(sql, values).fetchall()

    def run(self, sql: str, values: Mapping[str, Any]) -> int:
        return self._connection.execute(sql, values).rowcount

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._connection.executemany(sql, rows)

    def insert_rows(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        write_rows(self._connection, table, columns, rows)
        if table == self.names.embeddings:
            self._position = None

    # ------------------------------------------------------------------ how the store stands

    def vector_position(self) -> int:
        if self.writable and not self._asked_how_it_stands:
            self._ask_how_it_stands()
        return super().vector_position()

    def registered(self) -> list[tuple[str, str]]:
        if not self._asked_how_it_stands:
            self._ask_how_it_stands()
        return super().registered() if self.projections is None else self.projections

    def _take_head(self) -> ChainHead:
        if not self._asked_how_it_stands:
            self._ask_how_it_stands()
        return super()._take_head() if self._chain_head is None else self._chain_head

    def _ask_how_it_stands(self) -> None:
        """Learn in one question what a write needs to know, as far as this transaction has not changed it."""
        self._asked_how_it_stands = True
        found = standing(self.rows)
        if found is not None:
            self._position = found.position
            self.projections = found.projections
            if self._chain_head is None:
                self._chain_head = found.head

    def follow(self, known: Standing) -> None:
        """Begin with what the transaction left that wrote last."""
        self._asked_how_it_stands = True
        self._position, self.projections, self._chain_head = known

    def leaving(self) -> Standing | None:
        """What the next transaction may begin with: how the store stands, if that is known."""
        if not self.writable or self._position is None or self.projections is None or self._chain_head is None:
            return None
        return Standing(self._position, self.projections, self._chain_head)

    def settle(self) -> None:
        """Write down where the chain of audit events ends, once for all that were written."""
        if self._chain_moved and self._chain_head is not None:
            self._chain_moved = False
            SqlChains(self).move(self._chain_head)

    def _chains(self) -> ChainTable:
        self.settle()
        return super()._chains()

    # ------------------------------------------------------------------ writing

    def _insert(self, spec: RecordSpec, records: Sequence[Record]) -> None:
        if len(records) == 1:
            self._insert_one(spec, records)
        else:
            self._insert_many(spec, records)
        self._write_tags(spec, records)

    def _insert_one(self, spec: RecordSpec, records: Sequence[Record]) -> None:
        row = self.dialect.kind(spec).filled_row(records[0])
        inserted = self._connection.execute(writing(self.names.table(spec), tuple(row)), tuple(row.values()))
        if spec.text:
            self._index_words(spec, [inserted.lastrowid or 0], records)

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

    def _replace(self, spec: RecordSpec, records: Sequence[Record], previous: Sequence[Record]) -> None:
        statements = self.dialect.kind(spec)
        if spec.text:
            self._reindex_words(spec, records, previous)
        if len(records) == 1:
            # Indexes of columns that are not named need not be written.
            changes = statements.changes(records[0], previous[0])
            if changes:
                changing = overwriting(statements.table, tuple(changes), spec.key)
                self._connection.execute(changing, (*changes.values(), records[0].key))
        else:
            keys = (record.key for record in records)
            rows = zip(statements.rows(records), keys, strict=True)
            self.run_many(statements.update(), ((*row, key) for row, key in rows))
        self._rewrite_tags(spec, records, previous)
        if spec.embeds:
            self._announce_vectors(
                spec, [new.key for old, new in zip(previous, records, strict=True) if moved(old, new)]
            )

    def _announce_vectors(self, spec: RecordSpec, keys: Sequence[str]) -> None:
        """Give vectors new ids: an index knows whose they are, and has to learn when that changes."""
        if keys:
            self._position = None
            self.run_many(
                "REPLACE INTO embeddings (memory_type, memory_id, model, part, dims, embedding) "
                "SELECT memory_type, memory_id, model, part, dims, embedding FROM embeddings "
                "WHERE memory_type = ? AND memory_id = ?",
                [(spec.kind, key) for key in keys],
            )

    def _remove(self, spec: RecordSpec, records: Sequence[Record]) -> None:
        if spec.text:
            self._unindex_words(spec, self._seqs(spec, records), records)
        super()._remove(spec, records)

    def _put_vectors(self, spec: RecordSpec, vectors: Mapping[str, Vector], model: str) -> None:
        try:
            self._write_own_vectors(spec, vectors, model)
        except sqlite3.IntegrityError:
            # Most are new, which is twice as fast to write. Replaced, not updated: a changed vector gets a new id, by
            # which indexes learn of it.
            self._write_own_vectors(spec, vectors, model, replace=True)

    def _write_own_vectors(
        self, spec: RecordSpec, vectors: Mapping[str, Vector], model: str, *, replace: bool = False
    ) -> None:
        rows = zip(
            repeat(spec.kind),
            vectors,
            repeat(model),
            map(len, vectors.values()),
            map(Vector.to_bytearray, vectors.values()),
            strict=False,
        )
        if len(vectors) == 1:
            written = self._connection.execute(writing(self.names.embeddings, _VECTOR, 1, replace), next(rows))
            # Every vector has a higher number than any before it.
            self._position = written.lastrowid
        else:
            write_rows(self._connection, self.names.embeddings, _VECTOR, rows, replace=replace)
            self._position = None

    def _among(self, name: str) -> str:
        return f"IN (SELECT value FROM json_each(:{name}))"

    def _listed(self, keys: Sequence[str]) -> str:
        return str(self.dialect.encode(FieldType.STRINGS, list(keys)))

    def _erase(self) -> None:
        super()._erase()
        self._chain_moved = False
        sqlite_fulltext.clear(self._connection)

    def _audit(self, spec: RecordSpec, action: str, records: Sequence[Record], moment: datetime) -> None:
        if len(records) != 1:
            super()._audit(spec, action, records, moment)
            return
        form, key = event_form(self.by, action, spec.kind), records[0].key
        when = timestamp_text(moment)
        head = self._chain_head = following(self._take_head(), form.statement(key, when))
        self._connection.execute(form.sql, (*form.values, key, when, head.chain, head.length, head.hash))
        self._chain_moved = True

    def _insert_events(self, events: Sequence[Mapping[str, Any]]) -> None:
        statements = self.dialect.kind(AuditEvent.spec)
        for values in events:
            # The driver asks around how to adapt a missing value, so it is left out.
            row = zip(statements.columns, statements.row_of(values), strict=True)
            filled = {name: value for name, value in row if value is not None}
            self._connection.execute(writing(statements.table, tuple(filled)), tuple(filled.values()))

    def _insert_first_versions(self, kind: str, keys: Sequence[str], moment: datetime) -> None:
        """One statement for all: nothing but the id differs from row to row."""
        created = (ChangeType.CREATED.value, self.by.reason, timestamp_text(moment), self.by.author)
        if len(keys) == 1:
            self._connection.execute(_FIRST_VERSION, (kind, keys[0], *created))
        else:
            self._connection.execute(_FIRST_VERSIONS, (kind, self._listed(keys), *created))

    def _cease(self, of_record: Mapping[str, str], content: Mapping[str, Any]) -> int | None:
        """As a rule the newest version is the one that this store object wrote last, so it need not be looked for."""
        guesses, key = self.dialect.newest_versions, (of_record["kind"], of_record["memory_id"])
        number = guesses.get(key)
        if number is None or not self.run(_ceasing_at(tuple(content)), {**of_record, **content, "number": number}):
            number = super()._cease(of_record, content)
        if number is not None:
            if len(guesses) >= _MOST_GUESSES:
                guesses.clear()
            guesses[key] = number + 1
        return number

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
        """A contentless index forgets an entry when it is told the words that were in it."""
        table, names = self.names.fts_table(spec), ", ".join((*spec.text, OWNER_COLUMN))
        self.run_many(
            f"INSERT INTO {table} ({table}, rowid, {names}) VALUES ('delete', {', '.join('?' * (2 + len(spec.text)))})",
            zip(seqs, *entries(spec, records), strict=True),
        )

    def _reindex_words(self, spec: RecordSpec, records: Sequence[Record], previous: Sequence[Record]) -> None:
        """Index anew what has other words, or another owner, than before."""
        if all(map(same_entries, previous, records)):
            return
        was, now = zip(*entries(spec, previous), strict=True), zip(*entries(spec, records), strict=True)
        differs = [old != new for old, new in zip(was, now, strict=True)]
        before, after = list(compress(previous, differs)), list(compress(records, differs))
        seqs = self._seqs(spec, after)
        self._unindex_words(spec, seqs, before)
        self._index_words(spec, seqs, after)

    def _seqs(self, spec: RecordSpec, records: Sequence[Record]) -> list[int]:
        """Where stored records stand in their table."""
        keys = [record.key for record in records]
        sql = f'SELECT "{spec.key}", seq FROM "{spec.table}" WHERE "{spec.key}" IN (SELECT value FROM json_each(:keys))'
        found = dict(self.rows(sql, {"keys": self.dialect.encode(FieldType.STRINGS, keys)}))
        return [found[key] for key in keys]

    # Whoever asks for words goes on without them where their tables are gone, in the same transaction: so what SQLite
    # says of them is translated here.

    def _matching(
        self, spec: RecordSpec, words: Sequence[str], where: Predicate, limit: int, *, exact: bool
    ) -> list[tuple[str, float]]:
        with self._translating():
            return self._word_search(spec, where).matching(words, limit, exact=exact)

    def _word_scores(
        self, spec: RecordSpec, words: Sequence[str], keys: Sequence[str], where: Predicate
    ) -> dict[str, float]:
        with self._translating():
            return self._word_search(spec, where).scores(words, keys)

    def _word_counts(self, spec: RecordSpec, words: Sequence[str], where: Predicate) -> tuple[int, dict[str, int]]:
        with self._translating():
            return self._word_search(spec, where).counts(words)

    def _size(self, spec: RecordSpec, where: Predicate) -> int:
        if spec.text:
            # Without its index of words a store can still be counted.
            with suppress(StorageError), self._translating():
                return self._word_search(spec, where).inside
        return super()._size(spec, where)

    def _word_search(self, spec: RecordSpec, where: Predicate) -> WordSearch:
        if self.writable:
            # What this transaction wrote counts as well.
            sqlite_fulltext.flush(self._connection)
            return WordSearch(self, spec, where)
        key = (spec.kind, id(where))
        known = self._searches.get(key)
        if known is None:
            if len(self._searches) >= _MOST_SEARCHES:
                self._searches.clear()
            # It holds the predicate, so that no other gets its id.
            known = self._searches[key] = WordSearch(self, spec, where)
        return known

    # ------------------------------------------------------------------ vectors

    def _nearest(
        self, spec: RecordSpec, vector: Vector, model: str, where: Predicate, limit: int, *, exact: bool
    ) -> list[tuple[str, float]]:
        statements = self.dialect.kind(spec)
        table = statements.table
        condition, values = self.condition_of(spec, where)
        candidates = self._connection.execute(
            f'SELECT "{table}"."{spec.key}", embeddings.embedding FROM "{table}" CROSS JOIN embeddings '
            f"ON embeddings.memory_type = :kind AND embeddings.model = :model "
            f'AND embeddings.memory_id = "{table}"."{spec.key}" WHERE {condition}',
            {**values, "kind": spec.kind, "model": model},
        )
        return nearest(vector, candidates, limit)


@cache
def _ceasing_at(columns: tuple[str, ...]) -> str:
    """Gives a version its content if it is the newest of a record: those before it have theirs, deletions have none."""
    content = ", ".join(f"{name} = :{name}" for name in columns)
    return (
        f"UPDATE memory_versions SET {content} WHERE memory_id = :memory_id AND kind = :kind "
        f"AND version_number = :number AND record_json IS NULL AND change_type <> '{ChangeType.DELETED}'"
    )
