"""Detect that a new text repeats a deleted or rejected one: in the same words, or in other words by the judge."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING

from alma.errors import ProviderError
from alma.judge.base import Judge
from alma.judge.default import default_judge
from alma.lazy import lazy_module
from alma.model.facts import is_fact, stated
from alma.model.governance import ArchivedRecord
from alma.model.learning import AntiPattern, Heuristic, Outcome
from alma.model.memory import Memory
from alma.model.query import And, Compare, In
from alma.model.record import Record
from alma.model.scope import Scope
from alma.model.vector import Vector
from alma.storage.base import StorageBackend, Transaction
from alma.storage.bundles import unpack
from alma.storage.tombstones import Tombstone, conversations_of, deleted_by_owners, has_tombstones, tombstones_of
from alma.text.prose import is_prose, signs_and_tense
from alma.text.tokens import terms

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
else:
    np = lazy_module("numpy")

_log = logging.getLogger("alma.ingest")

_EVERYWHERE = Scope.everywhere()
_MOST_JUDGED = 3
_LEAST_COSINE = 0.6
# Where a text has no vector, the share of words in common selects what is judged.
_LEAST_SHARED = 0.15
# As facts and lessons are counted together by `FactComparison` and by `LESSONS`.
_SAME_FACT, _SAME_LESSON = 0.8, 0.6

Vectors = Mapping[str, Vector | None]
Known = tuple[Record, Sequence[Vector]]


class DeletedValues:
    """Finds the tombstones of what records say.

    The judge compares facts, lessons and outcomes with deleted ones whose text is still in the archive, and only if one
    is near.
    """

    def __init__(self, storage: StorageBackend, judge: Callable[[], Judge] = default_judge) -> None:
        self._storage = storage
        self._judge = judge

    def among(
        self, records: Sequence[Record], vectors: Vectors | None = None, *, judged: bool = True
    ) -> dict[str, Tombstone]:
        """The tombstones of what these records say, by their ids; unless `judged`, of the same words only."""
        with self._storage.snapshot() as tx:
            if not has_tombstones(tx):
                return {}
            found = tombstones_of(tx, records)
            left = [record for record in records if judged and str(record.key) not in found]
            near = deleted_near(tx, left, vectors)
        pairs = [(record, *each) for record in left for each in near.get(str(record.key), ())]
        for (record, _, tombstone), is_same in zip(pairs, self._same(pairs), strict=True):
            if is_same:
                found.setdefault(str(record.key), tombstone)
        return found

    def among_new(self, records: Sequence[Record], vectors: Vectors) -> dict[str, Tombstone]:
        """The same for those that are not stored, with the vectors by their ids."""
        with self._storage.snapshot() as tx:
            if not has_tombstones(tx):
                return {}
            keys: dict[type[Record], list[str]] = {}
            for record in records:
                keys.setdefault(type(record), []).append(str(record.key))
            stored = {(cls, str(each.key)) for cls, ids in keys.items() for each in tx.get_many(cls, ids, _EVERYWHERE)}
        return self.among([each for each in records if (type(each), str(each.key)) not in stored], vectors)

    def _same(self, pairs: Sequence[tuple[Record, Record, Tombstone]]) -> list[bool]:
        if not pairs:
            return []
        try:
            judged = self._judge().compare(
                [(compared_text(record), compared_text(known)) for record, known, _ in pairs]
            )
        except ProviderError as exc:
            _log.warning("deleted values could not be compared", extra={"error": repr(exc)})
            return [False] * len(pairs)
        return [
            each["same"] >= (_SAME_FACT if is_fact(record) else _SAME_LESSON)
            for (record, *_), each in zip(pairs, judged, strict=True)
        ]


def deleted_near(
    tx: Transaction, records: Sequence[Record], vectors: Vectors | None = None
) -> dict[str, list[tuple[Record, Tombstone]]]:
    """For each of these records the deleted ones that may say the same, nearest first; a few.

    The vector of a record is that in `vectors`, or its own.
    """
    deleted = deleted_by_owners(tx, records)
    known: dict[tuple[type[Record], int], list[Known]] = {}
    found: dict[str, list[tuple[Record, Tombstone]]] = {}
    for record in records:
        ids = deleted.get(str(record.key))
        if not ids or not compared_text(record):
            continue
        cls, of_owner = type(record), id(ids)
        if (cls, of_owner) not in known:
            known[cls, of_owner] = list(_deleted(tx, cls, ids))
        vector = (vectors or {}).get(str(record.key)) or getattr(record, "embedding", None)
        ranked = sorted(_ranked(record, vector, known[cls, of_owner]), key=lambda each: -each[0])
        nearest = [each for _, each in ranked[:_MOST_JUDGED]]
        buried = tombstones_of(tx, nearest) if nearest else {}
        found[str(record.key)] = [
            (each, replace(buried[str(each.key)], in_other_words=True)) for each in nearest if str(each.key) in buried
        ]
    return found


def _deleted(tx: Transaction, cls: type[Record], ids: Sequence[str]) -> Iterator[Known]:
    """The deleted records of a kind whose text is still there, with their vectors."""
    of_kind = And(Compare("kind", "eq", cls.spec.kind), In("record_id", list(ids)))
    for row in tx.find(ArchivedRecord, _EVERYWHERE, of_kind):
        bundle = unpack(row)
        yield bundle.record, [v.vector for v in bundle.vectors if v.model == tx.embedding_model and v.part == 0]
    if cls is Memory:
        gone = [each for each in tx.get_many(Memory, list(ids), _EVERYWHERE) if not each.is_active]
        parts = list(tx.vectors_of(Memory, [each.id for each in gone])) if gone else []
        own = [v for v in parts if v.model == tx.embedding_model and v.part == 0]
        yield from ((each, [v.vector for v in own if v.record_id == each.id]) for each in gone)


def _ranked(record: Record, vector: object, known: Sequence[Known]) -> Iterator[tuple[float, Record]]:
    unit = _unit(vector) if isinstance(vector, Vector) else None
    said = compared_text(record)
    signs, words = signs_and_tense(said), set(terms(said))
    for each, vectors in known:
        if not _may_say_the_same(record, signs, each):
            continue
        if isinstance(record, Outcome) or record.key == each.key:
            yield 1.0, each
        elif unit is not None and any(len(own) == len(unit) for own in vectors):
            cosine = max(float(_unit(own) @ unit) for own in vectors if len(own) == len(unit))
            if cosine >= _LEAST_COSINE:
                yield cosine, each
        elif (shared := _shared_words(words, each)) >= _LEAST_SHARED:
            yield shared, each


def _may_say_the_same(record: Record, signs: object, known: Record) -> bool:
    if isinstance(record, Outcome) and isinstance(known, Outcome):
        # An outcome is an event: only what is said of the same conversation can be the same one.
        is_same_event = not set(conversations_of(record)).isdisjoint(conversations_of(known))
        return is_same_event and record.success == known.success
    return signs_and_tense(compared_text(known)) == signs


def compared_text(record: Record) -> str:
    """What the judge compares; empty for what it cannot read."""
    match record:
        case Heuristic():
            said = record.strategy
        case AntiPattern():
            said = record.pattern
        case Outcome():
            said = record.strategy_used or ""
        case _:
            return stated(record) if is_fact(record) else ""
    return said if is_prose(said) else ""


def _shared_words(words: Set[str], other: Record) -> float:
    others = set(terms(compared_text(other)))
    return len(words & others) / len(words | others) if words | others else 0.0


def _unit(vector: Vector) -> npt.NDArray[np.float32]:
    values: npt.NDArray[np.float32] = np.frombuffer(vector.to_bytes(), dtype="<f4")
    return values / np.float32(np.linalg.norm(values) or 1.0)
