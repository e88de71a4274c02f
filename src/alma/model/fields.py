"""Field specifications: the type, constraints and validation of a field, derived from its annotation and default."""

from __future__ import annotations

import dataclasses
import math
import operator
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, StrEnum
from typing import Annotated, Any, Union, get_args, get_origin

from alma.model.vector import Vector

JsonValue = Any
JsonObject = dict[str, JsonValue]
Check = Callable[[Any], Any]

_INT64 = 1 << 63
_EXACT_FLOAT_INTEGERS = 1 << 53
_LARGEST_JSON_INTEGER = 10**1000
_DEEPEST_JSON = 64


class FieldType(Enum):
    """The type of a field; every store maps each of these to a column type."""

    TEXT = "text"
    INTEGER = "integer"
    FLOAT = "float"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"
    JSON = "json"
    STRINGS = "strings"
    TAGS = "tags"
    VECTOR = "vector"

    # Members are singletons, and hashing by id is faster than hashing the name.
    __hash__ = object.__hash__


ORDERED = frozenset({FieldType.INTEGER, FieldType.FLOAT, FieldType.TIMESTAMP})
SORTABLE = ORDERED | {FieldType.TEXT, FieldType.BOOLEAN}


class Refused(ValueError):
    """The reason why a value is invalid; the record turns it into a ValidationError."""


@dataclass(frozen=True)
class NotEmpty:
    """The text must have a character that is not white space."""


@dataclass(frozen=True)
class MaxLength:
    """The text may have at most this many characters."""

    characters: int


@dataclass(frozen=True)
class Range:
    """The number must lie between these, both included."""

    low: float
    high: float = math.inf


@dataclass(frozen=True)
class Embedding:
    """The numbers are an embedding, stored outside of the record as a `Vector`."""


@dataclass(frozen=True)
class Tags:
    """The strings are a set of tags, stored in a separate table and found with `Has`."""


def check_text(value: Any) -> str:
    if type(value) is str:
        text = value
    elif isinstance(value, str):
        text = value.value if isinstance(value, StrEnum) else value
    else:
        raise Refused("must be text")
    if "\x00" in text:
        raise Refused("must not contain the NUL character")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise Refused("must be valid Unicode, without lone surrogates") from None
    return text


def check_integer(value: Any) -> int:
    if isinstance(value, bool):
        raise Refused("must be a whole number")
    try:
        number = operator.index(value)
    except TypeError:
        raise Refused("must be a whole number") from None
    if not -_INT64 <= number < _INT64:
        raise Refused("must fit in 64 bits")
    return number


def check_float(value: Any) -> float:
    if isinstance(value, bool) or not (isinstance(value, float | int) or hasattr(value, "__float__")):
        raise Refused("must be a number")
    if isinstance(value, str | bytes):
        raise Refused("must be a number")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise Refused("must be a finite number") from None
    if not math.isfinite(number):
        raise Refused("must be a finite number")
    return number


def check_boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Refused("must be True or False")
    return value


def check_timestamp(value: Any) -> datetime:
    if not isinstance(value, datetime):
        raise Refused("must be a datetime")
    if value.tzinfo is UTC:
        return value if not value.fold else value.replace(fold=0)
    if value.tzinfo is None or value.utcoffset() is None:
        raise Refused("must be a datetime with a time zone, for example datetime.now(timezone.utc)")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise Refused("must be an instant that exists in UTC") from None


def check_json_object(value: Any) -> JsonObject:
    if not isinstance(value, Mapping):
        raise Refused("must be a JSON object")
    return {_json_key(key): canonical_json(item, 1) for key, item in value.items()}


class Items(tuple[Any, ...]):
    """A tuple that also equals a list of the same items."""

    __slots__ = ()
    __hash__ = tuple.__hash__

    def __eq__(self, other: object) -> bool:
        return tuple.__eq__(self, tuple(other) if isinstance(other, list) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other


def check_strings(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence | set | frozenset):
        raise Refused("must be a list of texts")
    return Items(check_text(item) for item in value)


def check_tags(value: Any) -> tuple[str, ...]:
    tags = check_strings(value)
    if any(not tag.strip() or len(tag) > LONGEST_NAME for tag in tags):
        raise Refused(f"must be tags of 1 to {LONGEST_NAME} characters")
    return tuple(sorted(set(tags)))


LONGEST_NAME = 200


def canonical_json(value: Any, depth: int = 0) -> JsonValue:
    """The value in the form that every store returns: plain dicts, lists, texts, finite numbers, booleans and None."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return check_text(value)
    if isinstance(value, int | float):
        return _json_number(value)
    if depth >= _DEEPEST_JSON:
        raise Refused(f"must not be nested deeper than {_DEEPEST_JSON} levels")
    if isinstance(value, Mapping):
        return {_json_key(key): canonical_json(item, depth + 1) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [canonical_json(item, depth + 1) for item in value]
    raise Refused(f"must be JSON: {type(value).__name__} is not")


def _json_key(key: Any) -> str:
    if not isinstance(key, str):
        raise Refused("must be JSON: every key must be text")
    return check_text(key)


def _json_number(value: int | float) -> int | float:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Refused("must be JSON: numbers must be finite")
        # JSONB stores decimals and returns a large whole float as an integer, so it is converted here.
        return float(value) if abs(value) < _EXACT_FLOAT_INTEGERS else int(value)
    if abs(value) >= _LARGEST_JSON_INTEGER:
        raise Refused("must be JSON: whole numbers may have at most 1,000 digits")
    return int(value)


CHECKS: dict[FieldType, Check] = {
    FieldType.TEXT: check_text,
    FieldType.INTEGER: check_integer,
    FieldType.FLOAT: check_float,
    FieldType.BOOLEAN: check_boolean,
    FieldType.TIMESTAMP: check_timestamp,
    FieldType.JSON: check_json_object,
    FieldType.STRINGS: check_strings,
    FieldType.TAGS: check_tags,
    FieldType.VECTOR: Vector,
}


Choices = type[StrEnum]


@dataclass(frozen=True)
class FieldSpec:
    """A field of a record: its type and its constraints."""

    name: str
    type: FieldType
    nullable: bool
    check: Check
    rules: tuple[object, ...] = ()
    choices: Choices | None = None
    default: Any = None
    make_default: Callable[[], Any] | None = None
    derived: Derived | None = None
    follows: str | None = None

    @property
    def required(self) -> bool:
        """Whether a value must be given."""
        return self.make_default is None and self.derived is None

    @property
    def member_check(self) -> Check:
        """Validates one member of a list or a set of tags."""
        return CHECKS[FieldType.TEXT]

    @property
    def range(self) -> Range | None:
        return next((rule for rule in self.rules if isinstance(rule, Range)), None)


@dataclass(frozen=True)
class Derived:
    """A field computed from another field: it can be given and read, and is not stored."""

    source: str
    from_source: Callable[[Any], Any]
    to_source: Callable[[Any], Any]


def derived(
    source: str, from_source: Callable[[Any], Any], to_source: Callable[[Any], Any], default: None = None
) -> Any:
    """Declare a field that is computed from another one (see `Derived`)."""
    return dataclasses.field(default=default, metadata={"derived": Derived(source, from_source, to_source)})


def following(source: str, default_factory: Callable[[], Any]) -> Any:
    """Declare a time that defaults to another time field if that one is given."""
    return dataclasses.field(default_factory=default_factory, metadata={"follows": source})


def field_spec(field: dataclasses.Field[Any], hint: Any) -> FieldSpec:
    """The specification of a dataclass field with this annotation."""
    base, rules, nullable = _unwrapped(hint)
    field_type, choices = _field_type(base, rules)
    return FieldSpec(
        name=field.name,
        type=field_type,
        nullable=nullable,
        check=_checker(field_type, choices, rules),
        rules=rules,
        choices=choices,
        default=_constant_default(field),
        make_default=_default_maker(field),
        derived=field.metadata.get("derived"),
        follows=field.metadata.get("follows"),
    )


def _has_default(field: dataclasses.Field[Any]) -> bool:
    # For a field named like a property of Record, dataclasses take that property as the default.
    return field.default is not dataclasses.MISSING and not isinstance(field.default, property)


def _constant_default(field: dataclasses.Field[Any]) -> Any:
    return field.default if _has_default(field) else None


def _default_maker(field: dataclasses.Field[Any]) -> Callable[[], Any] | None:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory
    return (lambda: field.default) if _has_default(field) else None


def _unwrapped(hint: Any) -> tuple[Any, tuple[object, ...], bool]:
    """The type without annotations, the annotated constraints, and whether None is allowed."""
    rules: tuple[object, ...] = ()
    nullable = False
    while True:
        if get_origin(hint) is Annotated:
            hint, *more = get_args(hint)
            rules += tuple(more)
        elif get_origin(hint) in (Union, types.UnionType):
            (hint,) = (arg for arg in get_args(hint) if arg is not type(None))
            nullable = True
        else:
            return hint, rules, nullable


_TYPES: dict[Any, FieldType] = {
    str: FieldType.TEXT,
    int: FieldType.INTEGER,
    float: FieldType.FLOAT,
    bool: FieldType.BOOLEAN,
    datetime: FieldType.TIMESTAMP,
}


_SEQUENCES: dict[type, FieldType] = {Embedding: FieldType.VECTOR, Tags: FieldType.TAGS}


def _field_type(base: Any, rules: tuple[object, ...]) -> tuple[FieldType, Choices | None]:
    if isinstance(base, type) and issubclass(base, StrEnum):
        return FieldType.TEXT, base
    if base in _TYPES:
        return _TYPES[base], None
    if get_origin(base) is dict:
        return FieldType.JSON, None
    if get_origin(base) is Sequence:
        return next((_SEQUENCES[type(rule)] for rule in rules if type(rule) in _SEQUENCES), FieldType.STRINGS), None
    raise TypeError(f"no field type for annotation {base!r}")


def _checker(field_type: FieldType, choices: Choices | None, rules: tuple[object, ...]) -> Check:
    check = CHECKS[field_type] if choices is None else _choice_check(choices)
    for rule in rules:
        check = _with_rule(check, rule)
    return check


def _choice_check(choices: Choices) -> Check:
    allowed = {choice.value: choice for choice in choices}

    def check(value: Any) -> StrEnum:
        if not isinstance(value, str) or value not in allowed:
            raise Refused(f"must be one of {', '.join(allowed)}")
        return allowed[value]

    return check


def _with_rule(check: Check, rule: object) -> Check:
    match rule:
        case NotEmpty():
            return _not_empty(check)
        case MaxLength(characters):
            return _not_longer(check, characters)
        case Range(low, high):
            return _within(check, low, high)
        case _:
            return check


def _not_empty(check: Check) -> Check:
    def checked(value: Any) -> str:
        text: str = check(value)
        if not text or text.isspace():
            raise Refused("must not be empty")
        return text

    return checked


def _not_longer(check: Check, characters: int) -> Check:
    def checked(value: Any) -> str:
        text: str = check(value)
        if len(text) > characters:
            raise Refused(f"must have at most {characters:,} characters, has {len(text):,}")
        return text

    return checked


def _within(check: Check, low: float, high: float) -> Check:
    limits = f"must be at least {low:g}" if high == float("inf") else f"must be between {low:g} and {high:g}"

    def checked(value: Any) -> float:
        number: float = check(value)
        if not low <= number <= high:
            raise Refused(limits)
        return number

    return checked
