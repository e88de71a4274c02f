"""Predicates, orders and cursors as SQL: the text depends on a query's shape alone, values are always bound."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, assert_never

import sqlalchemy as sa

from alma.model.fields import FieldType
from alma.model.query import And, Compare, Cursor, Has, In, Missing, Or, Order, Predicate
from alma.model.record import RecordSpec
from alma.storage.sql.schema import Schema


class Values:
    """Collects the values of a statement under the names p0, p1, … in the order they are met."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def put(self, value: Any) -> str:
        name = f"p{len(self.values)}"
        self.values[name] = value
        return name


class Bindings(Values):
    """Collects values while a statement is written, giving it a parameter for each."""

    def add(self, value: Any) -> sa.BindParameter[Any]:
        return sa.bindparam(self.put(value), type_=sa.types.NullType())


def limited(statement: sa.Select[Any], most: sa.BindParameter[Any]) -> sa.Select[Any]:
    """The statement with a bound limit and nothing else: SQLAlchemy would add an OFFSET with a value of its own."""
    return statement.suffix_with(sa.text(f"LIMIT :{most.key}"))


class Clauses:
    """Writes the conditions of one kind's table in one dialect, encoding values as that dialect stores them."""

    def __init__(self, schema: Schema, spec: RecordSpec, encode: Callable[[FieldType, Any], Any]) -> None:
        self._schema = schema
        self._spec = spec
        self._table = schema.tables[spec.kind]
        self._encode = encode

    # ------------------------------------------------------------------ predicates

    def shape(self, predicate: Predicate) -> Hashable:
        """What determines the SQL of a predicate: everything but its values."""
        match predicate:
            case Compare(name, op, _):
                return name, op
            case In(name, values):
                return name, "in", len(values) if self._spelled_out(name) else bool(values)
            case Missing(name):
                return name, "missing"
            case Has(name, _):
                return name, "has"
            case And(parts):
                return "and", tuple(self.shape(part) for part in parts)
            case Or(parts):
                return "or", tuple(self.shape(part) for part in parts)
        assert_never(predicate)

    def condition(self, predicate: Predicate, bind: Bindings, by: str | None = None) -> sa.ColumnElement[bool]:
        """The predicate as SQL; `by` names the field by which a statement around it looks records up."""
        leading = by if by is not None and self._schema.dialect == "sqlite" else self._leading(predicate)
        return self._condition(predicate, bind, leading)

    def _condition(self, predicate: Predicate, bind: Bindings, leading: str | None) -> sa.ColumnElement[bool]:
        match predicate:
            case Compare(name, op, value):
                return self._comparison(self._column(name, leading), op, bind.add(self._value(name, value)))
            case In(name, values):
                return self._membership(name, self._column(name, leading), values, bind)
            case Missing(name):
                return self._column(name, leading).is_(None)
            case Has(name, value):
                return self._containment(name, bind.add(value))
            case And(parts):
                return sa.and_(sa.true(), *(self._condition(part, bind, leading) for part in parts))
            case Or(parts):
                return sa.or_(sa.false(), *(self._condition(part, bind, leading) for part in parts))
        assert_never(predicate)

    def _leading(self, predicate: Predicate) -> str | None:
        """The field by which SQLite must look records up, where a predicate names a few: their keys, or a session.

        Without statistics SQLite takes any equal comparison for as good as any other, and would rather go through all
        records of a project than look up the five that are asked for.
        """
        if self._schema.dialect != "sqlite":
            return None
        given = set(_given(predicate))
        return next((name for name in (self._spec.key, "session_id") if name in given), None)

    def _column(self, name: str, leading: str | None) -> sa.ColumnElement[Any]:
        column = self._table.c[name]
        if leading is None or name == leading:
            return column
        # A plus sign changes nothing but keeps SQLite from using an index of this column.
        return sa.literal_column(f'+"{self._table.name}"."{name}"')

    def collect(self, predicate: Predicate, values: Values) -> None:
        """Collect a predicate's values in the order `condition` does."""
        match predicate:
            case Compare(name, _, value):
                values.put(self._value(name, value))
            case In(name, members):
                self._collect_members(name, members, values)
            case Missing():
                pass
            case Has(_, value):
                values.put(value)
            case And(parts) | Or(parts):
                for part in parts:
                    self.collect(part, values)

    def _value(self, name: str, value: Any) -> Any:
        return self._encode(self._spec.by_name[name].type, value)

    def _comparison(self, column: sa.ColumnElement[Any], op: str, value: Any) -> sa.ColumnElement[bool]:
        compared: sa.ColumnElement[bool] = getattr(operator, op)(column, value)
        return compared

    def _spelled_out(self, name: str) -> bool:
        """Floats go to SQLite as bound values: its reading of JSON numbers may differ in the last digit."""
        return self._schema.dialect == "sqlite" and self._spec.by_name[name].type is FieldType.FLOAT

    def _membership(
        self, name: str, column: sa.ColumnElement[Any], values: Sequence[Any], bind: Bindings
    ) -> sa.ColumnElement[bool]:
        if not values:
            return sa.false()
        if self._spelled_out(name):
            return column.in_([bind.add(self._value(name, value)) for value in values])
        members = bind.add(self._members(name, values))
        if self._schema.dialect == "sqlite":
            each = sa.func.json_each(members).table_valued("value")
            return column.in_(sa.select(each.c.value))
        return column == sa.func.any(members)

    def _collect_members(self, name: str, members: Sequence[Any], values: Values) -> None:
        if not members:
            return
        if self._spelled_out(name):
            for member in members:
                values.put(self._value(name, member))
        else:
            values.put(self._members(name, members))

    def _members(self, name: str, values: Sequence[Any]) -> Any:
        encoded = [self._value(name, value) for value in values]
        return self._encode(FieldType.STRINGS, encoded) if self._schema.dialect == "sqlite" else encoded

    def _containment(self, name: str, value: sa.BindParameter[Any]) -> sa.ColumnElement[bool]:
        if self._spec.by_name[name].type is FieldType.TAGS:
            tags = self._schema.tags
            # Spelled out: a condition that is written alone has no outer query that SQLAlchemy could correlate it with.
            record: sa.ColumnClause[Any] = sa.literal_column(f'"{self._table.name}"."{self._spec.key}"')
            return sa.exists().where(tags.c.memory_id == record, tags.c.tag == value)
        column = self._table.c[name]
        if self._schema.dialect == "sqlite":
            each = sa.func.json_each(column).table_valued("value")
            return sa.exists(sa.select(sa.literal_column("1")).select_from(each).where(each.c.value == value))
        return sa.func.jsonb_exists(column, value)

    # ------------------------------------------------------------------ order and pages

    def order_by(self, order: Sequence[Order]) -> list[sa.ColumnElement[Any]]:
        """The sort terms: missing values last either way, then the key."""
        terms: list[sa.ColumnElement[Any]] = []
        for term in order:
            column = self._table.c[term.field]
            if self._spec.by_name[term.field].nullable:
                terms.append(column.is_(None).asc())
            terms.append(column.asc() if term.direction == "asc" else column.desc())
        return [*terms, self._table.c[self._spec.key].asc()]

    def cursor_shape(self, cursor: Cursor | None) -> Hashable:
        return None if cursor is None else tuple(value is None for value in cursor.values)

    def behind(self, cursor: Cursor, order: Sequence[Order], bind: Bindings) -> sa.ColumnElement[bool]:
        """Records that sort after the cursor: equal in the first terms, later in the next."""
        alternatives: list[sa.ColumnElement[bool]] = []
        equal: list[sa.ColumnElement[bool]] = []
        for term, value in zip(order, cursor.values, strict=True):
            column = self._table.c[term.field]
            if value is None:
                equal.append(column.is_(None))
                continue
            bound = bind.add(self._value(term.field, value))
            later = column > bound if term.direction == "asc" else column < bound
            alternatives.append(sa.and_(*equal, sa.or_(later, column.is_(None))))
            equal.append(column == bound)
        key = self._table.c[self._spec.key]
        alternatives.append(sa.and_(*equal, key > bind.add(cursor.key)))
        return sa.or_(sa.false(), *alternatives)

    def collect_cursor(self, cursor: Cursor, order: Sequence[Order], values: Values) -> None:
        """Collect a cursor's values in the order `behind` does."""
        for term, value in zip(order, cursor.values, strict=True):
            if value is not None:
                values.put(self._value(term.field, value))
        values.put(cursor.key)


def _given(predicate: Predicate) -> Iterator[str]:
    """The fields of which a predicate allows certain values only."""
    match predicate:
        case Compare(name, "eq", _) | In(name, _):
            yield name
        case And(parts):
            for part in parts:
                yield from _given(part)
