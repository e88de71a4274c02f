"""How the rows of a store's JSON files become what its tables hold, and back."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from alma.model.kinds import KINDS
from alma.model.record import Record
from alma.model.vector import Vector
from alma.storage.base import ChainHead, Mark
from alma.storage.document import from_document, timestamp_of, timestamp_text, to_document
from alma.storage.tables import CHAINS, MODELS, OUTBOX, PROJECTIONS, VECTORS, MarkKey, VectorKey, mark_key


@dataclass(frozen=True)
class Format:
    """How one file's rows become values with keys, and back."""

    name: str
    read: Callable[[dict[str, Any]], tuple[Any, Any]]
    write: Callable[[Any, Any], dict[str, Any]]


def _record_format(cls: type[Record]) -> Format:
    def read(row: dict[str, Any]) -> tuple[Any, Record]:
        record = from_document(cls, row)
        return record.key, record

    return Format(cls.spec.table, read, lambda _, record: to_document(record))


def _read_vector(row: dict[str, Any]) -> tuple[VectorKey, Vector]:
    vector = Vector.from_bytes(base64.b64decode(row["embedding"], validate=True))
    if len(vector) != row["dims"]:
        raise ValueError(f"the vector of {row['memory_id']!r} has {len(vector)} dimensions, not {row['dims']}")
    return (row["memory_type"], row["memory_id"], row["model"], row.get("part", 0)), vector


def _write_vector(key: VectorKey, vector: Vector) -> dict[str, Any]:
    encoded = base64.b64encode(vector.to_bytes()).decode()
    return {
        "memory_type": key[0],
        "memory_id": key[1],
        "model": key[2],
        "part": key[3],
        "dims": len(vector),
        "embedding": encoded,
    }


def _read_mark(row: dict[str, Any]) -> tuple[MarkKey, Mark]:
    lease = row.get("leased_until")
    times = {
        "marked_at": timestamp_of(row["marked_at"]),
        "leased_until": None if lease is None else timestamp_of(lease),
    }
    mark = Mark(**{**row, **times})
    return mark_key(mark), mark


def _write_mark(_: Any, mark: Mark) -> dict[str, Any]:
    lease = mark.leased_until
    return {
        "projection": mark.projection,
        "kind": mark.kind,
        "record_id": mark.record_id,
        "generation": mark.generation,
        "marked_at": timestamp_text(mark.marked_at),
        "leased_until": None if lease is None else timestamp_text(lease),
        "attempts": mark.attempts,
        "error": mark.error,
        "parked": mark.parked,
    }


FORMATS = {
    format_.name: format_
    for format_ in (
        *(_record_format(cls) for cls in KINDS),
        Format(VECTORS, _read_vector, _write_vector),
        Format(MODELS, lambda row: (row["model"], row["dims"]), lambda key, dims: {"model": key, "dims": dims}),
        Format(
            PROJECTIONS,
            lambda row: ((row["projection"], row["kind"]), True),
            lambda key, _: {"projection": key[0], "kind": key[1]},
        ),
        Format(OUTBOX, _read_mark, _write_mark),
        Format(CHAINS, lambda row: (row["chain"], ChainHead(**row)), lambda _, head: head._asdict()),
    )
}
