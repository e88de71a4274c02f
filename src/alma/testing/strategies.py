"""Hypothesis strategies derived from the field specs: records, and predicates and orders for them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from alma.model.fields import LONGEST_NAME, ORDERED, SORTABLE, FieldSpec, FieldType, MaxLength, NotEmpty
from alma.model.query import And, At, Compare, Has, In, Missing, Or, Order, Predicate
from alma.model.record import Record, RecordSpec
from alma.model.vector import Vector

T = TypeVar("T", bound=Record)

_LONGEST_TRIED = 40
_INT64 = 1 << 63


def texts(field: FieldSpec | None = None) -> SearchStrategy[str]:
    """Any valid text: every script, quotes, SQL, control characters; no NUL and no lone surrogate."""
    rules = () if field is None else field.rules
    longest = min([_LONGEST_TRIED, *(rule.characters for rule in rules if isinstance(rule, MaxLength))])
    plain = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=longest)
    tricky = st.sampled_from(["'; DROP TABLE users; --", '"', "%s", ":p0", "\\", "a'b", "?", "é", "日本語", "😀", "\n"])
    chosen = st.one_of(plain, tricky)
    if any(isinstance(rule, NotEmpty) for rule in rules):
        return chosen.filter(lambda text: bool(text) and not text.isspace())
    return chosen


def timestamps() -> SearchStrategy[datetime]:
    """Any time that a record can have."""
    return st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1)).map(  # noqa: DTZ001
        lambda moment: moment.replace(tzinfo=UTC, fold=0)
    )


def _scalars() -> SearchStrategy[Any]:
    number = st.one_of(st.integers(-(10**30), 10**30), st.floats(allow_nan=False, allow_infinity=False))
    return st.one_of(st.none(), st.booleans(), number, texts())


def json_objects() -> SearchStrategy[dict[str, Any]]:
    """Any JSON object, a few levels deep."""
    text = texts()
    value = st.recursive(
        _scalars(), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3), max_leaves=6
    )
    return st.dictionaries(text, value, max_size=3)


def vectors(dims: int) -> SearchStrategy[Vector]:
    """Any vector of that many dimensions."""
    return st.lists(st.floats(-1e6, 1e6, width=32), min_size=dims, max_size=dims).map(Vector)


def records(cls: type[T], dims: int = 4, **fixed: SearchStrategy[Any]) -> SearchStrategy[T]:
    """Any record of a kind; `fixed` are strategies for some of its fields."""
    fields = {field.name: _values(field, dims) for field in cls.spec.primary if field.name not in fixed}
    if cls.spec.numbered:
        fields[cls.spec.key] = st.none()
    distinct = cls.spec.distinct
    values = st.fixed_dictionaries({**fields, **fixed}).filter(lambda v: all(v[a] != v[b] for a, b in distinct))
    return values.map(lambda values: cls(**values))


def predicates(spec: RecordSpec, known: list[Record]) -> SearchStrategy[Predicate]:
    """Predicates over a kind, most of them with values of known records."""
    simple = st.sampled_from([field for field in spec.primary if field.type is not FieldType.VECTOR]).flatmap(
        lambda field: _condition(field, known)
    )
    several = st.lists(simple, max_size=3)
    joined = several.map(lambda parts: And(*parts)) | several.map(lambda parts: Or(*parts))
    return simple | joined | st.tuples(joined, joined).map(lambda pair: And(*pair))


def orders(spec: RecordSpec) -> SearchStrategy[tuple[Order, ...]]:
    """Orders by up to three fields."""
    names = [field.name for field in spec.stored if field.type in SORTABLE]
    term = st.builds(Order, st.sampled_from(names), st.sampled_from(["asc", "desc"]))
    return st.lists(term, max_size=3, unique_by=lambda each: each.field).map(tuple)


def _values(field: FieldSpec, dims: int) -> SearchStrategy[Any]:
    values = _required_values(field, dims)
    return st.none() | values if field.nullable else values


def _required_values(field: FieldSpec, dims: int) -> SearchStrategy[Any]:
    if field.choices is not None:
        return st.sampled_from(list(field.choices))
    match field.type:
        case FieldType.TEXT:
            return texts(field)
        case FieldType.INTEGER | FieldType.FLOAT:
            return _numbers(field)
        case FieldType.BOOLEAN:
            return st.booleans()
        case FieldType.TIMESTAMP:
            return timestamps()
        case FieldType.JSON:
            return json_objects()
        case FieldType.STRINGS:
            return st.lists(texts(), max_size=3)
        case FieldType.TAGS:
            return st.lists(texts().filter(lambda tag: 0 < len(tag.strip()) <= LONGEST_NAME), max_size=3)
        case FieldType.VECTOR:
            return vectors(dims)


def _numbers(field: FieldSpec) -> SearchStrategy[Any]:
    low, high = (field.range.low, min(field.range.high, _INT64 - 1)) if field.range else (-_INT64, _INT64 - 1)
    if field.type is FieldType.INTEGER:
        return st.integers(int(low), _INT64 - 1 if high >= _INT64 else int(high))
    return st.floats(float(low), float(high), allow_nan=False, allow_infinity=False)


def _condition(field: FieldSpec, known: list[Record]) -> SearchStrategy[Predicate]:
    seen = [value for record in known if (value := getattr(record, field.name)) is not None]
    if field.type in (FieldType.TAGS, FieldType.STRINGS):
        members = [member for value in seen for member in value]
        return _seen_or(members, texts()).map(lambda member: Has(field.name, member))
    missing: SearchStrategy[Predicate] = st.just(Missing(field.name))
    if field.type is FieldType.JSON:
        inside = [place for value in seen for place in _places(value)]
        anywhere = st.tuples(st.lists(texts(), min_size=1, max_size=2), _scalars())
        located = _seen_or(inside, anywhere).map(lambda place: At(field.name, *place))
        return missing | located
    value = _seen_or(seen, _plain_values(field))
    operators = ["eq", "ne", "lt", "le", "gt", "ge"] if field.type in ORDERED else ["eq", "ne"]
    compared: SearchStrategy[Predicate] = st.builds(Compare, st.just(field.name), st.sampled_from(operators), value)
    member: SearchStrategy[Predicate] = st.lists(value, max_size=3).map(lambda values: In(field.name, values))
    return compared | member | missing


def _places(document: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The paths of all texts, numbers, booleans and nulls in a document."""
    if isinstance(document, dict):
        for key, value in document.items():
            yield from _places(value, (*path, key))
    elif isinstance(document, list):
        yield from ((path, value) for value in document if not isinstance(value, dict | list))
    else:
        yield path, document


def _plain_values(field: FieldSpec) -> SearchStrategy[Any]:
    """Values of the field's type; a query may also have values that are invalid in a record."""
    if field.type is FieldType.TEXT:
        return texts()
    return _required_values(field, dims=1)


def _seen_or(seen: list[Any], other: SearchStrategy[Any]) -> SearchStrategy[Any]:
    return st.one_of(st.sampled_from(seen), other) if seen else other
