"""Archive rows, which hold a record with its vectors and dependents."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from alma.clock import new_id
from alma.model.governance import ArchiveCause, ArchivedRecord
from alma.model.kinds import kind_named
from alma.model.record import Record
from alma.model.vector import Vector
from alma.storage.base import RecordVector
from alma.storage.document import from_document, to_document, unpacked_record


@dataclass(frozen=True, slots=True)
class Bundle:
    """A record, its vectors of every model, and the records that depend on it."""

    record: Record
    vectors: tuple[RecordVector, ...]
    dependents: tuple[Record, ...]


def pack(
    bundle: Bundle,
    cause: ArchiveCause,
    reason: str | None,
    author: str | None,
    moment: datetime,
    archive_id: str | None = None,
) -> ArchivedRecord:
    """The bundle as an archive row."""
    record = bundle.record
    return ArchivedRecord(
        id=archive_id or new_id(),
        kind=record.spec.kind,
        record_id=str(record.key),
        cause=cause,
        reason=reason,
        user_id=getattr(record, "user_id", None),
        project_id=getattr(record, "project_id", None),
        session_id=getattr(record, "session_id", None),
        # A general memory has no agent; it is found under the agent that wrote it.
        agent=getattr(record, "agent", None) or getattr(record, "source_agent", None),
        document=_text(_document(record)),
        vectors=_text([_packed_vector(each) for each in bundle.vectors]),
        dependents=_text([{"kind": each.spec.kind, "record": _document(each)} for each in bundle.dependents]),
        archived_at=moment,
        archived_by=author,
    )


def unpack(archived: ArchivedRecord) -> Bundle:
    """The bundle in an archive row."""
    dependents: Sequence[dict[str, object]] = json.loads(archived.dependents)
    return Bundle(
        record=unpacked_record(archived),
        vectors=tuple(_unpacked_vector(archived.record_id, each) for each in json.loads(archived.vectors)),
        dependents=tuple(from_document(kind_named(str(each["kind"])), each["record"]) for each in dependents),  # type: ignore[arg-type]
    )


def _document(record: Record) -> object:
    name = record.spec.vector_field
    return to_document(record, without=() if name is None else (name,))


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _packed_vector(each: RecordVector) -> dict[str, object]:
    return {"model": each.model, "part": each.part, "data": base64.b64encode(each.vector.to_bytes()).decode()}


def _unpacked_vector(record_id: str, packed: dict[str, object]) -> RecordVector:
    data = base64.b64decode(str(packed["data"]))
    return RecordVector(record_id, str(packed["model"]), int(str(packed["part"])), Vector.from_bytes(data))
