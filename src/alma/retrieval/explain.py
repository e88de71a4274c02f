"""Explain: why a memory is not in a slice, only for memories that the agent may know of."""

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
from alma.retrieval.router import RETRIEVED, RetrievalRequest, SearchRequest, Target, route
from alma.storage.base import StorageBackend, Transaction
from alma.storage.document import unpacked_record

BEHIND = Dropped("candidates", "it does not resemble the task, or others do more, by meaning and by words")


class DropReason(NamedTuple):
    """Why a memory was dropped; the sentence is formatted on demand, as few of many are asked for."""

    stage: str
    sentence: str
    facts: tuple[object, ...] = ()

    def formatted(self) -> Dropped:
        return Dropped(self.stage, self.sentence.format(*self.facts))


class WhyNot:
    """Answers `why_not`: with the reason noted for a memory, or else that it was `behind` others or not visible.

    For what the agent may not see it does not even say that it exists.
    """

    __slots__ = ("behind", "dropped", "request", "storage", "targets")

    def __init__(
        self,
        storage: StorageBackend,
        targets: Sequence[Target],
        request: SearchRequest,
        behind: Dropped = BEHIND,
        dropped: Mapping[str, DropReason] | None = None,
    ) -> None:
        self.storage = storage
        self.targets = targets
        self.request = request
        self.behind = behind
        self.dropped = dropped or {}

    def __deepcopy__(self, _: object) -> Callable[[str], Dropped]:
        """`dataclasses.asdict` copies a slice, and a store cannot be copied."""
        return not_here

    def __call__(self, record_id: str) -> Dropped:
        reason = self.dropped.get(record_id)
        with self.storage.snapshot() as tx:
            for target in self.targets:
                if tx.find(target.cls, target.scope, And(target.where, In("id", [record_id]))):
                    return self.behind if reason is None else reason.formatted()
            for target in self.targets:
                record = tx.get(target.cls, record_id, target.scope)
                if record is not None and self._may_know(record, target):
                    # A reason noted while it was still visible; for one that is not, say why.
                    noted = reason is not None and reason.stage != "scope"
                    return reason.formatted() if reason and noted else Dropped("scope", self._hidden(record))
            for target in self.targets:
                archived = self._archived(tx, record_id, target)
                if archived is not None:
                    return Dropped("scope", archived)
            for target in self._other_kinds():
                other = tx.get(target.cls, record_id, target.scope)
                if other is not None and self._may_know(other, target):
                    return Dropped("scope", f"its kind, {target.cls.spec.kind}, was not asked for")
        return Dropped("scope", f"there is no memory {shown(record_id)} that this agent may see")

    def _other_kinds(self) -> list[Target]:
        if not isinstance(self.request, RetrievalRequest):
            return []
        return route(replace(self.request, kinds=tuple(cls for cls in RETRIEVED if cls not in self.request.kinds)))

    def _hidden(self, record: Record) -> str:
        """Why a record inside the scope is not visible."""
        if not getattr(record, "is_active", True):
            return "it was deleted"
        if getattr(record, "is_archived", False):
            return "it is archived"
        end = getattr(record, "expires_at", None)
        if end is not None and end <= self.request.now:
            return f"it expired at {end:%Y-%m-%d %H:%M} UTC"
        return "it is of another session or layer"

    def _archived(self, tx: Transaction, record_id: str, target: Target) -> str | None:
        """How a record inside the scope came into the archive, if it is there."""
        where = And(Compare("record_id", "eq", record_id), Compare("kind", "eq", target.cls.spec.kind))
        for archived in tx.find(ArchivedRecord, target.scope, where, (Order("archived_at", "desc"),), 1):
            if self._may_know(unpacked_record(archived), target):
                because = f": {archived.reason}" if archived.reason else ""
                return f"it was {archived.cause} on {archived.archived_at:%Y-%m-%d}{because}"
        return None

    def _may_know(self, record: Record, target: Target) -> bool:
        """Whether the agent may know of a hidden record: not if it is private to another user.

        Nor if it is one of the user's memories of another project that is not global.
        """
        if isinstance(self.request, RetrievalRequest) and isinstance(record, Memory):
            elsewhere = record.project_id != self.request.project_id and not record.layer_global
        else:
            elsewhere = False
        owners = (self.request.user_id, target.scope.user_id)
        visible = not getattr(record, "is_private", False) or getattr(record, "user_id", None) in owners
        return visible and not elsewhere
