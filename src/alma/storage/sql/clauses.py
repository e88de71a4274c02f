"""Names of tables, and predicates, orders and cursors as SQL.

Names of columns come from the record specification, and values are bound parameters. Only booleans and, on request,
owners are literals, so that a server can reuse the query plan.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, assert_never

from alma.model.fields import FieldType
from alma.model.kinds import KINDS
from alma.model.query import And, At, Compare, Cursor, Has, In, Missing, Or, Order, Predicate
from alma.model.record import RecordSpec
from alma.storage.ranking import OWNERS

DialectName = Literal["sqlite", "postgresql"]
_WHOSE = ("project_id", "agent", "user_id")


class Names:
    """The names of one dialect's tables."""

    tags = "memory_tags"

    def __init__(self, dialect: DialectName) -> None:
        self.dialect: DialectName = dialect
        # The placeholder of a positional parameter.
        self.mark = "?" if dialect == "sqlite" else "%s"
        # The prefix of tables on a shared server.
        prefix = "alma_" if dialect == "postgresql" else ""
        self.embeddings = f"{prefix}embeddings"
        self.models = f"{prefix}embedding_models"
        self.projections = f"{prefix}projections"
        self.outbox = f"{prefix}outbox"
        self.audit_chains = f"{prefix}audit_chains"
        # On PostgreSQL alone.
        self.words_due = f"{prefix}words_due"

    def table(self, spec: RecordSpec) -> str:
        """The table of a kind."""
        return spec.postgres_table if self.dialect == "postgresql" else spec.table

    def fts_table(self, spec: RecordSpec) -> str:
        """The full-text table of a kind on SQLite."""
        return f"{spec.table}_fts"

    def owner_columns(self, spec: RecordSpec) -> list[str]:
        """The owner columns of a kind, except for the session, which has a separate index."""
        return [name for name in _WHOSE if name in spec.by_name]

    def owners(self, spec: RecordSpec) -> str:
        """The owners of a record, as in PostgreSQL's full-text index."""
        return f"ARRAY[{', '.join(self.owner_columns(spec))}]"

    def tables(self) -> Iterator[str]:
        """All tables except the full-text tables of SQLite."""
        yield from (self.table(cls.spec) for cls in KINDS)
        yield from (self.tags, self.embeddings, self.models, self.projections, self.outbox, self.audit_chains)
        if self.dialect == "postgresql":
            yield self.words_due

    def parameter(self, name: str) -> str:
        """The placeholder of a named parameter."""
        return f":{name}" if self.dialect == "sqlite" else f"%({name})s"


Encoder = Callable[[Any], Any]
Spelling = Callable[[str], str]
Shape = tuple[Any, ...]
_OPERATORS = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_MOST_IN_A_ROW = 200
_SEVERAL = (And, Or)


class Values:
    """Collects the parameters of a statement while it is built, named p0, p1, … or with another prefix. With `spell`,
    owners are literals in the statement. With `hides_sessions` the planner of a server does not see the list of
    sessions.
    """

    def __init__(
        self, names: Names, prefix: str = "p", *, spell: Spelling | None = None, hides_sessions: bool = False
    ) -> None:
        self._names = names
        self._prefix = prefix
        self.spell = spell
        self.hides_sessions = hides_sessions
        self.values: dict[str, Any] = {}

    def put(self, value: Any) -> str:
        """Bind a value; returns its placeholder."""
        return self._names.parameter(self.keep(value))

    def keep(self, value: Any) -> str:
        """Bind a value; returns the name of its parameter."""
        name = f"{self._prefix}{len(self.values)}"
        self.values[name] = value
        return name


class Clauses:
    """Builds the conditions for the table of a kind in one dialect, with values encoded for that dialect."""

    def __init__(self, names: Names, spec: RecordSpec, encoders: Mapping[FieldType, Encoder]) -> None:
        self._names = names
        self._spec = spec
        self._encoders = encoders
        self._encoder_of = {field.name: encoders.get(field.type) for field in spec.fields}
        self._on_sqlite = names.dialect == "sqlite"
        # SQLite may parse JSON numbers slightly differently, so lists of floats are not bound as one JSON value.
        one_by_one = {field.name for field in spec.fields if self._on_sqlite and field.type is FieldType.FLOAT}
        self._listed_at_once = frozenset(spec.by_name) - one_by_one
        table = names.table(spec)
        self._columns = {field.name: f'"{table}"."{field.name}"' for field in spec.stored}

    # ------------------------------------------------------------------ predicates

    def condition(self, predicate: Predicate, values: Values, by: str | None = None) -> str:
        """The condition for a predicate, in parentheses if it has several parts. `by` is the field by which the
        surrounding statement looks up records.
        """
        leading = by if by is not None and self._on_sqlite else self._leading(predicate, values.hides_sessions)
        return self._condition(predicate, values, leading)

    def shape(self, predicate: Predicate, values: Values) -> Shape | None:
        """A cache key that is equal for predicates that differ in values only; binds the values as `condition` does.
        None for a predicate whose SQL depends on its values; the bound values are useless then.
        """
        if isinstance(predicate, Compare):
            value = self._value(predicate.field, predicate.value)
            spelled = None if self._on_sqlite else self._spelled(predicate.field, value, values)
            if spelled is None:
                values.keep(value)
            return predicate.field, predicate.op, spelled
        if isinstance(predicate, _SEVERAL):
            shapes: list[Shape] = []
            for part in predicate.parts:
                shape = self.shape(part, values)
                if shape is None:
                    return None
                shapes.append(shape)
            return type(predicate), *shapes
        if isinstance(predicate, In) and predicate.values and predicate.field in self._listed_at_once:
            if values.spell is not None and predicate.field in OWNERS:
                return predicate.field, "in", predicate.values
            values.keep(self._members(predicate.field, predicate.values))
            return predicate.field, "in", len(predicate.values) == 1
        return (predicate.field, "missing") if isinstance(predicate, Missing) else None

    def _condition(self, predicate: Predicate, values: Values, leading: str | None) -> str:
        match predicate:
            case Compare(name, op, value):
                operand = self._operand(name, value, values, leading)
                return f"{self._column(name, leading)} {_OPERATORS[op]} {operand}"
            case In(name, members):
                return self._membership(name, self._column(name, leading), members, values, leading)
            case Missing(name):
                return f"{self._column(name, leading)} IS NULL"
            case Has(name, value):
                return self._containment(name, values.put(value))
            case At(name, path, value):
                return self._location(self._columns[name], path, value, values)
            case And(parts):
                return _joined(" AND ", [self._condition(part, values, leading) for part in parts]) or "true"
            case Or(parts):
                return _joined(" OR ", [self._condition(part, values, leading) for part in parts]) or "false"
        assert_never(predicate)

    def _leading(self, predicate: Predicate, hides_sessions: bool) -> str | None:
        """The field by which records are looked up if a predicate lists a few values: their keys, a session, or the
        record that an entry of the archive is about. Without statistics SQLite treats all equality conditions as
        equally selective, and might scan all records of a project instead of looking up five keys. A server does not
        need owners as literals for such lookups, which would prevent reuse of the plan.
        """
        if not self._on_sqlite:
            listed = _listed(predicate)
            if self._spec.key in listed and not self._spec.numbered:
                return self._spec.key
            return "session_id" if hides_sessions and "session_id" in listed else None
        given = set(_given(predicate))
        return next((name for name in (self._spec.key, "session_id", "record_id") if name in given), None)

    def _column(self, name: str, leading: str | None) -> str:
        column = self._columns[name]
        # A unary plus keeps SQLite from using an index on this column.
        return f"+{column}" if self._on_sqlite and leading is not None and name != leading else column

    def _operand(self, name: str, value: Any, values: Values, leading: str | None) -> str:
        encoded = self._value(name, value)
        spelled = self._spelled(name, encoded, values)
        if spelled is not None:
            return spelled
        bound = values.put(encoded)
        return f"(SELECT {bound})" if self._is_beside_keys(name, leading) and isinstance(encoded, str) else bound

    def _spelled(self, name: str, value: Any, values: Values) -> str | None:
        """The literal of a value; None for one that is bound."""
        if self._on_sqlite:
            return None
        # With a bound boolean the planner would assume a selectivity of one half, and plan every time.
        if isinstance(value, bool):
            return "true" if value else "false"
        return values.spell(value) if values.spell is not None and name in OWNERS and isinstance(value, str) else None

    def _value(self, name: str, value: Any) -> Any:
        encode = self._encoder_of[name]
        return value if encode is None else encode(value)

    def _is_beside_keys(self, name: str, leading: str | None) -> bool:
        """Whether a field is an owner in a server lookup by keys or sessions."""
        return not self._on_sqlite and leading is not None and name in OWNERS

    def _membership(self, name: str, column: str, members: Sequence[Any], values: Values, leading: str | None) -> str:
        if not members:
            return "false"
        if not self._on_sqlite:
            if values.spell is not None and name in OWNERS:
                return f"{column} IN ({', '.join(map(values.spell, members))})"
            listed = values.put(self._members(name, members))
            # A subquery hides the number of values, so that the server can reuse the plan.
            hidden = (name == self._spec.key and not self._spec.numbered) or self._is_beside_keys(name, leading)
            hidden = hidden or (values.hides_sessions and name == "session_id")
            return f"{column} = ANY({f'(SELECT {listed})::text[]' if hidden else listed})"
        if name not in self._listed_at_once:
            return f"{column} IN ({', '.join(map(values.put, members))})"
        listed = values.put(self._members(name, members))
        return f"{column} = {listed}" if len(members) == 1 else f"{column} IN (SELECT value FROM json_each({listed}))"

    def _members(self, name: str, members: Sequence[Any]) -> Any:
        """The members of a list as one parameter; on SQLite a single member is bound directly."""
        encode = self._encoder_of[name]
        encoded = list(members) if encode is None else [encode(member) for member in members]
        if not self._on_sqlite:
            return encoded
        return encoded[0] if len(encoded) == 1 else self._encoders[FieldType.JSON](encoded)

    def _containment(self, name: str, value: str) -> str:
        if self._spec.by_name[name].type is FieldType.TAGS:
            tags, key = self._names.tags, self._columns[self._spec.key]
            return f"EXISTS (SELECT 1 FROM {tags} WHERE {tags}.memory_id = {key} AND {tags}.tag = {value})"
        column = self._columns[name]
        if self._on_sqlite:
            return f"EXISTS (SELECT 1 FROM json_each({column}) WHERE json_each.value = {value})"
        return f"jsonb_exists({column}, {value})"

    def _location(self, column: str, path: Sequence[str], value: Any, values: Values) -> str:
        if self._on_sqlite:
            # Test for NULL first, so that the function is called only for existing documents.
            return f"({column} IS NOT NULL AND alma_holds_at({column}, {values.put(json.dumps([path, value]))}))"
        # The GIN index of JSON columns supports containment.
        documents = (json.dumps(_nested(path, each)) for each in (value, [value]))
        contained = (f"{column} @> {values.put(document)}::jsonb" for document in documents)
        return f"({column} IS NOT NULL AND {_joined(' OR ', list(contained))})"

    # ------------------------------------------------------------------ order and pages

    def order_by(self, order: Sequence[Order], where: Predicate) -> str:
        """The sort terms: NULLs last in both directions, then the key."""
        terms: list[str] = []
        leading = "" if self._is_sorted(where) else None
        for term in order:
            column = self._column(term.field, leading)
            indexed = term.field == self._spec.key or (term is order[0] and self._is_indexed(term, where))
            if self._spec.by_name[term.field].nullable and not indexed:
                terms.append(f"{column} IS NULL")
            terms.append(f"{column} {'ASC' if term.direction == 'asc' else 'DESC'}")
        return ", ".join((*terms, self._columns[self._spec.key]))

    def _is_indexed(self, term: Order, where: Predicate) -> bool:
        """Whether SQLite has an index with the matching records in this order. In a descending index, and in a rising
        one that is read backwards, NULLs are last already, and NULLS LAST would make SQLite sort.
        """
        if not self._on_sqlite or term.direction == "asc":
            return False
        given = frozenset(_given(where))
        return any(
            column in index.columns and given == frozenset(index.columns[: index.columns.index(column)])
            for index in self._spec.indexes
            if index.only in (None, "sqlite")
            for column in (term.field, f"{term.field} DESC")
        )

    def _is_sorted(self, where: Predicate) -> bool:
        """Whether SQLite must look up the matching records and sort them, instead of scanning all in order. A scan for
        several types with few records would read the whole project.
        """
        return self._on_sqlite and "memory_type" in _listed(where)

    def behind(self, cursor: Cursor, order: Sequence[Order], values: Values) -> str:
        """The condition for records after the cursor: equal in the first terms, greater in the next."""
        alternatives: list[str] = []
        equal: list[str] = []
        starting: list[str] = []
        for term, value in zip(order, cursor.values, strict=True):
            column = self._columns[term.field]
            if value is None:
                equal.append(f"{column} IS NULL")
                continue
            bound = values.put(self._value(term.field, value))
            sign = ">" if term.direction == "asc" else "<"
            later = f"{column} {sign} {bound}"
            if self._spec.by_name[term.field].nullable:
                later = f"({later} OR {column} IS NULL)"
            elif not alternatives and not equal:
                # Redundant, but lets the index scan start at the cursor.
                starting.append(f"{column} {sign}= {bound}")
            alternatives.append(_joined(" AND ", [*equal, later]))
            equal.append(f"{column} = {bound}")
        last = f"{self._columns[self._spec.key]} > {values.put(cursor.key)}"
        reached = _joined(" OR ", [*alternatives, _joined(" AND ", [*equal, last])])
        return _joined(" AND ", [*starting, reached])


def fields_of(predicate: Predicate) -> Iterator[str]:
    """The fields of a predicate."""
    if isinstance(predicate, And | Or):
        for part in predicate.parts:
            yield from fields_of(part)
    else:
        yield predicate.field


def _joined(word: str, parts: Sequence[str]) -> str:
    if len(parts) > _MOST_IN_A_ROW:
        # SQLite parses a chain of operators as a tree of that depth, which is limited, so it is split in halves.
        starts = range(0, len(parts), _MOST_IN_A_ROW)
        parts = [_joined(word, parts[start : start + _MOST_IN_A_ROW]) for start in starts]
        return _joined(word, parts)
    return f"({word.join(parts)})" if len(parts) > 1 else "".join(parts)


def _given(predicate: Predicate) -> Iterator[str]:
    """The fields that a predicate limits to certain values."""
    match predicate:
        case Compare(name, "eq", _) | In(name, _):
            yield name
        case And(parts):
            for part in parts:
                yield from _given(part)


def _listed(predicate: Predicate) -> set[str]:
    """The fields for which a predicate lists allowed values."""
    match predicate:
        case In(name, _):
            return {name}
        case And(parts):
            return {name for part in parts for name in _listed(part)}
    return set()


def _nested(path: Sequence[str], value: Any) -> Any:
    """The smallest document with the value at the keys."""
    for key in reversed(path):
        value = {key: value}
    return value
