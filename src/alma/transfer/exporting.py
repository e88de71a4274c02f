"""Export a store, or the records of a scope, to a file of JSON lines."""

from __future__ import annotations

import base64
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alma import clock
from alma.model.fields import JsonObject
from alma.model.governance import AuditEvent
from alma.model.memory import MemoryVersion
from alma.model.record import Record
from alma.model.scope import Scope
from alma.storage.base import RecordVector, StorageBackend, Transaction
from alma.storage.document import timestamp_text, to_document
from alma.transfer.lines import LineWriter, atomic_write, line_writer
from alma.transfer.parcels import (
    EVERYWHERE,
    TRAVELLING,
    OnProgress,
    Parcel,
    audit_pages,
    count,
    histories_of_the_deleted,
    pages,
)

FORMAT = "alma-export"
FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Exported:
    """A written export: file, number of lines, and records by kind."""

    path: Path
    lines: int
    counts: Mapping[str, int]


def export_store(
    storage: StorageBackend,
    path: str | os.PathLike[str],
    scope: Scope = EVERYWHERE,
    *,
    history: bool = True,
    audit: bool = True,
    vectors: bool = True,
    force: bool = False,
    on_progress: OnProgress = lambda done, total: None,
) -> Exported:
    """Write a consistent export of the store; .gz files are compressed.

    The file appears when it is complete. With a limited scope, the audit log and the settings are not exported, because
    they belong to the whole store.
    """
    target = Path(path)
    packed = target.suffix == ".gz"
    with atomic_write(target, force=force) as new, storage.snapshot() as tx, line_writer(new, packed=packed) as lines:
        counts = _Export(tx, lines, scope, on_progress).write(
            history=history, audit=audit and scope.unlimited, vectors=vectors
        )
    return Exported(target, lines.lines, counts)


class _Export:
    """Writes header, records, histories, audit log and footer."""

    def __init__(self, tx: Transaction, lines: LineWriter, scope: Scope, on_progress: OnProgress) -> None:
        self._tx = tx
        self._lines = lines
        self._scope = scope
        self._on_progress = on_progress
        self._written: Counter[str] = Counter()
        self._total = 0

    def write(self, *, history: bool, audit: bool, vectors: bool) -> Mapping[str, int]:
        self._write_header(history=history, audit=audit, vectors=vectors)
        for cls in TRAVELLING:
            for page in pages(self._tx, cls, self._scope, history=history, vectors=vectors):
                for parcel in page:
                    self._lines.write(_parcel_line(parcel))
                self._count(cls.spec.kind, len(page))
        for rows in histories_of_the_deleted(self._tx, self._scope) if history else ():
            self._lines.write({"kind": rows[0].kind, "history": list(map(version_document, rows))})
            self._count(MemoryVersion.spec.kind, 1)
        for events in audit_pages(self._tx) if audit else ():
            for event in events:
                self._lines.write({"kind": event.spec.kind, "record": to_document(event, without={"id"})})
            self._count(AuditEvent.spec.kind, len(events))
        self._lines.write({"end": {"lines": self._lines.lines + 1, "counts": dict(self._written)}})
        return dict(self._written)

    def _write_header(self, *, history: bool, audit: bool, vectors: bool) -> None:
        counts = {cls.spec.kind: count(self._tx, cls, self._scope) for cls in TRAVELLING}
        counts[AuditEvent.spec.kind] = self._tx.count(AuditEvent, EVERYWHERE) if audit else 0
        self._total = sum(counts.values())
        self._lines.write(
            {
                "format": FORMAT,
                "version": FORMAT_VERSION,
                "created_at": timestamp_text(clock.now()),
                "scope": _scope_document(self._scope),
                "embedding_model": self._tx.embedding_model,
                "embedding_dim": self._tx.embedding_dim,
                "models": self._tx.models() if vectors else {},
                "history": history,
                "counts": {kind: number for kind, number in counts.items() if number},
            }
        )

    def _count(self, kind: str, number: int) -> None:
        self._written[kind] += number
        done = sum(self._written.values())
        self._on_progress(done, max(done, self._total))


def version_document(version: MemoryVersion) -> JsonObject:
    """A version without its row number, which each store assigns."""
    return to_document(version, without={"id"})


def _parcel_line(parcel: Parcel) -> JsonObject:
    record: Record = parcel.record
    line: dict[str, Any] = {"kind": record.spec.kind, "record": to_document(record)}
    if parcel.vectors:
        line["vectors"] = [_vector_document(part) for part in parcel.vectors]
    if parcel.versions:
        line["versions"] = list(map(version_document, parcel.versions))
    return line


def _vector_document(part: RecordVector) -> JsonObject:
    """Little-endian 32-bit floats in base64: exact, and a third of the size of decimal numbers."""
    return {"model": part.model, "part": part.part, "data": base64.b64encode(part.vector.to_bytes()).decode()}


def _scope_document(scope: Scope) -> JsonObject | None:
    if scope.unlimited:
        return None
    named = {name: getattr(scope, name) for name in ("user_id", "project_id", "session_id", "agent")}
    return {name: value for name, value in named.items() if value is not None}
