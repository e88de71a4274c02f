"""The statements of one kind in one dialect: written by SQLAlchemy Core once per shape, then only executed."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

import sqlalchemy as sa

from alma.model.fields import FieldType
from alma.model.memory import MemoryVersion
from alma.model.query import Predicate
from alma.model.record import FieldSpec, Record, RecordSpec
from alma.model.vector import Vector
from alma.storage.document import timestamp_of, timestamp_text
from alma.storage.primitives import Query
from alma.storage.ranking import Remembered
from alma.storage.sql.clauses import Bindings, Clauses, Values, limited
from alma.storage.sql.schema import DialectName, Schema

Encoder = Callable[[Any], Any]
_encode_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_MOST_REMEMBERED_SHAPES = 2000


def _to_json(value: Any) -> str:
    # Most metadata is empty, and saying so need not start an encoder.
    return _encode_json(value) if value else "{}" if isinstance(value, dict) else "[]"


def _utc(moment: datetime) -> datetime:
    # The session's time zone is UTC; the driver only spells it differently.
    return moment.replace(tzinfo=UTC)


def _vector(value: Vector | bytes) -> Vector:
    # Without pgvector the column holds bytes.
    return value if isinstance(value, Vector) else Vector.from_bytes(value)


_SQLITE_ENCODERS: dict[FieldType, Encoder] = {
    FieldType.TIMESTAMP: timestamp_text,
    FieldType.JSON: _to_json,
    FieldType.STRINGS: _to_json,
}
_SQLITE_DECODERS: dict[FieldType, Encoder] = {
    FieldType.TIMESTAMP: timestamp_of,
    FieldType.BOOLEAN: bool,
    FieldType.JSON: json.loads,
    FieldType.STRINGS: lambda text: tuple(json.loads(text)),
    FieldType.TAGS: lambda text: tuple(sorted(json.loads(text))),
    FieldType.VECTOR: Vector.from_bytes,
}
_POSTGRES_ENCODERS: dict[FieldType, Encoder] = {FieldType.JSON: _to_json, FieldType.STRINGS: _to_json}
_POSTGRES_DECODERS: dict[FieldType, Encoder] = {
    FieldType.TIMESTAMP: _utc,
    FieldType.STRINGS: tuple,
    FieldType.TAGS: lambda tags: tuple(sorted(tags)),
    FieldType.VECTOR: _vector,
}


def sql_writer(name: DialectName) -> sa.Dialect:
    """SQLAlchemy's idea of a database; only the one that is used is loaded."""
    if name == "sqlite":
        from sqlalchemy.dialects import sqlite

        return sqlite.dialect(paramstyle="named")
    from sqlalchemy.dialects.postgresql import psycopg

    return psycopg.dialect()  # type: ignore[no-untyped-call]


class Dialect:
    """How one database spells SQL and values; shared by all transactions of a store."""

    def __init__(self, name: DialectName) -> None:
        self.name: DialectName = name
        self.schema = Schema(name)
        self._writer = sql_writer(name)
        self._encoders = _SQLITE_ENCODERS if name == "sqlite" else _POSTGRES_ENCODERS
        self._decoders = _SQLITE_DECODERS if name == "sqlite" else _POSTGRES_DECODERS
        self._kinds: dict[str, KindStatements] = {}
        # What the store's models are known to have committed to, so that not every write must ask.
        self.vector_lengths: dict[str, int] = {}
        # On SQLite they last while the table keeps its size, on a server for a minute.
        self.word_counts = Remembered(slack=0.02 if name == "sqlite" else 0)

    def kind(self, spec: RecordSpec) -> KindStatements:
        statements = self._kinds.get(spec.kind)
        if statements is None:
            statements = self._kinds[spec.kind] = KindStatements(self, spec)
        return statements

    def sql(self, statement: sa.ClauseElement) -> str:
        """The statement as text, with named parameters."""
        return str(statement.compile(dialect=self._writer))

    def encode(self, field_type: FieldType, value: Any) -> Any:
        encoder = self._encoders.get(field_type)
        return value if encoder is None else encoder(value)

    def timestamp_decoder(self, value: Any) -> datetime:
        """The instant a timestamp column holds."""
        moment: datetime = self._decoders[FieldType.TIMESTAMP](value)
        return moment

    def encoder(self, field: FieldSpec) -> Encoder | None:
        return str if field.choices is not None else self._encoders.get(field.type)

    def decoder(self, field: FieldSpec) -> Encoder | None:
        if field.choices is not None:
            return field.choices
        return self._decoders.get(field.type)


class KindStatements:
    """Everything that is read from and written to the table of one kind."""

    def __init__(self, dialect: Dialect, spec: RecordSpec) -> None:
        self.spec = spec
        self.table = dialect.schema.tables[spec.kind]
        self.clauses = Clauses(dialect.schema, spec, dialect.encode)
        self._dialect = dialect
        self._shapes: dict[Hashable, str] = {}
        self.columns = tuple(field.name for field in spec.stored if not (spec.numbered and field.name == spec.key))
        self._values_of = attrgetter(*self.columns)
        encoders = (dialect.encoder(spec.by_name[name]) for name in self.columns)
        self._encoders = tuple((i, encode) for i, encode in enumerate(encoders) if encode is not None)
        self._decoders = tuple((field.name, dialect.decoder(field)) for field in self._read_fields())

    def _read_fields(self) -> list[FieldSpec]:
        apart = (self.spec.tags_field, self.spec.vector_field)
        return [*self.spec.stored, *(self.spec.by_name[name] for name in apart if name is not None)]

    # ------------------------------------------------------------------ rows

    def row(self, record: Record) -> list[Any]:
        """The record's columns, encoded, in the order of `columns`."""
        values = list(self._values_of(record))
        for i, encode in self._encoders:
            if values[i] is not None:
                values[i] = encode(values[i])
        return values

    def record(self, row: Sequence[Any]) -> Record:
        """The record a selected row holds."""
        values = {
            name: value if value is None or decode is None else decode(value)
            for (name, decode), value in zip(self._decoders, row, strict=False)
        }
        return self.spec.cls.trusted(values)  # type: ignore[no-any-return]

    # ------------------------------------------------------------------ reading

    def select(self, query: Query, model: str) -> tuple[str, Mapping[str, Any]]:
        """The SQL and parameters of a query."""
        sql = self.remembered(("select", self._shape(query)), lambda: self._select_statement(query))
        return sql, self._select_values(query, model)

    def _shape(self, query: Query) -> Hashable:
        return (
            self.clauses.shape(query.where),
            query.order,
            query.limit is None,
            self.clauses.cursor_shape(query.after),
            query.for_update,
        )

    def select_unchanged(self, query: Query, model: str, moment: Any) -> tuple[str, Mapping[str, Any]]:
        """The SQL and parameters of a query for the records whose newest version was recorded by then."""

        def write() -> sa.ClauseElement:
            versions = self._dialect.schema.tables[MemoryVersion.spec.kind]
            newest = (
                sa.select(versions.c.created_at)
                .where(
                    versions.c.memory_id == self.table.c[self.spec.key],
                    versions.c.kind == sa.literal_column(f"'{self.spec.kind}'"),
                )
                .order_by(versions.c.version_number.desc())
                .suffix_with(sa.text("LIMIT 1"))
                .correlate(self.table)
                .scalar_subquery()
            )
            return self._select_statement(query).where(newest <= sa.bindparam("as_of", type_=sa.types.NullType()))

        sql = self.remembered(("unchanged", self._shape(query)), write)
        return sql, {**self._select_values(query, model), "as_of": moment}

    def select_values(self, query: Query, names: Sequence[str]) -> tuple[str, Mapping[str, Any]]:
        """The SQL and parameters of a query for some columns alone."""

        def write() -> sa.ClauseElement:
            bind = Bindings()
            statement = sa.select(*(self.table.c[name] for name in names)).select_from(self.table)
            statement = statement.where(self.clauses.condition(query.where, bind))
            statement = statement.order_by(*self.clauses.order_by(query.order))
            return statement if query.limit is None else limited(statement, bind.add(query.limit))

        values = Values()
        self.clauses.collect(query.where, values)
        if query.limit is not None:
            values.put(query.limit)
        shape = ("values", tuple(names), self.clauses.shape(query.where), query.order, query.limit is None)
        return self.remembered(shape, write), values.values

    def count(self, where: Predicate) -> tuple[str, Mapping[str, Any]]:
        """The SQL and parameters of a count."""

        def write() -> sa.ClauseElement:
            counted = sa.select(sa.func.count()).select_from(self.table)
            return counted.where(self.clauses.condition(where, Bindings()))

        values = Values()
        self.clauses.collect(where, values)
        return self.remembered(("count", self.clauses.shape(where)), write), values.values

    def condition(self, where: Predicate) -> tuple[str, dict[str, Any]]:
        """The SQL and parameters of a predicate alone, for statements that are written around it."""
        values = Values()
        self.clauses.collect(where, values)
        shape = ("condition", self.clauses.shape(where))
        return self.remembered(shape, lambda: self.clauses.condition(where, Bindings())), values.values

    def selection(self, model: sa.BindParameter[Any] | None) -> sa.Select[Any]:
        """All that makes up a record: its columns, its tags and its vector of the given model."""
        columns: list[Any] = [self.table.c[field.name] for field in self.spec.stored]
        if self.spec.tags_field is not None:
            columns.append(self._tags_column())
        if self.spec.vector_field is not None:
            columns.append(self._vector_column(model))
        return sa.select(*columns).select_from(self.table)

    def _vector_column(self, model: sa.BindParameter[Any] | None) -> Any:
        """A subquery, not a join: it runs for the rows that are returned, not for all that are sorted."""
        embeddings = self._dialect.schema.embeddings
        vector: sa.Select[Any] = sa.select(sa.literal_column(f"{embeddings.name}.embedding")).where(
            embeddings.c.memory_type == sa.literal_column(f"'{self.spec.kind}'"),
            embeddings.c.memory_id == self.table.c[self.spec.key],
            embeddings.c.model == model,
            embeddings.c.part == sa.literal_column("0"),
        )
        return vector.correlate(self.table).scalar_subquery()

    def remembered(self, shape: Hashable, write: Callable[[], sa.ClauseElement | str]) -> str:
        """The SQL of a statement, written when its shape is met for the first time."""
        sql = self._shapes.get(shape)
        if sql is None:
            statement = write()
            sql = statement if isinstance(statement, str) else self._dialect.sql(statement)
            if len(self._shapes) >= _MOST_REMEMBERED_SHAPES:
                self._shapes.clear()
            self._shapes[shape] = sql
        return sql

    def _select_statement(self, query: Query) -> sa.Select[Any]:
        bind = Bindings()
        statement = self.selection(bind.add("the model")).where(self.clauses.condition(query.where, bind))
        if query.after is not None:
            statement = statement.where(self.clauses.behind(query.after, query.order, bind))
        statement = statement.order_by(*self.clauses.order_by(query.order))
        if query.limit is not None:
            statement = limited(statement, bind.add(query.limit))
        if query.for_update and self._dialect.name == "postgresql":
            statement = statement.with_for_update(of=self.table)
        return statement

    def _select_values(self, query: Query, model: str) -> Mapping[str, Any]:
        values = Values()
        values.put(model)
        self.clauses.collect(query.where, values)
        if query.after is not None:
            self.clauses.collect_cursor(query.after, query.order, values)
        if query.limit is not None:
            values.put(query.limit)
        return values.values

    def _tags_column(self) -> Any:
        tags = self._dialect.schema.tags
        gather = sa.func.json_group_array if self._dialect.name == "sqlite" else sa.func.array_agg
        empty: sa.ColumnClause[Any] = sa.literal_column("'[]'" if self._dialect.name == "sqlite" else "ARRAY[]::text[]")
        gathered = sa.select(gather(tags.c.tag)).where(tags.c.memory_id == self.table.c[self.spec.key])
        return sa.func.coalesce(gathered.correlate(self.table).scalar_subquery(), empty)
