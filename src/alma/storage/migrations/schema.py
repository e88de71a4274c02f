"""Generate tables from record specifications: columns, constraints and indexes for each dialect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from alma.model.fields import FieldSpec, FieldType
from alma.model.kinds import KINDS
from alma.model.record import Index, RecordSpec, Unique
from alma.storage.sql.clauses import DialectName, Names

_SQLITE_TYPES: dict[FieldType, sa.types.TypeEngine[Any]] = {
    FieldType.TEXT: sa.Text(),
    FieldType.INTEGER: sa.Integer(),
    FieldType.FLOAT: sa.REAL(),
    FieldType.BOOLEAN: sa.Boolean(),
    FieldType.TIMESTAMP: sa.Text(),
    FieldType.JSON: sa.Text(),
    FieldType.STRINGS: sa.Text(),
}


def _postgres_types() -> dict[FieldType, sa.types.TypeEngine[Any]]:
    # Imported lazily: importing a dialect takes longer than opening a store.
    from sqlalchemy.dialects.postgresql import JSONB

    return {
        # Text is compared bytewise in every store, so that order and pages do not depend on the server's locale.
        FieldType.TEXT: sa.Text(collation="C"),
        FieldType.INTEGER: sa.BigInteger(),
        FieldType.FLOAT: sa.Double(),
        FieldType.BOOLEAN: sa.Boolean(),
        FieldType.TIMESTAMP: sa.DateTime(timezone=True),
        FieldType.JSON: JSONB(),
        FieldType.STRINGS: JSONB(),
    }


# Numbers under which the Orchestrator's clients know rows of ours, on PostgreSQL.
_NUMBERS = {"memory_relationship": "relationship_id", "agent_state": "state_id"}
_EMPTY_JSON = {FieldType.JSON: "'{}'", FieldType.STRINGS: "'[]'"}


class Schema:
    """Every table of one dialect."""

    def __init__(self, dialect: DialectName) -> None:
        self.dialect: DialectName = dialect
        self.names = Names(dialect)
        self.metadata = sa.MetaData()
        self._types = _SQLITE_TYPES if dialect == "sqlite" else _postgres_types()
        self.tables = {cls.spec.kind: self._record_table(cls.spec) for cls in KINDS}
        self.tags = self._tags_table()
        self.embeddings = self._embeddings_table()
        self.models = self._models_table()
        self.projections = self._projections_table()
        self.outbox = self._outbox_table()
        self.audit_chains = self._audit_chains_table()
        if dialect == "postgresql":
            self._words_due_table()

    def column_type(self, field_type: FieldType) -> sa.types.TypeEngine[Any]:
        return self._types[field_type]

    # ------------------------------------------------------------------ records

    def _record_table(self, spec: RecordSpec) -> sa.Table:
        table = sa.Table(self.names.table(spec), self.metadata, *self._columns(spec), *self._checks(spec))
        for rule in spec.unique:
            self._unique_index(table, rule)
        for index in spec.indexes:
            self._index(table, index)
        if self.dialect == "postgresql" and spec.text:
            owners = sa.text(f"({self.names.owners(spec)})")
            sa.Index(f"idx_{spec.table}_content_fts", table.c.search, owners, postgresql_using="gin")
        if (number := self._number(spec)) is not None:
            sa.Index(f"uq_{spec.table}_{number}", table.c[number], unique=True)
        return table

    def _number(self, spec: RecordSpec) -> str | None:
        return _NUMBERS.get(spec.kind) if self.dialect == "postgresql" else None

    def _columns(self, spec: RecordSpec) -> Iterator[sa.Column[Any]]:
        # An explicit rowid: VACUUM may renumber implicit ones, which the full-text table references.
        apart = self.dialect == "sqlite" and bool(spec.text)
        if apart:
            yield sa.Column("seq", sa.Integer(), primary_key=True)
        for field in spec.stored:
            if field.name == spec.key:
                yield self._key_column(spec, field, primary=not apart)
            else:
                yield sa.Column(
                    field.name,
                    self.column_type(field.type),
                    nullable=field.nullable,
                    server_default=self._server_default(field),
                )
        if self.dialect == "postgresql" and spec.text:
            from sqlalchemy.dialects.postgresql import TSVECTOR

            yield sa.Column("search", TSVECTOR())
            yield sa.Column("search_length", sa.Integer(), nullable=False, server_default=sa.text("0"))
        if (number := self._number(spec)) is not None:
            yield sa.Column(number, sa.BigInteger(), sa.Identity(), nullable=False)

    def _key_column(self, spec: RecordSpec, field: FieldSpec, *, primary: bool) -> sa.Column[Any]:
        if spec.numbered and self.dialect == "postgresql":
            return sa.Column(field.name, sa.BigInteger(), sa.Identity(), primary_key=True)
        return sa.Column(
            field.name, self.column_type(field.type), primary_key=primary, unique=not primary or None, nullable=False
        )

    def _server_default(self, field: FieldSpec) -> Any:
        if field.nullable:
            return None
        if field.type in _EMPTY_JSON:
            return sa.text(_EMPTY_JSON[field.type])
        if field.default is None:
            return None
        match field.type:
            case FieldType.BOOLEAN:
                return sa.true() if field.default else sa.false()
            case FieldType.INTEGER | FieldType.FLOAT:
                return sa.text(repr(field.default))
            case FieldType.TEXT:
                return sa.text("'" + str(field.default).replace("'", "''") + "'")
            case _:
                return None

    def _checks(self, spec: RecordSpec) -> Iterator[sa.CheckConstraint]:
        name = self.names.table(spec)
        for field in spec.stored:
            if field.range is not None:
                limits = [f"{field.name} >= {field.range.low:g}"]
                if field.range.high != float("inf"):
                    limits.append(f"{field.name} <= {field.range.high:g}")
                yield sa.CheckConstraint(" AND ".join(limits), name=f"valid_{name}_{field.name}")
        for left, right in spec.distinct:
            yield sa.CheckConstraint(f"{left} <> {right}", name=f"distinct_{name}_{left}")

    def _unique_index(self, table: sa.Table, rule: Unique) -> None:
        columns: list[Any] = [table.c[name] for name in rule.fields]
        options: dict[str, Any] = {}
        if rule.nulls_equal and self.dialect == "sqlite":
            columns = [sa.func.coalesce(c, sa.literal_column("''")) if c.nullable else c for c in columns]
        elif rule.nulls_equal:
            options = self._options(nulls_not_distinct=True)
        sa.Index(rule.name, *columns, unique=True, **options)

    def _index(self, table: sa.Table, index: Index) -> None:
        dialect, _, method = (index.only or self.dialect).partition(":")
        if dialect != self.dialect:
            return
        where = None if index.where is None else sa.text(index.where)
        columns = [_index_column(table, column) for column in index.columns]
        sa.Index(index.name, *columns, **self._options(where=where, using=method or None))

    def _options(self, **options: Any) -> dict[str, Any]:
        """Options of a table or index for this dialect only: options of another one would make SQLAlchemy import it."""
        return {f"{self.dialect}_{name}": value for name, value in options.items() if value is not None}

    # ------------------------------------------------------------------ tables other than those of the records

    def _tags_table(self) -> sa.Table:
        text = self.column_type(FieldType.TEXT)
        key = sa.Integer() if self.dialect == "sqlite" else sa.BigInteger()
        table = sa.Table(
            self.names.tags,
            self.metadata,
            sa.Column("tag_id", key, *self._identity(), primary_key=True),
            sa.Column("memory_id", text, nullable=False),
            sa.Column("tag", text, nullable=False),
        )
        sa.Index("unique_memory_tag", table.c.memory_id, table.c.tag, unique=True)
        sa.Index("idx_memory_tags_memory_id", table.c.memory_id)
        # On a server an index-only scan finds the records with a tag.
        sa.Index("idx_memory_tags_tag", table.c.tag, *([table.c.memory_id] if self.dialect == "postgresql" else ()))
        return table

    def _embeddings_table(self) -> sa.Table:
        """Vectors of any model; the store creates the vector column itself, because its type depends on the server."""
        text = self.column_type(FieldType.TEXT)
        columns: list[sa.Column[Any]] = [
            sa.Column("memory_type", text, nullable=False),
            sa.Column("memory_id", text, nullable=False),
            sa.Column("model", text, nullable=False),
            # 0 is the record's own vector, 1 and on those of its passages.
            sa.Column("part", sa.Integer(), nullable=False, server_default=sa.text("0")),
            sa.Column("dims", sa.Integer(), nullable=False),
        ]
        if self.dialect == "sqlite":
            columns.insert(0, sa.Column("id", sa.Integer(), primary_key=True))
            columns.append(sa.Column("embedding", sa.LargeBinary(), nullable=False))
        else:
            columns.insert(0, sa.Column("id", sa.BigInteger(), sa.Identity(), primary_key=True))
            columns.append(
                sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False)
            )
        name = self.names.embeddings
        # Ids that are never reused tell an index which vectors are new.
        table = sa.Table(name, self.metadata, *columns, **self._options(autoincrement=self.dialect == "sqlite" or None))
        key = (table.c.memory_type, table.c.memory_id, table.c.model, table.c.part)
        sa.Index("idx_embeddings_type", *key, unique=True)
        return table

    def _models_table(self) -> sa.Table:
        text = self.column_type(FieldType.TEXT)
        return sa.Table(
            self.names.models,
            self.metadata,
            sa.Column("model", text, primary_key=True, nullable=False),
            sa.Column("dims", sa.Integer(), nullable=False),
        )

    def _projections_table(self) -> sa.Table:
        text = self.column_type(FieldType.TEXT)
        return sa.Table(
            self.names.projections,
            self.metadata,
            sa.Column("projection", text, primary_key=True, nullable=False),
            sa.Column("kind", text, primary_key=True, nullable=False),
        )

    def _outbox_table(self) -> sa.Table:
        text, moment = self.column_type(FieldType.TEXT), self.column_type(FieldType.TIMESTAMP)
        name = self.names.outbox
        table = sa.Table(
            name,
            self.metadata,
            sa.Column("projection", text, primary_key=True, nullable=False),
            sa.Column("kind", text, primary_key=True, nullable=False),
            sa.Column("record_id", text, primary_key=True, nullable=False),
            sa.Column("generation", sa.BigInteger(), nullable=False),
            sa.Column("marked_at", moment, nullable=False),
            sa.Column("leased_until", moment),
            sa.Column("attempts", sa.Integer(), nullable=False, server_default=sa.text("0")),
            sa.Column("error", text),
            sa.Column("parked", sa.Boolean(), nullable=False, server_default=sa.false()),
        )
        sa.Index(f"idx_{name}_marked", table.c.projection, table.c.marked_at)
        return table

    def _audit_chains_table(self) -> sa.Table:
        text, number = self.column_type(FieldType.TEXT), self.column_type(FieldType.INTEGER)
        return sa.Table(
            self.names.audit_chains,
            self.metadata,
            sa.Column("chain", number, *self._identity(), primary_key=True, nullable=False),
            sa.Column("length", number, nullable=False, server_default=sa.text("0")),
            sa.Column("hash", text, nullable=False, server_default=sa.text("''")),
            sa.Column("unchained", number, nullable=False, server_default=sa.text("0")),
        )

    def _words_due_table(self) -> None:
        """Records that SQL has written, whose words are indexed anew by the tokenizer of the records."""
        text = self.column_type(FieldType.TEXT)
        columns = (sa.Column(name, text, primary_key=True, nullable=False) for name in ("kind", "record_id"))
        sa.Table(self.names.words_due, self.metadata, *columns)

    def _identity(self) -> tuple[sa.Identity, ...]:
        return () if self.dialect == "sqlite" else (sa.Identity(),)


def _index_column(table: sa.Table, column: str) -> Any:
    name, _, direction = column.partition(" ")
    return table.c[name].desc() if direction == "DESC" else table.c[name]
