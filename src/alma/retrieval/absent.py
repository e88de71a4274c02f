"""Absent: why a memory is not in a slice, told only of those that the agent may know of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from alma.errors import shown
from alma.model.governance import ArchivedRecord
from alma.model.memory import Memory
from alma.model.query import And, Compare, In, Order
from alma.model.record import Record
from alma.model.slice import Dropped, not_here
from alma.retrieval.router import RETRIEVED, Asked, Request, Target, route
from alma.storage.base import StorageBackend, Transaction
from alma.storage.document import unpacked_record

BEHIND = Dropped("candidates", "it does not resemble the task, or others do more, by meaning and by words")


class Note(NamedTuple):
    """Why a memory was dropped, said in a sentence once somebody asks: of the many that are noted hardly one is."""

    stage: str
    sentence: str
    facts: tuple[object, ...] = ()

    def told(self) -> Dropped:
        return Dropped(self.stage, self.sentence.format(*self.facts))


class Absent:
    """Answers `why_not`: with what was noted of a memory, or else that it was `behind` others or out of sight.

    Of what the agent may not see, not even that it exists: an index or a relationship may have proposed it.
    """

    __slots__ = ("asked", "behind", "dropped", "storage", "targets")

    def __init__(
        self,
        storage: StorageBackend,
        targets: Sequence[Target],
        asked: Asked,
        behind: Dropped = BEHIND,
        dropped: Mapping[str, Note] | None = None,
    ) -> None:
        self.storage = storage
        self.targets = targets
        self.asked = asked
        self.behind = behind
        self.dropped = dropped or {}

    def __deepcopy__(self, _: object) -> Callable[[str], Dropped]:
        """What `dataclasses.asdict` takes over of a slice: a store cannot be copied."""
        return not_here

    def __call__(self, record_id: str) -> Dropped:
        with self.storage.snapshot() as tx:
            for target in self.targets:
                if tx.find(target.cls, target.scope, And(target.where, In("id", [record_id]))):
                    return self._noted(record_id) or self.behind
            for target in self.targets:
                record = tx.get(target.cls, record_id, target.scope)
                if record is not None and self._may_know(record, target):
                    return self._noted_before(record_id) or Dropped("scope", self._out_of_sight(record))
            for target in self.targets:
                put_away = self._put_away(tx, record_id, target)
                if put_away is not None:
                    return Dropped("scope", put_away)
            for target in self._of_other_kinds():
                other = tx.get(target.cls, record_id, target.scope)
                if other is not None and self._may_know(other, target):
                    return Dropped("scope", f"its kind, {target.cls.spec.kind}, was not asked for")
        return Dropped("scope", f"there is no memory {shown(record_id)} that this agent may see")

    def _of_other_kinds(self) -> list[Target]:
        if not isinstance(self.asked, Request):
            return []
        return route(replace(self.asked, kinds=tuple(cls for cls in RETRIEVED if cls not in self.asked.kinds)))

    def _noted(self, record_id: str) -> Dropped | None:
        note = self.dropped.get(record_id)
        return None if note is None else note.told()

    def _noted_before(self, record_id: str) -> Dropped | None:
        """What was noted while it was still in sight: that it was not is said more exactly."""
        note = self._noted(record_id)
        return None if note is None or note.stage == "scope" else note

    def _out_of_sight(self, record: Record) -> str:
        """Why a record inside the scope is not looked at."""
        if not getattr(record, "is_active", True):
            return "it was deleted"
        if getattr(record, "is_archived", False):
            return "it is archived"
        end = getattr(record, "expires_at", None)
        if end is not None and end <= self.asked.now:
            return f"it expired at {end:%Y-%m-%d %H:%M} UTC"
        return "it is of another session or layer"

    def _put_away(self, tx: Transaction, record_id: str, target: Target) -> str | None:
        """How a record inside the scope came into the archive, if it is there."""
        kind = target.cls.spec.kind
        where = And(Compare("record_id", "eq", record_id), Compare("kind", "eq", kind))
        for put_away in tx.find(ArchivedRecord, target.scope, where, (Order("archived_at", "desc"),), 1):
            if self._may_know(unpacked_record(put_away), target):
                because = f": {put_away.reason}" if put_away.reason else ""
                return f"it was {put_away.cause} on {put_away.archived_at:%Y-%m-%d}{because}"
        return None

    def _may_know(self, record: Record, target: Target) -> bool:
        """Whether a record out of sight may be spoken of: not what is private to somebody else.

        Nor what the user has in other projects and does not carry into this one.
        """
        if self._is_of_another_project(record):
            return False
        owners = (getattr(self.asked, "user_id", None), target.scope.user_id)
        return not getattr(record, "is_private", False) or getattr(record, "user_id", None) in owners

    def _is_of_another_project(self, record: Record) -> bool:
        if not isinstance(record, Memory) or not isinstance(self.asked, Request):
            return False
        return not record.layer_global and record.project_id != self.asked.project_id
