"""Confidence decay: lowers the confidence of memories that were not validated for a while."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from alma import clock
from alma.errors import ValidationError
from alma.learning.decay import Decay, ExponentialDecay
from alma.learning.policy import KIND_FIELDS, KindFields, fits, is_pinned
from alma.memory.settings import DecaySwitch
from alma.model.common import checked_part
from alma.model.governance import ANONYMOUS, Attribution
from alma.model.record import Record
from alma.model.scope import Scope
from alma.storage.base import StorageBackend, Transaction, checked_storage

_NOTE = "faded"
_LEAST_CHANGE = 0.01
_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class DecayedConfidence:
    """A memory whose confidence changed."""

    kind: str
    id: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class DecaySummary:
    """The memories whose confidence changed, or in a dry run would."""

    dry_run: bool
    items: tuple[DecayedConfidence, ...]

    @property
    def total(self) -> int:
        return len(self.items)


class ConfidenceDecayer:
    """Lowers the confidence of lessons with the time since their last validation, never below the floor.

    It may run at any interval: the confidence before the decay is kept in the metadata, so that the same age always
    gives the same confidence. A confidence that was set since is the new start. With the setting `memory_decay_enabled`
    off, nothing changes.
    """

    def __init__(self, storage: StorageBackend, decay: Decay | None = None, floor: float = 0.1) -> None:
        if isinstance(floor, bool) or not isinstance(floor, int | float) or not 0 <= floor <= 1:
            raise ValidationError("decay", "floor", floor, "must be between 0 and 1")
        self._storage = checked_storage("decay", storage)
        chosen = ExponentialDecay(180.0) if decay is None else decay
        self._decay = checked_part("decay", "decay", chosen, Decay, "a Decay, as ExponentialDecay(180)")
        self._floor = float(floor)

    def apply(self, scope: Scope, dry_run: bool = False, by: Attribution = ANONYMOUS) -> DecaySummary:
        """Set the confidences inside the scope to their values of today."""
        now, decays = clock.now(), DecaySwitch(self._storage)
        faded: list[DecayedConfidence] = []
        for fields in KIND_FIELDS:
            if fields.confidence is None or not fits(fields.cls, scope):
                continue
            for record in self._storage.iterate(fields.cls, scope, page_size=_AT_ONCE):
                change = self._change(record, fields, now) if decays(record) else None
                if change is not None and (dry_run or self._carry_out(record, fields, now, by)):
                    faded.append(change)
        return DecaySummary(dry_run, tuple(faded))

    def _change(self, record: Record, fields: KindFields, now: datetime) -> DecayedConfidence | None:
        before = self._confidence(record, fields)
        after = self._faded(record, fields, now)
        if is_pinned(record) or _weighs_evidence(record) or abs(after - before) < _LEAST_CHANGE:
            return None
        return DecayedConfidence(record.spec.kind, str(record.key), before, after)

    def _faded(self, record: Any, fields: KindFields, now: datetime) -> float:
        start = _start(record, self._confidence(record, fields))
        left = start * self._decay.strength(fields.age_days(record, now))
        return max(min(start, self._floor), left)

    def _carry_out(self, record: Record, fields: KindFields, now: datetime, by: Attribution) -> bool:
        def change(tx: Transaction) -> bool:
            for held in tx.lock(fields.cls, [record.key], Scope.everywhere()):
                if self._change(held, fields, now) is not None:
                    after = self._faded(held, fields, now)
                    start = _start(held, self._confidence(held, fields))
                    noted = {**getattr(held, "metadata", {}), _NOTE: {"from": start, "to": after}}
                    values = {str(fields.confidence): after, "metadata": noted}
                    tx.update(fields.cls, str(held.key), values, Scope.everywhere())
                    return True
            return False

        return self._storage.write(change, by)

    @staticmethod
    def _confidence(record: Record, fields: KindFields) -> float:
        return float(getattr(record, str(fields.confidence)))


def _weighs_evidence(record: Any) -> bool:
    """Whether the confidence comes from evidence, which has a decay already."""
    return getattr(record, "weight_for", None) is not None


def _start(record: Any, confidence: float) -> float:
    """The confidence before the decay."""
    note = record.metadata.get(_NOTE)
    if isinstance(note, dict) and note.get("to") == confidence and isinstance(note.get("from"), float | int):
        return float(note["from"])
    return confidence
