"""Queries as values: predicates, sort orders and cursors, and their evaluation in Python. A comparison with a missing
value is false, in SQL and in Python. Negation is not supported, because SQL and Python would disagree on missing
values.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, assert_never, get_args

from alma.errors import ValidationError
from alma.model.fields import CHECKS, ORDERED, SORTABLE, FieldSpec, FieldType, canonical_json, check_text
from alma.model.record import Record, RecordSpec

Operator = Literal["eq", "ne", "lt", "le", "gt", "ge"]
Direction = Literal["asc", "desc"]

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {name: getattr(operator, name) for name in get_args(Operator)}
_DIRECTIONS = get_args(Direction)
Sought = str | int | float | bool | None | Mapping[str, Any]
_COLLECTIONS = (FieldType.TAGS, FieldType.STRINGS)
# A depth that every database can parse.
_DEEPEST = 20
_OPAQUE = (FieldType.JSON, FieldType.VECTOR, *_COLLECTIONS)


@dataclass(frozen=True, slots=True)
class Compare:
    """Compares a field with a value; ranges need numbers or timestamps."""

    field: str
    op: Operator
    value: Any


@dataclass(frozen=True, slots=True, init=False)
class In:
    """The field equals one of the values; false for an empty list."""

    field: str
    values: tuple[Any, ...]

    def __init__(self, field: str, values: Iterable[Any]) -> None:
        if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
            raise ValidationError("In", field, values, "needs a list of values")
        object.__setattr__(self, "field", field)
        object.__setattr__(self, "values", tuple(values))


@dataclass(frozen=True, slots=True)
class Missing:
    """The field has no value."""

    field: str


@dataclass(frozen=True, slots=True)
class Has:
    """The list or tags contain the value."""

    field: str
    value: str


@dataclass(frozen=True, slots=True, init=False)
class At:
    """The value at a path of keys in a JSON field equals the value, or is a list that contains it; `value` must not be
    a list.

    Numbers are compared by value, so 1 equals 1.0 but not True. None matches an explicit null. An object matches one
    that contains it: the same values for its keys, and at least the same members in its lists.
    """

    field: str
    path: tuple[str, ...]
    value: Sought

    def __init__(self, field: str, path: str | Iterable[str], value: Sought) -> None:
        object.__setattr__(self, "field", field)
        object.__setattr__(self, "path", (path,) if isinstance(path, str) else tuple(path))
        object.__setattr__(self, "value", value)

    def __hash__(self) -> int:
        # Objects are not hashable; they are distinguished by comparison.
        return hash((self.field, self.path, None if isinstance(self.value, Mapping) else self.value))


@dataclass(frozen=True, slots=True, init=False)
class And:
    """All parts are true; true without parts."""

    parts: tuple[Predicate, ...]

    def __init__(self, *parts: Predicate) -> None:
        object.__setattr__(self, "parts", parts)


@dataclass(frozen=True, slots=True, init=False)
class Or:
    """At least one part is true; false without parts."""

    parts: tuple[Predicate, ...]

    def __init__(self, *parts: Predicate) -> None:
        object.__setattr__(self, "parts", parts)


Predicate = Compare | In | Missing | Has | At | And | Or
EVERYTHING = And()


@dataclass(frozen=True, slots=True)
class Order:
    """A field to sort by; records without a value are last in both directions, with the id for tie-breaking."""

    field: str
    direction: Direction = "asc"


@dataclass(frozen=True, slots=True)
class Cursor:
    """The end of a page: the sort values and the id of its last record."""

    values: tuple[Any, ...]
    key: Any

    @classmethod
    def after(cls, record: Record, order: Sequence[Order] = ()) -> Cursor:
        """The cursor that continues after this record in this order."""
        return cls(tuple(getattr(record, term.field) for term in order), record.key)


def parsed(spec: RecordSpec, predicate: Predicate, depth: int = 0) -> Predicate:
    """The validated predicate, with values of the field types, or an error that names the invalid part.

    An And in an And, or an Or in an Or, is flattened.
    """
    if depth > _DEEPEST:
        raise ValidationError("predicate", None, predicate, f"must not be nested deeper than {_DEEPEST} levels")
    match predicate:
        case Compare(name, op, value):
            return Compare(name, op, _comparable(spec, name, op, value))
        case In(name, values):
            return In(name, _all_comparable(spec, name, values))
        case Missing(name):
            _plain(spec, name)
            return predicate
        case Has(name, value):
            return Has(name, _member(spec, name, value))
        case At(name, path, value):
            return At(name, _keys(spec, name, path), _sought(spec, name, value))
        case And():
            return And(*(parsed(spec, part, depth + 1) for part in _flat(predicate)))
        case Or():
            return Or(*(parsed(spec, part, depth + 1) for part in _flat(predicate)))
    raise ValidationError("predicate", None, predicate, "must be Compare, In, Missing, Has, At, And or Or")


def _flat(predicate: And | Or) -> list[Predicate]:
    """The parts of a predicate, with nested parts of the same kind flattened."""
    found: list[Predicate] = []
    waiting: list[Predicate] = [*reversed(predicate.parts)]
    while waiting:
        part = waiting.pop()
        if isinstance(part, And | Or) and type(part) is type(predicate):
            waiting.extend(reversed(part.parts))
        else:
            found.append(part)
    return found


def parsed_order(spec: RecordSpec, order: Sequence[Order]) -> tuple[Order, ...]:
    """The validated sort order."""
    for term in order if isinstance(order, list | tuple) else (None,):
        if not isinstance(term, Order):
            raise ValidationError(spec.kind, "order", order, "must be a list of Order, for example [Order('id')]")
        field = _plain(spec, term.field)
        if field.type not in SORTABLE:
            raise ValidationError(spec.kind, term.field, term, f"cannot be sorted by, it is {field.type.value}")
        if term.direction not in _DIRECTIONS:
            raise ValidationError("order", term.field, term.direction, "must be 'asc' or 'desc'")
    return tuple(order)


def parsed_cursor(spec: RecordSpec, order: Sequence[Order], cursor: Cursor) -> Cursor:
    """The validated cursor, with values of the sort field types."""
    if not isinstance(cursor, Cursor):
        raise ValidationError(
            "query", "after", cursor, "must be a Cursor, for example Cursor.after(last_record, order)"
        )
    if len(cursor.values) != len(order):
        raise ValidationError("cursor", None, cursor.values, f"must have {len(order)} values, one for each sort field")
    values = (spec.checked(term.field, value) for term, value in zip(order, cursor.values, strict=True))
    return Cursor(tuple(values), spec.checked(spec.key, cursor.key))


def matches(predicate: Predicate, record: Record) -> bool:
    """Whether the record fulfils the predicate; this is the reference for all stores."""
    match predicate:
        case Compare(name, op, value):
            actual = getattr(record, name)
            return actual is not None and _OPERATORS[op](actual, value)
        case In(name, values):
            return getattr(record, name) in values and getattr(record, name) is not None
        case Missing(name):
            return getattr(record, name) is None
        case Has(name, value):
            return value in (getattr(record, name) or ())
        case At(name, path, value):
            return holds_at(getattr(record, name), path, value)
        case And(parts):
            return all(matches(part, record) for part in parts)
        case Or(parts):
            return any(matches(part, record) for part in parts)
    assert_never(predicate)


def holds_at(document: Any, path: Sequence[str], value: Any) -> bool:
    """Whether a JSON value has this value at these keys, or a list that contains it."""
    for key in path:
        if not isinstance(document, dict) or key not in document:
            return False
        document = document[key]
    candidates = document if isinstance(document, list) else [document]
    return any(_holds(each, value) for each in candidates)


def _holds(one: Any, other: Any) -> bool:
    """Whether a JSON value equals or contains the other one."""
    if isinstance(other, dict):
        return isinstance(one, dict) and all(key in one and _holds(one[key], each) for key, each in other.items())
    if isinstance(other, list):
        return isinstance(one, list) and all(any(_holds(mine, each) for mine in one) for each in other)
    return _same_scalar(one, other)


def _same_scalar(one: Any, other: Any) -> bool:
    if isinstance(one, bool) or isinstance(other, bool) or one is None or other is None:
        return one is other
    return not isinstance(one, dict | list) and bool(one == other)


def sort_key(order: Sequence[Order]) -> Callable[[Record], Any]:
    """The key that sorts records by this order: missing values last, then the id."""

    def key(record: Record) -> Any:
        return (*(_sortable(getattr(record, term.field), term.direction) for term in order), record.key)

    return key


def is_after(record: Record, cursor: Cursor, order: Sequence[Order]) -> bool:
    """Whether the record comes after the cursor in this order."""
    position = (
        *(_sortable(value, term.direction) for term, value in zip(order, cursor.values, strict=True)),
        cursor.key,
    )
    return bool(sort_key(order)(record) > position)


@dataclass(frozen=True, slots=True, eq=True)
class _Reversed:
    """A value with reversed sort order."""

    value: Any

    def __lt__(self, other: _Reversed) -> bool:
        return bool(other.value < self.value)


def _sortable(value: Any, direction: Direction) -> tuple[bool, Any]:
    if value is None:
        return True, 0
    return False, value if direction == "asc" else _Reversed(value)


def _plain(spec: RecordSpec, name: str) -> FieldSpec:
    field = spec.field(name)
    if field.derived is not None:
        raise ValidationError(spec.kind, name, name, f"is computed; use {field.derived.source}")
    if field.type in (FieldType.VECTOR, FieldType.TAGS):
        raise ValidationError(spec.kind, name, name, f"cannot be compared, it is {field.type.value}")
    return field


def _comparable(spec: RecordSpec, name: str, op: str, value: Any) -> Any:
    field = _plain(spec, name)
    if op not in _OPERATORS:
        raise ValidationError(spec.kind, name, op, f"must be compared with one of {', '.join(_OPERATORS)}")
    if field.type in _OPAQUE:
        raise ValidationError(spec.kind, name, value, f"cannot be compared, it is {field.type.value}")
    if op not in ("eq", "ne") and field.type not in ORDERED:
        raise ValidationError(spec.kind, name, op, "has no ranges: only numbers and timestamps do")
    if value is None:
        raise ValidationError(spec.kind, name, value, "cannot be compared with None; use Missing")
    return _of_type(spec, field, value)


def _all_comparable(spec: RecordSpec, name: str, values: Sequence[Any]) -> tuple[Any, ...]:
    if not values:
        return ()
    first = _comparable(spec, name, "eq", values[0])
    check = CHECKS[spec.by_name[name].type]
    try:
        if check is check_text and {*map(type, values)} == {str}:
            # Check the types of all values at once.
            check_text("".join(values))
            return tuple(values)
        return first, *map(check, values[1:])
    except ValueError:
        # Repeat one by one for the error that names the value.
        return tuple(_comparable(spec, name, "eq", value) for value in values)


def _of_type(spec: RecordSpec, field: FieldSpec, value: Any) -> Any:
    """The value as the field's type; values that no record can have (priority 99) are valid and match nothing."""
    try:
        return CHECKS[field.type](value)
    except ValueError as exc:
        raise ValidationError(spec.kind, field.name, value, str(exc)) from None


def _member(spec: RecordSpec, name: str, value: Any) -> str:
    field = spec.field(name)
    if field.type not in _COLLECTIONS:
        raise ValidationError(spec.kind, name, value, "must be a list or tags field to search for a member")
    try:
        return str(field.member_check(value))
    except ValueError as exc:
        raise ValidationError(spec.kind, name, value, str(exc)) from None


def _keys(spec: RecordSpec, name: str, path: tuple[str, ...]) -> tuple[str, ...]:
    if spec.field(name).type is not FieldType.JSON:
        raise ValidationError(spec.kind, name, path, "must be a JSON field to search under keys")
    if not path:
        raise ValidationError(spec.kind, name, path, "must have at least one key")
    try:
        return tuple(check_text(key) for key in path)
    except ValueError as exc:
        raise ValidationError(spec.kind, name, path, f"must have text keys: one {exc}") from None


def _sought(spec: RecordSpec, name: str, value: Any) -> Any:
    if value is not None and not isinstance(value, str | int | float) and not (isinstance(value, dict) and value):
        known = "a text, a number, True, False, None or an object that is not empty"
        raise ValidationError(spec.kind, name, value, f"can be compared with {known} only")
    try:
        return canonical_json(value)
    except ValueError as exc:
        raise ValidationError(spec.kind, name, value, str(exc)) from None
