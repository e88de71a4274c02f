"""The types a field may have, and how a value becomes one of them or is refused with a reason."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, StrEnum
from typing import Any

from alma.model.vector import Vector

JsonValue = Any
JsonObject = dict[str, JsonValue]
Check = Callable[[Any], Any]

_INT64 = 1 << 63
_EXACT_FLOAT_INTEGERS = 1 << 53
_LARGEST_JSON_INTEGER = 10**1000
_DEEPEST_JSON = 64


class FieldType(Enum):
    """What a field holds; every store maps each of these to a type of its own."""

    TEXT = "text"
    INTEGER = "integer"
    FLOAT = "float"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"
    JSON = "json"
    STRINGS = "strings"
    TAGS = "tags"
    VECTOR = "vector"


ORDERED = frozenset({FieldType.INTEGER, FieldType.FLOAT, FieldType.TIMESTAMP})
SORTABLE = ORDERED | {FieldType.TEXT, FieldType.BOOLEAN}


class Refused(ValueError):
    """A check's reason for not accepting a value; the record turns it into a ValidationError."""


@dataclass(frozen=True)
class NotEmpty:
    """The text must contain something besides white space."""


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
    """The numbers are an embedding, kept apart from the record as a `Vector`."""


@dataclass(frozen=True)
class Tags:
    """The strings are a set of tags, kept in a table of their own and found with `Has`."""


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


def check_strings(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence | set | frozenset):
        raise Refused("must be a list of texts")
    return tuple(check_text(item) for item in value)


def check_tags(value: Any) -> tuple[str, ...]:
    tags = check_strings(value)
    if any(not tag.strip() or len(tag) > LONGEST_NAME for tag in tags):
        raise Refused(f"must be tags of 1 to {LONGEST_NAME} characters")
    return tuple(sorted(set(tags)))


LONGEST_NAME = 200


def canonical_json(value: Any, depth: int = 0) -> JsonValue:
    """The value as every store gives it back: plain dicts, lists, texts, finite numbers, booleans and None."""
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
        # JSONB keeps decimals, not floats: a large whole float comes back as an integer, so it becomes one here.
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
