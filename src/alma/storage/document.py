"""Records as JSON documents and back: for files, history, export and the wire."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, date, datetime
from functools import cache, lru_cache
from typing import Any, TypeVar

from alma.errors import ValidationError
from alma.model.fields import FieldSpec, FieldType, JsonObject
from alma.model.governance import ArchivedRecord
from alma.model.kinds import kind_named
from alma.model.record import Record, RecordSpec

T = TypeVar("T", bound=Record)


# All rows of a transaction have the same timestamp, so its text is cached.
_last_written: tuple[datetime | None, str] = (None, "")
_MINUTES = tuple(f"T{minute // 60:02}:{minute % 60:02}:" for minute in range(24 * 60))
_SECONDS = tuple(f"{second:02}." for second in range(60))
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_quoted: Callable[[str], str] = json.encoder.encode_basestring


def timestamp_text(moment: datetime) -> str:
    """A UTC timestamp in the format of all stores; the texts sort chronologically."""
    global _last_written
    last, text = _last_written
    if moment is not last:
        # Concatenating cached parts takes half the time of formatting seven numbers.
        time = _MINUTES[60 * moment.hour + moment.minute] + _SECONDS[moment.second]
        text = f"{_day(moment.toordinal())}{time}{moment.microsecond:06}Z"
        _last_written = moment, text
    return text


@lru_cache(maxsize=4096)
def _day(number: int) -> str:
    return date.fromordinal(number).isoformat()


def timestamp_of(text: str) -> datetime:
    """The timestamp that `timestamp_text` wrote."""
    return datetime.fromisoformat(text)


def json_text(value: Any) -> str:
    """A JSON value as text."""
    # A fast path: most metadata is empty.
    return _encode(value) if value else "{}" if isinstance(value, dict) else "[]"


def strings_text(texts: Iterable[str]) -> str:
    """A list of texts as JSON, faster than with an encoder."""
    return f"[{','.join(map(_quoted, texts))}]"


def to_document(record: Record, without: Collection[str] = ()) -> JsonObject:
    """The record as a JSON object; fields without a value, and empty lists and objects, are left out."""
    document: JsonObject = {}
    for (name, encode, _, may_lack), value in zip(_parts(record.spec), record.spec.values_of(record), strict=True):
        if value is None or name in without or (may_lack and not value):
            continue
        document[name] = value if encode is None else encode(value)
    return document


def spelled_document(record: Record, without: Collection[str] = ()) -> dict[str, str]:
    """The fields of the same document, each as JSON text for `document_text`."""
    document: dict[str, str] = {}
    for (name, _, spell, may_lack), value in zip(_parts(record.spec), record.spec.values_of(record), strict=True):
        if value is not None and name not in without and (value or not may_lack):
            document[name] = spell(value)
    return document


def document_text(fields: Iterable[tuple[str, str]]) -> str:
    """The JSON object with these fields, which are JSON text already."""
    return "{" + ",".join([f'"{name}":{text}' for name, text in fields]) + "}"


@cache
def _parts(spec: RecordSpec) -> tuple[tuple[str, Callable[[Any], Any] | None, Callable[[Any], str], bool], ...]:
    """For each field its name, its encoders for documents and for text, and whether it is omitted when empty."""
    return tuple(
        (
            field.name,
            _ENCODERS.get(field.type),
            _SPELLERS.get(field.type, _encode),
            field.type in _EMPTY and not field.nullable,
        )
        for field in spec.primary
    )


def from_document(cls: type[T], document: Mapping[str, Any]) -> T:
    """The record of a document, with every value validated."""
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


def _number_text(number: Any) -> str:
    """The JSON of a number, faster than with an encoder."""
    return repr(number) if type(number) in (int, float) else _encode(number)


_SPELLERS: dict[FieldType, Callable[[Any], str]] = {
    FieldType.TEXT: _quoted,
    FieldType.INTEGER: _number_text,
    FieldType.FLOAT: _number_text,
    FieldType.TIMESTAMP: lambda moment: f'"{timestamp_text(moment)}"',
    FieldType.STRINGS: strings_text,
    FieldType.TAGS: strings_text,
    FieldType.VECTOR: lambda vector: _encode(list(vector)),
}
