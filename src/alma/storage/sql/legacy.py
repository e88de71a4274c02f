"""Convert databases of alma-memory 0.4 (or a later 0.x) to current records."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from alma.errors import ValidationError
from alma.model.fields import FieldSpec, FieldType
from alma.model.governance import Attribution
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.record import Record
from alma.model.vector import Vector
from alma.storage.records import DEFAULT_MODEL
from alma.storage.sql.backend import SqlBackend

ADOPTION = Attribution(reason="taken over from alma-memory")
OLDER_KINDS: tuple[type[Record], ...] = (Heuristic, Outcome, UserPreference, DomainKnowledge, AntiPattern)
_BYTES_PER_FLOAT = 4


def adopt_vectors(backend: SqlBackend, cls: type[Record], vectors: Mapping[str, Vector]) -> None:
    """Vectors of the store's length become its own; those of another are kept under a model name of their own."""
    by_length: dict[int, dict[str, Vector]] = defaultdict(dict)
    for key, vector in vectors.items():
        by_length[len(vector)][key] = vector
    own = backend.dims_of(backend.embedding_model, None) or backend.embedding_dim
    for dims, group in by_length.items():
        model = backend.embedding_model if dims == own else f"alma-memory, {dims} dimensions"
        backend.dims_of(model, dims)
        backend.put_vectors(cls.spec, group, model)


def claim_usual_length(backend: SqlBackend, lengths: Iterable[int]) -> None:
    """Without a named model the store takes that of most of these vectors; a named one has vectors of one length."""
    usual = Counter(lengths).most_common(1)
    if usual and backend.embedding_model == DEFAULT_MODEL:
        backend.dims_of(backend.embedding_model, usual[0][0])


def vector_of(blob: bytes) -> Vector | None:
    """The vector that these bytes hold, little-endian."""
    if not blob or len(blob) % _BYTES_PER_FLOAT:
        return None
    try:
        return Vector(list(Vector.from_bytes(blob)))
    except ValidationError:
        return None


def record_of(cls: type[Record], row: Mapping[str, Any]) -> Record | None:
    """The record that an older row describes, None where it cannot become one."""
    try:
        return cls(**_values(cls, row))
    except (ValidationError, ValueError, TypeError):
        return None


def _values(cls: type[Record], row: Mapping[str, Any]) -> dict[str, Any]:
    """The record of a row; values that no current field can hold are in its metadata."""
    fields = {name: cls.spec.by_name[name] for name in row if name in cls.spec.by_name}
    values: dict[str, Any] = {name: None for name, field in fields.items() if field.nullable}
    more = {name: value for name, value in row.items() if name not in fields and value is not None}
    for name, field in fields.items():
        if row[name] is None:
            continue
        try:
            values[name] = cls.spec.checked(name, _value(field, row[name]))
        except (ValidationError, ValueError, TypeError):
            # A memory is kept even if a date or a count of it cannot be read.
            if field.required:
                raise
            more[name] = row[name]
    if more:
        values["metadata"] = {**values.get("metadata", {}), "alma_memory": more}
    return values


def _value(field: FieldSpec, value: Any) -> Any:
    match field.type:
        case FieldType.TIMESTAMP:
            return _moment(value) if isinstance(value, str) else value
        case FieldType.JSON:
            return json.loads(value, parse_constant=lambda _: None) if isinstance(value, str) else value
        case FieldType.BOOLEAN:
            return bool(value)
        case FieldType.FLOAT if field.range is not None:
            return min(max(float(value), field.range.low), field.range.high)
        case FieldType.INTEGER if isinstance(value, float) and value.is_integer():
            return int(value)
        case _:
            return value


def _moment(text: str) -> datetime:
    """An older timestamp; those without an offset were written in UTC."""
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
