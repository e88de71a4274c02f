"""Records as documents of Cosmos DB: the containers, the partition of a record, its document and back."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from alma.errors import StorageError
from alma.model.fields import FieldType
from alma.model.governance import AuditEvent
from alma.model.kinds import KINDS
from alma.model.record import Record, RecordSpec
from alma.model.vector import Vector
from alma.storage.document import from_document, to_document
from alma.text.tokens import stored_terms

Document = dict[str, Any]

OURS = "alma"
"""The section of a document that belongs to the store: raw key, commit, search terms, exact numbers."""

PARTITION = "partition"
"""The field that is the partition key of all but the documented containers."""

DELETED = "deleted"
"""Marks the stub of a deleted document, which the service removes after a day."""

EMBEDDING = "embedding"
VECTORS = "embeddings"
OUTBOX = "outbox"
LONG = "long"
LARGEST_DOCUMENT = 2_000_000
_STUB_SECONDS = 24 * 3600
_LONGEST_ID = 900
_MOST_TERMS = 20_000
_EXACT_INTEGERS = 1 << 53
_SYSTEM = frozenset({"_rid", "_self", "_etag", "_ts", "_attachments"})

_CONTAINERS = {
    "heuristics": "alma-heuristics",
    "outcomes": "alma-outcomes",
    "preferences": "alma-preferences",
    "domain_knowledge": "alma-knowledge",
    "anti_patterns": "alma-antipatterns",
}
_DISCRIMINATORS = {"user_preference": "preference"}
_OWNERS = ("project_id", "user_id", "session_id", "memory_id", "from_memory_id")
_EMPTY: dict[FieldType, Any] = {FieldType.JSON: {}, FieldType.STRINGS: [], FieldType.TAGS: []}


class Container(NamedTuple):
    """A container: its name, the path of its partition key, and whether its documents may have an embedding."""

    name: str
    partition_path: str
    embeds: bool


@cache
def container_of(table: str) -> Container:
    """The container of a table: the five documented ones by their names, every other by its own."""
    embeds = table == VECTORS or any(cls.spec.table == table and cls.spec.embeds for cls in KINDS)
    if table in _CONTAINERS:
        return Container(_CONTAINERS[table], "/user_id" if table == "preferences" else "/project_id", embeds)
    return Container(f"alma-{table.replace('_', '-')}", f"/{PARTITION}", embeds)


TABLES = (*(cls.spec.table for cls in KINDS), VECTORS, OUTBOX)


def partition_field(spec: RecordSpec) -> str | None:
    """The field whose value is the partition of a record, where it has one."""
    return next((name for name in _OWNERS if name in spec.by_name), None)


def partition_of(record: Record) -> str:
    """The partition of a record: its project, or the user, session or memory it belongs to, or itself."""
    if isinstance(record, AuditEvent):
        return record.created_at.date().isoformat()
    owners = (getattr(record, name, None) for name in _OWNERS)
    return next((owner for owner in owners if owner), None) or str(record.key)


def document_id(key: object) -> str:
    """The id of the document of a record, which must not contain / \\ ? # and may not be long."""
    text = "".join(f"~{ord(letter):02X}" if letter in _REFUSED or letter < " " else letter for letter in str(key))
    if len(text.encode()) <= _LONGEST_ID and text == text.strip():
        return text
    return f"sha256-{hashlib.sha256(str(key).encode()).hexdigest()}"


_REFUSED = frozenset("/\\?#%~")


def key_of(document: Mapping[str, Any]) -> Any:
    """The key of the record that a document holds."""
    return document[OURS]["key"]


def table_document(key: Any, partition: str, fields: Mapping[str, Any]) -> Document:
    """A document of one of the store's own tables."""
    return {"id": document_id(key), **fields, PARTITION: partition, OURS: {"key": key}}


def encoded(record: Record, embedding: Any = None) -> Document:
    """The document of a record: every field, the discriminator, and what searches need."""
    spec = record.spec
    document: Document = {
        field.name: None if field.nullable else _EMPTY.get(field.type)
        for field in spec.primary
        if field.type is not FieldType.VECTOR
    }
    document |= to_document(record, () if spec.vector_field is None else (spec.vector_field,))
    ours: Document = {"key": record.key}
    if spec.text:
        found = searchable(record.text())
        # A document may not be large: the terms of a very long text are taken from the text when it is searched.
        ours |= {LONG: True, "length": found["length"]} if len(found["terms"]) > _MOST_TERMS else found
    exact = {name: json.dumps(value) for name, value in document.items() if not _is_plain(value)}
    if exact:
        ours["exact"] = exact
    named = {"id": document_id(record.key), "type": discriminator(spec)}
    document |= {**named, PARTITION: partition_of(record), OURS: ours}
    if embedding is not None:
        document[EMBEDDING] = embedding
    return document


def decoded(cls: type[Record], document: Mapping[str, Any]) -> Record:
    """The record of a document, with the embedding that is in it."""
    spec, ours = cls.spec, document[OURS]
    values = {name: document[name] for name in spec.primary_names if name in document}
    values |= {name: json.loads(text) for name, text in ours.get("exact", {}).items()}
    values[spec.key] = ours["key"]
    if spec.vector_field is not None:
        values.pop(spec.vector_field, None)
        if document.get(EMBEDDING) is not None:
            values[spec.vector_field] = Vector(document[EMBEDDING])
    return from_document(cls, values)


def discriminator(spec: RecordSpec) -> str:
    """The `type` of the documents of a kind."""
    return _DISCRIMINATORS.get(spec.kind, spec.kind)


def stub(document: Mapping[str, Any]) -> Document:
    """The placeholder of a deleted document for a day, so that a delayed write cannot bring it back."""
    named = ("id", "project_id", "user_id", PARTITION)
    kept = {name: document[name] for name in named if document.get(name) is not None}
    return {**kept, OURS: {"key": key_of(document), DELETED: True}, "ttl": _STUB_SECONDS}


def bare(document: Mapping[str, Any]) -> Document:
    """A document without what the service adds to it."""
    return {name: value for name, value in document.items() if name not in _SYSTEM}


def partition_in(table: str, document: Mapping[str, Any]) -> str:
    """The value of the partition key of a document."""
    return str(document[container_of(table).partition_path[1:]])


def require_storable(table: str, document: Document) -> None:
    """Refuse a document that the service would refuse after the commit."""
    # The client sends ASCII.
    size = len(json.dumps(document))
    if size > LARGEST_DOCUMENT:
        raise StorageError(
            f"the document {document['id']!r} of {container_of(table).name} has {size:,} bytes, and Cosmos DB stores "
            f"at most {LARGEST_DOCUMENT:,} in one; nothing of this transaction was stored: shorten it"
        )


def searchable(text: str) -> Document:
    """The distinct terms of a text, how often each occurs, and the number of all."""
    terms = stored_terms(text)
    counts = Counter(terms)
    return {"terms": list(counts), "counts": list(counts.values()), "length": len(terms)}


def _is_plain(value: Any) -> bool:
    """Whether a value comes back as it was from a service whose numbers are doubles, without an own type for 1.0."""
    match value:
        case bool() | None | str():
            return True
        case int():
            return abs(value) <= _EXACT_INTEGERS
        case float():
            return not (value.is_integer() or math.isinf(value))
        case dict():
            return all(map(_is_plain, value.values()))
        case _:
            return all(map(_is_plain, value))


def is_exact(value: Any) -> bool:
    """Whether the service compares a value with others as Python does."""
    return not isinstance(value, int) or isinstance(value, bool) or abs(value) <= _EXACT_INTEGERS


def vector_key(kind: str, record_id: str, model: str, part: int) -> str:
    """The key of a vector that is not in the document of its record."""
    return json.dumps([kind, record_id, model, part], ensure_ascii=False)
