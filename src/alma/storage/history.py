"""History: a version row per save; the content of the newest version is the record itself. So creating a record costs
one short row, and the content of a version is written once, when the next change replaces it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import NamedTuple, TypeVar

from alma.model.fields import JsonObject
from alma.model.governance import Attribution
from alma.model.memory import ChangeType, MemoryVersion
from alma.model.query import Predicate, matches
from alma.model.record import Record, RecordSpec
from alma.storage.document import document_text, from_document, spelled_document, to_document

T = TypeVar("T", bound=Record)

_TEXT = ("title", "content", "summary")


def next_version(
    record: Record,
    key: str,
    previous: Record | None,
    last: MemoryVersion | None,
    by: Attribution,
    moment: datetime,
    change: ChangeType | None = None,
) -> MemoryVersion:
    """The version for saving this record; `change` is the kind of change if it cannot be derived."""
    return _row(
        record.spec.kind,
        key,
        last,
        by,
        moment,
        change_type=change or (_coming(last) if previous is None else _change_type(record, previous)),
        diff_json=None if previous is None else _before(record, previous, _document(previous)),
    )


def deletion(kind: str, key: str, last: MemoryVersion | None, by: Attribution, moment: datetime) -> MemoryVersion:
    """The version of a deletion."""
    return _row(kind, key, last, by, moment, change_type=ChangeType.DELETED, diff_json=None)


def with_content(version: MemoryVersion, record: Record) -> MemoryVersion:
    """The version with its content, once it is no longer the newest."""
    document = _document(record)
    text = {name: document.pop(name, None) for name in _TEXT if record.spec.kind == "memory"}
    # The record is validated, so its document is, too.
    return MemoryVersion.trusted({**version.values(), "record_json": document, **text})


class Superseded(NamedTuple):
    """The columns of a superseded version: its content, and the previous values of the changed fields."""

    content: dict[str, str | None]
    diff_json: str
    change_type: ChangeType


def superseded(record: Record, previous: Record) -> Superseded:
    """The content of the last version when a record replaces it; both texts share their parts."""
    old = spelled_document(previous, _apart(record.spec))
    diff = document_text([(name, old.get(name, "null")) for name in _changed(record, previous)])
    content: dict[str, str | None] = {}
    if record.spec.kind == "memory":
        for name in _TEXT:
            content[name] = getattr(previous, name)
            old.pop(name, None)
    content["record_json"] = document_text(old.items())
    return Superseded(content, diff, _change_type(record, previous))


def is_current(version: MemoryVersion) -> bool:
    """Whether the content of the version is still the record itself."""
    return version.record_json is None and version.change_type is not ChangeType.DELETED


def record_of(version: MemoryVersion, cls: type[T], current: T | None) -> T | None:
    """The record of this version, without its vector; None for a deletion."""
    if version.change_type is ChangeType.DELETED:
        return None
    if version.record_json is None:
        return current if current is None or cls.spec.vector_field is None else without_vector(current)
    text = {name: value for name in _TEXT if (value := getattr(version, name)) is not None}
    return from_document(cls, {**version.record_json, **text, cls.spec.key: version.memory_id})


def filled(rows: Sequence[MemoryVersion], current: Record | None) -> list[MemoryVersion]:
    """The versions, with the content of the newest one from the record."""
    return [with_content(row, current) if current is not None and is_current(row) else row for row in rows]


def within(rows: Sequence[MemoryVersion], cls: type[Record], inside: Predicate) -> list[MemoryVersion]:
    """The versions inside the predicate, oldest first; a deletion counts by the record that it deleted."""
    found: list[MemoryVersion] = []
    lay_inside = False
    for row in rows:
        record = record_of(row, cls, None)
        lay_inside = lay_inside if record is None else matches(inside, record)
        if lay_inside:
            found.append(row)
    return found


def _row(
    kind: str,
    key: str,
    last: MemoryVersion | None,
    by: Attribution,
    moment: datetime,
    change_type: ChangeType,
    diff_json: JsonObject | None,
) -> MemoryVersion:
    """A version without content; the values are validated by the record and the attribution."""
    return MemoryVersion.trusted(
        {
            "id": None,
            "kind": kind,
            "memory_id": key,
            "version_number": 1 if last is None else last.version_number + 1,
            "title": None,
            "content": None,
            "summary": None,
            "change_type": change_type,
            "change_reason": by.reason,
            "diff_json": diff_json,
            "record_json": None,
            "created_at": moment,
            "created_by": by.author,
        }
    )


def _coming(last: MemoryVersion | None) -> ChangeType:
    """The change type of a new record: restored if it was deleted before."""
    return ChangeType.CREATED if last is None else ChangeType.RESTORED


def _change_type(record: Record, previous: Record) -> ChangeType:
    was, now = getattr(previous, "is_archived", False), getattr(record, "is_archived", False)
    if was == now:
        return ChangeType.UPDATED
    return ChangeType.ARCHIVED if now else ChangeType.RESTORED


def _before(record: Record, previous: Record, old: JsonObject) -> JsonObject:
    """The previous values of the changed fields, None for missing ones; `old` is the previous document."""
    return {name: old.get(name) for name in _changed(record, previous)}


def _changed(record: Record, previous: Record) -> list[str]:
    """The changed fields of the content."""
    spec, apart = record.spec, _apart(record.spec)
    fields = zip(spec.primary_names, spec.values_of(record), spec.values_of(previous), strict=True)
    return [name for name, now, was in fields if now is not was and name not in apart and now != was]


def _document(record: Record) -> JsonObject:
    return to_document(record, without=_apart(record.spec))


@cache
def _apart(spec: RecordSpec) -> frozenset[str]:
    """The fields that the content of a version omits: the key, which is a column, and the vector."""
    return frozenset({spec.key} | ({spec.vector_field} if spec.vector_field else set()))


def without_vector(record: T) -> T:
    """The record without its vector."""
    name = record.spec.vector_field
    return record if name is None or getattr(record, name) is None else record.replace(**{name: None})
