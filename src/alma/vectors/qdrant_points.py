"""Records in Qdrant: the payload of their points, and predicates as filters on them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, assert_never
from uuid import NAMESPACE_OID, UUID, uuid5

from alma.model.fields import FieldType
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.memory import Layer, Memory, ProjectPattern
from alma.model.query import And, At, Compare, Has, In, Missing, Or, Predicate
from alma.model.record import Record
from alma.model.vector import Vector
from alma.storage.base import RecordVector
from alma.storage.document import timestamp_text
from alma.vectors.qdrant_server import models as m

HASH, PART = "content_hash", "part"
_LAYERS = "layer_assignments"
Condition = Any
"""A condition of a Qdrant filter."""

Value = Callable[[Any], Any]


def _layers(memory: Memory) -> list[str]:
    return [layer for layer in Layer if layer in memory.layers]


def _projects(pattern: ProjectPattern) -> list[str]:
    return [pattern.project_id]


@dataclass(frozen=True)
class PointKind:
    """How the records of a kind are kept: the collection, the key of the record's id, fields, and what is computed."""

    collection: str
    key: str
    fields: tuple[str, ...]
    computed: Mapping[str, Value] = field(default_factory=dict)
    unindexed: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)

    def key_of(self, cls: type[Record], name: str) -> str | None:
        """The payload key that has the values of a field; None for a field that is not in the payload."""
        if name == cls.spec.key:
            return self.key
        return self.renamed.get(name) or (name if name in self.fields and name not in self.unindexed else None)


KINDS: Mapping[type[Record], PointKind] = {
    Memory: PointKind(
        "memory_embeddings",
        "memory_id",
        (
            *("user_id", "project_id", "session_id", "memory_type", "category", "tags", "importance_score"),
            *("title", "summary", "created_at", "updated_at"),
            # For the filters of retrieval, beside the documented ones.
            *("source_agent", "is_private", "is_archived", "is_active", "expires_at"),
        ),
        {_LAYERS: _layers},
        ("title", "summary"),
    ),
    ProjectPattern: PointKind(
        "pattern_embeddings",
        "pattern_id",
        ("pattern_type", "pattern_name", "success_rate", "usage_count", "created_at"),
        {"project_ids": _projects},
        renamed={"project_id": "project_ids"},
    ),
    Heuristic: PointKind(
        "heuristic_embeddings",
        "heuristic_id",
        ("agent", "project_id", "confidence", "occurrence_count", "success_count", "last_validated", "created_at"),
    ),
    Outcome: PointKind(
        "outcome_embeddings",
        "outcome_id",
        ("agent", "project_id", "task_type", "success", "lesson_id", "timestamp"),
    ),
    UserPreference: PointKind(
        "user_preference_embeddings",
        "user_preference_id",
        ("user_id", "category", "confidence", "timestamp"),
    ),
    DomainKnowledge: PointKind(
        "domain_knowledge_embeddings",
        "domain_knowledge_id",
        ("agent", "project_id", "domain", "confidence", "last_verified"),
    ),
    AntiPattern: PointKind(
        "anti_pattern_embeddings",
        "anti_pattern_id",
        ("agent", "project_id", "occurrence_count", "last_seen", "created_at"),
    ),
}

_SCHEMAS: Mapping[FieldType, m.PayloadSchemaType] = {
    FieldType.TEXT: m.PayloadSchemaType.KEYWORD,
    FieldType.TAGS: m.PayloadSchemaType.KEYWORD,
    FieldType.FLOAT: m.PayloadSchemaType.FLOAT,
    FieldType.INTEGER: m.PayloadSchemaType.INTEGER,
    FieldType.BOOLEAN: m.PayloadSchemaType.BOOL,
    FieldType.TIMESTAMP: m.PayloadSchemaType.DATETIME,
}


def payload_indexes(cls: type[Record]) -> dict[str, m.PayloadSchemaType]:
    """The indexed payload keys of a kind, with their types."""
    kind = KINDS[cls]
    plain = {name: _SCHEMAS[cls.spec.by_name[name].type] for name in kind.fields if name not in kind.unindexed}
    return dict.fromkeys((kind.key, *kind.computed), m.PayloadSchemaType.KEYWORD) | plain


# ---------------------------------------------------------------------- points


def point_id(record_id: str, part: int = 0) -> str:
    """The id of a point: that of the record, if it is a UUID, else one computed from it.

    A computed id has version 5, and a record's own id of that version is not taken over: so no record can have the
    point of another one.
    """
    if part == 0 and is_uuid(record_id) and UUID(record_id).version != 5:
        return record_id
    return str(uuid5(NAMESPACE_OID, f"{record_id}\n{part}"))


def is_uuid(text: str) -> bool:
    """Whether a text is a UUID as Qdrant writes it."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def payload_of(record: Record) -> dict[str, Any]:
    """The payload of a record's points; a field without a value is left out."""
    kind = KINDS[type(record)]
    values = {name: _plain(getattr(record, name)) for name in kind.fields}
    values |= {name: value(record) for name, value in kind.computed.items()}
    return {kind.key: str(record.key), **{name: value for name, value in values.items() if value is not None}}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return timestamp_text(value.astimezone(UTC))
    if isinstance(value, str):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


def points_of(record: Record, vectors: Iterable[RecordVector]) -> Iterator[m.PointStruct]:
    """The point of each of a record's vectors of one model."""
    payload = payload_of(record)
    text = json.dumps(payload, sort_keys=True).encode()
    for each in vectors:
        unit = unit_of(each.vector)
        digest = blake2b(each.vector.to_bytes(), digest_size=16)
        digest.update(text)
        said = {**payload, PART: each.part, HASH: digest.hexdigest()}
        yield m.PointStruct(id=point_id(each.record_id, each.part), vector=unit, payload=said)


def unit_of(vector: Vector) -> list[float]:
    """The vector at length 1, computed in double precision: the squares of large numbers would overflow."""
    import numpy as np

    floats = np.frombuffer(vector.to_bytes(), "<f4").astype(np.float64)
    length = float(np.sqrt(floats @ floats))
    found: list[float] = np.round(floats / length, 8).tolist() if length else floats.tolist()
    return found


# ---------------------------------------------------------------------- filters

_BOUNDS = {"lt": "lt", "le": "lte", "gt": "gt", "ge": "gte"}

NOTHING = m.HasIdCondition(has_id=[])
"""A condition that no point fulfils."""


def condition_of(cls: type[Record], predicate: Predicate) -> Condition | None:
    """A condition that every point fulfils whose record fulfils the predicate; None if payloads do not tell.

    Other points may fulfil it as well: the store has the last word.
    """
    match predicate:
        case Compare(name, op, value):
            return _compared(cls, name, op, value)
        case In(name, values):
            return _one_of(cls, name, values)
        case Missing(name):
            key = KINDS[cls].key_of(cls, name)
            return None if key is None else m.IsEmptyCondition(is_empty=m.PayloadField(key=key))
        case Has(name, value):
            key = KINDS[cls].key_of(cls, name)
            return None if key is None else _is(key, value)
        case At():
            return None
        case And(parts):
            found = [each for part in parts if (each := condition_of(cls, part)) is not None]
            return m.Filter(must=found) if found else None
        case Or(parts):
            either = [each for part in parts if (each := condition_of(cls, part)) is not None]
            if not parts:
                return NOTHING
            return m.Filter(should=either) if len(either) == len(parts) else None
    assert_never(predicate)


def _compared(cls: type[Record], name: str, op: str, value: Any) -> Condition | None:
    if name.startswith("layer_") and op == "eq" and value is True and _LAYERS in KINDS[cls].computed:
        return _is(_LAYERS, name.removeprefix("layer_"))
    key = KINDS[cls].key_of(cls, name)
    if key is None or op == "ne":
        return None
    if isinstance(value, datetime):
        return None if op == "eq" else m.FieldCondition(key=key, range=m.DatetimeRange(**{_BOUNDS[op]: value}))
    if op != "eq":
        return m.FieldCondition(key=key, range=m.Range(**{_BOUNDS[op]: value}))
    if isinstance(value, float):
        return m.FieldCondition(key=key, range=m.Range(gte=value, lte=value))
    return _is(key, value)


def _one_of(cls: type[Record], name: str, values: Sequence[Any]) -> Condition | None:
    if not values:
        return NOTHING
    key = KINDS[cls].key_of(cls, name)
    if key is None or not all(isinstance(each, str) for each in values):
        return None
    return any_of(key, values)


def _is(key: str, value: Any) -> Condition:
    plain = str(value) if isinstance(value, str) else value
    return m.FieldCondition(key=key, match=m.MatchValue(value=plain))


def any_of(key: str, values: Iterable[str]) -> Condition:
    """The condition that a payload key has one of these values."""
    return m.FieldCondition(key=key, match=m.MatchAny(any=[str(each) for each in values]))


def but(conditions: Iterable[Condition], excluded: Iterable[Condition]) -> m.Filter:
    """The filter for points that fulfil all conditions, and none of the excluded ones.

    Nested, because the server overlooks what is excluded beside a condition on ids.
    """
    left = [m.Filter(must_not=list(excluded))]
    return m.Filter(must=[*conditions, *left])
