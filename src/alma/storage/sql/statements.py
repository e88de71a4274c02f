"""The statements of a kind in one dialect, and the conversion between rows and records."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from operator import attrgetter
from typing import Any

from alma.errors import StorageError
from alma.model.fields import FieldSpec, FieldType
from alma.model.memory import MemoryVersion
from alma.model.query import Predicate
from alma.model.record import Record, RecordSpec
from alma.model.vector import Vector
from alma.storage.backend import TEXT_LENGTH, Query
from alma.storage.document import json_text, strings_text, timestamp_of, timestamp_text
from alma.storage.ranking import CountCache
from alma.storage.sql.clauses import Clauses, DialectName, Encoder, Names, Shape, Spelling, Values

# Each entry takes about ten bytes per vector.
_MOST_PLACES = 128


class StoreCache:
    """A cache of statistics that decide how a search is run, and of facts that never change once committed."""

    def __init__(self, dialect: DialectName) -> None:
        # The vector length of each model.
        self.vector_lengths: dict[str, int] = {}
        # The number of records with a word: on SQLite while the size of the table is the same, on a server for a
        # minute.
        self.word_counts: CountCache[int] = CountCache(slack=0.02 if dialect == "sqlite" else 0)
        # SQLite: the few records that match a predicate, with a mark that changes with the table.
        self.listings: dict[Hashable, tuple[Hashable, Any]] = {}
        # PostgreSQL: for each table, the share of records with a common term, and the mean number of terms.
        self.term_shares: CountCache[Mapping[str, float]] = CountCache(slack=0)
        self.mean_lengths: CountCache[float] = CountCache(slack=0)
        # PostgreSQL: whether a scope has many records, and how many have one of some tags.
        self.large_scopes: CountCache[bool] = CountCache(slack=0)
        self.tagged_records: CountCache[int] = CountCache(slack=0)
        # PostgreSQL: where the vectors of a small owner are stored, until the next commit.
        self.vector_places: CountCache[str] = CountCache(slack=0, most=_MOST_PLACES)


def _utc(moment: datetime) -> datetime:
    # The time zone of the session is UTC; a driver may return another object for it.
    return moment if moment.tzinfo is UTC else moment.replace(tzinfo=UTC)


def as_vector(value: Vector | bytes) -> Vector:
    """The vector in a column, which holds bytes on SQLite and without pgvector."""
    return value if isinstance(value, Vector) else Vector.unpacked(value)


_MOST_SHAPES = 512
_FEW_ROWS = 4
_EMPTY = {FieldType.JSON: "{}", FieldType.STRINGS: "[]"}
_SQLITE_ENCODERS: dict[FieldType, Encoder] = {
    FieldType.TIMESTAMP: timestamp_text,
    FieldType.JSON: json_text,
    FieldType.STRINGS: strings_text,
    # SQLite stores booleans as numbers, and the driver binds an int much faster than a bool.
    FieldType.BOOLEAN: int,
}
_SQLITE_DECODERS: dict[FieldType, Encoder] = {
    FieldType.TIMESTAMP: timestamp_of,
    # Any other value was written by another program.
    FieldType.BOOLEAN: {0: False, 1: True}.__getitem__,
    FieldType.JSON: lambda text: json.loads(text) if text != "{}" else {},
    FieldType.STRINGS: lambda text: tuple(json.loads(text)) if text != "[]" else (),
    FieldType.TAGS: lambda text: tuple(sorted(json.loads(text))) if text != "[]" else (),
    FieldType.VECTOR: Vector.unpacked,
}
_POSTGRES_ENCODERS: dict[FieldType, Encoder] = {FieldType.JSON: json_text, FieldType.STRINGS: strings_text}
_POSTGRES_DECODERS: dict[FieldType, Encoder] = {
    FieldType.TIMESTAMP: _utc,
    FieldType.STRINGS: tuple,
    FieldType.TAGS: lambda tags: tuple(sorted(tags)),
    FieldType.VECTOR: as_vector,
}


def _spelled(moments: Sequence[Any], others: tuple[Sequence[Any], Sequence[Any]] | None) -> list[str | None]:
    """Timestamps as texts; reuses those of another column with equal values, as created_at and updated_at of new
    records.
    """
    if others is None:
        return [None if moment is None else timestamp_text(moment) for moment in moments]
    return [
        text if moment is other else None if moment is None else timestamp_text(moment)
        for moment, other, text in zip(moments, *others, strict=True)
    ]


class Dialect:
    """The SQL syntax and value encoding of a database; shared by all transactions."""

    def __init__(self, name: DialectName) -> None:
        self.name: DialectName = name
        self.names = Names(name)
        self.encoders = _SQLITE_ENCODERS if name == "sqlite" else _POSTGRES_ENCODERS
        self._decoders = _SQLITE_DECODERS if name == "sqlite" else _POSTGRES_DECODERS
        self._kinds: dict[str, KindStatements] = {}

    def kind(self, spec: RecordSpec) -> KindStatements:
        statements = self._kinds.get(spec.kind)
        if statements is None:
            statements = self._kinds[spec.kind] = KindStatements(self, spec)
        return statements

    def encode(self, field_type: FieldType, value: Any) -> Any:
        encoder = self.encoders.get(field_type)
        return value if encoder is None else encoder(value)

    def timestamp_decoder(self, value: Any) -> datetime:
        """The decoder of timestamp columns."""
        moment: datetime = self._decoders[FieldType.TIMESTAMP](value)
        return moment

    def encoder(self, field: FieldSpec) -> Encoder | None:
        return str if field.choices is not None else self.encoders.get(field.type)

    def decoder(self, field: FieldSpec) -> Encoder | None:
        if field.choices is not None:
            return field.choices
        return self._decoders.get(field.type)


class KindStatements:
    """The statements and row conversion for the table of a kind."""

    def __init__(self, dialect: Dialect, spec: RecordSpec) -> None:
        self.spec = spec
        self.table = dialect.names.table(spec)
        self.clauses = Clauses(dialect.names, spec, dialect.encoders)
        self._names = dialect.names
        self.columns = tuple(field.name for field in spec.stored if not (spec.numbered and field.name == spec.key))
        self._values_of = attrgetter(*self.columns)
        fields = [spec.by_name[name] for name in self.columns]
        self._encoder_of = tuple(map(dialect.encoder, fields))
        self._encoder_by = dict(zip(self.columns, self._encoder_of, strict=True))
        encoders = ((i, self._encoder_of[i], _EMPTY.get(field.type)) for i, field in enumerate(fields))
        self._encoders = tuple((i, encode, empty) for i, encode, empty in encoders if encode is not None)
        self._json = frozenset(i for i, field in enumerate(fields) if field.type is FieldType.JSON)
        self._decoders = tuple((field.name, dialect.decoder(field)) for field in self._read_fields())
        self._read = tuple(name for name, _ in self._decoders)
        nullable = {field.name for field in self._read_fields() if field.nullable}
        decoded = ((i, decode, name in nullable) for i, (name, decode) in enumerate(self._decoders))
        self._decoded = tuple((i, decode, may_lack) for i, decode, may_lack in decoded if decode is not None)
        self._written: dict[Shape | None, str] = {}
        self._decoders_of: dict[tuple[str, ...], Sequence[tuple[int, Encoder]]] = {}

    def _read_fields(self) -> list[FieldSpec]:
        apart = (self.spec.tags_field, self.spec.vector_field)
        return [*self.spec.stored, *(self.spec.by_name[name] for name in apart if name is not None)]

    # ------------------------------------------------------------------ rows

    def rows(self, records: Sequence[Record], *further: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
        """Encoded rows: further columns, then those of the records in the order of `columns`."""
        return zip(*further, *self._encoded(records), strict=False)

    def filled(self, records: Sequence[Record]) -> dict[str, Sequence[Any]]:
        """The encoded columns in which any of the records has a value; the others get the NULL default."""
        columns = zip(self.columns, self._encoded(records), strict=False)
        return {name: values for name, values in columns if values[0] is not None or values.count(None) < len(values)}

    def filled_row(self, record: Record) -> dict[str, Any]:
        """The same of one record."""
        values = list(self._values_of(record))
        for i, encode, empty in self._encoders:
            value = values[i]
            if value is not None:
                values[i] = encode(value) if value or empty is None else empty
        return {name: value for name, value in zip(self.columns, values, strict=True) if value is not None}

    def filled_values(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The same of values that are not a record yet."""
        encoded = ((name, value, self._encoder_by.get(name)) for name, value in values.items() if value is not None)
        return {name: value if encode is None else encode(value) for name, value, encode in encoded}

    def changes(self, record: Record, previous: Record) -> dict[str, Any]:
        """The encoded columns of a record that have changed."""
        before, after = self._values_of(previous), self._values_of(record)
        differing = [i for i, (was, value) in enumerate(zip(before, after, strict=True)) if was is not value]
        return {
            self.columns[i]: self._encoded_value(i, after[i])
            for i in differing
            # 1 and True are equal in Python, but different in JSON.
            if after[i] != before[i]
            or (i in self._json and self._encoded_value(i, after[i]) != self._encoded_value(i, before[i]))
        }

    def _encoded_value(self, i: int, value: Any) -> Any:
        encode = self._encoder_of[i]
        return value if encode is None or value is None else encode(value)

    def _encoded(self, records: Sequence[Record]) -> list[Sequence[Any]]:
        """Encoded column by column, which is faster than record by record."""
        columns: list[Sequence[Any]] = list(zip(*map(self._values_of, records), strict=True))
        spelled: tuple[Sequence[Any], Sequence[Any]] | None = None
        for i, encode, empty in self._encoders if columns else ():
            if encode is timestamp_text:
                spelled = columns[i], _spelled(columns[i], spelled)
                columns[i] = spelled[1]
            elif empty is None:
                columns[i] = [None if value is None else encode(value) for value in columns[i]]
            else:
                # A fast path: most metadata is empty.
                columns[i] = [encode(value) if value else None if value is None else empty for value in columns[i]]
        return columns

    def records(self, rows: Sequence[Sequence[Any]]) -> list[Record]:
        """The records of selected rows; several are decoded column by column, which is faster than row by row."""
        if len(rows) < _FEW_ROWS:
            return list(map(self.record, rows))
        columns: list[Sequence[Any]] = list(zip(*rows, strict=True))
        try:
            for i, decode, may_lack in self._decoded:
                if may_lack:
                    columns[i] = [None if value is None else decode(value) for value in columns[i]]
                else:
                    # The iterator runs in C.
                    columns[i] = list(map(decode, columns[i]))
        except (ValueError, TypeError, KeyError):
            return list(map(self.record, rows))
        return self.spec.trusted_batch(self._read, columns)

    def record(self, row: Sequence[Any]) -> Record:
        """The record of a selected row."""
        try:
            values = {
                name: value if value is None or decode is None else decode(value)
                for (name, decode), value in zip(self._decoders, row, strict=False)
            }
        except (ValueError, TypeError, KeyError) as exc:
            raise self._unreadable(row, exc) from exc
        return self.spec.cls.trusted(values)  # type: ignore[no-any-return]

    def _unreadable(self, row: Sequence[Any], exc: Exception) -> StorageError:
        key = row[self._read.index(self.spec.key)]
        why = f"the {self.spec.kind} {key!r} in {self.table} was changed by something else and cannot be read"
        return StorageError(f"{why}: {exc}; correct the row or restore a backup")

    # ------------------------------------------------------------------ reading

    def select(self, query: Query, model: str) -> tuple[str, Mapping[str, Any]]:
        """The SQL and parameters of a query."""
        values = self._values_for(model)
        shape = self._shape(query, values)
        known = self._written.get(shape)
        if known is not None:
            return known, values.values
        values = self._values_for(model)
        return self._remembered(shape, self._select(query, values)), values.values

    def select_unchanged(self, query: Query, model: str, moment: Any) -> tuple[str, Mapping[str, Any]]:
        """The SQL and parameters for the records whose newest version was recorded by then."""
        values = self._values_for(model)
        versions = self._names.table(MemoryVersion.spec)
        newest = (
            f'(SELECT created_at FROM {versions} WHERE {versions}.memory_id = "{self.table}"."{self.spec.key}" '
            f"AND {versions}.kind = '{self.spec.kind}' ORDER BY version_number DESC LIMIT 1)"
        )
        return self._select(query, values, f" AND {newest} <= {values.put(moment)}"), values.values

    def _select(self, query: Query, values: Values, further: str = "") -> str:
        sql = f"{self.selection} WHERE {self.clauses.condition(query.where, values)}{further}"
        if query.after is not None:
            sql += f" AND {self.clauses.behind(query.after, query.order, values)}"
        sql += self._ordered(query, values)
        if query.for_update and self._names.dialect == "postgresql":
            sql += f' FOR UPDATE OF "{self.table}"'
        return sql

    def select_values(self, query: Query, names: Sequence[str]) -> tuple[str, Mapping[str, Any]]:
        """The SQL and parameters of a query for some columns alone."""
        values = Values(self._names, hides_sessions=True)
        shape = self._shape(query, values, tuple(names))
        known = self._written.get(shape)
        if known is not None:
            return known, values.values
        values = Values(self._names, hides_sessions=True)
        condition = self.clauses.condition(query.where, values)
        if query.after is not None:
            condition += f" AND {self.clauses.behind(query.after, query.order, values)}"
        sql = f'SELECT {self.columns_of(names)} FROM "{self.table}" WHERE {condition}{self._ordered(query, values)}'
        return self._remembered(shape, sql), values.values

    def decoders(self, names: tuple[str, ...]) -> Sequence[tuple[int, Encoder]]:
        """The positions and decoders of these columns, for those that need decoding."""
        known = self._decoders_of.get(names)
        if known is None:
            decode = dict(self._decoders)
            found = ((i, decode.get(name)) for i, name in enumerate(names))
            known = self._decoders_of[names] = [(i, each) for i, each in found if each is not None]
        return known

    def _shape(self, query: Query, values: Values, names: tuple[str, ...] = ()) -> Shape | None:
        """A cache key for the SQL of a query; binds its values as a side effect."""
        where = None if query.after is not None else self.clauses.shape(query.where, values)
        if where is None:
            return None
        if query.limit is not None:
            values.put(query.limit)
        return where, query.order, query.limit is None, query.for_update, names

    def _remembered(self, shape: Shape | None, sql: str) -> str:
        """The statement, cached for queries of the same shape: building it takes longer than running it."""
        if shape is not None:
            if len(self._written) >= _MOST_SHAPES:
                self._written.clear()
            self._written[shape] = sql
        return sql

    def columns_of(self, names: Sequence[str]) -> str:
        """The select list for some columns, or `TEXT_LENGTH`."""
        return ", ".join(self.text_length if name == TEXT_LENGTH else f'"{self.table}"."{name}"' for name in names)

    @cached_property
    def text_length(self) -> str:
        """The length of the searchable text in bytes, or in characters on SQLite (octet_length is new in 3.43)."""
        length = "length" if self._names.dialect == "sqlite" else "octet_length"
        return " + ".join(f'coalesce({length}("{self.table}"."{name}"), 0)' for name in self.spec.text)

    def count(self, where: Predicate) -> tuple[str, Mapping[str, Any]]:
        """The SQL and parameters of a count."""
        condition, values = self.condition(where)
        return f'SELECT count(*) FROM "{self.table}" WHERE {condition}', values

    def last_versions(self, where: Predicate) -> tuple[str, Mapping[str, Any]]:
        """The SQL and parameters for the newest version of each record."""
        condition, values = self.condition(where)
        same = " AND ".join(f'newer.{name} = "{self.table}".{name}' for name in ("memory_id", "kind"))
        later = f'newer.version_number > "{self.table}".version_number'
        newer = f'SELECT 1 FROM "{self.table}" AS newer WHERE {same} AND {later}'
        return f"{self.selection} WHERE {condition} AND NOT EXISTS ({newer})", values

    def condition(self, where: Predicate, spell: Spelling | None = None) -> tuple[str, dict[str, Any]]:
        """The SQL and parameters of a predicate, for use in other statements. With `spell`, owners are literals."""
        values = Values(self._names, spell=spell)
        shape = self.clauses.shape(where, values)
        # Shapes of queries have more than two parts, so these keys are distinct.
        key = None if shape is None else (shape,) if spell is None else (shape, "spelled")
        known = None if key is None else self._written.get(key)
        if known is not None:
            return known, values.values
        values = Values(self._names, spell=spell)
        return self._remembered(key, self.clauses.condition(where, values)), values.values

    def _values_for(self, model: str) -> Values:
        """Values that begin with the model, which is the first parameter of `selection`."""
        values = Values(self._names)
        if self.spec.vector_field is not None:
            values.put(model)
        return values

    def _ordered(self, query: Query, values: Values) -> str:
        limit = "" if query.limit is None else f" LIMIT {values.put(query.limit)}"
        return f" ORDER BY {self.clauses.order_by(query.order, query.where)}{limit}"

    @cached_property
    def selection(self) -> str:
        """The select list of a record: its columns, its tags, and its vector of the model in the first parameter."""
        columns = [f'"{self.table}"."{field.name}"' for field in self.spec.stored]
        if self.spec.tags_field is not None:
            columns.append(self._tags_column())
        if self.spec.vector_field is not None:
            columns.append(self._vector_column())
        return f'SELECT {", ".join(columns)} FROM "{self.table}"'

    def _vector_column(self) -> str:
        """The vector as a subquery, which runs for returned rows only; a join would read it for all sorted ones."""
        table = self._names.embeddings
        return (
            f"(SELECT {table}.embedding FROM {table} WHERE {table}.memory_type = '{self.spec.kind}' "
            f'AND {table}.memory_id = "{self.table}"."{self.spec.key}" '
            f"AND {table}.model = {self._names.parameter('p0')} AND {table}.part = 0)"
        )

    def _tags_column(self) -> str:
        tags = self._names.tags
        on_sqlite = self._names.dialect == "sqlite"
        gather, empty = ("json_group_array", "'[]'") if on_sqlite else ("array_agg", "ARRAY[]::text[]")
        own = f'{tags}.memory_id = "{self.table}"."{self.spec.key}"'
        return f"coalesce((SELECT {gather}({tags}.tag) FROM {tags} WHERE {own}), {empty})"

    # ------------------------------------------------------------------ writing

    def insert(self, *extra: str) -> str:
        """The INSERT of a row: further columns, then those of `rows`."""
        columns = (*extra, *self.columns)
        names = ", ".join(f'"{name}"' for name in columns)
        return f'INSERT INTO "{self.table}" ({names}) VALUES ({", ".join([self._names.mark] * len(columns))})'

    def update(self, *extra: str) -> str:
        """The UPDATE of a row: further columns, then those of `rows`, then the key."""
        mark = self._names.mark
        changes = ", ".join(f'"{name}" = {mark}' for name in (*extra, *self.columns))
        return f'UPDATE "{self.table}" SET {changes} WHERE "{self.spec.key}" = {mark}'
