"""Records as JSON documents and back: for files, history, export and the wire."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

from alma.errors import ValidationError
from alma.model.fields import FieldType, JsonObject
from alma.model.record import FieldSpec, Record

T = TypeVar("T", bound=Record)


# All rows of one transaction carry the same instant; it is spelled once.
_last_written: tuple[datetime | None, str] = (None, "")


def timestamp_text(moment: datetime) -> str:
    """A UTC instant in the one spelling all stores use; as text it sorts as the instants do."""
    global _last_written
    last, text = _last_written
    if moment is not last:
        # Every record holds UTC already; isoformat would ask for the offset, and take twice as long.
        text = "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ" % (  # noqa: UP031 - half the time of an f-string
            *(moment.year, moment.month, moment.day),
            *(moment.hour, moment.minute, moment.second, moment.microsecond),
        )
        _last_written = moment, text
    return text


def timestamp_of(text: str) -> datetime:
    """The instant that `timestamp_text` wrote."""
    return datetime.fromisoformat(text)


def to_document(record: Record, without: Collection[str] = ()) -> JsonObject:
    """The record as a JSON object; fields without a value, and empty lists and objects, are left out."""
    document: JsonObject = {}
    for field in record.spec.primary:
        value = getattr(record, field.name)
        if _is_absent(field, value) or field.name in without:
            continue
        encode = _ENCODERS.get(field.type)
        document[field.name] = value if encode is None else encode(value)
    return document


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


def _is_absent(field: FieldSpec, value: Any) -> bool:
    return value is None or (not value and field.type in _EMPTY and not field.nullable)


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
