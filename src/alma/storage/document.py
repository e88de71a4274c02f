"""Records as JSON documents and back: for files, history, export and the wire."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, date, datetime
from functools import cache, lru_cache
from typing import Any, TypeVar

from alma.errors import ValidationError
from alma.model.archive import ArchivedRecord
from alma.model.fields import FieldType, JsonObject
from alma.model.kinds import kind_named
from alma.model.record import FieldSpec, Record, RecordSpec

T = TypeVar("T", bound=Record)


# All rows of one transaction carry the same instant; it is spelled once.
_last_written: tuple[datetime | None, str] = (None, "")
_MINUTES = tuple(f"T{minute // 60:02}:{minute % 60:02}:" for minute in range(24 * 60))
_SECONDS = tuple(f"{second:02}." for second in range(60))


def timestamp_text(moment: datetime) -> str:
    """A UTC instant in the one spelling all stores use; as text it sorts as the instants do."""
    global _last_written
    last, text = _last_written
    if moment is not last:
        # Put together from parts that are spelled already, which takes half the time of formatting seven numbers.
        time = _MINUTES[60 * moment.hour + moment.minute] + _SECONDS[moment.second]
        text = f"{_day(moment.toordinal())}{time}{moment.microsecond:06}Z"
        _last_written = moment, text
    return text


@lru_cache(maxsize=4096)
def _day(number: int) -> str:
    return date.fromordinal(number).isoformat()


def timestamp_of(text: str) -> datetime:
    """The instant that `timestamp_text` wrote."""
    return datetime.fromisoformat(text)


def to_document(record: Record, without: Collection[str] = ()) -> JsonObject:
    """The record as a JSON object; fields without a value, and empty lists and objects, are left out."""
    document: JsonObject = {}
    for (name, encode, may_lack), value in zip(_parts(record.spec), record.spec.values_of(record), strict=True):
        if value is None or name in without or (may_lack and not value):
            continue
        document[name] = value if encode is None else encode(value)
    return document


@cache
def _parts(spec: RecordSpec) -> tuple[tuple[str, Callable[[Any], Any] | None, bool], ...]:
    """Of each field its name, how it is written, and whether it is left out when it is empty."""
    return tuple(
        (field.name, _ENCODERS.get(field.type), field.type in _EMPTY and not field.nullable) for field in spec.primary
    )


def from_document(cls: type[T], document: Mapping[str, Any]) -> T:
    """The record a document describes, with every value checked."""
    if not isinstance(document, Mapping):
        raise ValidationError(cls.spec.kind, None, document, "must be a JSON object")
    values = dict(document)
    for field in cls.spec.primary:
        if field.name in values:
            values[field.name] = _decoded(cls, field, values[field.name])
        elif field.nullable:
            values[field.name] = None
        elif field.type in _EMPTY:
            values[field.name] = _EMPTY[field.type]
    return cls(**values)


def unpacked_record(archived: ArchivedRecord) -> Record:
    """The record in a row of the archive, without its vectors."""
    return from_document(kind_named(archived.kind), json.loads(archived.document))


def _decoded(cls: type[Record], field: FieldSpec, value: Any) -> Any:
    if value is None or field.type is not FieldType.TIMESTAMP:
        return value
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValidationError(cls.spec.kind, field.name, value, "must be an ISO 8601 timestamp") from None
    return moment.astimezone(UTC) if moment.tzinfo else moment


_EMPTY: dict[FieldType, Any] = {FieldType.JSON: {}, FieldType.STRINGS: (), FieldType.TAGS: ()}
_ENCODERS: dict[FieldType, Callable[[Any], Any]] = {
    FieldType.TEXT: str,
    FieldType.TIMESTAMP: timestamp_text,
    FieldType.STRINGS: list,
    FieldType.TAGS: list,
    FieldType.VECTOR: list,
}
