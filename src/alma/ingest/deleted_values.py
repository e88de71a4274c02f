"""Detect that a new text repeats a deleted or rejected one: in the same words, or in other words by the judge."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from alma.errors import ProviderError
from alma.ingest.deduplication import is_alike
from alma.judge.base import Judge
from alma.lazy import lazy_module
from alma.memory.erasure import unpack
from alma.memory.fact_comparison import TUNING, is_fact
from alma.model.governance import ArchivedRecord
from alma.model.memory import Memory
from alma.model.query import And, Compare, In
from alma.model.record import Record
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.retrieval.supersession import stated
from alma.storage.base import RecordVector, StorageBackend, Transaction
from alma.storage.tombstones import Tombstone, deleted_by_owner, tombstone_of, tombstones_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
else:
    np = lazy_module("numpy")

_log = logging.getLogger("alma.ingest")

_EVERYWHERE = Scope.everywhere()
_MOST_JUDGED = 3
_LEAST_COSINE = 0.6


class DeletedValues:
    """Finds the tombstone of a record's text.

    The judge compares facts with deleted ones whose text is still in the archive, and only if one is near.
    """

    def __init__(self, storage: StorageBackend, judge: Callable[[], Judge]) -> None:
        self._storage = storage
        self._judge = judge

    def of(self, record: Record) -> Tombstone | None:
        """The tombstone of a record that is not stored yet, with its vector."""
        with self._storage.snapshot() as tx:
            found = tombstone_of(tx, record)
            vector = getattr(record, "embedding", None)
            if found is not None or vector is None or self._storage.is_writing or not is_fact(record):
                return found
            ids = deleted_by_owner(tx, record)
            near = list(_near(tx, record, vector, ids)) if ids else []
            buried = tombstones_of(tx, [known for _, known in near])
        near = [(cosine, known) for cosine, known in near if str(known.key) in buried]
        nearest = [known for _, known in sorted(near, key=lambda each: -each[0])[:_MOST_JUDGED]]
        if not nearest:
            return None
        try:
            judged = self._judge().compare([(stated(record), stated(known)) for known in nearest])
        except ProviderError as exc:
            _log.warning("deleted values could not be compared", extra={"error": repr(exc)})
            return None
        same = (
            known
            for known, verdict in zip(nearest, judged, strict=True)
            if verdict["same"] >= TUNING.same and is_alike(known, record)
        )
        first = next(same, None)
        return None if first is None else buried[str(first.key)]


def _near(tx: Transaction, record: Record, vector: Vector, ids: list[str]) -> Iterator[tuple[float, Record]]:
    """The deleted records of the same kind whose text is still there, near a vector, with the cosines."""
    cls = type(record)
    of_kind = And(Compare("kind", "eq", cls.spec.kind), In("record_id", ids))
    found: list[tuple[Record, list[RecordVector]]] = []
    for row in tx.find(ArchivedRecord, _EVERYWHERE, of_kind):
        bundle = unpack(row)
        found.append((bundle.record, list(bundle.vectors)))
    if cls is Memory:
        gone = [each for each in tx.get_many(Memory, ids, _EVERYWHERE) if not each.is_active]
        vectors = list(tx.vectors_of(Memory, [each.id for each in gone])) if gone else []
        found += [(each, [part for part in vectors if part.record_id == each.id]) for each in gone]
    wanted = _unit(vector)
    for known, parts in found:
        own = (each.vector for each in parts if each.model == tx.embedding_model and each.part == 0)
        cosine = max((float(_unit(each) @ wanted) for each in own if len(each) == len(wanted)), default=0.0)
        if cosine >= _LEAST_COSINE and known.key != record.key:
            yield cosine, known


def _unit(vector: Vector) -> npt.NDArray[np.float32]:
    values: npt.NDArray[np.float32] = np.frombuffer(vector.to_bytes(), dtype="<f4")
    return values / np.float32(np.linalg.norm(values) or 1.0)
